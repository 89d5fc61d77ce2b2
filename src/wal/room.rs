//! How room is kept. A put is taken only if there is room for its record and, in short records of
//! their own, for the deletion of every job, this one included: so a deletion never fails for lack
//! of it. Updates may use what is left over, of which puts leave some. Files are made ahead and set
//! aside on the disk; one more, the spare, is kept for the copies by which old files are given up,
//! so that a full disk can be cleaned.
//!
//! Empty files have names that the original ignores, and get their number when they are used.

use crate::base::time::Nanos;
use crate::engine::host::NoRoom;
use crate::wal::error::WalError;
use crate::wal::files::{File, HEAD_LEN, NUMBER_MAX, SHORT_LEN, units};
use crate::wal::journal::{LOG, RETRY_NANOS, Sync, TELL_NANOS, Wal};
use crate::wal::segment::{AHEAD_PREFIX, SPARE, file_name};
use crate::wal::storage::Storage;

/// Which part of a file's room puts leave to updates.
const SLACK_SHARE: u64 = 16;

/// What would be left after a record: the rest of the file that has it, and empty files.
struct Left {
    rest: u64,
    empty: u64,
}

impl<S: Storage> Wal<S> {
    /// Bytes of a file, unless a record is longer.
    pub(super) fn capacity(&self) -> u64 {
        self.settings.file_len.max(HEAD_LEN + SHORT_LEN)
    }

    fn rest(&self) -> u64 {
        self.files.back().map_or(0, File::rest)
    }

    /// Short records that puts leave to updates.
    fn slack(&self) -> u64 {
        self.capacity() / SHORT_LEN / SLACK_SHARE
    }

    fn units(&self, left: &Left) -> u64 {
        units(left.rest, left.empty, self.capacity())
    }

    /// Short records that there is room for, without the spare.
    fn units_now(&self) -> u64 {
        self.units(&Left {
            rest: self.rest(),
            empty: self.ahead.len() as u64,
        })
    }

    /// Where a record of `len` bytes would go if there were `empty` files; None if there is no
    /// place.
    fn place(&self, len: u64, empty: u64) -> Option<Left> {
        let (rest, most) = (self.rest(), self.capacity() - HEAD_LEN);
        if len <= rest {
            let rest = rest - len;
            return Some(Left { rest, empty });
        }
        if len > most {
            // It gets a file of its own.
            return Some(Left { rest: 0, empty });
        }
        let empty = empty.checked_sub(1)?;
        let rest = most - len;
        Some(Left { rest, empty })
    }

    /// Whether puts leave updates what they should.
    pub(super) fn has_slack(&self) -> bool {
        self.units_now() >= self.jobs + self.slack()
    }

    /// Whether `count` updates have room as things are.
    pub(super) fn has_room_for_updates(&self, count: u64) -> bool {
        // The end of a file may be lost.
        self.units_now() > self.jobs + count
    }

    pub(super) fn make_room_for_put(&mut self, len: u64) -> Result<(), NoRoom> {
        if self.failure.is_some() || self.is_stuck() || len > u64::from(u32::MAX) {
            return Err(NoRoom);
        }
        if !self.has_spare {
            self.make_spare()?;
        }
        let needed = self.jobs + 1 + self.slack();
        loop {
            let left = self.place(len, self.ahead.len() as u64);
            if left.is_some_and(|left| self.units(&left) >= needed) {
                return self.go_to_room(len);
            }
            self.make_ahead()?;
        }
    }

    pub(super) fn make_room_for_update(&mut self) -> Result<(), NoRoom> {
        if self.failure.is_some() {
            return Err(NoRoom);
        }
        loop {
            let left = self.place(SHORT_LEN, self.ahead.len() as u64);
            let units = left.map(|left| self.units(&left));
            let is_enough = units.is_some_and(|units| units >= self.jobs);
            let is_plenty = units.is_some_and(|units| units >= self.jobs + self.slack());
            if is_plenty || is_enough && self.is_starved {
                return self.go_to_room(SHORT_LEN);
            }
            if self.is_starved && self.retry_at.is_some() {
                return Err(NoRoom);
            }
            if self.make_ahead().is_err() && !is_enough {
                return Err(NoRoom);
            }
        }
    }

    /// What was promised when the job was put. If it is not there in spite of that, because
    /// somebody else has taken the disk, the record goes beyond what was set aside, and waits.
    pub(super) fn make_room_for_deletion(&mut self) {
        if self.rest() < SHORT_LEN && self.failure.is_none() {
            // What fails is told.
            let _ = self.advance(self.capacity());
        }
    }

    /// Room for a copy. It may take the spare, because what it is a copy of will go; the promised
    /// room has to be somewhere all the same.
    pub(super) fn make_room_for_copy(&mut self, len: u64) -> bool {
        if self.failure.is_some() || self.is_stuck() {
            return false;
        }
        loop {
            let ahead = self.ahead.len() as u64;
            let (left, needed) = (self.place(len, ahead), self.jobs);
            if left.is_some_and(|left| self.units(&left) >= needed) {
                return self.go_to_room(len).is_ok();
            }
            if (self.is_starved && self.retry_at.is_some()) || self.make_ahead().is_err() {
                break;
            }
        }
        let empty = self.ahead.len() as u64 + u64::from(self.has_spare);
        let left = self.place(len, empty);
        left.is_some_and(|left| self.units(&left) >= self.jobs) && self.go_to_room(len).is_ok()
    }

