//! The owner's end of its link to one frontend: what comes is checked before anything is changed,
//! and what is refused is counted by its kind.
//!
//! The checks are those of [`crate::wire`], then in the order of their numbers: the session is
//! attached, an attach is younger than every attach before it, the request is younger than the
//! session's last, parts follow one another, bodies under way have room, credit is there, and the
//! fields say something.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use crate::base::ids::{Caller, Seq, SessionId};
use crate::base::limits::{BODY_PART_LEN_MAX, LINK_BACKLOG_BYTES_MAX, LINK_BODIES_BYTES_MAX};
use crate::channel::Terms;
use crate::channel::behind::{Behind, Kept};
use crate::channel::held::Held;
use crate::channel::speaker::Speaker;
use crate::engine::event::Event;
use crate::engine::host::Ticket;
use crate::wire::assembler::{Assembler, Message};
use crate::wire::control::{self, Control, Hello};
use crate::wire::credit::{Credit, Owed, cost_of};
use crate::wire::event;
use crate::wire::frame::Frame;
use crate::wire::header::{Expected, Header};
use crate::wire::kind::{ControlKind, Kind, OpKind};
use crate::wire::refusal::Refusal;

/// See the module's description.
#[derive(Debug)]
pub struct FarEnd {
    frontend: u16,
    /// What the frontend has to say first.
    awaited: Hello,
    expected: Expected,
    is_greeted: bool,
    speaker: Speaker,
    /// What has to be confirmed before it is said.
    held: Held,
    /// The attached sessions by their numbers.
    sessions: HashMap<u64, Known, FxBuildHasher>,
    /// Number of the latest attach.
    last_attach: Seq,
    /// What the frontend may still ask.
    credit: Credit,
    /// What it is granted anew with the next frames that go.
    owed: Owed,
    assembler: Assembler,
}

/// An attached session.
#[derive(Debug)]
struct Known {
    /// The last of its requests.
    last: Seq,
    /// Bytes of credit that the request took of which not all has come.
    cost: u64,
    behind: Behind,
}

impl Known {
    /// The checks that need to know the session.
    fn check(&self, header: &Header, kind: OpKind) -> Result<(), Refusal> {
        let (request, last) = (header.request, self.last);
        let is_in_order = if header.continues {
            request == last
        } else if kind.refers_back() {
            request != Seq::NONE && request <= last
        } else {
            request > last || (kind.introduces() && request == Seq::NONE && last == Seq::NONE)
        };
        if is_in_order {
            Ok(())
        } else {
            Err(Refusal::Request)
        }
    }
}

/// What a frontend has asked.
#[derive(Debug)]
pub enum Asked<'a> {
    /// A session is about to ask.
    Attach(SessionId),
    /// A session is gone. It may have been gone before.
    Detach(SessionId),
    /// A session asks.
    Op {
        /// Who, and under which number.
        from: Caller,
        /// What.
        kind: OpKind,
        /// Its fields and body. There is no memory for the body if it has none though its kind has.
        message: Message<'a>,
        /// Whether it is to be kept: the session waits, or has asks that are kept.
        is_behind: bool,
    },
    /// It says nothing more, because of what we have said if there is a reason.
    Goodbye(Option<Refusal>),
    /// Nothing that has to be done: a part of a body, a greeting.
    Nothing,
    /// It was refused, which concerns the session alone: its frontend has been told.
    Refused(Refusal),
}

impl FarEnd {
    /// The end of a new link.
    #[must_use]
    pub fn new(terms: &Terms) -> FarEnd {
        let (own, awaited) = (terms.own, terms.awaited);
        let mut speaker = Speaker::new(own.ends);
        speaker.say(&Control::Hello(own));
        FarEnd {
            frontend: awaited.index,
            awaited,
            expected: Expected {
                ends: awaited.ends,
                from: awaited.role,
                body_len_max: terms.body_len_max,
            },
            is_greeted: false,
            speaker,
            held: Held::default(),
            sessions: HashMap::default(),
            last_attach: Seq::NONE,
            credit: Credit::of(terms.window),
            owed: Owed::default(),
            assembler: Assembler::new(terms.owner_budget()),
        }
    }

