//! One direction of a link: bytes. What is said is encoded on the one side, in parts so small that
//! sessions interleave, and put together and decoded on the other.

use std::collections::VecDeque;

use beanshard::base::body::Body;
use beanshard::base::ids::{Caller, Fingerprint, Generation, Seq, SessionId};
use beanshard::engine::event::Event;
use beanshard::engine::op::Op;
use beanshard::wire::assembler::{Assembler, Message};
use beanshard::wire::control::{self, Control};
use beanshard::wire::frame::{Frame, Head, Rest, write_bare};
use beanshard::wire::header::{Ends, Expected};
use beanshard::wire::kind::{Kind, Sender};
use beanshard::wire::outgoing::Outgoing;
use beanshard::wire::{event, op};

use crate::link::Ask;
use crate::owned::{Owned, own_op};

/// Bytes of a body that a frame carries here.
const PART_LEN_MAX: usize = 50;

/// Bytes of bodies that may be under way in one direction.
const BUDGET: u64 = 1 << 20;

const ENDS: Ends = Ends {
    topology: Fingerprint(0x5eed),
    sender: Generation(1),
    receiver: Generation(2),
};

/// Bytes on their way, and what they were by the time they are there.
pub(crate) struct Wire<T> {
    from: Sender,
    outgoing: Outgoing,
    bytes: Vec<u8>,
    assembler: Assembler,
    arrived: VecDeque<T>,
    /// How often a frame came in the middle of another session's body.
    interleaved: u64,
}

/// What can come out of the bytes.
pub(crate) trait Heard: Sized {
    fn hear(caller: Caller, message: &Message<'_>) -> Self;
}

impl Heard for Ask {
    fn hear(caller: Caller, message: &Message<'_>) -> Ask {
        match message.kind {
            Kind::Op(kind) => {
                let asked = op::decode(kind, &message.meta, message.body.clone());
                Ask::Submit(caller, own_op(asked.expect("it is an op")))
            }
            Kind::Control(kind) => match control::decode(kind, &message.meta) {
                Ok(Control::Attach) => Ask::Attach(caller.session),
                Ok(Control::Detach) => Ask::Detach(caller.session),
                other => panic!("a frontend says {other:?}"),
            },
            Kind::Event(kind) => panic!("a frontend says {kind:?}"),
        }
    }
}

impl Heard for (Caller, Owned) {
    fn hear(caller: Caller, message: &Message<'_>) -> (Caller, Owned) {
        let Kind::Event(kind) = message.kind else {
            panic!("an owner says {:?}", message.kind);
        };
        let event = event::decode(kind, &message.meta, message.body.as_ref());
        (caller, Owned::of(&event.expect("it is an event")))
    }
}

impl<T: Heard> Wire<T> {
    pub(crate) fn new(from: Sender) -> Wire<T> {
        Wire {
            from,
            outgoing: Outgoing::default(),
            bytes: Vec::new(),
            assembler: Assembler::new(BUDGET),
            arrived: VecDeque::new(),
            interleaved: 0,
        }
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.bytes.is_empty() && self.outgoing.is_empty()
    }

    /// What has arrived first.
    pub(crate) fn front(&self) -> Option<&T> {
        self.arrived.front()
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        self.flow();
        self.arrived.pop_front()
    }

    /// Unless something is there that has not been heard, lets all bytes take their way, a part of
    /// each session in turn. What has no body, or a small one, overtakes the bodies of others.
    pub(crate) fn flow(&mut self) {
        if !self.arrived.is_empty() {
            return;
        }
        while self.outgoing.turn(&mut self.bytes, PART_LEN_MAX) {}
        let expected = Expected {
            ends: ENDS,
            from: self.from,
            body_len_max: 1 << 20,
        };
        let mut bytes = &self.bytes[..];
        while !bytes.is_empty() {
            let frame = Frame::cut(&mut bytes, &expected).expect("nothing is refused");
            let frame = frame.expect("frames are whole");
            let caller = frame.header.caller(0);
            let before = self.assembler.held();
            if let Some(message) = self.assembler.take(frame).expect("nothing is refused") {
                let cut_in = before > 0 && before == self.assembler.held();
                self.interleaved += u64::from(cut_in);
                self.arrived.push_back(T::hear(caller, &message));
            }
        }
        self.bytes.clear();
        assert_eq!(self.assembler.held(), 0, "every body has come to its end");
    }

    /// How often a frame came in the middle of another session's body. Counts from 0 then.
    pub(crate) fn take_interleaved(&mut self) -> u64 {
        std::mem::take(&mut self.interleaved)
    }

    fn push(
        &mut self,
        session: SessionId,
        body: Option<&Body>,
        write: impl FnOnce(&mut Vec<u8>) -> Option<Rest>,
    ) {
        let number = session.number;
        self.outgoing.push(&mut self.bytes, number, body, write);
    }
}

impl Wire<Ask> {
    pub(crate) fn attach(&mut self, session: SessionId) {
        self.control(session, &Control::Attach);
    }

    /// Comes after all that the session has asked, bodies included: a client that puts and goes
    /// has put.
    pub(crate) fn detach(&mut self, session: SessionId) {
        self.control(session, &Control::Detach);
    }

    pub(crate) fn submit(&mut self, from: Caller, op: &Op<'_>) {
        self.push(from.session, op::body_of(op), |out| {
            op::write(out, ENDS, from, op, PART_LEN_MAX)
        });
    }

    fn control(&mut self, session: SessionId, control: &Control<'_>) {
        let caller = Caller {
            session,
            seq: Seq::NONE,
        };
        let head = Head::about(ENDS, Kind::Control(control.kind()), caller);
        self.push(session, None, |out| {
            write_bare(out, head, |out| control.write_fields(out));
            None
        });
    }
}

impl Wire<(Caller, Owned)> {
    pub(crate) fn emit(&mut self, to: Caller, event: &Event<'_>) {
        self.push(to.session, event::body_of(event), |out| {
            event::write(out, ENDS, to, event, PART_LEN_MAX)
        });
    }
}
