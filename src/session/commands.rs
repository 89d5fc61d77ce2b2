//! Commands become asks of shards, or replies where the session knows the answer itself.

use crate::base::ids::{JobId, Pri, Seq, ShardId, ShardSet};
use crate::base::limits::{AHEAD_ASKS_MAX, AHEAD_PUT_LEN_MAX, TTR_SECS_MIN};
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::engine::op::Style;
use crate::proto::command::{Command, Fault, Refused, Trailing};
use crate::proto::line::CRLF;
use crate::proto::reply;
use crate::proto::yaml::Yaml;
use crate::session::gather::Gathering;
use crate::session::input::{Input, Skip};
use crate::session::reply::Replies;
use crate::session::reserve::Outcome;
use crate::session::reserves::Asked;
use crate::session::shards::ShardMap;
use crate::session::waiting::answers_with_job;
use crate::session::{Desk, Pending, PutLine, Session, Step};

/// What a command may touch besides its session.
pub(crate) struct Room<'a> {
    pub(crate) now: Nanos,
    pub(crate) desk: &'a mut Desk,
    pub(crate) input: &'a mut Input,
    pub(crate) replies: &'a mut Replies,
}

impl Session {
    /// Whether a command may be obeyed now, or has to wait for answers. Asks of one shard may be
    /// under way together, because that shard answers in order; anything else waits until all is
    /// answered, so that replies leave in the order of the commands (R3.5). Of those that bring a
    /// body only one is under way, so that a session is not owed many large ones.
    pub(crate) fn admits(&self, command: &Result<Command<'_>, Refused>, desk: &Desk) -> bool {
        if self.is_at_barrier() && !self.is_called() {
            return false;
        }
        self.outstanding == 0
            || command.as_ref().is_ok_and(|command| {
                self.sole_target(command, desk) == Some(self.toward) && self.may_run_ahead(command)
            })
    }

    /// Whether a command may be asked while others of the same shard are not answered. The shard
    /// keeps those behind a reserve while the session waits, and so they are few and small.
    fn may_run_ahead(&self, command: &Command<'_>) -> bool {
        let has_room = self.outstanding < AHEAD_ASKS_MAX;
        let is_large =
            matches!(command, Command::Put { body_len, .. } if *body_len > AHEAD_PUT_LEN_MAX);
        let fits_behind = self.reserves.is_none() || (has_room && !is_large);
        let takes_turns = self.body_asked && answers_with_job(command);
        fits_behind && (!takes_turns || (has_room && self.bodies_are_small))
    }

    /// The shard that a command asks, if it asks one and is no barrier.
    pub(super) fn sole_target(&self, command: &Command<'_>, desk: &Desk) -> Option<ShardId> {
        let shard = match *command {
            Command::Put {
                body_len, trailing, ..
            } => {
                let accepted = body_len <= desk.body_len_max && trailing == Trailing::Nothing;
                return accepted.then_some(self.used_at);
            }
            Command::PeekReady
            | Command::PeekDelayed
            | Command::PeekBuried
            | Command::Kick { .. } => self.used_at,
            Command::Peek(id)
            | Command::ReserveJob(id)
            | Command::Delete(id)
            | Command::Release { id, .. }
            | Command::Bury { id, .. }
            | Command::KickJob(id)
            | Command::Touch(id)
            | Command::StatsJob(id) => desk.map.of_job(id),
            Command::StatsTube(tube) | Command::PauseTube { tube, .. } => desk.map.of_tube(tube),
            Command::Reserve | Command::ReserveWithTimeout(_) => return self.watched_at.sole(),
            Command::Stats
            | Command::Use(_)
            | Command::Watch(_)
            | Command::Ignore(_)
            | Command::ListTubesWatched
            | Command::ListTubeUsed
            | Command::ListTubes
            | Command::Quit => return None,
        };
        Some(shard)
    }

