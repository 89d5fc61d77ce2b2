//! A shard: one engine with its journal.

use crate::base::ids::{Caller, JobId, SessionId, ShardId};
use crate::base::time::Nanos;
use crate::engine::Engine;
use crate::engine::host::{Joined, Journal, Outbox};
use crate::engine::op::Op;
use crate::session::shards::Shards;

/// See the module's description.
pub struct Shard<J> {
    engine: Engine,
    journal: J,
}

impl<J: Journal> Shard<J> {
    /// The shard made of these.
    pub fn new(engine: Engine, journal: J) -> Shard<J> {
        Shard { engine, journal }
    }

    /// Does what has fallen due by `now`.
    pub fn tick(&mut self, now: Nanos, outbox: &mut impl Outbox) {
        self.engine.tick(
            now,
            &mut Joined {
                outbox,
                journal: &mut self.journal,
            },
        );
    }

    /// When [`Shard::tick`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.engine.next_deadline()
    }

    /// Refuses new jobs from now on.
    pub fn drain(&mut self) {
        self.engine.drain();
    }

    /// Bytes that the jobs and tubes take, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.engine.bytes()
    }

    /// Recounts everything.
    ///
    /// # Panics
    /// If something is not as it must be.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        self.engine.check_invariants();
    }
}

/// A lone shard in the process of its sessions: an ask is a call, and it is the answer to every
/// question of which shard.
impl<J: Journal> Shards for Shard<J> {
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
        let host = &mut Joined {
            outbox,
            journal: &mut self.journal,
        };
        self.engine
            .apply(now, from, op, host)
            .expect("sessions attach before they ask");
    }

    fn detach(&mut self, now: Nanos, _: ShardId, session: SessionId, outbox: &mut impl Outbox) {
        let host = &mut Joined {
            outbox,
            journal: &mut self.journal,
        };
        self.engine.detach(now, session, host);
    }

    fn take_id(&mut self, _: ShardId, session: SessionId) -> Option<JobId> {
        self.engine.take_id(session)
    }
}
