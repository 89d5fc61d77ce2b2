//! The binlog as a journal: records of a turn are gathered and go out in one write, syncs run in
//! the background, and what has been confirmed is told by tickets. How room is kept for what must
//! not fail is in `room`, how old files are given up in `compact`.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use crate::base::ids::JobId;
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::time::{NANOS_PER_SEC, Nanos, Secs};
use crate::engine::host::{Journal, NoRoom, Record, Ticket};
use crate::engine::job::{JobKey, JobRecord};
use crate::engine::stats::JournalStats;
use crate::wal::convert::Clocks;
use crate::wal::error::WalError;
use crate::wal::files::{File, Home};
use crate::wal::format::{Entry, Format, PauseImage, Spot};
use crate::wal::pauses::{Pause, Pauses};
use crate::wal::positions::Positions;
use crate::wal::record::WallNanos;
use crate::wal::segment::file_name;
use crate::wal::shard_journal::ShardJournal;
use crate::wal::storage::{Storage, is_full};
use crate::wal::v7::V7;

/// How a binlog is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a file, unless a record is longer.
    pub file_len: u64,
    /// When it is synced.
    pub sync: Sync,
}

/// When a binlog is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// At once, and answers wait for it.
    Always,
    /// So many nanoseconds after the last time, at the latest.
    Every(u64),
    /// When the system likes. Only copies of jobs are synced before what they are copies of goes.
    Never,
}

/// See the module's description.
pub struct Wal<S: Storage, F: Format = V7> {
    pub(super) format: F,
    pub(super) storage: S,
    pub(super) settings: Settings,
    pub(super) clocks: Clocks,
    pub(super) now: Nanos,
    /// Oldest first. Never empty when the journal is in use; the last one is being written.
    pub(super) files: VecDeque<File<S::File>>,
    /// By key of the job.
    homes: Vec<Home>,
    pub(super) jobs: u64,
    pub(super) pauses: Pauses,
    /// Bytes of the full records of all jobs and pauses.
    pub(super) live: u64,
    /// Bytes of all records of all files.
    pub(super) used: u64,
    /// Bytes that all files take, but for those that are empty.
    pub(super) len: u64,
    /// Numbers of files that are made and empty; the first is used first.
    pub(super) ahead: VecDeque<u64>,
    pub(super) last_ahead: u64,
    /// There is the empty file that is kept for when nothing else is left.
    pub(super) has_spare: bool,
    /// The disk had no room for a file when this was last tried.
    pub(super) is_starved: bool,
    /// The log says so, and when that was last said: on a full disk room comes and goes all the
    /// time.
    pub(super) has_told_starved: bool,
    pub(super) told_starved_at: Option<Nanos>,
    /// When to try something again that found the disk full.
    pub(super) retry_at: Option<Nanos>,
    /// Moving jobs has to wait for a sync.
    pub(super) is_blocked: bool,
    /// The highest id that was given, as far as is known.
    pub(super) highest: JobId,
    pub(super) positions: Positions,
    /// The position up to which some record says that all was synced.
    pub(super) claimed: u64,
    pub(super) counts: JournalStats,
    pub(super) failure: Option<WalError>,
    /// Records could not be written for lack of room.
    is_stuck: bool,
    /// No more empty files are needed.
    pub(super) is_closing: bool,
}

/// Nanoseconds between two attempts at something that found the disk full.
pub(super) const RETRY_NANOS: u64 = NANOS_PER_SEC / 5;

/// Nanoseconds between two lines that say that the disk is full.
pub(super) const TELL_NANOS: u64 = 10 * NANOS_PER_SEC;

/// The target of log lines.
pub(super) const LOG: &str = "binlog";

impl<S: Storage, F: Format> Wal<S, F> {
    /// A journal that has no files yet.
    pub(super) fn new(
        format: F,
        storage: S,
        settings: Settings,
        now: Nanos,
        wall: WallNanos,
    ) -> Wal<S, F> {
        Wal {
            format,
            storage,
            settings,
            clocks: Clocks::new(now, wall),
            now,
            files: VecDeque::new(),
            homes: Vec::new(),
            jobs: 0,
            pauses: Pauses::default(),
            live: 0,
            used: 0,
            len: 0,
            ahead: VecDeque::new(),
            last_ahead: 0,
            has_spare: false,
            is_starved: false,
            has_told_starved: false,
            told_starved_at: None,
            retry_at: None,
            is_blocked: false,
            highest: JobId(0),
            positions: Positions::new(settings.sync, F::IS_ORDERED, now),
            claimed: 0,
            counts: JournalStats::default(),
            failure: None,
            is_stuck: false,
            is_closing: false,
        }
    }

