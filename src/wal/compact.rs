//! How old files are given up. What is needed of the oldest file is written anew at the end of the
//! log, and when that is synced the file is removed. So the oldest file is the only one that ever
//! goes, and no record that is left can be without one that it needs before it.
//!
//! The directory is kept below [`LIVE_FACTOR`] times what is needed, plus two files. As long as it
//! is, nothing is done; when it is not, what cannot be needed is at least half of it, so that for
//! each byte that clients write about one more is moved at most.

use std::io;

use crate::base::body::Body;
use crate::base::ids::JobId;
use crate::base::name::TubeName;
use crate::engine::job::{JobKey, JobRecord};
use crate::wal::convert::id_mark;
use crate::wal::error::WalError;
use crate::wal::files::{File, SHORT_LEN};
use crate::wal::journal::{LOG, Wal, full_len};
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

impl<S: Storage> Wal<S> {
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

    pub(super) fn wants_cleaning(&self, urgent: bool) -> bool {
        let emptied: u64 = self.emptied().map(File::used).sum();
        let all_dead = self.used - self.live - emptied;
        let dead = all_dead - self.files.back().map_or(0, File::dead);
        if urgent {
            // One short record can be the mark of the highest id, which would only be written anew.
            return all_dead >= 2 * SHORT_LEN;
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
        let most = MOVE_BYTES_MAX.max(2 * self.appended_in_turn());
        let is_enough = !urgent && self.moved_in_turn >= most;
        if self.failure.is_some() || is_enough || !self.is_cleaning_due(urgent) {
            return None;
        }
        let at = self.oldest_needed()?;
        let file = &mut self.files[at];
        let id = file.jobs.get(file.moved).copied();
        debug_assert!(id.is_some(), "what is needed of a file is jobs");
        file.moved += 1;
        self.is_blocked |= id.is_none();
        id
    }

    /// Writes a job anew if it is at home in the file that is to go. Returns the bytes it took.
    pub(super) fn copy(
        &mut self,
        key: JobKey,
        job: &JobRecord,
        tube: TubeName<'_>,
        body: &Body,
    ) -> u64 {
        let Some(at) = self.oldest_needed() else {
            return 0;
        };
        if u64::from(self.home(key).number) != self.files[at].number {
            return 0;
        }
        if !self.make_room_for_copy(full_len(tube, body)) {
            self.files[at].moved -= 1;
            self.is_blocked = true;
            self.wants_sync |= self.copies_end() > self.synced;
            return 0;
        }
        let len = self.write_full(key, job, tube, body);
        self.moved_in_turn += len;
        self.counts.records_migrated += 1;
        self.on_copied(at);
        len
    }

    /// The record just written is needed before the file at this index can go.
    fn on_copied(&mut self, at: usize) {
        if let Some(open) = self.files.back_mut().and_then(|file| file.open.as_mut()) {
            open.has_copies = true;
        }
        let file = &mut self.files[at];
        file.copies_end = Some(self.position);
        if file.live == 0 {
            file.jobs = Vec::new();
            self.wants_sync = true;
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
            if oldest.copies_end.is_some_and(|end| end > self.synced) {
                self.wants_sync = true;
                return;
            }
            if self.is_last_to_tell_highest() {
                return self.mark_highest();
            }
            if !self.give_up_oldest() {
                return;
            }
        }
    }

    /// Whether no other file than the oldest tells how far ids have been given.
    fn is_last_to_tell_highest(&self) -> bool {
        let mut others = self.files.iter().skip(1).rev();
        !others.any(|file| file.highest >= self.highest)
    }

    fn mark_highest(&mut self) {
        if self.make_room_for_copy(SHORT_LEN) {
            let next = JobId(self.highest.0 + 1);
            self.write_record(&id_mark(next), None);
            self.on_copied(0);
            self.wants_sync = true;
        }
    }

    /// Gives a damaged file a name that no other file has.
    fn put_aside(&mut self, name: &str) -> io::Result<()> {
        let taken = self.storage.names()?;
        let mut aside = format!("{name}{DAMAGED_SUFFIX}");
        while taken.iter().any(|one| one.as_os_str() == aside.as_str()) {
            aside.push_str(DAMAGED_SUFFIX);
        }
        log::warn!(target: LOG, "put aside, damaged and not needed any more file={aside}");
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
            self.put_aside(&name)
        };
        if let Err(source) = done {
            let step = "remove";
            self.fail(WalError::Use { step, name, source });
            return false;
        }
        self.len -= len;
        self.used -= used;
        self.files.pop_front();
        self.is_names_dirty = true;
        self.is_blocked = false;
        self.retry_at = None;
        true
    }
}
