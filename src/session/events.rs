//! Events become replies, and sometimes further asks.

use std::collections::VecDeque;

use crate::base::body::BodyCow;
use crate::base::ids::{JobId, Seq, ShardId, ShardSet};
use crate::base::limits::{AHEAD_REPLY_LEN_MAX, SPARE_RESERVATIONS_MAX};
use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::time::Nanos;
use crate::engine::event::Event;
use crate::engine::op::Op;
use crate::engine::stats::ShardStats;
use crate::proto::reply;
use crate::proto::yaml::Yaml;
use crate::session::reply::Replies;
use crate::session::reserve::{Offer, Outcome, Reserving, Told, Verdict, answer_stale};
use crate::session::reserves::Reserves;
use crate::session::stats::{Known, StatsDue, write_job_stats, write_stats, write_tube_stats};
use crate::session::{Desk, FollowUp, Heard, Pending, Session};

/// What an event may touch besides its session.
pub(crate) struct Ear<'a> {
    pub(crate) desk: &'a mut Desk,
    pub(crate) replies: &'a mut Replies,
    /// Asks that follow, in the order in which they are to be made.
    pub(crate) asks: &'a mut VecDeque<FollowUp>,
    /// What is to be answered by [`Session::answer_stats`].
    pub(crate) stats_due: &'a mut Vec<StatsDue>,
}

impl Session {
    /// Takes an event.
    pub(crate) fn hear(&mut self, heard: Heard<'_>, ear: Ear<'_>) {
        let Heard { shard, seq, event } = heard;
        if self.lost {
            return;
        }
        if seq == Seq::NONE && !event.is_announcement() {
            // The answer to what the session was opened with. Its client did not ask for that.
            return;
        }
        let replies = &mut *ear.replies;
        match *event {
            Event::Expired { id } => self.let_go(id, ear.desk),
            Event::Using => self.on_using(ear),
            Event::Watching => self.on_watching(ear),
            Event::Ignored => self.on_ignored(ear),
            Event::Reserved {
                id,
                deadline,
                ref body,
            } => {
                self.hold(id, deadline, ear.desk);
                self.on_reserved(seq, id, body, ear);
            }
            Event::NoJob => self.on_told(shard, seq, Told::NoJob, ear),
            Event::Gone => self.on_told(shard, seq, Told::Gone, ear),
            Event::Cancelled => self.on_told(shard, seq, Told::Cancelled, ear),
            Event::Offered {
                id,
                pri,
                created_at,
            } => {
                let offer = Offer {
                    shard,
                    id,
                    pri,
                    created_at,
                };
                self.on_told(shard, seq, Told::Offered(offer), ear);
            }
            Event::ShardStats(stats) => self.on_shard_stats(heard, stats, ear.stats_due),
            Event::Tube(name) => self.on_tube(shard, seq, name),
            Event::TubesEnd => self.on_tubes_end(shard, seq, replies),
            Event::Inserted { id } => {
                self.answer(replies, |replies| reply::write_inserted(replies.text(), id));
            }
            Event::Draining => self.answer_line(reply::DRAINING, replies),
            Event::OutOfMemory => self.answer_line(reply::OUT_OF_MEMORY, replies),
            Event::Deleted { id } => self.on_finished(id, reply::DELETED, ear),
            Event::Released { id } => self.on_finished(id, reply::RELEASED, ear),
            Event::Buried { id } => self.on_finished(id, reply::BURIED, ear),
            Event::Touched { id, deadline } => self.on_touched(id, deadline, ear),
            Event::Kicked { count } => {
                self.answer(replies, |replies| {
                    reply::write_kicked(replies.text(), count.into())
                });
            }
            Event::KickedJob => self.answer_line(reply::KICKED, replies),
            Event::Found { id, ref body } => {
                self.note_body(body);
                self.answer(replies, |replies| replies.found(id, body));
            }
            Event::NotFound => self.answer_line(reply::NOT_FOUND, replies),
            Event::Paused => self.answer_line(reply::PAUSED, replies),
            Event::JobStats(ref stats) => {
                self.answer(replies, |replies| write_job_stats(replies.text(), stats));
            }
            Event::TubeStats(ref stats) => {
                self.answer(replies, |replies| write_tube_stats(replies.text(), stats));
            }
        }
    }

    /// Answers the `stats` that was asked under this number, once what the process knows of itself
    /// is at hand. Does nothing if it has been answered.
    pub(crate) fn answer_stats(&mut self, seq: Seq, known: &Known<'_>, replies: &mut Replies) {
        if let Pending::Stats(gathering) = &self.pending
            && gathering.seq == seq
            && gathering.is_complete()
        {
            write_stats(replies.text(), &gathering.sum, known);
            self.pending = Pending::Nothing;
        }
    }

