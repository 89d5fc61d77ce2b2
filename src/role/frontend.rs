//! A frontend: the process that has some of the client connections. It has no jobs; it asks owners
//! over links, in the name of its clients' sessions.

use std::error::Error as _;
use std::os::fd::{AsFd, OwnedFd};

use crate::base::ids::{Generation, ShardId, ShardSet};
use crate::base::limits::GATHER_SECS_MAX;
use crate::base::time::{Nanos, Secs};
use crate::channel::remote::{self, RemoteShards};
use crate::cli::VERSION;
use crate::net::listener::Listener;
use crate::role::acceptor::Acceptor;
use crate::role::clients::Clients;
use crate::role::control::ControlSocket;
use crate::role::error::RoleError;
use crate::role::links::{Links, Lost, terms};
use crate::role::memory::Memory;
use crate::role::process::{ProcessFacts, draw_hasher};
use crate::role::tally::{Tally, counts, refused};
use crate::role::trace::Tracer;
use crate::role::uplink::Uplink;
use crate::session::shards::ShardMap;
use crate::session::stats::{Fleet, StatsDue};
use crate::session::table::{self, MultiWatch, Sessions};
use crate::sys::clock;
use crate::sys::poller::{Interest, Poller, Ready};
use crate::sys::process;
use crate::wire::control::Control;
use crate::wire::setup::{LinkLost, Peer, Setup};

/// See the module's description.
struct Frontend {
    setup: Setup,
    poller: Poller,
    acceptor: Acceptor,
    uplink: Uplink,
    clients: Clients<RemoteShards>,
    /// By the index of the owner.
    links: Links,
    /// With whom the links are, as far as there are any.
    peers: Vec<Option<Generation>>,
    query: Option<Query>,
    /// Number of the latest question.
    last_query: u64,
    memory: Memory,
    /// When memory is to be looked at again.
    memory_moment: Option<Nanos>,
}

const LISTENER_KEY: usize = 0;
const UPLINK_KEY: usize = 1;
const FIRST_LINK_KEY: usize = 2;
const FIRST_CONN_KEY: usize = FIRST_LINK_KEY + ShardSet::SHARDS_MAX;

/// The target of this module's log lines.
const LOG: &str = "frontend";

/// Serves clients until the supervisor says that it is over, or is gone.
///
/// # Errors
/// Whatever stops the start, and what cannot be gone on from later.
pub fn serve(setup: Setup, control: ControlSocket, listener: Listener) -> Result<(), RoleError> {
    Frontend::start(setup, control, listener)?.run()
}

impl Frontend {
    fn start(
        setup: Setup,
        control: ControlSocket,
        listener: Listener,
    ) -> Result<Frontend, RoleError> {
        let tracer = Tracer::new(setup.verbose);
        let map = ShardMap::new(setup.owners.into());
        let settings = table::Settings {
            map,
            frontend: setup.index,
            body_len_max: setup.body_len_max,
            hasher: draw_hasher()?,
            traced: tracer.wants_commands(),
            owner_wait: u64::from(setup.owner_wait_ms) * NANOS_PER_MILLI,
            multi_watch: if setup.rejects_multi_watch {
                MultiWatch::Reject
            } else {
                MultiWatch::Serve
            },
        };
        let facts = ProcessFacts {
            pid: setup.supervisor_pid,
            started_at: setup.started_at,
            is_draining: setup.is_draining,
            run_id: setup.run.to_string(),
            machine: process::machine()?,
            version: VERSION,
            body_len_max: setup.body_len_max,
            binlog_size_max: setup.binlog_size_max,
        };
        let poller = Poller::new().map_err(|source| RoleError::Poller { source })?;
        let watch = |fd, key| poller.watch(fd, key, Interest::READ);
        watch(listener.as_fd(), LISTENER_KEY)
            .map_err(|source| RoleError::WatchListener { source })?;
        let uplink = Uplink::new(control, UPLINK_KEY, &poller)
            .map_err(|source| RoleError::WatchControl { source })?;
        let sessions = Sessions::new(RemoteShards::new(map), settings);
        Ok(Frontend {
            poller,
            acceptor: Acceptor::new(listener, LISTENER_KEY),
            uplink,
            clients: Clients::new(sessions, facts, FIRST_CONN_KEY, tracer).with_fleet(),
            links: Links::new(setup.owners.into(), FIRST_LINK_KEY),
            peers: vec![None; setup.owners.into()],
            query: None,
            last_query: 0,
            memory: Memory::default(),
            memory_moment: None,
            setup,
        })
    }

