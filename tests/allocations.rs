//! What commands and sessions cost in memory: the sessions' table over a lone shard, without
//! sockets, under an allocator that counts. The promise is no allocation for any command about
//! jobs, once buffers and tables have grown to what the load needs, but for the place of a body
//! above 2 KiB and its way out; and a bound on the bytes that a job takes while it waits.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;

use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{SessionId, ShardId};
use beanshard::base::limits::{BODY_GATHER_LEN_MAX, BODY_LEN_MAX_DEFAULT};
use beanshard::base::time::Nanos;
use beanshard::engine::host::NoJournal;
use beanshard::engine::{Engine, IdScheme};
use beanshard::role::shard::Shard;
use beanshard::session::input::Input;
use beanshard::session::reply::Replies;
use beanshard::session::shards::ShardMap;
use beanshard::session::stats::{ProcessStats, StatsDue};
use beanshard::session::table::{MultiWatch, Sessions};
use beanshard::session::{Session, table};

/// The system's allocator, with a count for each thread. Tests run in threads of their own.
struct Counting;

thread_local! {
    // Neither is made lazily nor dropped, so that the allocator can use them at any time.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(allocations: usize, bytes: isize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
    BYTES.set(BYTES.get() + bytes);
}

// SAFETY: everything is left to the system's allocator; counting touches no memory of its.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        // SAFETY: as above, and what is freed here was allocated there.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as isize - layout.size() as isize);
        // SAFETY: as above, and what is moved here was allocated there.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

const SHARD: ShardId = ShardId(0);
const SECOND: u64 = 1_000_000_000;

/// The table with its shard, and what the role around it does each turn.
struct Driver {
    sessions: Sessions<Shard<NoJournal>>,
    now: Nanos,
    touched: Vec<SessionId>,
    due: Vec<StatsDue>,
    /// What was answered last, by all sessions.
    sent: Vec<u8>,
    process: ProcessStats<'static>,
    /// Allocations by what was done, and how often it was.
    costs: BTreeMap<&'static str, (usize, usize)>,
}

impl Driver {
    fn new() -> Driver {
        let settings = beanshard::engine::Settings {
            ids: IdScheme::Plain,
            hasher: NameHasher::new([1, 2]),
            has_default: true,
        };
        let shard = Shard::new(Engine::new(settings), NoJournal);
        let settings = table::Settings {
            map: ShardMap::new(1),
            body_len_max: BODY_LEN_MAX_DEFAULT,
            hasher: NameHasher::new([3, 4]),
            traced: false,
            frontend: 0,
            owner_wait: 0,
            multi_watch: MultiWatch::Serve,
        };
        Driver {
            sessions: Sessions::new(shard, settings),
            now: Nanos(SECOND),
            touched: Vec::with_capacity(64),
            due: Vec::with_capacity(64),
            sent: Vec::with_capacity(64 * 1024),
            process: ProcessStats::default(),
            costs: BTreeMap::new(),
        }
    }

    fn open(&mut self) -> SessionId {
        let id = self.sessions.open(self.now);
        self.settle();
        id
    }

    /// Has `id` send `bytes`, takes the answers, and counts what that cost as `what`. The answers
    /// must begin with `expected`.
    fn say(&mut self, id: SessionId, what: &'static str, bytes: &[u8], expected: &str) {
        let before = ALLOCATIONS.get();
        let mut rest = bytes;
        self.sessions.feed(self.now, id, &mut rest);
        self.settle();
        self.note(what, ALLOCATIONS.get() - before, expected);
        assert!(rest.is_empty(), "{what}: all is obeyed");
    }

    /// Lets `millis` pass and counts what comes of it as `what`.
    fn wait(&mut self, what: &'static str, millis: u64, expected: &str) {
        let before = ALLOCATIONS.get();
        self.now.0 += millis * (SECOND / 1000);
        let now = self.now;
        self.sessions
            .tick_shard(now, SHARD, |shard, outbox| shard.tick(now, outbox));
        self.sessions.tick(now);
        self.settle();
        self.note(what, ALLOCATIONS.get() - before, expected);
    }

    fn note(&mut self, what: &'static str, allocations: usize, expected: &str) {
        let said = String::from_utf8_lossy(&self.sent);
        assert!(said.starts_with(expected), "{what}: {said}");
        let cost = self.costs.entry(what).or_default();
        *cost = (cost.0 + allocations, cost.1 + 1);
    }

