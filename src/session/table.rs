//! All sessions of a process: the clients half, sans I/O. Bytes are fed in and shards are asked;
//! what they say, at once or later, becomes replies, which the network takes from here. The
//! network, the clock and what the process knows of itself are the caller's; a simulator has its
//! own.

mod items;
mod owed;
mod queues;
mod reach;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::base::hash::NameHasher;
use crate::base::heap::Heap;
use crate::base::ids::{Caller, JobId, Seq, SessionId, ShardId, ShardSet};
use crate::base::limits::{REPLY_BACKLOG_BYTES_MAX, SPARE_REPLIES_MAX, SPARE_REPLY_LEN_MAX};
use crate::base::list::Links;
use crate::base::name::TubeName;
use crate::base::slab::Slab;
use crate::base::time::Nanos;
use crate::engine::event::Event;
use crate::engine::host::{Outbox, Ticket};
use crate::engine::op::Op;
use crate::proto::command::Kind;
use crate::proto::reply;
use crate::session::events::Ear;
use crate::session::input::Input;
use crate::session::reply::Replies;
use crate::session::shards::{ShardMap, Shards};
use crate::session::stats::{Counts, Fleet, Known, ProcessStats, StatsDue};
use crate::session::table::items::Taken;
use crate::session::table::owed::Ledger;
pub use crate::session::table::owed::Owed;
use crate::session::table::queues::Queues;
use crate::session::{Desk, Due, FollowUp, Heard, Session};

/// See the module's description.
pub struct Sessions<S> {
    /// The queue half, or the way to it.
    pub shards: S,
    hall: Hall,
}

/// What the table is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where tubes and jobs are.
    pub map: ShardMap,
    /// Index of this frontend, which tells its sessions from those of others.
    pub frontend: u16,
    /// Largest body in bytes.
    pub body_len_max: u32,
    /// The key under which names are hashed: random in a server, fixed in tests.
    pub hasher: NameHasher,
    /// Whether to record what [`Sessions::take_traces`] tells.
    pub traced: bool,
    /// Nanoseconds for which a command waits for a shard to which there is no way, before it is
    /// answered that it failed.
    pub owner_wait: u64,
    /// What becomes of a reserve over several shards.
    pub multi_watch: MultiWatch,
}

/// What becomes of a reserve whose watched tubes are at several shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MultiWatch {
    /// It is given the best job of all.
    #[default]
    Serve,
    /// It is refused with [`reply::CROSS_OWNER`].
    Reject,
}

/// Everything but the shards, so that they can speak to it while they are asked.
struct Hall {
    entries: Slab<Entry>,
    desk: Desk,
    /// See [`Settings::owner_wait`].
    owner_wait: u64,
    queues: Queues,
    ledger: Ledger,
    /// See [`Settings::frontend`].
    frontend: u16,
    /// Serial of the latest session.
    last_serial: u64,
    /// Sessions that wait, by the moment at which that has to end.
    moments: Heap<Nanos>,
    /// Sessions that something has happened to since they were last taken.
    touched: Vec<SessionId>,
    asks: VecDeque<FollowUp>,
    stats_due: Vec<StatsDue>,
    /// Replies of sessions that have been sent theirs, for the next ones: an idle session has none.
    #[expect(clippy::vec_box, reason = "boxes move between sessions and this list")]
    spare: Vec<Box<Replies>>,
}

struct Entry {
    session: Session,
    input: Input,
    /// What is owed, or None if nothing is.
    replies: Option<Box<Replies>>,
    /// Position in [`Hall::moments`], or [`NOWHERE`].
    position: u32,
    /// Neighbours in one of [`Queues`].
    links: Links,
    is_touched: bool,
}

impl Entry {
    /// Bytes of replies that have not been sent.
    fn backlog(&self) -> usize {
        self.replies.as_ref().map_or(0, |replies| replies.len())
    }

    /// Whether the session has to be looked for among those that wait, or put there. Most wait for
    /// nothing, whatever happens to them.
    fn may_have_moment(&self) -> bool {
        self.position != NOWHERE || self.session.is_at_barrier()
    }
}

