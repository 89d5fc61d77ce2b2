//! A client: what it has said and not been answered, what it has been answered, and whether these
//! answers are such as it can have.

use std::collections::VecDeque;

use beanshard::base::ids::{JobId, Seq, SessionId};
use beanshard::base::limits::SAFETY_MARGIN_SECS;
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;

use crate::command::{Command, Fate, Role};
use crate::reply::Reply;
use crate::truth::Truth;

/// See the module's description.
pub(crate) struct Client {
    pub(crate) id: SessionId,
    /// Its name in transcripts.
    pub(crate) number: u64,
    pub(crate) role: Role,
    /// Bytes that it has sent and that have not arrived.
    pub(crate) pending: Vec<u8>,
    /// Bytes that have arrived and that the session has not taken.
    pub(crate) unfed: Vec<u8>,
    /// Bytes that it has sent, and that have arrived, since the start.
    pub(crate) written: u64,
    pub(crate) arrived: u64,
    /// Bytes that it has received and that are less than a reply.
    pub(crate) received: Vec<u8>,
    /// Commands that are not answered.
    pub(crate) sent: VecDeque<Sent>,
    /// What it uses and watches, as of the last answer.
    pub(crate) used: &'static str,
    pub(crate) watched: Vec<&'static str>,
    /// Jobs that it has or had.
    pub(crate) own: Vec<u64>,
    /// What its session was told of reservations.
    pub(crate) told: Vec<Told>,
    /// The latest ask that its session has heard about, and the one that was up to then when its
    /// last reserve without a job was answered.
    heard: Seq,
    empty: Seq,
    /// When reserves that are not answered were read by the session.
    pub(crate) reserves: VecDeque<Nanos>,
    pub(crate) is_producer: bool,
    pub(crate) is_worker: bool,
    pub(crate) input_ended: bool,
    /// The session obeys nothing any more.
    pub(crate) is_closing: bool,
    /// The session would not take all bytes: they are to be fed again when it is touched.
    pub(crate) must_feed: bool,
    pub(crate) is_touched: bool,
    pub(crate) last: Option<Reply>,
}

/// A command that is not answered.
pub(crate) struct Sent {
    pub(crate) command: Command,
    /// Where in the client's stream of bytes it ends.
    pub(crate) end: u64,
}

/// A reservation as a session knows of it, and when it did.
pub(crate) struct Told {
    pub(crate) id: JobId,
    pub(crate) deadline: Nanos,
    since: Nanos,
    until: Option<Nanos>,
}

impl Told {
    pub(crate) fn is_open(&self) -> bool {
        self.until.is_none()
    }

    pub(crate) fn margin_start(&self) -> Nanos {
        self.deadline.before(Secs(SAFETY_MARGIN_SECS))
    }

    /// Whether there was a moment in this span at which the session had to be warned.
    fn warns_within(&self, from: Nanos, to: Nanos) -> bool {
        let first = from.max(self.since).max(self.margin_start());
        let last = self.until.map_or(to, |until| until.min(to));
        first <= last && first < self.deadline
    }
}

impl Client {
    pub(crate) fn new(id: SessionId, number: u64, role: Role) -> Client {
        Client {
            id,
            number,
            role,
            pending: Vec::new(),
            unfed: Vec::new(),
            written: 0,
            arrived: 0,
            received: Vec::new(),
            sent: VecDeque::new(),
            used: "default",
            watched: vec!["default"],
            own: Vec::new(),
            told: Vec::new(),
            heard: Seq::default(),
            empty: Seq::default(),
            reserves: VecDeque::new(),
            is_producer: false,
            is_worker: false,
            input_ended: false,
            is_closing: false,
            must_feed: false,
            is_touched: false,
            last: None,
        }
    }

    /// Sends a command.
    pub(crate) fn say(&mut self, command: Command) {
        let text = command.text();
        self.written += text.len() as u64;
        self.pending.extend_from_slice(&text);
        let end = self.written;
        self.sent.push_back(Sent { command, end });
    }

    /// Whether it may say something more.
    pub(crate) fn may_speak(&self) -> bool {
        let said_last = |sent: &Sent| matches!(sent.command, Command::Last(_));
        !self.input_ended && !self.is_closing && !self.sent.back().is_some_and(said_last)
    }

    /// Whether it waits for a job, or would if its reserve had been read.
    pub(crate) fn reserves(&self) -> bool {
        let front = self.sent.front();
        front.is_some_and(|sent| sent.command.is_reserve())
    }

    /// Whether everything is answered that has arrived as a whole.
    pub(crate) fn is_answered(&self) -> bool {
        let front = self.sent.front();
        front.is_none_or(|sent| sent.end > self.arrived || matches!(sent.command, Command::Last(_)))
    }

    /// Whether it can still be sure of having the job.
    pub(crate) fn surely_has(&self, id: JobId, now: Nanos) -> bool {
        let mut told = self.told.iter();
        told.any(|told| told.is_open() && told.id == id && told.deadline > now)
            && !self.sent.iter().any(|sent| sent.command.finishes(id.0))
    }

