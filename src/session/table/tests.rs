//! Shards that answer when they are told to, and that are in reach or not.

use proptest::prelude::*;

use super::*;
use crate::base::body::{Body, BodyCow};
use crate::base::ids::Pri;
use crate::base::limits::GATHER_SECS_MAX;
use crate::base::property_config;
use crate::engine::stats::ShardStats;
use crate::session::shards::Reach;
use crate::session::waiting::Place;

mod ahead;
mod faults;
mod room;
mod turns;

/// What there is between the sessions and a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// So many asks can be taken.
    Credit(usize),
    Gone,
}

/// What a shard was told.
#[derive(Clone, Debug)]
enum Told {
    Attach,
    Detach,
    Ask(Seq, String),
}

struct Fake {
    ways: Vec<Way>,
    told: Vec<(u8, SessionId, Told)>,
}

impl Shards for Fake {
    fn attach(&mut self, shard: ShardId, session: SessionId) {
        self.told.push((shard.0, session, Told::Attach));
    }

    fn reach(&self, shards: ShardSet) -> Reach {
        let bad = shards
            .iter()
            .find_map(|shard| match self.ways[usize::from(shard.0)] {
                Way::Credit(0) => Some(Reach::Full(shard)),
                Way::Credit(_) => None,
                Way::Gone => Some(Reach::Down(shard)),
            });
        bad.unwrap_or(Reach::Now)
    }

    fn submit(&mut self, _: Nanos, shard: ShardId, from: Caller, op: Op<'_>, _: &mut impl Outbox) {
        let way = &mut self.ways[usize::from(shard.0)];
        match way {
            Way::Credit(left) if from.seq != Seq::NONE => *left = left.saturating_sub(1),
            Way::Credit(_) => {}
            Way::Gone => panic!("{op:?} is for a shard to which there is no way"),
        }
        let text = format!("{op:?}");
        let short = text.split(['{', '(']).next().unwrap().trim().to_owned();
        self.told
            .push((shard.0, from.session, Told::Ask(from.seq, short)));
    }

    fn detach(&mut self, _: Nanos, shard: ShardId, session: SessionId, _: &mut impl Outbox) {
        self.told.push((shard.0, session, Told::Detach));
    }

    fn flush(&mut self) -> Ticket {
        Ticket(0)
    }

    fn take_id(&mut self, _: ShardId, _: SessionId) -> Option<JobId> {
        None
    }
}

struct Client {
    id: SessionId,
    unread: Vec<u8>,
    fed: Fed,
}

/// Two shards, and clients that are fed whenever they are touched.
struct World {
    table: Sessions<Fake>,
    now: Nanos,
    clients: Vec<Client>,
}

const SECOND: u64 = 1_000_000_000;
const OWNER_WAIT: u64 = SECOND;
const PLENTY: Way = Way::Credit(1_000_000);

fn settings(shards: usize) -> Settings {
    Settings {
        map: ShardMap::new(shards),
        frontend: 7,
        body_len_max: 1_000,
        hasher: NameHasher::new([1, 2]),
        traced: false,
        owner_wait: OWNER_WAIT,
        multi_watch: MultiWatch::Serve,
    }
}

/// The name of a tube of the shard.
fn tube_at(shard: u8) -> String {
    let map = ShardMap::new(2);
    let names = (0..).map(|number| format!("t{number}"));
    let is_there =
        |name: &String| map.of_tube(TubeName::parse(name.as_bytes()).unwrap()).0 == shard;
    names.into_iter().find(is_there).unwrap()
}

/// The number of a job of the shard.
fn job_at(shard: u8) -> u64 {
    let map = ShardMap::new(2);
    (1..).find(|&id| map.of_job(JobId(id)).0 == shard).unwrap() + (5 << 10)
}

/// The shard of the default tube, and the other one.
fn home() -> u8 {
    ShardMap::new(2).of_tube(TubeName::DEFAULT).0
}

fn away() -> u8 {
    1 - home()
}

impl World {
    fn new(clients: usize) -> World {
        World::with(settings(2), clients)
    }

