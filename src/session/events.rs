//! Events become replies, and sometimes further asks.

use std::collections::VecDeque;

use crate::base::ids::{JobId, SessionId, ShardId, ShardSet};
use crate::base::name::TubeNameBuf;
use crate::base::time::Nanos;
use crate::engine::event::Event;
use crate::engine::op::Op;
use crate::engine::stats::ShardStats;
use crate::proto::reply;
use crate::proto::yaml::Yaml;
use crate::session::reply::Replies;
use crate::session::reserve::{Outcome, Verdict, answer_stale};
use crate::session::stats::{Counts, ProcessStats, write_job_stats, write_stats, write_tube_stats};
use crate::session::{Barrier, Desk, FollowUp, Heard, OPENING, Session};

/// What an event may touch besides its session.
pub(crate) struct Ear<'a> {
    pub(crate) desk: &'a mut Desk,
    pub(crate) replies: &'a mut Replies,
    /// Asks that follow, in the order in which they are to be made.
    pub(crate) asks: &'a mut VecDeque<FollowUp>,
    /// Sessions to be answered by [`Session::answer_stats`].
    pub(crate) stats_due: &'a mut Vec<SessionId>,
}

impl Session {
    /// Takes an event.
    pub(crate) fn hear(&mut self, heard: Heard<'_>, ear: Ear<'_>) {
        match *heard.event {
            // Its client did not ask for these, and may be waiting for something else by now.
            Event::Using | Event::Watching if heard.seq == OPENING => {}
            Event::Expired { id } => self.drop_reservation(id),
            Event::Using => self.on_using(ear),
            Event::Watching => self.on_watching(ear),
            Event::Ignored => self.on_ignored(ear),
            Event::Reserved { id, deadline, body } => {
                ear.replies.reserved(id, body);
                self.on_reserved(id, deadline, ear);
            }
            Event::NoJob | Event::Offered { .. } | Event::Gone | Event::Cancelled => {
                self.on_reserving(heard, ear);
            }
            Event::ShardStats(stats) => self.on_shard_stats(heard.shard, stats, ear.stats_due),
            Event::Tube(name) => {
                if let Barrier::Tubes(gathering) = &mut self.barrier {
                    gathering.sum.add(name);
                }
            }
            Event::TubesEnd => self.on_tubes_end(heard.shard, ear.replies),
            Event::Inserted { .. }
            | Event::Draining
            | Event::OutOfMemory
            | Event::Deleted { .. }
            | Event::Released { .. }
            | Event::Buried { .. }
            | Event::Touched { .. }
            | Event::Kicked { .. }
            | Event::KickedJob
            | Event::Found { .. }
            | Event::NotFound
            | Event::Paused
            | Event::JobStats(_)
            | Event::TubeStats(_) => self.on_answer(heard.event, ear.replies),
        }
    }

    /// Answers `stats`, once what the process knows of itself is at hand.
    pub(crate) fn answer_stats(
        &mut self,
        process: &ProcessStats,
        counts: &Counts,
        replies: &mut Replies,
    ) {
        if let Some(Barrier::Stats(gathering)) = self.take_barrier() {
            write_stats(replies.text(), &gathering.sum.total(), counts, process);
        }
    }

    /// The answer to an ask of one shard.
    fn on_answer(&mut self, event: &Event<'_>, replies: &mut Replies) {
        match *event {
            Event::Inserted { id } => reply::write_inserted(replies.text(), id),
            Event::Draining => replies.line(reply::DRAINING),
            Event::OutOfMemory => replies.line(reply::OUT_OF_MEMORY),
            Event::Deleted { id } => self.finish(id, reply::DELETED, replies),
            Event::Released { id } => self.finish(id, reply::RELEASED, replies),
            Event::Buried { id } => self.finish(id, reply::BURIED, replies),
            Event::Touched { id, deadline } => {
                self.hold(id, deadline);
                replies.line(reply::TOUCHED);
            }
            Event::Kicked { count } => reply::write_kicked(replies.text(), count.into()),
            Event::KickedJob => replies.line(reply::KICKED),
            Event::Found { id, body } => replies.found(id, body),
            Event::NotFound => replies.line(reply::NOT_FOUND),
            Event::Paused => replies.line(reply::PAUSED),
            Event::JobStats(ref stats) => write_job_stats(replies.text(), stats),
            Event::TubeStats(ref stats) => write_tube_stats(replies.text(), stats),
            _ => debug_assert!(false, "{event:?} is no answer to an ask of one shard"),
        }
        self.count_answer(replies);
    }

    /// Of the two that hand a job over, reserve is a barrier and reserve-job is not.
    fn on_reserved(&mut self, id: JobId, deadline: Nanos, ear: Ear<'_>) {
        self.hold(id, deadline);
        if matches!(self.barrier, Barrier::Reserving { .. }) {
            self.end_reserving(ear.desk);
        } else {
            self.become_worker(ear.desk);
            self.count_answer(ear.replies);
        }
    }

