//! The world of one run: clients, the table of their sessions, shards, the links between, a clock,
//! and a scheduler that picks what happens next. Every way for something to happen is a function
//! here, and whatever happens is checked.

use std::collections::BTreeSet;

use beanshard::base::ids::{Caller, SessionId};
use beanshard::base::name::TubeName;
use beanshard::base::time::Nanos;
use beanshard::engine::event::Event;
use beanshard::engine::op::{Op, Style};
use beanshard::proto::command::Kind;
use beanshard::session::shards::ShardMap;
use beanshard::session::stats::ProcessStats;
use beanshard::session::table::{Fed, MultiWatch, Sessions, Settings, Traced};

use crate::client::Client;
use crate::command::{Command, Role, Topics};
use crate::link::{Ask, SimShards, hasher};
use crate::owned::{NAMES, tube};
use crate::random::Random;
use crate::reply::Reply;
use crate::truth::Truth;

/// See the module's description.
pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) now: Nanos,
    pub(crate) map: ShardMap,
    pub(crate) table: Sessions<SimShards>,
    pub(crate) clients: Vec<Client>,
    /// Clients since the start.
    pub(crate) opened: u64,
    pub(crate) truth: Truth,
    pub(crate) tubes: Vec<&'static str>,
    /// Ids of all jobs that were put, in that order.
    all: Vec<u64>,
    profile: Profile,
    /// Whether to tell what happens.
    verbose: bool,
}

/// What tells one run from another besides its chances.
struct Profile {
    clients: usize,
    /// Chance that everything on its way arrives before something else happens.
    swift: u64,
    /// A shard whose events come late.
    late_shard: Option<usize>,
    /// Chance that a client leaves replies unread for a while.
    slow_reader: u64,
    body_len_max: u32,
    body_len_mean: u64,
    /// Longest step of time that is usual, in milliseconds.
    pass_ms: u64,
    jobs_max: usize,
    pipeline: u64,
}

impl Profile {
    fn random(random: &mut Random) -> Profile {
        let big = random.percent(10);
        Profile {
            clients: 5 + random.index(4),
            swift: random.pick(&[0, 0, 20, 60, 95]),
            late_shard: random.percent(60).then(|| random.index(5)),
            slow_reader: random.pick(&[0, 0, 30]),
            body_len_max: if big { 20_000 } else { 3_000 },
            body_len_mean: if big { 20_000 } else { 40 },
            pass_ms: random.pick(&[30, 400, 1_500]),
            jobs_max: random.pick(&[4, 12, 30]),
            pipeline: random.pick(&[1, 3, 6]),
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

impl World {
    pub(crate) fn new(seed: u64, verbose: bool) -> World {
        let mut random = Random::new(seed);
        let map = ShardMap::new(random.pick(&[1, 2, 2, 3, 3, 5]));
        let profile = Profile::random(&mut random);
        let settings = Settings {
            map,
            body_len_max: profile.body_len_max,
            hasher: hasher(),
            traced: true,
            frontend: 0,
            owner_wait: 0,
            multi_watch: MultiWatch::Serve,
        };
        let mut world = World {
            tubes: pick_tubes(&mut random, map),
            random,
            now: Nanos(1_000_000_000_000),
            map,
            table: Sessions::new(SimShards::new(map), settings),
            clients: Vec::new(),
            opened: 0,
            truth: Truth::default(),
            all: Vec::new(),
            profile,
            verbose,
        };
        say!(world, "shards {} tubes {:?}", map.all().len(), world.tubes);
        for _ in 0..world.profile.clients {
            world.open_settled();
        }
        world
    }

    /// Lets something happen.
    pub(crate) fn step(&mut self) {
        match self.random.below(100) {
            0..17 => self.talk(),
            17..34 => self.arrive_some(),
            34..56 => self.deliver_some(),
            56..78 => self.hear_some(),
            78..83 => {
                let shard = self.some_shard();
                self.tick_engine(shard);
            }
            83..86 => self.tick_table(),
            86..90 => self.pass_some(),
            90..92 => self.close_some(),
            92..93 => self.end_input_of_some(),
            93..95 => self.answer_stats(),
            _ => self.serve_some(),
        }
        if self.random.percent(self.profile.swift) {
            self.drain_links();
        }
    }

    /// Lets everything arrive and everybody be answered, without time passing.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            (0..self.clients.len()).for_each(|index| self.arrive(index, usize::MAX));
            self.drain_links();
            (0..self.shard_count()).for_each(|shard| self.tick_engine(shard));
            self.drain_links();
            self.tick_table();
            self.answer_stats();
            while let Some(index) = self.clients.iter().position(|c| c.is_touched) {
                self.serve(index, usize::MAX);
            }
            let arrived = self.clients.iter().all(|client| client.pending.is_empty());
            if arrived && self.table.shards.is_quiet() && !self.table.is_stats_due() {
                return;
            }
        }
        panic!("there is no end to what happens at one moment");
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.table.shards.links.len()
    }

    /// Moves the clock.
    pub(crate) fn pass_to(&mut self, then: Nanos) {
        self.now = then;
        say!(self, "--");
    }

    /// When something is due by itself.
    pub(crate) fn next_moment(&self) -> Option<Nanos> {
        let links = self.table.shards.links.iter();
        let due = links.filter_map(|link| link.engine.next_deadline());
        due.chain(self.table.next_moment()).min()
    }
}

/// Clients come, speak and go.
impl World {
    pub(crate) fn open(&mut self) {
        let id = self.table.open(self.now);
        self.opened += 1;
        let roles = [Role::Producer, Role::Worker, Role::Worker, Role::Any];
        let role = self.random.pick(&roles);
        say!(self, "c{} opens", self.opened);
        self.clients.push(Client::new(id, self.opened, role));
        self.look();
    }

