//! A summary of an owner's directory, and whether anything in it is damaged: what a start would say
//! of it.

use std::io::Write;

use crate::wal::directory::Directory;
use crate::wal::dump::Ending;
use crate::wal::error::WalError;
use crate::wal::format::{Entries, Entry, Next, Rest};
use crate::wal::record::SavedState;
use crate::wal::recover::found::{Place, Reader};
use crate::wal::segment::file_name;
use crate::wal::v8::{
    HEAD_LEN, Owned, V8, VERSION, ending, head_ending, is_told_of_sync, open_file,
};

/// What a file holds.
struct Summary {
    number: u64,
    len: u64,
    owned: Option<Owned>,
    counts: Counts,
    /// Where its records end.
    end: u64,
    ending: Ending,
    /// What whole records say that cannot be true, with the place of each.
    odd: Vec<(u64, String)>,
}

#[derive(Default)]
struct Counts {
    full: u64,
    changes: u64,
    ends: u64,
    marks: u64,
    pauses: u64,
    resumes: u64,
}

/// Writes the summary. Returns whether nothing was damaged.
///
/// # Errors
/// [`WalError`].
pub(in crate::wal) fn check(directory: &Directory, out: &mut impl Write) -> Result<bool, WalError> {
    let mut reader = Reader::new();
    let mut files: Vec<Summary> = Vec::new();
    for (nth, &number) in directory.numbers.iter().enumerate() {
        let later = &directory.numbers[nth + 1..];
        let at = files.len();
        if let Some(last) = files.last_mut()
            && is_cut_before(directory, &directory.numbers[nth..], last)?
        {
            last.ending = Ending::Torn;
            break;
        }
        if let Some(mut file) = read_file(directory, number, later, at, &mut reader)? {
            if let Some(before) = files.last() {
                file.follow(before);
            }
            let is_torn = matches!(file.ending, Ending::Torn);
            files.push(file);
            if is_torn {
                break;
            }
        }
    }
    let mut live = vec![0; files.len()];
    for (_, job) in reader.found.iter() {
        live[job.home] += job.len;
    }
    for pause in reader.pauses.values() {
        live[pause.home] += pause.len;
    }
    for (file, live) in files.iter().zip(&live) {
        file.print(*live, out)?;
    }
    print_whole(out, &files, live.iter().sum(), &reader, &directory.ahead)
}

/// Whether records are missing at the end of the last file that was read, which were never synced,
/// nor was anything in these files behind it.
fn is_cut_before(directory: &Directory, numbers: &[u64], last: &Summary) -> Result<bool, WalError> {
    let next = match numbers.first() {
        Some(&number) => open_file(directory, number)?,
        None => None,
    };
    let is_missing = match next {
        Some(Ok(next)) => next.head().is_some_and(|head| last.end < head.before_end),
        Some(Err(_)) | None => false,
    };
    Ok(is_missing && last.is_sound() && !is_told_of_sync(directory, numbers)?)
}

fn read_file(
    directory: &Directory,
    number: u64,
    later: &[u64],
    at: usize,
    reader: &mut Reader,
) -> Result<Option<Summary>, WalError> {
    let failed = |source| directory.failed("read", number, source);
    let Some(file) = directory.open(number)? else {
        return Ok(None);
    };
    let mut summary = Summary {
        number,
        len: file.metadata().map_err(failed)?.len(),
        owned: None,
        counts: Counts::default(),
        end: 0,
        ending: Ending::Clean,
        odd: Vec::new(),
    };
    let mut segment = match open_file(directory, number)? {
        None => return Ok(None),
        Some(Ok(segment)) => segment,
        Some(Err(bad)) => {
            summary.ending = head_ending(directory, later, bad)?;
            return Ok(Some(summary));
        }
    };
    summary.owned = segment.owner();
    if let Some(head) = segment.head() {
        reader.highest = reader.highest.max(head.highest);
        if at == 0 {
            reader.known_from = head.highest;
        }
    }
    let rest = loop {
        match segment.next_entry().map_err(failed)? {
            Next::Entry { offset, len, entry } => {
                summary.counts.count(&entry);
                let place = Place { at, number, offset };
                if let Err(odd) = reader.take::<V8>(place, len, &entry) {
                    summary.odd.push((offset, odd.to_string()));
                }
            }
            Next::End { offset, rest } => {
                summary.end = offset;
                break rest;
            }
        }
    };
    let (end, is_blank) = (summary.end, summary.owned.is_none());
    summary.ending = match rest {
        Rest::Zeros if is_blank => Ending::Zeros,
        rest => ending(directory, number, later, &mut segment, end, rest)?,
    };
    Ok(Some(summary))
}

