//! A shard: one engine with its journal.

use std::os::fd::BorrowedFd;

use crate::base::ids::{Caller, JobId, SessionId, ShardId};
use crate::base::time::Nanos;
use crate::engine::Engine;
use crate::engine::host::{Joined, Outbox, Ticket};
use crate::engine::op::Op;
use crate::session::shards::Shards;
use crate::wal::error::WalError;
use crate::wal::format::Format;
use crate::wal::journal::Wal;
use crate::wal::record::WallNanos;
use crate::wal::recover::Recovery;
use crate::wal::shard_journal::ShardJournal;
use crate::wal::storage::Storage;

/// See the module's description.
pub struct Shard<J> {
    engine: Engine,
    journal: J,
}

impl<S: Storage, F: Format> Shard<Wal<S, F>> {
    /// The shard whose jobs a binlog tells of. The engine must have none.
    ///
    /// # Errors
    /// [`WalError`] if the binlog cannot be gone on with.
    pub fn recover(
        mut engine: Engine,
        mut recovery: Recovery<S, F>,
    ) -> Result<Shard<Wal<S, F>>, WalError> {
        engine.skip_ids(recovery.highest());
        while recovery.jobs_left() > 0 {
            recovery.restore_next(|job| engine.restore(job.job, job.tube, job.body).ok());
        }
        let now = recovery.now();
        while recovery.pauses_left() > 0 {
            recovery
                .restore_pause(|one| engine.restore_pause(now, one.tube, one.length, one.until));
        }
        let journal = recovery.finish()?;
        Ok(Shard { engine, journal })
    }
}

impl<J: ShardJournal> Shard<J> {
    /// The shard made of these.
    pub fn new(engine: Engine, journal: J) -> Shard<J> {
        Shard { engine, journal }
    }

    /// It is `now`, and the wall clock shows `wall`. To be called before anything else of a turn.
    pub fn begin_turn(&mut self, now: Nanos, wall: WallNanos) {
        self.journal.begin_turn(now, wall);
    }

    /// Does what has fallen due by `now`.
    pub fn tick(&mut self, now: Nanos, outbox: &mut impl Outbox) {
        self.engine
            .tick(now, &mut Joined::new(outbox, &mut self.journal));
    }

    /// When [`Shard::tick`] or [`Shards::flush`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let moments = [self.engine.next_deadline(), self.journal.moment()];
        moments.into_iter().flatten().min()
    }

    /// Refuses new jobs from now on.
    pub fn drain(&mut self) {
        self.engine.drain();
    }

    /// Hands waiters of this frontend, which is slow to take what it is told, no job until
    /// [`Shard::let_go`].
    pub fn hold_back(&mut self, frontend: u16) {
        self.engine.hold_back(frontend);
    }

    /// Lets waiters of this frontend have jobs again. To be called when its link ends, too.
    pub fn let_go(&mut self, now: Nanos, frontend: u16, outbox: &mut impl Outbox) {
        self.engine
            .let_go(now, frontend, &mut Joined::new(outbox, &mut self.journal));
    }

    /// Bytes that the jobs and tubes take, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.engine.bytes()
    }

    /// Why the journal cannot go on, if it cannot.
    pub fn take_failure(&mut self) -> Option<WalError> {
        self.journal.take_failure()
    }

    /// The journal.
    pub fn journal(&self) -> &J {
        &self.journal
    }

    /// Becomes readable when [`Shards::flush`] has something to do, if there is such a thing.
    #[must_use]
    pub fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.journal.wake_fd()
    }

    /// Waits until all that was written down is on the disk.
    pub fn settle(&mut self) {
        self.journal.settle();
    }

    /// Brings the journal to its end.
    pub fn close(&mut self) {
        self.journal.close();
    }

    /// The same shard, with another journal around its own.
    pub fn wrap<K>(self, around: impl FnOnce(J) -> K) -> Shard<K> {
        Shard {
            engine: self.engine,
            journal: around(self.journal),
        }
    }

    /// The journal, as a crash would leave it.
    pub fn into_journal(self) -> J {
        self.journal
    }

    /// Recounts everything.
    ///
    /// # Panics
    /// If something is not as it must be.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        self.engine.check_invariants();
    }

    /// On a full disk, sees to it that what is asked has room in the journal, if old files can give
    /// some. This waits for the disk, because the other way is to refuse what must not fail.
    fn make_room(&mut self, op: &Op<'_>) {
        let count = match op {
            Op::Release { .. } | Op::Bury { .. } | Op::KickJob { .. } => 1,
            Op::Kick { count } => u64::from(*count).min(KICKS_WITH_ROOM),
            _ => return,
        };
        if self.journal.is_tight(count) {
            // What has been moved already may wait for a sync.
            self.journal.settle();
        }
        // When each job has been moved once, nothing is left that more of it could give.
        let mut left = self.journal.live_len();
        while left > 0 && self.journal.is_tight(count) {
            let moved = self.move_jobs(left, true);
            if moved == 0 {
                return;
            }
            left = left.saturating_sub(moved);
            self.journal.settle();
        }
    }

    /// Writes jobs anew, as many as the journal wants but about `most` bytes, so that old files of
    /// it can go. What is begun is finished: half a file is none. Returns how many bytes that were.
    fn move_jobs(&mut self, most: u64, urgent: bool) -> u64 {
        let mut moved = 0;
        while (moved < most || self.journal.is_moving())
            && let Some(id) = self.journal.next_move(urgent)
        {
            let journal = &mut self.journal;
            let written = self
                .engine
                .write_anew(id, |record| journal.move_job(record));
            moved += written.unwrap_or(0);
        }
        moved
    }
}

