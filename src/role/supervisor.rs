//! The process that starts the others, and serves nobody itself: it binds the listening sockets,
//! keeps a child in every place, gives each pair of them a link, and brings all to an end.
//!
//! What is to be done is known to [`places`]; `children` does it. Numbers of all processes for
//! one that asks go through [`counts`].

use std::error::Error as _;
use std::os::fd::AsFd;
use std::thread::available_parallelism;

use crate::base::ids::ShardSet;
use crate::base::limits::{FAILED_STARTS_MAX, FRONTENDS_MAX};
use crate::base::time::Nanos;
use crate::cli::{Config, VERSION};
use crate::net::listener::Listener;
use crate::role::error::RoleError;
use crate::role::process::{announce_ready, announce_stopping, draw_run_id};
use crate::role::trace::Tracer;
use crate::session::shards::ShardMap;
use crate::sys::clock;
use crate::sys::poller::{Interest, Poller, Ready};
use crate::sys::process;
use crate::sys::signal::Signals;
use crate::sys::spawn::Program;
use crate::wal::topology::{self, DataDir, Kind, Topology};

mod children;
pub mod counts;
pub mod places;

use children::{Children, Common};
use places::{Action, Outcome, Places};

/// How logs and `top` call this process.
pub const NAME: &str = "beanshard";

const SIGNALS_KEY: usize = 0;
const FIRST_CHILD_KEY: usize = 1;

/// The target of this module's log lines.
const LOG: &str = "supervisor";

/// Serves as `config` says until a signal asks to stop.
///
/// # Errors
/// Whatever stops the start, and what cannot be gone on from later. All children end with this
/// process.
pub fn serve(config: &Config) -> Result<(), RoleError> {
    Supervisor::start(config)?.run()
}

/// See the module's description.
struct Supervisor {
    poller: Poller,
    signals: Signals,
    places: Places,
    children: Children,
    address: String,
}

impl Supervisor {
    /// Does all that can fail before the first child is started, in the order of the other mode.
    fn start(config: &Config) -> Result<Supervisor, RoleError> {
        process::set_name(NAME);
        let tracer = Tracer::new(config.verbose);
        tracer.started(process::pid());
        if let Err(error) = process::raise_descriptor_limit() {
            log::warn!(target: LOG, "{error} cause={:?}", error.source());
        }
        let (owners, frontends) = shares(config)?;
        let listeners = Listener::open_several(&config.listen, usize::from(frontends))?;
        listeners.iter().for_each(|listener| tracer.bound(listener));
        let address = listeners
            .first()
            .map(|first| first.local_address().to_string());
        let mut common = Common {
            program: Program::own()?,
            owners,
            frontends,
            run: draw_run_id()?,
            pid: process::pid(),
            started_at: clock::monotonic(),
            body_len_max: config.body_len_max,
            binlog_size_max: config.binlog_file_len,
            sharding: config.sharding,
            verbose: config.verbose,
            sync_ms: config.binlog_sync.millis(),
            data: None,
        };
        if let Some(user) = &config.user {
            process::drop_privileges(user)?;
        }
        if let Some(dir) = &config.binlog_dir {
            let fingerprint = ShardMap::new(owners.into()).fingerprint();
            let topology = Topology {
                owners,
                fingerprint,
            };
            common.data = Some(DataDir::open(dir, topology)?);
        }
        let signals = Signals::with_children()?;
        let poller = Poller::new().map_err(|source| RoleError::Poller { source })?;
        poller
            .watch(signals.as_fd(), SIGNALS_KEY, Interest::READ)
            .map_err(|source| RoleError::WatchSignals { source })?;
        let places = Places::new(owners, frontends);
        Ok(Supervisor {
            poller,
            signals,
            children: Children::new(common, listeners, places.len(), FIRST_CHILD_KEY),
            places,
            address: address.unwrap_or_default(),
        })
    }

    fn run(mut self) -> Result<(), RoleError> {
        let mut ready = Vec::new();
        loop {
            let now = clock::monotonic();
            self.act(now);
            if let Some(outcome) = self.places.outcome(now) {
                return self.end(outcome);
            }
            let timeout = self.places.moment().map(|moment| moment.since(now));
            self.poller
                .wait(timeout, &mut ready)
                .map_err(|source| RoleError::Wait { source })?;
            self.turn(clock::monotonic(), &ready);
        }
    }