    /// Sends what has been answered, as the end of a turn does.
    fn settle(&mut self) {
        self.sent.clear();
        if self.sessions.is_stats_due() {
            self.sessions.take_stats_due(&mut self.due);
            self.sessions.answer_stats(&self.due, &self.process, None);
            self.due.clear();
        }
        self.sessions.take_touched(&mut self.touched);
        for id in self.touched.drain(..) {
            let Some(mut replies) = self.sessions.replies(id) else {
                continue;
            };
            while !replies.is_empty() {
                let mut pieces = [&[][..]; 16];
                let filled = replies.slices(&mut pieces);
                let before = self.sent.len();
                for piece in &pieces[..filled] {
                    self.sent.extend_from_slice(piece);
                }
                replies.advance(self.sent.len() - before);
            }
            drop(replies);
            self.sessions.recycle(id);
        }
    }
}

/// `prefix` and a number behind it, written to memory that is there.
fn numbered(line: &mut Vec<u8>, prefix: &str, id: u64, suffix: &str) {
    line.clear();
    write!(line, "{prefix}{id}{suffix}\r\n").expect("memory takes everything");
}

/// A life with every command about jobs, for two sessions and a job each time. `id` is the next
/// job's.
fn round(driver: &mut Driver, [worker, waiter]: [SessionId; 2], id: &mut u64) {
    let line = &mut Vec::with_capacity(64);
    let mut next = || {
        *id += 1;
        *id
    };
    life(driver, worker, next(), line);
    ends(driver, worker, [next(), next()], line);
    waits(driver, [worker, waiter], next(), line);
    large(driver, worker, next(), line);
    tubes(driver, worker);
}

/// A job through all its states and out.
fn life(driver: &mut Driver, worker: SessionId, id: u64, line: &mut Vec<u8>) {
    driver.say(worker, "put", b"put 0 0 60 4\r\nwork\r\n", "INSERTED");
    let mut about = |driver: &mut Driver, what, [prefix, suffix]: [&str; 2], expected| {
        numbered(line, prefix, id, suffix);
        driver.say(worker, what, line, expected);
    };
    about(driver, "peek", ["peek ", ""], "FOUND");
    driver.say(worker, "peek-ready", b"peek-ready\r\n", "FOUND");
    driver.say(worker, "reserve", b"reserve\r\n", "RESERVED");
    about(driver, "touch", ["touch ", ""], "TOUCHED");
    about(driver, "stats-job", ["stats-job ", ""], "OK");
    about(driver, "release", ["release ", " 0 0"], "RELEASED");
    let reserve = b"reserve-with-timeout 0\r\n";
    driver.say(worker, "reserve-with-timeout", reserve, "RESERVED");
    about(
        driver,
        "release with delay",
        ["release ", " 0 9"],
        "RELEASED",
    );
    driver.say(worker, "peek-delayed", b"peek-delayed\r\n", "FOUND");
    driver.say(worker, "kick", b"kick 1\r\n", "KICKED 1");
    about(driver, "reserve-job", ["reserve-job ", ""], "RESERVED");
    about(driver, "bury", ["bury ", " 0"], "BURIED");
    driver.say(worker, "peek-buried", b"peek-buried\r\n", "FOUND");
    about(driver, "kick-job", ["kick-job ", ""], "KICKED");
    about(driver, "delete", ["delete ", ""], "DELETED");
    about(driver, "not found", ["delete ", ""], "NOT_FOUND");
    driver.say(worker, "time out at once", reserve, "TIMED_OUT");
}

/// What ends by itself: a delay and a reservation.
fn ends(driver: &mut Driver, worker: SessionId, ids: [u64; 2], line: &mut Vec<u8>) {
    driver.say(
        worker,
        "put with delay",
        b"put 0 1 2 4\r\nwork\r\n",
        "INSERTED",
    );
    driver.wait("a delay ends", 1_001, "");
    driver.say(worker, "reserve", b"reserve\r\n", "RESERVED");
    driver.say(worker, "put", b"put 0 9 60 4\r\nwork\r\n", "INSERTED");
    driver.wait("nothing ends", 1_001, "");
    driver.say(worker, "warned at once", b"reserve\r\n", "DEADLINE_SOON");
    driver.wait("a reservation ends", 1_001, "");
    for id in ids {
        numbered(line, "delete ", id, "");
        driver.say(worker, "delete", line, "DELETED");
    }
}

