//! An account of every job under load, while processes are killed and stopped by chance.
//!
//! Who holds a job for how long is not known to a client to the moment. It has held it at least
//! from when it read `RESERVED` until it sent the last command about it that succeeded. Two such
//! times must not overlap, and none may end after the job's deletion was confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fixture::pass;
use crate::fleet::{Fleet, reserve, settle};
use crate::peer::Peer;
use crate::random::Random;

/// For how long there is trouble.
const TIME: Duration = Duration::from_secs(4);
const PRODUCERS: u64 = 3;
const WORKERS: u64 = 4;
/// Puts that a producer has under way, at most.
const BATCH_MAX: u64 = 12;
/// How long it rests between them, so that not all time goes into counting what is left.
const REST: Duration = Duration::from_millis(5);
/// The owner that is killed; the other is only stopped.
const MORTAL: usize = 1;
/// How often each process is killed: beyond that it stays away for longer than the test.
const DEATHS_MAX: usize = 3;

/// What became of a put or a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It was confirmed.
    Done,
    /// It failed, and has changed nothing.
    Failed,
    /// The connection was closed before it was answered.
    Unknown,
}

/// One time for which a job was held.
#[derive(Debug)]
struct Hold {
    body: String,
    from: Instant,
    /// When the last command that succeeded was sent; None if none did.
    until: Option<Instant>,
    /// Whether the last command was a delete, and what became of it.
    deleted: Option<Outcome>,
}

/// What one client has seen.
#[derive(Debug, Default)]
struct Book {
    puts: BTreeMap<String, Outcome>,
    holds: Vec<Hold>,
}

/// A client that comes back when its connection is closed.
struct Client<'a> {
    fleet: &'a Fleet,
    peer: Peer,
    /// Sent on each connection.
    greeting: String,
}

impl<'a> Client<'a> {
    fn new(fleet: &'a Fleet, greeting: String) -> Client<'a> {
        let peer = fleet.peer();
        let mut client = Client {
            fleet,
            peer,
            greeting,
        };
        client.greet();
        client
    }

    /// Comes back until it is greeted.
    fn come_back(&mut self) {
        self.peer = self.fleet.peer();
        self.greet();
    }

    fn greet(&mut self) {
        'anew: loop {
            for line in self.greeting.clone().lines() {
                let is_sent = self.peer.try_send(format!("{line}\r\n"));
                let answer = self.peer.try_line().filter(|_| is_sent);
                let is_good = answer
                    .is_some_and(|line| line.starts_with("USING") || line.starts_with("WATCHING"));
                if !is_good {
                    // An owner is away for longer, or this frontend dies.
                    self.peer = self.fleet.peer();
                    continue 'anew;
                }
            }
            return;
        }
    }

    /// The answer to a line; None if the connection is closed.
    fn ask(&mut self, line: &str) -> Option<String> {
        self.peer.try_send(format!("{line}\r\n"));
        self.peer.try_line()
    }
}

/// Puts jobs, each with a body of its own that tells the owner; several at once.
fn produce(fleet: &Fleet, number: u64, is_over: &AtomicBool) -> Book {
    let mut book = Book::default();
    let mut random = Random::new(100 + number);
    let mut client = Client::new(fleet, String::new());
    let mut count = 0;
    // The owner of the tube that is used, unless that is the default one.
    let mut used = None;
    while !is_over.load(Ordering::Relaxed) {
        pass(REST);
        if used.is_none() || random.percent(20) {
            let owner = random.index(2);
            used = match client.ask(&format!("use {}", fleet.tube(owner, random.index(2)))) {
                Some(answer) if answer.starts_with("USING") => Some(owner),
                Some(answer) => {
                    assert_eq!(answer, "INTERNAL_ERROR", "use");
                    used
                }
                None => {
                    client.come_back();
                    None
                }
            };
        }
        let Some(owner) = used else { continue };
        let numbers = count..count + 1 + random.below(BATCH_MAX);
        count = numbers.end;
        let bodies: Vec<String> = numbers.map(|n| format!("{owner}-{number}-{n}")).collect();
        let lines = bodies.iter().map(|body| {
            let (pri, len) = (random.below(9), body.len());
            format!("put {pri} 0 300 {len}\r\n{body}\r\n")
        });
        client.peer.try_send(lines.collect::<String>());
        let mut is_open = true;
        for body in bodies {
            let answer = is_open.then(|| client.peer.try_line()).flatten();
            is_open = answer.is_some();
            book.puts.insert(body, outcome_of_put(answer));
        }
        if !is_open {
            client.come_back();
            used = None;
        }
    }
    book
}

