//! Random work on a server, and of each job all that the server has shown since it last wrote a
//! record of it.

use std::collections::BTreeMap;

use beanshard::base::time::NANOS_PER_SEC;
use beanshard::engine::job::{JobCounts, JobState};
use beanshard::wal::reader::LiveJob;
use beanshard::wal::recover::RecoveredJob;

use crate::fixture::Server;
use crate::peer::Peer;

/// A job as `stats-job` shows it, but for what depends on the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) tube: String,
    pub(crate) state: String,
    pub(crate) pri: u32,
    /// In seconds, as the two that follow.
    pub(crate) delay: i64,
    pub(crate) ttr: i64,
    /// Reserves, timeouts, releases, buries, kicks.
    pub(crate) counts: [u32; 5],
}

impl Shown {
    /// What the server says.
    pub(crate) fn ask(peer: &mut Peer, id: u64) -> Shown {
        let answer = peer.ask(&format!("stats-job {id}"));
        let len = answer.strip_prefix("OK ").and_then(|len| len.parse().ok());
        let len = len.unwrap_or_else(|| panic!("stats-job {id}: {answer}"));
        let data = String::from_utf8(peer.body(len)).expect("statistics are ASCII");
        let text = |key: &str| {
            let rows = data.lines().filter_map(|row| row.split_once(": "));
            let mut values = rows.filter(|(name, _)| *name == key);
            let (_, value) = values.next().unwrap_or_else(|| panic!("{key}: {data}"));
            value.trim_matches('"').to_owned()
        };
        let number = |key: &str| text(key).parse::<i64>().expect("a number");
        let count = |key: &str| u32::try_from(number(key)).expect("a count");
        Shown {
            tube: text("tube"),
            state: text("state"),
            pri: count("pri"),
            delay: number("delay"),
            ttr: number("ttr"),
            counts: ["reserves", "timeouts", "releases", "buries", "kicks"].map(count),
        }
    }

    /// What the C server makes of it at a start: held jobs are ready, and it counts that it has
    /// buried a job once more.
    pub(crate) fn after_restart(mut self) -> Shown {
        match &*self.state {
            "reserved" => self.state = "ready".to_owned(),
            "buried" => self.counts[3] += 1,
            _ => {}
        }
        self
    }

    /// What a start of ours makes of it: held jobs are ready, and what damage has made of spans is
    /// whole seconds.
    pub(crate) fn at_start(live: &LiveJob) -> Shown {
        let mut shown = Shown::of(live);
        if shown.state == "reserved" {
            shown.state = "ready".to_owned();
        }
        let secs = |nanos: i64| {
            let nanos = u64::try_from(nanos).unwrap_or(0);
            let secs = nanos.div_ceil(NANOS_PER_SEC).min(u32::MAX.into());
            secs.cast_signed()
        };
        (shown.delay, shown.ttr) = (secs(live.job.delay.0), secs(live.job.ttr.0));
        shown
    }

    /// What a start of ours has found.
    pub(crate) fn at_restore(one: &RecoveredJob<'_>) -> Shown {
        let job = &one.job;
        let state = match job.state {
            JobState::Ready | JobState::Offered { .. } | JobState::Reserved { .. } => "ready",
            JobState::Delayed => "delayed",
            JobState::Buried => "buried",
        };
        Shown {
            tube: String::from_utf8_lossy(one.tube.as_bytes()).into_owned(),
            state: state.to_owned(),
            pri: job.pri.0,
            delay: job.delay.0.into(),
            ttr: job.ttr.0.into(),
            counts: counts(&job.counts),
        }
    }

    /// What the binlog says.
    pub(crate) fn of(live: &LiveJob) -> Shown {
        let job = &live.job;
        let secs = |nanos: i64| nanos / NANOS_PER_SEC.cast_signed();
        Shown {
            tube: String::from_utf8_lossy(live.tube.as_name().as_bytes()).into_owned(),
            state: job.state.word().to_owned(),
            pri: job.pri.0,
            delay: secs(job.delay.0),
            ttr: secs(job.ttr.0),
            counts: counts(&job.counts),
        }
    }
}

fn counts(counts: &JobCounts) -> [u32; 5] {
    [
        counts.reserves,
        counts.timeouts,
        counts.releases,
        counts.buries,
        counts.kicks,
    ]
}

