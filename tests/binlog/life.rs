//! Random work on a server, and of each job all that the server has shown since it last wrote a
//! record of it. The work may go on with another server that has taken over the binlog.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use beanshard::base::ids::JobId;
use beanshard::base::time::NANOS_PER_SEC;
use beanshard::engine::job::{JobCounts, JobState};
use beanshard::wal::reader::{Account, LiveJob};
use beanshard::wal::recover::RecoveredJob;

use crate::body_of;
use crate::fixture::{START_LIMIT, Server, wait_until};
use crate::peer::Peer;

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Ours,
    /// The one in C.
    Theirs,
}

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

    /// What a server makes of it at a start: held jobs are ready, and the C server counts that it
    /// has buried a job once more.
    pub(crate) fn after_restart(mut self, maker: Maker) -> Shown {
        match (&*self.state, maker) {
            ("reserved", _) => self.state = "ready".to_owned(),
            ("buried", Maker::Theirs) => self.counts[3] += 1,
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

/// What is known of a job.
struct Lived {
    body: Vec<u8>,
    /// What was shown since its last record, that moment included. A copy that the server makes to
    /// free an old file shows one of these.
    shown: Vec<Shown>,
    /// When the delay ends, or would have, that was last written down.
    delayed_until: Instant,
    /// When, among all burials, it was last buried, and by whom.
    buried: (u64, Maker),
}

/// One client that does all sorts of things to its jobs.
pub(crate) struct Life {
    peer: Peer,
    maker: Maker,
    state: u64,
    jobs: BTreeMap<u64, Lived>,
    burials: u64,
}

/// What most jobs may carry.
const BODY_LENS: [u64; 6] = [0, 1, 5, 300, 700, 4000];

/// What some may: up to the longest body that is taken when nobody says more.
const LONG_BODY_LENS: [u64; 3] = [20_000, 65_534, 65_535];

/// Of how many jobs one is long.
const LONG_SHARE: u64 = 24;

/// How far a server's statement of a delay may be off: it has whole seconds, and we are slow.
const DELAY_SLACK: Duration = Duration::from_secs(2);

/// Whether something was written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Logged {
    Yes,
    No,
}

impl Life {
    pub(crate) fn new(server: &Server, maker: Maker, seed: u64) -> Life {
        Life {
            peer: Peer::of(server),
            maker,
            state: seed,
            jobs: BTreeMap::new(),
            burials: 0,
        }
    }

    /// All tubes that are used.
    pub(crate) fn tubes() -> [String; 4] {
        let longest = "-longest+/;.$_()".repeat(13)[1..=200].to_owned();
        [
            "default".into(),
            "mail".into(),
            "a+b/c;.$_()-".into(),
            longest,
        ]
    }

    /// Asserts that the server shows all that is alive, with its body and what is left of delays.
    pub(crate) fn check(&mut self) {
        for (&id, job) in &self.jobs {
            let answer = self.peer.ask(&format!("peek {id}"));
            assert_eq!(answer, format!("FOUND {id} {}", job.body.len()));
            assert_eq!(self.peer.body(job.body.len()), job.body);
            let shown = Shown::ask(&mut self.peer, id);
            assert_eq!(Some(&shown), job.shown.last());
            if shown.state == "delayed" {
                let left = self.peer.row(&format!("stats-job {id}"), "time-left");
                let end = Instant::now() + Duration::from_secs(left.parse().expect("seconds"));
                let off = end.max(job.delayed_until) - end.min(job.delayed_until);
                assert!(off <= DELAY_SLACK, "{id}: {left} s are left, {off:?} off");
            }
        }
        let count = |peer: &mut Peer, state: &str| {
            let count = peer.stat(&format!("current-jobs-{state}"));
            count.parse::<usize>().expect("a number")
        };
        let states = ["ready", "reserved", "delayed", "buried"];
        let there = states.map(|state| count(&mut self.peer, state));
        assert_eq!(there.iter().sum::<usize>(), self.jobs.len(), "{there:?}");
    }

    /// Asserts that the account of the files in `dir` has every job as it was shown.
    pub(crate) fn check_account(&self, dir: &Path, account: &Account) {
        assert!(account.is_sound(), "{:?}", account.files);
        let ids: Vec<u64> = account.jobs.keys().map(|id| id.0).collect();
        assert_eq!(ids, self.jobs.keys().copied().collect::<Vec<_>>());
        for (id, live) in &account.jobs {
            let (written, job) = (Shown::of(live), &self.jobs[&id.0]);
            let shown = &job.shown;
            assert!(shown.contains(&written), "{id:?} {written:?} {shown:?}");
            assert_eq!(body_of(dir, account, id.0), job.body);
        }
    }

    /// Goes on with a server that has started from the files of `account`, after asserting that it
    /// has made of each job what it should.
    pub(crate) fn go_on(&mut self, server: &Server, maker: Maker, account: &Account) {
        self.peer = Peer::of(server);
        self.maker = maker;
        for (&id, job) in &mut self.jobs {
            let written = Shown::of(&account.jobs[&JobId(id)]);
            let now = written.clone().after_restart(maker);
            // If the job is copied it is as it is now, and else as it was written.
            job.shown = vec![written, now];
        }
        self.check();
    }

    /// The jobs that are in `state` according to `account`, in the order of `key`.
    fn in_order<K: Ord>(
        &self,
        account: &Account,
        state: &str,
        key: impl Fn(&Shown, &Lived, u64) -> K,
    ) -> Vec<u64> {
        let mut order = Vec::new();
        for (&id, job) in &self.jobs {
            let shown = Shown::of(&account.jobs[&JobId(id)]).after_restart(self.maker);
            if shown.state == state {
                order.push((key(&shown, job, id), id));
            }
        }
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }

    /// The order in which ready jobs are to be handed out after a start.
    pub(crate) fn ready(&self, account: &Account) -> Vec<u64> {
        self.in_order(account, "ready", |shown, _, id| (shown.pri, id))
    }

    /// The order in which delays of jobs of this tube end.
    pub(crate) fn delayed(&self, account: &Account, tube: &str) -> Vec<u64> {
        let mut order = self.in_order(account, "delayed", |_, job, _| job.delayed_until);
        order.retain(|id| self.jobs[id].shown[0].tube == tube);
        order
    }

    /// The order in which jobs of this tube were buried, and by whom each.
    pub(crate) fn buried(&self, account: &Account, tube: &str) -> Vec<(u64, Maker)> {
        let mut order = self.in_order(account, "buried", |_, job, _| job.buried.0);
        order.retain(|id| self.jobs[id].shown[0].tube == tube);
        order
            .iter()
            .map(|&id| (id, self.jobs[&id].buried.1))
            .collect()
    }

    /// A number below `end`. The generator is Knuth's for 64 bits.
    fn below(&mut self, end: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % end
    }

    /// Few numbers, so that many are the same, but the largest one too.
    fn pri(&mut self) -> u64 {
        [0, 7, 1 << 31, (1 << 32) - 1][self.below(4) as usize]
    }

    /// One command, or two.
    pub(crate) fn step(&mut self) {
        let count = self.jobs.len() as u64;
        if count == 0 || (count < 30 && self.below(3) == 0) {
            return self.put();
        }
        let nth = self.below(count) as usize;
        let Some((&id, job)) = self.jobs.iter().nth(nth) else {
            return;
        };
        let state = job.shown.last().map(|shown| shown.state.clone());
        match state.as_deref() {
            Some("reserved") => self.finish(id),
            Some("ready") if self.below(4) > 0 => self.reserve(id),
            Some("buried" | "delayed") if self.below(4) > 0 => {
                if self.below(4) == 0 {
                    self.reserve(id);
                } else {
                    self.obey(&format!("kick-job {id}"), "KICKED", id, Logged::Yes);
                }
            }
            _ => self.delete(id),
        }
    }

    fn put(&mut self) {
        let len = if self.below(LONG_SHARE) == 0 {
            LONG_BODY_LENS[self.below(3) as usize]
        } else {
            BODY_LENS[self.below(6) as usize]
        };
        let body = (0..len).map(|_| self.below(256) as u8).collect();
        let (delay, ttr) = (self.below(2) * 1000, 1000 + self.below(1000));
        self.put_as(delay, ttr, body);
    }

    fn put_as(&mut self, delay: u64, ttr: u64, body: Vec<u8>) -> u64 {
        let (pri, len) = (self.pri(), body.len());
        let tube = &Life::tubes()[self.below(4) as usize];
        let answer = self.peer.ask(&format!("use {tube}"));
        assert_eq!(answer, format!("USING {tube}"));
        let delayed_until = Instant::now() + Duration::from_secs(delay);
        self.peer.send(format!("put {pri} {delay} {ttr} {len}\r\n"));
        self.peer.send(&body);
        let answer = self.peer.ask("");
        let id = answer
            .strip_prefix("INSERTED ")
            .and_then(|id| id.parse().ok());
        let id = id.unwrap_or_else(|| panic!("{answer}"));
        let lived = Lived {
            body,
            shown: Vec::new(),
            delayed_until,
            buried: (0, self.maker),
        };
        assert!(self.jobs.insert(id, lived).is_none(), "{id} is given twice");
        self.note(id, Logged::Yes);
        id
    }

    /// Has the time to run of a job end, and writes down that it did.
    pub(crate) fn let_time_run_out(&mut self) {
        let id = self.put_as(0, 1, b"slow".to_vec());
        self.reserve(id);
        let is_over = || Shown::ask(&mut self.peer, id).state == "ready";
        assert!(wait_until(START_LIMIT, is_over));
        self.note(id, Logged::No);
        self.reserve(id);
        self.bury(id);
    }

    fn reserve(&mut self, id: u64) {
        let answer = self.peer.ask(&format!("reserve-job {id}"));
        let len = self.jobs[&id].body.len();
        assert_eq!(answer, format!("RESERVED {id} {len}"));
        self.peer.body(len);
        self.note(id, Logged::No);
    }

    fn finish(&mut self, id: u64) {
        let pri = self.pri();
        match self.below(5) {
            0 => self.obey(&format!("touch {id}"), "TOUCHED", id, Logged::No),
            1 => {
                // K20
                let logged = match self.maker {
                    Maker::Ours => Logged::Yes,
                    Maker::Theirs => Logged::No,
                };
                self.obey(&format!("release {id} {pri} 0"), "RELEASED", id, logged);
            }
            2 => {
                let until = Instant::now() + Duration::from_secs(2000);
                let line = format!("release {id} {pri} 2000");
                self.obey(&line, "RELEASED", id, Logged::Yes);
                self.job(id).delayed_until = until;
            }
            3 => self.bury(id),
            _ => self.delete(id),
        }
    }

    fn bury(&mut self, id: u64) {
        let pri = self.pri();
        self.obey(&format!("bury {id} {pri}"), "BURIED", id, Logged::Yes);
        self.burials += 1;
        self.job(id).buried = (self.burials, self.maker);
    }

    fn delete(&mut self, id: u64) {
        assert_eq!(self.peer.ask(&format!("delete {id}")), "DELETED");
        self.jobs.remove(&id);
    }

    fn obey(&mut self, line: &str, answer: &str, id: u64, logged: Logged) {
        assert_eq!(self.peer.ask(line), answer, "{line}");
        self.note(id, logged);
    }

    fn job(&mut self, id: u64) -> &mut Lived {
        self.jobs.get_mut(&id).expect("the job is alive")
    }

    fn note(&mut self, id: u64, logged: Logged) {
        let shown = Shown::ask(&mut self.peer, id);
        let job = self.job(id);
        if logged == Logged::Yes {
            job.shown.clear();
        }
        job.shown.push(shown);
    }
}
