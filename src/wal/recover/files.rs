//! The files of a start: each is read to its end, what was torn off is cut, what is damaged is
//! told, and a new one is begun.
//!
//! In formats that are ordered, what is missing somewhere was either never synced, and then nothing
//! behind it was, or it was damaged later. Records say how far their file had been synced when they
//! were written, so that the one is told from the other: if something behind the place says that
//! the place was synced, it is damage and the start ends. If nothing does, the log ends there.

use std::ffi::OsStr;
use std::io;

use crate::base::ids::JobId;
use crate::wal::error::WalError;
use crate::wal::files::{File, NUMBER_MAX};
use crate::wal::format::{Bad, BadHead, Entries, Format, Head, Next, Rest};
use crate::wal::journal::{LOG, Wal};
use crate::wal::recover::found::{Place, Reader};
use crate::wal::recover::{Progress, Torn};
use crate::wal::segment::{FileName, file_name};
use crate::wal::storage::{Storage, is_full};

/// Records between two reports of progress.
const REPORT_RECORDS: u64 = 4096;

type Opened<S, F> = (
    Result<<F as Format>::File<<S as Storage>::Reader>, BadHead>,
    u64,
);

/// A place where something is missing.
struct Gap {
    /// Number of the file.
    number: u64,
    /// Whether it is known by itself that it had been there.
    is_certain: bool,
    bad: Bad,
}

impl<S: Storage, F: Format> Wal<S, F> {
    /// The numbers of the files that are there, lowest first. What a crash has left of files that
    /// were made ahead is removed.
    pub(super) fn look(&mut self) -> Result<Vec<u64>, WalError> {
        let names = self.storage.names().map_err(|source| WalError::Use {
            step: "list",
            name: "the directory".to_owned(),
            source,
        })?;
        let mut numbers = Vec::new();
        for name in names {
            match FileName::of(&name) {
                FileName::Segment(number) => numbers.push(number),
                FileName::Ahead => self.remove(&name)?,
                FileName::PutAside => {
                    let name = name.display();
                    log::warn!(target: LOG, "put aside as damaged, not read file={name}");
                }
                FileName::Odd => {
                    let name = name.display();
                    log::warn!(target: LOG, "not a file of the binlog, not read file={name}");
                }
                FileName::Other => {}
            }
        }
        numbers.sort_unstable();
        let highest = numbers.last().copied().unwrap_or(0);
        if highest >= NUMBER_MAX {
            return Err(WalError::Numbers { highest });
        }
        Ok(numbers)
    }

    fn remove(&mut self, name: &OsStr) -> Result<(), WalError> {
        let name = name.display().to_string();
        let removed = self.storage.remove(&name);
        removed.map_err(|source| used("remove", name, source))
    }

