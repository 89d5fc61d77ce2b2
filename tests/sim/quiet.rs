//! What must be so: of the jobs at any time, and of everything when nothing is on its way and
//! nothing is due. And the end of a run, when all that was asked comes to its end and one client
//! takes what is left.

use std::collections::BTreeMap;

use beanshard::base::ids::{JobId, Pri};
use beanshard::base::time::Secs;
use beanshard::engine::event::Event;
use beanshard::engine::job::JobState;
use beanshard::engine::op::Op;
use beanshard::engine::stats::{JobStats, TubeStats};

use crate::client::Client;
use crate::command::Command;
use crate::owned::{NAMES, Owned, tube};
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
    /// Every job is at its shard, nowhere else, and in the state that follows from what was said.
    pub(crate) fn check_jobs(&mut self) {
        let now = self.now;
        for (link, shard) in self
            .table
            .shards
            .links
            .iter_mut()
            .zip(self.map.all().iter())
        {
            for (&id, known) in &self.truth.jobs {
                let seen = link.inspect(now, Op::StatsJob { id });
                let state = match seen[..] {
                    [Owned::Other(Event::JobStats(stats))] => Some(stats.state),
                    _ => None,
                };
                if known.shard != shard || self.map.of_job(id) != shard {
                    assert!(state.is_none(), "{id:?} is at {shard:?} too");
                    continue;
                }
                let state = state.unwrap_or_else(|| panic!("{id:?} is lost"));
                let is_reserved = matches!(state, JobState::Reserved { .. });
                let is_offered = matches!(state, JobState::Offered { .. });
                assert_eq!(is_reserved, known.holder.is_some(), "{id:?} is {state:?}");
                assert_eq!(is_offered, known.offer.is_some(), "{id:?} is {state:?}");
            }
        }
    }

    /// Checks everything that holds once nothing is on its way and nothing is due.
    pub(crate) fn check_quiet(&mut self) {
        self.check_jobs();
        let view = self.view();
        for client in &self.clients {
            self.check_waits_rightly(client, &view);
            self.check_holds_what_it_was_told(client);
        }
        for (id, known) in &self.truth.jobs {
            assert!(
                known.offer.is_none(),
                "{id:?} is offered while nobody compares"
            );
            let holder = known.holder.map(|holder| self.index_of(holder));
            assert_ne!(
                holder,
                Some(None),
                "{id:?} is held by a session that is gone"
            );
        }
        self.check_tubes(&view);
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
        assert!(self.truth.jobs.is_empty(), "every job has been reserved");
        for link in &self.table.shards.links {
            assert_eq!(link.engine.job_bytes(), 0);
        }
    }

    /// Lets a client ask something while all is quiet; returns the line that it is answered.
    fn ask(&mut self, index: usize, command: Command) -> String {
        let number = self.clients[index].number;
        self.clients[index].last = None;
        self.clients[index].say(command);
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
            Some(id) => format!("RESERVED {} {}", id.0, self.truth.bodies[&id].len()),
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
        let offers = best_of_shard.values();
        let best = offers.min_by_key(|(pri, id)| (*pri, self.truth.jobs[id].created_at, *id));
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
        let in_state = |state| view.count(|job| job.state == state);
        let is_reserved = |job: &JobStats<'static>| matches!(job.state, JobState::Reserved { .. });
        let is_urgent = |job: &JobStats<'static>| job.state == JobState::Ready && job.pri.0 < 1024;
        for (key, expected) in [
            ("current-jobs-urgent", view.count(is_urgent)),
            ("current-jobs-ready", in_state(JobState::Ready)),
            ("current-jobs-reserved", view.count(is_reserved)),
            ("current-jobs-delayed", in_state(JobState::Delayed)),
            ("current-jobs-buried", in_state(JobState::Buried)),
            ("job-timeouts", self.truth.timeouts),
            ("total-jobs", self.truth.bodies.len() as u64),
            ("current-tubes", view.tubes.len() as u64),
            ("current-connections", self.clients.len() as u64),
            ("current-producers", clients(&|client| client.is_producer)),
            (
                "current-workers",
                clients(&|client| client.is_worker || client.reserves()),
            ),
            ("current-waiting", clients(&Client::reserves)),
            ("total-connections", self.opened),
        ] {
            assert_eq!(reply.number(key), Some(expected), "{key}");
        }
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
            let until = client.reserves[0].after(Secs(secs));
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
        let jobs = self.truth.jobs.iter();
        let held = jobs.filter(|(_, known)| known.holder == Some(client.id));
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
        for link in &mut self.table.shards.links {
            for name in NAMES {
                let seen = link.inspect(now, Op::StatsTube { tube: tube(name) });
                if let [Owned::Other(Event::TubeStats(stats))] = seen[..] {
                    let twice = view.tubes.insert(name, stats);
                    assert!(twice.is_none(), "{name} is at two shards");
                }
            }
        }
        for (&id, known) in &self.truth.jobs {
            let link = &mut self.table.shards.links[usize::from(known.shard.0)];
            if let [Owned::Other(Event::JobStats(stats))] =
                link.inspect(now, Op::StatsJob { id })[..]
            {
                view.jobs.push(stats);
            }
        }
        view
    }
}

fn name_of(job: &JobStats<'static>) -> &'static str {
    std::str::from_utf8(job.tube.as_bytes()).expect("names are text")
}

/// Runs a world for `steps` steps and to its end.
pub(crate) fn run(seed: u64, steps: u64, verbose: bool) -> Seen {
    let mut world = World::new(seed, verbose);
    for step in 0..steps {
        world.step();
        if step % 8 == 0 {
            world.check_jobs();
        }
        if step % 97 == 96 {
            world.settle();
            world.check_quiet();
            world.probe();
        }
    }
    world.wind_up();
    world.drain();
    world.truth.seen
}
