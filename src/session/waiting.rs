//! Commands that cannot be obeyed yet for a reason outside their session: a shard is not in reach,
//! or too much is owed to clients. Nothing has been done about such a command; it stays in the
//! input and is read anew when its session is called. A put whose body is complete is not read
//! anew: the session holds it.
//!
//! Also what becomes of a session when the link to a shard is gone: whether its client can be told
//! the truth, or has to lose its connection because nobody knows what was done (C4.6).

use crate::base::body::Body;
use crate::base::ids::{ShardId, ShardSet};
use crate::base::time::Nanos;
use crate::proto::command::Command;
use crate::proto::reply;
use crate::session::commands::Room;
use crate::session::shards::ShardMap;
use crate::session::stats::Counts;
use crate::session::table::MultiWatch;
use crate::session::{Desk, Pending, PutLine, Session, Step};

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// That this shard is in reach.
    Shard(ShardId),
    /// That less is owed to clients.
    Replies,
}

/// In which list of its place a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Behind those that came before.
    Queued,
    /// Before those: it has been called, and there was nothing left for it.
    Returned,
    /// It holds a put until the shard is back.
    Held,
    /// In none: it is to have its next command read anew.
    Called,
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) place: Place,
    pub(super) stage: Stage,
    /// When the client is told that there is no way to the shard; [`Nanos::MAX`] while there is
    /// one.
    pub(super) until: Nanos,
    put: Option<Box<HeldPut>>,
}

/// A put that has arrived while there was no way to its shard.
#[derive(Debug)]
struct HeldPut {
    line: PutLine,
    body: Body,
}

/// How a session is affected by the loss of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Not at all, or it has only to be introduced anew later.
    None,
    /// Its answer cannot come any more.
    Fault,
    /// Its client cannot be told what became of what it asked or holds.
    All,
}

impl Session {
    /// How the session waits, if it does.
    pub(super) fn waiting(&self) -> Option<&Waiting> {
        if let Pending::Waiting(waiting) = &self.pending {
            Some(waiting)
        } else {
            None
        }
    }

    /// Whether the next command is to be read anew.
    pub(super) fn is_called(&self) -> bool {
        self.waiting().is_some_and(|w| w.stage == Stage::Called)
    }

    /// The next command has to wait.
    pub(super) fn wait(&mut self, place: Place, stage: Stage, until: Nanos) {
        debug_assert!(
            matches!(self.pending, Pending::Nothing),
            "a command begins behind another"
        );
        self.pending = Pending::Waiting(Waiting {
            place,
            stage,
            until,
            put: None,
        });
    }

    /// Keeps the body of the put until there is a way to its shard, but not beyond `until`.
    pub(super) fn hold_put(&mut self, body: Body, until: Nanos) {
        let Pending::Body(line) = std::mem::replace(&mut self.pending, Pending::Nothing) else {
            debug_assert!(false, "a body comes after its put line");
            return;
        };
        self.pending = Pending::Waiting(Waiting {
            place: Place::Shard(self.used_at),
            stage: Stage::Held,
            until,
            put: Some(Box::new(HeldPut { line, body })),
        });
    }

    /// The wait is over: the body of the put that was held, or none if the next command is to be
    /// read anew.
    pub(super) fn call(&mut self) -> Option<Body> {
        let Pending::Waiting(waiting) = &mut self.pending else {
            return None;
        };
        let Some(put) = waiting.put.take() else {
            waiting.stage = Stage::Called;
            return None;
        };
        self.pending = Pending::Body(put.line);
        Some(put.body)
    }

    /// Takes note that the next command is being read anew: what it was called from.
    pub(super) fn end_call(&mut self) -> Option<Waiting> {
        if !self.is_called() {
            return None;
        }
        let called = std::mem::replace(&mut self.pending, Pending::Nothing);
        match called {
            Pending::Waiting(waiting) => Some(waiting),
            Pending::Nothing
            | Pending::Body(_)
            | Pending::Using(_)
            | Pending::Watching(_)
            | Pending::Ignoring(_)
            | Pending::Stats(_)
            | Pending::Tubes(_)
            | Pending::Refusing(_) => None,
        }
    }

    /// The way to the shard for which the session waits is gone or back: it waits until `until`.
    pub(super) fn wait_until(&mut self, until: Nanos) {
        if let Pending::Waiting(waiting) = &mut self.pending {
            waiting.until = until;
        }
    }