    /// One comes and says where it wants to put and reserve.
    fn open_settled(&mut self) {
        self.open();
        let Some(client) = self.clients.last_mut() else {
            return;
        };
        client.say(Command::Use(self.random.pick(&self.tubes)));
        if client.role != Role::Producer {
            for _ in 0..self.random.below(4) {
                client.say(Command::Watch(self.random.pick(&self.tubes)));
            }
            if self.random.percent(30) {
                client.say(Command::Ignore("default"));
            }
        }
    }

    /// The connection of a client is lost.
    pub(crate) fn close(&mut self, index: usize) {
        let client = self.clients.swap_remove(index);
        say!(self, "c{} is gone", client.number);
        self.table.close(self.now, client.id);
        assert!(self.table.replies(client.id).is_none());
        self.look();
    }

    fn close_some(&mut self) {
        if self.clients.len() < self.profile.clients {
            self.open_settled();
        } else if self.random.percent(40)
            && let Some(index) = self.some_client()
        {
            self.close(index);
        }
    }

    fn end_input_of_some(&mut self) {
        let Some(index) = self.some_client() else {
            return;
        };
        let client = &mut self.clients[index];
        if client.input_ended || client.is_closing {
            return;
        }
        // What has not arrived by now is cut off, in the middle of a command perhaps.
        client.input_ended = true;
        client.pending.clear();
        let (id, number) = (client.id, client.number);
        say!(self, "c{number} ends its input");
        self.table.end_input(self.now, id);
        self.look();
        self.serve(index, usize::MAX);
    }

    fn talk(&mut self) {
        let Some(index) = self.some_client() else {
            return;
        };
        let client = &mut self.clients[index];
        for _ in 0..=self.random.below(self.profile.pipeline) {
            if !client.may_speak() || client.sent.len() > 8 {
                return;
            }
            let topics = Topics {
                role: client.role,
                tubes: &self.tubes,
                own: &client.own,
                all: &self.all,
                body_len_max: self.profile.body_len_max,
                body_len_mean: self.profile.body_len_mean,
                is_full: self.truth.jobs.len() >= self.profile.jobs_max,
            };
            client.say(Command::random(&mut self.random, &topics));
        }
        if self.random.percent(50) {
            self.arrive(index, usize::MAX);
        }
    }

    fn arrive_some(&mut self) {
        let most = self.random.pick(&[1, 9, 200, 9_000]);
        if let Some(index) = self.some_client() {
            self.arrive(index, most);
        }
    }

