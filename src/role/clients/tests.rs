//! Sockets whose sessions ask a shard that answers when it is told to.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::*;
use crate::base::body::Body;
use crate::base::hash::NameHasher;
use crate::base::ids::{Caller, JobId, Seq, ShardId, ShardSet};
use crate::engine::event::Event;
use crate::engine::host::Outbox;
use crate::engine::op::Op;
use crate::session::shards::{Reach, ShardMap};
use crate::session::table::{MultiWatch, Settings};
use crate::sys::process::Usage;

const FIRST_KEY: usize = 3;
const SHARD: ShardId = ShardId(0);

/// A shard of another process.
struct Far {
    reach: Reach,
    asked: Vec<Caller>,
    /// What was asked, in words.
    told: Vec<String>,
}

impl Shards for Far {
    fn attach(&mut self, _: ShardId, _: SessionId) {}

    fn reach(&self, _: ShardSet) -> Reach {
        self.reach
    }

    fn submit(&mut self, _: Nanos, _: ShardId, from: Caller, op: Op<'_>, _: &mut impl Outbox) {
        if from.seq != Seq::NONE {
            self.asked.push(from);
            self.told.push(format!("{op:?}"));
        }
    }

    fn detach(&mut self, _: Nanos, _: ShardId, _: SessionId, _: &mut impl Outbox) {
        self.told.push("detach".to_owned());
    }

    fn flush(&mut self) -> Ticket {
        Ticket(0)
    }

    fn take_id(&mut self, _: ShardId, _: SessionId) -> Option<JobId> {
        None
    }
}

struct Rig {
    clients: Clients<Far>,
    poller: Poller,
    now: Nanos,
}

impl Rig {
    fn new() -> Rig {
        let far = Far {
            reach: Reach::Now,
            asked: Vec::new(),
            told: Vec::new(),
        };
        let settings = Settings {
            map: ShardMap::new(1),
            frontend: 0,
            body_len_max: 1 << 20,
            hasher: NameHasher::new([1, 2]),
            traced: false,
            owner_wait: 1_000,
            multi_watch: MultiWatch::Serve,
        };
        let facts = ProcessFacts {
            pid: 1,
            started_at: Nanos(0),
            is_draining: false,
            run_id: "a".to_owned(),
            machine: process::machine().unwrap(),
            version: "1",
            body_len_max: 1 << 20,
            binlog_size_max: 0,
        };
        Rig {
            clients: Clients::new(
                Sessions::new(far, settings),
                facts,
                FIRST_KEY,
                Tracer::new(0),
            ),
            poller: Poller::new().unwrap(),
            now: Nanos(1 << 40),
        }
    }

    fn accept(&mut self, stream: impl Into<OwnedFd>) {
        let stream = Stream::try_from(stream.into()).unwrap();
        self.clients.open(self.now, stream, &self.poller);
    }

    fn unix(&mut self) -> UnixStream {
        let (near, far) = UnixStream::pair().unwrap();
        self.accept(far);
        near
    }

    fn tcp(&mut self) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        self.accept(listener.accept().unwrap().0);
        near
    }

    /// One turn, without waiting. Says how much was ready.
    fn turn(&mut self) -> usize {
        let mut ready = Vec::new();
        self.poller.wait(Some(0), &mut ready).unwrap();
        for &ready in &ready {
            self.clients.on_ready(self.now, ready, &self.poller);
        }
        self.clients.finish_turn(self.now, &self.poller);
        self.clients.sessions.check_invariants();
        ready.len()
    }

    /// Turns until nothing more happens. There has to be an end.
    fn settle(&mut self) {
        for _ in 0..100 {
            let ready = self.turn();
            if ready == 0 && !self.clients.has_work() {
                return;
            }
        }
        panic!("the loop does not come to rest");
    }

    /// Answers the ask that is not answered and came first.
    fn answer(&mut self, event: Event<'_>) {
        let to = self.clients.sessions.shards.asked.remove(0);
        self.clients.sessions.hear(self.now, SHARD, to, event);
        self.settle();
    }

    fn reach(&mut self, reach: Reach) {
        self.clients.sessions.shards.reach = reach;
    }

    fn resume(&mut self, count: usize) {
        self.reach(Reach::Now);
        self.clients.sessions.resume(self.now, SHARD, count);
        self.settle();
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.clients.sessions.shards.told)
    }

    fn is_empty(&self) -> bool {
        self.clients.sessions.is_empty() && self.clients.conns.is_empty()
    }
}

const KICKED: Event<'_> = Event::Kicked { count: 1 };