    fn run(mut self) -> Result<(), RoleError> {
        self.uplink.tell(&Control::Ready)?;
        // Something may have come with the setup.
        let mut is_last = self.on_uplink(clock::monotonic())?;
        let mut ready = Vec::new();
        while !is_last {
            self.uplink.flush(&self.poller)?;
            let timeout = self.next_timeout(clock::monotonic());
            self.poller
                .wait(timeout, &mut ready)
                .map_err(|source| RoleError::Wait { source })?;
            is_last = self.turn(clock::monotonic(), &ready)?;
        }
        self.clients.write_kept(clock::monotonic(), &self.poller);
        Ok(())
    }

    /// One turn, all of which happens at the same moment: what is due, then what is ready, then
    /// the asks, the answers, and the asks that follow. Whether it was the last.
    fn turn(&mut self, now: Nanos, ready: &[Ready]) -> Result<bool, RoleError> {
        self.clients.sessions.tick(now);
        let mut is_last = false;
        for &ready in ready {
            match ready.key {
                LISTENER_KEY => self.accept(now),
                UPLINK_KEY => is_last = self.on_uplink(now)?,
                key if key < FIRST_CONN_KEY => self.on_link(now, ready),
                _ => self.clients.on_ready(now, ready, &self.poller),
            }
        }
        // Owners work while clients are written to.
        self.write_links(now);
        self.clients.finish_turn(now, &self.poller);
        self.write_links(now);
        self.ask_counts(now)?;
        let has_closed = self.clients.take_closed_count() > 0;
        self.acceptor.resume(now, has_closed, &self.poller);
        self.memory_moment = self.memory.look(now, self.clients.bytes());
        Ok(is_last)
    }
}

/// Peers and clients.
impl Frontend {
    fn accept(&mut self, now: Nanos) {
        let Frontend {
            acceptor,
            clients,
            poller,
            ..
        } = self;
        acceptor.accept(now, poller, |stream| clients.open(now, stream, poller));
    }

    /// Whether the supervisor wants this process to end.
    fn on_uplink(&mut self, now: Nanos) -> Result<bool, RoleError> {
        let is_open = self.uplink.read()?;
        while let Some((control, fd)) = self.uplink.next()? {
            match (control, fd) {
                (Control::Link(peer), Some(fd)) => self.connect(now, peer, fd),
                (Control::Ping(number), _) => self.uplink.tell(&Control::Pong(number))?,
                (Control::Drain, _) => self.clients.facts.is_draining = true,
                (Control::AskCounts(asked), _) => {
                    let row = self.tally().numbers();
                    self.uplink.tell(&counts(&self.setup, asked, &row))?;
                }
                (Control::Counts(counts), _) => {
                    let asked = counts.asked;
                    let row: Vec<u64> = counts.numbers.iter().collect();
                    self.answer_stats(now, asked, Tally::read(&row));
                }
                (Control::Goodbye(_), _) => return Ok(true),
                (control, _) => {
                    let kind = control.kind();
                    return Err(RoleError::Told { kind });
                }
            }
        }
        Ok(!is_open)
    }

    fn connect(&mut self, now: Nanos, peer: Peer, fd: OwnedFd) {
        let index = usize::from(peer.index);
        if index >= self.peers.len() {
            return;
        }
        self.close(now, index);
        if let Err(error) = self.links.open(index, fd, &self.poller) {
            log::error!(target: LOG, "cannot open link error={error}");
            return self.tell_lost(index, peer.generation);
        }
        self.peers[index] = Some(peer.generation);
        let (sessions, terms) = (&mut self.clients.sessions, terms(&self.setup, peer));
        remote::connect(sessions, now, shard(index), &terms);
    }

    fn on_link(&mut self, now: Nanos, ready: Ready) {
        let Some(index) = self.links.index_of(ready.key) else {
            return;
        };
        let sessions = &mut self.clients.sessions;
        let expected = sessions.shards.end(shard(index)).expected().copied();
        let Some(expected) = expected.filter(|_| ready.readable) else {
            return;
        };
        let read = self.links.read(index, &expected, |frame| {
            remote::hear(sessions, now, shard(index), frame).map(|()| true)
        });
        if let Err(lost) = read {
            self.lose(now, index, lost);
        }
    }

