//! The processes of a run: frontends and owners, which start, end, stop for a while and start anew,
//! and the supervisor, which makes links for those that have none.

use beanshard::base::ids::{Generation, JobId, RunId, ShardId};
use beanshard::base::time::Nanos;
use beanshard::channel::Terms;
use beanshard::channel::remote::{self, RemoteShards};
use beanshard::role::hub::Hub;
use beanshard::role::shard::Shard;
use beanshard::session::stats::StatsDue;
use beanshard::session::table::{MultiWatch, Sessions, Settings};
use beanshard::wire::control::Hello;
use beanshard::wire::header::Ends;
use beanshard::wire::kind::Sender;

use crate::channel::Channel;
use crate::scribe::Scribe;
use crate::storage::Crash;
use crate::witness::{Witness, engine_of, hasher};
use crate::world::{World, say};

/// A frontend.
pub(crate) struct Frontend {
    pub(crate) generation: Generation,
    /// None while it is not running.
    pub(crate) sessions: Option<Sessions<RemoteShards>>,
    /// Numbers of the links to the owners.
    pub(crate) links: Vec<Option<u64>>,
    /// Until when there was no way to each owner, the last time that there was none.
    pub(crate) down_until: Vec<Nanos>,
    /// It runs and does nothing.
    pub(crate) is_stopped: bool,
    /// Clients since it started.
    pub(crate) opened: u64,
    /// Who waits for the numbers of other processes.
    pub(crate) due: Vec<StatsDue>,
}

/// An owner.
pub(crate) struct Owner {
    pub(crate) generation: Generation,
    /// None while it is not running.
    pub(crate) hub: Option<Hub<Witness>>,
    /// Numbers of the links to the frontends, and which of these it finds slow.
    pub(crate) links: Vec<Option<u64>>,
    pub(crate) slow: Vec<bool>,
    pub(crate) is_stopped: bool,
}

impl Frontend {
    /// Whether it does what it has to.
    pub(crate) fn turns(&self) -> bool {
        self.sessions.is_some() && !self.is_stopped
    }

    /// # Panics
    /// If it is not running.
    pub(crate) fn table(&mut self) -> &mut Sessions<RemoteShards> {
        self.sessions.as_mut().expect("the frontend runs")
    }
}

impl Owner {
    pub(crate) fn turns(&self) -> bool {
        self.hub.is_some() && !self.is_stopped
    }
}

/// What the supervisor has for a process: a link.
#[derive(Clone, Copy)]
pub(crate) struct News {
    /// It is for the owner.
    to_owner: bool,
    frontend: usize,
    owner: usize,
    link: u64,
}

const RUN: RunId = RunId(77);

/// Starts and ends.
impl World {
    pub(crate) fn start_frontend(&mut self, f: usize) {
        self.generation = self.generation.next();
        let settings = Settings {
            map: self.map,
            frontend: f as u16,
            body_len_max: self.profile.body_len_max,
            hasher: hasher(),
            traced: true,
            owner_wait: self.profile.owner_wait,
            multi_watch: MultiWatch::Serve,
        };
        let owners = self.owner_count();
        let frontend = Frontend {
            generation: self.generation,
            sessions: Some(Sessions::new(RemoteShards::new(self.map), settings)),
            links: vec![None; owners],
            down_until: vec![Nanos::MAX; owners],
            is_stopped: false,
            opened: 0,
            due: Vec::new(),
        };
        if f < self.frontends.len() {
            self.frontends[f] = frontend;
        } else {
            self.frontends.push(frontend);
        }
    }

    pub(crate) fn start_owner(&mut self, o: usize) {
        self.generation = self.generation.next();
        let witness = if self.binlogs[o].is_none() {
            self.begin_anew(o)
        } else if let Some(witness) = self.recover(o) {
            witness
        } else {
            return;
        };
        let owner = Owner {
            generation: self.generation,
            hub: Some(Hub::new(witness)),
            links: vec![None; self.profile.frontends],
            slow: vec![false; self.profile.frontends],
            is_stopped: false,
        };
        if o < self.owners.len() {
            self.owners[o] = owner;
        } else {
            self.owners.push(owner);
        }
    }

    /// The witness of an owner that keeps nothing.
    fn begin_anew(&mut self, o: usize) -> Witness {
        let id = ShardId(o as u8);
        let mut engine = engine_of(self.map, id);
        // Ids are told apart here. An owner that keeps its jobs sees to that itself.
        let truth = self.truth.borrow();
        let ids = truth.bodies.keys().copied();
        engine.skip_ids(ids.max().unwrap_or(JobId(0)));
        drop(truth);
        let shard = Shard::new(engine, Scribe::none());
        Witness::new(id, shard, self.truth.clone(), None, self.verbose)
    }

    /// The frontend is gone, and its clients lose their connections.
    pub(crate) fn crash_frontend(&mut self, f: usize) {
        say!(self, "f{f} crashes");
        self.frontends[f].sessions = None;
        self.frontends[f].links.fill(None);
        self.clients.retain(|client| client.frontend != f);
        self.news.retain(|news| news.to_owner || news.frontend != f);
        for channel in self.channels.values_mut().filter(|c| c.frontend == f) {
            channel.leave_near();
        }
        self.sweep();
    }