    /// Reads all files, and leaves those of which something can be used.
    pub(super) fn read_files(
        &mut self,
        numbers: &[u64],
        reader: &mut Reader,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Option<Torn>, WalError> {
        for (nth, &number) in numbers.iter().enumerate() {
            let torn = self.read_file(number, &numbers[nth..], reader, report)?;
            if torn.is_some() {
                return Ok(torn);
            }
            self.keep_file(number)?;
        }
        Ok(None)
    }

    /// Reads one file to its end, or as far as it can be. `numbers` are its own and those of the
    /// files behind it.
    fn read_file(
        &mut self,
        number: u64,
        numbers: &[u64],
        reader: &mut Reader,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Option<Torn>, WalError> {
        let (opened, len) = self.open_to_read(number)?;
        reader.progress.all_bytes += len;
        let mut file = File::sealed::<F>(number, len);
        let mut segment = match opened {
            Ok(segment) => segment,
            Err(bad) => {
                let torn = self.on_bad_head(number, numbers, bad, reader)?;
                if torn.is_none() {
                    file.is_whole = false;
                    self.enter(file);
                }
                return Ok(torn);
            }
        };
        if F::IS_ORDERED
            && let Some(gap) = self.gap_before(number, numbers, segment.head())
            && let Some(torn) = self.on_gap(gap, numbers, reader)?
        {
            return Ok(Some(torn));
        }
        let before = reader.highest;
        reader.highest = segment.head().map_or(JobId(0), |head| head.highest);
        if F::IS_ORDERED && self.files.is_empty() {
            reader.known_from = reader.highest;
        }
        let (end, rest) = self.read_entries(number, &mut segment, reader, report)?;
        file.end = end.max(F::HEAD_LEN);
        file.highest = reader.highest;
        reader.highest = reader.highest.max(before);
        let torn = match rest {
            Rest::Bad(bad) if F::IS_ORDERED => {
                let synced = segment.synced_to();
                let synced = synced.map_err(|source| used("read", file_name(number), source))?;
                let gap = Gap {
                    number,
                    is_certain: synced > file.end,
                    bad,
                };
                let torn = self.on_gap(gap, &numbers[1..], reader)?;
                match torn {
                    Some(_) => self.cut_end(&mut file)?,
                    None => file.is_whole = false,
                }
                torn
            }
            rest => {
                self.end_file(&mut file, rest)?;
                None
            }
        };
        self.enter(file);
        if torn.is_some() {
            self.keep_file(number)?;
        }
        Ok(torn)
    }

    fn open_to_read(&self, number: u64) -> Result<Opened<S, F>, WalError> {
        let name = file_name(number);
        let read = self.storage.read(&name);
        let (source, len) = read.map_err(|source| used("open", name.clone(), source))?;
        let opened = self.format.open(number, source);
        let opened = opened.map_err(|source| used("read", name, source))?;
        Ok((opened, len))
    }

    fn enter(&mut self, file: File<S::File>) {
        self.len += file.len;
        self.used += file.used();
        self.files.push_back(file);
    }

    /// Takes in the records of a file. Returns where they end and what is there.
    fn read_entries(
        &mut self,
        number: u64,
        segment: &mut impl Entries,
        reader: &mut Reader,
        report: &mut dyn FnMut(Progress),
    ) -> Result<(u64, Rest), WalError> {
        let at = self.files.len();
        loop {
            let next = segment.next_entry();
            match next.map_err(|source| used("read", file_name(number), source))? {
                Next::Entry { offset, len, entry } => {
                    let place = Place { at, number, offset };
                    if let Err(odd) = reader.take::<F>(place, len, &entry) {
                        let fault = odd.to_string();
                        self.on_damage(number, Bad { at: offset, fault })?;
                    }
                    if reader.progress.records.is_multiple_of(REPORT_RECORDS) {
                        report(reader.progress);
                    }
                }
                Next::End { offset, rest } => return Ok((offset, rest)),
            }
        }
    }

    fn on_bad_head(
        &mut self,
        number: u64,
        numbers: &[u64],
        bad: BadHead,
        reader: &mut Reader,
    ) -> Result<Option<Torn>, WalError> {
        let name = file_name(number);
        let (bad, is_certain) = match bad {
            BadHead::Foreign(why) => return Err(WalError::Foreign { name, why }),
            BadHead::Torn(bad) => (bad, false),
            BadHead::Damaged(bad) => (bad, true),
        };
        if F::IS_ORDERED {
            let gap = Gap {
                number,
                is_certain,
                bad,
            };
            return self.on_gap(gap, numbers, reader);
        }
        let (at, fault) = (bad.at, bad.fault);
        log::error!(target: LOG, "{name}: damaged at {at}: {fault}; nothing of it is read");
        Ok(None)
    }

    /// What is missing between the files that were read and the one with this number.
    fn gap_before(&self, number: u64, numbers: &[u64], head: Option<Head>) -> Option<Gap> {
        let Some(head) = head else {
            // Nothing was written to it, so nothing may have been to those behind it.
            let bad = Bad {
                at: 0,
                fault: "file is empty and others are behind it".to_owned(),
            };
            let gap = Gap {
                number,
                is_certain: false,
                bad,
            };
            return (numbers.len() > 1).then_some(gap);
        };
        let before = self.files.back().filter(|before| before.is_whole)?;
        let (fault, is_certain) = if before.number + 1 != number {
            let next = file_name(before.number + 1);
            (format!("{next}, which comes next, is missing"), true)
        } else if before.end != head.before_end {
            let end = head.before_end;
            let fault = format!("records end here, and were written up to {end}");
            (fault, before.end > end)
        } else {
            return None;
        };
        Some(Gap {
            number: before.number,
            is_certain,
            bad: Bad {
                at: before.end,
                fault,
            },
        })
    }

    /// Something is missing, and `later` are the files behind it. Returns where the log ends from
    /// now on, or nothing if it goes on behind the gap.
    fn on_gap(
        &mut self,
        gap: Gap,
        later: &[u64],
        reader: &mut Reader,
    ) -> Result<Option<Torn>, WalError> {
        if gap.is_certain || self.is_told_of_sync(later)? {
            self.on_damage(gap.number, gap.bad)?;
            // What is behind it may be about what was in it.
            reader.known_from = JobId(u64::MAX);
            if let Some(file) = self
                .files
                .back_mut()
                .filter(|file| file.number == gap.number)
            {
                file.is_whole = false;
            }
            return Ok(None);
        }
        let name = file_name(gap.number);
        let (at, fault) = (gap.bad.at, gap.bad.fault);
        log::warn!(
            target: LOG,
            "{name}: torn at {at}: {fault}; nothing says that this was synced, the log ends here"
        );
        self.give_up(later)?;
        Ok(Some(Torn { name, at }))
    }

    /// Something is damaged: the end, unless it is to be passed over.
    fn on_damage(&self, number: u64, bad: Bad) -> Result<(), WalError> {
        let name = file_name(number);
        let Bad { at, fault } = bad;
        if !self.format.skips_damage() {
            return Err(WalError::Damaged { name, at, fault });
        }
        log::error!(target: LOG, "{name}: damaged at {at}: {fault}; passed over");
        Ok(())
    }

    /// Whether something in these files says that all before them was synced.
    fn is_told_of_sync(&self, numbers: &[u64]) -> Result<bool, WalError> {
        for &number in numbers {
            let name = || file_name(number);
            let mut segment = match self.open_to_read(number)?.0 {
                Ok(segment) => segment,
                Err(BadHead::Torn(_)) => continue,
                Err(BadHead::Damaged(bad)) => {
                    self.on_damage(number, bad)?;
                    return Ok(true);
                }
                Err(BadHead::Foreign(why)) => return Err(WalError::Foreign { name: name(), why }),
            };
            let failed = |source| used("read", name(), source);
            while let Next::Entry { .. } = segment.next_entry().map_err(failed)? {}
            let is_told = segment.head().is_some_and(|head| head.is_synced);
            if is_told || segment.synced_to().map_err(failed)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives up files of which nothing was ever synced, the last one first, so that what is left
    /// never has a gap. Nobody was told of what is in them, but it is not for us to destroy it.
    fn give_up(&mut self, numbers: &[u64]) -> Result<(), WalError> {
        for &number in numbers.iter().rev() {
            let name = file_name(number);
            let is_blank = matches!(self.open_to_read(number)?.0, Ok(one) if one.head().is_none());
            let gone = if is_blank {
                self.storage.remove(&name)
            } else {
                self.put_aside(&name, "behind the end of the log")
            };
            gone.map_err(|source| used("put aside", name, source))?;
        }
        // Else what is about to be cut could look like a good end, with the next file behind it.
        self.keep(Vec::new(), true, "the directory")
    }

    /// Removes the files at the end that have no record: each start makes one, and nothing may ever
    /// come into it. One before others stays, because the original would complain of its number.
    pub(super) fn drop_unused(&mut self) -> Result<(), WalError> {
        while let Some(last) = self.files.back()
            && last.is_whole
            && last.used() == 0
            && !self.is_last_to_tell(last)
        {
            let name = file_name(last.number);
            self.len -= last.len;
            self.files.pop_back();
            let removed = self.storage.remove(&name);
            removed.map_err(|source| used("remove", name, source))?;
        }
        Ok(())
    }

    /// Whether the header of this file, which has no record, is the only place that tells how far
    /// ids have been given.
    fn is_last_to_tell(&self, file: &File<S::File>) -> bool {
        let mut others = self.files.iter().filter(|one| one.number != file.number);
        file.highest > JobId(0) && !others.any(|one| one.highest >= file.highest)
    }

    /// Syncs a file that was read. The process that wrote it may have been killed before it could,
    /// and from now on sessions are told what is in it, and older files are given up for it.
    fn keep_file(&mut self, number: u64) -> Result<(), WalError> {
        let name = file_name(number);
        match self.storage.open(&name) {
            Ok(file) => self.keep(vec![file], false, &name),
            Err(source) => Err(used("open", name, source)),
        }
    }

    pub(super) fn keep(
        &mut self,
        files: Vec<S::File>,
        names: bool,
        what: &str,
    ) -> Result<(), WalError> {
        self.storage.start_sync(files, names);
        let synced = self.storage.wait_sync();
        synced.map_err(|source| used("sync", what.to_owned(), source))
    }

    /// Deals with what is behind the last record of a file.
    fn end_file(&mut self, file: &mut File<S::File>, rest: Rest) -> Result<(), WalError> {
        let name = file_name(file.number);
        let bytes = file.len.saturating_sub(file.end);
        match rest {
            Rest::Nothing => Ok(()),
            Rest::Zeros => {
                log::debug!(target: LOG, "{name}: unused space is cut off bytes={bytes}");
                self.cut_end(file)
            }
            Rest::Torn => {
                let at = file.end;
                log::warn!(target: LOG, "{name}: torn record at {at} is cut off bytes={bytes}");
                self.cut_end(file)
            }
            Rest::Bad(Bad { at, fault }) => {
                file.is_whole = false;
                let from = file.end;
                log::error!(
                    target: LOG,
                    "{name}: damaged at {at}: {fault}; the {bytes} bytes from {from} on are not \
                     read"
                );
                Ok(())
            }
        }
    }

    fn cut_end(&mut self, file: &mut File<S::File>) -> Result<(), WalError> {
        let name = file_name(file.number);
        let opened = self.storage.open(&name);
        let cut = opened.and_then(|opened| self.storage.cut(&opened, file.end));
        cut.map_err(|source| used("cut", name, source))?;
        file.len = file.end;
        file.capacity = file.end;
        Ok(())
    }

    /// Makes the file that is written next. On a full disk, what nobody needs has to make room;
    /// then a shorter file has to do, as long as it has room for the end of every job; then the
    /// spare has to go.
    pub(super) fn start_file(&mut self, number: u64) -> Result<(), WalError> {
        let name = file_name(number);
        let least = F::HEAD_LEN + F::SHORT_LEN * self.ends().max(1);
        let mut capacity = self.capacity();
        loop {
            match self.storage.create(&name, capacity) {
                Ok(file) => {
                    self.add_current(number, capacity, file);
                    return Ok(());
                }
                Err(source) => {
                    let is_dead = |file: &File<_>| file.live == 0 && file.is_whole;
                    if self.files.front().is_some_and(is_dead) && !self.is_last_to_tell_highest() {
                        self.remove_dead()?;
                    } else if is_full(&source) && capacity > least {
                        capacity = (capacity / 2).max(least);
                    } else if self.has_spare {
                        self.drop_empty_files();
                        capacity = self.capacity();
                    } else {
                        return Err(used("create", name, source));
                    }
                }
            }
        }
    }

    fn remove_dead(&mut self) -> Result<(), WalError> {
        let Some(oldest) = self.files.pop_front() else {
            return Ok(());
        };
        self.len -= oldest.len;
        self.used -= oldest.used();
        let name = file_name(oldest.number);
        let removed = self.storage.remove(&name);
        removed.map_err(|source| used("remove", name, source))
    }
}

fn used(step: &'static str, name: String, source: io::Error) -> WalError {
    WalError::Use { step, name, source }
}
