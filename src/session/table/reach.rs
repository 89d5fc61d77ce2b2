//! Shards that cannot be asked now: who waits for them, who goes on when they can be asked again,
//! and who is lost when the link to one is gone. A shard of the same process is always in reach,
//! and then none of this happens.

use crate::base::body::Body;
use crate::base::ids::{Caller, Seq, SessionId, ShardId, ShardSet};
use crate::base::name::TubeNameBuf;
use crate::base::time::Nanos;
use crate::engine::op::Op;
use crate::proto::command::{Command, Refused};
use crate::proto::reply;
use crate::session::shards::{Reach, Shards};
#[cfg(any(test, debug_assertions))]
use crate::session::table::NOWHERE;
use crate::session::table::{Hall, Outlet, Sessions};
use crate::session::waiting::{Loss, Place, Stage, answers_with_job};

/// Whether a command may be obeyed, as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// It may.
    Open,
    /// It waits; its session is called when it is to be read anew.
    Waits,
    /// It has waited long enough for a shard to which there is no way.
    Refused,
}

impl<S: Shards> Sessions<S> {
    /// The link to the shard is gone, with all that was under way. Sessions that had something
    /// under way there or hold a job of it are lost; the others forget that it knew them.
    pub fn lose(&mut self, now: Nanos, shard: ShardId) {
        let hall = &mut self.hall;
        let map = hall.desk.map;
        let until = Nanos(now.0.saturating_add(hall.owner_wait));
        for slot in hall.slots() {
            let session = &mut hall.entries[slot].session;
            let waits = session.waiting().is_some_and(|waiting| {
                waiting.place == Place::Shard(shard) && waiting.until == Nanos::MAX
            });
            if waits && !session.is_called() {
                session.wait_until(until);
            }
            let (id, loss) = (session.id(), session.on_loss(now, shard, map));
            match loss {
                Loss::None => hall.update_moment(id),
                Loss::Fault => hall.say(slot, reply::INTERNAL_ERROR),
                Loss::All => hall.lose(slot),
            }
        }
    }

    /// There is a link to the shard again. Sessions that refer to its tubes are introduced to it,
    /// and those that wait for it go on, first come first.
    pub fn regain(&mut self, now: Nanos, shard: ShardId) {
        for slot in self.hall.slots() {
            let session = &mut self.hall.entries[slot].session;
            if session.is_missed_at(shard) {
                session.attach(ShardSet::of(shard));
                let id = session.id();
                self.introduce(now, id, shard);
            }
        }
        while let Some(slot) = self.hall.queues.first_held(shard) {
            self.submit_held(now, slot);
        }
        while let Some(slot) = self.hall.queues.front(Place::Shard(shard)) {
            self.hall.entries[slot].session.wait_until(Nanos::MAX);
            self.hall.call(slot);
        }
    }

    /// The shard can take `count` more asks: as many of the sessions that wait for that go on,
    /// first come first.
    pub fn resume(&mut self, _: Nanos, shard: ShardId, count: usize) {
        for _ in 0..count {
            let Some(slot) = self.hall.queues.front(Place::Shard(shard)) else {
                return;
            };
            self.hall.call(slot);
        }
    }

    /// Takes the sessions to which something has happened: they have been answered, or can go on.
    /// Each is named once, and may have been closed since. When nothing has happened, that is the
    /// occasion for those whose turn it is among the ones that wait for a shard or for room.
    pub fn take_touched(&mut self, into: &mut Vec<SessionId>) {
        if self.hall.touched.is_empty() && !self.hall.queues.are_empty() {
            self.call_next();
        }
        self.hall.drain_touched(into);
    }

    /// Calls one session for each thing that is waited for and that is there. Without this, a
    /// session that was called and does not come for it would keep it from the others.
    fn call_next(&mut self) {
        for shard in self.hall.queues.busy().iter() {
            if self.shards.reach(ShardSet::of(shard)) == Reach::Now {
                self.hall.call_front(Place::Shard(shard));
            }
        }
        if !self.hall.ledger.is_full() {
            self.hall.call_front(Place::Replies);
        }
    }

    /// A session has waited long enough for a shard to which there is no way.
    pub(super) fn end_waiting(&mut self, slot: u32) {
        let is_held = self.hall.entries[slot]
            .session
            .waiting()
            .is_some_and(|waiting| waiting.stage == Stage::Held);
        if !is_held {
            return self.hall.call(slot);
        }
        drop(self.hall.take_held(slot));
        self.hall.write(slot, |session, replies| {
            session.fail_put(reply::INTERNAL_ERROR, replies);
        });
    }

