//! What is cut off the input and what it comes to: commands, bodies, and what was thrown away.

use crate::base::ids::SessionId;
use crate::base::time::Nanos;
use crate::proto::command::parse;
use crate::proto::reply;
use crate::session::Step;
use crate::session::commands::Room;
use crate::session::input::{Item, Skip};
use crate::session::shards::Shards;
use crate::session::table::owed::Ledger;
use crate::session::table::reach::Passage;
use crate::session::table::{Entry, Hall, Traced, lend};

impl Hall {
    /// What an item of the input comes to; None if it has to wait.
    pub(super) fn take_item<'a>(
        &mut self,
        now: Nanos,
        id: SessionId,
        item: Item<'a>,
        shards: &impl Shards,
    ) -> Option<Step<'a>> {
        if let Item::Line(line) = item {
            return self.take_line(now, id, line, shards);
        }
        let hold_until = match &item {
            Item::Body(_) => self.put_waits_until(now, id.slot(), shards),
            Item::Line(_)
            | Item::LineTooLong { .. }
            | Item::BodyUnterminated
            | Item::Skipped(_) => None,
        };
        let entry = &mut self.entries[id.slot()];
        let replies = lend(&mut self.spare, &mut entry.replies);
        let Entry { session, input, .. } = entry;
        let desk = &mut self.desk;
        let mark = Ledger::begin(replies);
        let step = match item {
            Item::LineTooLong { http, body_len } => {
                session.refuse_long_line(http, body_len, input, replies)
            }
            Item::Body(body) => {
                self.ledger.trace(id, || Traced::Body(session.putting_id()));
                match hold_until {
                    Some(until) => session.hold_put(body.into_body(), until, desk.map),
                    None => session.finish_put(body, desk),
                }
            }
            Item::Line(_) => Step::Done,
            Item::BodyUnterminated => session.fail_put(reply::EXPECTED_CRLF, replies),
            Item::Skipped(Skip::TooBig) => session.fail_put(reply::JOB_TOO_BIG, replies),
            Item::Skipped(Skip::OutOfMemory) => session.fail_put(reply::OUT_OF_MEMORY, replies),
            Item::Skipped(Skip::Answered) => Step::Done,
        };
        self.ledger.end(id, mark, replies);
        if hold_until.is_some() {
            self.enter_queue(id.slot());
            self.update_moment(id);
        }
        self.touch(id.slot());
        Some(step)
    }

    /// What a line comes to; None if it has to wait.
    fn take_line<'a>(
        &mut self,
        now: Nanos,
        id: SessionId,
        line: &'a [u8],
        shards: &impl Shards,
    ) -> Option<Step<'a>> {
        let command = parse(line);
        let session = &self.entries[id.slot()].session;
        if !session.admits(&command, &self.desk) {
            return None;
        }
        let passage = if self.is_clear(shards) && !session.is_called() {
            Passage::Open
        } else {
            self.passage(now, id, &command, shards)
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
                entry.session.refuse_unreachable(&command, room)
            }
            Ok(command) => entry.session.obey(command, room),
            Err(refused) => entry.session.refuse(refused, room),
        };
        let replies = lend(spare, &mut entry.replies);
        ledger.end(id, mark, replies);
        self.touch(id.slot());
        Some(step)
    }
}
