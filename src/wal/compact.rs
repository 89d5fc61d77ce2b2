//! How old files are given up. What is needed of the oldest file is written anew at the end of the
//! log, and when that is synced the file is removed. So the oldest file is the only one that ever
//! goes, and no record that is left can be without one that it needs before it.
//!
//! The directory is kept below [`LIVE_FACTOR`] times what is needed, plus two files. As long as it
//! is, nothing is done; when it is not, what cannot be needed is at least half of it, so that for
//! each byte that clients write about one more is moved at most.

use std::io;

use crate::base::ids::JobId;
use crate::base::name::TubeName;
use crate::engine::job::{JobKey, JobRecord};
use crate::wal::error::WalError;
use crate::wal::files::File;
use crate::wal::format::{Entry, Format};
use crate::wal::journal::{LOG, Wal};
use crate::wal::segment::{DAMAGED_SUFFIX, file_name};
use crate::wal::storage::Storage;

/// How many times as large as what is needed the directory may be.
const LIVE_FACTOR: u64 = 3;

/// Files that may be there besides: the one that is written, and the spare.
const FILES_BESIDES: u64 = 2;

/// Of what is needed, the part that has to be won back by moving it, lest moving go on for ever.
const WORTH_SHARE: u64 = 4;

/// Bytes of jobs that are moved in one turn, so that clients do not notice. When more than half of
/// it was appended in the turn, twice that, so that moving keeps up.
const MOVE_BYTES_MAX: u64 = 256 * 1024;

impl<S: Storage, F: Format> Wal<S, F> {
    /// The oldest file that is needed, and is not the one that is written.
    fn oldest_needed(&self) -> Option<usize> {
        let sealed = self.files.len().saturating_sub(1);
        let at = self
            .files
            .iter()
            .take(sealed)
            .position(|file| file.live > 0);
        at.filter(|&at| at < sealed)
    }

    /// Bytes of the jobs that are still to be moved out of a file that others were moved out of.
    pub(super) fn left_to_move(&self) -> u64 {
        let oldest = self.oldest_needed().map(|at| &self.files[at]);
        oldest
            .filter(|file| file.moved > 0 || file.has_moved_pauses)
            .map_or(0, |file| file.live)
    }

    /// Files at the front that only wait to be removed.
    fn emptied(&self) -> impl Iterator<Item = &File<S::File>> {
        let sealed = self.files.len().saturating_sub(1);
        self.files
            .iter()
            .take(sealed)
            .take_while(|file| file.live == 0)
    }

    /// Whether the directory is larger than it may be, not counting what is about to go.
    pub(super) fn is_too_large(&self) -> bool {
        let emptied: u64 = self.emptied().map(|file| file.len).sum();
        let most = LIVE_FACTOR * self.live + FILES_BESIDES * self.capacity();
        self.directory_len() - emptied > most
    }

    /// Whether the directory is too large for what nobody needs in the file that is written.
    /// It has to be an old one before it can be given up.
    pub(super) fn has_dead_weight(&self) -> bool {
        let dead = self.files.back().map_or(0, File::dead);
        self.is_too_large() && !self.wants_cleaning(false) && dead >= self.capacity() / WORTH_SHARE
    }

    pub(super) fn wants_cleaning(&self, urgent: bool) -> bool {
        if !self.has_spare && self.left_to_move() > 0 {
            // It is what the spare was taken for.
            return true;
        }
        let emptied: u64 = self.emptied().map(File::used).sum();
        let all_dead = self.used - self.live - emptied;
        let dead = all_dead - self.files.back().map_or(0, File::dead);
        if urgent {
            // One short record can be the mark of the highest id, which would only be written anew.
            return all_dead >= 2 * F::SHORT_LEN;
        }
        let is_worth_it = dead > 0 && dead >= self.live / WORTH_SHARE;
        let is_needed = self.is_starved && (!self.has_spare || !self.has_slack());
        is_worth_it && (self.is_starved || self.is_too_large())
            || is_needed && dead >= self.capacity() / WORTH_SHARE
    }

    /// Whether jobs should be moved, and can be.
    pub(super) fn is_cleaning_due(&self, urgent: bool) -> bool {
        !self.is_blocked && self.oldest_needed().is_some() && self.wants_cleaning(urgent)
    }

    pub(super) fn next_to_move(&mut self, urgent: bool) -> Option<JobId> {
        loop {
            let is_enough = !urgent && self.positions.moved_in_turn >= self.move_bytes_max();
            if self.failure.is_some() || is_enough || !self.is_cleaning_due(urgent) {
                return None;
            }
            let at = self.oldest_needed()?;
            if !self.files[at].pauses.is_empty() {
                self.move_pause(at);
                continue;
            }
            let file = &mut self.files[at];
            let id = file.jobs.get(file.moved).copied();
            debug_assert!(id.is_some(), "what is needed of a file is jobs and pauses");
            file.moved += 1;
            self.is_blocked |= id.is_none();
            return id;
        }
    }

    fn move_bytes_max(&self) -> u64 {
        MOVE_BYTES_MAX.max(2 * self.positions.appended_in_turn())
    }