/// Waiting for a job in all ways.
fn waits(driver: &mut Driver, [worker, waiter]: [SessionId; 2], id: u64, line: &mut Vec<u8>) {
    driver.say(waiter, "reserve that waits", b"reserve\r\n", "");
    let put = b"put 0 0 1 4\r\nwork\r\n";
    driver.say(worker, "put for one who waits", put, "");
    driver.say(waiter, "warned at once", b"reserve\r\n", "DEADLINE_SOON");
    numbered(line, "delete ", id, "");
    driver.say(waiter, "delete", line, "DELETED");
    let timed = b"reserve-with-timeout 1\r\n";
    driver.say(waiter, "timed reserve that waits", timed, "");
    driver.wait("the wait ends", 1_001, "TIMED_OUT");
}

/// What is about tubes and not about a job.
fn tubes(driver: &mut Driver, worker: SessionId) {
    let mut say = |what, line: &str, expected| {
        driver.say(worker, what, line.as_bytes(), expected);
    };
    say("pause-tube", "pause-tube work 1\r\n", "PAUSED");
    say("pause-tube", "pause-tube work 0\r\n", "PAUSED");
    say("stats-tube", "stats-tube work\r\n", "OK");
    say("list-tube-used", "list-tube-used\r\n", "USING");
    say("list-tubes-watched", "list-tubes-watched\r\n", "OK");
    say("list-tubes", "list-tubes\r\n", "OK");
    say("stats", "stats\r\n", "OK");
    say("unknown command", "nonsense\r\n", "UNKNOWN_COMMAND");
    say("bad format", "delete x\r\n", "BAD_FORMAT");
    say("use default", "use default\r\n", "USING");
    say("use of another tube", "use work\r\n", "USING");
    say("watch what is watched", "watch work\r\n", "WATCHING");
    say("watch of another tube", "watch more\r\n", "WATCHING");
    say("ignore", "ignore more\r\n", "WATCHING");
    say("ignore what is not watched", "ignore more\r\n", "WATCHING");
}

/// A body as large as those that are copied out of the input, and shared with the reply.
fn large(driver: &mut Driver, worker: SessionId, id: u64, line: &mut Vec<u8>) {
    const LEN: usize = BODY_GATHER_LEN_MAX;
    let mut put = format!("put 0 0 60 {LEN}\r\n").into_bytes();
    put.resize(put.len() + LEN, b'x');
    put.extend_from_slice(b"\r\n");
    driver.say(worker, "put of a large body", &put, "INSERTED");
    driver.say(
        worker,
        "reserve of a large body",
        b"reserve\r\n",
        "RESERVED",
    );
    numbered(line, "delete ", id, "");
    driver.say(worker, "delete", line, "DELETED");
}

/// What each time costs in allocations, where that is not none. The last five are not about jobs:
/// a name that is not `default` is kept until the answer is out and then as long as it is used,
/// and what is gathered from all shards is gathered somewhere.
const PRICES: [(&str, usize); 7] = [
    ("put of a large body", 1),
    // The place of the shared body among the pieces that go out.
    ("reserve of a large body", 1),
    ("use of another tube", 1),
    // Its name, and the two lists that have one entry in place and grow by a second.
    ("watch of another tube", 3),
    ("ignore", 1),
    ("list-tubes", 4),
    ("stats", 1),
];

// R4.3, R4.5
#[test]
fn commands_about_jobs_cost_no_allocation() {
    const WARM_UP: usize = 3_000;
    const ROUNDS: usize = 1_000;
    let mut driver = Driver::new();
    let sessions = [driver.open(), driver.open()];
    for id in sessions {
        let work = b"use work\r\nwatch work\r\nignore default\r\n";
        driver.say(id, "enter", &work[..10], "USING");
        driver.say(id, "enter", &work[10..22], "WATCHING 2");
        driver.say(id, "enter", &work[22..], "WATCHING 1");
    }
    // Someone keeps the other tube alive.
    let other = driver.open();
    driver.say(other, "enter", b"watch more\r\n", "WATCHING 2");
    let mut id = 0;
    for _ in 0..WARM_UP {
        round(&mut driver, sessions, &mut id);
    }
    driver.costs.clear();
    for _ in 0..ROUNDS {
        round(&mut driver, sessions, &mut id);
    }
    for (what, (allocations, times)) in driver.costs {
        let price = PRICES.iter().find(|(name, _)| *name == what);
        let price = price.map_or(0, |(_, price)| *price);
        assert_eq!(allocations, price * times, "{what}, {times} times");
    }
}