impl Counts {
    fn count(&mut self, entry: &Entry<'_>) {
        let count = match entry {
            Entry::Full { .. } => &mut self.full,
            Entry::Change { .. } => &mut self.changes,
            Entry::End { .. } => &mut self.ends,
            Entry::Mark { .. } => &mut self.marks,
            Entry::Pause { .. } => &mut self.pauses,
            Entry::Resume { .. } => &mut self.resumes,
        };
        *count += 1;
    }
}

impl Summary {
    /// Looks whether it is what was written next.
    fn follow(&mut self, before: &Summary) {
        let (Some(owned), Some(earlier)) = (self.owned, before.owned) else {
            return;
        };
        let mut odd = |text: String| self.odd.push((0, text));
        if (owned.owner, owned.fingerprint) != (earlier.owner, earlier.fingerprint) {
            odd("file is another owner's than the one before".to_owned());
        }
        if owned.head.number != self.number {
            odd(format!(
                "header is that of file number {}",
                owned.head.number
            ));
        }
        let end = owned.head.before_end;
        if before.is_sound() && before.number + 1 == self.number && before.end != end {
            let found = before.end;
            odd(format!(
                "the file before was written up to {end} and ends at {found}"
            ));
        }
    }

    fn is_sound(&self) -> bool {
        !matches!(self.ending, Ending::Damaged { .. }) && self.odd.is_empty()
    }

    fn print(&self, live: u64, out: &mut impl Write) -> Result<(), WalError> {
        let (name, len, end) = (file_name(self.number), self.len, &self.ending);
        let Some(owned) = self.owned else {
            match self.ending {
                Ending::Zeros => writeln!(out, "{name}: {len} bytes; never written to")?,
                Ending::Clean | Ending::Torn | Ending::Damaged { .. } => {
                    writeln!(out, "{name}: {len} bytes; {end}")?;
                }
            }
            return Ok(());
        };
        let counts = &self.counts;
        write!(
            out,
            "{name}: version {VERSION}, owner {} of topology {:016x}, {len} bytes; {} full, \
             {} changes, {} deletions",
            owned.owner, owned.fingerprint.0, counts.full, counts.changes, counts.ends,
        )?;
        for (count, what) in [
            (counts.marks, "marks of the highest id"),
            (counts.pauses, "pauses"),
            (counts.resumes, "ends of pauses"),
        ] {
            if count > 0 {
                write!(out, ", {count} {what}")?;
            }
        }
        let dead = self.end - HEAD_LEN as u64 - live;
        write!(out, "; {live} bytes live, {dead} dead")?;
        let rest = self.len.saturating_sub(self.end);
        match end {
            Ending::Clean => writeln!(out)?,
            Ending::Zeros => writeln!(out, "; {rest} unused")?,
            Ending::Torn => writeln!(out, "; the last {rest} hold a torn record")?,
            Ending::Damaged { .. } => writeln!(out, "; {rest} not read: {end}")?,
        }
        for (at, text) in &self.odd {
            writeln!(out, "{name}: damaged at {at}: {text}")?;
        }
        Ok(())
    }
}

fn print_whole(
    out: &mut impl Write,
    files: &[Summary],
    live: u64,
    reader: &Reader,
    ahead: &[u64],
) -> Result<bool, WalError> {
    let bytes: u64 = files.iter().map(|file| file.len).sum();
    writeln!(out, "{} files, {bytes} bytes: {live} live", files.len())?;
    if !ahead.is_empty() {
        let (count, bytes) = (ahead.len(), ahead.iter().sum::<u64>());
        writeln!(out, "{count} empty files made for later, {bytes} bytes")?;
    }
    let in_state = |state| {
        let jobs = reader.found.iter();
        jobs.filter(|(_, job)| job.image.state == state).count()
    };
    writeln!(
        out,
        "{} jobs: {} ready, {} reserved, {} delayed, {} buried; {} pauses; highest id {}",
        reader.found.len(),
        in_state(SavedState::Ready),
        in_state(SavedState::Reserved),
        in_state(SavedState::Delayed),
        in_state(SavedState::Buried),
        reader.pauses.len(),
        reader.highest.0,
    )?;
    let is_sound = files.iter().all(Summary::is_sound);
    let is_torn = files.iter().any(|file| matches!(file.ending, Ending::Torn));
    match (is_sound, is_torn) {
        (true, false) => writeln!(out, "sound")?,
        (true, true) => writeln!(out, "sound but for a torn record, with which the log ends")?,
        (false, _) => writeln!(out, "DAMAGED")?,
    }
    Ok(is_sound)
}