    /// Its session is about to hear this.
    pub(crate) fn note(&mut self, now: Nanos, seq: Seq, event: &Event<'_>) {
        self.heard = self.heard.max(seq);
        let of_reserve = matches!(
            event,
            Event::NoJob
                | Event::Offered { .. }
                | Event::Cancelled
                | Event::Gone
                | Event::Reserved { .. }
        );
        assert!(
            !of_reserve || seq > self.empty,
            "c{} was answered that there is no job, and then comes {event:?}",
            self.number
        );
        let (id, deadline) = match *event {
            Event::Reserved { id, deadline, .. } | Event::Touched { id, deadline } => {
                (id, Some(deadline))
            }
            Event::Deleted { id }
            | Event::Released { id }
            | Event::Buried { id }
            | Event::Expired { id } => (id, None),
            _ => return,
        };
        let mut told = self.told.iter_mut();
        if let Some(told) = told.find(|told| told.is_open() && told.id == id) {
            told.until = Some(now);
        }
        if let Some(deadline) = deadline {
            self.told.push(Told {
                id,
                deadline,
                since: now,
                until: None,
            });
        }
    }

    /// Its session has given an answer. If it is that there was no job, then all shards must have
    /// said all they had to say (R3.13).
    pub(crate) fn note_answer(&mut self, line: &[u8]) {
        if line == b"TIMED_OUT" || line == b"DEADLINE_SOON" {
            self.empty = self.heard;
        }
    }

    /// Takes a reply: it must be one that the command which is next in turn can have.
    pub(crate) fn on_reply(&mut self, now: Nanos, reply: Reply, truth: &Truth) {
        let number = self.number;
        let Some(Sent { command, .. }) = self.sent.pop_front() else {
            panic!("c{number} is answered without having asked: {reply:?}");
        };
        let line = &reply.line;
        assert!(
            command.accepts(&reply),
            "c{number} asked {command:?} and was answered {line:?}"
        );
        if let (true, Some(id)) = (reply.is("RESERVED") || reply.is("FOUND"), reply.id()) {
            let body = &truth.bodies[&JobId(id)];
            assert!(
                body[..] == reply.data,
                "{line} is not the body that was put"
            );
        }
        if let (true, Some(id)) = (reply.is("RESERVED"), reply.id()) {
            self.is_worker = true;
            self.own.push(id);
        }
        match command {
            Command::Put(put) => self.on_put(&reply, put.fate, truth),
            Command::Delete(id) if reply.is("DELETED") => {
                assert!(truth.deleted.contains(&JobId(id)), "{id} is deleted");
            }
            Command::Reserve => self.on_reserve(now, &reply, None),
            Command::ReserveWithTimeout(secs) => self.on_reserve(now, &reply, Some(secs)),
            Command::Use(tube) => self.used = tube,
            Command::Watch(_) | Command::Ignore(_) => self.on_watch(&command, &reply),
            Command::ListTubeUsed => assert_eq!(reply.line, format!("USING {}", self.used)),
            Command::ListTubesWatched => assert_eq!(reply.items(), self.watched),
            Command::ListTubes => {
                let mut items = reply.items();
                items.sort_unstable();
                assert!(
                    items.is_sorted_by(|a, b| a < b),
                    "no tube comes twice: {items:?}"
                );
            }
            _ => {}
        }
        self.last = Some(reply);
    }

    fn on_put(&mut self, reply: &Reply, fate: Fate, truth: &Truth) {
        self.is_producer |= fate != Fate::TooBig;
        if let Some(id) = reply.id() {
            assert!(truth.bodies.contains_key(&JobId(id)), "{id} was put");
            self.own.push(id);
        }
    }

    fn on_watch(&mut self, command: &Command, reply: &Reply) {
        let mut expected = String::new();
        match *command {
            Command::Watch(tube) if !self.watched.contains(&tube) => self.watched.push(tube),
            Command::Ignore(tube) => {
                if let Some(at) = self.watched.iter().position(|watched| *watched == tube) {
                    if self.watched.len() == 1 {
                        expected = "NOT_IGNORED".to_owned();
                    } else {
                        self.watched.swap_remove(at);
                    }
                }
            }
            _ => {}
        }
        if expected.is_empty() {
            expected = format!("WATCHING {}", self.watched.len());
        }
        assert_eq!(reply.line, expected, "c{} asked {command:?}", self.number);
    }

    /// A reserve that comes to nothing must have a reason to.
    fn on_reserve(&mut self, now: Nanos, reply: &Reply, timeout: Option<u32>) {
        self.is_worker = true;
        let asked_at = self.reserves.pop_front().expect("the reserve was read");
        let number = self.number;
        if reply.is("DEADLINE_SOON") {
            let mut told = self.told.iter();
            assert!(
                told.any(|told| told.warns_within(asked_at, now)),
                "c{number} is warned of a deadline that is not near"
            );
        }
        if reply.is("TIMED_OUT") {
            let over = timeout.is_some_and(|secs| asked_at.after(Secs(secs)) <= now);
            assert!(
                over || self.input_ended,
                "c{number} has not waited long enough"
            );
        }
    }
}