fn outcome_of_put(answer: Option<String>) -> Outcome {
    match answer {
        Some(answer) if answer.starts_with("INSERTED ") => Outcome::Done,
        Some(answer) => {
            assert_eq!(answer, "INTERNAL_ERROR", "put");
            Outcome::Failed
        }
        None => Outcome::Unknown,
    }
}

/// Reserves jobs, keeps some for a while, gives some back, and deletes the others.
fn work(fleet: &Fleet, number: u64, is_over: &AtomicBool, deleted: &AtomicU64) -> Book {
    let mut book = Book::default();
    let mut random = Random::new(200 + number);
    let all: Vec<String> = (0..4).map(|at| fleet.tube(at % 2, at / 2)).collect();
    // Some watch tubes of both owners, some of one.
    let watched: Vec<&String> = match number {
        0 => vec![&all[0]],
        1 => vec![&all[1], &all[3]],
        _ => all.iter().collect(),
    };
    let greeting = watched
        .iter()
        .map(|tube| format!("watch {tube}\n"))
        .collect();
    let mut client = Client::new(fleet, greeting);
    while !is_over.load(Ordering::Relaxed) {
        let Some(answer) = client.ask("reserve-with-timeout 0") else {
            client.come_back();
            continue;
        };
        match answer.split(' ').next() {
            Some("RESERVED") => {}
            Some("TIMED_OUT" | "INTERNAL_ERROR") => continue,
            _ => panic!("reserve: {answer}"),
        }
        let id = answer.split(' ').nth(1).expect("an id").to_owned();
        let Some(body) = client.peer.try_line() else {
            client.come_back();
            continue;
        };
        let mut hold = Hold {
            body,
            from: Instant::now(),
            until: None,
            deleted: None,
        };
        if !finish(&mut client, &id, &mut hold, &mut random) {
            client.come_back();
        }
        deleted.fetch_add(
            u64::from(hold.deleted == Some(Outcome::Done)),
            Ordering::Relaxed,
        );
        book.holds.push(hold);
    }
    book
}

/// What a worker does with a job. Whether the connection still stands.
fn finish(client: &mut Client<'_>, id: &str, hold: &mut Hold, random: &mut Random) -> bool {
    if random.percent(10) {
        pass(Duration::from_millis(random.below(20)));
        let sent = Instant::now();
        match client.ask(&format!("touch {id}")) {
            Some(answer) => assert_eq!(answer, "TOUCHED", "{hold:?}"),
            None => return false,
        }
        hold.until = Some(sent);
    }
    let (line, good) = if random.percent(15) {
        (format!("release {id} 5 0"), "RELEASED")
    } else {
        hold.deleted = Some(Outcome::Unknown);
        (format!("delete {id}"), "DELETED")
    };
    let sent = Instant::now();
    match client.ask(&line) {
        Some(answer) => assert_eq!(answer, good, "{hold:?}"),
        None => return false,
    }
    hold.until = Some(sent);
    hold.deleted = hold.deleted.map(|_| Outcome::Done);
    true
}

/// One of the processes; the last one is never killed.
fn victim(fleet: &Fleet, which: usize) -> Pid {
    match which {
        0 | 1 => fleet.frontend(which),
        2 => fleet.owner(MORTAL),
        _ => fleet.owner(1 - MORTAL),
    }
}

