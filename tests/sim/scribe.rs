//! The journal of an owner: none, or a binlog that is real but for its disk. All that the engine
//! tells a binlog is entered in the owner's ledger on the way.

use std::cell::RefCell;
use std::rc::Rc;

use beanshard::base::ids::JobId;
use beanshard::base::name::TubeName;
use beanshard::base::time::Nanos;
use beanshard::engine::host::{Journal, NoRoom, Record, Ticket};
use beanshard::engine::job::JobKey;
use beanshard::engine::stats::JournalStats;
use beanshard::wal::error::WalError;
use beanshard::wal::journal::Wal;
use beanshard::wal::record::WallNanos;
use beanshard::wal::shard_journal::ShardJournal;
use beanshard::wal::v8::V8;

use crate::ledger::Ledger;
use crate::storage::MemoryStorage;

/// See the module's description.
pub(crate) struct Scribe(Option<Kept>);

struct Kept {
    wal: Wal<MemoryStorage, V8>,
    ledger: Rc<RefCell<Ledger>>,
}

impl Scribe {
    /// Of an owner that keeps nothing.
    pub(crate) fn none() -> Scribe {
        Scribe(None)
    }

    pub(crate) fn new(wal: Wal<MemoryStorage, V8>, ledger: Rc<RefCell<Ledger>>) -> Scribe {
        Scribe(Some(Kept { wal, ledger }))
    }

    /// What the binlog says, or what one would that has nothing to do.
    fn ask<T: Default>(&self, ask: impl FnOnce(&Wal<MemoryStorage, V8>) -> T) -> T {
        self.0
            .as_ref()
            .map_or_else(T::default, |kept| ask(&kept.wal))
    }

    fn tell<T: Default>(&mut self, tell: impl FnOnce(&mut Wal<MemoryStorage, V8>) -> T) -> T {
        self.0
            .as_mut()
            .map_or_else(T::default, |kept| tell(&mut kept.wal))
    }

    fn reserve(
        &mut self,
        reserve: impl FnOnce(&mut Wal<MemoryStorage, V8>) -> Result<(), NoRoom>,
    ) -> Result<(), NoRoom> {
        self.0
            .as_mut()
            .map_or(Ok(()), |kept| reserve(&mut kept.wal))
    }
}

impl Journal for Scribe {
    fn reserve_put(&mut self, tube: TubeName<'_>, body: &[u8]) -> Result<(), NoRoom> {
        self.reserve(|wal| wal.reserve_put(tube, body))
    }

    fn reserve_update(&mut self, id: JobId) -> Result<(), NoRoom> {
        self.reserve(|wal| wal.reserve_update(id))
    }

    fn reserve_pause(&mut self, tube: TubeName<'_>) -> Result<(), NoRoom> {
        self.reserve(|wal| wal.reserve_pause(tube))
    }

    fn append(&mut self, record: Record<'_>) {
        if let Some(kept) = &mut self.0 {
            kept.ledger.borrow_mut().enter(&record);
            kept.wal.append(record);
        }
    }

    fn segment_of(&self, id: JobId, key: JobKey) -> u64 {
        self.ask(|wal| wal.segment_of(id, key))
    }

    fn stats(&self) -> JournalStats {
        self.ask(Journal::stats)
    }

    fn position(&self) -> Ticket {
        self.ask(Journal::position)
    }

    fn ticket_of(&self, id: JobId) -> Ticket {
        self.ask(|wal| wal.ticket_of(id))
    }
}

impl ShardJournal for Scribe {
    fn begin_turn(&mut self, now: Nanos, wall: WallNanos) {
        self.tell(|wal| wal.begin_turn(now, wall));
    }

    fn confirmed(&self) -> Ticket {
        self.ask(ShardJournal::confirmed)
    }

    fn flush(&mut self) {
        self.tell(ShardJournal::flush);
    }

    fn take_failure(&mut self) -> Option<WalError> {
        self.tell(ShardJournal::take_failure)
    }

    fn live_len(&self) -> u64 {
        self.ask(ShardJournal::live_len)
    }

    fn is_tight(&mut self, count: u64) -> bool {
        self.tell(|wal| wal.is_tight(count))
    }

    fn next_move(&mut self, urgent: bool) -> Option<JobId> {
        self.tell(|wal| wal.next_move(urgent))
    }

    fn is_moving(&self) -> bool {
        self.ask(ShardJournal::is_moving)
    }

    /// The copy of a job that nobody speaks of may tell of it what no record has told.
    fn move_job(&mut self, record: Record<'_>) -> u64 {
        let Some(kept) = &mut self.0 else { return 0 };
        let len = kept.wal.move_job(record);
        if len > 0 {
            kept.ledger.borrow_mut().copy(&record);
        }
        len
    }

    fn settle(&mut self) {
        self.tell(ShardJournal::settle);
    }

    fn moment(&self) -> Option<Nanos> {
        self.ask(ShardJournal::moment)
    }

    fn close(&mut self) {
        self.tell(ShardJournal::close);
    }
}
