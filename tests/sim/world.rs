//! The world of one run: clients, frontends with their sessions, owners with their shards, the
//! links between, a clock, and a scheduler that picks what happens next. Every way for something
//! to happen is a function, and whatever happens is checked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use beanshard::base::ids::{Generation, SessionId, ShardId};
use beanshard::base::name::TubeName;
use beanshard::base::time::Nanos;
use beanshard::session::shards::ShardMap;
use beanshard::wire::credit::Amount;

use crate::channel::Channel;
use crate::client::Client;
use crate::disk::{Binlog, Keeping};
use crate::fault::Fault;
use crate::names::{NAMES, tube};
use crate::process::{Frontend, News, Owner};
use crate::random::Random;
use crate::truth::Truth;

/// See the module's description.
pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) now: Nanos,
    pub(crate) map: ShardMap,
    pub(crate) frontends: Vec<Frontend>,
    pub(crate) owners: Vec<Owner>,
    /// Of each owner that keeps its jobs.
    pub(crate) binlogs: Vec<Option<Binlog>>,
    /// See [`World::heed_omens`].
    pub(crate) is_ominous: bool,
    /// Links by their numbers.
    pub(crate) channels: BTreeMap<u64, Channel>,
    pub(crate) last_link: u64,
    /// Links that processes have not been given yet.
    pub(crate) news: Vec<News>,
    /// Of the process that was started last.
    pub(crate) generation: Generation,
    pub(crate) clients: Vec<Client>,
    /// Clients since the start, and commands that they have said.
    pub(crate) opened: u64,
    pub(crate) spoken: u64,
    pub(crate) truth: Rc<RefCell<Truth>>,
    pub(crate) tubes: Vec<&'static str>,
    /// Ids of all jobs that were put, in that order.
    pub(crate) all: Vec<u64>,
    pub(crate) profile: Profile,
    /// Whether to tell what happens.
    pub(crate) verbose: bool,
}

/// What tells one run from another besides its chances.
pub(crate) struct Profile {
    pub(crate) frontends: usize,
    pub(crate) clients: usize,
    /// Chance that everything on its way arrives before something else happens.
    swift: u64,
    /// An owner that is heard late.
    late_owner: Option<usize>,
    /// Chance that a client leaves replies unread for a while.
    pub(crate) slow_reader: u64,
    pub(crate) body_len_max: u32,
    pub(crate) body_len_mean: u64,
    /// Longest step of time that is usual, in milliseconds.
    pass_ms: u64,
    pub(crate) jobs_max: usize,
    pub(crate) pipeline: u64,
    /// How much may be under way to an owner.
    pub(crate) window: Amount,
    /// Nanoseconds for which a command waits for an owner.
    pub(crate) owner_wait: u64,
    /// How owners keep what they have, if they do.
    pub(crate) keeping: Option<Keeping>,
    /// What goes wrong, and with what chance in a thousand at each step.
    pub(crate) faults: Vec<Fault>,
    fault_rate: u64,
    /// Chance that something that is broken is looked after, at each step.
    repair: u64,
}

impl Profile {
    fn random(random: &mut Random) -> Profile {
        let size = random.below(100);
        let (body_len_max, body_len_mean) = match size {
            0..3 => (300_000, 200_000),
            3..13 => (20_000, 20_000),
            _ => (3_000, 40),
        };
        Profile {
            frontends: random.pick(&[1, 1, 2, 2, 2, 3]),
            clients: 5 + random.index(4),
            swift: random.pick(&[0, 0, 20, 60, 95]),
            late_owner: random.percent(60).then(|| random.index(5)),
            slow_reader: random.pick(&[0, 0, 30]),
            body_len_max,
            body_len_mean,
            pass_ms: random.pick(&[30, 400, 1_500]),
            jobs_max: random.pick(&[4, 12, 30]),
            pipeline: random.pick(&[1, 3, 6]),
            window: Amount {
                asks: random.pick(&[1, 2, 4, 9, 60]),
                bytes: random.pick(&[1, 200, 900, 5_000]),
            },
            owner_wait: random.pick(&[1, 50, 1_000]) * 1_000_000,
            keeping: None,
            faults: Fault::some(random),
            fault_rate: random.pick(&[2, 5, 20]),
            repair: random.pick(&[2, 10, 40]),
        }
    }

    /// One in which owners have binlogs.
    fn random_kept(random: &mut Random) -> Profile {
        let profile = Profile::random(random);
        Profile {
            keeping: Some(Keeping::random(random)),
            faults: Fault::some_of_disks(random),
            fault_rate: random.pick(&[2, 5, 20, 60]),
            ..profile
        }
    }
}

macro_rules! say {
    ($world:expr, $($args:tt)*) => {
        if $world.verbose {
            eprintln!("{:9.3}  {}", $world.now.0 as f64 / 1e9, format_args!($($args)*));
        }
    };
}
pub(crate) use say;