const NOWHERE: u32 = u32::MAX;

/// Why [`Sessions::feed`] has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// What is left of the bytes is less than an item: more has to come.
    WantsMore,
    /// The next command waits for an answer, or for replies to be sent. The session is touched
    /// when it can go on, or its replies have been sent.
    Waits,
    /// Nothing more is obeyed: what is owed is to be sent, and the session closed.
    Closing,
}

/// One thing that happened, for a server that tells its operator everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Whose.
    pub session: SessionId,
    /// What.
    pub what: Traced,
}

/// See [`Trace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traced {
    /// A command line was read; None if it is no command.
    Command(Option<Kind>),
    /// The body of this job was read; None if its id is given elsewhere.
    Body(Option<JobId>),
    /// This was answered, up to the first CR LF and without it.
    Reply(Vec<u8>),
}

impl<S: Shards> Sessions<S> {
    /// A table without sessions.
    #[must_use]
    pub fn new(shards: S, settings: Settings) -> Sessions<S> {
        Sessions {
            shards,
            hall: Hall {
                entries: Slab::default(),
                desk: Desk::new(&settings),
                owner_wait: settings.owner_wait,
                queues: Queues::new(settings.map),
                ledger: Ledger::new(settings.traced),
                frontend: settings.frontend,
                last_serial: 0,
                moments: Heap::default(),
                touched: Vec::new(),
                asks: VecDeque::new(),
                stats_due: Vec::new(),
                spare: Vec::new(),
            },
        }
    }