    /// One of the asks of one shard has been answered. If it was the last, what was refused
    /// meanwhile is in turn.
    fn count_answer(&mut self, replies: &mut Replies) {
        self.outstanding -= 1;
        if let (0, Barrier::Refusing(line)) = (self.outstanding, &self.barrier) {
            replies.line(line);
            self.barrier = Barrier::None;
        }
    }

    fn on_reserving(&mut self, heard: Heard<'_>, ear: Ear<'_>) {
        let session = self.id;
        let mut ask = |seq, to, op| {
            ear.asks.push_back(FollowUp {
                session,
                seq,
                to,
                op,
            })
        };
        let verdict = match &mut self.barrier {
            Barrier::Reserving { reserving, .. } if reserving.seq == heard.seq => {
                let seq = reserving.seq;
                reserving.on_event(heard.shard, heard.event, |to, op| ask(seq, to, op))
            }
            _ => {
                if let Some(op) = answer_stale(heard.event) {
                    ask(heard.seq, ShardSet::of(heard.shard), op);
                }
                return;
            }
        };
        match verdict {
            Verdict::Pending => {}
            Verdict::Again => {
                let seq = self.next_seq();
                if let Barrier::Reserving { reserving, .. } = &mut self.barrier {
                    let (to, op) = reserving.again(seq);
                    ask(seq, to, op);
                }
                // A client that is gone does not wait, and nothing will end this wait later.
                if self.input_ended {
                    self.give_up(Outcome::TimedOut, ear.asks);
                }
            }
            Verdict::Over(outcome) => {
                self.end_reserving(ear.desk);
                ear.replies.line(match outcome {
                    Outcome::TimedOut => reply::TIMED_OUT,
                    Outcome::DeadlineSoon => reply::DEADLINE_SOON,
                });
            }
        }
    }

    fn on_using(&mut self, ear: Ear<'_>) {
        let Some(Barrier::Using(tube)) = self.take_barrier() else {
            return;
        };
        let (old, new) = (self.used.as_name(), tube.as_name());
        let old_shard = ear.desk.map.of_tube(old);
        if old_shard != ear.desk.map.of_tube(new) {
            let seq = self.next_seq();
            let to = ShardSet::of(old_shard);
            ear.asks.push_back(FollowUp {
                session: self.id,
                seq,
                to,
                op: Op::Unuse,
            });
        }
        reply::write_using(ear.replies.text(), tube.as_name());
        self.used = tube;
    }

    fn on_watching(&mut self, ear: Ear<'_>) {
        let Some(Barrier::Watching(tube)) = self.take_barrier() else {
            return;
        };
        self.watched_at.insert(ear.desk.map.of_tube(tube.as_name()));
        let hasher = ear.desk.hasher;
        self.watched
            .push(tube, |name: &TubeNameBuf| hasher.hash(name.as_name()));
        reply::write_watching(ear.replies.text(), self.watched.len());
    }

    fn on_ignored(&mut self, ear: Ear<'_>) {
        let Some(Barrier::Ignoring(tube)) = self.take_barrier() else {
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
        shard: ShardId,
        stats: ShardStats,
        stats_due: &mut Vec<SessionId>,
    ) {
        let Barrier::Stats(gathering) = &mut self.barrier else {
            return;
        };
        gathering.sum.add(stats);
        if gathering.finish(shard) {
            stats_due.push(self.id);
        }
    }

    fn on_tubes_end(&mut self, shard: ShardId, replies: &mut Replies) {
        let Barrier::Tubes(gathering) = &mut self.barrier else {
            return;
        };
        if !gathering.finish(shard) {
            return;
        }
        reply::write_ok(replies.text(), |out| {
            let mut yaml = Yaml::begin(out);
            gathering.sum.iter().for_each(|name| yaml.item(name));
        });
        self.barrier = Barrier::None;
    }

    /// The barrier that has just been answered.
    fn take_barrier(&mut self) -> Option<Barrier> {
        self.is_at_barrier()
            .then(|| std::mem::replace(&mut self.barrier, Barrier::None))
    }

    fn end_reserving(&mut self, desk: &mut Desk) {
        if let Some(Barrier::Reserving { reserving, .. }) = self.take_barrier() {
            desk.counts.waiting -= u64::from(reserving.waits());
        }
    }

    fn finish(&mut self, id: JobId, line: &[u8], replies: &mut Replies) {
        self.drop_reservation(id);
        replies.line(line);
    }

    fn hold(&mut self, id: JobId, deadline: Nanos) {
        self.reservations.get_or_insert_default().hold(id, deadline);
    }

    fn drop_reservation(&mut self, id: JobId) {
        if let Some(reservations) = &mut self.reservations {
            reservations.forget(id);
        }
    }
}
