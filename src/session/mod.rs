//! One client's conversation, sans I/O: what it uses, watches and holds, where in the protocol it
//! is, and what it is owed. Commands come in and become asks of shards; events come back and
//! become replies, in the order of the commands. Whatever changes what the session refers to is a
//! barrier: nothing behind it is obeyed before it is answered. So is a reserve over several shards,
//! and any reserve from when the session waits; what was asked behind that one before it was known
//! to wait, its shard does when the wait is over.

mod commands;
mod events;
mod gather;
pub mod input;
pub mod reply;
mod reservations;
mod reserve;
mod reserves;
pub mod shards;
pub mod stats;
pub mod table;
mod waiting;

use std::collections::VecDeque;

use crate::base::body::BodyCow;
use crate::base::hash::NameHasher;
use crate::base::ids::{JobId, Pri, Seq, SessionId, ShardId, ShardSet};
use crate::base::limits::SAFETY_MARGIN_SECS;
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::ordset::OrdSet;
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::op::{Op, Put, Style};
use crate::session::gather::{Gathering, Names, Sum};
use crate::session::reservations::Reservations;
use crate::session::reserve::Outcome;
use crate::session::reserves::Reserves;
use crate::session::shards::ShardMap;
use crate::session::stats::Counts;
use crate::session::table::{MultiWatch, Settings};
use crate::session::waiting::{Stage, Waiting};

/// See the module's description.
pub struct Session {
    id: SessionId,
    used: TubeNameBuf,
    /// The shard of the used tube.
    used_at: ShardId,
    watched: OrdSet<TubeNameBuf>,
    /// Shards of the watched tubes.
    watched_at: ShardSet,
    /// Shards that know the session.
    attached: ShardSet,
    last_seq: Seq,
    /// Asks that are not answered, all of them of `toward`.
    outstanding: u32,
    toward: ShardId,
    pending: Pending,
    /// None if no reserve is to be answered.
    reserves: Option<Box<Reserves>>,
    /// None if the session holds no job, as far as its shards have said.
    reservations: Option<Box<Reservations>>,
    is_producer: bool,
    is_worker: bool,
    /// An ask whose answer may bring a body is under way, or was when this was last known.
    body_asked: bool,
    /// The latest body that the session was sent was small, so that it may be sent several.
    bodies_are_small: bool,
    /// The client sends nothing more.
    input_ended: bool,
    /// The client is to be sent what it is owed, and nothing it sends is obeyed.
    closing: bool,
    /// Nobody knows what became of what it asked.
    lost: bool,
}

/// What has to come before the next command is looked at: a body, or an answer.
#[derive(Debug)]
enum Pending {
    Nothing,
    Body(PutLine),
    Using(TubeNameBuf),
    Watching(TubeNameBuf),
    Ignoring(TubeNameBuf),
    Stats(Box<Gathering<Sum>>),
    Tubes(Box<Gathering<Names>>),
    /// This is to be answered to something that came to nothing, once all before it is answered.
    Refusing(&'static [u8]),
    /// The next command, or a put, has to wait for something that is not the session's own.
    Waiting(Waiting),
}

/// A put line that was accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PutLine {
    id: Option<JobId>,
    created_at: Nanos,
    pri: Pri,
    delay: Secs,
    ttr: Secs,
}

impl PutLine {
    /// The put that the line and the body make.
    pub(crate) fn with(self, body: BodyCow<'_>) -> Put<'_> {
        let PutLine {
            id,
            created_at,
            pri,
            delay,
            ttr,
        } = self;
        Put {
            id,
            created_at,
            pri,
            delay,
            ttr,
            body,
        }
    }
}

/// What sessions of one process have in common.
pub struct Desk {
    /// Where tubes and jobs are.
    pub map: ShardMap,
    /// Largest body in bytes.
    pub body_len_max: u32,
    /// How the names of watched tubes are hashed.
    pub hasher: NameHasher,
    /// What becomes of a reserve over several shards.
    multi_watch: MultiWatch,
    /// The moment of what is being done.
    now: Nanos,
    /// Reserves of sessions that have been answered, for the next ones.
    #[expect(clippy::vec_box, reason = "boxes move between sessions and this list")]
    spare_reserves: Vec<Box<Reserves>>,
    /// Reservations of sessions that hold nothing any more, for the next ones.
    #[expect(clippy::vec_box, reason = "boxes move between sessions and this list")]
    spare_reservations: Vec<Box<Reservations>>,
    /// What has been counted.
    pub counts: Counts,
}

/// What is to be done about a session whose moment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// What there was to do is done.
    Nothing,
    /// It is to be told that what it asked has failed.
    Fault,
    /// It does not wait any more for what is not its own.
    Call,
}