    /// Number of open sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hall.entries.len()
    }

    /// Whether no session is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hall.entries.is_empty()
    }

    /// Opens a session, which uses and watches the default tube.
    pub fn open(&mut self, now: Nanos) -> SessionId {
        let hall = &mut self.hall;
        hall.last_serial += 1;
        let (frontend, serial, desk) = (hall.frontend, hall.last_serial, &hall.desk);
        let slot = hall.entries.insert_with(|slot| Entry {
            session: Session::new(SessionId::new(frontend, serial, slot), desk),
            input: Input::default(),
            replies: None,
            position: NOWHERE,
            links: Links::NONE,
            is_touched: false,
        });
        hall.desk.counts.connections += 1;
        hall.desk.counts.total_connections += 1;
        let id = hall.entries[slot].session.id();
        let home = ShardSet::of(hall.desk.map.of_tube(TubeName::DEFAULT));
        // A shard to which there is no way is told when it is back.
        self.attach(now, id, self.not_down(home));
        id
    }

    /// Closes the session. What it held goes back; what it was owed is dropped.
    pub fn close(&mut self, now: Nanos, id: SessionId) {
        let hall = &mut self.hall;
        if hall.entry(id).is_none() {
            return;
        }
        hall.set_moment(id.slot(), None);
        hall.leave_queue(id.slot());
        let entry = hall.entries.remove(id.slot());
        hall.ledger.owed -= entry.backlog();
        entry.session.uncount(&mut hall.desk.counts);
        for shard in entry.session.attached().iter() {
            let outbox = &mut Outlet {
                hall: &mut self.hall,
                shard,
            };
            self.shards.detach(now, shard, id, outbox);
        }
        self.ask_what_follows(now);
    }

    /// Obeys the commands in `bytes`, as many as can be obeyed, and moves `bytes` behind them.
    /// What is left has to be fed again, in front of what comes next.
    pub fn feed(&mut self, now: Nanos, id: SessionId, bytes: &mut &[u8]) -> Fed {
        self.hall.desk.now = now;
        loop {
            let Some(entry) = self.hall.entry(id) else {
                return Fed::Closing;
            };
            if entry.session.is_closing() {
                return Fed::Closing;
            }
            let session = &entry.session;
            let is_blocked =
                session.is_blocked() || (session.is_at_barrier() && !session.is_called());
            if is_blocked || entry.backlog() >= REPLY_BACKLOG_BYTES_MAX {
                return Fed::Waits;
            }
            let before = *bytes;
            let Some(item) = entry.input.next(bytes) else {
                return Fed::WantsMore;
            };
            if self.take_item(now, id, item) == Taken::NotYet {
                *bytes = before;
                return Fed::Waits;
            }
        }
    }

    /// The client sends nothing more: it does not wait for jobs any longer.
    pub fn end_input(&mut self, now: Nanos, id: SessionId) {
        let hall = &mut self.hall;
        let Some(entry) = hall.entries.get_mut(id.slot()) else {
            return;
        };
        if entry.session.id() != id {
            return;
        }
        entry.session.on_input_end(now, &mut hall.asks);
        hall.update_moment(id);
        self.ask_what_follows(now);
    }

    /// A shard of another process has said something.
    pub fn hear(&mut self, now: Nanos, shard: ShardId, to: Caller, event: Event<'_>) {
        self.hall.desk.now = now;
        Outlet {
            hall: &mut self.hall,
            shard,
        }
        .emit(to, event);
        self.ask_what_follows(now);
    }

    /// Ends the waits whose moment has come by `now`, those for other processes included. To be
    /// called after the shards have done what was due, because a job that has become ready in time
    /// beats the end of a wait (R3.13).
    pub fn tick(&mut self, now: Nanos) {
        self.hall.desk.now = now;
        while let Some(first) = self.hall.moments.first()
            && first.key <= now
        {
            let hall = &mut self.hall;
            let session = &mut hall.entries[first.slot].session;
            let id = session.id();
            match session.on_moment(now, &mut hall.asks) {
                Due::Nothing => hall.update_moment(id),
                Due::Fault => hall.say(first.slot, reply::INTERNAL_ERROR),
                Due::Call => self.end_waiting(first.slot),
            }
            self.ask_what_follows(now);
        }
    }

    /// When [`Sessions::tick`] has something to do next.
    #[must_use]
    pub fn next_moment(&self) -> Option<Nanos> {
        self.hall.moments.first().map(|entry| entry.key)
    }

    /// Lets the shards' own time pass: `tick` is given them and the place to say things to.
    pub fn tick_shard(
        &mut self,
        now: Nanos,
        shard: ShardId,
        tick: impl FnOnce(&mut S, &mut Outlet<'_>),
    ) {
        self.hall.desk.now = now;
        tick(
            &mut self.shards,
            &mut Outlet {
                hall: &mut self.hall,
                shard,
            },
        );
        self.ask_what_follows(now);
    }

    /// Sees to it that the shards know the session.
    fn attach(&mut self, now: Nanos, id: SessionId, to: ShardSet) {
        if let Some(entry) = self.hall.entry(id) {
            for shard in entry.session.attach(to).iter() {
                self.introduce(now, id, shard);
            }
        }
    }

    fn ask(&mut self, now: Nanos, id: SessionId, seq: Seq, to: ShardSet, op: Op<'_>) {
        self.attach(now, id, to);
        let from = Caller { session: id, seq };
        let Some((last, others)) = to.split_last() else {
            return;
        };
        for shard in others.iter() {
            self.submit(now, shard, from, op.clone());
        }
        self.submit(now, last, from, op);
    }

    fn submit(&mut self, now: Nanos, shard: ShardId, from: Caller, op: Op<'_>) {
        let outbox = &mut Outlet {
            hall: &mut self.hall,
            shard,
        };
        self.shards.submit(now, shard, from, op, outbox);
    }

    /// Makes the asks that events have led to, and those that these lead to. A shard to which there
    /// is no way has forgotten what they are about.
    fn ask_what_follows(&mut self, now: Nanos) {
        while let Some(FollowUp {
            session,
            seq,
            to,
            op,
        }) = self.hall.asks.pop_front()
        {
            self.ask(now, session, seq, self.not_down(to), op);
            self.hall.update_moment(session);
        }
    }
}