    /// Makes the file the current one where the record goes.
    fn go_to_room(&mut self, len: u64) -> Result<(), NoRoom> {
        if len <= self.rest() {
            return Ok(());
        }
        self.advance(self.capacity().max(HEAD_LEN + len))
    }

    /// Goes on to the next file, which has to have `capacity` bytes.
    fn advance(&mut self, capacity: u64) -> Result<(), NoRoom> {
        let number = self.files.back().map_or(1, |file| file.number + 1);
        if number > NUMBER_MAX {
            self.fail(WalError::Numbers {
                highest: NUMBER_MAX,
            });
            return Err(NoRoom);
        }
        let name = file_name(number);
        let usual = capacity == self.capacity();
        let taken = match self.ahead.front() {
            Some(&ahead) if usual => Some(format!("{AHEAD_PREFIX}{ahead}")),
            None if usual && self.has_spare => Some(SPARE.to_owned()),
            _ => None,
        };
        let made = match &taken {
            None => self.storage.create(&name, capacity),
            Some(empty) => self
                .storage
                .rename(empty, &name)
                .and_then(|()| self.storage.open(&name)),
        };
        let file = match made {
            Ok(file) => file,
            Err(error) if taken.is_none() => return Err(self.starve(&name, &error)),
            Err(source) => {
                let step = "take into use";
                self.fail(WalError::Use { step, name, source });
                return Err(NoRoom);
            }
        };
        match taken {
            None => {}
            Some(_) if self.ahead.pop_front().is_some() => {}
            Some(_) => self.has_spare = false,
        }
        if let Some(full) = self.files.back_mut() {
            full.jobs.shrink_to_fit();
        }
        // The file before is open until it is synced, and that should not be long.
        self.wants_sync |= self.settings.sync != Sync::Never;
        self.add_current(File::new(number, capacity, file));
        Ok(())
    }

    /// Takes a new file for the one that is written.
    pub(super) fn add_current(&mut self, file: File<S::File>) {
        self.len += file.len;
        self.files.push_back(file);
        self.is_names_dirty = true;
    }

    /// Makes room, as far as there is any, for the end of every job that was restored.
    pub(super) fn stock_up(&mut self) {
        while self.units_now() < self.jobs && self.make_ahead().is_ok() {}
        // What fails is told, and tried again: until then nothing is put.
        let _ = self.make_spare();
    }

    fn make_ahead(&mut self) -> Result<(), NoRoom> {
        let number = self.last_ahead + 1;
        self.make_empty(&format!("{AHEAD_PREFIX}{number}"))?;
        self.last_ahead = number;
        self.ahead.push_back(number);
        Ok(())
    }

    pub(super) fn make_spare(&mut self) -> Result<(), NoRoom> {
        self.make_empty(SPARE)?;
        self.has_spare = true;
        Ok(())
    }

    fn make_empty(&mut self, name: &str) -> Result<(), NoRoom> {
        match self.storage.create(name, self.capacity()) {
            Ok(file) => {
                drop(file);
                self.storage.tend();
                if std::mem::take(&mut self.has_told_starved) {
                    log::info!(target: LOG, "there is room again");
                }
                self.is_starved = false;
                self.is_names_dirty = true;
                Ok(())
            }
            Err(error) => Err(self.starve(name, &error)),
        }
    }

    /// Takes note that the disk has no room for a file.
    fn starve(&mut self, name: &str, error: &std::io::Error) -> NoRoom {
        let was_told = self
            .told_starved_at
            .is_some_and(|at| self.now.since(at) < TELL_NANOS);
        if !self.has_told_starved && !was_told {
            log::warn!(
                target: LOG,
                "cannot make a file, new jobs are refused file={name} error={error}"
            );
            self.has_told_starved = true;
            self.told_starved_at = Some(self.now);
        }
        self.is_starved = true;
        self.retry_at = Some(Nanos(self.now.0 + RETRY_NANOS));
        NoRoom
    }

    /// Sees to it that there is a spare and are no more empty files than needed.
    pub(super) fn restock(&mut self) {
        if self.is_closing {
            return;
        }
        if !self.has_spare && self.retry_at.is_none() && !self.wants_cleaning(false) {
            // What fails is told, and tried again.
            let _ = self.make_spare();
        }
        while self.is_too_large()
            && self.units_now() >= self.jobs + self.slack() + units(0, 1, self.capacity())
            && let Some(number) = self.ahead.pop_back()
        {
            self.remove_empty(&format!("{AHEAD_PREFIX}{number}"));
        }
    }

    /// Removes what would be of no use to a later start.
    pub(super) fn drop_empty_files(&mut self) {
        while let Some(number) = self.ahead.pop_back() {
            self.remove_empty(&format!("{AHEAD_PREFIX}{number}"));
        }
        if std::mem::take(&mut self.has_spare) {
            self.remove_empty(SPARE);
        }
    }

    fn remove_empty(&mut self, name: &str) {
        self.is_names_dirty = true;
        if let Err(error) = self.storage.remove(name) {
            log::warn!(target: LOG, "cannot remove an empty file file={name} error={error}");
        }
    }
}
