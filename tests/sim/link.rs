//! Shards at the far end of links. What is asked takes its way as bytes until the scheduler
//! delivers it, and so does what is said; each direction keeps the order of each session, and none
//! knows of the others.

use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{Caller, JobId, Seq, SessionId, ShardId};
use beanshard::base::name::TubeName;
use beanshard::base::time::Nanos;
use beanshard::engine::event::Event;
use beanshard::engine::host::{Joined, NoJournal, Outbox, Ticket};
use beanshard::engine::op::Op;
use beanshard::engine::{Engine, IdScheme, Settings};
use beanshard::session::shards::{ShardMap, Shards};
use beanshard::wire::kind::Sender;

use crate::owned::Owned;
use crate::truth::Truth;
use crate::wire::Wire;

/// All shards, and what is on its way to them and from them.
pub(crate) struct SimShards {
    pub(crate) links: Vec<Link>,
}

/// One shard and the link to it.
pub(crate) struct Link {
    shard: ShardId,
    pub(crate) engine: Engine,
    pub(crate) asks: Wire<Ask>,
    pub(crate) events: Wire<(Caller, Owned)>,
}

/// What travels to a shard.
#[derive(Debug)]
pub(crate) enum Ask {
    Attach(SessionId),
    Submit(Caller, Op<'static>),
    Detach(SessionId),
}

/// The session that looks at shards without being a client. It is of another frontend.
fn inspector() -> Caller {
    Caller {
        session: SessionId::new(1, 1, 0),
        seq: Seq(1),
    }
}

/// Names are hashed alike in every run.
pub(crate) fn hasher() -> NameHasher {
    NameHasher::new([1, 2])
}

/// The engine of one of the shards of `map`.
pub(crate) fn engine_of(map: ShardMap, shard: ShardId) -> Engine {
    let ids = if map.all().len() == 1 {
        IdScheme::Plain
    } else {
        IdScheme::Slotted
    };
    Engine::new(Settings {
        ids,
        hasher: hasher(),
        has_default: map.of_tube(TubeName::DEFAULT) == shard,
    })
}

impl SimShards {
    pub(crate) fn new(map: ShardMap) -> SimShards {
        let link = |shard| {
            let mut engine = engine_of(map, shard);
            engine.attach(inspector().session);
            Link {
                shard,
                engine,
                asks: Wire::new(Sender::Frontend),
                events: Wire::new(Sender::Owner),
            }
        };
        SimShards {
            links: map.all().iter().map(link).collect(),
        }
    }

    fn link(&mut self, shard: ShardId) -> &mut Link {
        &mut self.links[usize::from(shard.0)]
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_quiet = |link: &Link| link.asks.is_empty() && link.events.is_empty();
        self.links.iter().all(is_quiet)
    }
}

impl Shards for SimShards {
    fn attach(&mut self, shard: ShardId, session: SessionId) {
        self.link(shard).asks.attach(session);
    }

    fn submit(&mut self, _: Nanos, shard: ShardId, from: Caller, op: Op<'_>, _: &mut impl Outbox) {
        self.link(shard).asks.submit(from, &op);
    }

    fn detach(&mut self, _: Nanos, shard: ShardId, session: SessionId, _: &mut impl Outbox) {
        self.link(shard).asks.detach(session);
    }

    fn flush(&mut self) -> Ticket {
        Ticket(0)
    }

    fn take_id(&mut self, _: ShardId, _: SessionId) -> Option<JobId> {
        None
    }
}

impl Link {
    /// Delivers the next ask to the engine.
    pub(crate) fn deliver(&mut self, now: Nanos, truth: &mut Truth) {
        let Some(ask) = self.asks.pop_front() else {
            return;
        };
        truth.see_often("interleaved", self.asks.take_interleaved());
        truth.see_often("interleaved", self.events.take_interleaved());
        // A shard keeps one offer for a session. When the session reserves anew while its answer
        // to the last offer is still on its way, that offer ends with the new ask.
        if let Ask::Submit(from, Op::Reserve { .. }) = ask
            && let Some((earlier, id)) = truth.offered(self.shard, from.session)
        {
            truth.before_ask(self.shard, &Ask::Submit(earlier, Op::Decline { id }));
        }
        self.obey(now, ask, truth);
    }

    fn obey(&mut self, now: Nanos, ask: Ask, truth: &mut Truth) {
        truth.before_ask(self.shard, &ask);
        let mut heard = Witness {
            shard: self.shard,
            now,
            truth,
            events: &mut self.events,
        };
        let mut journal = NoJournal;
        let host = &mut Joined::new(&mut heard, &mut journal);
        match ask {
            Ask::Attach(session) => self.engine.attach(session),
            Ask::Detach(session) => self.engine.detach(now, session, host),
            Ask::Submit(from, op) => {
                let applied = self.engine.apply(now, from, op, host);
                applied.expect("a session is attached before it asks");
            }
        }
        #[cfg(debug_assertions)]
        self.engine.check_invariants();
    }

    /// Lets the engine do what is due.
    pub(crate) fn tick(&mut self, now: Nanos, truth: &mut Truth) {
        let mut heard = Witness {
            shard: self.shard,
            now,
            truth,
            events: &mut self.events,
        };
        let mut journal = NoJournal;
        let host = &mut Joined::new(&mut heard, &mut journal);
        self.engine.tick(now, host);
        truth.end_offers(self.shard, now);
        #[cfg(debug_assertions)]
        self.engine.check_invariants();
        let due = self.engine.next_deadline().is_none_or(|due| due > now);
        assert!(due, "everything that was due has been done");
    }

    /// What the engine says to somebody who only looks.
    pub(crate) fn inspect(&mut self, now: Nanos, op: Op<'_>) -> Vec<Owned> {
        let mut seen = Seen(Vec::new());
        let mut journal = NoJournal;
        let host = &mut Joined::new(&mut seen, &mut journal);
        let applied = self.engine.apply(now, inspector(), op, host);
        applied.expect("the inspector is attached");
        seen.0
    }
}

/// Sees what an engine says, and puts it on its way.
struct Witness<'a> {
    shard: ShardId,
    now: Nanos,
    truth: &'a mut Truth,
    events: &'a mut Wire<(Caller, Owned)>,
}

impl Outbox for Witness<'_> {
    fn emit(&mut self, to: Caller, event: Event<'_>) {
        self.truth.on_event(self.shard, self.now, to, &event);
        self.events.emit(to, &event);
    }
}

struct Seen(Vec<Owned>);

impl Outbox for Seen {
    fn emit(&mut self, _: Caller, event: Event<'_>) {
        self.0.push(Owned::of(&event));
    }
}