    /// The storage.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Gives up the journal, as a crash would.
    pub fn into_storage(self) -> S {
        self.storage
    }

    /// Bytes that the directory's files take.
    #[must_use]
    pub fn directory_len(&self) -> u64 {
        let empty = self.ahead.len() as u64 + u64::from(self.has_spare);
        self.len + empty * self.capacity()
    }

    /// Writes down that ids up to this one have been given, if nothing else has told it yet.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn mark_ids(&mut self, highest: JobId) -> Result<(), NoRoom> {
        if highest > self.highest {
            self.make_room_for_put(F::SHORT_LEN)?;
            self.highest = highest;
            self.write_entry(&Entry::Mark { highest });
        }
        Ok(())
    }

    /// Writes a record, for which there is room, at the end of the current file. Returns its
    /// length in bytes.
    pub(super) fn write_entry(&mut self, entry: &Entry<'_>) -> u64 {
        let file = self.files.back_mut().expect("a journal in use has a file");
        let open = file.open.as_mut().expect("the last file is open");
        let before = open.pending.len();
        let spot = Spot {
            seed: open.seed,
            offset: file.end,
            synced: self.positions.synced.saturating_sub(open.begun),
        };
        self.format.write(spot, entry, &mut open.pending);
        let len = (open.pending.len() - before) as u64;
        self.claimed = self.positions.synced;
        file.end += len;
        file.highest = file.highest.max(F::highest_of(entry));
        // Only where nothing was left is a record put beyond what was set aside.
        let beyond = file.end.saturating_sub(file.capacity);
        file.capacity += beyond;
        file.len += beyond;
        self.len += beyond;
        self.used += len;
        self.positions.appended += len;
        self.counts.records_written += 1;
        len
    }

    /// Writes the full record of a job; from now on this is its home. Returns its length.
    pub(super) fn write_full(
        &mut self,
        key: JobKey,
        job: &JobRecord,
        tube: TubeName<'_>,
        body: &[u8],
    ) -> u64 {
        let image = self.clocks.image::<F>(job, body_len(body));
        let len = self.write_entry(&Entry::Full {
            job: image,
            tube,
            body,
        });
        self.leave_home(key);
        self.settle_in(key, job.id, self.files.len() - 1, len);
        len
    }

    /// Writes the record of a pause; from now on this is its home. Returns its length.
    pub(super) fn write_pause(
        &mut self,
        number: u64,
        tube: TubeName<'_>,
        length: Secs,
        until: Nanos,
    ) -> u64 {
        let pause = PauseImage {
            number,
            length,
            until: self.clocks.wall(until),
        };
        let len = self.write_entry(&Entry::Pause { tube, pause });
        let at = self.files.len() - 1;
        let home = Home {
            number: self.files[at].number as u32,
            len: len as u32,
        };
        let tube = TubeNameBuf::from(tube);
        let pause = Pause {
            tube,
            length,
            until,
            home,
        };
        self.settle_pause(number, pause, at);
        len
    }

    /// The record of the pause with this number is in the file at this index.
    pub(super) fn settle_pause(&mut self, number: u64, pause: Pause, at: usize) {
        let file = &mut self.files[at];
        file.live += u64::from(pause.home.len);
        file.pauses.push(number);
        self.live += u64::from(pause.home.len);
        if let Some(before) = self.pauses.insert(number, pause) {
            self.leave(before.home);
        }
    }

    /// The tube's pause is over. Before its time somebody has to be told.
    fn end_pause(&mut self, tube: TubeName<'_>) {
        let Some((number, pause)) = self.pauses.remove(tube) else {
            return;
        };
        self.leave(pause.home);
        if self.now < pause.until {
            self.make_room_for_deletion();
            self.write_entry(&Entry::Resume { number });
        }
    }

    /// The job's full record is in the file at this index.
    pub(super) fn settle_in(&mut self, key: JobKey, id: JobId, at: usize, len: u64) {
        let key = key.0 as usize;
        if self.homes.len() <= key {
            self.homes.resize(key + 1, Home::default());
        }
        let file = &mut self.files[at];
        file.live += len;
        file.jobs.push(id);
        self.homes[key] = Home {
            number: file.number as u32,
            len: len as u32,
        };
        self.live += len;
        self.jobs += 1;
    }

    /// The job's full record is not needed any more, if it had one.
    fn leave_home(&mut self, key: JobKey) {
        let home = self.homes.get_mut(key.0 as usize).map(std::mem::take);
        if self.leave(home.unwrap_or_default()) {
            self.jobs -= 1;
        }
    }

    /// The record there is not needed any more. Says whether there was one.
    fn leave(&mut self, home: Home) -> bool {
        let at = self.index_of(home.number.into());
        let Some(at) = at.filter(|_| home.len > 0) else {
            return false;
        };
        self.files[at].live -= u64::from(home.len);
        self.live -= u64::from(home.len);
        true
    }

    pub(super) fn home(&self, key: JobKey) -> Home {
        self.homes.get(key.0 as usize).copied().unwrap_or_default()
    }

    /// Where the file with this number is in the list.
    fn index_of(&self, number: u64) -> Option<usize> {
        self.files
            .binary_search_by_key(&number, |file| file.number)
            .ok()
    }

    /// Takes note that the journal cannot go on.
    pub(super) fn fail(&mut self, error: WalError) {
        self.failure.get_or_insert(error);
    }
}

