//! A client: what it has said and not been answered, what it has been answered, and whether these
//! answers are such as it can have.

use std::collections::{HashSet, VecDeque};

use beanshard::base::ids::{JobId, Seq, SessionId, ShardId};
use beanshard::base::limits::{GATHER_SECS_MAX, SAFETY_MARGIN_SECS};
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;
use beanshard::session::shards::ShardMap;

use crate::command::{Command, Fate, Put, Role};
use crate::names::tube;
use crate::reply::Reply;
use crate::truth::{Truth, Who};

/// See the module's description.
pub(crate) struct Client {
    pub(crate) id: SessionId,
    /// Where its connection is.
    pub(crate) frontend: usize,
    /// Its session, among all that there ever were.
    pub(crate) who: Who,
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
    /// Asks that were answered with a job.
    given: HashSet<Seq>,
    /// When reserves that are not answered were read by the session.
    pub(crate) reserves: VecDeque<Nanos>,
    /// When it was answered last: a reserve behind others is in turn from then on.
    answered_at: Nanos,
    pub(crate) is_producer: bool,
    pub(crate) is_worker: bool,
    /// It has put something that failed: perhaps it counts as a producer.
    pub(crate) has_tried: bool,
    /// Why it may lose its connection: something that it asked or holds has an unknown result.
    pub(crate) may_be_lost: bool,
    pub(crate) input_ended: bool,
    /// The session obeys nothing any more.
    pub(crate) is_closing: bool,
    /// The session would not take all bytes: they are to be fed again when it is touched.
    pub(crate) must_feed: bool,
    pub(crate) is_touched: bool,
    pub(crate) last: Option<Reply>,
}

/// What a client's frontend has had to do with.
pub(crate) struct Weather<'a> {
    pub(crate) map: ShardMap,
    /// Until when there was no way to each shard, the last time that there was none.
    pub(crate) down_until: &'a [Nanos],
    /// Nanoseconds for which a command waits for such a shard.
    pub(crate) owner_wait: u64,
    /// Until when each shard may have had no room, the last time that it had none.
    pub(crate) full_until: &'a [Nanos],
}

/// A command that is not answered.
pub(crate) struct Sent {
    pub(crate) command: Command,
    /// Where in the client's stream of bytes it begins and ends.
    start: u64,
    pub(crate) end: u64,
    /// When the first of these bytes arrived.
    pub(crate) began_at: Option<Nanos>,
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
    pub(crate) fn new(who: Who, number: u64, frontend: usize, role: Role) -> Client {
        Client {
            id: who.session,
            frontend,
            who,
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
            given: HashSet::new(),
            reserves: VecDeque::new(),
            answered_at: Nanos(0),
            is_producer: false,
            is_worker: false,
            has_tried: false,
            may_be_lost: false,
            input_ended: false,
            is_closing: false,
            must_feed: false,
            is_touched: false,
            last: None,
        }
    }

    /// Sends a command.
    pub(crate) fn say(&mut self, command: Command, truth: &mut Truth) {
        truth.accounts.entry(self.who).or_default().say(&command);
        let text = command.text();
        let start = self.written;
        self.written += text.len() as u64;
        self.pending.extend_from_slice(&text);
        self.sent.push_back(Sent {
            command,
            start,
            end: self.written,
            began_at: None,
        });
    }

