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
use crate::wal::files::{File, NUMBER_MAX, Open, units};
use crate::wal::format::{Format, Head};
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

impl<S: Storage, F: Format> Wal<S, F> {
    /// Bytes of a file, unless a record is longer.
    pub(super) fn capacity(&self) -> u64 {
        self.settings.file_len.max(F::HEAD_LEN + F::SHORT_LEN)
    }

    /// Records that there has to be room for: the end of every job and of every pause.
    pub(super) fn ends(&self) -> u64 {
        self.jobs + self.pauses.len()
    }

    fn rest(&self) -> u64 {
        self.files.back().map_or(0, File::rest)
    }

    /// Short records that puts leave to updates.
    fn slack(&self) -> u64 {
        self.capacity() / F::SHORT_LEN / SLACK_SHARE
    }

    fn units(&self, left: &Left) -> u64 {
        units::<F>(left.rest, left.empty, self.capacity())
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
        let (rest, most) = (self.rest(), self.capacity() - F::HEAD_LEN);
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
        self.units_now() >= self.ends() + self.slack()
    }

    /// Makes room for `count` updates if there is some to be had. Returns whether there is.
    pub(super) fn make_room_for_updates(&mut self, count: u64) -> bool {
        while !self.has_room_for_updates(count) {
            let may_try = !self.is_starved || self.retry_at.is_none();
            if self.failure.is_some() || !may_try || self.make_ahead().is_err() {
                return false;
            }
        }
        true
    }

    fn has_room_for_updates(&self, count: u64) -> bool {
        // When old files are cleaned the end of one may be lost, because the next record is too
        // long for it.
        self.units_now() > self.ends() + self.owed() + count + self.slack() / 2
    }

    pub(super) fn make_room_for_put(&mut self, len: u64) -> Result<(), NoRoom> {
        if self.failure.is_some() || self.is_stuck() || len > u64::from(u32::MAX) {
            return Err(NoRoom);
        }
        if !self.has_spare {
            self.make_spare()?;
        }
        let needed = self.ends() + 1 + self.slack();
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
            let left = self.place(F::SHORT_LEN, self.ahead.len() as u64);
            let units = left.map(|left| self.units(&left));
            let needed = self.ends() + self.owed();
            let is_enough = units.is_some_and(|units| units >= needed);
            let is_plenty = units.is_some_and(|units| units >= needed + self.slack());
            if is_plenty || is_enough && self.is_starved {
                return self.go_to_room(F::SHORT_LEN);
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
        if self.rest() < F::SHORT_LEN && self.failure.is_none() {
            // What fails is told.
            let _ = self.advance(self.capacity());
        }
    }

    /// Room for a copy, before another `more` bytes of copies without which nothing is won. It may
    /// take the spare, because what it is a copy of will go; the promised room has to be somewhere
    /// all the same.
    pub(super) fn make_room_for_copy(&mut self, len: u64, more: u64) -> bool {
        if self.failure.is_some() || self.is_stuck() {
            return false;
        }
        let mut may_try;
        loop {
            let left = self.place(len, self.ahead.len() as u64);
            let is_enough = left.is_some_and(|left| {
                self.units(&left) >= self.ends() && (!self.is_starved || self.has_room(&left, more))
            });
            if is_enough {
                return self.go_to_room(len).is_ok();
            }
            may_try = !(self.is_starved && self.retry_at.is_some());
            if !may_try || self.make_ahead().is_err() {
                break;
            }
        }
        let empty = self.ahead.len() as u64 + u64::from(self.has_spare);
        let left = self.place(len, empty);
        if left.is_some_and(|left| self.has_room(&left, more)) {
            return self.go_to_room(len).is_ok();
        }
        // When little is left to be moved, a short file may do.
        may_try
            && self
                .advance(F::HEAD_LEN + self.ends() * F::SHORT_LEN + len + more)
                .is_ok()
    }

    /// Whether there would be room for `more` bytes besides what is promised.
    fn has_room(&self, left: &Left, more: u64) -> bool {
        let empty = left.empty * (self.capacity() - F::HEAD_LEN);
        left.rest + empty >= self.ends() * F::SHORT_LEN + more
    }

    /// Short records that take as much room as the copies for which the spare has been taken.
    fn owed(&self) -> u64 {
        let bytes = if self.has_spare {
            0
        } else {
            self.left_to_move()
        };
        bytes.div_ceil(F::SHORT_LEN)
    }

    /// Makes the file the current one where the record goes.
    fn go_to_room(&mut self, len: u64) -> Result<(), NoRoom> {
        if len <= self.rest() {
            return Ok(());
        }
        self.advance(self.capacity().max(F::HEAD_LEN + len))
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
        self.positions.wants_sync |= self.settings.sync != Sync::Never || F::IS_ORDERED;
        self.add_current(number, capacity, file);
        Ok(())
    }

    /// Takes a new file for the one that is written.
    pub(super) fn add_current(&mut self, number: u64, capacity: u64, file: S::File) {
        let head = Head {
            number,
            highest: self.highest,
            begun_at: self.clocks.wall(self.now),
            before_end: self.files.back().map_or(0, |before| before.end),
            is_synced: !self.positions.has_more(),
        };
        let mut bytes = Vec::new();
        let seed = self.format.write_head(&head, &mut bytes);
        let begun = self.positions.appended;
        if F::IS_ORDERED {
            self.positions.appended += F::HEAD_LEN;
            if head.is_synced {
                self.claimed = self.positions.synced;
            }
        }
        let open = Open::new(file, bytes, seed, begun);
        let mut file = File::current::<F>(number, capacity, open);
        if F::IS_ORDERED {
            file.highest = self.highest;
        }
        self.len += file.len;
        self.files.push_back(file);
        self.positions.is_names_dirty = true;
    }

    /// Makes room, as far as there is any, for the end of every job that was restored.
    pub(super) fn stock_up(&mut self) {
        while self.units_now() < self.ends() && self.make_ahead().is_ok() {}
        if !self.has_spare {
            // What fails is told, and tried again: until then nothing is put.
            let _ = self.make_spare();
        }
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
                self.positions.is_names_dirty = true;
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
            && self.units_now() >= self.ends() + self.slack() + units::<F>(0, 1, self.capacity())
            && let Some(number) = self.ahead.pop_back()
        {
            self.remove_empty(&format!("{AHEAD_PREFIX}{number}"));
        }
        let left = units::<F>(0, self.ahead.len() as u64, self.capacity());
        if self.has_dead_weight() && !self.ahead.is_empty() && left >= self.ends() {
            // What fails is told.
            let _ = self.advance(self.capacity());
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
        self.positions.is_names_dirty = true;
        if let Err(error) = self.storage.remove(name) {
            log::warn!(target: LOG, "cannot remove an empty file file={name} error={error}");
        }
    }
}
