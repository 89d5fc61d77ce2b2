//! What the transcripts of `legacy-tests/routing/` cannot say about several owners: where their
//! tubes are, what only the sharded mode answers, and what happens when many clients ask at once.

#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/peer.rs"]
mod peer;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/program.rs"]
mod program;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/transcript/mod.rs"]
mod transcript;

use std::collections::BTreeSet;
use std::thread;

use beanshard::base::name::TubeName;
use beanshard::session::shards::ShardMap;

use fixture::{Listen, START_LIMIT, Server, wait_until};
use peer::{Peer, put};
use program::{ours, start};
use transcript::{Ids, parse, play_at};

/// Numbers of owners and frontends that are tried.
const SHAPES: [(u16, u16); 4] = [(1, 2), (2, 1), (3, 2), (5, 2)];

/// Tubes at different owners where there are so many, as in the transcripts.
const TUBES: [&str; 3] = ["green", "west", "red"];

fn serve((owners, frontends): (u16, u16), more: &[&str]) -> Server {
    let counts = [owners, frontends].map(|count| count.to_string());
    let words = [
        "--sharded",
        "--owners",
        &counts[0],
        "--frontends",
        &counts[1],
    ];
    start(&ours(&[&words[..], more].concat()), Listen::Tcp)
}

fn owner(owners: usize, tube: &str) -> u8 {
    let tube = TubeName::parse(tube.as_bytes()).expect("a name");
    ShardMap::new(owners).of_tube(tube).0
}

/// A client that watches all of [`TUBES`] and nothing else.
fn worker(server: &Server) -> Peer {
    let mut worker = Peer::of(server);
    for tube in TUBES {
        worker.ask(&format!("watch {tube}"));
    }
    assert_eq!(worker.ask("ignore default"), "WATCHING 3");
    worker
}

/// The id in an `INSERTED` or `RESERVED` line.
fn id(line: &str) -> u64 {
    let word = line.split(' ').nth(1).unwrap_or_default();
    word.parse().unwrap_or_else(|_| panic!("no id in {line:?}"))
}

/// Reserves, and takes the body as well. None if there is no job.
fn reserve(worker: &mut Peer, timeout: u32) -> Option<u64> {
    let line = worker.ask(&format!("reserve-with-timeout {timeout}"));
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["RESERVED", id, len] => {
            worker.body(len.parse().expect("a size"));
            Some(id.parse().expect("an id"))
        }
        _ => {
            assert_eq!(line, "TIMED_OUT");
            None
        }
    }
}

// A4.1
#[test]
fn tubes_of_the_routing_transcripts_are_at_different_owners() {
    let owners = |count| ["default", "green", "blue", "west", "red"].map(|t| owner(count, t));
    assert_eq!(owners(2), [0, 0, 0, 1, 1]);
    assert_eq!(owners(3), [0, 0, 0, 1, 2]);
    assert_eq!(owners(5), [0, 0, 1, 2, 4]);
}

// R4.7
#[test]
fn a_reserve_over_several_owners_is_refused_where_that_is_asked_for() {
    let script = "
        a> watch red
        a< WATCHING 2
        a> reserve
        a< CROSS_OWNER
        a> reserve-with-timeout 0
        a< CROSS_OWNER
        a> list-tubes-watched
        a< OK
        a| ---
        a| - default
        a| - red
        p> use red
        p< USING red
        p> put 0 0 60 1 | r
        p< INSERTED 1
        a>> \"reserve\\r\\nlist-tube-used\\r\\n\"
        a< CROSS_OWNER
        a< USING default
        a> ignore default
        a< WATCHING 1
        a> reserve
        a< RESERVED 1 1 | r
        a> watch default
        a< WATCHING 2
        a> reserve
        a< CROSS_OWNER
        a> delete 1
        a< DELETED
        b> watch green
        b< WATCHING 2
        b> reserve-with-timeout 0
        b< TIMED_OUT
        b> stats
        b< OK ...
        b| current-jobs-ready: 0
        b| current-waiting: 0
    ";
    let script = parse("reject", script, Ids::Mapped).expect("it can be read");
    for shape in [(2, 1), (3, 2), (5, 2)] {
        let server = serve(shape, &["--multi-watch", "reject"]);
        play_at(&script, server.endpoint().clone())
            .unwrap_or_else(|error| panic!("{shape:?}: {error}"));
    }
    // A lone owner has all tubes, and nothing is to be refused.
    let server = serve((1, 1), &["--multi-watch", "reject"]);
    assert_eq!(reserve(&mut worker(&server), 0), None);
}

