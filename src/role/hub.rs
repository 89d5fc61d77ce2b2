//! A shard and the ends of its links to frontends, sans I/O: what an owner is, without its sockets
//! and clocks. The simulation runs the same.

use std::collections::VecDeque;

use crate::base::ids::{Caller, SessionId, ShardId};
use crate::base::time::Nanos;
use crate::channel::Terms;
use crate::channel::far::{Asked, FarEnd};
use crate::engine::event::Event;
use crate::engine::host::{Outbox, Ticket};
use crate::engine::op::{Op, Style};
use crate::role::shard::Shard;
use crate::session::shards::Shards;
use crate::wal::shard_journal::ShardJournal;
use crate::wire::assembler::Message;
use crate::wire::frame::Frame;
use crate::wire::header::Expected;
use crate::wire::kind::OpKind;
use crate::wire::op;
use crate::wire::refusal::{Refusal, Refusals};

/// See the module's description.
pub struct Hub<Q> {
    /// The queue.
    pub shard: Q,
    /// By the index of the frontend.
    ends: Vec<Option<FarEnd>>,
    /// Sessions that do not wait any more and have asks that were kept meanwhile.
    resumed: VecDeque<SessionId>,
    refusals: Refusals,
}

/// A shard of a process of its own is the only one there.
const SHARD: ShardId = ShardId(0);

/// What a hub needs of its queue besides what sessions ask: [`Shard`] is one, and whoever wants to
/// see all that a shard is asked and says can put another around it.
pub trait Queue: Shards {
    /// Does what has fallen due by `now`.
    fn tick(&mut self, now: Nanos, outbox: &mut impl Outbox);

    /// See [`Shard::hold_back`].
    fn hold_back(&mut self, frontend: u16);

    /// See [`Shard::let_go`].
    fn let_go(&mut self, now: Nanos, frontend: u16, outbox: &mut impl Outbox);
}

impl<J: ShardJournal> Queue for Shard<J> {
    fn tick(&mut self, now: Nanos, outbox: &mut impl Outbox) {
        Shard::tick(self, now, outbox);
    }

    fn hold_back(&mut self, frontend: u16) {
        Shard::hold_back(self, frontend);
    }

    fn let_go(&mut self, now: Nanos, frontend: u16, outbox: &mut impl Outbox) {
        Shard::let_go(self, now, frontend, outbox);
    }
}

impl<Q: Queue> Hub<Q> {
    /// The shard, without links.
    #[must_use]
    pub fn new(shard: Q) -> Hub<Q> {
        Hub {
            shard,
            ends: Vec::new(),
            resumed: VecDeque::new(),
            refusals: Refusals::default(),
        }
    }

    /// There is a link to a frontend. What an earlier one has left is released before.
    pub fn connect(&mut self, now: Nanos, terms: &Terms) {
        let frontend = terms.awaited.index;
        self.lose(now, frontend);
        let place = usize::from(frontend);
        if self.ends.len() <= place {
            self.ends.resize_with(place + 1, || None);
        }
        self.ends[place] = Some(FarEnd::new(terms));
    }

    /// The link to the frontend is lost: all its sessions are gone, with all that they held.
    pub fn lose(&mut self, now: Nanos, frontend: u16) {
        let end = self.ends.get_mut(usize::from(frontend));
        let Some(end) = end.and_then(Option::take) else {
            return;
        };
        // None of them is to be given what another of them has held.
        self.shard.hold_back(frontend);
        let outbox = &mut Outlet {
            ends: &mut self.ends,
            resumed: &mut self.resumed,
        };
        for session in end.sessions() {
            self.shard.detach(now, SHARD, session, outbox);
        }
        self.shard.let_go(now, frontend, outbox);
        self.do_kept(now);
    }

    /// How frames of the frontend are told from what is none. None without a link.
    #[must_use]
    pub fn expected(&self, frontend: u16) -> Option<Expected> {
        let end = self.ends.get(usize::from(frontend))?.as_ref()?;
        Some(*end.expected())
    }