    /// How frames that come are told from what is none.
    #[must_use]
    pub fn expected(&self) -> &Expected {
        &self.expected
    }

    /// The sessions that are attached, in the order of their numbers.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionId> {
        let frontend = self.frontend;
        let session = |&number| SessionId { frontend, number };
        let mut all: Vec<SessionId> = self.sessions.keys().map(session).collect();
        all.sort_unstable();
        all
    }

    /// Takes a frame that the frontend has sent.
    ///
    /// # Errors
    /// What is wrong with it, if it costs the link: nothing that follows can be trusted. Nothing
    /// has changed.
    pub fn take<'a>(&mut self, frame: Frame<'a>) -> Result<Asked<'a>, Refusal> {
        let header = frame.header;
        let caller = header.caller(self.frontend);
        match header.kind {
            Kind::Control(kind) => self.take_control(kind, caller, frame.meta),
            Kind::Op(_) if !self.is_greeted => Err(Refusal::Order),
            Kind::Op(kind) => match self.take_op(caller, kind, frame) {
                Err(refusal) if !refusal.costs_link() => Ok(self.refuse(caller, &header, refusal)),
                taken => taken,
            },
            Kind::Event(_) => Err(Refusal::Kind),
        }
    }

    /// The session asks to be given a job as soon as there is one: until it is answered what it
    /// asks meanwhile is to be kept.
    pub fn begin_wait(&mut self, from: Caller) {
        if let Some(known) = self.sessions.get_mut(&from.session.number) {
            known.behind.begin_wait(from.seq);
        }
    }

    /// Keeps what the session asks until it does not wait any more.
    ///
    /// # Errors
    /// [`Refusal::Credit`] if more is kept of it already than may be.
    pub fn keep(
        &mut self,
        from: Caller,
        kind: OpKind,
        message: Message<'_>,
    ) -> Result<(), Refusal> {
        match self.sessions.get_mut(&from.session.number) {
            Some(known) => known.behind.keep(from, kind, message),
            None => Ok(()),
        }
    }

    /// Takes what is to be done next of what was kept of the session, if it does not wait.
    pub fn next_kept(&mut self, session: SessionId) -> Option<Kept> {
        self.sessions.get_mut(&session.number)?.behind.next()
    }

    /// The session is told something. It leaves when `ticket` is confirmed, and after all that was
    /// said before. Whether something that was kept of the session can be done now.
    pub fn event(&mut self, ticket: Ticket, to: Caller, event: &Event<'_>) -> bool {
        let Some(known) = self.sessions.get_mut(&to.session.number) else {
            return false;
        };
        let ends_wait = matches!(event, Event::Reserved { .. } | Event::Cancelled);
        let can_go_on = ends_wait && known.behind.end_wait(to.seq);
        self.say(ticket, to, event);
        can_go_on
    }

    fn say(&mut self, ticket: Ticket, to: Caller, event: &Event<'_>) {
        if ticket == Ticket::default() && self.held.is_empty() {
            return self.speaker.event(to, event);
        }
        let (session, body) = (to.session.number, event::body_of(event));
        let ends = self.speaker.ends();
        self.held.push(ticket, session, body, ends, |out, ends| {
            event::write(out, ends, to, event, BODY_PART_LEN_MAX)
        });
    }

    /// Says why nothing more will be said. What is held is dropped: it may never be confirmed.
    pub fn part(&mut self, why: Option<Refusal>) {
        self.held = Held::default();
        self.speaker.say(&Control::Goodbye(why));
    }

    /// Whether more is to go out than may be at once.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.speaker.whole_len() + self.held.len() > LINK_BACKLOG_BYTES_MAX
            || self.speaker.parts_len() > LINK_BODIES_BYTES_MAX
    }

    /// Appends what is to go out, of large bodies as much as there is `room` for in bytes. What
    /// says something that is not confirmed yet stays. Whether more has no room.
    pub fn write(&mut self, out: &mut Vec<u8>, room: usize, confirmed: Ticket) -> bool {
        if let Some(amount) = self.owed.take() {
            let granted = self.credit.grant(amount);
            debug_assert!(granted.is_ok(), "what is owed was spent");
            self.speaker.say(&Control::Credit(amount));
        }
        self.held.release(confirmed, &mut self.speaker);
        self.speaker.write(out, room)
    }

    fn take_control<'a>(
        &mut self,
        kind: ControlKind,
        caller: Caller,
        meta: &[u8],
    ) -> Result<Asked<'a>, Refusal> {
        let said = control::decode(kind, meta)?;
        if let Control::Goodbye(why) = said {
            return Ok(Asked::Goodbye(why));
        }
        if let Control::Hello(hello) = said {
            if self.is_greeted {
                return Err(Refusal::Order);
            }
            hello.check(&self.awaited)?;
            self.is_greeted = true;
            return Ok(Asked::Nothing);
        }
        if !self.is_greeted {
            return Err(Refusal::Order);
        }
        if said == Control::Attach {
            return Ok(self.attach(caller));
        }
        if said == Control::Detach {
            return Ok(self.detach(caller.session));
        }
        Err(Refusal::Kind)
    }

    /// An attach has a number of its own, which grows. One that comes late, after the session was
    /// detached, has been overtaken and would undo the clean-up.
    fn attach<'a>(&mut self, caller: Caller) -> Asked<'a> {
        if caller.seq <= self.last_attach {
            self.speaker
                .say_about(caller, &Control::Refused(Refusal::LateAttach));
            return Asked::Refused(Refusal::LateAttach);
        }
        self.last_attach = caller.seq;
        let known = Known {
            last: Seq::NONE,
            cost: 0,
            behind: Behind::default(),
        };
        self.sessions.insert(caller.session.number, known);
        Asked::Attach(caller.session)
    }

    /// A detach that is repeated finds nothing to do.
    fn detach<'a>(&mut self, session: SessionId) -> Asked<'a> {
        if self.sessions.remove(&session.number).is_none() {
            return Asked::Nothing;
        }
        self.held.forget(session.number);
        self.speaker.forget(session.number);
        Asked::Detach(session)
    }

    fn take_op<'a>(
        &mut self,
        from: Caller,
        kind: OpKind,
        frame: Frame<'a>,
    ) -> Result<Asked<'a>, Refusal> {
        let header = frame.header;
        let Some(known) = self.sessions.get_mut(&header.session) else {
            return Err(Refusal::Session);
        };
        known.check(&header, kind)?;
        let message = self.assembler.take(frame)?;
        if !header.continues {
            let cost = cost_of(header.body_len);
            self.credit.spend(cost)?;
            known.last = known.last.max(header.request);
            known.cost = cost;
        }
        let Some(message) = message else {
            return Ok(Asked::Nothing);
        };
        self.owed.add(known.cost);
        let is_behind = known.behind.is_in_the_way();
        Ok(Asked::Op {
            from,
            kind,
            message,
            is_behind: is_behind && !kind.refers_back(),
        })
    }
    /// Tells the frontend. What it had to pay it gets back.
    fn refuse<'a>(&mut self, caller: Caller, header: &Header, refusal: Refusal) -> Asked<'a> {
        if !header.continues {
            let cost = cost_of(header.body_len);
            if self.credit.spend(cost).is_ok() {
                self.owed.add(cost);
            }
            self.speaker.say_about(caller, &Control::Refused(refusal));
        }
        Asked::Refused(refusal)
    }
}
