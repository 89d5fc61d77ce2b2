//! The same clients twice: with a shard that answers before a call returns, and with one at the end
//! of a link that takes no time. With one shard in reach there is nothing to coordinate, so what
//! the clients are answered is the same to the byte.

use beanshard::base::ids::{Caller, Generation, JobId, RunId, SessionId, ShardId};
use beanshard::base::time::Nanos;
use beanshard::channel::Terms;
use beanshard::channel::remote::{self, RemoteShards};
use beanshard::engine::host::{NoJournal, Outbox, Ticket};
use beanshard::engine::op::Op;
use beanshard::role::hub::Hub;
use beanshard::role::shard::Shard;
use beanshard::session::shards::{ShardMap, Shards};
use beanshard::session::stats::ProcessStats;
use beanshard::session::table::{Fed, MultiWatch, Sessions, Settings};
use beanshard::wire::control::Hello;
use beanshard::wire::frame::Frame;
use beanshard::wire::header::Ends;
use beanshard::wire::kind::Sender;

use crate::command::{Command, Role, Topics};
use crate::random::Random;
use crate::truth::Seen;
use crate::witness::{engine_of, hasher};

/// The one shard.
const SHARD: ShardId = ShardId(0);

const TUBES: [&str; 4] = ["default", "a", "b", "c"];

const BODY_LEN_MAX: u32 = 3_000;

const CLIENTS: usize = 6;

/// The shard of `--legacy`, but for the ids.
struct Direct(Shard<NoJournal>);

impl Shards for Direct {
    fn attach(&mut self, shard: ShardId, session: SessionId) {
        self.0.attach(shard, session);
    }

    fn submit(
        &mut self,
        now: Nanos,
        shard: ShardId,
        from: Caller,
        op: Op<'_>,
        outbox: &mut impl Outbox,
    ) {
        self.0.submit(now, shard, from, op, outbox);
    }

    fn detach(&mut self, now: Nanos, shard: ShardId, id: SessionId, outbox: &mut impl Outbox) {
        self.0.detach(now, shard, id, outbox);
    }

    fn flush(&mut self) -> Ticket {
        self.0.flush()
    }

    /// Ids are given when jobs arrive, as they are at the end of a link.
    fn take_id(&mut self, _: ShardId, _: SessionId) -> Option<JobId> {
        None
    }
}

/// What it takes to let a table and its shard speak.
trait Glue: Shards + Sized {
    /// What is at the other end of the link, if there is one.
    type Far;
    fn new(map: ShardMap) -> (Self, Self::Far);
    /// There is a link.
    fn connect(side: &mut Side<Self>, now: Nanos);
    /// Delivers what is on its way.
    fn pump(side: &mut Side<Self>, now: Nanos);
    /// Lets the shard do what is due.
    fn tick(side: &mut Side<Self>, now: Nanos);
}

impl Glue for Direct {
    type Far = ();

    fn new(map: ShardMap) -> (Direct, ()) {
        (Direct(Shard::new(engine_of(map, SHARD), NoJournal)), ())
    }

    fn connect(_: &mut Side<Direct>, _: Nanos) {}

    fn pump(_: &mut Side<Direct>, _: Nanos) {}

    fn tick(side: &mut Side<Direct>, now: Nanos) {
        side.table
            .tick_shard(now, SHARD, |shards, outbox| shards.0.tick(now, outbox));
    }
}

impl Glue for RemoteShards {
    type Far = Hub<Shard<NoJournal>>;

    fn new(map: ShardMap) -> (RemoteShards, Self::Far) {
        let shard = Shard::new(engine_of(map, SHARD), NoJournal);
        (RemoteShards::new(map), Hub::new(shard))
    }

    fn connect(side: &mut Side<RemoteShards>, now: Nanos) {
        let ends = Ends {
            topology: ShardMap::new(1).fingerprint(),
            sender: Generation(1),
            receiver: Generation(2),
        };
        let own = Hello::new(RunId(3), ends, Sender::Frontend, 0);
        let awaited = Hello::new(RunId(3), ends.reversed(), Sender::Owner, 0);
        let terms = |own, awaited| Terms::new(own, awaited, BODY_LEN_MAX);
        remote::connect(&mut side.table, now, SHARD, &terms(own, awaited));
        side.far.connect(now, &terms(awaited, own));
    }

    fn pump(side: &mut Side<RemoteShards>, now: Nanos) {
        let Side { table, far, .. } = side;
        loop {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            table.shards.end(SHARD).write(&mut up, usize::MAX);
            let mut rest = &up[..];
            let expected = far.expected(0).expect("there is a link");
            while let Some(frame) = Frame::cut(&mut rest, &expected).expect("frames are sound") {
                far.take(now, 0, frame).expect("nothing is refused");
            }
            far.write(0, &mut down, usize::MAX, Ticket(0));
            let mut rest = &down[..];
            let expected = *table.shards.end(SHARD).expected().expect("there is a link");
            while let Some(frame) = Frame::cut(&mut rest, &expected).expect("frames are sound") {
                remote::hear(table, now, SHARD, frame).expect("nothing is refused");
            }
            if up.is_empty() && down.is_empty() {
                return;
            }
        }
    }

    fn tick(side: &mut Side<RemoteShards>, now: Nanos) {
        side.far.tick(now);
    }
}

/// One of the two.
struct Side<S: Glue> {
    table: Sessions<S>,
    clients: Vec<(SessionId, Vec<u8>)>,
    far: S::Far,
}