    /// Lets up to `most` bytes of a client arrive.
    fn arrive(&mut self, index: usize, most: usize) {
        let client = &mut self.clients[index];
        if client.is_closing {
            client.pending.clear();
        }
        let mut count = client.pending.len().min(most);
        if count == 0 {
            return;
        }
        // A large body is read straight to where it stays, as from a socket.
        if client.unfed.is_empty()
            && let Some((body, wanted)) = self.table.direct(client.id)
        {
            count = count.min(wanted);
            body.extend(client.pending.drain(..count));
        } else {
            client.unfed.extend(client.pending.drain(..count));
        }
        client.arrived += count as u64;
        self.feed(index);
    }

    fn feed(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let mut bytes = &client.unfed[..];
        let before = bytes.len();
        let fed = self.table.feed(self.now, client.id, &mut bytes);
        let used = before - bytes.len();
        let text = client.unfed[..used].escape_ascii();
        if self.verbose && used > 0 {
            let (seconds, text) = (self.now.0 as f64 / 1e9, text.to_string());
            let shown = &text[..text.len().min(70)];
            eprintln!("{seconds:9.3}  c{} < {shown} {fed:?}", client.number);
        }
        client.unfed.drain(..used);
        client.must_feed = fed == Fed::Waits;
        client.is_closing |= fed == Fed::Closing;
        self.look();
    }

    fn serve_some(&mut self) {
        let touched: Vec<usize> = (0..self.clients.len())
            .filter(|&index| self.clients[index].is_touched)
            .collect();
        if touched.is_empty() {
            return;
        }
        let index = self.random.pick(&touched);
        let slow = self.random.percent(self.profile.slow_reader);
        self.serve(index, if slow { 50 } else { usize::MAX });
    }

    /// Does what the network does for a session that is touched: sends up to `most` bytes of
    /// replies, feeds on, and closes what is over.
    fn serve(&mut self, index: usize, most: usize) {
        let sent_all = self.send(index, most);
        self.clients[index].is_touched = !sent_all;
        if self.clients[index].must_feed {
            self.feed(index);
        }
        let client = &self.clients[index];
        let is_over = client.input_ended && !client.must_feed && self.table.is_answered(client.id);
        let is_idle = sent_all && !client.is_touched;
        if is_idle && (client.is_closing || is_over) {
            assert!(
                client.is_answered(),
                "c{} was owed something",
                client.number
            );
            self.close(index);
        }
    }

    /// Lets a client read up to `most` bytes of what it is owed. Whether that was all.
    fn send(&mut self, index: usize, most: usize) -> bool {
        let client = &mut self.clients[index];
        let Some(mut replies) = self.table.replies(client.id) else {
            return true;
        };
        let mut slices = [&[][..]; 8];
        let filled = replies.slices(&mut slices);
        let mut bytes = slices[..filled].concat();
        bytes.truncate(most);
        replies.advance(bytes.len());
        let sent_all = replies.is_empty();
        drop(replies);
        self.table.recycle(client.id);
        client.received.extend_from_slice(&bytes);
        while let Some(reply) = Reply::cut(&mut client.received) {
            say!(self, "c{} > {}", client.number, reply.line);
            if reply.is("INSERTED") {
                self.all.extend(reply.id());
            }
            client.on_reply(self.now, reply, &self.truth);
        }
        sent_all
    }

    fn some_client(&mut self) -> Option<usize> {
        let count = self.clients.len();
        (count > 0).then(|| self.random.index(count))
    }

    pub(crate) fn index_of(&self, id: SessionId) -> Option<usize> {
        self.clients.iter().position(|client| client.id == id)
    }
}

/// Links, shards and time.
impl World {
    fn some_shard(&mut self) -> usize {
        let count = self.shard_count();
        self.random.index(count)
    }

    fn deliver_some(&mut self) {
        let shard = self.some_shard();
        for _ in 0..=self.random.below(4) {
            self.deliver(shard);
        }
    }

    fn deliver(&mut self, shard: usize) {
        self.table.shards.links[shard].asks.flow();
        match self.table.shards.links[shard].asks.front() {
            Some(Ask::Submit(from, op)) => {
                say!(self, "    {} -> s{shard} {op:?}", caller(from));
                self.check_reach(shard, from.session, op);
            }
            Some(Ask::Attach(_)) => {}
            Some(Ask::Detach(id)) => {
                say!(self, "    c{} -> s{shard} Detach", id.number >> 24);
            }
            None => return,
        }
        let link = &mut self.table.shards.links[shard];
        link.deliver(self.now, &mut self.truth);
    }

