//! What must be so: of the jobs at any time, and of everything when nothing is on its way and
//! nothing is due. And the end of a run, when all that was asked comes to its end and one client
//! takes what is left.

use std::collections::BTreeMap;

use beanshard::base::ids::{JobId, Pri, ShardId};
use beanshard::base::time::Secs;
use beanshard::engine::job::JobState;
use beanshard::engine::stats::{JobStats, TubeStats};
use beanshard::session::shards::Reach;

use crate::client::Client;
use crate::command::Command;
use crate::names::{NAMES, tube};
use crate::truth::Seen;
use crate::world::World;

/// All shards as they are at one moment.
struct View {
    jobs: Vec<JobStats<'static>>,
    tubes: BTreeMap<&'static str, TubeStats<'static>>,
}

impl View {
    fn count(&self, is_it: impl Fn(&JobStats<'static>) -> bool) -> u64 {
        self.jobs.iter().filter(|job| is_it(job)).count() as u64
    }
}

impl World {
    /// Every job is at its shard, and in the state that follows from what was said.
    pub(crate) fn check_jobs(&mut self) {
        let now = self.now;
        for (&id, known) in &self.truth.borrow().jobs {
            assert_eq!(self.map.of_job(id), known.shard);
            let hub = self.owners[usize::from(known.shard.0)].hub.as_mut();
            let hub = hub.expect("jobs are at owners that run");
            let stats = hub.shard.inspect_job(now, id);
            let state = stats.unwrap_or_else(|| panic!("{id:?} is lost")).state;
            let is_reserved = matches!(state, JobState::Reserved { .. });
            let is_offered = matches!(state, JobState::Offered { .. });
            assert_eq!(is_reserved, known.holder.is_some(), "{id:?} is {state:?}");
            assert_eq!(is_offered, known.offer.is_some(), "{id:?} is {state:?}");
        }
    }

    /// Checks everything that holds once nothing is broken, on its way, or due.
    pub(crate) fn check_quiet(&mut self) {
        self.check_jobs();
        self.check_elsewhere();
        self.check_links();
        let view = self.view();
        for client in &self.clients {
            self.check_waits_rightly(client, &view);
            self.check_holds_what_it_was_told(client);
        }
        for (id, known) in &self.truth.borrow().jobs {
            assert!(
                known.offer.is_none(),
                "{id:?} is offered while nobody compares"
            );
            let is_open = |holder| self.clients.iter().any(|client| client.who == holder);
            assert!(
                known.holder.is_none_or(is_open),
                "{id:?} is held by a session that is gone"
            );
        }
        self.check_tubes(&view);
    }

    /// No job is where it does not belong.
    fn check_elsewhere(&mut self) {
        let now = self.now;
        for (o, owner) in self.owners.iter_mut().enumerate() {
            let hub = owner.hub.as_mut().expect("all run");
            for (&id, known) in &self.truth.borrow().jobs {
                let is_elsewhere = usize::from(known.shard.0) != o;
                if is_elsewhere {
                    let stats = hub.shard.inspect_job(now, id);
                    assert!(stats.is_none(), "{id:?} is at s{o} too");
                }
            }
        }
    }

    /// All credit has come back, nothing is left in a buffer, and shards know the sessions that are
    /// open and no others.
    fn check_links(&mut self) {
        let truth = self.truth.borrow();
        for (f, frontend) in self.frontends.iter_mut().enumerate() {
            for o in 0..self.owners.len() {
                let shard = ShardId(o as u8);
                let end = frontend.table().shards.end(shard);
                assert_eq!(end.reach(), Reach::Now, "f{f} has credit at s{o}");
                assert!(!end.has_output(), "f{f} has something to say to s{o}");
                assert_eq!(end.waiting(), 0, "f{f} has something to say to s{o}");
            }
        }
        for channel in self.channels.values() {
            for pipe in [&channel.up, &channel.down] {
                assert!(pipe.bytes.is_empty(), "bytes are on their way");
                assert!(pipe.arrived.is_empty(), "a frame has not been taken");
            }
        }
        for (shard, who) in &truth.attached {
            let is_open = self.clients.iter().any(|client| client.who == *who);
            assert!(is_open, "{shard:?} knows {who:?}, which is gone");
        }
        for client in &self.clients {
            let table = self.frontends[client.frontend].sessions.as_mut();
            let replies = table.and_then(|table| table.replies(client.id));
            let is_paid = replies.is_none_or(|replies| replies.is_empty());
            assert!(is_paid, "c{} is owed a reply", client.number);
            for name in client.watched.iter().chain([&client.used]) {
                let known = (self.map.of_tube(tube(name)), client.who);
                assert!(truth.attached.contains(&known), "{known:?} is not attached");
            }
        }
    }