/// Frames of a session that may wait for credit: it is introduced, asks, goes on, and leaves.
const WAITING_MAX: usize = 16;

/// How often something is tried that comes to an end at one moment.
const TURNS_MAX: usize = 20_000;

impl World {
    pub(crate) fn new(seed: u64, keeps: bool, verbose: bool) -> World {
        let mut random = Random::new(seed);
        let map = ShardMap::new(random.pick(&[1, 2, 2, 3, 3, 5]));
        let profile = if keeps {
            Profile::random_kept(&mut random)
        } else {
            Profile::random(&mut random)
        };
        let owners = map.all().iter();
        let binlogs = owners.map(|_| profile.keeping.map(Binlog::new)).collect();
        let mut world = World {
            tubes: pick_tubes(&mut random, map),
            random,
            now: Nanos(1_000_000_000_000),
            map,
            frontends: Vec::new(),
            owners: Vec::new(),
            binlogs,
            is_ominous: false,
            channels: BTreeMap::new(),
            last_link: 0,
            news: Vec::new(),
            generation: Generation::NONE,
            clients: Vec::new(),
            opened: 0,
            spoken: 0,
            truth: Rc::default(),
            all: Vec::new(),
            profile,
            verbose,
        };
        for o in 0..world.owner_count() {
            world.start_owner(o);
        }
        for f in 0..world.profile.frontends {
            world.start_frontend(f);
        }
        say!(world, "owners {} tubes {:?}", map.all().len(), world.tubes);
        say!(world, "frontends {}", world.profile.frontends);
        say!(world, "faults {:?}", world.profile.faults);
        if world.profile.faults.is_empty() {
            world.settle();
        }
        for _ in 0..world.profile.clients {
            world.open_settled();
        }
        world
    }

    pub(crate) fn owner_count(&self) -> usize {
        self.map.all().len()
    }

    /// Lets something happen.
    pub(crate) fn step(&mut self) {
        match self.random.below(100) {
            0..17 => self.talk(),
            17..32 => self.arrive_some(),
            32..52 => self.go_up(),
            52..74 => self.go_down(),
            74..79 => {
                let o = self.some_owner();
                self.tick_owner(o);
            }
            79..84 => {
                let f = self.some_frontend();
                self.tick_frontend(f);
            }
            84..88 => self.pass_some(),
            88..90 => self.close_some(),
            90..91 => self.end_input_of_some(),
            91..93 => {
                let f = self.some_frontend();
                self.answer_stats(f);
            }
            _ => self.serve_some(),
        }
        if !self.profile.faults.is_empty() {
            if self.random.below(1_000) < self.profile.fault_rate {
                let fault = self.random.index(self.profile.faults.len());
                self.suffer(self.profile.faults[fault]);
            }
            if self.random.percent(self.profile.repair) {
                self.repair_some();
            }
        }
        if self.profile.keeping.is_some() {
            self.heed_omens();
            self.sync_some();
        }
        if self.random.percent(self.profile.swift) {
            self.pump();
        }
    }

    /// Lets everything be repaired and arrive, and everybody be answered, without time passing.
    pub(crate) fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            self.repair_all();
            let moved = self.bustle();
            let arrived = self.clients.iter().all(|client| client.pending.is_empty());
            if arrived && !moved && self.is_mended() {
                return;
            }
        }
        panic!("there is no end to what happens at one moment");
    }

    /// Lets everything arrive where it can, and everybody be answered who can be.
    pub(crate) fn bustle_on(&mut self) {
        let goes_on = (0..TURNS_MAX).all(|_| self.bustle());
        assert!(!goes_on, "there is no end to what happens at one moment");
    }

    /// Everybody does once what is to be done. Whether there was something.
    fn bustle(&mut self) -> bool {
        (0..self.clients.len()).for_each(|index| self.arrive(index, usize::MAX));
        let mut moved = self.pump();
        (0..self.owner_count()).for_each(|o| self.tick_owner(o));
        moved |= self.pump();
        moved |= self.sync_all();
        for f in 0..self.frontends.len() {
            self.tick_frontend(f);
            self.answer_stats(f);
            moved |= !self.frontends[f].due.is_empty();
        }
        moved |= self.pump();
        while let Some(index) = self.clients.iter().position(|c| c.is_touched) {
            self.serve(index, usize::MAX);
            moved = true;
        }
        moved
    }

    /// Moves the clock.
    pub(crate) fn pass_to(&mut self, then: Nanos) {
        self.now = then;
        say!(self, "--");
    }

    /// When something is due by itself.
    pub(crate) fn next_moment(&self) -> Option<Nanos> {
        let hubs = self.owners.iter().filter_map(|owner| owner.hub.as_ref());
        let tables = self.frontends.iter().filter_map(|f| f.sessions.as_ref());
        let due = hubs.filter_map(|hub| hub.shard.next_deadline());
        due.chain(tables.filter_map(|table| table.next_moment()))
            .min()
    }

    pub(crate) fn index_of(&self, id: SessionId) -> Option<usize> {
        self.clients.iter().position(|client| client.id == id)
    }
}

