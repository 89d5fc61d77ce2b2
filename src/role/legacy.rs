//! The drop-in: one process, one loop, one shard. Everything in it is used elsewhere too.

use std::error::Error as _;
use std::os::fd::AsFd;

use crate::base::ids::ShardId;
use crate::base::time::Nanos;
use crate::cli::{Config, VERSION};
use crate::engine::host::NoJournal;
use crate::engine::{Engine, IdScheme, Settings};
use crate::net::listener::Listener;
use crate::role::acceptor::Acceptor;
use crate::role::binlog;
use crate::role::clients::Clients;
use crate::role::error::RoleError;
use crate::role::memory::Memory;
use crate::role::process::{
    ProcessFacts, announce_ready, announce_stopping, draw_hasher, draw_run_id,
};
use crate::role::shard::Shard;
use crate::role::trace::Tracer;
use crate::session::shards::ShardMap;
use crate::session::table::{self, MultiWatch, Sessions};
use crate::sys::clock;
use crate::sys::poller::{Interest, Poller, Ready};
use crate::sys::process;
use crate::sys::signal::Signals;
use crate::wal::journal;
use crate::wal::record::WallNanos;
use crate::wal::shard_journal::ShardJournal;
use crate::wal::topology;
use crate::wal::v7::V7;

/// See the module's description.
pub struct Legacy<J> {
    poller: Poller,
    acceptor: Acceptor,
    signals: Signals,
    clients: Clients<Shard<J>>,
    memory: Memory,
    /// When memory is to be looked at again.
    memory_moment: Option<Nanos>,
}

const LISTENER_KEY: usize = 0;
const SIGNALS_KEY: usize = 1;
const WAL_KEY: usize = 2;
const FIRST_CONN_KEY: usize = 3;

/// The target of this module's log lines.
const LOG: &str = "legacy";

/// The only shard there is.
const SHARD: ShardId = ShardId(0);

/// Serves as `config` says until a signal asks to stop.
///
/// # Errors
/// Whatever stops the start, and what cannot be gone on from later.
pub fn serve(config: &Config) -> Result<(), RoleError> {
    match &config.binlog_dir {
        None => Legacy::start(config, |engine| Ok(Shard::new(engine, NoJournal)))?.run(),
        Some(dir) => Legacy::start(config, |engine| {
            topology::refuse_sharded(dir)?;
            let settings = journal::Settings {
                file_len: config.binlog_file_len,
                sync: binlog::sync_of(config.binlog_sync.millis()),
            };
            binlog::recover(engine, dir, V7, settings)
        })?
        .run(),
    }
}

impl<J: ShardJournal> Legacy<J> {
    /// Does all that can fail before the first client is served, in the original's order.
    fn start(
        config: &Config,
        recover: impl FnOnce(Engine) -> Result<Shard<J>, RoleError>,
    ) -> Result<Legacy<J>, RoleError> {
        let tracer = Tracer::new(config.verbose);
        tracer.started(process::pid());
        if let Err(error) = process::raise_descriptor_limit() {
            log::warn!(target: LOG, "{error} cause={:?}", error.source());
        }
        let listener = Listener::open(&config.listen)?;
        tracer.bound(&listener);
        let facts = ProcessFacts {
            pid: process::pid(),
            started_at: clock::monotonic(),
            is_draining: false,
            run_id: draw_run_id()?.to_string(),
            machine: process::machine()?,
            version: VERSION,
            body_len_max: config.body_len_max,
            binlog_size_max: config.binlog_file_len,
        };
        if let Some(user) = &config.user {
            process::drop_privileges(user)?;
        }
        let signals = Signals::new()?;
        let shard = recover(Engine::new(Settings {
            ids: IdScheme::Plain,
            hasher: draw_hasher()?,
            has_default: true,
        }))?;
        let settings = table::Settings {
            map: ShardMap::new(1),
            body_len_max: config.body_len_max,
            hasher: draw_hasher()?,
            traced: tracer.wants_commands(),
            // What several processes need: a lone shard is always in reach.
            frontend: 0,
            owner_wait: 0,
            multi_watch: MultiWatch::Serve,
        };
        let sessions = Sessions::new(shard, settings);
        let poller = Poller::new().map_err(|source| RoleError::Poller { source })?;
        let watch = |fd, key| poller.watch(fd, key, Interest::READ);
        watch(listener.as_fd(), LISTENER_KEY)
            .map_err(|source| RoleError::WatchListener { source })?;
        watch(signals.as_fd(), SIGNALS_KEY).map_err(|source| RoleError::WatchSignals { source })?;
        if let Some(wake) = sessions.shards.wake_fd() {
            watch(wake, WAL_KEY).map_err(|source| RoleError::WatchWal { source })?;
        }
        log::info!(
            target: LOG,
            "ready address={} version={VERSION} pid={}",
            listener.local_address(),
            process::pid(),
        );
        Ok(Legacy {
            poller,
            acceptor: Acceptor::new(listener, LISTENER_KEY),
            signals,
            clients: Clients::new(sessions, facts, FIRST_CONN_KEY, tracer),
            memory: Memory::default(),
            memory_moment: None,
        })
    }