    /// Writes one of the pauses anew that the file at this index tells of, if it is at home there.
    fn move_pause(&mut self, at: usize) {
        let number = self.files[at].number;
        let Some(pause_number) = self.files[at].pauses.pop() else {
            return;
        };
        let pause = self.pauses.get(pause_number);
        let Some(pause) = pause.filter(|pause| u64::from(pause.home.number) == number) else {
            return;
        };
        let (tube, length, until) = (pause.tube.clone(), pause.length, pause.until);
        let len = u64::from(pause.home.len);
        let more = self.files[at].live.saturating_sub(len);
        if !self.make_room_for_copy(len, more) {
            self.files[at].pauses.push(pause_number);
            return self.block();
        }
        let len = self.write_pause(pause_number, tube.as_name(), length, until);
        self.files[at].has_moved_pauses = true;
        self.on_moved(at, len);
    }

    /// Nothing can be moved before a sync has freed something.
    fn block(&mut self) {
        self.is_blocked = true;
        self.positions.wants_sync |= self.copies_end() > self.positions.synced;
    }

    fn on_moved(&mut self, at: usize, len: u64) {
        self.positions.moved_in_turn += len;
        self.counts.records_migrated += 1;
        self.on_copied(at);
    }

    /// Writes a job anew if it is at home in the file that is to go. Returns the bytes it took.
    pub(super) fn copy(
        &mut self,
        key: JobKey,
        job: &JobRecord,
        tube: TubeName<'_>,
        body: &[u8],
    ) -> u64 {
        let Some(at) = self.oldest_needed() else {
            return 0;
        };
        if u64::from(self.home(key).number) != self.files[at].number {
            return 0;
        }
        let len = F::full_len(tube, body.len());
        let more = self.files[at].live.saturating_sub(len);
        if !self.make_room_for_copy(len, more) {
            self.files[at].moved -= 1;
            self.block();
            return 0;
        }
        let len = self.write_full(key, job, tube, body);
        self.on_moved(at, len);
        len
    }

    /// The record just written is needed before the file at this index can go.
    fn on_copied(&mut self, at: usize) {
        if let Some(open) = self.files.back_mut().and_then(|file| file.open.as_mut()) {
            open.has_copies = true;
        }
        let file = &mut self.files[at];
        file.copies_end = Some(self.positions.appended);
        if file.live == 0 {
            file.jobs = Vec::new();
            file.pauses = Vec::new();
            self.positions.wants_sync = true;
        }
    }

    /// The position up to which copies have to be synced.
    fn copies_end(&self) -> u64 {
        let ends = self.files.iter().filter_map(|file| file.copies_end);
        ends.max().unwrap_or(0)
    }

    /// Removes files that nobody needs, oldest first.
    pub(super) fn collect(&mut self) {
        while self.files.len() > 1
            && let Some(oldest) = self.files.front()
            && oldest.live == 0
        {
            if oldest.emptied_at.is_none() && !self.on_emptied() {
                return;
            }
            if !self.is_replaced(&self.files[0]) {
                self.positions.wants_sync = true;
                return;
            }
            if !self.give_up_oldest() {
                return;
            }
        }
    }

    /// The oldest file is seen not to be needed: from here on its place is taken by records that
    /// are there by now, one of which tells how far ids have been given. Returns false if there is
    /// no room for that one.
    fn on_emptied(&mut self) -> bool {
        if self.is_last_to_tell_highest() && !self.mark_highest() {
            return false;
        }
        self.files[0].emptied_at = Some(self.positions.appended);
        true
    }

    /// Whether what takes the place of the file is as safe as that was: copies of jobs are always
    /// synced first, other records if they are synced at all.
    fn is_replaced(&self, file: &File<S::File>) -> bool {
        let synced = self.positions.synced;
        file.copies_end <= Some(synced) && file.emptied_at <= Some(self.positions.safe())
    }

    /// Whether no other file than the oldest tells how far ids have been given.
    pub(super) fn is_last_to_tell_highest(&self) -> bool {
        let mut others = self.files.iter().skip(1).rev();
        !others.any(|file| file.highest >= self.highest)
    }

    fn mark_highest(&mut self) -> bool {
        let has_room = self.make_room_for_copy(F::SHORT_LEN, 0);
        if has_room {
            let highest = self.highest;
            self.write_entry(&Entry::Mark { highest });
            self.on_copied(0);
        }
        has_room
    }

    /// Gives a damaged file a name that no other file has.
    pub(super) fn put_aside(&mut self, name: &str, why: &str) -> io::Result<()> {
        let taken = self.storage.names()?;
        let mut aside = format!("{name}{DAMAGED_SUFFIX}");
        while taken.iter().any(|one| one.as_os_str() == aside.as_str()) {
            aside.push_str(DAMAGED_SUFFIX);
        }
        log::warn!(target: LOG, "put aside, {why} file={aside}");
        self.storage.rename(name, &aside)
    }

    fn give_up_oldest(&mut self) -> bool {
        let Some(oldest) = self.files.front() else {
            return false;
        };
        let (len, used) = (oldest.len, oldest.used());
        let name = file_name(oldest.number);
        let done = if oldest.is_whole {
            self.storage.remove(&name)
        } else {
            self.put_aside(&name, "damaged and not needed any more")
        };
        if let Err(source) = done {
            let step = "remove";
            self.fail(WalError::Use { step, name, source });
            return false;
        }
        self.len -= len;
        self.used -= used;
        self.files.pop_front();
        self.positions.is_names_dirty = true;
        self.is_blocked = false;
        self.retry_at = None;
        true
    }
}