/// Kills and stops processes until it is time to end, and says how often each.
fn trouble(fleet: &Fleet, seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let end = Instant::now() + TIME;
    let mut deaths = [0; 3];
    let mut stops = 0;
    while Instant::now() < end {
        pass(Duration::from_millis(50 + random.below(200)));
        let which = random.index(4);
        let pid = victim(fleet, which);
        if random.percent(50) && deaths.get(which).is_some_and(|count| *count < DEATHS_MAX) {
            deaths[which] += 1;
            // What is asked of it before it dies has an unknown result.
            kill(pid, Signal::SIGSTOP).expect("a process");
            pass(Duration::from_millis(random.below(20)));
            kill(pid, Signal::SIGKILL).expect("a process");
        } else {
            stops += 1;
            kill(pid, Signal::SIGSTOP).expect("a process");
            pass(Duration::from_millis(20 + random.below(150)));
            kill(pid, Signal::SIGCONT).expect("a process");
        }
    }
    (deaths.iter().sum(), stops)
}

/// Takes all jobs that are left.
fn drain(fleet: &Fleet) -> Vec<String> {
    let mut bodies = Vec::new();
    let mut peer = fleet.peer();
    for at in 0..4 {
        settle(&mut peer, &fleet.tube(at % 2, at / 2));
        while peer.ask("peek-ready").starts_with("FOUND ") {
            peer.line();
            let (id, body) = reserve(&mut peer);
            assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
            bodies.push(String::from_utf8(body).expect("ASCII"));
        }
    }
    let left = ["ready", "reserved", "delayed", "buried"];
    let left = left.map(|state| peer.stat(&format!("current-jobs-{state}")));
    assert_eq!(left, ["0", "0", "0", "0"], "nobody holds or hides one");
    bodies
}

/// Says of each job what is wrong with its account.
fn check(book: &Book, left: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut by_body: BTreeMap<&str, Vec<&Hold>> = BTreeMap::new();
    for hold in &book.holds {
        by_body.entry(&hold.body).or_default().push(hold);
    }
    let kept: BTreeSet<&str> = left.iter().map(String::as_str).collect();
    if kept.len() != left.len() {
        wrong.push("a job was left twice".to_owned());
    }
    for (body, outcome) in &book.puts {
        let holds = by_body.remove(body.as_str()).unwrap_or_default();
        let is_left = kept.contains(body.as_str());
        let deletes = |outcome| {
            holds
                .iter()
                .filter(|hold| hold.deleted == Some(outcome))
                .count()
        };
        let (done, unknown) = (deletes(Outcome::Done), deletes(Outcome::Unknown));
        let is_there = is_left || !holds.is_empty();
        let dies = body.starts_with(&MORTAL.to_string());
        let mut say = |what: &str| wrong.push(format!("{what}: {body} {outcome:?} {holds:?}"));
        match outcome {
            Outcome::Done if !dies && done + unknown == 0 && !is_left => say("lost"),
            Outcome::Failed if is_there => say("put although it failed"),
            Outcome::Done | Outcome::Failed | Outcome::Unknown => {}
        }
        if done + usize::from(is_left) > 1 {
            say("more than once");
        }
        if has_overlap(&holds) {
            say("held by two");
        }
    }
    wrong.extend(by_body.keys().map(|body| format!("nobody has put {body}")));
    wrong
}

/// Whether two have held the job at the same time, or one after its deletion.
fn has_overlap(holds: &[&Hold]) -> bool {
    let mut times: Vec<(Instant, Instant, bool)> = holds
        .iter()
        .filter_map(|hold| Some((hold.from, hold.until?, hold.deleted == Some(Outcome::Done))))
        .collect();
    times.sort();
    times
        .windows(2)
        .any(|pair| pair[0].2 || pair[0].1 > pair[1].0)
}

