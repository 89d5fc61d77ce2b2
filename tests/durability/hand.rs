//! Clients that work until their server is gone, and the exact account of what was confirmed: a job
//! whose put was answered, or that anybody has seen, is there, unless its deletion was asked for;
//! one whose deletion was answered is not; one that was buried or delayed still is; and no id is
//! given twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::fixture::{START_LIMIT, Server};
use crate::peer::Peer;
use crate::transcript::client::Client;

/// What one client knows, in the order of time.
pub(crate) enum Note {
    PutSent(Vec<u8>),
    Put(u64, Vec<u8>),
    Seen(u64, Vec<u8>),
    DeleteSent(u64),
    Deleted(u64),
    /// It is in this state until the end, since nobody can reserve it.
    Rests(u64, &'static str),
}

/// A client that works until the server is gone.
pub(crate) struct Hand {
    client: Client,
    name: String,
    state: u64,
    count: u64,
    /// The highest id that it was given.
    highest: u64,
    /// What it says first on each connection.
    greeting: Vec<String>,
    notes: Vec<Note>,
    /// Answers that all clients have had.
    answers: Arc<AtomicU64>,
}

/// Puts that are sent before their answers are taken.
pub(crate) const BATCH: u64 = 3;

impl Hand {
    pub(crate) fn of(server: &Server, name: String, seed: u64, answers: &Arc<AtomicU64>) -> Hand {
        let client = Client::connect(server.endpoint());
        Hand {
            client: client.expect("the server takes connections"),
            name,
            state: seed,
            count: 0,
            highest: 0,
            greeting: Vec::new(),
            notes: Vec::new(),
            answers: Arc::clone(answers),
        }
    }

    /// The same with lines that are said first, and that are answered by one line each.
    pub(crate) fn greeting(self, greeting: &[String]) -> Hand {
        let greeting = greeting.to_vec();
        Hand { greeting, ..self }
    }

    /// Works until the server is gone.
    pub(crate) fn work(mut self) -> Vec<Note> {
        if self.greet().is_some() {
            while let Some(()) = self.step() {}
        }
        self.notes
    }

    /// Works until it is told to end, and comes back when its connection is closed. Says how often
    /// it did as well.
    pub(crate) fn work_on(mut self, server: &Server, is_over: &AtomicBool) -> (Vec<Note>, u64) {
        let mut is_open = self.greet().is_some();
        let mut comebacks = 0;
        while !is_over.load(Ordering::Relaxed) {
            if is_open {
                is_open = self.step().is_some();
                continue;
            }
            comebacks += 1;
            let client = Client::connect(server.endpoint());
            self.client = client.expect("the server takes connections");
            is_open = self.greet().is_some();
        }
        (self.notes, comebacks)
    }

    fn greet(&mut self) -> Option<()> {
        for line in self.greeting.clone() {
            let answer = self.ask(&line)?;
            let is_good = ["USING ", "WATCHING "]
                .iter()
                .any(|start| answer.starts_with(start));
            assert!(is_good, "{line}: {answer}");
        }
        Some(())
    }

    fn below(&mut self, end: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % end
    }

    /// None when the server is gone.
    fn step(&mut self) -> Option<()> {
        if self.below(3) == 0 {
            return self.put_some();
        }
        let Some((id, body)) = self.reserve()? else {
            return self.put_some();
        };
        self.notes.push(Note::Seen(id, body));
        match self.below(8) {
            0 => self.expect(&format!("release {id} 0 0"), "RELEASED"),
            1 => self.lay(id, &format!("release {id} 7 1000"), "RELEASED", "delayed"),
            2 | 3 => self.lay(id, &format!("bury {id} 9"), "BURIED", "buried"),
            _ => {
                self.notes.push(Note::DeleteSent(id));
                self.expect(&format!("delete {id}"), "DELETED")?;
                self.notes.push(Note::Deleted(id));
                Some(())
            }
        }
    }

    fn put_some(&mut self) -> Option<()> {
        let mut bodies = Vec::new();
        for _ in 0..BATCH {
            self.count += 1;
            let mut body = format!("{} {} ", self.name, self.count).into_bytes();
            let len = body.len() as u64 + self.below(400);
            body.resize(len as usize, b'x');
            let line = format!("put {} 0 1000 {len}\r\n", self.below(3));
            self.notes.push(Note::PutSent(body.clone()));
            let bytes = [line.as_bytes(), &body, b"\r\n"].concat();
            self.client.write_all(&bytes).ok()?;
            bodies.push(body);
        }
        for body in bodies {
            let answer = self.line()?;
            let id = answer.strip_prefix("INSERTED ").map(str::parse);
            let id = id.unwrap_or_else(|| panic!("{answer}")).expect("an id");
            assert!(id > self.highest, "{id} after {}", self.highest);
            self.highest = id;
            self.notes.push(Note::Put(id, body));
        }
        Some(())
    }

