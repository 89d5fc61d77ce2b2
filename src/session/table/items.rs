//! What is cut off the input and what it comes to: commands, bodies, and what was thrown away.

use crate::base::body::BodyCow;
use crate::base::ids::{Seq, SessionId, ShardSet};
use crate::base::time::Nanos;
use crate::engine::op::Op;
use crate::proto::command::{Command, Refused, parse};
use crate::proto::reply;
use crate::session::Step;
use crate::session::commands::Room;
use crate::session::input::{Item, Skip};
use crate::session::shards::Shards;
use crate::session::table::owed::Ledger;
use crate::session::table::reach::Passage;
use crate::session::table::{Entry, Hall, Sessions, Traced, lend};

/// Whether an item has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It has.
    Taken,
    /// Nothing has been done about it: it has to wait.
    NotYet,
}

impl<S: Shards> Sessions<S> {
    /// Takes an item of the input.
    pub(super) fn take_item(&mut self, now: Nanos, id: SessionId, item: Item<'_>) -> Taken {
        match item {
            Item::Line(line) => return self.take_line(now, id, line),
            Item::Body(body) => self.take_body(now, id, body),
            Item::LineTooLong { .. } | Item::BodyUnterminated | Item::Skipped(_) => {
                self.hall.refuse_item(id, &item);
            }
        }
        Taken::Taken
    }

    fn take_line(&mut self, now: Nanos, id: SessionId, line: &[u8]) -> Taken {
        let command = parse(line);
        let Some(step) = self.hall.take_command(now, id, &command, &self.shards) else {
            return Taken::NotYet;
        };
        match (step, command) {
            (Step::Done, _) | (Step::Ask { .. }, Err(_)) => {}
            (Step::Ask { to, seq }, Ok(command)) => {
                self.ask_for(now, id, seq, to, command);
                self.finish_asking(now, id);
            }
            (
                Step::Reserve {
                    to,
                    seq,
                    style,
                    wait,
                },
                _,
            ) => {
                self.ask(now, id, seq, to, Op::Reserve { style, wait });
                self.finish_asking(now, id);
            }
            (Step::TakeId(shard), _) => {
                let job = self.shards.take_id(shard, id);
                self.hall.take_id(id, job);
            }
        }
        Taken::Taken
    }

    fn take_body(&mut self, now: Nanos, id: SessionId, body: BodyCow<'_>) {
        let slot = id.slot();
        self.hall.ledger.trace(id, || {
            Traced::Body(self.hall.entries[slot].session.putting_id())
        });
        if let Some(until) = self.hall.put_waits_until(now, slot, &self.shards) {
            self.hall.entries[slot]
                .session
                .hold_put(body.into_body(), until);
            self.hall.enter_queue(slot);
            self.hall.update_moment(id);
        } else {
            self.submit_put(now, id, body);
        }
        self.hall.touch(slot);
    }

    /// Asks for the job of the session's put to be made, which has come to its end.
    pub(super) fn submit_put(&mut self, now: Nanos, id: SessionId, body: BodyCow<'_>) {
        let session = &mut self.hall.entries[id.slot()].session;
        if let Some((line, shard, seq)) = session.finish_put() {
            self.ask(now, id, seq, ShardSet::of(shard), Op::Put(line.with(body)));
            self.finish_asking(now, id);
        }
    }

