//! `beanshard wal dump`: every record of a directory, one a line, for people or for programs.
//! Bodies are shown by their length alone: they belong to the clients.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::Path;

use crate::base::name::TubeName;
use crate::base::time::NANOS_PER_SEC;
use crate::wal::directory::Directory;
use crate::wal::error::WalError;
use crate::wal::json::Quoted;
use crate::wal::record::{JobImage, Record};
use crate::wal::segment::{BadHeader, Found, Segment, Tail, file_name};
use crate::wal::v7::is_id_mark;
use crate::wal::v8;

/// How a dump is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Words and `name=value`; times in seconds.
    Text,
    /// An object of JSON a line; times in nanoseconds.
    Json,
}

/// Writes the records of the directory at `path` to `out` as they come, and where each file ends.
/// What is worth knowing besides goes to `notes`. Returns whether nothing was damaged; records that
/// contradict one another are found by [`check`](crate::wal::check::check) alone.
///
/// # Errors
/// [`WalError`]; what was read before has been written by then.
pub fn dump(
    path: &Path,
    form: Form,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<bool, WalError> {
    let directory = Directory::look(path)?;
    for note in directory.notes() {
        writeln!(notes, "{note}")?;
    }
    if v8::is_ours(&directory)? {
        return v8::dump::dump(&directory, form, out);
    }
    let mut is_sound = true;
    for &number in &directory.numbers {
        let Some(file) = directory.open(number)? else {
            continue;
        };
        let failed = |source| directory.failed("read", number, source);
        let name = file_name(number);
        let mut segment = match Segment::open(file).map_err(failed)? {
            Ok(segment) => segment,
            Err(header) => {
                let end = Ending::from(header);
                is_sound &= !matches!(end, Ending::Damaged { .. });
                print_end(out, form, &name, 0, &end)?;
                continue;
            }
        };
        let version = segment.version();
        loop {
            match segment.read_next().map_err(failed)? {
                Found::Record { offset, record, .. } => {
                    let line = Line {
                        name: &name,
                        version: version.number(),
                        offset,
                        kind: kind(&record),
                        tube: record.content.map(|content| content.tube),
                        has_numbers: !is_id_mark(&record.job),
                    };
                    line.print(out, form, &record.job)?;
                }
                Found::End { offset, tail } => {
                    is_sound &= !matches!(tail, Tail::Damaged { .. });
                    print_end(out, form, &name, offset, &tail.into())?;
                    break;
                }
            }
        }
    }
    Ok(is_sound)
}

fn kind(record: &Record<'_>) -> &'static str {
    if record.content.is_some() {
        "full"
    } else if is_id_mark(&record.job) {
        "mark"
    } else {
        "short"
    }
}

/// What a line says besides the job.
pub(super) struct Line<'a> {
    /// The file's name.
    pub(super) name: &'a str,
    /// Number of its version.
    pub(super) version: i32,
    pub(super) offset: u64,
    pub(super) kind: &'static str,
    pub(super) tube: Option<TubeName<'a>>,
    /// The record tells more of the job than its id. Programs get it all the same.
    pub(super) has_numbers: bool,
}

impl Line<'_> {
    pub(super) fn print(&self, out: &mut impl Write, form: Form, job: &JobImage) -> io::Result<()> {
        match form {
            Form::Text => self.print_text(out, job),
            Form::Json => self.print_json(out, job),
        }
    }

    fn print_text(&self, out: &mut impl Write, job: &JobImage) -> io::Result<()> {
        let (name, offset, kind) = (self.name, self.offset, self.kind);
        write!(out, "{name} {offset} {kind} id={}", job.id.0)?;
        if !self.has_numbers {
            return writeln!(out);
        }
        if let Some(tube) = self.tube {
            write!(out, " tube={}", Ascii(tube.as_bytes()))?;
        }
        writeln!(
            out,
            " state={} pri={} delay={} ttr={} created={} deadline={} reserves={} timeouts={} \
             releases={} buries={} kicks={} body={}",
            job.state.word(),
            job.pri.0,
            Seconds(job.delay.0),
            Seconds(job.ttr.0),
            Seconds(job.created_at.0),
            Seconds(job.deadline_at.0),
            job.counts.reserves,
            job.counts.timeouts,
            job.counts.releases,
            job.counts.buries,
            job.counts.kicks,
            job.body_len,
        )
    }

    fn print_json(&self, out: &mut impl Write, job: &JobImage) -> io::Result<()> {
        write!(
            out,
            "{{\"file\":{},\"offset\":{},\"version\":{},\"kind\":\"{}\",\"id\":{},\"tube\":",
            Quoted(self.name),
            self.offset,
            self.version,
            self.kind,
            job.id.0,
        )?;
        match self.tube {
            Some(tube) => write!(out, "{}", Quoted(Ascii(tube.as_bytes())))?,
            None => write!(out, "null")?,
        }
        writeln!(
            out,
            ",\"state\":\"{}\",\"pri\":{},\"delay_ns\":{},\"ttr_ns\":{},\"created_at_ns\":{},\
             \"deadline_at_ns\":{},\"reserves\":{},\"timeouts\":{},\"releases\":{},\"buries\":{},\
             \"kicks\":{},\"body_len\":{}}}",
            job.state.word(),
            job.pri.0,
            job.delay.0,
            job.ttr.0,
            job.created_at.0,
            job.deadline_at.0,
            job.counts.reserves,
            job.counts.timeouts,
            job.counts.releases,
            job.counts.buries,
            job.counts.kicks,
            job.body_len,
        )
    }
}