    /// A reserve asks those shards that have a watched tube, and makes them compare offers only if
    /// they are several.
    fn check_reach(&self, shard: usize, session: SessionId, op: &Op<'_>) {
        let client = self.clients.iter().find(|client| client.id == session);
        // What the client watches is known once it has read all answers.
        if let (Some(client), Op::Reserve { style, .. }) = (client, op)
            && client.reserves()
            && !client.is_touched
        {
            let shards = client
                .watched
                .iter()
                .map(|name| self.map.of_tube(tube(name)));
            let shards: BTreeSet<usize> = shards.map(|shard| usize::from(shard.0)).collect();
            assert!(
                shards.contains(&shard),
                "c{} watches at {shards:?}",
                client.number
            );
            assert_eq!(*style == Style::Take, shards.len() == 1);
        }
    }

    fn hear_some(&mut self) {
        let shard = self.some_shard();
        if self.profile.late_shard == Some(shard) && self.random.percent(90) {
            return;
        }
        for _ in 0..=self.random.below(4) {
            self.hear(shard);
        }
    }

    fn hear(&mut self, shard: usize) {
        let Some((to, event)) = self.table.shards.links[shard].events.pop_front() else {
            return;
        };
        say!(self, "    {} <- s{shard} {event:?}", caller(&to));
        let event = event.event();
        self.note(to, &event);
        let shard = self.map.all().iter().nth(shard).expect("is a shard");
        self.table.hear(self.now, shard, to, event);
        self.look();
    }

    /// Takes note of what a session is about to hear, and sees that no job is handed to a client
    /// while another can still be sure of having it.
    fn note(&mut self, to: Caller, event: &Event<'_>) {
        let Some(index) = self.index_of(to.session) else {
            return;
        };
        if let Event::Reserved { id, .. } = *event {
            let mut others = self.clients.iter().filter(|other| other.id != to.session);
            let other = others.find(|other| other.surely_has(id, self.now));
            assert!(
                other.is_none(),
                "{id:?} is handed over while c{} has it",
                other.map_or(0, |other| other.number)
            );
        }
        self.clients[index].note(self.now, to.seq, event);
    }

    /// Delivers everything that is on its way, and what follows, in some order.
    fn drain_links(&mut self) {
        while !self.table.shards.is_quiet() {
            let shard = self.some_shard();
            if self.random.percent(50) {
                self.deliver(shard);
            } else {
                self.hear(shard);
            }
        }
    }

    fn tick_engine(&mut self, shard: usize) {
        let link = &mut self.table.shards.links[shard];
        link.tick(self.now, &mut self.truth);
    }

    fn tick_table(&mut self) {
        self.table.tick(self.now);
        self.look();
        let moment = self.table.next_moment();
        assert!(moment.is_none_or(|moment| moment > self.now));
    }

    fn pass_some(&mut self) {
        let ms = match self.random.below(12) {
            0 => self.random.below(5_000),
            1 => 1_000,
            _ => self.random.below(self.profile.pass_ms),
        };
        self.pass_to(Nanos(self.now.0 + ms * 1_000_000));
    }

    fn answer_stats(&mut self) {
        if self.table.is_stats_due() {
            let mut due = Vec::new();
            self.table.take_stats_due(&mut due);
            self.table
                .answer_stats(&due, &ProcessStats::default(), None);
            self.look();
        }
    }

    /// Takes from the table what it tells after whatever was done with it.
    fn look(&mut self) {
        #[cfg(debug_assertions)]
        self.table.check_invariants();
        let mut touched = Vec::new();
        self.table.take_touched(&mut touched);
        for id in touched {
            if let Some(index) = self.index_of(id) {
                self.clients[index].is_touched = true;
            }
        }
        for trace in self.table.take_traces() {
            let Some(index) = self.index_of(trace.session) else {
                continue;
            };
            let client = &mut self.clients[index];
            match trace.what {
                Traced::Command(Some(Kind::Reserve | Kind::ReserveWithTimeout)) => {
                    client.reserves.push_back(self.now);
                }
                Traced::Reply(line) => client.note_answer(&line),
                Traced::Command(_) | Traced::Body(_) => {}
            }
        }
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

/// A session is the client that was opened as the so-manieth.
fn caller(caller: &Caller) -> String {
    let serial = caller.session.number >> 24;
    format!("c{serial}#{}", caller.seq.0)
}