/// Most bytes for a job of 64 bytes that waits, ready: 48 are its slot, 64 its body, 16 its entry
/// in the tube's queue, 6 to 11 that in the index, and the rest is for pages and chunks. A job that
/// was once delayed, reserved or buried takes 48 more, its second slot; this one stands also in
/// another queue, whose entries take 24.
const WAITING_BYTES_MAX: usize = 142;
const DELAYED_BYTES_MAX: usize = 200;

#[test]
fn a_job_that_waits_costs_little_and_leaves_nothing() {
    const COUNT: usize = 100_000;
    let puts = [
        ("put 0 0 60 64\r\n", WAITING_BYTES_MAX),
        ("put 0 60 60 64\r\n", DELAYED_BYTES_MAX),
    ];
    for (line, most) in puts {
        let mut driver = Driver::new();
        let worker = driver.open();
        let before = BYTES.get();
        let each = || (BYTES.get() - before).cast_unsigned() / COUNT;
        let put = [line.as_bytes(), &[b'x'; 64], b"\r\n"].concat();
        for _ in 0..COUNT {
            driver.say(worker, "", &put, "INSERTED");
        }
        let taken = each();
        eprintln!("bytes of a job: {taken} by {line}");
        assert!(taken <= most, "{taken} bytes each by {line}");
        let line = &mut Vec::with_capacity(64);
        for id in 1..=COUNT as u64 {
            numbered(line, "delete ", id, "");
            driver.say(worker, "", line, "DELETED");
        }
        assert!(each() < 2, "{} bytes of each are left", each());
    }
}

/// Most bytes for a tube that is watched and has never had a job, the entry in the client's list of
/// watched tubes included.
const EMPTY_TUBE_BYTES_MAX: usize = 400;

// R3.6
#[test]
fn an_empty_tube_costs_little() {
    const COUNT: usize = 100_000;
    let mut driver = Driver::new();
    let worker = driver.open();
    let before = BYTES.get();
    let line = &mut Vec::with_capacity(64);
    for number in 0..COUNT as u64 {
        numbered(line, "watch tube-", number, "");
        driver.say(worker, "", line, "WATCHING");
    }
    let each = (BYTES.get() - before).cast_unsigned() / COUNT;
    eprintln!("bytes of an empty tube: {each}");
    assert!(each <= EMPTY_TUBE_BYTES_MAX, "{each} bytes each");
}

/// Most bytes for a session that was just opened, and for one that has used, watched and held
/// something. More than half is the entry in the table of sessions, and of the rest most is the
/// shard's record of the client; then come the lists of watched tubes and, once there has been a
/// job, the copy of its deadline. The buffers of the connection are not counted.
const OPENED_BYTES_MAX: usize = 348;
const USED_BYTES_MAX: usize = 408;

// R3.6, A3.3
#[test]
fn a_session_that_does_nothing_costs_little() {
    const COUNT: usize = 10_000;
    let mut driver = Driver::new();
    let mut sessions = Vec::with_capacity(COUNT);
    let before = BYTES.get();
    let each = || (BYTES.get() - before).cast_unsigned() / COUNT;
    sessions.extend((0..COUNT).map(|_| driver.open()));
    let opened = each();
    let mut line = Vec::with_capacity(64);
    for (id, &session) in (1..).zip(&sessions) {
        driver.say(session, "", b"use work\r\n", "USING");
        driver.say(session, "", b"put 0 0 60 4\r\nwork\r\n", "INSERTED");
        driver.say(session, "", b"watch work\r\n", "WATCHING");
        driver.say(session, "", b"reserve\r\n", "RESERVED");
        numbered(&mut line, "delete ", id, "");
        driver.say(session, "", &line, "DELETED");
    }
    let used = each();
    let sizes = [
        size_of::<Session>(),
        size_of::<Input>(),
        size_of::<Replies>(),
    ];
    let told = format!("opened {opened}, used {used}; session, input, replies: {sizes:?}");
    eprintln!("bytes of a session: {told}");
    assert!(
        opened <= OPENED_BYTES_MAX && used <= USED_BYTES_MAX,
        "{told}"
    );
    for &session in &sessions {
        driver.sessions.close(driver.now, session);
    }
    assert!(each() < 32, "{} bytes of each are left", each());
}