/// The end of a file at `offset`.
pub(super) fn print_end(
    out: &mut impl Write,
    form: Form,
    name: &str,
    offset: u64,
    ending: &Ending,
) -> io::Result<()> {
    if form == Form::Text {
        return writeln!(out, "{name} {offset} end: {ending}");
    }
    write!(
        out,
        "{{\"file\":{},\"offset\":{offset},\"end\":{}",
        Quoted(name),
        Quoted(ending.word())
    )?;
    if let Ending::Damaged { at, fault } = ending {
        write!(out, ",\"at\":{at},\"fault\":{}", Quoted(fault))?;
    }
    writeln!(out, "}}")
}

/// How a file ends, in words.
pub(super) enum Ending {
    Clean,
    Zeros,
    Torn,
    Damaged { at: u64, fault: String },
}

impl Ending {
    fn word(&self) -> &'static str {
        match self {
            Ending::Clean => "clean",
            Ending::Zeros => "zeros",
            Ending::Torn => "torn",
            Ending::Damaged { .. } => "damaged",
        }
    }
}

impl From<Tail> for Ending {
    fn from(tail: Tail) -> Ending {
        match tail {
            Tail::Clean => Ending::Clean,
            Tail::Zeros => Ending::Zeros,
            Tail::Torn => Ending::Torn,
            Tail::Damaged { at, fault } => Ending::Damaged {
                at,
                fault: fault.to_string(),
            },
        }
    }
}

impl From<BadHeader> for Ending {
    fn from(header: BadHeader) -> Ending {
        Ending::Damaged {
            at: 0,
            fault: header.to_string(),
        }
    }
}

impl Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.word())?;
        match self {
            Ending::Damaged { at, fault } => write!(f, " at {at}: {fault}"),
            Ending::Clean | Ending::Zeros | Ending::Torn => Ok(()),
        }
    }
}

/// Bytes of a tube's name, all of which are ASCII.
pub(super) struct Ascii<'a>(pub(super) &'a [u8]);

impl Display for Ascii<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

/// Nanoseconds as seconds, with as many decimals as they need.
pub(super) struct Seconds(pub(super) i64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        let (whole, rest) = (nanos / NANOS_PER_SEC, nanos % NANOS_PER_SEC);
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{whole}")?;
        if rest != 0 {
            let decimals = format!("{rest:09}");
            write!(f, ".{}", decimals.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_the_decimals_they_need() {
        for (nanos, text) in [
            (0, "0"),
            (33_000_000_000, "33"),
            (1_500_000_000, "1.5"),
            (-1, "-0.000000001"),
            (i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(Seconds(nanos).to_string(), text);
        }
    }
}