    /// Serves until a signal asks to stop, or until what nothing can be served without has failed.
    fn run(mut self) -> Result<(), RoleError> {
        announce_ready();
        let mut ready = Vec::new();
        loop {
            let timeout = self.next_timeout(clock::monotonic());
            self.poller
                .wait(timeout, &mut ready)
                .map_err(|source| RoleError::Wait { source })?;
            let turn = self.turn(clock::monotonic(), &ready);
            if let Some(failure) = self.clients.sessions.shards.take_failure() {
                return Err(failure.into());
            }
            if turn == Turn::Last {
                break;
            }
        }
        announce_stopping();
        // What was done and waits for the disk is still answered.
        self.clients.sessions.shards.settle();
        self.clients.finish_turn(clock::monotonic(), &self.poller);
        self.clients.sessions.shards.close();
        if let Some(failure) = self.clients.sessions.shards.take_failure() {
            return Err(failure.into());
        }
        log::info!(target: LOG, "stopped pid={}", process::pid());
        Ok(())
    }

    /// One turn, all of which happens at the same moment: what is due, then what is ready, then
    /// the answers.
    fn turn(&mut self, now: Nanos, ready: &[Ready]) -> Turn {
        let sessions = &mut self.clients.sessions;
        sessions.shards.begin_turn(now, WallNanos(clock::wall()));
        sessions.tick_shard(now, SHARD, |shard, outbox| shard.tick(now, outbox));
        sessions.tick(now);
        let mut turn = Turn::Next;
        for &ready in ready {
            match ready.key {
                LISTENER_KEY => self.accept(now),
                SIGNALS_KEY => turn = self.on_signal(),
                // What there is to be done is done at the end of every turn.
                WAL_KEY => {}
                _ => self.clients.on_ready(now, ready, &self.poller),
            }
        }
        self.clients.finish_turn(now, &self.poller);
        let has_closed = self.clients.take_closed_count() > 0;
        self.acceptor.resume(now, has_closed, &self.poller);
        let shard_bytes = self.clients.sessions.shards.bytes();
        self.memory_moment = self.memory.look(now, self.clients.bytes() + shard_bytes);
        turn
    }

    /// Nanoseconds until something is due. None if nothing is.
    fn next_timeout(&self, now: Nanos) -> Option<u64> {
        if self.clients.has_work() {
            return Some(0);
        }
        let sessions = &self.clients.sessions;
        let moments = [
            sessions.shards.next_deadline(),
            sessions.next_moment(),
            self.acceptor.moment(),
            self.memory_moment,
        ];
        moments
            .into_iter()
            .flatten()
            .min()
            .map(|moment| moment.since(now))
    }

    fn accept(&mut self, now: Nanos) {
        let Legacy {
            acceptor,
            clients,
            poller,
            ..
        } = self;
        acceptor.accept(now, poller, |stream| clients.open(now, stream, poller));
    }

    fn on_signal(&mut self) -> Turn {
        let signals = self.signals.drain();
        if signals.usr1 {
            log::info!(target: LOG, "draining");
            self.clients.sessions.shards.drain();
            self.clients.facts.is_draining = true;
        }
        if signals.term || signals.int {
            Turn::Last
        } else {
            Turn::Next
        }
    }
}

/// Whether another turn follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Next,
    Last,
}
