//! Runs a case against both servers and compares what each client is told, step by step, and at
//! the end what the servers say about their tubes and jobs.
//!
//! Replies on different connections have no order, so no two clients may be busy at once: a client
//! that waits with commands behind its reserve goes on by itself as soon as it is served, and while
//! there is one, everybody else sends a command at a time.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use crate::answer::{Alike, Answer};
use crate::fixture::wait_until;
use crate::ids::Ids;
use crate::plan::{CLIENTS, Chunk, Plan, Step, Unit};
use crate::record::Record;
use crate::side::{Heard, Side};

/// The command lines of the two servers.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    /// Ours.
    pub(crate) ours: Vec<String>,
    /// The C server.
    pub(crate) theirs: Vec<String>,
    /// How far they can be compared.
    pub(crate) alike: Alike,
}

/// How a case ended.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The two servers cannot be told apart; this was played.
    Alike(Record),
    /// They can.
    Different(String),
    /// The case took so long that what is over soon after a command may have been over for one
    /// server and not for the other.
    TooSlow,
}

/// Runs a case.
pub(crate) fn run(servers: &Servers, plan: &Plan) -> io::Result<Verdict> {
    let mut duel = Duel::start(servers, plan)?;
    for step in &plan.steps {
        duel.step(step)?;
        if !duel.differences.is_empty() {
            break;
        }
        if duel.is_late() {
            return Ok(Verdict::TooSlow);
        }
    }
    if duel.differences.is_empty() {
        duel.compare_state()?;
    }
    if duel.differences.is_empty() {
        return Ok(Verdict::Alike(duel.record));
    }
    if duel.is_late() {
        return Ok(Verdict::TooSlow);
    }
    Ok(Verdict::Different(format!(
        "the servers differ in the last step; a transcript with the C server's replies:\n\n{}\n{}",
        duel.record.text(),
        duel.differences
    )))
}

struct Duel {
    ours: Side,
    theirs: Side,
    alike: Alike,
    /// Empty where the servers give the same.
    ids: Ids,
    record: Record,
    /// Jobs that clients have been given, by client.
    held: [Vec<u64>; CLIENTS],
    /// Replies owed to clients, by the C server.
    owed: [usize; CLIENTS],
    is_open: [bool; CLIENTS],
    max_id: u64,
    differences: String,
    phase_start: Instant,
    phase_limit: Duration,
    /// Time passes in this case: steps are so far apart that what follows from them a second later
    /// happens in the same order on both servers.
    is_timed: bool,
}

impl Duel {
    fn start(servers: &Servers, plan: &Plan) -> io::Result<Duel> {
        let words = |server: &[String]| {
            let mut words = server.to_vec();
            if let Some(limit) = plan.body_len_max {
                words.extend(["-z".to_owned(), limit.to_string()]);
            }
            words
        };
        let is_timed = plan.steps.iter().any(|step| matches!(step, Step::Wait));
        Ok(Duel {
            ours: Side::start(&words(&servers.ours))?,
            theirs: Side::start(&words(&servers.theirs))?,
            alike: servers.alike,
            ids: Ids::default(),
            record: Record::new(plan.body_len_max),
            held: Default::default(),
            owed: [0; CLIENTS],
            is_open: [false; CLIENTS],
            max_id: 0,
            differences: String::new(),
            phase_start: Instant::now(),
            phase_limit: if is_timed {
                TIMED_PHASE_LIMIT
            } else {
                PHASE_LIMIT
            },
            is_timed,
        })
    }

    fn is_late(&self) -> bool {
        self.phase_start.elapsed() > self.phase_limit
    }

    fn step(&mut self, step: &Step) -> io::Result<()> {
        match step {
            Step::Send { client, units } => self.send(*client, units),
            Step::Close { client, tail } => self.end(*client, tail, false),
            Step::HalfClose { client, tail } => self.end(*client, tail, true),
            Step::Wait => self.wait(),
        }?;
        if self.is_timed {
            self.rest(SPACING)?;
        }
        Ok(())
    }