    /// Asks what the command says. What is asked is made where it is handed over, see [`Step`].
    fn ask_for(&mut self, now: Nanos, id: SessionId, seq: Seq, to: ShardSet, what: Command<'_>) {
        let mut ask = |op: Op<'_>| self.ask(now, id, seq, to, op);
        match what {
            Command::Use(tube) => ask(Op::Use { tube }),
            Command::Watch(tube) => ask(Op::Watch { tube }),
            Command::Ignore(tube) => ask(Op::Ignore { tube }),
            Command::ReserveJob(id) => ask(Op::ReserveJob { id }),
            Command::Delete(id) => ask(Op::Delete { id }),
            Command::Release { id, pri, delay } => ask(Op::Release { id, pri, delay }),
            Command::Bury { id, pri } => ask(Op::Bury { id, pri }),
            Command::Touch(id) => ask(Op::Touch { id }),
            Command::Kick { count } => ask(Op::Kick { count }),
            Command::KickJob(id) => ask(Op::KickJob { id }),
            Command::Peek(id) => ask(Op::Peek { id }),
            Command::PeekReady => ask(Op::PeekReady),
            Command::PeekDelayed => ask(Op::PeekDelayed),
            Command::PeekBuried => ask(Op::PeekBuried),
            Command::PauseTube { tube, pause } => ask(Op::PauseTube { tube, pause }),
            Command::StatsJob(id) => ask(Op::StatsJob { id }),
            Command::StatsTube(tube) => ask(Op::StatsTube { tube }),
            Command::Stats => ask(Op::Stats),
            Command::ListTubes => ask(Op::ListTubes),
            Command::Put { .. }
            | Command::Reserve
            | Command::ReserveWithTimeout(_)
            | Command::ListTubesWatched
            | Command::ListTubeUsed
            | Command::Quit => debug_assert!(false, "these ask nothing, or more than they say"),
        }
    }

    fn finish_asking(&mut self, now: Nanos, id: SessionId) {
        self.ask_what_follows(now);
        self.hall.update_moment(id);
    }
}

impl Hall {
    /// Takes what is neither a line nor a body: there is something to be refused, or nothing.
    fn refuse_item(&mut self, id: SessionId, item: &Item<'_>) {
        let entry = &mut self.entries[id.slot()];
        let replies = lend(&mut self.spare, &mut entry.replies);
        let Entry { session, input, .. } = entry;
        let mark = Ledger::begin(replies);
        match *item {
            Item::LineTooLong { http, body_len } => {
                session.refuse_long_line(http, body_len, input, replies);
            }
            Item::BodyUnterminated => session.fail_put(reply::EXPECTED_CRLF, replies),
            Item::Skipped(Skip::TooBig) => session.fail_put(reply::JOB_TOO_BIG, replies),
            Item::Skipped(Skip::OutOfMemory) => session.fail_put(reply::OUT_OF_MEMORY, replies),
            Item::Skipped(Skip::Answered) | Item::Line(_) | Item::Body(_) => {}
        }
        self.ledger.end(id, mark, replies);
        self.touch(id.slot());
    }

    /// What a line comes to, read as a command or not; None if it has to wait.
    fn take_command(
        &mut self,
        now: Nanos,
        id: SessionId,
        command: &Result<Command<'_>, Refused>,
        shards: &impl Shards,
    ) -> Option<Step> {
        let session = &self.entries[id.slot()].session;
        if !session.admits(command, &self.desk) {
            return None;
        }
        let passage = if self.is_clear(shards) && !session.is_called() {
            Passage::Open
        } else {
            self.passage(now, id, command, shards)
        };
        if passage == Passage::Waits {
            return None;
        }
        self.ledger.trace(id, || {
            Traced::Command(command.as_ref().map_or_else(|r| r.kind, |c| Some(c.kind())))
        });
        let Hall {
            entries,
            desk,
            spare,
            ledger,
            ..
        } = self;
        let entry = &mut entries[id.slot()];
        let replies = lend(spare, &mut entry.replies);
        let mark = Ledger::begin(replies);
        let room = Room {
            now,
            desk,
            input: &mut entry.input,
            replies,
        };
        let step = match command {
            Ok(command) if passage == Passage::Refused => {
                entry.session.refuse_unreachable(command, room)
            }
            Ok(command) => entry.session.obey(command, room),
            Err(refused) => entry.session.refuse(*refused, room),
        };
        let replies = lend(spare, &mut entry.replies);
        ledger.end(id, mark, replies);
        self.touch(id.slot());
        Some(step)
    }
}