    /// The owner is gone, and its jobs with it, but for what it keeps.
    pub(crate) fn crash_owner(&mut self, o: usize) {
        self.end_owner(o, Crash::Killed);
    }

    /// The same, if it runs or starts, and its disk is left like this.
    pub(crate) fn end_owner(&mut self, o: usize, crash: Crash) {
        say!(self, "s{o} crashes");
        self.leave_disk(o, crash);
        self.owners[o].hub = None;
        self.owners[o].links.fill(None);
        self.truth.borrow_mut().crash(ShardId(o as u8));
        self.news.retain(|news| !news.to_owner || news.owner != o);
        for channel in self.channels.values_mut().filter(|c| c.owner == o) {
            channel.leave_far();
        }
        self.sweep();
    }

    /// Drops links that nobody has any more.
    pub(crate) fn sweep(&mut self) {
        let (frontends, owners, news) = (&self.frontends, &self.owners, &self.news);
        self.channels.retain(|&link, channel| {
            frontends[channel.frontend].links[channel.owner] == Some(link)
                || owners[channel.owner].links[channel.frontend] == Some(link)
                || news.iter().any(|news| news.link == link)
        });
    }
}

/// The supervisor.
impl World {
    /// Makes a link for a pair of processes that needs one. Whether it does.
    pub(crate) fn mend(&mut self, f: usize, o: usize, is_sound: bool) -> bool {
        let (frontend, owner) = (&self.frontends[f], &self.owners[o]);
        if frontend.sessions.is_none() || owner.hub.is_none() {
            return false;
        }
        let generations = (frontend.generation, owner.generation);
        let is_right = |link: &u64| {
            let channel = &self.channels[link];
            let ends = channel.near.own.ends;
            (ends.sender, channel.far.own.ends.sender) == generations
        };
        let coming = self
            .news
            .iter()
            .find(|news| !news.to_owner && (news.frontend, news.owner) == (f, o));
        let link = coming.map(|news| news.link).or(frontend.links[o]);
        if link.as_ref().is_some_and(is_right) {
            return false;
        }
        let (near, far) = self.terms(f, o, is_sound);
        self.last_link += 1;
        let link = self.last_link;
        self.channels.insert(link, Channel::new(f, o, near, far));
        let owner_first = self.random.percent(50);
        for to_owner in [owner_first, !owner_first] {
            self.news.push(News {
                to_owner,
                frontend: f,
                owner: o,
                link,
            });
        }
        true
    }

    /// What both ends are told. Something is wrong with it if it is not sound.
    fn terms(&mut self, f: usize, o: usize, is_sound: bool) -> (Terms, Terms) {
        let ends = Ends {
            topology: self.map.fingerprint(),
            sender: self.frontends[f].generation,
            receiver: self.owners[o].generation,
        };
        let own = Hello::new(RUN, ends, Sender::Frontend, f as u16);
        let awaited = Hello::new(RUN, ends.reversed(), Sender::Owner, o as u16);
        let terms = |own, awaited| Terms {
            own,
            awaited,
            body_len_max: self.profile.body_len_max,
            window: self.profile.window,
        };
        let (mut near, mut far) = (terms(own, awaited), terms(awaited, own));
        if !is_sound {
            self.truth.borrow_mut().see("wrong hello");
            let wrong = if self.random.percent(50) {
                &mut near.own
            } else {
                &mut far.own
            };
            match self.random.below(4) {
                0 => wrong.run.0 += 1,
                1 => wrong.ends.topology.0 += 1,
                2 => wrong.ends.receiver.0 += 1,
                _ => wrong.index += 1,
            }
        }
        (near, far)
    }

    /// Gives a process the link that is for it. Whether there was one for a process that turns.
    pub(crate) fn tell_news(&mut self) -> bool {
        let turns = |news: &News| {
            if news.to_owner {
                self.owners[news.owner].turns()
            } else {
                self.frontends[news.frontend].turns()
            }
        };
        let Some(at) = self.news.iter().position(turns) else {
            return false;
        };
        let News {
            to_owner,
            frontend: f,
            owner: o,
            link,
        } = self.news[at];
        if to_owner {
            self.connect_far(f, o, link);
        } else {
            self.connect_near(f, o, link);
        }
        self.news.remove(at);
        true
    }

    fn connect_near(&mut self, f: usize, o: usize, link: u64) {
        self.lose_near(f, o);
        say!(self, "f{f} has link {link} to s{o}");
        let shard = ShardId(o as u8);
        let near = self.channels[&link].near;
        let frontend = &mut self.frontends[f];
        frontend.links[o] = Some(link);
        remote::connect(frontend.table(), self.now, shard, &near);
    }

    fn connect_far(&mut self, f: usize, o: usize, link: u64) {
        self.lose_far(f, o);
        say!(self, "s{o} has link {link} to f{f}");
        let channel = &self.channels[&link];
        let generation = channel.near.own.ends.sender;
        let owner = &mut self.owners[o];
        owner.links[f] = Some(link);
        if let Some(hub) = &mut owner.hub {
            hub.shard.meet(f as u16, generation, link);
            hub.connect(self.now, &channel.far);
        }
    }
}