    fn reserve(&mut self) -> Option<Option<(u64, Vec<u8>)>> {
        let answer = self.ask("reserve-with-timeout 0")?;
        if answer == "TIMED_OUT" {
            return Some(None);
        }
        let words: Vec<&str> = answer.split(' ').collect();
        let &["RESERVED", id, len] = &words[..] else {
            panic!("{answer}");
        };
        let len: usize = len.parse().expect("a length");
        let mut body = self.client.take(len + 2, end()).ok()??;
        body.truncate(len);
        Some(Some((id.parse().expect("an id"), body)))
    }

    /// Asks something that leaves the job in `state`.
    fn lay(&mut self, id: u64, line: &str, answer: &str, state: &'static str) -> Option<()> {
        self.expect(line, answer)?;
        self.notes.push(Note::Rests(id, state));
        Some(())
    }

    fn expect(&mut self, line: &str, answer: &str) -> Option<()> {
        let found = self.ask(line)?;
        assert_eq!(found, answer, "{line}");
        Some(())
    }

    fn ask(&mut self, line: &str) -> Option<String> {
        self.client
            .write_all(format!("{line}\r\n").as_bytes())
            .ok()?;
        self.line()
    }

    fn line(&mut self) -> Option<String> {
        let line = self.client.line(end()).ok()??;
        self.answers.fetch_add(1, Ordering::Relaxed);
        Some(String::from_utf8(line).expect("lines are ASCII"))
    }
}

fn end() -> Instant {
    Instant::now() + START_LIMIT
}

/// What is known of all jobs there ever were, by id.
#[derive(Default)]
pub(crate) struct Books {
    pub(crate) bodies: BTreeMap<u64, Vec<u8>>,
    deletes_sent: BTreeSet<u64>,
    pub(crate) deleted: BTreeSet<u64>,
    states: BTreeMap<u64, &'static str>,
    /// Bodies that were sent and of which no id is known.
    sent: BTreeSet<Vec<u8>>,
}

impl Books {
    pub(crate) fn enter(&mut self, notes: Vec<Note>) {
        for note in notes {
            match note {
                Note::PutSent(body) => {
                    self.sent.insert(body);
                }
                Note::Put(id, body) | Note::Seen(id, body) => self.enter_body(id, body),
                Note::DeleteSent(id) => {
                    self.deletes_sent.insert(id);
                }
                Note::Deleted(id) => {
                    self.deleted.insert(id);
                }
                Note::Rests(id, state) => {
                    self.states.insert(id, state);
                }
            }
        }
    }

    fn enter_body(&mut self, id: u64, body: Vec<u8>) {
        self.sent.remove(&body);
        let before = self.bodies.entry(id).or_insert_with(|| body.clone());
        assert_eq!(*before, body, "id {id} was given twice");
    }

    /// Asserts that the server has what it must have, and nothing else of what `ids` may be, which
    /// are those up to the highest that is known.
    pub(crate) fn check(&mut self, peer: &mut Peer, ids: impl FnOnce(u64) -> Vec<u64>) {
        let ids = ids(self.bodies.keys().last().copied().unwrap_or(0));
        let lines: Vec<String> = ids.iter().map(|id| format!("peek {id}\r\n")).collect();
        peer.send(lines.concat());
        let mut found = BTreeMap::new();
        for id in ids {
            let answer = peer.line();
            if answer != "NOT_FOUND" {
                let len = answer.strip_prefix(&format!("FOUND {id} ")).expect("found");
                found.insert(id, peer.body(len.parse().expect("a length")));
            }
        }
        for (id, body) in &found {
            assert!(!self.deleted.contains(id), "{id} is back");
            if !self.bodies.contains_key(id) {
                assert!(self.sent.contains(body), "nobody has sent {id}");
            }
        }
        for (id, body) in found.clone() {
            self.enter_body(id, body);
        }
        for id in self
            .bodies
            .keys()
            .filter(|id| !self.deletes_sent.contains(id))
        {
            assert!(found.contains_key(id), "{id} is lost");
        }
        // An unanswered deletion was done or was not.
        self.deleted = self.bodies.keys().copied().collect();
        self.deleted.retain(|id| !found.contains_key(id));
        self.deletes_sent.clone_from(&self.deleted);
        self.states.retain(|id, _| found.contains_key(id));
        for (id, state) in &self.states {
            let line = format!("stats-job {id}");
            assert_eq!(&peer.row(&line, "state"), state, "{id}");
        }
        self.states.clear();
    }
}