/// Longest wait of a test for what is to come over a socket.
const SOON: std::time::Duration = std::time::Duration::from_secs(10);

// R3.4
#[test]
fn what_a_client_sent_before_it_went_is_obeyed_and_the_loop_rests_meanwhile() {
    let mut rig = Rig::new();
    let mut client = rig.unix();
    client.write_all(b"kick 1\r\nstats\r\nkick 2\r\n").unwrap();
    rig.settle();
    drop(client);
    rig.settle();
    assert_eq!(rig.turn(), 0, "nothing is reported for ever");
    assert_eq!(rig.told(), ["Kick { count: 1 }"]);
    rig.answer(KICKED);
    assert_eq!(rig.told(), ["Stats"]);
    rig.answer(Event::ShardStats(
        crate::engine::stats::ShardStats::default(),
    ));
    assert_eq!(rig.told(), ["Kick { count: 2 }"]);
    assert!(!rig.is_empty());
    rig.answer(KICKED);
    assert_eq!(rig.told(), ["detach"]);
    assert!(rig.is_empty());
}

#[test]
fn a_client_that_went_while_its_command_waits_for_its_shard_is_obeyed() {
    let mut rig = Rig::new();
    let mut client = rig.unix();
    rig.reach(Reach::Full(SHARD));
    client.write_all(b"kick 1\r\nkick 2\r\n").unwrap();
    rig.settle();
    drop(client);
    rig.settle();
    assert_eq!(rig.turn(), 0);
    rig.resume(9);
    assert_eq!(rig.told(), ["Kick { count: 1 }", "Kick { count: 2 }"]);
    rig.answer(KICKED);
    rig.answer(KICKED);
    assert!(rig.is_empty());
}

// R3.4
#[test]
fn who_is_gone_and_has_sent_more_than_is_read_ahead_does_not_keep_the_loop_busy() {
    let mut rig = Rig::new();
    let mut client = rig.unix();
    rig.reach(Reach::Full(SHARD));
    let count = 3 * READ_AHEAD_BYTES_MAX / 8;
    client.set_nonblocking(true).unwrap();
    let sent = client.write(&b"kick 1\r\n".repeat(count)).unwrap();
    assert!(sent > READ_AHEAD_BYTES_MAX + READ_BYTES_MAX);
    rig.settle();
    drop(client);
    rig.settle();
    assert_eq!(rig.turn(), 0);
    rig.resume(1);
    let mut obeyed = 0;
    while !rig.clients.sessions.shards.asked.is_empty() {
        rig.answer(KICKED);
        obeyed += 1;
    }
    assert_eq!(obeyed, sent / 8, "all that was sent is read in the end");
    assert!(rig.is_empty());
}

#[test]
fn a_client_that_sends_nothing_more_is_answered_when_its_shard_can_be_asked() {
    let mut rig = Rig::new();
    let mut client = rig.tcp();
    rig.reach(Reach::Full(SHARD));
    client.write_all(b"kick 1\r\nlist-tube-used\r\n").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    client.set_read_timeout(Some(SOON)).unwrap();
    rig.settle();
    assert!(!rig.is_empty());
    rig.resume(1);
    rig.answer(KICKED);
    let mut got = String::new();
    client.read_to_string(&mut got).unwrap();
    assert_eq!(got, "KICKED 1\r\nUSING default\r\n");
    assert!(rig.is_empty());
}

#[test]
fn a_client_that_does_not_read_goes_on_when_it_reads_though_it_was_called_before() {
    let mut rig = Rig::new();
    let mut client = rig.unix();
    let body = Body::copy_of(&vec![b'x'; 4 << 20]);
    client.write_all(b"peek 1\r\nkick 1\r\n").unwrap();
    rig.settle();
    rig.reach(Reach::Full(SHARD));
    client.write_all(b"kick 2\r\n").unwrap();
    rig.settle();
    rig.answer(Event::Found {
        id: JobId(1),
        body: body.clone().into(),
    });
    rig.resume(1);
    rig.told();
    client.set_nonblocking(true).unwrap();
    let mut got = vec![0; 1 << 20];
    while client.read(&mut got).is_ok() {
        rig.settle();
    }
    assert_eq!(rig.told(), ["Kick { count: 2 }"]);
    assert_eq!(rig.clients.sessions.shards.asked.len(), 2);
}

// C4.6
#[test]
fn a_lost_session_is_sent_what_it_is_owed_and_closed() {
    let mut rig = Rig::new();
    let mut client = rig.unix();
    client
        .write_all(b"list-tube-used\r\nkick 1\r\nlist-tube-used\r\n")
        .unwrap();
    rig.turn();
    rig.reach(Reach::Down(SHARD));
    rig.clients.sessions.lose(rig.now, SHARD);
    rig.settle();
    let mut got = String::new();
    client.read_to_string(&mut got).unwrap();
    assert_eq!(got, "USING default\r\n");
    assert!(rig.is_empty());
}