    /// Asks a client that is not asking anything for what can be known beforehand.
    pub(crate) fn probe(&mut self) {
        let free = |client: &Client| client.sent.is_empty() && client.may_speak();
        let Some(index) = self.clients.iter().position(free) else {
            return;
        };
        let number = self.clients[index].number;
        self.probe_reserve(index);
        let index = self.clients.iter().position(|c| c.number == number);
        self.probe_stats(index.expect("the client is there"));
        self.check_quiet();
    }

    /// Lets time pass until all who wait for a time have been answered.
    pub(crate) fn wind_up(&mut self) {
        self.settle();
        let end = self.now.after(Secs(8));
        for _ in 0..10_000 {
            self.check_quiet();
            let waits = |client: &Client| {
                let front = client.sent.front();
                front.is_none_or(|sent| matches!(sent.command, Command::Reserve))
            };
            let is_over = self.clients.iter().all(waits);
            if self.now >= end && is_over {
                return;
            }
            let moment = self.next_moment();
            assert!(moment.is_some() || is_over, "a wait has no end");
            self.pass_to(moment.unwrap_or(end).max(self.now));
            self.settle();
        }
        panic!("a wait for a time does not end");
    }

    /// All go; then one comes and takes every job that is left.
    pub(crate) fn drain(&mut self) {
        while !self.clients.is_empty() {
            self.close(0);
        }
        self.settle();
        self.check_quiet();
        let view = self.view();
        let is_held = |job: &JobStats<'static>| {
            matches!(
                job.state,
                JobState::Reserved { .. } | JobState::Offered { .. }
            )
        };
        assert_eq!(view.count(is_held), 0, "nobody is left to hold a job");

        self.open();
        for name in self.tubes.clone() {
            for command in [
                Command::Use(name),
                Command::Kick(9_999),
                Command::Kick(9_999),
                Command::Watch(name),
                Command::PauseTube(name, 0),
            ] {
                self.ask(0, command);
            }
        }
        while self.probe_reserve(0) {
            let id = self.clients[0].last.as_ref().and_then(|reply| reply.id());
            assert_eq!(
                self.ask(0, Command::Delete(id.expect("has an id"))),
                "DELETED"
            );
        }
        let left = self.truth.borrow().jobs.len();
        assert_eq!(left, 0, "every job has been reserved");
    }

    /// Lets a client ask something while all is quiet; returns the line that it is answered.
    fn ask(&mut self, index: usize, command: Command) -> String {
        let number = self.clients[index].number;
        self.clients[index].last = None;
        self.clients[index].say(command, &mut self.truth.borrow_mut());
        self.settle();
        let client = self.clients.iter().find(|client| client.number == number);
        let last = client.and_then(|client| client.last.as_ref());
        last.map_or_else(String::new, |reply| reply.line.clone())
    }

    /// With everything quiet a reserve gets the best job of all shards. Whether there was one.
    fn probe_reserve(&mut self, index: usize) -> bool {
        let view = self.view();
        let client = &self.clients[index];
        let best = self.best_job(&view, &client.watched);
        let mut told = client.told.iter().filter(|told| told.is_open());
        let is_near = told.any(|told| told.margin_start() <= self.now);
        let expected = match best {
            Some(id) => {
                let len = self.truth.borrow().bodies[&id].len();
                format!("RESERVED {} {len}", id.0)
            }
            None if is_near => "DEADLINE_SOON".to_owned(),
            None => "TIMED_OUT".to_owned(),
        };
        let answer = self.ask(index, Command::ReserveWithTimeout(0));
        assert_eq!(answer, expected, "while all was quiet");
        best.is_some()
    }