/// Writing and syncing.
impl<S: Storage, F: Format> Wal<S, F> {
    /// Writes what was appended, unless it does not count before it is synced and no sync is about
    /// to begin: then the next turn's records can go out in the same write.
    fn write_if_due(&mut self) {
        let Positions {
            appended, written, ..
        } = self.positions;
        let is_awaited = self.settings.sync != Sync::Always
            || self.is_sync_due()
            || appended - written >= UNWRITTEN_MAX;
        let waits = self.is_stuck && self.retry_at.is_some();
        if is_awaited && !waits && (written < appended || self.has_new_file()) {
            self.write_out();
        }
    }

    /// Whether the file that is written has nothing yet, not even a header.
    fn has_new_file(&self) -> bool {
        let open = self.files.back().and_then(|file| file.open.as_ref());
        open.is_some_and(|open| open.written == 0)
    }

    fn is_sync_due(&self) -> bool {
        !self.positions.is_syncing() && self.positions.is_sync_due(self.now)
    }

    /// Writes what was appended. All files that are not completely written are at the end.
    fn write_out(&mut self) {
        let last = self.files.len().saturating_sub(1);
        let first = self.files.iter().rposition(|file| file.open.is_none());
        for at in first.map_or(0, |at| at + 1)..=last {
            if let Err(error) = self.write_file(at, at == last) {
                return self.on_write_error(at, error);
            }
        }
        if self.is_stuck {
            log::warn!(target: LOG, "written again, after the disk was full");
            self.is_stuck = false;
        }
        self.positions.on_written();
    }

    fn write_file(&mut self, at: usize, is_current: bool) -> io::Result<()> {
        let file = &mut self.files[at];
        let Some(open) = &mut file.open else {
            return Ok(());
        };
        if !open.pending.is_empty() {
            self.storage
                .write(&open.file, open.written, &open.pending)?;
            open.written += open.pending.len() as u64;
            open.pending.clear();
            open.pending.shrink_to(PENDING_KEPT);
            open.is_synced = false;
        }
        if !is_current {
            let cut = file.len.saturating_sub(file.end);
            let saves_a_block = file.len.div_ceil(BLOCK_LEN) > file.end.div_ceil(BLOCK_LEN);
            if cut > 0 && (cut < F::SHORT_LEN || saves_a_block) {
                self.storage.cut(&open.file, file.end)?;
                self.len -= cut;
                file.len = file.end;
            }
            let must_sync = F::IS_ORDERED || open.has_copies || self.settings.sync != Sync::Never;
            if !must_sync || (open.is_synced && !self.positions.is_syncing()) {
                file.open = None;
            }
        }
        Ok(())
    }