// S4.1, S4.2, S4.5
#[test]
fn stats_tells_of_all_processes_behind_what_the_original_tells() {
    for (owners, frontends) in SHAPES {
        let server = serve((owners, frontends), &[]);
        let mut peers: Vec<Peer> = (0..12).map(|_| Peer::of(&server)).collect();
        for (peer, tube) in peers.iter_mut().zip(TUBES.iter().cycle()) {
            assert_eq!(peer.ask(&format!("use {tube}")), format!("USING {tube}"));
            id(&peer.put(b"x"));
        }
        let links = (owners * frontends).to_string();
        // A link may be on its way.
        let are_up = wait_until(START_LIMIT, || peers[0].stat("links-up") == links);
        assert!(are_up, "{}", server.output());
        let run = peers[0].stat("id");
        for peer in &mut peers {
            let mut row = |key| peer.stat(key);
            assert_eq!(row("pid"), server.pid().to_string());
            assert_eq!(row("id"), run);
            assert_eq!(row("mode"), "sharded");
            assert_eq!(row("owners"), owners.to_string());
            assert_eq!(row("frontends"), frontends.to_string());
            assert_eq!(row("links-down"), "0");
            assert_eq!(row("refused-frames"), "0");
            assert_eq!(row("current-connections"), "12");
            assert_eq!(row("total-connections"), "12");
            assert_eq!(row("current-producers"), "12");
            assert_eq!(row("cmd-put"), "12");
            assert_eq!(row("total-jobs"), "12");
            assert_eq!(row("binlog-current-index"), "0");
        }
        for index in 0..owners {
            let here = |tube: &&&str| u16::from(owner(owners.into(), tube)) == index;
            let jobs = 4 * TUBES.iter().filter(here).count();
            let key = format!("owner-{index}-current-jobs");
            assert_eq!(peers[0].stat(&key), jobs.to_string(), "{owners} owners");
        }
    }
}

// S4.5
#[test]
fn keys_of_the_sharded_mode_come_last() {
    let server = serve((2, 1), &[]);
    let mut peer = Peer::of(&server);
    let line = peer.ask("stats");
    let data = peer.body(id(&line) as usize);
    let data = String::from_utf8(data).expect("statistics are ASCII");
    let keys: Vec<&str> = data
        .lines()
        .filter_map(|row| row.split(": ").next())
        .collect();
    let own = keys.iter().position(|&key| key == "platform");
    let own = own.expect("the last of the original's keys") + 1;
    let expected = [
        "mode",
        "owners",
        "frontends",
        "links-up",
        "links-down",
        "refused-frames",
        "owner-0-current-jobs",
        "owner-0-binlog-oldest-index",
        "owner-0-binlog-current-index",
        "owner-1-current-jobs",
        "owner-1-binlog-oldest-index",
        "owner-1-binlog-current-index",
    ];
    assert_eq!(keys[own..], expected);
}