    /// The most urgent ready job of these tubes. A shard puts its own in the order of their ids,
    /// which is that of their arrival; between shards the time of their command lines decides.
    fn best_job(&self, view: &View, watched: &[&str]) -> Option<JobId> {
        let mut best_of_shard: BTreeMap<_, (Pri, JobId)> = BTreeMap::new();
        for job in &view.jobs {
            let name = name_of(job);
            let is_paused = view.tubes[name].pause.0 > 0;
            if job.state == JobState::Ready && watched.contains(&name) && !is_paused {
                let rank = (job.pri, job.id);
                let best = best_of_shard.entry(self.map.of_job(job.id)).or_insert(rank);
                *best = rank.min(*best);
            }
        }
        let jobs = &self.truth.borrow().jobs;
        let offers = best_of_shard.values();
        let best = offers.min_by_key(|(pri, id)| (*pri, jobs[id].created_at, *id));
        best.map(|(_, id)| *id)
    }

    // S4.1, S4.2, S4.3
    fn probe_stats(&mut self, index: usize) {
        let number = self.clients[index].number;
        self.ask(index, Command::Stats);
        let view = self.view();
        let client = self.clients.iter().find(|client| client.number == number);
        let reply = client.and_then(|client| client.last.clone());
        let reply = reply.expect("stats is answered");
        let clients = |is_it: &dyn Fn(&Client) -> bool| {
            self.clients.iter().filter(|client| is_it(client)).count() as u64
        };
        let truth = self.truth.borrow();
        let in_state = |state| view.count(|job| job.state == state);
        let is_reserved = |job: &JobStats<'static>| matches!(job.state, JobState::Reserved { .. });
        let is_urgent = |job: &JobStats<'static>| job.state == JobState::Ready && job.pri.0 < 1024;
        for (key, expected) in [
            ("current-jobs-urgent", view.count(is_urgent)),
            ("current-jobs-ready", in_state(JobState::Ready)),
            ("current-jobs-reserved", view.count(is_reserved)),
            ("current-jobs-delayed", in_state(JobState::Delayed)),
            ("current-jobs-buried", in_state(JobState::Buried)),
            ("job-timeouts", truth.timeouts.values().sum()),
            ("total-jobs", truth.puts.values().sum()),
            ("current-tubes", view.tubes.len() as u64),
            ("current-connections", self.clients.len() as u64),
            (
                "current-workers",
                clients(&|client| client.is_worker || client.reserves()),
            ),
            ("current-waiting", clients(&Client::reserves)),
            (
                "total-connections",
                self.frontends.iter().map(|f| f.opened).sum(),
            ),
        ] {
            assert_eq!(reply.number(key), Some(expected), "{key}");
        }
        // A put that has failed may have come so far as to count.
        let most = clients(&|client| client.is_producer || client.has_tried);
        let producers = clients(&|client| client.is_producer)..=most;
        let told = reply.number("current-producers");
        assert!(
            told.is_some_and(|told| producers.contains(&told)),
            "{told:?}"
        );
        drop(truth);
        let index = self.clients.iter().position(|c| c.number == number);
        self.ask(index.expect("the client is there"), Command::ListTubes);
        let client = self.clients.iter().find(|client| client.number == number);
        let reply = client.and_then(|client| client.last.clone());
        let reply = reply.expect("list-tubes is answered");
        let mut items = reply.items();
        items.sort_unstable();
        assert!(items.into_iter().eq(view.tubes.into_keys()));
    }