    fn write_links(&mut self, now: Nanos) {
        for index in 0..self.peers.len() {
            if let Err(lost) = self.write(index) {
                self.lose(now, index, lost);
            }
        }
    }

    fn write(&mut self, index: usize) -> Result<(), Lost> {
        let end = self.clients.sessions.shards.end(shard(index));
        self.links
            .write(index, &self.poller, |out, room| end.write(out, room))
    }

    /// The link to this owner is given up. The supervisor may know of another.
    fn lose(&mut self, now: Nanos, index: usize, lost: Lost) {
        log::info!(
            target: LOG,
            "link ended role=owner index={index} why={lost} cause={:?}",
            lost.source(),
        );
        if let Lost::Refused(refusal) = lost {
            let end = self.clients.sessions.shards.end(shard(index));
            end.part(Some(refusal));
            // It may be too late for it to hear.
            let _ = self.write(index);
        }
        if let Some(generation) = self.peers[index] {
            self.tell_lost(index, generation);
        }
        self.close(now, index);
    }

    /// Tells the supervisor that there is no link to this start of the owner.
    fn tell_lost(&mut self, index: usize, generation: Generation) {
        let index = index as u16;
        let lost = Control::LinkLost(LinkLost { index, generation });
        if let Err(error) = self.uplink.tell(&lost) {
            log::error!(target: LOG, "cannot tell the supervisor error={error}");
        }
    }

    fn close(&mut self, now: Nanos, index: usize) {
        self.links.close(index, &self.poller);
        self.peers[index] = None;
        remote::lose(&mut self.clients.sessions, now, shard(index));
    }

    /// Nanoseconds until something is due. None if nothing is.
    fn next_timeout(&self, now: Nanos) -> Option<u64> {
        if self.clients.has_work() {
            return Some(0);
        }
        let moments = [
            self.clients.sessions.next_moment(),
            self.clients.moment(),
            self.acceptor.moment(),
            self.memory_moment,
            self.query.as_ref().map(Query::end),
        ];
        let first = moments.into_iter().flatten().min();
        first.map(|moment| moment.since(now))
    }
}

/// Statistics of all processes.
impl Frontend {
    /// Asks for what the other processes count, if a client wants to know. One question is under
    /// way at a time; who asks meanwhile gets the answer to the next.
    fn ask_counts(&mut self, now: Nanos) -> Result<(), RoleError> {
        if self.query.as_ref().is_some_and(|query| query.end() <= now) {
            // Its clients have been told so.
            self.query = None;
        }
        if self.query.is_some() || !self.clients.sessions.is_stats_due() {
            return Ok(());
        }
        let mut due = Vec::new();
        self.clients.take_stats_due(&mut due);
        self.last_query += 1;
        let number = self.last_query;
        self.query = Some(Query {
            number,
            since: now,
            due,
        });
        Ok(self.uplink.tell(&Control::AskCounts(number))?)
    }

    fn answer_stats(&mut self, now: Nanos, asked: u64, others: Option<Tally>) {
        let Some(query) = self.query.take_if(|query| query.number == asked) else {
            return;
        };
        let Some(others) = others else {
            return log::error!(target: LOG, "the supervisor tells other numbers");
        };
        let own = self.tally();
        let fleet = Fleet {
            counts: others.counts,
            owners: self.setup.owners,
            frontends: self.setup.frontends,
            links_up: own.links_up + others.links_up,
            links_down: own.links_down + others.links_down,
            refused_frames: own.refused_frames + others.refused_frames,
        };
        let usage = own.usage.plus(others.usage);
        self.clients
            .answer_stats(&query.due, &fleet, |facts| facts.stats(now, usage));
    }

    fn tally(&self) -> Tally {
        let sessions = &self.clients.sessions;
        let links_up = sessions.shards.up_count() as u64;
        Tally {
            usage: process::usage(),
            links_up,
            links_down: u64::from(self.setup.owners) - links_up,
            refused_frames: refused(sessions.shards.refusals()),
            counts: sessions.counts().clone(),
        }
    }
}

/// A question for the counts of the other processes that is under way.
struct Query {
    number: u64,
    since: Nanos,
    due: Vec<StatsDue>,
}

impl Query {
    /// When nobody waits for its answer any more.
    fn end(&self) -> Nanos {
        self.since.after(Secs(GATHER_SECS_MAX))
    }
}

fn shard(index: usize) -> ShardId {
    ShardId(index as u8)
}

const NANOS_PER_MILLI: u64 = 1_000_000;