    fn on_write_error(&mut self, at: usize, source: io::Error) {
        if !is_full(&source) {
            return self.fail(WalError::Use {
                step: "write",
                name: file_name(self.files[at].number),
                source,
            });
        }
        if !self.is_stuck {
            self.is_stuck = true;
            log::error!(target: LOG, "cannot write, answers wait for room file={} error={source}",
                file_name(self.files[at].number));
        }
        self.retry_at = Some(Nanos(self.now.0 + RETRY_NANOS));
    }

    /// Whether records wait for room, so that new jobs cannot be taken.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    fn on_synced(&mut self, outcome: io::Result<()>) {
        if let Err(source) = outcome {
            self.positions.abandon_sync();
            return self.fail(WalError::Use {
                step: "sync",
                name: "the directory".to_owned(),
                source,
            });
        }
        self.positions.end_sync();
        self.is_blocked = false;
        let last = self.files.len() - 1;
        for file in self.files.iter_mut().take(last) {
            file.open
                .take_if(|open| open.is_synced && open.pending.is_empty());
        }
        self.storage.tend();
    }

    fn start_sync(&mut self) {
        let unsynced = self.files.iter_mut().filter_map(|file| file.open.as_mut());
        let unsynced = unsynced.filter(|open| !open.is_synced && open.pending.is_empty());
        let files = unsynced.map(|open| {
            open.is_synced = true;
            open.file.clone()
        });
        let files = files.collect();
        let names = self.positions.begin_sync(self.now);
        self.storage.start_sync(files, names);
    }

    /// Makes sure that something says of all that was written that it has been synced, so that
    /// nothing that is missing at the next start can be taken for what never was.
    fn seal(&mut self) {
        self.settle();
        let last = self.files.back();
        let is_new = last.is_some_and(|file| file.used() == 0);
        let begun = last
            .and_then(|file| file.open.as_ref())
            .map(|open| open.begun);
        let is_told = is_new && begun == Some(self.claimed);
        if self.failure.is_none() && !self.is_stuck && !is_told {
            self.make_room_for_deletion();
            let highest = self.highest;
            self.write_entry(&Entry::Mark { highest });
        }
    }

    /// Cuts off what was set aside for the file that is written, and not used.
    fn cut_current(&mut self) {
        let Some(file) = self.files.back_mut() else {
            return;
        };
        if let Some(open) = &file.open
            && open.pending.is_empty()
            && let Err(error) = self.storage.cut(&open.file, file.end)
        {
            log::warn!(target: LOG, "cannot cut file={} error={error}", file_name(file.number));
        }
    }

    /// Waits for the sync that is under way, if one is.
    fn await_sync(&mut self) {
        if self.positions.is_syncing() {
            let outcome = self.storage.wait_sync();
            self.on_synced(outcome);
        }
    }
}

/// Bytes of records that are written even if no sync is about to begin.
const UNWRITTEN_MAX: u64 = 1 << 20;

/// Bytes of memory for records that a file keeps between turns.
const PENDING_KEPT: usize = 256 * 1024;

/// Bytes in which a disk gives space.
const BLOCK_LEN: u64 = 4096;

impl<S: Storage, F: Format> Journal for Wal<S, F> {
    fn reserve_put(&mut self, tube: TubeName<'_>, body: &[u8]) -> Result<(), NoRoom> {
        self.make_room_for_put(F::full_len(tube, body.len()))
    }

    fn reserve_update(&mut self, _: JobId) -> Result<(), NoRoom> {
        self.make_room_for_update()
    }

    fn reserve_pause(&mut self, tube: TubeName<'_>) -> Result<(), NoRoom> {
        match F::pause_len(tube) {
            Some(len) => self.make_room_for_put(len),
            None => Ok(()),
        }
    }