    fn submit_held(&mut self, now: Nanos, slot: u32) {
        let Some(body) = self.hall.take_held(slot) else {
            return;
        };
        let id = self.hall.entries[slot].session.id();
        self.submit_put(now, id, body.into());
        self.hall.touch(slot);
    }

    /// Tells the shard, which has just been told that there is such a session, which of its tubes
    /// the session refers to. What it answers is of no interest.
    pub(super) fn introduce(&mut self, now: Nanos, id: SessionId, shard: ShardId) {
        self.shards.attach(shard, id);
        let map = self.hall.desk.map;
        let Some(entry) = self.hall.entry(id) else {
            return;
        };
        // They are not there while the shard is told, so that it can be told without a copy.
        let used = std::mem::replace(&mut entry.session.used, TubeNameBuf::DEFAULT);
        let watched = std::mem::take(&mut entry.session.watched);
        let from = Caller {
            session: id,
            seq: Seq::NONE,
        };
        let uses = (map.of_tube(used.as_name()) == shard).then_some(Op::Use {
            tube: used.as_name(),
        });
        let names = watched.as_slice().iter().map(|name| name.as_name());
        let here = names.filter(|tube| map.of_tube(*tube) == shard);
        let outlet = &mut Outlet {
            hall: &mut self.hall,
            shard,
        };
        for op in uses.into_iter().chain(here.map(|tube| Op::Watch { tube })) {
            self.shards.submit(now, shard, from, op, outlet);
        }
        if let Some(entry) = self.hall.entry(id) {
            entry.session.used = used;
            entry.session.watched = watched;
        }
    }

    /// Those of `shards` to which there is a way.
    pub(super) fn not_down(&self, shards: ShardSet) -> ShardSet {
        if self.shards.reach(shards) == Reach::Now {
            return shards;
        }
        let is_up =
            |shard: &ShardId| !matches!(self.shards.reach(ShardSet::of(*shard)), Reach::Down(_));
        let mut up = ShardSet::EMPTY;
        shards
            .iter()
            .filter(is_up)
            .for_each(|shard| up.insert(shard));
        up
    }
}

/// What needs no shard.
impl<S> Sessions<S> {
    /// A shard has refused what the session asked: nobody knows what it has done for it.
    pub fn disown(&mut self, session: SessionId) {
        if self.hall.entry(session).is_some() {
            self.hall.lose(session.slot());
        }
    }

    /// Whether the session's connection is to be closed, because what became of something that it
    /// has asked or holds is not known. What it was answered before may still be sent.
    #[must_use]
    pub fn is_lost(&self, id: SessionId) -> bool {
        self.hall.is(id, |entry| entry.session.is_lost())
    }

    /// Whether the session is to be fed again what it has left unread: it is answered, or called.
    #[must_use]
    pub fn may_go_on(&self, id: SessionId) -> bool {
        self.hall.is(id, |entry| {
            entry.session.is_answered() || entry.session.is_called()
        })
    }
}

impl<S> Sessions<S> {
    /// Recounts what is counted as it changes.
    ///
    /// # Panics
    /// If something is not as it must be.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&mut self) {
        let hall = &mut self.hall;
        let entries = || hall.entries.iter().map(|(_, entry)| entry);
        let owed: usize = entries().map(|entry| entry.backlog()).sum();
        assert_eq!(hall.ledger.owed, owed, "bytes of replies of all sessions");
        let waiting = entries().filter(|entry| entry.session.waiting().is_some());
        assert_eq!(
            hall.queues.counted(),
            waiting.count(),
            "who says that it waits does"
        );
        for slot in hall.slots() {
            let entry = &mut hall.entries[slot];
            let has_moment = entry.position != NOWHERE;
            assert_eq!(
                has_moment,
                entry.session.moment().is_some(),
                "moments are in their heap"
            );
        }
    }
}

impl Hall {
    /// Whether any command may be obeyed, as far as others are concerned.
    pub(super) fn is_clear(&self, shards: &impl Shards) -> bool {
        self.queues.are_empty()
            && !self.ledger.is_full()
            && shards.reach(self.desk.map.all()) == Reach::Now
    }