/// Of each job what was shown since its last record, that moment included. A copy that the server
/// makes to free an old file shows one of these.
type Jobs = BTreeMap<u64, Vec<Shown>>;

/// One client that does all sorts of things to its jobs.
pub(crate) struct Life {
    peer: Peer,
    state: u64,
    jobs: Jobs,
    bodies: BTreeMap<u64, Vec<u8>>,
}

impl Life {
    pub(crate) fn new(server: &Server, seed: u64) -> Life {
        Life {
            peer: Peer::of(server),
            state: seed,
            jobs: Jobs::new(),
            bodies: BTreeMap::new(),
        }
    }

    /// All that is alive, and every body.
    pub(crate) fn end(mut self) -> (Jobs, BTreeMap<u64, Vec<u8>>) {
        for (&id, body) in &self.bodies {
            let answer = self.peer.ask(&format!("peek {id}"));
            assert_eq!(answer, format!("FOUND {id} {}", body.len()));
            assert_eq!(&self.peer.body(body.len()), body);
        }
        (self.jobs, self.bodies)
    }

    /// A number below `end`. The generator is Knuth's for 64 bits.
    fn below(&mut self, end: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % end
    }

    /// One command, or two.
    pub(crate) fn step(&mut self) {
        let count = self.jobs.len() as u64;
        if count == 0 || (count < 30 && self.below(3) == 0) {
            return self.put();
        }
        let nth = self.below(count) as usize;
        let Some((&id, shown)) = self.jobs.iter().nth(nth) else {
            return;
        };
        let state = shown.last().map(|shown| shown.state.clone());
        match state.as_deref() {
            Some("reserved") => self.finish(id),
            Some("ready") if self.below(4) > 0 => self.reserve(id),
            Some("buried" | "delayed") if self.below(4) > 0 => {
                if self.below(4) == 0 {
                    self.reserve(id);
                } else {
                    self.obey(&format!("kick-job {id}"), "KICKED", id, true);
                }
            }
            _ => self.delete(id),
        }
    }

    fn put(&mut self) {
        let tube = ["default", "mail", "a+b/c;.$_()-"][self.below(3) as usize];
        assert_eq!(
            self.peer.ask(&format!("use {tube}")),
            format!("USING {tube}")
        );
        let len = [0, 1, 5, 700, 4000, 20_000][self.below(6) as usize];
        let body: Vec<u8> = (0..len).map(|_| self.below(256) as u8).collect();
        let (pri, ttr) = (self.below(1 << 32), 1000 + self.below(1000));
        let delay = self.below(2) * 1000;
        self.peer.send(format!("put {pri} {delay} {ttr} {len}\r\n"));
        self.peer.send(&body);
        let answer = self.peer.ask("");
        let id = answer
            .strip_prefix("INSERTED ")
            .and_then(|id| id.parse().ok());
        let id = id.unwrap_or_else(|| panic!("{answer}"));
        self.bodies.insert(id, body);
        self.note(id, true);
    }

    fn reserve(&mut self, id: u64) {
        let answer = self.peer.ask(&format!("reserve-job {id}"));
        let len = self.bodies[&id].len();
        assert_eq!(answer, format!("RESERVED {id} {len}"));
        self.peer.body(len);
        self.note(id, false);
    }

    fn finish(&mut self, id: u64) {
        let pri = self.below(1000);
        match self.below(5) {
            0 => self.obey(&format!("touch {id}"), "TOUCHED", id, false),
            1 => self.obey(&format!("release {id} {pri} 0"), "RELEASED", id, false),
            2 => self.obey(&format!("release {id} {pri} 2000"), "RELEASED", id, true),
            3 => self.obey(&format!("bury {id} {pri}"), "BURIED", id, true),
            _ => self.delete(id),
        }
    }

    fn delete(&mut self, id: u64) {
        assert_eq!(self.peer.ask(&format!("delete {id}")), "DELETED");
        self.jobs.remove(&id);
        self.bodies.remove(&id);
    }

    fn obey(&mut self, line: &str, answer: &str, id: u64, is_logged: bool) {
        assert_eq!(self.peer.ask(line), answer, "{line}");
        self.note(id, is_logged);
    }

    fn note(&mut self, id: u64, is_logged: bool) {
        let shown = Shown::ask(&mut self.peer, id);
        let history = self.jobs.entry(id).or_default();
        if is_logged {
            history.clear();
        }
        history.push(shown);
    }
}
