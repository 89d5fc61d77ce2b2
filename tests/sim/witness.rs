//! A shard that tells the truth: all that it is asked and all that it says is taken note of before
//! anybody else knows.

use std::cell::RefCell;
use std::rc::Rc;

use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{Caller, Generation, JobId, Seq, SessionId, ShardId};
use beanshard::base::name::TubeName;
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;
use beanshard::engine::host::{Outbox, Ticket};
use beanshard::engine::op::Op;
use beanshard::engine::stats::{JobStats, TubeStats};
use beanshard::engine::{Engine, IdScheme, Settings};
use beanshard::role::hub::Queue;
use beanshard::role::shard::Shard;
use beanshard::session::shards::{ShardMap, Shards};
use beanshard::wal::error::WalError;
use beanshard::wal::record::WallNanos;
use beanshard::wal::shard_journal::ShardJournal;

use crate::ledger::Ledger;
use crate::names::own_name;
use crate::scribe::Scribe;
use crate::truth::{Truth, Who};

/// See the module's description.
pub(crate) struct Witness {
    id: ShardId,
    shard: Shard<Scribe>,
    truth: Rc<RefCell<Truth>>,
    /// What its binlog is told, if it has one.
    ledger: Option<Rc<RefCell<Ledger>>>,
    /// When the turn began that has not ended.
    turn: Option<Nanos>,
    /// Who is at the other end of the link to each frontend, and the number of the link.
    peers: Vec<(Generation, u64)>,
    /// Whether to tell what happens.
    verbose: bool,
}

/// The session that looks at shards without being a client. It is of another frontend.
fn inspector() -> Caller {
    Caller {
        session: SessionId::new(u16::MAX, 1, 0),
        seq: Seq(1),
    }
}

/// Names are hashed alike in every run.
pub(crate) fn hasher() -> NameHasher {
    NameHasher::new([1, 2])
}

/// The engine of one of the shards of `map`, as owners have them.
pub(crate) fn engine_of(map: ShardMap, shard: ShardId) -> Engine {
    Engine::new(Settings {
        ids: IdScheme::Slotted,
        hasher: hasher(),
        has_default: map.of_tube(TubeName::DEFAULT) == shard,
    })
}

impl Witness {
    /// Of a shard, and of the ledger of its binlog if it has one.
    pub(crate) fn new(
        id: ShardId,
        mut shard: Shard<Scribe>,
        truth: Rc<RefCell<Truth>>,
        ledger: Option<Rc<RefCell<Ledger>>>,
        verbose: bool,
    ) -> Witness {
        shard.attach(id, inspector().session);
        Witness {
            id,
            shard,
            truth,
            ledger,
            turn: None,
            peers: Vec::new(),
            verbose,
        }
    }

    /// From now on what comes from a frontend comes from this start of it, over this link.
    pub(crate) fn meet(&mut self, frontend: u16, generation: Generation, link: u64) {
        let place = usize::from(frontend);
        let nobody = (Generation::NONE, 0);
        self.peers.resize(self.peers.len().max(place + 1), nobody);
        self.peers[place] = (generation, link);
    }

    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        self.shard.next_deadline()
    }

    /// When the binlog has something to do.
    pub(crate) fn journal_moment(&self) -> Option<Nanos> {
        self.shard.journal().moment()
    }

    /// Why the binlog cannot go on, if it cannot.
    pub(crate) fn take_failure(&mut self) -> Option<WalError> {
        self.shard.take_failure()
    }

    fn begin_turn(&mut self, now: Nanos) {
        if self.turn != Some(now) {
            self.turn = Some(now);
            self.shard.begin_turn(now, wall_of(now));
        }
    }

    /// Ends a turn, perhaps one in which nothing was done. What is confirmed by now may leave.
    pub(crate) fn end_turn(&mut self, now: Nanos) -> Ticket {
        self.begin_turn(now);
        self.turn = None;
        self.shard.flush()
    }

    pub(crate) fn inspect_job(&mut self, now: Nanos, id: JobId) -> Option<JobStats<'static>> {
        self.inspect(now, Op::StatsJob { id }).job
    }

    pub(crate) fn inspect_tube(
        &mut self,
        now: Nanos,
        tube: TubeName<'_>,
    ) -> Option<TubeStats<'static>> {
        self.inspect(now, Op::StatsTube { tube }).tube
    }

    /// What the shard says to somebody who only looks.
    fn inspect(&mut self, now: Nanos, op: Op<'_>) -> Look {
        let mut look = Look::default();
        self.shard.submit(now, self.id, inspector(), op, &mut look);
        look
    }

    fn who(&self, session: SessionId) -> (u64, Who) {
        let (generation, link) = self.peers[usize::from(session.frontend)];
        let who = Who {
            generation,
            session,
        };
        (link, who)
    }

    /// Lets the shard do something.
    fn act<O: Outbox>(
        &mut self,
        now: Nanos,
        outbox: &mut O,
        pause: Option<Secs>,
        act: impl FnOnce(&mut Shard<Scribe>, &mut Noting<'_, O>),
    ) {
        self.begin_turn(now);
        if let Some(ledger) = &self.ledger {
            ledger.borrow_mut().begin(now);
        }
        let mut truth = self.truth.borrow_mut();
        let mut noting = Noting {
            shard: self.id,
            now,
            truth: &mut truth,
            ledger: self.ledger.as_deref(),
            peers: &self.peers,
            verbose: self.verbose,
            outbox,
        };
        act(&mut self.shard, &mut noting);
        drop(truth);
        self.check_done(now, pause);
        #[cfg(debug_assertions)]
        self.shard.check_invariants();
    }

    /// What was done was written down as it is.
    fn check_done(&mut self, now: Nanos, pause: Option<Secs>) {
        let Some(ledger) = &self.ledger else {
            return;
        };
        let mut ledger = ledger.borrow_mut();
        ledger.end(pause);
        let done = ledger.done();
        drop(ledger);
        for (id, shown) in done {
            if let Some(stats) = self.inspect_job(now, id) {
                assert!(shown.agrees(&stats), "{shown:?} was written of {stats:?}");
            }
        }
    }
}