    /// A client that is not answered waits for a job, none is there for it, and it has no other
    /// reason to be answered.
    fn check_waits_rightly(&self, client: &Client, view: &View) {
        let number = client.number;
        let Some(front) = client.sent.front() else {
            return;
        };
        let cut_off = front.end > client.arrived;
        if cut_off {
            return;
        }
        assert!(
            client.reserves() && !client.input_ended,
            "c{number} is not answered: {:?}",
            front.command
        );
        if let Command::ReserveWithTimeout(secs) = front.command {
            let until = client.reserve_begun().after(Secs(secs));
            assert!(until > self.now, "c{number} has waited long enough");
        }
        for told in client.told.iter().filter(|told| told.is_open()) {
            let warned = told.margin_start() > self.now;
            assert!(warned, "c{number} is not warned of {:?}", told.id);
        }
        let best = self.best_job(view, &client.watched);
        assert_eq!(best, None, "c{number} waits while a job is ready");
    }

    /// What the session was told of reservations is what is so.
    fn check_holds_what_it_was_told(&self, client: &Client) {
        let open = client.told.iter().filter(|told| told.is_open());
        let mut told: Vec<JobId> = open.map(|told| told.id).collect();
        told.sort_unstable();
        let truth = self.truth.borrow();
        let jobs = truth.jobs.iter();
        let held = jobs.filter(|(_, known)| known.holder == Some(client.who));
        assert!(
            told.iter().eq(held.map(|(id, _)| id)),
            "c{} was told that it has {told:?}",
            client.number
        );
    }

    fn check_tubes(&self, view: &View) {
        for name in NAMES {
            let clients = |is_it: &dyn Fn(&Client) -> bool| {
                self.clients.iter().filter(|client| is_it(client)).count() as u64
            };
            let using = clients(&|client| client.used == name);
            let watches = |client: &Client| client.watched.contains(&name);
            let watching = clients(&watches);
            let waiting = clients(&|client| client.reserves() && watches(client));
            let jobs = view.count(|job| name_of(job) == name);
            let expected = using + watching + jobs > 0 || name == "default";
            let tube = view.tubes.get(name);
            assert_eq!(tube.is_some(), expected, "whether {name} is there");
            if let Some(tube) = tube {
                let counts = (tube.using, tube.watching, tube.waiting);
                assert_eq!(counts, (using, watching, waiting), "counts of {name}");
            }
        }
    }

    fn view(&mut self) -> View {
        let now = self.now;
        let mut view = View {
            jobs: Vec::new(),
            tubes: BTreeMap::new(),
        };
        for owner in &mut self.owners {
            let hub = owner.hub.as_mut().expect("all run");
            for name in NAMES {
                if let Some(stats) = hub.shard.inspect_tube(now, tube(name)) {
                    let twice = view.tubes.insert(name, stats);
                    assert!(twice.is_none(), "{name} is at two shards");
                }
            }
        }
        for (&id, known) in &self.truth.borrow().jobs {
            let hub = self.owners[usize::from(known.shard.0)].hub.as_mut();
            let stats = hub.and_then(|hub| hub.shard.inspect_job(now, id));
            view.jobs.extend(stats);
        }
        view
    }
}

fn name_of(job: &JobStats<'static>) -> &'static str {
    std::str::from_utf8(job.tube.as_bytes()).expect("names are text")
}

/// Runs a world for `steps` steps and to its end.
pub(crate) fn run(seed: u64, steps: u64, verbose: bool) -> Seen {
    run_world(World::new(seed, false, verbose), steps)
}

/// The same of one in which owners have binlogs.
pub(crate) fn run_kept(seed: u64, steps: u64, verbose: bool) -> Seen {
    run_world(World::new(seed, true, verbose), steps)
}

fn run_world(mut world: World, steps: u64) -> Seen {
    let pause = world.random.pick(&[97, 97, 400]);
    for step in 0..steps {
        world.step();
        if step % 8 == 0 {
            world.check_jobs();
        }
        if step % pause == pause - 1 {
            world.settle();
            world.check_quiet();
            world.probe();
            if world.profile.keeping.is_some() && world.random.percent(30) {
                world.probe_beside_a_start();
            }
        }
    }
    world.wind_up();
    world.drain();
    world.truth.take().seen
}