    /// Takes in what has happened.
    fn turn(&mut self, now: Nanos, ready: &[Ready]) {
        let mut has_ended = false;
        for &ready in ready {
            match ready.key.checked_sub(FIRST_CHILD_KEY) {
                None => has_ended |= self.on_signal(now),
                Some(place) => {
                    let Supervisor {
                        children,
                        places,
                        poller,
                        ..
                    } = self;
                    children.on_ready(now, place, ready, places, poller);
                }
            }
        }
        if has_ended {
            self.children.reap(now, &mut self.places, &self.poller);
        }
        self.children.answer_counts();
    }

    /// Says whether a child may have ended.
    fn on_signal(&mut self, now: Nanos) -> bool {
        let signals = self.signals.drain();
        if signals.usr1 && !self.places.is_draining() {
            log::info!(target: LOG, "draining");
            self.places.drain();
        }
        if signals.term || signals.int {
            self.stop(now);
        }
        signals.chld
    }

    fn stop(&mut self, now: Nanos) {
        if self.places.is_stopping() {
            log::warn!(target: LOG, "stopping at once");
        } else {
            log::info!(target: LOG, "stopping");
            announce_stopping();
            // Nobody is to come any more; the frontends close theirs when they end.
            self.children.close_listeners();
        }
        self.places.stop(now);
    }

    /// Does what is due, and what becomes due by that.
    fn act(&mut self, now: Nanos) {
        loop {
            let due = self.places.due(now);
            if due.is_empty() {
                break;
            }
            for action in due {
                if action == Action::Announce {
                    self.announce();
                } else {
                    self.children
                        .act(now, action, &mut self.places, &self.poller);
                }
            }
        }
        self.children.flush(&self.places, &self.poller);
    }

    fn announce(&self) {
        announce_ready();
        let (owners, frontends) = self.children.shares();
        log::info!(
            target: LOG,
            "ready address={} version={VERSION} pid={} owners={owners} frontends={frontends}",
            self.address,
            process::pid(),
        );
    }

    fn end(self, outcome: Outcome) -> Result<(), RoleError> {
        match outcome {
            Outcome::Stopped => {
                log::info!(target: LOG, "stopped pid={}", process::pid());
                Ok(())
            }
            Outcome::Forced => Err(RoleError::Forced),
            Outcome::Hopeless(seat) => Err(RoleError::Hopeless {
                role: seat.role.name(),
                index: seat.index,
                folder: self.children.folder(seat.index),
            }),
            Outcome::GaveUp(seat) => Err(RoleError::GaveUp {
                role: seat.role.name(),
                index: seat.index,
                tries: FAILED_STARTS_MAX,
            }),
        }
    }
}

/// How many owners and frontends there are to be: a client costs more than its jobs, so unless
/// something else is asked for, or a data directory is for so many, a quarter of the processors is
/// for owners.
fn shares(config: &Config) -> Result<(u16, u16), RoleError> {
    let made = config.binlog_dir.as_deref().map(topology::look);
    let made_for = match made.transpose()? {
        Some(Kind::Sharded(made)) => Some(made.topology.owners),
        Some(Kind::New | Kind::Legacy(_)) | None => None,
    };
    let owners = config.sharding.owners.or(made_for);
    Ok(default_shares(cores(), owners, config.sharding.frontends))
}

/// How many owners suit this machine.
#[must_use]
pub fn usual_owners() -> u16 {
    default_shares(cores(), None, None).0
}

fn cores() -> usize {
    available_parallelism().map_or(1, |cores| cores.get())
}

fn default_shares(cores: usize, owners: Option<u16>, frontends: Option<u16>) -> (u16, u16) {
    let most = ShardSet::SHARDS_MAX.min(usize::from(FRONTENDS_MAX));
    let limited = |count: usize| count.clamp(1, most) as u16;
    let owners = owners.unwrap_or_else(|| limited(cores / 4));
    let rest = cores.saturating_sub(usize::from(owners));
    (owners, frontends.unwrap_or_else(|| limited(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_shared_out() {
        let shared = |cores| default_shares(cores, None, None);
        assert_eq!([1, 2, 4, 16].map(shared), [(1, 1), (1, 1), (1, 3), (4, 12)]);
        assert_eq!(shared(1_000), (64, 64));
        assert_eq!(default_shares(8, Some(5), None), (5, 3));
        assert_eq!(default_shares(8, Some(64), None), (64, 1));
        assert_eq!(default_shares(8, None, Some(2)), (2, 2));
    }
}