/// What the caller of the table takes from it and gives to it, whatever the shards are.
impl<S> Sessions<S> {
    /// What the session is owed. None if nothing is, or if the session is closed.
    pub fn replies(&mut self, id: SessionId) -> Option<Owed<'_>> {
        let Hall {
            entries, ledger, ..
        } = &mut self.hall;
        let entry = entries.get_mut(id.slot())?;
        let replies = entry.replies.as_deref_mut()?;
        (entry.session.id() == id).then(|| Owed::new(replies, ledger))
    }

    /// What has to be confirmed before the session is sent what it is owed.
    #[must_use]
    pub fn held_until(&self, id: SessionId) -> Ticket {
        let entry = self.hall.entries.get(id.slot());
        entry
            .filter(|entry| entry.session.id() == id)
            .and_then(|entry| entry.replies.as_ref())
            .map_or(Ticket(0), |replies| replies.held_until())
    }

    /// Takes back the memory of the session's replies if all have been sent.
    pub fn recycle(&mut self, id: SessionId) {
        let hall = &mut self.hall;
        let Some(entry) = hall.entries.get_mut(id.slot()) else {
            return;
        };
        if entry.session.id() != id {
            return;
        }
        if let Some(mut replies) = entry.replies.take_if(|replies| replies.is_empty())
            && hall.spare.len() < SPARE_REPLIES_MAX
        {
            replies.shrink(SPARE_REPLY_LEN_MAX);
            hall.spare.push(replies);
        }
    }

    /// Where a large body is being read to and how many bytes of it are wanted, if one is.
    pub fn direct(&mut self, id: SessionId) -> Option<(&mut Vec<u8>, usize)> {
        self.hall.entry(id)?.input.direct()
    }

    /// Whether the session waits for a job, for as long as it may take.
    #[must_use]
    pub fn waits_for_job(&self, id: SessionId) -> bool {
        self.hall.is(id, |entry| entry.session.waits_for_job())
    }

    /// Whether everything that the session has asked has been answered.
    #[must_use]
    pub fn is_answered(&self, id: SessionId) -> bool {
        self.hall.is(id, |entry| entry.session.is_answered())
    }

    /// Whether [`Sessions::take_stats_due`] has something to tell.
    #[must_use]
    pub fn is_stats_due(&self) -> bool {
        !self.hall.stats_due.is_empty()
    }

    /// Takes the sessions that have asked for `stats` and wait for [`Sessions::answer_stats`]. Who
    /// is not answered within [`GATHER_SECS_MAX`] of the question is told by itself that it failed.
    ///
    /// [`GATHER_SECS_MAX`]: crate::base::limits::GATHER_SECS_MAX
    pub fn take_stats_due(&mut self, into: &mut Vec<StatsDue>) {
        into.append(&mut self.hall.stats_due);
    }

    /// Answers `stats`, as far as it still is to be answered. `fleet` is what other processes have
    /// told, in a server that has such.
    pub fn answer_stats(
        &mut self,
        due: &[StatsDue],
        process: &ProcessStats<'_>,
        fleet: Option<&Fleet>,
    ) {
        for StatsDue { session: id, seq } in due {
            let hall = &mut self.hall;
            let Some(entry) = hall.entries.get_mut(id.slot()) else {
                continue;
            };
            if entry.session.id() == *id {
                let replies = lend(&mut hall.spare, &mut entry.replies);
                let mark = Ledger::begin(replies);
                let known = Known {
                    process,
                    counts: &hall.desk.counts,
                    fleet,
                };
                entry.session.answer_stats(*seq, &known, replies);
                hall.ledger.end(*id, mark, replies);
                hall.update_moment(*id);
                hall.touch(id.slot());
            }
        }
    }

    /// What this process has counted.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.hall.desk.counts
    }

    /// Takes what was traced.
    pub fn take_traces(&mut self) -> Vec<Trace> {
        self.hall
            .ledger
            .traces
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
}

impl Hall {
    fn entry(&mut self, id: SessionId) -> Option<&mut Entry> {
        self.entries
            .get_mut(id.slot())
            .filter(|entry| entry.session.id() == id)
    }

    /// Whether the session is open and `holds` of it.
    fn is(&self, id: SessionId, holds: impl FnOnce(&Entry) -> bool) -> bool {
        let entry = self.entries.get(id.slot());
        entry.is_some_and(|entry| entry.session.id() == id && holds(entry))
    }