    /// Whether a command that its session admits may be obeyed. If not, the session waits.
    pub(super) fn passage(
        &mut self,
        now: Nanos,
        id: SessionId,
        command: &Result<Command<'_>, Refused>,
        shards: &impl Shards,
    ) -> Passage {
        let slot = id.slot();
        let session = &mut self.entries[slot].session;
        let called = session.end_call();
        let (from, until) = called.map_or((None, Nanos::MAX), |w| (Some(w.place), w.until));
        if let Some(place) = from {
            self.queues
                .leave(slot, place, Stage::Called, &mut self.entries);
        }
        let session = &self.entries[slot].session;
        let Ok(command) = command else {
            return Passage::Open;
        };
        let targets = session.targets(command, &self.desk);
        if targets.is_empty() {
            return Passage::Open;
        }
        let (place, until) = match shards.reach(targets) {
            Reach::Full(shard) => (Place::Shard(shard), Nanos::MAX),
            Reach::Down(shard) => {
                let until = match until {
                    Nanos::MAX => Nanos(now.0.saturating_add(self.owner_wait)),
                    until => until,
                };
                if until <= now {
                    return Passage::Refused;
                }
                (Place::Shard(shard), until)
            }
            Reach::Now => match self.turn_of(command, targets, from.is_some()) {
                Some(place) => (place, Nanos::MAX),
                None => return Passage::Open,
            },
        };
        let stage = if from == Some(place) {
            Stage::Returned
        } else {
            Stage::Queued
        };
        self.entries[slot].session.wait(place, stage, until);
        self.queues.enter(slot, place, stage, &mut self.entries);
        self.update_moment(id);
        Passage::Waits
    }

    /// What a command has to wait for although its shards are in reach: room for its answer, or
    /// those that came before. Who has been called has waited behind others already, and does not
    /// do so for each of its shards in turn.
    fn turn_of(&self, command: &Command<'_>, targets: ShardSet, is_called: bool) -> Option<Place> {
        let needs_room = answers_with_job(command);
        let comes_late = self.queues.is_busy_with_replies() && !is_called;
        if needs_room && (self.ledger.is_full() || comes_late) {
            return Some(Place::Replies);
        }
        let busy = targets.common(self.queues.busy());
        let first = busy.iter().next().filter(|_| !is_called);
        first.map(Place::Shard)
    }

    /// Until when a put whose body is there has to be held because there is no way to its shard.
    /// None if there is one.
    pub(super) fn put_waits_until(
        &self,
        now: Nanos,
        slot: u32,
        shards: &impl Shards,
    ) -> Option<Nanos> {
        if shards.reach(self.desk.map.all()) == Reach::Now {
            return None;
        }
        let shard = self.entries[slot].session.used_at;
        match shards.reach(ShardSet::of(shard)) {
            Reach::Now | Reach::Full(_) => None,
            Reach::Down(_) => Some(Nanos(now.0.saturating_add(self.owner_wait))),
        }
    }

    fn call_front(&mut self, place: Place) {
        if let Some(slot) = self.queues.front(place) {
            self.call(slot);
        }
    }

    /// Takes the session out of those that wait, and has its next command read anew.
    pub(super) fn call(&mut self, slot: u32) {
        self.leave_queue(slot);
        let session = &mut self.entries[slot].session;
        let id = session.id();
        let held = session.call();
        debug_assert!(held.is_none(), "who holds a put has no command to be read");
        self.enter_queue(slot);
        self.update_moment(id);
        self.touch(slot);
    }

    /// Takes the put that a session holds from it.
    fn take_held(&mut self, slot: u32) -> Option<Body> {
        self.leave_queue(slot);
        let session = &mut self.entries[slot].session;
        let id = session.id();
        let body = session.call();
        self.update_moment(id);
        body
    }

    /// Puts the session in the list in which it says it is, if it waits.
    pub(super) fn enter_queue(&mut self, slot: u32) {
        if let Some(waiting) = self.entries[slot].session.waiting() {
            let (place, stage) = (waiting.place, waiting.stage);
            self.queues.enter(slot, place, stage, &mut self.entries);
        }
    }

    /// Takes the session out of the list in which it says it is, if it waits.
    pub(super) fn leave_queue(&mut self, slot: u32) {
        if let Some(waiting) = self.entries[slot].session.waiting() {
            let (place, stage) = (waiting.place, waiting.stage);
            self.queues.leave(slot, place, stage, &mut self.entries);
        }
    }

    fn lose(&mut self, slot: u32) {
        self.leave_queue(slot);
        self.set_moment(slot, None);
        self.entries[slot].session.lose(&mut self.desk.counts);
        self.touch(slot);
    }

    /// Slots of all sessions.
    fn slots(&self) -> Vec<u32> {
        self.entries.iter().map(|(slot, _)| slot).collect()
    }
}