// C4.6
#[test]
fn a_lost_session_whose_client_does_not_read_is_closed() {
    let mut rig = Rig::new();
    let mut client = rig.unix();
    let body = Body::copy_of(&vec![b'x'; 4 << 20]);
    client.write_all(b"peek 1\r\nkick 1\r\n").unwrap();
    rig.settle();
    rig.answer(Event::Found {
        id: JobId(1),
        body: body.clone().into(),
    });
    assert!(!rig.is_empty());
    rig.reach(Reach::Down(SHARD));
    rig.clients.sessions.lose(rig.now, SHARD);
    rig.settle();
    assert!(rig.is_empty());
    assert_eq!(body.holders(), 1);
}

#[test]
fn stats_of_a_server_of_several_processes_are_answered_from_outside() {
    let mut rig = Rig::new();
    rig.clients.has_fleet = true;
    let mut client = rig.unix();
    client.write_all(b"stats\r\n").unwrap();
    rig.settle();
    rig.answer(Event::ShardStats(
        crate::engine::stats::ShardStats::default(),
    ));
    let mut due = Vec::new();
    rig.clients.take_stats_due(&mut due);
    assert_eq!(due.len(), 1);
    let fleet = Fleet::default();
    let now = rig.now;
    rig.clients
        .answer_stats(&due, &fleet, |facts| ProcessStats {
            pid: 77,
            ..facts.stats(now, Usage::default())
        });
    rig.settle();
    let mut got = vec![0; 10_000];
    let len = client.read(&mut got).unwrap();
    let got = String::from_utf8_lossy(&got[..len]);
    assert!(got.contains("\npid: 77\n") && got.contains("\nmode: sharded\n"));
}

/// What has come over the socket by now.
fn come(client: &mut UnixStream) -> String {
    client.set_nonblocking(true).unwrap();
    let mut bytes = [0; 200];
    let len = client.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

#[test]
fn replies_are_kept_a_moment_for_those_that_follow() {
    let mut rig = Rig::new();
    rig.clients = rig.clients.with_fleet();
    let mut client = rig.unix();
    let commands = b"kick 1\r\nuse a\r\nkick 2\r\n";
    client.write_all(commands).unwrap();
    rig.settle();
    assert_eq!(rig.clients.moment(), None, "nothing is there to be kept");
    rig.answer(KICKED);
    assert_eq!(
        come(&mut client),
        "",
        "the use is under way, and a kick follows"
    );
    let until = Nanos(rig.now.0 + REPLIES_KEPT_NANOS);
    assert_eq!(rig.clients.moment(), Some(until));
    rig.answer(Event::Using);
    assert_eq!(
        come(&mut client),
        "KICKED 1\r\nUSING a\r\n",
        "the last is under way"
    );
    rig.answer(KICKED);
    assert_eq!(come(&mut client), "KICKED 1\r\n");

    rig.now.0 += 1;
    client.write_all(commands).unwrap();
    rig.settle();
    rig.answer(KICKED);
    rig.now = until;
    rig.settle();
    assert_eq!(come(&mut client), "", "this moment was another's");
    rig.now.0 += 1;
    rig.settle();
    assert_eq!(come(&mut client), "KICKED 1\r\n", "nobody waits for long");
    assert_eq!(rig.clients.moment(), None);

    rig.answer(Event::Using);
    rig.answer(KICKED);
    assert_eq!(come(&mut client), "USING a\r\nKICKED 1\r\n");
    client.write_all(b"use b\r\nreserve\r\nuse a\r\n").unwrap();
    rig.settle();
    rig.answer(Event::Using);
    assert_eq!(come(&mut client), "");
    rig.answer(Event::NoJob);
    assert_eq!(come(&mut client), "USING b\r\n", "it may be a long wait");
}

#[test]
fn what_is_kept_is_written_when_the_process_ends() {
    let mut rig = Rig::new();
    rig.clients = rig.clients.with_fleet();
    let mut client = rig.unix();
    client.write_all(b"kick 1\r\nuse a\r\nkick 2\r\n").unwrap();
    rig.settle();
    rig.answer(KICKED);
    assert_eq!(come(&mut client), "");
    rig.clients.write_kept(rig.now, &rig.poller);
    assert_eq!(come(&mut client), "KICKED 1\r\n");
}