    /// Obeys a command. Its counter moves here, before anything else happens, unless it is behind
    /// a reserve.
    #[inline]
    pub(crate) fn obey(&mut self, command: &Command<'_>, room: Room<'_>) -> Step {
        self.count(command.kind(), room.desk);
        let map = room.desk.map;
        self.body_asked |= answers_with_job(command);
        match *command {
            Command::Put {
                pri,
                delay,
                ttr,
                body_len,
                trailing,
            } => self.begin_put(
                PutArguments {
                    pri,
                    delay,
                    ttr,
                    body_len,
                    trailing,
                },
                room,
            ),
            Command::Use(tube) => self.begin_use(tube, map),
            Command::Watch(tube) => self.begin_watch(tube, room),
            Command::Ignore(tube) => self.begin_ignore(tube, room),
            Command::Reserve => self.begin_reserve(None, room),
            Command::ReserveWithTimeout(timeout) => self.begin_reserve(Some(timeout), room),
            Command::Stats => self.begin_stats(room.now, map),
            Command::ListTubes => self.begin_list_tubes(room.now, map),
            Command::ListTubeUsed => self.list_tube_used(room.replies),
            Command::ListTubesWatched => self.list_tubes_watched(room.replies),
            Command::Quit => self.quit(),
            Command::PeekReady
            | Command::PeekDelayed
            | Command::PeekBuried
            | Command::Kick { .. }
            | Command::Peek(_)
            | Command::ReserveJob(_)
            | Command::Delete(_)
            | Command::Release { .. }
            | Command::Bury { .. }
            | Command::KickJob(_)
            | Command::Touch(_)
            | Command::StatsJob(_)
            | Command::StatsTube(_)
            | Command::PauseTube { .. } => match self.sole_target(command, room.desk) {
                Some(shard) => self.ask_one(shard),
                None => Step::Done,
            },
        }
    }

    /// Answers a line that is no command. The body of a refused put is thrown away.
    pub(crate) fn refuse(&mut self, refused: Refused, room: Room<'_>) -> Step {
        if let (Some(kind), true) = (refused.kind, refused.counted) {
            room.desk.counts.command(kind);
        }
        match refused.fault {
            Fault::BadFormat => room.replies.line(reply::BAD_FORMAT),
            Fault::UnknownCommand => room.replies.line(reply::UNKNOWN_COMMAND),
            Fault::Http => self.closing = true,
        }
        if let Some(body_len) = refused.body_len {
            room.input.skip_refused_body(body_len);
        }
        Step::Done
    }

    /// Answers a line that was too long to look at. If it was a put, its body is thrown away as
    /// far as its length could be read.
    pub(crate) fn refuse_long_line(
        &mut self,
        http: bool,
        body_len: Option<u32>,
        input: &mut Input,
        replies: &mut Replies,
    ) {
        if http {
            self.closing = true;
            return;
        }
        self.refuse_in_turn(reply::BAD_FORMAT, replies);
        if let Some(body_len) = body_len {
            input.skip_refused_body(body_len);
        }
    }

    /// The id that was taken for the job whose put line was accepted.
    pub(crate) fn take_id(&mut self, id: Option<JobId>) {
        if let Pending::Body(line) = &mut self.pending {
            line.id = id;
        }
    }

    /// The id of the job whose body is on its way.
    pub(crate) fn putting_id(&self) -> Option<JobId> {
        let Pending::Body(line) = &self.pending else {
            return None;
        };
        line.id
    }

    /// The body of the put is there: what its line said, and whom to ask under which number.
    pub(crate) fn finish_put(&mut self) -> Option<(PutLine, ShardId, Seq)> {
        let Pending::Body(line) = self.pending else {
            debug_assert!(false, "a body comes after its put line");
            return None;
        };
        self.pending = Pending::Nothing;
        self.count_ask(self.used_at);
        Some((line, self.used_at, self.next_seq()))
    }

    /// The body of the put did not come to anything.
    pub(crate) fn fail_put(&mut self, line: &'static [u8], replies: &mut Replies) {
        self.pending = Pending::Nothing;
        self.refuse_in_turn(line, replies);
    }

    /// Answers what was cut off the input before anybody asked whether its turn had come.
    pub(super) fn refuse_in_turn(&mut self, line: &'static [u8], replies: &mut Replies) {
        if self.outstanding == 0 {
            replies.line(line);
        } else {
            self.pending = Pending::Refusing(line);
        }
    }

    fn begin_put(&mut self, put: PutArguments, room: Room<'_>) -> Step {
        let body_len = with_crlf(put.body_len);
        if put.body_len > room.desk.body_len_max {
            room.input.skip(body_len, Skip::TooBig);
            return Step::Done;
        }
        match put.trailing {
            Trailing::Nothing => {}
            Trailing::Apart => {
                room.replies.line(reply::BAD_FORMAT);
                room.input.skip_refused_body(put.body_len);
                return Step::Done;
            }
            Trailing::Attached => {
                room.replies.line(reply::BAD_FORMAT);
                return Step::Done;
            }
        }
        if self.reserves.is_none() {
            self.become_producer(room.desk);
        }
        self.pending = Pending::Body(PutLine {
            id: None,
            created_at: room.now,
            pri: put.pri,
            delay: put.delay,
            ttr: put.ttr.max(Secs(TTR_SECS_MIN)),
        });
        room.input.expect_body(put.body_len);
        Step::TakeId(self.used_at)
    }

    fn begin_use(&mut self, tube: TubeName<'_>, map: ShardMap) -> Step {
        self.pending = Pending::Using(tube.into());
        self.ask(ShardSet::of(map.of_tube(tube)))
    }