    fn append(&mut self, record: Record<'_>) {
        match record {
            Record::Put {
                key,
                job,
                tube,
                body,
            } => {
                self.highest = self.highest.max(job.id);
                self.positions.on_put(job.id);
                self.write_full(key, job, tube, body);
            }
            Record::Update { job, body_len } => {
                let job = self.clocks.image::<F>(job, body_len);
                self.write_entry(&Entry::Change { job });
            }
            Record::Delete { key, job, body_len } => {
                self.make_room_for_deletion();
                let job = self.clocks.deletion::<F>(job, body_len);
                self.write_entry(&Entry::End { job });
                self.leave_home(key);
            }
            Record::Pause {
                tube,
                length,
                until,
            } => {
                if F::pause_len(tube).is_some() {
                    let number = self.pauses.number_of(tube);
                    self.write_pause(number, tube, length, until);
                }
            }
            Record::Resume { tube } => self.end_pause(tube),
        }
    }

    fn segment_of(&self, _: JobId, key: JobKey) -> u64 {
        self.home(key).number.into()
    }

    fn stats(&self) -> JournalStats {
        let number = |file: Option<&File<_>>| file.map_or(0, |file| file.number);
        JournalStats {
            oldest_index: number(self.files.front()),
            current_index: number(self.files.back()),
            ..self.counts
        }
    }

    fn position(&self) -> Ticket {
        Ticket(self.positions.appended)
    }

    fn ticket_of(&self, id: JobId) -> Ticket {
        Ticket(self.positions.needed_for(id))
    }
}

impl<S: Storage, F: Format> ShardJournal for Wal<S, F> {
    fn begin_turn(&mut self, now: Nanos, wall: WallNanos) {
        self.now = now;
        self.positions.begin_turn(now);
        self.clocks.set(now, wall);
    }

    fn confirmed(&self) -> Ticket {
        Ticket(self.positions.confirmed())
    }

    fn flush(&mut self) {
        if self.failure.is_some() {
            return;
        }
        if let Some(outcome) = self.storage.poll_sync() {
            self.on_synced(outcome);
        }
        if self.retry_at.is_some_and(|at| at <= self.now) {
            self.retry_at = None;
            self.is_blocked = false;
        }
        self.write_if_due();
        if self.failure.is_some() {
            return;
        }
        self.collect();
        self.restock();
        self.write_if_due();
        if self.is_sync_due() {
            self.start_sync();
        }
    }

    fn take_failure(&mut self) -> Option<WalError> {
        self.failure.take()
    }

    fn live_len(&self) -> u64 {
        self.live
    }

    fn is_tight(&mut self, count: u64) -> bool {
        // No more than there are jobs can be meant.
        !self.make_room_for_updates(count.min(self.jobs))
    }

    fn next_move(&mut self, urgent: bool) -> Option<JobId> {
        self.next_to_move(urgent)
    }

    fn is_moving(&self) -> bool {
        self.left_to_move() > 0
    }

    fn move_job(&mut self, record: Record<'_>) -> u64 {
        match record {
            Record::Put {
                key,
                job,
                tube,
                body,
            } => self.copy(key, job, tube, body),
            Record::Update { .. }
            | Record::Delete { .. }
            | Record::Pause { .. }
            | Record::Resume { .. } => 0,
        }
    }

    fn settle(&mut self) {
        self.await_sync();
        self.flush();
        if self.failure.is_none() && !self.positions.is_syncing() && self.positions.has_more() {
            self.write_out();
            self.start_sync();
        }
        self.await_sync();
        self.flush();
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.storage.wake_fd()
    }

    fn moment(&self) -> Option<Nanos> {
        let sync_at = self.positions.sync_moment(self.now);
        // What could not be written is tried again with everything else.
        let sync_at = sync_at.filter(|_| !self.is_stuck);
        let clean_at = self.is_cleaning_due(false).then_some(self.now);
        [sync_at, clean_at, self.retry_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn close(&mut self) {
        if F::IS_ORDERED {
            self.seal();
        }
        self.is_closing = true;
        self.drop_empty_files();
        if self.settings.sync != Sync::Never || F::IS_ORDERED {
            self.settle();
        } else {
            self.flush();
        }
        // To go on with giving up old files, some may have been made.
        self.drop_empty_files();
        self.cut_current();
    }
}

/// Length of a body in bytes. No body is longer than the protocol can say.
fn body_len(body: &[u8]) -> u32 {
    u32::try_from(body.len()).unwrap_or(u32::MAX)
}