// R3.5, C4.1
#[test]
fn a_pipelined_producer_is_answered_in_order_with_ids_that_grow() {
    const JOBS: usize = 2_000;
    for shape in SHAPES {
        let server = serve(shape, &[]);
        let mut producer = Peer::of(&server);
        for tube in TUBES {
            producer.send(format!("use {tube}\r\n"));
            producer.send(put(tube.as_bytes()).repeat(JOBS));
        }
        let mut inserted = Vec::new();
        for tube in TUBES {
            assert_eq!(producer.line(), format!("USING {tube}"));
            let ids: Vec<u64> = (0..JOBS).map(|_| id(&producer.line())).collect();
            assert!(ids.is_sorted_by(|a, b| a < b), "{shape:?}: {ids:?}");
            inserted.extend(ids);
        }
        // Nothing is lost, and what was put first is handed out first, over all owners.
        let mut worker = worker(&server);
        let reserved: Vec<u64> = (0..inserted.len())
            .map(|_| reserve(&mut worker, 0).expect("a job is left"))
            .collect();
        assert_eq!(reserved, inserted, "{shape:?}");
    }
}

// A4.6, R3.7
#[test]
fn many_workers_over_all_owners_get_each_job_once_though_some_of_them_go() {
    const WORKERS: usize = 6;
    const JOBS: usize = 400;
    for shape in SHAPES {
        let server = serve(shape, &[]);
        let (inserted, done) = thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|number| {
                    let server = &server;
                    scope.spawn(move || work(server, number))
                })
                .collect();
            let producers = TUBES.map(|tube| {
                let server = &server;
                scope.spawn(move || produce(server, tube, JOBS))
            });
            let inserted = producers.map(|producer| producer.join().expect("it goes well"));
            let done: Vec<_> = workers
                .into_iter()
                .map(|worker| worker.join().expect("it goes well"))
                .collect();
            (inserted.concat(), done.concat())
        });
        let unique: BTreeSet<u64> = done.iter().copied().collect();
        assert_eq!(unique.len(), done.len(), "{shape:?}: a job was done twice");
        assert_eq!(
            unique,
            inserted.into_iter().collect(),
            "{shape:?}: not all jobs were done"
        );
        let mut peer = Peer::of(&server);
        assert_eq!(peer.stat("current-jobs-reserved"), "0");
        assert_eq!(peer.stat("current-jobs-ready"), "0");
    }
}

fn produce(server: &Server, tube: &str, jobs: usize) -> Vec<u64> {
    let mut producer = Peer::of(server);
    producer.ask(&format!("use {tube}"));
    (0..jobs).map(|_| id(&producer.put(b"x"))).collect()
}

/// Deletes jobs until no more come. Every tenth job is kept by a client that goes.
fn work(server: &Server, number: usize) -> Vec<u64> {
    let mut done = Vec::new();
    let mut peer = worker(server);
    let mut count = number;
    while let Some(job) = reserve(&mut peer, 2) {
        count += 1;
        if count.is_multiple_of(10) {
            peer = worker(server);
            continue;
        }
        assert_eq!(peer.ask(&format!("delete {job}")), "DELETED");
        done.push(job);
    }
    done
}

// A4.6, C4.3
#[test]
fn of_a_delete_and_a_reserve_one_gets_the_job() {
    for shape in SHAPES {
        let server = serve(shape, &[]);
        let mut deleter = Peer::of(&server);
        let mut worker = worker(&server);
        for round in 0..300 {
            let tube = TUBES[round % TUBES.len()];
            assert_eq!(deleter.ask(&format!("use {tube}")), format!("USING {tube}"));
            let job = id(&deleter.put(b"x"));
            worker.send("reserve-with-timeout 0\r\n");
            deleter.send(format!("delete {job}\r\n"));
            let deleted = deleter.line();
            match worker.line().as_str() {
                "TIMED_OUT" => assert_eq!(deleted, "DELETED", "{shape:?} {round}"),
                line => {
                    assert_eq!(line, format!("RESERVED {job} 1"));
                    worker.body(1);
                    assert_eq!(deleted, "NOT_FOUND", "{shape:?} {round}");
                    assert_eq!(worker.ask(&format!("delete {job}")), "DELETED");
                }
            }
        }
    }
}