    /// So many more of its bytes have arrived.
    pub(crate) fn arrive(&mut self, now: Nanos, count: usize) {
        self.arrived += count as u64;
        for sent in &mut self.sent {
            if sent.start < self.arrived {
                sent.began_at = sent.began_at.or(Some(now));
            }
        }
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

    /// Whether something that it has asked, or holds, may be under way at the shard.
    pub(crate) fn may_need(&self, shard: ShardId, map: ShardMap) -> bool {
        let at = |name: &str| map.of_tube(tube(name)) == shard;
        let (mut uses, mut watches) = (at(self.used), self.watched.iter().any(|name| at(name)));
        let mut needs = self.holds_at(shard, map).next().is_some();
        for Sent { command, .. } in &self.sent {
            needs |= match command {
                Command::Use(name) => {
                    uses |= at(name);
                    at(name)
                }
                Command::Watch(name) => {
                    watches |= at(name);
                    at(name)
                }
                Command::Ignore(name) => at(name),
                Command::Put(_) | Command::Kick(_) | Command::PeekOf(_) => uses,
                Command::Reserve | Command::ReserveWithTimeout(_) => watches,
                Command::PauseTube(name, _) | Command::StatsTube(name) => at(name),
                Command::ReserveJob(id)
                | Command::Delete(id)
                | Command::Release(id, ..)
                | Command::Bury(id, _)
                | Command::Touch(id)
                | Command::KickJob(id)
                | Command::Peek(id)
                | Command::StatsJob(id) => map.of_job(JobId(*id)) == shard,
                Command::Stats
                | Command::ListTubes
                | Command::ListTubeUsed
                | Command::ListTubesWatched
                | Command::Nonsense(..)
                | Command::LongLine
                | Command::Last(_) => false,
            };
        }
        needs
    }

    /// Reservations at the shard of which its session knows.
    pub(crate) fn holds_at(&self, shard: ShardId, map: ShardMap) -> impl Iterator<Item = &Told> {
        let told = self.told.iter();
        told.filter(move |told| told.is_open() && map.of_job(told.id) == shard)
    }

    /// Its session forgets what it knows of reservations at a shard.
    pub(crate) fn forget_at(&mut self, now: Nanos, shard: ShardId, map: ShardMap) {
        for told in &mut self.told {
            if told.is_open() && map.of_job(told.id) == shard {
                told.until = Some(now);
            }
        }
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
        if matches!(event, Event::Reserved { .. }) {
            self.given.insert(seq);
        }
        // A wait that was given up when its job was under way is over for its shard later than for
        // its session, which may have been answered more by then.
        let is_late = matches!(event, Event::Cancelled) && self.given.contains(&seq);
        assert!(
            !of_reserve || seq > self.empty || is_late,
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
    pub(crate) fn on_reply(
        &mut self,
        now: Nanos,
        reply: Reply,
        truth: &mut Truth,
        weather: &Weather<'_>,
    ) {
        let number = self.number;
        let account = truth.accounts.get_mut(&self.who);
        let kept = account.map_or(Ok(()), |account| account.answer(&reply));
        let Some(Sent {
            command, began_at, ..
        }) = self.sent.front()
        else {
            panic!("c{number} is answered without having asked: {reply:?}");
        };
        let line = &reply.line;
        assert!(
            command.accepts(&reply),
            "c{number} asked {command:?} and was answered {line:?}"
        );
        assert_eq!(kept, Ok(()), "c{number}: {command:?} and {line:?}");
        if reply.is("OUT_OF_MEMORY") {
            let shard = self.place_of(command, weather.map);
            let full_until = weather.full_until[usize::from(shard.0)];
            let is_full = began_at.is_some_and(|began_at| full_until >= began_at);
            assert!(
                is_full,
                "c{number}: {command:?} is refused though {shard:?} has room"
            );
            truth.see("refused for lack of room");
        }
        if reply.is("INTERNAL_ERROR") {
            let began_at = began_at.expect("what is answered has arrived");
            self.check_failure(now, began_at, weather);
            truth.see(match command {
                Command::Stats | Command::ListTubes => "failed gathering",
                _ => "failed",
            });
            self.on_failure(now);
            return;
        }
        let Some(Sent { command, .. }) = self.sent.pop_front() else {
            return;
        };
        self.on_answer(now, &command, &reply, truth);
        self.answered_at = now;
        self.last = Some(reply);
    }

    /// The shard that needs room for what the command wants.
    fn place_of(&self, command: &Command, map: ShardMap) -> ShardId {
        match command {
            Command::PauseTube(name, _) => map.of_tube(tube(name)),
            Command::Release(id, ..) | Command::Bury(id, _) => map.of_job(JobId(*id)),
            _ => map.of_tube(tube(self.used)),
        }
    }

    /// When the reserve that is in turn was.
    pub(crate) fn reserve_begun(&self) -> Nanos {
        self.reserves[0].max(self.answered_at)
    }

    /// A command fails if there was no way to a shard for long enough, or if a shard has not told
    /// in time what was to be gathered.
    fn check_failure(&self, now: Nanos, began_at: Nanos, weather: &Weather<'_>) {
        let number = self.number;
        let command = &self.sent[0].command;
        let gathers = matches!(command, Command::Stats | Command::ListTubes);
        let in_time = now < began_at.after(Secs(GATHER_SECS_MAX));
        let is_needed = |shard: &ShardId| gathers || self.may_need(*shard, weather.map);
        let mut needed = weather.map.all().iter().filter(is_needed);
        let was_down = needed.any(|shard| weather.down_until[usize::from(shard.0)] >= began_at);
        if gathers {
            assert!(was_down || !in_time, "c{number}: {command:?} fails early");
            return;
        }
        assert!(was_down, "c{number}: {command:?} fails without a cause");
        let waited = now.since(began_at);
        let least = weather.owner_wait;
        assert!(waited >= least, "c{number}: {command:?} fails early");
    }

    /// The next command has failed: nothing has changed.
    fn on_failure(&mut self, now: Nanos) {
        if let Some(sent) = self.sent.pop_front() {
            self.has_tried |= matches!(sent.command, Command::Put(_));
            if sent.command.is_reserve() {
                self.reserves.pop_front();
            }
        }
        self.answered_at = now;
        self.last = None;
    }

    fn on_answer(&mut self, now: Nanos, command: &Command, reply: &Reply, truth: &mut Truth) {
        let line = &reply.line;
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
            Command::Put(put) => self.on_put(reply, put, truth),
            Command::Delete(id) if reply.is("DELETED") => {
                assert!(truth.deleted.contains(&JobId(*id)), "{id} is deleted");
            }
            Command::Reserve => self.on_reserve(now, reply, None),
            Command::ReserveWithTimeout(secs) => self.on_reserve(now, reply, Some(*secs)),
            Command::Use(tube) => self.used = tube,
            Command::Watch(_) | Command::Ignore(_) => self.on_watch(command, reply),
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
    }

    fn on_put(&mut self, reply: &Reply, put: &Put, truth: &Truth) {
        self.is_producer |= put.fate != Fate::TooBig;
        if let Some(id) = reply.id() {
            let body = truth.bodies.get(&JobId(id));
            let body = body.unwrap_or_else(|| panic!("{id} was not put"));
            assert!(body[..] == put.body, "{id} is another job");
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