/// What a command comes to. What is asked is made of the command, and where that is done, so that
/// it is not carried about: to move so large a value twice costs as much as to read a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// It has been dealt with.
    Done,
    /// The shards in `to` are to be asked what the command says.
    Ask {
        /// Whom.
        to: ShardSet,
        /// Under which number.
        seq: Seq,
    },
    /// The shards in `to` are to be asked for a job.
    Reserve {
        /// Whom.
        to: ShardSet,
        /// Under which number.
        seq: Seq,
        /// Whether to take it or only to be offered it.
        style: Style,
        /// Whether to wait for one.
        wait: bool,
    },
    /// The put line was accepted: an id is to be taken for the job from this shard.
    TakeId(ShardId),
}

/// An ask that follows from an event.
#[derive(Debug)]
pub(crate) struct FollowUp {
    /// Who asks.
    pub(crate) session: SessionId,
    /// Under which number.
    pub(crate) seq: Seq,
    /// Whom.
    pub(crate) to: ShardSet,
    /// What.
    pub(crate) op: Op<'static>,
}

/// An event, where it comes from, and which ask it is about.
#[derive(Clone, Copy)]
pub(crate) struct Heard<'a> {
    /// The shard that says it.
    pub(crate) shard: ShardId,
    /// The ask that it is about.
    pub(crate) seq: Seq,
    /// What it says.
    pub(crate) event: &'a Event<'a>,
}

impl Desk {
    pub(crate) fn new(settings: &Settings) -> Desk {
        Desk {
            map: settings.map,
            body_len_max: settings.body_len_max,
            hasher: settings.hasher,
            multi_watch: settings.multi_watch,
            now: Nanos(0),
            spare_reserves: Vec::new(),
            spare_reservations: Vec::new(),
            counts: Counts::default(),
        }
    }
}

impl Session {
    pub(crate) fn new(id: SessionId, desk: &Desk) -> Session {
        let home = desk.map.of_tube(TubeName::DEFAULT);
        let mut watched = OrdSet::default();
        watched.push(TubeNameBuf::DEFAULT, |name| {
            desk.hasher.hash(name.as_name())
        });
        Session {
            id,
            used: TubeNameBuf::DEFAULT,
            used_at: home,
            watched,
            watched_at: ShardSet::of(home),
            attached: ShardSet::EMPTY,
            last_seq: Seq(0),
            outstanding: 0,
            toward: home,
            pending: Pending::Nothing,
            reserves: None,
            reservations: None,
            is_producer: false,
            is_worker: false,
            body_asked: false,
            bodies_are_small: false,
            input_ended: false,
            closing: false,
            lost: false,
        }
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    /// Whether nothing may be obeyed before something has been answered.
    pub(crate) fn is_at_barrier(&self) -> bool {
        !matches!(self.pending, Pending::Nothing | Pending::Body(_)) || self.is_blocked()
    }

    /// Whether a reserve is to be answered before anything else happens.
    pub(crate) fn is_blocked(&self) -> bool {
        self.reserves
            .as_ref()
            .is_some_and(|front| front.reserving.blocks())
    }

    /// Whether everything that was asked has been answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.outstanding == 0 && !self.is_at_barrier()
    }

    /// Whether the session waits for a job, for as long as it may take.
    pub(crate) fn waits_for_job(&self) -> bool {
        self.reserves
            .as_ref()
            .is_some_and(|front| front.reserving.has_settled())
    }

    /// Whether the client is only to be sent what it is owed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// The shards that know the session.
    pub(crate) fn attached(&self) -> ShardSet {
        self.attached
    }

    /// Those of `shards` that do not know the session yet; from now on they do.
    pub(crate) fn attach(&mut self, shards: ShardSet) -> ShardSet {
        let new = shards.without(self.attached);
        self.attached = self.attached.with(new);
        new
    }

    /// Takes the number of the next ask.
    pub(crate) fn next_seq(&mut self) -> Seq {
        self.last_seq.0 += 1;
        self.last_seq
    }