    /// Writes the answer to an ask of one shard. If it was the last that was awaited, what was
    /// refused meanwhile is in turn.
    fn answer(&mut self, replies: &mut Replies, write: impl FnOnce(&mut Replies)) {
        write(replies);
        self.outstanding -= 1;
        self.body_asked &= self.outstanding > 0;
        if let (0, Pending::Refusing(line)) = (self.outstanding, &self.pending) {
            replies.line(line);
            self.pending = Pending::Nothing;
        }
    }

    fn answer_line(&mut self, line: &[u8], replies: &mut Replies) {
        self.answer(replies, |replies| replies.line(line));
    }

    /// The session does not hold the job any more, if it did.
    fn on_finished(&mut self, id: JobId, line: &[u8], ear: Ear<'_>) {
        self.let_go(id, ear.desk);
        self.answer_line(line, ear.replies);
    }

    fn on_touched(&mut self, id: JobId, deadline: Nanos, ear: Ear<'_>) {
        self.hold(id, deadline, ear.desk);
        self.answer_line(reply::TOUCHED, ear.replies);
    }

    /// Of a reserve or of reserve-job: one of the session's reserves is recognised by its number.
    fn on_reserved(&mut self, seq: Seq, id: JobId, body: &BodyCow<'_>, ear: Ear<'_>) {
        self.note_body(body);
        if self.reserving(seq).is_some() {
            self.answer_reserve(ear, |replies| replies.reserved(id, body));
        } else {
            self.become_worker(ear.desk);
            self.answer(ear.replies, |replies| replies.reserved(id, body));
        }
    }

    /// How large a body was tells how large the next may be.
    fn note_body(&mut self, body: &BodyCow<'_>) {
        self.bodies_are_small = body.len() <= AHEAD_REPLY_LEN_MAX;
    }

    fn on_told(&mut self, shard: ShardId, seq: Seq, told: Told, ear: Ear<'_>) {
        let session = self.id;
        let mut ask = |seq, to, op| {
            ear.asks.push_back(FollowUp {
                session,
                seq,
                to,
                op,
            })
        };
        let Some(reserving) = self.reserving(seq) else {
            if let Some(op) = answer_stale(told) {
                ask(seq, ShardSet::of(shard), op);
            }
            return;
        };
        match reserving.on_told(shard, told, |to, op| ask(seq, to, op)) {
            Verdict::Undecided => self.note_wait(ear),
            Verdict::Again => self.reserve_again(ear.asks),
            Verdict::Over(outcome) => {
                let line = match self.outcome_by(ear.desk.now, outcome) {
                    Outcome::TimedOut => reply::TIMED_OUT,
                    Outcome::DeadlineSoon => reply::DEADLINE_SOON,
                };
                self.answer_reserve(ear, |replies| replies.line(line));
            }
        }
    }

    /// If the session waits from now on, its time runs, and a client that is gone does not.
    fn note_wait(&mut self, ear: Ear<'_>) {
        let Some(front) = &mut self.reserves else {
            return;
        };
        if !front.reserving.has_settled() || front.is_counted {
            return;
        }
        let now = ear.desk.now;
        front.is_counted = true;
        front.begun.get_or_insert(now);
        ear.desk.counts.waiting += 1;
        if self.input_ended {
            self.on_input_end(now, ear.asks);
        } else if self.wait_end().is_some_and(|end| end <= now) {
            self.end_wait(now, ear.asks);
        }
    }

    /// How a reserve ends that was asked behind others: only when they were answered it was known
    /// what the session holds.
    fn outcome_by(&mut self, now: Nanos, outcome: Outcome) -> Outcome {
        let was_alone = self
            .reserves
            .as_ref()
            .is_some_and(|front| front.begun.is_some());
        if !was_alone && self.is_within_margin(now) {
            Outcome::DeadlineSoon
        } else {
            outcome
        }
    }

    /// The reservation that asks under this number, if it is not over.
    fn reserving(&mut self, seq: Seq) -> Option<&mut Reserving> {
        if let Some(Reserves { reserving, .. }) = self.reserves.as_deref_mut()
            && reserving.seq == seq
        {
            return Some(reserving);
        }
        None
    }

    fn reserve_again(&mut self, asks: &mut VecDeque<FollowUp>) {
        let (session, seq) = (self.id, self.next_seq());
        if let Some(Reserves { reserving, .. }) = self.reserves.as_deref_mut() {
            let (to, op) = reserving.again(seq);
            asks.push_back(FollowUp {
                session,
                seq,
                to,
                op,
            });
        }
        // A client that is gone does not wait, and nothing will end this wait later.
        if self.input_ended {
            self.give_up(Outcome::TimedOut, asks);
        }
    }

