//! Every record of an owner's directory, for people or for programs.

use std::io::{self, Write};

use crate::wal::directory::Directory;
use crate::wal::dump::{Ascii, Ending, Form, Line, Seconds, print_end};
use crate::wal::error::WalError;
use crate::wal::format::{Entries, Entry, Next, PauseImage};
use crate::wal::json::Quoted;
use crate::wal::segment::file_name;
use crate::wal::v8::{Owned, VERSION, ending, head_ending, open_file};

/// Writes the records as they come, and how each file begins and ends. Returns whether nothing was
/// damaged.
///
/// # Errors
/// [`WalError`]; what was read before has been written by then.
pub(in crate::wal) fn dump(
    directory: &Directory,
    form: Form,
    out: &mut impl Write,
) -> Result<bool, WalError> {
    let mut is_sound = true;
    for (nth, &number) in directory.numbers.iter().enumerate() {
        let later = &directory.numbers[nth + 1..];
        let name = file_name(number);
        let mut segment = match open_file(directory, number)? {
            None => continue,
            Some(Ok(segment)) => segment,
            Some(Err(bad)) => {
                let end = head_ending(directory, later, bad)?;
                is_sound &= !matches!(end, Ending::Damaged { .. });
                print_end(out, form, &name, 0, &end)?;
                continue;
            }
        };
        if let Some(owned) = segment.owner() {
            print_head(out, form, &name, &owned)?;
        }
        loop {
            let next = segment.next_entry();
            match next.map_err(|source| directory.failed("read", number, source))? {
                Next::Entry { offset, entry, .. } => print(out, form, &name, offset, &entry)?,
                Next::End { offset, rest } => {
                    let end = ending(directory, number, later, &mut segment, offset, rest)?;
                    is_sound &= !matches!(end, Ending::Damaged { .. });
                    print_end(out, form, &name, offset, &end)?;
                    break;
                }
            }
        }
    }
    Ok(is_sound)
}

fn print_head(out: &mut impl Write, form: Form, name: &str, owned: &Owned) -> io::Result<()> {
    let (owner, topology, head) = (owned.owner, owned.fingerprint.0, owned.head);
    let (highest, before_end) = (head.highest.0, head.before_end);
    match form {
        Form::Text => writeln!(
            out,
            "{name} 0 head owner={owner} topology={topology:016x} number={} highest={highest} \
             begun={} before_end={before_end} synced={}",
            head.number,
            Seconds(head.begun_at.0),
            head.is_synced,
        ),
        Form::Json => writeln!(
            out,
            "{{\"file\":{},\"offset\":0,\"version\":{VERSION},\"kind\":\"head\",\"owner\":{owner},\
             \"topology\":\"{topology:016x}\",\"number\":{},\"highest\":{highest},\
             \"begun_at_ns\":{},\"before_end\":{before_end},\"synced\":{}}}",
            Quoted(name),
            head.number,
            head.begun_at.0,
            head.is_synced,
        ),
    }
}

fn print(
    out: &mut impl Write,
    form: Form,
    name: &str,
    offset: u64,
    entry: &Entry<'_>,
) -> io::Result<()> {
    let line = |kind, tube| Line {
        name,
        version: VERSION.cast_signed(),
        offset,
        kind,
        tube,
        has_numbers: true,
    };
    match entry {
        Entry::Full { job, tube, .. } => line("full", Some(*tube)).print(out, form, job),
        Entry::Change { job } => line("change", None).print(out, form, job),
        Entry::End { job } => print_number(out, form, name, offset, ("end", "id", job.id.0)),
        Entry::Mark { highest } => print_number(out, form, name, offset, ("mark", "id", highest.0)),
        Entry::Resume { number } => {
            print_number(out, form, name, offset, ("resume", "number", *number))
        }
        Entry::Pause { tube, pause } => {
            print_pause(out, form, name, offset, Ascii(tube.as_bytes()), pause)
        }
    }
}

/// A record that is a kind, and one field.
fn print_number(
    out: &mut impl Write,
    form: Form,
    name: &str,
    offset: u64,
    (kind, field, number): (&str, &str, u64),
) -> io::Result<()> {
    match form {
        Form::Text => writeln!(out, "{name} {offset} {kind} {field}={number}"),
        Form::Json => writeln!(
            out,
            "{{\"file\":{},\"offset\":{offset},\"version\":{VERSION},\"kind\":\"{kind}\",\
             \"{field}\":{number}}}",
            Quoted(name),
        ),
    }
}

fn print_pause(
    out: &mut impl Write,
    form: Form,
    name: &str,
    offset: u64,
    tube: Ascii<'_>,
    pause: &PauseImage,
) -> io::Result<()> {
    let (number, length, until) = (pause.number, pause.length.0, pause.until.0);
    match form {
        Form::Text => writeln!(
            out,
            "{name} {offset} pause number={number} tube={tube} length={length} until={}",
            Seconds(until),
        ),
        Form::Json => writeln!(
            out,
            "{{\"file\":{},\"offset\":{offset},\"version\":{VERSION},\"kind\":\"pause\",\
             \"number\":{number},\"tube\":{},\"length_s\":{length},\"until_ns\":{until}}}",
            Quoted(name),
            Quoted(tube),
        ),
    }
}