/// Links, owners and time.
impl World {
    pub(crate) fn some_owner(&mut self) -> usize {
        self.random.index(self.owners.len())
    }

    pub(crate) fn some_frontend(&mut self) -> usize {
        self.random.index(self.frontends.len())
    }

    /// Two at the ends of a link.
    pub(crate) fn some_pair(&mut self) -> (usize, usize) {
        (self.some_frontend(), self.some_owner())
    }

    fn go_up(&mut self) {
        // Mostly there is nothing to do for one of the pairs.
        for _ in 0..4 {
            let (f, o) = self.some_pair();
            let room = self.random.pick(&[60, 5_000, usize::MAX]);
            let said = self.say_up(f, o, room);
            self.look_at_credit(f, o);
            let most = self.random.pick(&[0, 30, 500, 70_000, usize::MAX]);
            let frames = self.random.index(5);
            if self.deliver(f, o, most, frames) || said {
                return;
            }
        }
    }

    fn go_down(&mut self) {
        for _ in 0..4 {
            let (f, o) = self.some_pair();
            let room = self.random.pick(&[60, 5_000, usize::MAX]);
            let said = self.say_down(f, o, room);
            if self.profile.late_owner == Some(o) && self.random.percent(90) {
                return;
            }
            let most = self.random.pick(&[0, 30, 500, 70_000, usize::MAX]);
            let frames = self.random.index(5);
            if self.hear(f, o, most, frames) || said {
                return;
            }
        }
    }

    /// Delivers everything that is on its way, and what follows, in some order. Whether anything
    /// was.
    pub(crate) fn pump(&mut self) -> bool {
        let (frontends, owners) = (self.frontends.len(), self.owners.len());
        let mut moved = false;
        for _ in 0..TURNS_MAX {
            let mut goes_on = false;
            let first = self.random.index(frontends * owners * 2);
            for turn in 0..frontends * owners * 2 {
                let turn = (first + turn) % (frontends * owners * 2);
                let (f, o) = (turn / 2 % frontends, turn / 2 / frontends);
                let frames = 1 + self.random.index(6);
                goes_on |= if turn.is_multiple_of(2) {
                    let said = self.say_up(f, o, usize::MAX);
                    self.deliver(f, o, usize::MAX, frames) || said
                } else {
                    let said = self.say_down(f, o, usize::MAX);
                    self.hear(f, o, usize::MAX, frames) || said
                };
            }
            if !goes_on {
                return moved;
            }
            moved = true;
        }
        panic!("there is no end to what goes over links");
    }

    fn tick_owner(&mut self, o: usize) {
        let now = self.now;
        let owner = &mut self.owners[o];
        if let (true, Some(hub)) = (owner.turns(), &mut owner.hub) {
            hub.tick(now);
        }
    }

    fn tick_frontend(&mut self, f: usize) {
        let now = self.now;
        let frontend = &mut self.frontends[f];
        if !frontend.turns() {
            return;
        }
        let table = frontend.table();
        table.tick(now);
        let moment = table.next_moment();
        assert!(moment.is_none_or(|moment| moment > now));
        #[cfg(debug_assertions)]
        table.check_invariants();
        self.check_waiting(f);
        self.look(f);
    }

    /// What waits for credit is what sessions had begun when it ran out.
    fn check_waiting(&mut self, f: usize) {
        let clients = self.clients.iter().filter(|client| client.frontend == f);
        let frontend = &mut self.frontends[f];
        // Who is gone and had been introduced is still to be detached.
        let sessions = clients.count() + self.profile.window.asks as usize;
        for o in 0..self.owners.len() {
            let shards = &mut frontend.table().shards;
            let waiting = shards.end(ShardId(o as u8)).waiting();
            assert!(
                waiting <= sessions * WAITING_MAX,
                "{waiting} frames wait for credit at f{f}, which has {sessions} sessions"
            );
        }
    }

    fn pass_some(&mut self) {
        let ms = match self.random.below(12) {
            0 => self.random.below(5_000),
            1 => 1_000,
            _ => self.random.below(self.profile.pass_ms),
        };
        self.pass_to(Nanos(self.now.0 + ms * 1_000_000));
    }
}

/// Some tubes, the default one and at least one of every shard among them.
fn pick_tubes(random: &mut Random, map: ShardMap) -> Vec<&'static str> {
    let mut tubes = vec![NAMES[0]];
    for shard in map.all().iter() {
        let there: Vec<&str> = NAMES[1..]
            .iter()
            .copied()
            .filter(|name| map.of_tube(tube(name)) == shard)
            .collect();
        tubes.push(random.pick(&there));
    }
    tubes.push(random.pick(&NAMES[1..]));
    tubes.sort_unstable();
    tubes.dedup();
    assert!(tubes.contains(&"default") && tube("default") == TubeName::DEFAULT);
    tubes
}