// A3.5, A3.6, R3.7, R3.9, R3.14
#[test]
fn every_job_is_accounted_for_while_processes_die_and_stand_still() {
    let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let fleet = Fleet::of(2, 2, &[]);
    let (is_over, deleted) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut book = Book::default();
    thread::scope(|scope| {
        let producers = (0..PRODUCERS).map(|n| {
            let (fleet, is_over) = (&fleet, &is_over);
            scope.spawn(move || produce(fleet, n, is_over))
        });
        let producers: Vec<_> = producers.collect();
        let workers = (0..WORKERS).map(|n| {
            let (fleet, is_over, deleted) = (&fleet, &is_over, &deleted);
            scope.spawn(move || work(fleet, n, is_over, deleted))
        });
        let workers: Vec<_> = workers.collect();
        let (kills, stops) = trouble(&fleet, seed);
        is_over.store(true, Ordering::Relaxed);
        for client in producers.into_iter().chain(workers) {
            let other = client.join().expect("no wrong answer");
            book.puts.extend(other.puts);
            book.holds.extend(other.holds);
        }
        eprintln!("seed {seed}: {kills} kills, {stops} stops");
    });
    fleet.wait_until_whole();
    let left = drain(&fleet);
    let count = |outcome| book.puts.values().filter(|put| **put == outcome).count();
    eprintln!(
        "puts: {} confirmed, {} failed, {} unknown; {} deletes confirmed; {} jobs left",
        count(Outcome::Done),
        count(Outcome::Failed),
        count(Outcome::Unknown),
        deleted.load(Ordering::Relaxed),
        left.len()
    );
    let wrong = check(&book, &left);
    assert!(
        wrong.is_empty(),
        "seed {seed}: {} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count(Outcome::Done) > 100 && deleted.load(Ordering::Relaxed) > 100);
}

/// A hold from one second to another, counted from `start`.
#[cfg(test)]
fn hold(start: Instant, from: u64, until: u64, deleted: Option<Outcome>) -> Hold {
    let at = |secs| start + Duration::from_secs(secs);
    Hold {
        body: "0-1".to_owned(),
        from: at(from),
        until: Some(at(until)),
        deleted,
    }
}

#[test]
fn the_account_notices_what_is_wrong() {
    let start = Instant::now();
    let said = |outcome, holds: Vec<Hold>, left: &[&str]| {
        let book = Book {
            puts: BTreeMap::from([("0-1".to_owned(), outcome)]),
            holds,
        };
        let left: Vec<String> = left.iter().map(|&body| body.to_owned()).collect();
        let wrong = check(&book, &left).into_iter();
        wrong
            .map(|text| text.split(':').next().expect("a word").to_owned())
            .collect::<Vec<_>>()
    };
    use Outcome::{Done, Failed, Unknown};
    let once = |from, until, deleted| hold(start, from, until, deleted);
    assert!(said(Done, vec![once(1, 2, Some(Done))], &[]).is_empty());
    assert!(said(Done, vec![once(1, 2, None)], &["0-1"]).is_empty());
    assert!(said(Unknown, vec![], &[]).is_empty());
    assert!(said(Done, vec![once(1, 2, Some(Unknown))], &[]).is_empty());
    assert!(said(Done, vec![once(1, 2, None), once(3, 4, Some(Done))], &[]).is_empty());
    assert_eq!(said(Done, vec![], &[]), ["lost"]);
    assert_eq!(said(Failed, vec![], &["0-1"]), ["put although it failed"]);
    assert_eq!(
        said(Done, vec![once(1, 2, Some(Done))], &["0-1"]),
        ["more than once"]
    );
    assert_eq!(
        said(Done, vec![once(1, 3, None), once(2, 4, None)], &["0-1"]),
        ["held by two"]
    );
    assert_eq!(
        said(Done, vec![once(1, 2, Some(Done)), once(3, 4, None)], &[]),
        ["held by two"]
    );
    assert_eq!(
        said(Done, vec![], &["0-1", "0-1"]),
        ["a job was left twice"]
    );
}