    fn on_using(&mut self, ear: Ear<'_>) {
        let Some(Pending::Using(tube)) = self.take_answered() else {
            return;
        };
        let used_at = ear.desk.map.of_tube(tube.as_name());
        if self.used_at != used_at {
            let seq = self.next_seq();
            let to = ShardSet::of(self.used_at);
            ear.asks.push_back(FollowUp {
                session: self.id,
                seq,
                to,
                op: Op::Unuse,
            });
        }
        reply::write_using(ear.replies.text(), tube.as_name());
        self.used = tube;
        self.used_at = used_at;
    }

    fn on_watching(&mut self, ear: Ear<'_>) {
        let Some(Pending::Watching(tube)) = self.take_answered() else {
            return;
        };
        self.watched_at.insert(ear.desk.map.of_tube(tube.as_name()));
        let hasher = ear.desk.hasher;
        self.watched
            .push(tube, |name: &TubeNameBuf| hasher.hash(name.as_name()));
        reply::write_watching(ear.replies.text(), self.watched.len());
    }

    fn on_ignored(&mut self, ear: Ear<'_>) {
        let Some(Pending::Ignoring(tube)) = self.take_answered() else {
            return;
        };
        let (hasher, map) = (ear.desk.hasher, ear.desk.map);
        if let Some(index) = self.watched_index(tube.as_name(), ear.desk) {
            self.watched
                .swap_remove(index, |name| hasher.hash(name.as_name()));
        }
        self.watched_at = ShardSet::EMPTY;
        for name in self.watched.as_slice() {
            self.watched_at.insert(map.of_tube(name.as_name()));
        }
        reply::write_watching(ear.replies.text(), self.watched.len());
    }

    fn on_shard_stats(
        &mut self,
        heard: Heard<'_>,
        stats: ShardStats,
        stats_due: &mut Vec<StatsDue>,
    ) {
        let Heard { shard, seq, .. } = heard;
        if let Pending::Stats(gathering) = &mut self.pending
            && gathering.seq == seq
            && gathering.misses(shard)
        {
            gathering.sum.add(shard, stats);
            if gathering.finish(shard) {
                let session = self.id;
                stats_due.push(StatsDue { session, seq });
            }
        }
    }

    fn on_tube(&mut self, shard: ShardId, seq: Seq, name: TubeName<'_>) {
        if let Pending::Tubes(gathering) = &mut self.pending
            && gathering.seq == seq
        {
            gathering.sum.add(shard, name);
        }
    }

    fn on_tubes_end(&mut self, shard: ShardId, seq: Seq, replies: &mut Replies) {
        let Pending::Tubes(gathering) = &mut self.pending else {
            return;
        };
        if gathering.seq != seq || !gathering.finish(shard) {
            return;
        }
        reply::write_ok(replies.text(), |out| {
            let mut yaml = Yaml::begin(out);
            gathering.sum.iter().for_each(|name| yaml.item(name));
        });
        self.pending = Pending::Nothing;
    }

    /// What has just been answered.
    fn take_answered(&mut self) -> Option<Pending> {
        self.is_at_barrier()
            .then(|| std::mem::replace(&mut self.pending, Pending::Nothing))
    }

    /// Writes the answer to the reserve that is in turn; the next is in turn then.
    fn answer_reserve(&mut self, ear: Ear<'_>, write: impl FnOnce(&mut Replies)) {
        let reserves = self.reserves.as_ref();
        let is_of_one = reserves.is_some_and(|reserves| reserves.reserving.is_of_one());
        self.pass_reserve(ear.desk);
        if is_of_one {
            self.answer(ear.replies, write);
        } else {
            self.body_asked = false;
            write(ear.replies);
        }
    }

    fn hold(&mut self, id: JobId, deadline: Nanos, desk: &mut Desk) {
        let spare = &mut desk.spare_reservations;
        let reservations = self
            .reservations
            .get_or_insert_with(|| spare.pop().unwrap_or_default());
        reservations.hold(id, deadline);
    }

    /// The session does not hold the job any more, if it did.
    fn let_go(&mut self, id: JobId, desk: &mut Desk) {
        let Some(reservations) = &mut self.reservations else {
            return;
        };
        reservations.forget(id);
        if reservations.is_empty()
            && let Some(mut emptied) = self.reservations.take()
            && desk.spare_reservations.len() < SPARE_RESERVATIONS_MAX
        {
            emptied.clear();
            desk.spare_reservations.push(emptied);
        }
    }
}