    /// When a wait has to be given up, if the session waits.
    pub(crate) fn moment(&mut self) -> Option<Nanos> {
        let moment = match &self.pending {
            Pending::Stats(gathering) => gathering.until,
            Pending::Tubes(gathering) => gathering.until,
            Pending::Waiting(waiting) if waiting.stage != Stage::Called => waiting.until,
            Pending::Nothing
            | Pending::Body(_)
            | Pending::Using(_)
            | Pending::Watching(_)
            | Pending::Ignoring(_)
            | Pending::Refusing(_)
            | Pending::Waiting(_) => Nanos::MAX,
        };
        let moment = self.wait_end().map_or(moment, |end| end.min(moment));
        (moment < Nanos::MAX).then_some(moment)
    }

    /// When the client has waited for a job long enough, or has to be warned of a deadline; None if
    /// it does not wait.
    fn wait_end(&mut self) -> Option<Nanos> {
        let front = self.reserves.as_ref()?;
        if !front.reserving.can_give_up() {
            return None;
        }
        let until = front.begun.zip(front.timeout);
        let until = until.map_or(Nanos::MAX, |(begun, timeout)| begun.after(timeout));
        let margin = self.margin_start();
        Some(margin.map_or(until, |start| start.min(until)))
    }

    /// [`Session::moment`] has come. A reserve is given up: if both of its reasons have come, the
    /// deadline is the one that the client hears of; if it is too late for a warning, the wait
    /// goes on. What was to be gathered has failed.
    pub(crate) fn on_moment(&mut self, now: Nanos, asks: &mut VecDeque<FollowUp>) -> Due {
        if self.wait_end().is_some_and(|end| end <= now) {
            self.end_wait(now, asks);
            return Due::Nothing;
        }
        match &self.pending {
            Pending::Stats(_) | Pending::Tubes(_) => {
                self.pending = Pending::Nothing;
                Due::Fault
            }
            Pending::Waiting(_) => Due::Call,
            Pending::Nothing
            | Pending::Body(_)
            | Pending::Using(_)
            | Pending::Watching(_)
            | Pending::Ignoring(_)
            | Pending::Refusing(_) => Due::Nothing,
        }
    }

    fn end_wait(&mut self, now: Nanos, asks: &mut VecDeque<FollowUp>) {
        if self.is_within_margin(now) {
            self.give_up(Outcome::DeadlineSoon, asks);
        } else if self.wait_end().is_some_and(|end| end <= now) {
            self.give_up(Outcome::TimedOut, asks);
        }
    }

    /// The client sends nothing more. What it has sent is still obeyed, but it does not wait for
    /// jobs (K12).
    pub(crate) fn on_input_end(&mut self, now: Nanos, asks: &mut VecDeque<FollowUp>) {
        self.input_ended = true;
        let outcome = if self.is_within_margin(now) {
            Outcome::DeadlineSoon
        } else {
            Outcome::TimedOut
        };
        self.give_up(outcome, asks);
    }

    /// Takes the session out of the counts of those that are open.
    pub(crate) fn uncount(&self, counts: &mut Counts) {
        counts.connections -= 1;
        counts.producers -= u64::from(self.is_producer);
        counts.workers -= u64::from(self.is_worker);
        let front = self.reserves.as_ref();
        counts.waiting -= u64::from(front.is_some_and(|front| front.is_counted));
    }

    fn give_up(&mut self, outcome: Outcome, asks: &mut VecDeque<FollowUp>) {
        if let Some(Reserves { reserving, .. }) = self.reserves.as_deref_mut()
            && reserving.can_give_up()
        {
            let (session, seq) = (self.id, reserving.seq);
            reserving.give_up(outcome, |to, op| {
                asks.push_back(FollowUp {
                    session,
                    seq,
                    to,
                    op,
                })
            });
        }
    }

    /// Whether the client has to be warned of a deadline. One that has passed is none any more,
    /// also if the shard has not announced the end yet (R3.12).
    fn is_within_margin(&mut self, now: Nanos) -> bool {
        let Some(reservations) = &mut self.reservations else {
            return false;
        };
        let margin_end = now.after(Secs(SAFETY_MARGIN_SECS));
        if !reservations.ends_by(margin_end) {
            return false;
        }
        reservations.forget_ended(now);
        reservations.ends_by(margin_end)
    }

    /// When the session enters the safety margin of a deadline.
    fn margin_start(&mut self) -> Option<Nanos> {
        let nearest = self.reservations.as_mut()?.nearest()?;
        Some(nearest.before(Secs(SAFETY_MARGIN_SECS)))
    }
}