    /// The shards that a command asks: none if the session answers it by itself.
    pub(super) fn targets(&self, command: &Command<'_>, desk: &Desk) -> ShardSet {
        match *command {
            Command::Put { .. }
            | Command::PeekReady
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
            | Command::PauseTube { .. } => self
                .sole_target(command, desk)
                .map_or(ShardSet::EMPTY, ShardSet::of),
            Command::Use(tube) => ShardSet::of(desk.map.of_tube(tube)),
            Command::Watch(tube) if self.watched_index(tube, desk).is_none() => {
                ShardSet::of(desk.map.of_tube(tube))
            }
            Command::Ignore(tube)
                if self.watched.len() > 1 && self.watched_index(tube, desk).is_some() =>
            {
                ShardSet::of(desk.map.of_tube(tube))
            }
            Command::Reserve | Command::ReserveWithTimeout(_) if !self.is_rejected(desk) => {
                self.watched_at
            }
            Command::Stats | Command::ListTubes => desk.map.all(),
            Command::Watch(_)
            | Command::Ignore(_)
            | Command::Reserve
            | Command::ReserveWithTimeout(_)
            | Command::ListTubesWatched
            | Command::ListTubeUsed
            | Command::Quit => ShardSet::EMPTY,
        }
    }

    /// Whether a reserve is refused because the watched tubes are at several shards.
    pub(super) fn is_rejected(&self, desk: &Desk) -> bool {
        desk.multi_watch == MultiWatch::Reject && self.watched_at.len() > 1
    }

    /// Answers a command that asks a shard to which there is no way. The body of a put is thrown
    /// away, and nothing has changed.
    pub(super) fn refuse_unreachable(&mut self, command: &Command<'_>, room: Room<'_>) -> Step {
        room.desk.counts.command(command.kind());
        self.refuse_in_turn(reply::INTERNAL_ERROR, room.replies);
        if let Command::Put { body_len, .. } = *command {
            room.input.skip_refused_body(body_len);
        }
        Step::Done
    }

    /// The link to the shard is gone, with all that was under way there.
    pub(super) fn on_loss(&mut self, now: Nanos, shard: ShardId, map: ShardMap) -> Loss {
        if !self.attached.remove(shard) {
            return Loss::None;
        }
        if self.is_bound_to(now, shard, map) {
            return Loss::All;
        }
        let is_missed = match &self.pending {
            Pending::Stats(gathering) => gathering.misses(shard),
            Pending::Tubes(gathering) => gathering.misses(shard),
            Pending::Nothing
            | Pending::Body(_)
            | Pending::Using(_)
            | Pending::Watching(_)
            | Pending::Ignoring(_)
            | Pending::Waiting(_)
            | Pending::Refusing(_) => false,
        };
        if is_missed {
            self.pending = Pending::Nothing;
            return Loss::Fault;
        }
        Loss::None
    }

    /// Whether the shard had something under way for the session, or a job that it holds.
    fn is_bound_to(&mut self, now: Nanos, shard: ShardId, map: ShardMap) -> bool {
        let is_asked = match &self.pending {
            Pending::Using(tube) | Pending::Watching(tube) | Pending::Ignoring(tube) => {
                map.of_tube(tube.as_name()) == shard
            }
            Pending::Nothing
            | Pending::Body(_)
            | Pending::Stats(_)
            | Pending::Tubes(_)
            | Pending::Waiting(_)
            | Pending::Refusing(_) => false,
        };
        let front = self.reserves.as_ref();
        let is_asked = is_asked || front.is_some_and(|front| front.reserving.asks(shard));
        if is_asked || (self.outstanding > 0 && self.toward == shard) {
            return true;
        }
        self.reservations.as_mut().is_some_and(|reservations| {
            reservations.forget_ended(now);
            reservations.jobs().any(|id| map.of_job(id) == shard)
        })
    }

    /// Whether the session is to be introduced to the shard: it refers to a tube there, and the
    /// shard does not know it.
    pub(super) fn is_missed_at(&self, shard: ShardId) -> bool {
        let refers = self.used_at == shard || self.watched_at.contains(shard);
        refers && !self.attached.contains(shard) && !self.lost
    }

    /// Nobody can say what became of what the session asked: it only waits to be closed.
    pub(super) fn lose(&mut self, counts: &mut Counts) {
        let front = self.reserves.take();
        counts.waiting -= u64::from(front.is_some_and(|front| front.is_counted));
        self.pending = Pending::Nothing;
        self.outstanding = 0;
        self.reservations = None;
        self.closing = true;
        self.lost = true;
    }

    /// Whether its connection is to be closed without another answer.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }
}

/// Whether the answer to a command may bring a job's body.
pub(super) fn answers_with_job(command: &Command<'_>) -> bool {
    match command {
        Command::Peek(_)
        | Command::PeekReady
        | Command::PeekDelayed
        | Command::PeekBuried
        | Command::Reserve
        | Command::ReserveWithTimeout(_)
        | Command::ReserveJob(_) => true,
        Command::Put { .. }
        | Command::Delete(_)
        | Command::Release { .. }
        | Command::Bury { .. }
        | Command::Kick { .. }
        | Command::KickJob(_)
        | Command::Touch(_)
        | Command::StatsJob(_)
        | Command::StatsTube(_)
        | Command::Stats
        | Command::Use(_)
        | Command::Watch(_)
        | Command::Ignore(_)
        | Command::ListTubesWatched
        | Command::ListTubeUsed
        | Command::ListTubes
        | Command::Quit
        | Command::PauseTube { .. } => false,
    }
}