impl<S: Glue> Side<S> {
    fn new(now: Nanos) -> Side<S> {
        let map = ShardMap::new(1);
        let settings = Settings {
            map,
            body_len_max: BODY_LEN_MAX,
            hasher: hasher(),
            traced: false,
            frontend: 0,
            owner_wait: 0,
            multi_watch: MultiWatch::Serve,
        };
        let (shards, far) = S::new(map);
        let mut side = Side {
            table: Sessions::new(shards, settings),
            clients: Vec::new(),
            far,
        };
        S::connect(&mut side, now);
        S::pump(&mut side, now);
        for _ in 0..CLIENTS {
            let id = side.table.open(now);
            side.clients.push((id, Vec::new()));
        }
        S::pump(&mut side, now);
        side
    }

    /// Lets these bytes of a client arrive.
    fn arrive(&mut self, now: Nanos, index: usize, bytes: &[u8]) {
        self.clients[index].1.extend_from_slice(bytes);
        while self.feed(now, index) {}
        self.settle(now);
    }

    fn tick(&mut self, now: Nanos) {
        S::tick(self, now);
        S::pump(self, now);
        self.table.tick(now);
        S::pump(self, now);
        self.settle(now);
    }

    fn end_input(&mut self, now: Nanos, index: usize) {
        self.table.end_input(now, self.clients[index].0);
        S::pump(self, now);
        self.settle(now);
    }

    /// Another client takes the place of this one.
    fn replace(&mut self, now: Nanos, index: usize) {
        self.table.close(now, self.clients[index].0);
        S::pump(self, now);
        self.clients[index] = (self.table.open(now), Vec::new());
        S::pump(self, now);
        self.settle(now);
    }

    /// What a client is answered.
    fn read(&mut self, index: usize) -> Vec<u8> {
        let Some(mut replies) = self.table.replies(self.clients[index].0) else {
            return Vec::new();
        };
        let mut slices = [&[][..]; 64];
        let filled = replies.slices(&mut slices);
        let bytes = slices[..filled].concat();
        replies.advance(bytes.len());
        bytes
    }

    /// Lets everybody go on who can, one after another as far as each can.
    fn settle(&mut self, now: Nanos) {
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for index in 0..CLIENTS {
                while self.feed(now, index) {
                    goes_on = true;
                }
            }
        }
    }

    /// Whether another client has sent something that waits for its turn.
    fn has_more_but(&self, index: usize) -> bool {
        let mut others = (0..CLIENTS).filter(|other| *other != index);
        others.any(|other| !self.clients[other].1.is_empty())
    }

    fn waits(&self, index: usize) -> bool {
        self.table.waits_for_job(self.clients[index].0)
    }

    /// Whether the session has taken something.
    fn feed(&mut self, now: Nanos, index: usize) -> bool {
        let (id, unfed) = &mut self.clients[index];
        let mut bytes = &unfed[..];
        let fed = self.table.feed(now, *id, &mut bytes);
        let used = unfed.len() - bytes.len();
        unfed.drain(..used);
        if fed == Fed::Closing {
            unfed.clear();
        }
        S::pump(self, now);
        let mut due = Vec::new();
        self.table.take_stats_due(&mut due);
        self.table
            .answer_stats(&due, &ProcessStats::default(), None);
        used > 0
    }
}

/// Runs both sides for `steps` steps.
pub(crate) fn run(seed: u64, steps: u64, verbose: bool) -> Seen {
    let mut random = Random::new(seed);
    let mut now = Nanos(1_000_000_000_000);
    let mut near: Side<Direct> = Side::new(now);
    let mut far: Side<RemoteShards> = Side::new(now);
    let mut ids: Vec<u64> = Vec::new();
    // A step here is a good many steps of the other test.
    for step in 0..steps / 10 {
        let index = random.index(CLIENTS);
        match random.below(40) {
            0 => {
                near.replace(now, index);
                far.replace(now, index);
            }
            1 => {
                near.end_input(now, index);
                far.end_input(now, index);
            }
            2..12 => {
                now.0 += random.below(700) * 1_000_000;
                near.tick(now);
                far.tick(now);
            }
            _ => {
                // Of clients that go on at once nobody says in which order. So only one has
                // something behind a reserve that waits, and others send a command at a time then.
                let is_alone = !near.has_more_but(index);
                if !is_alone && near.waits(index) {
                    continue;
                }
                let count = if is_alone { 1 + random.below(3) } else { 1 };
                let text = random_text(&mut random, &ids, step, count);
                if verbose {
                    eprintln!("c{index} < {}", text.escape_ascii());
                }
                near.arrive(now, index, &text);
                far.arrive(now, index, &text);
            }
        }
        for index in 0..CLIENTS {
            let (direct, linked) = (near.read(index), far.read(index));
            let shown = direct.escape_ascii();
            if verbose && !direct.is_empty() {
                eprintln!("c{index} > {shown}");
            }
            assert!(
                direct == linked,
                "c{index}: {shown} is answered as {}",
                linked.escape_ascii()
            );
            let lines = direct.split(|&byte| byte == b'\n');
            ids.extend(lines.filter_map(inserted));
        }
    }
    Seen::new()
}

/// So many commands.
fn random_text(random: &mut Random, ids: &[u64], number: u64, count: u64) -> Vec<u8> {
    let topics = Topics {
        role: random.pick(&[Role::Any, Role::Producer]),
        tubes: &TUBES,
        own: &[],
        all: ids,
        body_len_max: BODY_LEN_MAX,
        body_len_mean: 40,
        is_full: false,
        number,
    };
    let commands = (0..count).map(|_| Command::random(random, &topics).text());
    commands.flatten().collect()
}

/// The id in a line that says that a job was put.
fn inserted(line: &[u8]) -> Option<u64> {
    let id = line.strip_prefix(b"INSERTED ")?.strip_suffix(b"\r")?;
    std::str::from_utf8(id).ok()?.parse().ok()
}