/// What the wall clock shows.
pub(crate) fn wall_of(now: Nanos) -> WallNanos {
    const AHEAD: i64 = 1_700_000_000_000_000_000;
    WallNanos(now.0.cast_signed() + AHEAD)
}

impl Shards for Witness {
    fn attach(&mut self, shard: ShardId, session: SessionId) {
        let (link, who) = self.who(session);
        self.truth.borrow_mut().attach(self.id, link, who);
        self.shard.attach(shard, session);
    }

    fn submit(
        &mut self,
        now: Nanos,
        shard: ShardId,
        from: Caller,
        op: Op<'_>,
        outbox: &mut impl Outbox,
    ) {
        let (link, who) = self.who(from.session);
        if self.verbose {
            eprintln!("               {} -> s{} {op:?}", caller(&from), self.id.0);
        }
        let mut truth = self.truth.borrow_mut();
        truth.before_ask((self.id, link), (who, from.seq), &op);
        drop(truth);
        let pause = match op {
            Op::PauseTube { pause, .. } => Some(pause),
            _ => None,
        };
        self.act(now, outbox, pause, |queue, noting| {
            queue.submit(now, shard, from, op, noting);
        });
    }

    fn detach(&mut self, now: Nanos, shard: ShardId, session: SessionId, outbox: &mut impl Outbox) {
        let (link, who) = self.who(session);
        self.truth.borrow_mut().detach(self.id, link, who);
        self.act(now, outbox, None, |queue, noting| {
            queue.detach(now, shard, session, noting);
        });
    }

    fn flush(&mut self) -> Ticket {
        self.shard.flush()
    }

    fn take_id(&mut self, shard: ShardId, session: SessionId) -> Option<JobId> {
        self.shard.take_id(shard, session)
    }
}

impl Queue for Witness {
    fn tick(&mut self, now: Nanos, outbox: &mut impl Outbox) {
        self.act(now, outbox, None, |queue, noting| queue.tick(now, noting));
        self.truth.borrow_mut().end_offers(self.id, now);
        let due = self.next_deadline();
        let is_done = due.is_none_or(|due| due > now) || due == self.journal_moment();
        assert!(is_done, "everything that was due has been done");
    }

    fn hold_back(&mut self, frontend: u16) {
        self.shard.hold_back(frontend);
    }

    fn let_go(&mut self, now: Nanos, frontend: u16, outbox: &mut impl Outbox) {
        self.act(now, outbox, None, |queue, noting| {
            queue.let_go(now, frontend, noting);
        });
    }
}

/// Takes note of what a shard says, and passes it on.
struct Noting<'a, O> {
    shard: ShardId,
    now: Nanos,
    truth: &'a mut Truth,
    ledger: Option<&'a RefCell<Ledger>>,
    peers: &'a [(Generation, u64)],
    verbose: bool,
    outbox: &'a mut O,
}

impl<O: Outbox> Outbox for Noting<'_, O> {
    fn emit(&mut self, to: Caller, event: Event<'_>) {
        self.emit_after(Ticket::default(), to, event);
    }

    fn emit_after(&mut self, ticket: Ticket, to: Caller, event: Event<'_>) {
        if self.verbose {
            let said = format!("{event:?}");
            let said = &said[..said.len().min(90)];
            eprintln!("               {} <- s{} {said}", caller(&to), self.shard.0);
        }
        let who = Who {
            generation: self.peers[usize::from(to.session.frontend)].0,
            session: to.session,
        };
        self.truth.on_event(self.shard, self.now, (who, to), &event);
        if let Some(ledger) = self.ledger {
            ledger.borrow_mut().note(who, to.seq, &event);
        }
        self.outbox.emit_after(ticket, to, event);
    }
}

/// What an inspector was told.
#[derive(Default)]
struct Look {
    job: Option<JobStats<'static>>,
    tube: Option<TubeStats<'static>>,
}

impl Outbox for Look {
    fn emit(&mut self, _: Caller, event: Event<'_>) {
        match event {
            Event::JobStats(stats) => {
                self.job = Some(JobStats {
                    tube: own_name(stats.tube),
                    ..stats
                });
            }
            Event::TubeStats(stats) => {
                self.tube = Some(TubeStats {
                    name: own_name(stats.name),
                    ..stats
                });
            }
            _ => {}
        }
    }
}

/// A session as a transcript names it: the so-manieth of its frontend.
pub(crate) fn caller(caller: &Caller) -> String {
    let SessionId { frontend, number } = caller.session;
    format!("f{frontend}.{}#{}", number >> 24, caller.seq.0)
}