    /// Answers the session's latest ask, which it does not wait for any more, with a line.
    fn say(&mut self, slot: u32, line: &[u8]) {
        self.write(slot, |_, replies| replies.line(line));
    }

    /// Lets a session write replies by itself.
    fn write(&mut self, slot: u32, write: impl FnOnce(&mut Session, &mut Replies)) {
        let entry = &mut self.entries[slot];
        let replies = lend(&mut self.spare, &mut entry.replies);
        let mark = Ledger::begin(replies);
        let id = entry.session.id();
        write(&mut entry.session, replies);
        self.ledger.end(id, mark, replies);
        self.update_moment(id);
        self.touch(slot);
    }

    fn take_id(&mut self, id: SessionId, job: Option<JobId>) {
        if let Some(entry) = self.entry(id) {
            entry.session.take_id(job);
        }
    }

    fn drain_touched(&mut self, into: &mut Vec<SessionId>) {
        into.append(&mut self.touched);
        for id in into.iter() {
            if let Some(entry) = self.entry(*id) {
                entry.is_touched = false;
            }
        }
    }

    fn touch(&mut self, slot: u32) {
        let entry = &mut self.entries[slot];
        if !entry.is_touched {
            entry.is_touched = true;
            self.touched.push(entry.session.id());
        }
    }

    /// Brings the session's place among the moments up to date.
    fn update_moment(&mut self, id: SessionId) {
        if let Some(entry) = self.entry(id)
            && entry.may_have_moment()
        {
            let moment = entry.session.moment();
            self.set_moment(id.slot(), moment);
        }
    }

    fn set_moment(&mut self, slot: u32, moment: Option<Nanos>) {
        let entries = &mut self.entries;
        let position = entries[slot].position;
        let placed = |slot, at| entries[slot].position = at;
        match (moment, position) {
            (None, NOWHERE) => {}
            (Some(moment), NOWHERE) => self.moments.push(moment, slot, placed),
            (Some(moment), _) => self.moments.change(position, moment, placed),
            (None, _) => {
                self.moments.remove(position, placed);
                self.entries[slot].position = NOWHERE;
            }
        }
    }
}

/// Where a shard speaks to sessions.
pub struct Outlet<'a> {
    hall: &'a mut Hall,
    shard: ShardId,
}

impl Outbox for Outlet<'_> {
    fn emit_after(&mut self, ticket: Ticket, to: Caller, event: Event<'_>) {
        self.emit(to, event);
        if let Some(entry) = self.hall.entry(to.session)
            && let Some(replies) = &mut entry.replies
        {
            replies.hold_until(ticket);
        }
    }

    fn emit(&mut self, to: Caller, event: Event<'_>) {
        let shard = self.shard;
        let hall = &mut *self.hall;
        let Some(entry) = hall.entries.get_mut(to.session.slot()) else {
            return;
        };
        // The session may be gone, and another in its place.
        if entry.session.id() != to.session {
            return;
        }
        let replies = lend(&mut hall.spare, &mut entry.replies);
        let mark = Ledger::begin(replies);
        let ear = Ear {
            desk: &mut hall.desk,
            replies: &mut *replies,
            asks: &mut hall.asks,
            stats_due: &mut hall.stats_due,
        };
        entry.session.hear(
            Heard {
                shard,
                seq: to.seq,
                event: &event,
            },
            ear,
        );
        hall.ledger.end(to.session, mark, replies);
        if !entry.is_touched {
            entry.is_touched = true;
            hall.touched.push(to.session);
        }
        if entry.may_have_moment() {
            hall.update_moment(to.session);
        }
    }
}

#[expect(clippy::vec_box, reason = "boxes move between sessions and this list")]
fn lend<'a>(
    spare: &mut Vec<Box<Replies>>,
    replies: &'a mut Option<Box<Replies>>,
) -> &'a mut Replies {
    replies.get_or_insert_with(|| spare.pop().unwrap_or_default())
}
