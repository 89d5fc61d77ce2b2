//! The frontend's end of its link to one owner.
//!
//! What sessions ask goes out as long as there is credit; what is asked beyond it waits here, in
//! order, and is never more than what sessions had begun when the credit ran out, because they
//! begin nothing new then ([`NearEnd::reach`]). A link that is lost takes everything with it:
//! nothing is ever sent again over the next one.

use std::collections::HashSet;
use std::collections::VecDeque;

use rustc_hash::FxBuildHasher;

use crate::base::body::{Body, BodyCow};
use crate::base::ids::{Caller, Seq, SessionId, ShardId};
use crate::base::limits::BODY_PART_LEN_MAX;
use crate::channel::Terms;
use crate::channel::speaker::Speaker;
use crate::engine::op::Op;
use crate::session::shards::Reach;
use crate::wire::assembler::{Assembler, Message};
use crate::wire::control::{self, Control, Hello};
use crate::wire::credit::{Credit, cost_of};
use crate::wire::frame::{Frame, Head, Rest, write_bare};
use crate::wire::header::{Ends, Expected};
use crate::wire::kind::{ControlKind, EventKind, Kind};
use crate::wire::op;
use crate::wire::refusal::Refusal;

/// See the module's description.
#[derive(Debug)]
pub struct NearEnd {
    shard: ShardId,
    /// None while there is no link.
    link: Option<Linked>,
}

/// A link that is there.
#[derive(Debug)]
struct Linked {
    /// What the owner has to say first.
    awaited: Hello,
    expected: Expected,
    /// Index of the frontend whose end this is.
    frontend: u16,
    /// The owner has said who it is.
    is_greeted: bool,
    speaker: Speaker,
    credit: Credit,
    /// What there was no credit for, and what came after it, in order.
    waiting: VecDeque<Waiting>,
    /// Numbers of the sessions whose attach is among what waits.
    unsent: HashSet<u64, FxBuildHasher>,
    /// Numbers of the sessions that the owner knows, or will when it has read everything.
    attached: HashSet<u64, FxBuildHasher>,
    /// How many sessions were attached.
    attach_count: u64,
    assembler: Assembler,
}

/// A frame that is to go out when there is credit for it and for all before it.
#[derive(Debug)]
struct Waiting {
    session: u64,
    /// Whether a client has asked it, other than that its session is introduced.
    is_asked: bool,
    /// What it takes, if it takes any.
    cost: Option<u64>,
    bytes: Vec<u8>,
    rest: Option<(Rest, Body)>,
}

/// What an owner has said.
#[derive(Debug)]
pub enum Heard<'a> {
    /// Who it is: from now on it can be asked.
    Greeting,
    /// Something to a session.
    Event {
        /// To whom, about what.
        to: Caller,
        /// What.
        kind: EventKind,
        /// Its fields and body. There is no memory for the body if it has none though its kind has.
        message: Message<'a>,
    },
    /// So many asks more can be made.
    Credit {
        /// How many.
        asks: u32,
    },
    /// What the session asked has been refused and has changed nothing.
    Refused {
        /// Who asked.
        session: SessionId,
        /// Why.
        why: Refusal,
    },
    /// It says nothing more, because of what we have said if there is a reason.
    Goodbye(Option<Refusal>),
    /// Nothing that matters by itself: a part of a body, or something to a session that is gone.
    Nothing,
}

impl NearEnd {
    /// The end of a link that is not there yet, to this shard.
    #[must_use]
    pub fn new(shard: ShardId) -> NearEnd {
        NearEnd { shard, link: None }
    }

