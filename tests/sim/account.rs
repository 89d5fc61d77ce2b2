//! What a client has said, beside what was asked of owners in its name: every command that asks is
//! asked once and in order, one that failed was not asked, and nothing is asked that nobody said.

use std::collections::VecDeque;

use beanshard::base::ids::Pri;
use beanshard::base::time::Secs;
use beanshard::engine::op::Op;

use crate::command::Command;
use crate::reply::Reply;

/// The commands of one client that are not answered.
#[derive(Default)]
pub(crate) struct Account {
    lines: VecDeque<Line>,
    /// Asks of reserves beyond one for each that was answered with something else than that it has
    /// failed.
    spare: u32,
}

struct Line {
    command: Command,
    /// How often it was asked: more than once only if it is a reserve.
    asks: u32,
}

impl Account {
    /// The client has said it.
    pub(crate) fn say(&mut self, command: &Command) {
        self.lines.push_back(Line {
            command: command.clone(),
            asks: 0,
        });
    }

    /// An owner is asked it. Whether there is a command that may lead to it.
    pub(crate) fn ask(&mut self, op: &Op<'_>) -> bool {
        let again = matches!(op, Op::Reserve { .. });
        // Whoever asks does so in the order of the commands.
        let last = self.lines.iter().rposition(|line| line.asks > 0);
        let may = |line: &&mut Line| leads_to(&line.command, op) && (again || line.asks == 0);
        let mut lines = self.lines.iter_mut().skip(last.unwrap_or(0));
        lines.find(may).map(|line| line.asks += 1).is_some()
    }

    /// The next command is answered.
    pub(crate) fn answer(&mut self, reply: &Reply) -> Result<(), &'static str> {
        let line = self.lines.pop_front().ok_or("was not said")?;
        if reply.is("INTERNAL_ERROR") {
            return self.fail(&line);
        }
        let answers_itself = reply.is("JOB_TOO_BIG") || reply.is("EXPECTED_CRLF");
        let mut was_asked = line.asks > 0;
        if line.command.is_reserve() {
            // Of several asks the last may have been of another reserve that comes later.
            let asks = self.spare + line.asks;
            was_asked = asks > 0;
            self.spare = asks.saturating_sub(1);
        }
        if was_asked || answers_itself || !must_ask(&line.command) {
            Ok(())
        } else {
            Err("was answered without being asked")
        }
    }

    /// The command has failed: it was not asked. But another may have been, which says the same.
    fn fail(&mut self, line: &Line) -> Result<(), &'static str> {
        if line.command.is_reserve() {
            self.spare += line.asks;
            return Ok(());
        }
        if line.asks == 0 {
            return Ok(());
        }
        let is_twin = |other: &&mut Line| other.command == line.command && other.asks == 0;
        let twin = self.lines.iter_mut().find(is_twin);
        let twin = twin.ok_or("has failed and was asked all the same")?;
        twin.asks = line.asks;
        Ok(())
    }
}

/// Whether an answer, other than that it has failed, can only come of an ask.
fn must_ask(command: &Command) -> bool {
    match command {
        Command::Put(_)
        | Command::Reserve
        | Command::ReserveWithTimeout(_)
        | Command::ReserveJob(_)
        | Command::Delete(_)
        | Command::Release(..)
        | Command::Bury(..)
        | Command::Touch(_)
        | Command::Kick(_)
        | Command::KickJob(_)
        | Command::PauseTube(..)
        | Command::Peek(_)
        | Command::StatsJob(_)
        | Command::StatsTube(_) => true,
        Command::Use(_)
        | Command::Watch(_)
        | Command::Ignore(_)
        | Command::PeekOf(_)
        | Command::Stats
        | Command::ListTubes
        | Command::ListTubeUsed
        | Command::ListTubesWatched
        | Command::Nonsense(..)
        | Command::LongLine
        | Command::Last(_) => false,
    }
}

/// Whether it is what a session asks for the command.
fn leads_to(command: &Command, op: &Op<'_>) -> bool {
    let is = |name: &str, bytes: &[u8]| name.as_bytes() == bytes;
    match (command, op) {
        (Command::Put(put), Op::Put(asked)) => put.body[..] == asked.body[..],
        (Command::Use(name), Op::Use { tube })
        | (Command::Watch(name), Op::Watch { tube })
        | (Command::Ignore(name), Op::Ignore { tube })
        | (Command::StatsTube(name), Op::StatsTube { tube }) => is(name, tube.as_bytes()),
        (Command::PauseTube(name, secs), Op::PauseTube { tube, pause }) => {
            is(name, tube.as_bytes()) && *pause == Secs(*secs)
        }
        (Command::Reserve | Command::ReserveWithTimeout(_), Op::Reserve { .. }) => true,
        (Command::ReserveJob(job), Op::ReserveJob { id })
        | (Command::Delete(job), Op::Delete { id })
        | (Command::Touch(job), Op::Touch { id })
        | (Command::KickJob(job), Op::KickJob { id })
        | (Command::Peek(job), Op::Peek { id })
        | (Command::StatsJob(job), Op::StatsJob { id }) => *job == id.0,
        (Command::Release(job, rank, secs), Op::Release { id, pri, delay }) => {
            (*job, Pri(*rank), Secs(*secs)) == (id.0, *pri, *delay)
        }
        (Command::Bury(job, rank), Op::Bury { id, pri }) => (*job, Pri(*rank)) == (id.0, *pri),
        (Command::Kick(most), Op::Kick { count }) => most == count,
        (Command::PeekOf("ready"), Op::PeekReady)
        | (Command::PeekOf("delayed"), Op::PeekDelayed)
        | (Command::PeekOf("buried"), Op::PeekBuried) => true,
        _ => false,
    }
}