    fn begin_watch(&mut self, tube: TubeName<'_>, room: Room<'_>) -> Step {
        if self.watched_index(tube, room.desk).is_some() {
            reply::write_watching(room.replies.text(), self.watched.len());
            return Step::Done;
        }
        self.pending = Pending::Watching(tube.into());
        self.ask(ShardSet::of(room.desk.map.of_tube(tube)))
    }

    fn begin_ignore(&mut self, tube: TubeName<'_>, room: Room<'_>) -> Step {
        match self.watched_index(tube, room.desk) {
            Some(_) if self.watched.len() == 1 => {
                room.replies.line(reply::NOT_IGNORED);
                Step::Done
            }
            Some(_) => {
                self.pending = Pending::Ignoring(tube.into());
                self.ask(ShardSet::of(room.desk.map.of_tube(tube)))
            }
            None => {
                reply::write_watching(room.replies.text(), self.watched.len());
                Step::Done
            }
        }
    }

    /// Why there is no waiting, if there is none: the client is to be warned of a deadline, it
    /// does not want to wait, or it is gone. A job that is ready is given in each case.
    fn begin_reserve(&mut self, timeout: Option<Secs>, room: Room<'_>) -> Step {
        if self.is_rejected(room.desk) {
            room.replies.line(reply::CROSS_OWNER);
            return Step::Done;
        }
        let is_alone = self.outstanding == 0;
        let otherwise = if is_alone && self.is_within_margin(room.now) {
            Some(Outcome::DeadlineSoon)
        } else if timeout == Some(Secs(0)) || self.input_ended {
            Some(Outcome::TimedOut)
        } else {
            None
        };
        let (seq, to) = (self.next_seq(), self.watched_at);
        let (style, wait) = (Style::for_shards(to), otherwise.is_none());
        if let Some(shard) = to.sole() {
            self.count_ask(shard);
        }
        let asked = Asked {
            seq,
            timeout,
            otherwise,
        };
        self.note_reserve(asked, is_alone.then_some(room.now), room.desk);
        Step::Reserve {
            to,
            seq,
            style,
            wait,
        }
    }

    fn begin_stats(&mut self, now: Nanos, map: ShardMap) -> Step {
        let (seq, to) = (self.next_seq(), map.all());
        self.pending = Pending::Stats(Box::new(Gathering::start(now, seq, to)));
        Step::Ask { to, seq }
    }

    fn begin_list_tubes(&mut self, now: Nanos, map: ShardMap) -> Step {
        let (seq, to) = (self.next_seq(), map.all());
        self.pending = Pending::Tubes(Box::new(Gathering::start(now, seq, to)));
        Step::Ask { to, seq }
    }

    fn list_tube_used(&self, replies: &mut Replies) -> Step {
        reply::write_using(replies.text(), self.used.as_name());
        Step::Done
    }

    fn list_tubes_watched(&self, replies: &mut Replies) -> Step {
        reply::write_ok(replies.text(), |out| {
            let mut yaml = Yaml::begin(out);
            self.watched
                .as_slice()
                .iter()
                .for_each(|name| yaml.item(name.as_name()));
        });
        Step::Done
    }

    fn quit(&mut self) -> Step {
        self.closing = true;
        Step::Done
    }

    pub(super) fn become_producer(&mut self, desk: &mut Desk) {
        if !self.is_producer {
            self.is_producer = true;
            desk.counts.producers += 1;
        }
    }

    pub(super) fn become_worker(&mut self, desk: &mut Desk) {
        if !self.is_worker {
            self.is_worker = true;
            desk.counts.workers += 1;
        }
    }

    pub(super) fn watched_index(&self, tube: TubeName<'_>, desk: &Desk) -> Option<usize> {
        self.watched
            .position(desk.hasher.hash(tube), |name| name.as_name() == tube)
    }

    /// Asks the one shard that has what the command is about. Other such asks may follow before
    /// it is answered.
    fn ask_one(&mut self, shard: ShardId) -> Step {
        self.count_ask(shard);
        self.ask(ShardSet::of(shard))
    }

    fn count_ask(&mut self, shard: ShardId) {
        self.outstanding += 1;
        self.toward = shard;
    }

    fn ask(&mut self, to: ShardSet) -> Step {
        let seq = self.next_seq();
        Step::Ask { to, seq }
    }
}

struct PutArguments {
    pri: Pri,
    delay: Secs,
    ttr: Secs,
    body_len: u32,
    trailing: Trailing,
}

/// Bytes on the wire of a body of `body_len` bytes.
fn with_crlf(body_len: u32) -> u64 {
    u64::from(body_len) + CRLF.len() as u64
}