    /// There is a link. What was left of an earlier one is dropped.
    pub fn connect(&mut self, terms: &Terms) {
        let (own, awaited) = (terms.own, terms.awaited);
        let mut speaker = Speaker::new(own.ends);
        speaker.say(&Control::Hello(own));
        self.link = Some(Linked {
            awaited,
            expected: Expected {
                ends: awaited.ends,
                from: awaited.role,
                body_len_max: terms.body_len_max,
            },
            frontend: own.index,
            is_greeted: false,
            speaker,
            credit: Credit::of(terms.window),
            waiting: VecDeque::new(),
            unsent: HashSet::default(),
            attached: HashSet::default(),
            attach_count: 0,
            // Each body is one that a session has asked for, which is where they are limited.
            assembler: Assembler::new(u64::MAX),
        });
    }

    /// The link is lost with all that was under way. Whether there was one that could be asked.
    pub fn lose(&mut self) -> bool {
        self.link.take().is_some_and(|link| link.is_greeted)
    }

    /// Whether the owner can be asked, or will be when it grants credit.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_greeted)
    }

    /// Whether a session may begin to ask.
    #[must_use]
    pub fn reach(&self) -> Reach {
        match &self.link {
            Some(link) if link.is_greeted => {
                if link.waiting.is_empty() && !link.credit.is_empty() {
                    Reach::Now
                } else {
                    Reach::Full(self.shard)
                }
            }
            Some(_) | None => Reach::Down(self.shard),
        }
    }

    /// How frames that come are told from what is none. None while there is no link.
    #[must_use]
    pub fn expected(&self) -> Option<&Expected> {
        self.link.as_ref().map(|link| &link.expected)
    }

    /// The session is about to ask.
    pub fn attach(&mut self, session: SessionId) {
        let Some(link) = &mut self.link else { return };
        link.attached.insert(session.number);
        link.attach_count += 1;
        if !link.waiting.is_empty() {
            link.unsent.insert(session.number);
        }
        let number = Caller {
            session,
            seq: Seq(link.attach_count),
        };
        link.control(number, &Control::Attach);
    }

    /// The session asks.
    pub fn submit(&mut self, from: Caller, op: &Op<'_>) {
        let Some(link) = &mut self.link else { return };
        let body = op::body_of(op);
        let cost = body.map_or(0, |body| cost_of(body.len() as u32));
        link.push(from, Some(cost), body, |out, ends| {
            op::write(out, ends, from, op, BODY_PART_LEN_MAX)
        });
    }

    /// The session is gone. Comes after all that it has asked, bodies included: a client that puts
    /// and goes has put. What the owner still says to it is dropped.
    pub fn detach(&mut self, session: SessionId) {
        let Some(link) = &mut self.link else { return };
        if link.attached.remove(&session.number) {
            link.assembler.forget(session.number);
            if link.take_back(session.number) {
                return;
            }
            let seq = Seq::NONE;
            link.control(Caller { session, seq }, &Control::Detach);
        }
    }

    /// Says why nothing more will be said.
    pub fn part(&mut self, why: Option<Refusal>) {
        if let Some(link) = &mut self.link {
            link.speaker.say(&Control::Goodbye(why));
        }
    }

    /// Whether there is something to write.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.link
            .as_ref()
            .is_some_and(|link| !link.speaker.is_empty())
    }

    /// Frames that wait for credit.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.waiting.len())
    }

    /// Appends what is to go out, of large bodies as much as there is `room` for in bytes. Whether
    /// more has no room.
    pub fn write(&mut self, out: &mut Vec<u8>, room: usize) -> bool {
        self.link
            .as_mut()
            .is_some_and(|link| link.speaker.write(out, room))
    }

    /// Takes a frame that the owner has sent.
    ///
    /// # Errors
    /// What is wrong with it. The link is to be given up: nothing that follows can be trusted.
    pub fn take<'a>(&mut self, frame: Frame<'a>) -> Result<Heard<'a>, Refusal> {
        let Some(link) = &mut self.link else {
            return Ok(Heard::Nothing);
        };
        link.take(frame)
    }
}

impl Linked {
    fn control(&mut self, caller: Caller, control: &Control<'_>) {
        self.push(caller, None, None, |out, ends| {
            let head = Head::about(ends, Kind::Control(control.kind()), caller);
            write_bare(out, head, |out| control.write_fields(out));
            None
        });
    }