    fn with(settings: Settings, clients: usize) -> World {
        let ways = vec![PLENTY; settings.map.all().len()];
        let told = Vec::new();
        let mut world = World {
            table: Sessions::new(Fake { ways, told }, settings),
            now: Nanos(1_000 * SECOND),
            clients: Vec::new(),
        };
        (0..clients).for_each(|_| world.open());
        world.told();
        world
    }

    fn open(&mut self) {
        let id = self.table.open(self.now);
        self.clients.push(Client {
            id,
            unread: Vec::new(),
            fed: Fed::WantsMore,
        });
    }

    fn way(&mut self, shard: u8, way: Way) {
        self.table.shards.ways[usize::from(shard)] = way;
    }

    /// The link to the shard breaks.
    fn lose(&mut self, shard: u8) {
        self.way(shard, Way::Gone);
        self.table.lose(self.now, ShardId(shard));
        self.settle();
    }

    fn regain(&mut self, shard: u8) {
        self.way(shard, PLENTY);
        self.table.regain(self.now, ShardId(shard));
        self.settle();
    }

    fn resume(&mut self, shard: u8, count: usize) {
        self.way(shard, Way::Credit(count));
        self.table.resume(self.now, ShardId(shard), count);
        self.settle();
    }

    fn say(&mut self, client: usize, text: &str) {
        self.clients[client]
            .unread
            .extend_from_slice(text.as_bytes());
        self.feed(client);
        self.settle();
    }

    fn feed(&mut self, client: usize) {
        let client = &mut self.clients[client];
        let mut rest = &client.unread[..];
        client.fed = self.table.feed(self.now, client.id, &mut rest);
        let used = client.unread.len() - rest.len();
        client.unread.drain(..used);
        self.table.check_invariants();
    }

    fn settle(&mut self) {
        self.table.check_invariants();
        loop {
            let mut touched = Vec::new();
            self.table.take_touched(&mut touched);
            if touched.is_empty() {
                return;
            }
            for id in touched {
                if let Some(client) = self.clients.iter().position(|client| client.id == id) {
                    self.feed(client);
                }
            }
        }
    }

    fn pass(&mut self, nanos: u64) {
        self.now.0 += nanos;
        self.table.tick(self.now);
        self.settle();
    }

    fn hear(&mut self, client: usize, shard: u8, seq: u64, event: Event<'_>) {
        let to = Caller {
            session: self.clients[client].id,
            seq: Seq(seq),
        };
        self.table.hear(self.now, ShardId(shard), to, event);
        self.settle();
    }

    /// What the client has been answered since last looked at.
    fn read(&mut self, client: usize) -> String {
        let Some(mut replies) = self.table.replies(self.clients[client].id) else {
            return String::new();
        };
        let mut slices = [&[][..]; 64];
        let filled = replies.slices(&mut slices);
        let bytes = slices[..filled].concat();
        replies.advance(bytes.len());
        drop(replies);
        self.table.check_invariants();
        String::from_utf8(bytes).unwrap()
    }

    /// What shards were told since last looked at: shard, number of the client, words.
    fn told(&mut self) -> Vec<String> {
        let told = std::mem::take(&mut self.table.shards.told);
        let number = |id| self.clients.iter().position(|client| client.id == id);
        let text = |(shard, id, told): (u8, SessionId, Told)| {
            let (number, shard) = (number(id).unwrap(), shard == home());
            let shard = if shard { "home" } else { "away" };
            match told {
                Told::Attach => format!("{number} {shard} attach"),
                Told::Detach => format!("{number} {shard} detach"),
                Told::Ask(Seq::NONE, op) => format!("{number} {shard} - {op}"),
                Told::Ask(seq, op) => format!("{number} {shard} {} {op}", seq.0),
            }
        };
        told.into_iter().map(text).collect()
    }

    fn close(&mut self, client: usize) {
        self.table.close(self.now, self.clients[client].id);
        self.settle();
    }

    fn is_lost(&self, client: usize) -> bool {
        self.table.is_lost(self.clients[client].id)
    }

    fn counts(&self) -> &Counts {
        self.table.counts()
    }
}

#[test]
fn sessions_carry_the_number_of_their_frontend() {
    let world = World::new(1);
    assert_eq!(world.clients[0].id.frontend, 7);
}
