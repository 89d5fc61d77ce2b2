//! `beanshard wal check`: a summary of a directory and whether anything in it is damaged.

use std::io::{self, Write};
use std::path::Path;

use crate::wal::directory::Directory;
use crate::wal::dump::Ending;
use crate::wal::error::WalError;
use crate::wal::reader::{Account, FileAccount};
use crate::wal::record::SavedState;
use crate::wal::segment::{Tail, file_name};
use crate::wal::v8;

/// Writes the summary of the directory at `path` to `out`: what is worth knowing, a line for each
/// file with what is wrong in it below, the whole, and the verdict. Returns whether nothing was
/// damaged; torn ends, unused space and missing files are named and are no damage.
///
/// # Errors
/// [`WalError`].
pub fn check(path: &Path, out: &mut impl Write) -> Result<bool, WalError> {
    let directory = Directory::look(path)?;
    for note in directory.notes() {
        writeln!(out, "note: {note}")?;
    }
    if v8::is_ours(&directory)? {
        return v8::check::check(&directory, out);
    }
    let account = Account::read(&directory)?;
    for file in &account.files {
        print_file(out, file)?;
    }
    print_whole(out, &account, &directory.ahead)?;
    Ok(account.is_sound())
}

fn print_file(out: &mut impl Write, file: &FileAccount) -> io::Result<()> {
    let name = file_name(file.number);
    let version = match file.version {
        Ok(version) => version.number(),
        Err(bad) => return writeln!(out, "{name}: {} bytes; {}", file.len, Ending::from(bad)),
    };
    if file.is_blank {
        return writeln!(out, "{name}: {} bytes; never written to", file.len);
    }
    let records = file.records;
    write!(
        out,
        "{name}: version {version}, {} bytes; {} full, {} changes, {} deletions",
        file.len, records.full, records.changes, records.deletions,
    )?;
    if records.marks > 0 {
        write!(out, ", {} marks of the highest id", records.marks)?;
    }
    if records.orphans > 0 {
        write!(out, " ({} of jobs of older files)", records.orphans)?;
    }
    write!(
        out,
        "; {} bytes live, {} dead",
        file.live_bytes,
        file.dead_bytes()
    )?;
    let rest = file.rest_bytes();
    match file.tail {
        Tail::Clean => writeln!(out)?,
        Tail::Zeros => writeln!(out, "; {rest} unused")?,
        Tail::Torn => writeln!(out, "; the last {rest} hold a torn record")?,
        Tail::Damaged { .. } => writeln!(out, "; {rest} not read: {}", Ending::from(file.tail))?,
    }
    for one in &file.contradictions {
        writeln!(
            out,
            "{name}: damaged at {}: job {}: {}",
            one.offset, one.id.0, one.kind
        )?;
    }
    Ok(())
}

fn print_whole(out: &mut impl Write, account: &Account, ahead: &[u64]) -> io::Result<()> {
    let sum = |bytes: fn(&FileAccount) -> u64| account.files.iter().map(bytes).sum::<u64>();
    writeln!(
        out,
        "{} files, {} bytes: {} live, {} dead, {} unused",
        account.files.len(),
        sum(|file| file.len),
        sum(|file| file.live_bytes),
        sum(FileAccount::dead_bytes),
        sum(FileAccount::unused_bytes),
    )?;
    if !ahead.is_empty() {
        let bytes: u64 = ahead.iter().sum();
        let count = ahead.len();
        writeln!(out, "{count} empty files made for later, {bytes} bytes")?;
    }
    writeln!(
        out,
        "{} jobs: {} ready, {} reserved, {} delayed, {} buried; {} were deleted; highest id {}",
        account.jobs.len(),
        account.jobs_in(SavedState::Ready),
        account.jobs_in(SavedState::Reserved),
        account.jobs_in(SavedState::Delayed),
        account.jobs_in(SavedState::Buried),
        account.deleted,
        account.highest.0,
    )?;
    let torn = account.files.iter().filter(|file| file.tail == Tail::Torn);
    match (account.is_sound(), torn.count()) {
        (true, 0) => writeln!(out, "sound"),
        (true, 1) => writeln!(out, "sound but for a torn record at the end of a file"),
        (true, files) => writeln!(
            out,
            "sound but for torn records at the ends of {files} files"
        ),
        (false, _) => writeln!(out, "DAMAGED"),
    }
}