    /// Sends a frame of the session, or keeps it until there is credit.
    fn push(
        &mut self,
        from: Caller,
        cost: Option<u64>,
        body: Option<&BodyCow<'_>>,
        write: impl FnOnce(&mut Vec<u8>, Ends) -> Option<Rest>,
    ) {
        let (ends, session) = (self.speaker.ends(), from.session.number);
        let is_free = self.waiting.is_empty();
        if is_free && cost.is_none_or(|cost| self.credit.spend(cost).is_ok()) {
            self.speaker.push(session, body, |out| write(out, ends));
            return;
        }
        let mut bytes = Vec::new();
        let rest = write(&mut bytes, ends).and_then(|rest| Some((rest, body?.to_body())));
        self.waiting.push_back(Waiting {
            session,
            is_asked: cost.is_some() && from.seq != Seq::NONE,
            cost,
            bytes,
            rest,
        });
    }

    /// Drops what waits to introduce a session that is gone, if nothing of it has gone out and it
    /// has asked nothing: otherwise clients that come and go would pile up before an owner that
    /// does nothing. Whether there is nothing to detach.
    fn take_back(&mut self, session: u64) -> bool {
        let waits = self.unsent.remove(&session);
        let mut waiting = self.waiting.iter();
        if !waits || waiting.any(|one| one.session == session && one.is_asked) {
            return false;
        }
        self.waiting.retain(|one| one.session != session);
        self.release();
        true
    }

    /// Sends what there is credit for now.
    fn release(&mut self) {
        while let Some(first) = self.waiting.front()
            && first
                .cost
                .is_none_or(|cost| self.credit.spend(cost).is_ok())
            && let Some(first) = self.waiting.pop_front()
        {
            self.unsent.remove(&first.session);
            let (rest, body) = first.rest.unzip();
            let body = body.map(BodyCow::Shared);
            self.speaker.push(first.session, body.as_ref(), |out| {
                out.extend_from_slice(&first.bytes);
                rest
            });
        }
    }

    fn take<'a>(&mut self, frame: Frame<'a>) -> Result<Heard<'a>, Refusal> {
        let caller = frame.header.caller(self.frontend);
        match frame.header.kind {
            Kind::Control(kind) => self.take_control(kind, caller, frame.meta),
            Kind::Event(_) if !self.is_greeted => Err(Refusal::Order),
            Kind::Event(kind) => {
                if !self.attached.contains(&caller.session.number) {
                    return Ok(Heard::Nothing);
                }
                let message = self.assembler.take(frame)?;
                Ok(message.map_or(Heard::Nothing, |message| Heard::Event {
                    to: caller,
                    kind,
                    message,
                }))
            }
            Kind::Op(_) => Err(Refusal::Kind),
        }
    }

    fn take_control<'a>(
        &mut self,
        kind: ControlKind,
        caller: Caller,
        meta: &[u8],
    ) -> Result<Heard<'a>, Refusal> {
        let said = control::decode(kind, meta)?;
        // Whoever has not said who it is can say nothing else, but that it goes.
        if let Control::Goodbye(why) = said {
            return Ok(Heard::Goodbye(why));
        }
        if let Control::Hello(hello) = said {
            if self.is_greeted {
                return Err(Refusal::Order);
            }
            hello.check(&self.awaited)?;
            self.is_greeted = true;
            return Ok(Heard::Greeting);
        }
        if !self.is_greeted {
            return Err(Refusal::Order);
        }
        if let Control::Credit(amount) = said {
            self.credit.grant(amount)?;
            self.release();
            return Ok(Heard::Credit { asks: amount.asks });
        }
        if let Control::Refused(why) = said {
            let session = caller.session;
            return Ok(Heard::Refused { session, why });
        }
        Err(Refusal::Kind)
    }
}