/// Kicks of one command for which a full disk is cleaned. The others are made if there is room.
const KICKS_WITH_ROOM: u64 = 1024;

/// A lone shard in the process of its sessions: an ask is a call, and it is the answer to every
/// question of which shard.
impl<J: ShardJournal> Shards for Shard<J> {
    fn attach(&mut self, _: ShardId, session: SessionId) {
        self.engine.attach(session);
    }

    fn submit(
        &mut self,
        now: Nanos,
        _: ShardId,
        from: Caller,
        op: Op<'_>,
        outbox: &mut impl Outbox,
    ) {
        self.make_room(&op);
        let host = &mut Joined::new(outbox, &mut self.journal);
        self.engine
            .apply(now, from, op, host)
            .expect("sessions attach before they ask");
    }

    fn detach(&mut self, now: Nanos, _: ShardId, session: SessionId, outbox: &mut impl Outbox) {
        let host = &mut Joined::new(outbox, &mut self.journal);
        self.engine.detach(now, session, host);
    }

    fn flush(&mut self) -> Ticket {
        self.move_jobs(u64::MAX, false);
        self.journal.flush();
        self.journal.confirmed()
    }

    fn take_id(&mut self, _: ShardId, session: SessionId) -> Option<JobId> {
        self.engine.take_id(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::body::BodyCow;
    use crate::base::hash::NameHasher;
    use crate::base::ids::{Pri, Seq};
    use crate::base::name::TubeName;
    use crate::base::time::Secs;
    use crate::engine::event::Event;
    use crate::engine::host::NoJournal;
    use crate::engine::op::{Put, Style};
    use crate::engine::{IdScheme, Settings};

    const SHARD: ShardId = ShardId(0);

    /// Who was handed a job.
    #[derive(Default)]
    struct Handed(Vec<u16>);

    impl Outbox for Handed {
        fn emit(&mut self, to: Caller, event: Event<'_>) {
            if matches!(event, Event::Reserved { .. }) {
                self.0.push(to.session.frontend);
            }
        }
    }

    // A3.3
    #[test]
    fn a_slow_frontend_is_passed_over_until_it_is_let_go() {
        let mut shard = Shard::new(
            Engine::new(Settings {
                ids: IdScheme::Plain,
                hasher: NameHasher::new([1, 2]),
                has_default: true,
            }),
            NoJournal,
        );
        let (mut handed, now, tube) = (Handed::default(), Nanos(1), TubeName::DEFAULT);
        let mut ask = |shard: &mut Shard<NoJournal>, frontend, op| {
            let session = SessionId::new(frontend, 1, 0);
            shard.attach(SHARD, session);
            let from = Caller {
                session,
                seq: Seq(1),
            };
            shard.submit(now, SHARD, from, op, &mut handed);
        };
        let reserve = || Op::Reserve {
            style: Style::Take,
            wait: true,
        };
        let put = || {
            Op::Put(Put {
                id: None,
                created_at: now,
                pri: Pri(0),
                delay: Secs(0),
                ttr: Secs(9),
                body: BodyCow::Borrowed(b"work"),
            })
        };
        for frontend in [5, 3] {
            ask(&mut shard, frontend, Op::Watch { tube });
            ask(&mut shard, frontend, reserve());
        }
        shard.hold_back(5);
        ask(&mut shard, 3, Op::Use { tube });
        ask(&mut shard, 3, put());
        ask(&mut shard, 3, put());
        assert_eq!(handed.0, [3]);
        shard.let_go(now, 5, &mut handed);
        assert_eq!(handed.0, [3, 5]);
        shard.check_invariants();
    }
}