    /// Obeys what the frontend has sent.
    ///
    /// # Errors
    /// What is wrong with it: the link is to be given up, and the frontend to be told. `None` if it
    /// says itself that it goes.
    pub fn take(
        &mut self,
        now: Nanos,
        frontend: u16,
        frame: Frame<'_>,
    ) -> Result<(), Option<Refusal>> {
        let end = self.ends.get_mut(usize::from(frontend));
        let Some(end) = end.and_then(Option::as_mut) else {
            return Ok(());
        };
        let asked = end.take(frame);
        let done = asked.and_then(|asked| self.obey(now, asked));
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err(None),
            Err(refusal) => {
                self.refusals.count(refusal);
                Err(Some(refusal))
            }
        }
    }

    /// Does what has fallen due.
    pub fn tick(&mut self, now: Nanos) {
        let outbox = &mut Outlet {
            ends: &mut self.ends,
            resumed: &mut self.resumed,
        };
        self.shard.tick(now, outbox);
        self.do_kept(now);
    }

    /// The frontend is too slow for what it is told, or is not any more. Its sessions that wait are
    /// given no job meanwhile.
    pub fn set_slow(&mut self, now: Nanos, frontend: u16, is_slow: bool) {
        if is_slow {
            self.shard.hold_back(frontend);
        } else {
            let outbox = &mut Outlet {
                ends: &mut self.ends,
                resumed: &mut self.resumed,
            };
            self.shard.let_go(now, frontend, outbox);
            self.do_kept(now);
        }
    }

    /// Whether more is to go to the frontend than may be at once.
    #[must_use]
    pub fn is_over_limit(&self, frontend: u16) -> bool {
        let end = self.ends.get(usize::from(frontend));
        end.and_then(Option::as_ref)
            .is_some_and(FarEnd::is_over_limit)
    }

    /// Appends what is to go to the frontend, of large bodies as much as there is `room` for in
    /// bytes, if all that it says is confirmed. Whether more has no room.
    pub fn write(
        &mut self,
        frontend: u16,
        out: &mut Vec<u8>,
        room: usize,
        confirmed: Ticket,
    ) -> bool {
        self.end(frontend)
            .is_some_and(|end| end.write(out, room, confirmed))
    }

    /// Tells the frontend why nothing more will be said to it.
    pub fn part(&mut self, frontend: u16, why: Option<Refusal>) {
        if let Some(end) = self.end(frontend) {
            end.part(why);
        }
    }

    /// How often what frontends sent was refused.
    #[must_use]
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    fn end(&mut self, frontend: u16) -> Option<&mut FarEnd> {
        self.ends.get_mut(usize::from(frontend))?.as_mut()
    }

    /// Whether the link goes on.
    fn obey(&mut self, now: Nanos, asked: Asked<'_>) -> Result<bool, Refusal> {
        let outbox = &mut Outlet {
            ends: &mut self.ends,
            resumed: &mut self.resumed,
        };
        match asked {
            Asked::Attach(session) => self.shard.attach(SHARD, session),
            Asked::Detach(session) => self.shard.detach(now, SHARD, session, outbox),
            Asked::Op {
                from,
                kind,
                message,
                is_behind: false,
            } => self.submit(now, from, kind, &message, None)?,
            Asked::Op {
                from,
                kind,
                message,
                is_behind: true,
            } => self.keep(from, kind, message)?,
            Asked::Refused(refusal) => self.refusals.count(refusal),
            Asked::Nothing => {}
            Asked::Goodbye(_) => return Ok(false),
        }
        self.do_kept(now);
        Ok(true)
    }

    /// Keeps what a session asks until it does not wait any more.
    fn keep(&mut self, from: Caller, kind: OpKind, message: Message<'_>) -> Result<(), Refusal> {
        if !lacks_body(kind, &message) {
            // What says nothing is to be refused at once.
            op::decode(kind, &message.meta, message.body.clone())?;
        }
        match self.end(from.session.frontend) {
            Some(end) => end.keep(from, kind, message),
            None => Ok(()),
        }
    }

    /// Does what was kept of sessions that have been answered meanwhile, which may answer others.
    fn do_kept(&mut self, now: Nanos) {
        while let Some(session) = self.resumed.pop_front() {
            while let Some(kept) = self
                .end(session.frontend)
                .and_then(|end| end.next_kept(session))
            {
                let done = self.submit(now, kept.from, kept.kind, &kept.message, Some(now));
                debug_assert!(done.is_ok(), "what is kept says something");
            }
        }
    }

    /// `begun` is when a command was begun, if its frontend cannot say.
    fn submit(
        &mut self,
        now: Nanos,
        from: Caller,
        kind: OpKind,
        message: &Message<'_>,
        begun: Option<Nanos>,
    ) -> Result<(), Refusal> {
        let outbox = &mut Outlet {
            ends: &mut self.ends,
            resumed: &mut self.resumed,
        };
        if lacks_body(kind, message) {
            outbox.emit(from, Event::OutOfMemory);
            return Ok(());
        }
        let mut op = op::decode(kind, &message.meta, message.body.clone())?;
        match &mut op {
            Op::Put(put) => put.created_at = begun.unwrap_or(put.created_at),
            Op::Reserve {
                style: Style::Take,
                wait: true,
            } => outbox.begin_wait(from),
            _ => {}
        }
        self.shard.submit(now, SHARD, from, op, outbox);
        Ok(())
    }
}

/// Whether there was no memory for the body.
fn lacks_body(kind: OpKind, message: &Message<'_>) -> bool {
    kind.has_body() && message.body.is_none()
}

/// Where a shard speaks to sessions of any frontend.
struct Outlet<'a> {
    ends: &'a mut [Option<FarEnd>],
    resumed: &'a mut VecDeque<SessionId>,
}

impl Outlet<'_> {
    fn end(&mut self, to: Caller) -> Option<&mut FarEnd> {
        let end = self.ends.get_mut(usize::from(to.session.frontend));
        end.and_then(Option::as_mut)
    }

    /// The session waits with this ask, unless it is answered at once.
    fn begin_wait(&mut self, from: Caller) {
        if let Some(end) = self.end(from) {
            end.begin_wait(from);
        }
    }
}

impl Outbox for Outlet<'_> {
    fn emit(&mut self, to: Caller, event: Event<'_>) {
        self.emit_after(Ticket::default(), to, event);
    }

    fn emit_after(&mut self, ticket: Ticket, to: Caller, event: Event<'_>) {
        if let Some(end) = self.end(to)
            && end.event(ticket, to, &event)
        {
            self.resumed.push_back(to.session);
        }
    }
}