    fn send(&mut self, client: usize, units: &[Unit]) -> io::Result<()> {
        let others = (0..CLIENTS).filter(|other| *other != client);
        let most_owed = others.map(|other| self.owed[other]).max().unwrap_or(0);
        let most_apart = if self.alike == Alike::All { 1 } else { 0 };
        // Of two clients that go on at once ours obeys all that has come from the one before it
        // looks at the other, and the C server what it has read of each: up to 224 bytes. Between
        // several processes they are served in the order of what arrives.
        if self.owed[client] > 0 && most_owed > most_apart {
            return Ok(());
        }
        // Commands that arrive together happen at one moment in ours. Where it is waited for, what
        // they have started would be over at the same time, and a moment apart in the C server.
        let one_by_one = self.is_timed || most_owed > most_apart;
        let mut rest = units;
        while !rest.is_empty() {
            let known = self.known(client, rest);
            let (now, later) = rest.split_at(if one_by_one { known.min(1) } else { known });
            if now.is_empty() {
                break;
            }
            self.send_at_once(client, now)?;
            rest = later;
            if self.owed[client] > 0 || !self.differences.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// How many of the units may be sent at once: where ids differ one that is about a job has to
    /// wait until it is known whether there is such a job.
    fn known(&self, client: usize, units: &[Unit]) -> usize {
        if self.alike == Alike::All {
            return units.len();
        }
        let held = &self.held[client];
        // The first is obeyed before anything else happens, unless the client waits.
        let first = usize::from(self.owed[client] == 0);
        let mut rest = units.iter().skip(first);
        let unknown = rest.position(|unit| {
            let chunk = unit.chunk(held);
            let behind = chunk.line_behind_body().unwrap_or_default().1;
            self.ids.is_unknown(&chunk.line) || self.ids.is_unknown(behind)
        });
        unknown.map_or(units.len(), |at| at + first)
    }

    fn send_at_once(&mut self, client: usize, units: &[Unit]) -> io::Result<()> {
        let held = &self.held[client];
        let mut chunks: Vec<Chunk> = units.iter().map(|unit| unit.chunk(held)).collect();
        if chunks.len() > 1 || self.owed[client] > 0 {
            chunks.retain(|chunk| !is_delayed_release(chunk));
        }
        let bytes: Vec<u8> = chunks.iter().flat_map(Chunk::bytes).collect();
        let replies = chunks.iter().map(|chunk| chunk.replies).sum();
        self.record.sent(client, &chunks);
        self.is_open[client] = true;
        for chunk in &mut chunks {
            chunk.line = self.ids.for_ours(&chunk.line);
            if let Some((body, line)) = chunk.line_behind_body() {
                chunk.rest = [body, &self.ids.for_ours(line)].concat();
            }
        }
        let own: Vec<u8> = chunks.iter().flat_map(Chunk::bytes).collect();
        self.ours.send(client, &own, replies)?;
        self.theirs.send(client, &bytes, replies)?;
        self.settle_and_compare(Some(client))
    }

    fn end(&mut self, client: usize, tail: &[u8], is_half: bool) -> io::Result<()> {
        // Behind a reserve that waits a close races with what is to be obeyed.
        if !self.is_open[client] || self.owed[client] > 1 {
            return Ok(());
        }
        let tail = if self.owed[client] == 0 { tail } else { b"" };
        self.record.raw(client, tail);
        self.record.ended(client, is_half);
        for side in [&mut self.ours, &mut self.theirs] {
            side.send(client, tail, 0)?;
            if is_half {
                side.half_close(client)?;
            } else {
                side.close(client);
            }
        }
        self.settle_and_compare(None)?;
        self.forget(client);
        Ok(())
    }

    /// Lets what is due within a second happen.
    fn wait(&mut self) -> io::Result<()> {
        let phase_start = self.phase_start + PHASE;
        let time = phase_start.saturating_duration_since(Instant::now());
        self.rest(time)?;
        self.phase_start = phase_start;
        self.record
            .waited((time.as_secs_f64() * 1000.0).round() / 1000.0);
        self.settle_and_compare(None)
    }

    /// Lets time pass. The C server may forget the timer of a client until it hears of it (Q1), and
    /// so everybody who does not wait is heard of again and again.
    fn rest(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for client in 0..CLIENTS {
                if self.is_open[client] && self.owed[client] == 0 {
                    self.theirs.ping(client)?;
                    self.ours.ping(client)?;
                }
            }
            wait_until(PING_EVERY, || Instant::now() >= end);
        }
        Ok(())
    }

    fn settle_and_compare(&mut self, active: Option<usize>) -> io::Result<()> {
        self.ours.settle(active)?;
        self.theirs.settle(active)?;
        let order = active
            .into_iter()
            .chain((0..CLIENTS).filter(|client| Some(*client) != active));
        let heard: Vec<(usize, Heard, Heard)> = order
            .map(|client| (client, self.ours.take(client), self.theirs.take(client)))
            .collect();
        if self.alike != Alike::All {
            for (_, ours, theirs) in &heard {
                let pairs = ours.answers.iter().zip(&theirs.answers);
                pairs.for_each(|(own, answer)| self.ids.learn(own, answer));
            }
        }
        for (client, ours, theirs) in heard {
            self.compare(client, &ours, &theirs);
        }
        Ok(())
    }

    fn compare(&mut self, client: usize, ours: &Heard, theirs: &Heard) {
        let ours = &Heard {
            answers: ours
                .answers
                .iter()
                .map(|own| self.ids.as_theirs(own))
                .collect(),
            rest: ours.rest.clone(),
            ..*ours
        };
        for (index, answer) in theirs.answers.iter().enumerate() {
            self.record.got(client, answer);
            if !ours
                .answers
                .get(index)
                .is_some_and(|own| own.is_like(answer, self.alike))
            {
                break;
            }
            self.note(client, answer);
        }
        if theirs.has_ended {
            self.record.closed(client);
        } else if theirs.owed > 0 && theirs.owed != self.owed[client] {
            self.record.silent(client);
        }
        self.owed[client] = theirs.owed;
        let alike = ours.answers.len() == theirs.answers.len()
            && ours.has_ended == theirs.has_ended
            && ours.rest == theirs.rest
            && (ours.owed == theirs.owed || theirs.has_ended)
            && ours
                .answers
                .iter()
                .zip(&theirs.answers)
                .all(|(own, answer)| own.is_like(answer, self.alike));
        if !alike {
            let name = char::from(b'a' + client as u8);
            self.differ(&format!("client {name}"), ours, theirs);
        }
        if theirs.has_ended {
            self.forget(client);
        }
    }

    fn note(&mut self, client: usize, answer: &Answer) {
        if let Some(id) = answer.reserved_id() {
            self.held[client].retain(|held| *held != id);
            self.held[client].push(id);
        }
        let line = String::from_utf8_lossy(&answer.line);
        let id = line
            .strip_prefix("INSERTED ")
            .and_then(|id| id.parse().ok());
        self.max_id = self.max_id.max(id.unwrap_or_default());
    }

    fn forget(&mut self, client: usize) {
        self.held[client].clear();
        self.owed[client] = 0;
        self.is_open[client] = false;
    }

    fn differ(&mut self, what: &str, ours: &Heard, theirs: &Heard) {
        let text = &mut self.differences;
        for (name, heard) in [("beanshard", ours), ("beanstalkd", theirs)] {
            writeln!(text, "{what} of {name}: {}", shown(heard)).expect("memory can be written to");
        }
    }

    /// Compares what the servers say of all that there is.
    fn compare_state(&mut self) -> io::Result<()> {
        let tubes = self.ask_both("list-tubes")?;
        let rows = tubes.rows().unwrap_or_default();
        for name in rows.iter().filter_map(|row| row.strip_prefix("- ")) {
            self.ask_both(&format!("stats-tube {name}"))?;
        }
        for id in 1..=self.max_id.min(JOBS_MAX) + 1 {
            self.ask_both(&format!("stats-job {id}"))?;
            self.ask_both(&format!("peek {id}"))?;
        }
        self.ask_both("stats")?;
        Ok(())
    }

    fn ask_both(&mut self, command: &str) -> io::Result<Answer> {
        let line = format!("{command}\r\n");
        let ours = self.ours.ask(&self.ids.for_ours(line.as_bytes()))?;
        let ours = self.ids.as_theirs(&ours);
        let theirs = self.theirs.ask(line.as_bytes())?;
        if !ours.is_like(&theirs, self.alike) && self.differences.is_empty() {
            let chunk = Unit::Line(command.as_bytes().to_vec()).chunk(&[]);
            self.record.sent(CLIENTS, &[chunk]);
            self.record.got(CLIENTS, &theirs);
            let heard = |answer: &Answer| Heard {
                answers: vec![answer.clone()],
                ..Heard::default()
            };
            self.differ(command, &heard(&ours), &heard(&theirs));
        }
        Ok(theirs)
    }
}

/// Whether the chunk may give a job back with a delay. Commands that are obeyed at once happen at
/// the same moment in ours, which then goes by the ids of jobs whose delays end together, and one
/// after the other in the C server. Of new jobs the ids are in the order of their commands.
fn is_delayed_release(chunk: &Chunk) -> bool {
    chunk.line.starts_with(b"release ") && !chunk.line.ends_with(b" 0")
}

fn shown(heard: &Heard) -> String {
    let mut out = String::new();
    for answer in &heard.answers {
        out.push_str(&answer.line.escape_ascii().to_string());
        if let Some(data) = &answer.data {
            let shown = &data[..data.len().min(SHOWN_LEN_MAX)];
            out.push_str(&format!(" | {}", shown.escape_ascii()));
        }
        out.push_str("; ");
    }
    if !heard.rest.is_empty() {
        out.push_str(&format!("and \"{}\"; ", heard.rest.escape_ascii()));
    }
    if heard.has_ended {
        out.push_str("closed");
    } else {
        out.push_str(&format!("{} replies owed", heard.owed));
    }
    out
}

/// How long a case without waits may take: less than what is over in a second.
const PHASE_LIMIT: Duration = Duration::from_millis(600);
/// From the start of a case with waits to the end of its first wait, and from there to the end of
/// its second. Steps are only made while the first [`TIMED_PHASE_LIMIT`] of a phase: then what they
/// begin, and what follows from that, is over in some whole seconds, and nothing is while steps are
/// made.
const PHASE: Duration = Duration::from_millis(1450);
const TIMED_PHASE_LIMIT: Duration = Duration::from_millis(350);
/// From one step to the next in a case with waits.
const SPACING: Duration = Duration::from_millis(20);
/// How often clients are heard of meanwhile.
const PING_EVERY: Duration = Duration::from_millis(5);
/// Jobs that are looked at one by one at the end.
const JOBS_MAX: u64 = 40;
const SHOWN_LEN_MAX: usize = 2000;
