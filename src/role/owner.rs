//! An owner: the process that has some of the tubes, with their jobs and timers. It has no clients;
//! frontends ask it over links.

use std::error::Error as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::base::ids::{JobId, ShardId};
use crate::base::name::TubeName;
use crate::base::slot::SLOT_BITS;
use crate::base::time::Nanos;
use crate::engine::host::{NoJournal, Ticket};
use crate::engine::{Engine, IdScheme, Settings};
use crate::role::binlog;
use crate::role::control::ControlSocket;
use crate::role::error::RoleError;
use crate::role::hub::Hub;
use crate::role::links::{Links, Lost, terms};
use crate::role::memory::Memory;
use crate::role::process::draw_hasher;
use crate::role::shard::Shard;
use crate::role::tally::{Tally, counts, refused};
use crate::role::uplink::Uplink;
use crate::session::shards::{ShardMap, Shards};
use crate::sys::clock;
use crate::sys::poller::{Interest, Poller, Ready};
use crate::sys::process;
use crate::wal::journal;
use crate::wal::record::WallNanos;
use crate::wal::shard_journal::ShardJournal;
use crate::wal::v8::V8;
use crate::wire::control::Control;
use crate::wire::setup::{Peer, Setup};

/// See the module's description.
struct Owner<J> {
    setup: Setup,
    poller: Poller,
    uplink: Uplink,
    hub: Hub<Shard<J>>,
    /// By the index of the frontend.
    links: Links,
    memory: Memory,
    /// When memory is to be looked at again.
    memory_moment: Option<Nanos>,
}

const UPLINK_KEY: usize = 0;
const WAL_KEY: usize = 1;
const FIRST_LINK_KEY: usize = 2;

/// The target of this module's log lines.
const LOG: &str = "owner";

/// Owns its tubes until the supervisor says that it is over, or is gone.
///
/// # Errors
/// Whatever stops the start, and what cannot be gone on from later.
pub fn serve(setup: Setup, control: ControlSocket, dir: Option<&Path>) -> Result<(), RoleError> {
    let map = ShardMap::new(setup.owners.into());
    let mut engine = Engine::new(Settings {
        ids: IdScheme::Slotted,
        hasher: draw_hasher()?,
        has_default: map.of_tube(TubeName::DEFAULT) == ShardId(setup.index as u8),
    });
    let Some(dir) = dir else {
        engine.skip_ids(first_free_id(&setup, clock::monotonic()));
        return Owner::start(setup, control, Shard::new(engine, NoJournal))?.run();
    };
    let format = V8 {
        fingerprint: map.fingerprint(),
        owner: ShardId(setup.index as u8),
        skip_damage: setup.skips_damage,
    };
    let shard = binlog::recover(engine, dir, format, settings_of(&setup))?;
    Owner::start(setup, control, shard)?.run()
}

/// Ids that an owner may have given since the supervisor was started, at most, for each second.
const IDS_PER_SEC_MAX: u64 = 100_000;

/// The highest id that an owner without a binlog may have given before this start of it: a client
/// that still has one of them must not meet another job under it. At the first start of all there
/// is none.
fn first_free_id(setup: &Setup, now: Nanos) -> JobId {
    if setup.generation.0 <= u32::from(setup.owners) {
        return JobId(0);
    }
    let seconds = now.secs_since(setup.started_at) + 1;
    JobId((seconds * IDS_PER_SEC_MAX) << SLOT_BITS)
}

/// How the binlog is kept.
fn settings_of(setup: &Setup) -> journal::Settings {
    journal::Settings {
        file_len: setup.binlog_size_max,
        sync: binlog::sync_of(setup.sync_ms),
    }
}

impl<J: ShardJournal> Owner<J> {
    fn start(
        setup: Setup,
        control: ControlSocket,
        mut shard: Shard<J>,
    ) -> Result<Owner<J>, RoleError> {
        if setup.is_draining {
            shard.drain();
        }
        let poller = Poller::new().map_err(|source| RoleError::Poller { source })?;
        let watch = |fd, key| poller.watch(fd, key, Interest::READ);
        let uplink = Uplink::new(control, UPLINK_KEY, &poller)
            .map_err(|source| RoleError::WatchControl { source })?;
        if let Some(wake) = shard.wake_fd() {
            watch(wake, WAL_KEY).map_err(|source| RoleError::WatchWal { source })?;
        }
        Ok(Owner {
            links: Links::new(setup.frontends.into(), FIRST_LINK_KEY),
            setup,
            poller,
            uplink,
            hub: Hub::new(shard),
            memory: Memory::default(),
            memory_moment: None,
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
            if let Some(failure) = self.hub.shard.take_failure() {
                return Err(failure.into());
            }
        }
        // What was done and waits for the disk is still answered.
        self.hub.shard.settle();
        self.answer(clock::monotonic());
        self.hub.shard.close();
        match self.hub.shard.take_failure() {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }

    /// One turn, all of which happens at the same moment: what is due, then what was asked, then
    /// the answers. Whether it was the last.
    fn turn(&mut self, now: Nanos, ready: &[Ready]) -> Result<bool, RoleError> {
        self.hub.shard.begin_turn(now, WallNanos(clock::wall()));
        self.hub.tick(now);
        let mut is_last = false;
        for ready in ready {
            match ready.key {
                UPLINK_KEY => is_last = self.on_uplink(now)?,
                // What there is to be done is done at the end of every turn.
                WAL_KEY => {}
                key => {
                    if let Some(index) = self.links.index_of(key).filter(|_| ready.readable) {
                        self.read(now, index);
                    }
                }
            }
        }
        self.answer(now);
        self.memory_moment = self.memory.look(now, self.hub.shard.bytes());
        Ok(is_last)
    }

    /// Nanoseconds until something is due. None if nothing is.
    fn next_timeout(&self, now: Nanos) -> Option<u64> {
        let moments = [self.hub.shard.next_deadline(), self.memory_moment];
        let first = moments.into_iter().flatten().min();
        first.map(|moment| moment.since(now))
    }

    /// Whether the supervisor wants this process to end.
    fn on_uplink(&mut self, now: Nanos) -> Result<bool, RoleError> {
        let is_open = self.uplink.read()?;
        while let Some((control, fd)) = self.uplink.next()? {
            match (control, fd) {
                (Control::Link(peer), Some(fd)) => self.connect(now, peer, fd),
                (Control::Ping(number), _) => self.uplink.tell(&Control::Pong(number))?,
                (Control::Drain, _) => self.hub.shard.drain(),
                (Control::AskCounts(asked), _) => {
                    let row = self.tally().numbers();
                    self.uplink.tell(&counts(&self.setup, asked, &row))?;
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

    fn tally(&self) -> Tally {
        Tally {
            usage: process::usage(),
            refused_frames: refused(self.hub.refusals()),
            ..Tally::default()
        }
    }

    fn connect(&mut self, now: Nanos, peer: Peer, fd: OwnedFd) {
        let index = usize::from(peer.index);
        if index >= usize::from(self.setup.frontends) {
            return;
        }
        self.close(now, index);
        match self.links.open(index, fd, &self.poller) {
            Ok(()) => self.hub.connect(now, &terms(&self.setup, peer)),
            Err(error) => log::error!(target: LOG, "cannot open link error={error}"),
        }
    }

    /// Obeys what this frontend has sent, until it is owed more than it may be at once.
    fn read(&mut self, now: Nanos, index: usize) {
        let frontend = index as u16;
        let Some(expected) = self.hub.expected(frontend) else {
            return;
        };
        let hub = &mut self.hub;
        let read = self.links.read(index, &expected, |frame| {
            hub.take(now, frontend, frame)?;
            Ok(!hub.is_over_limit(frontend))
        });
        if let Err(lost) = read {
            self.lose(now, index, lost);
        }
    }

    /// Writes what there is to say, and sees to it that frontends that do not read it are given
    /// nothing more to do.
    fn answer(&mut self, now: Nanos) {
        self.wake_slow(now);
        let confirmed = self.hub.shard.flush();
        for index in 0..usize::from(self.setup.frontends) {
            if let Err(lost) = self.write(index, confirmed) {
                self.lose(now, index, lost);
            } else if self.is_over_limit(index) && self.links.set_read(index, false, &self.poller) {
                log::debug!(target: LOG, "frontend is slow index={index}");
                self.hub.set_slow(now, index as u16, true);
            }
        }
    }

    /// Goes on with frontends that have read what they were owed. What they have sent meanwhile
    /// may be here already.
    fn wake_slow(&mut self, now: Nanos) {
        for index in 0..usize::from(self.setup.frontends) {
            let has_drained =
                self.links.has_drained(index) && !self.hub.is_over_limit(index as u16);
            if has_drained && self.links.set_read(index, true, &self.poller) {
                self.hub.set_slow(now, index as u16, false);
                self.read(now, index);
            }
        }
    }

    fn write(&mut self, index: usize, confirmed: Ticket) -> Result<(), Lost> {
        let hub = &mut self.hub;
        self.links.write(index, &self.poller, |out, room| {
            hub.write(index as u16, out, room, confirmed)
        })
    }

    fn is_over_limit(&mut self, index: usize) -> bool {
        self.links.is_over_limit(index) || self.hub.is_over_limit(index as u16)
    }

    /// The link to this frontend is given up, and all that its sessions held is released.
    fn lose(&mut self, now: Nanos, index: usize, lost: Lost) {
        log::info!(
            target: LOG,
            "link ended role=frontend index={index} why={lost} cause={:?}",
            lost.source(),
        );
        if let Lost::Refused(refusal) = lost {
            self.hub.part(index as u16, Some(refusal));
            // It may be too late for it to hear.
            let _ = self.write(index, Ticket::default());
        }
        self.close(now, index);
    }

    fn close(&mut self, now: Nanos, index: usize) {
        self.links.close(index, &self.poller);
        self.hub.lose(now, index as u16);
    }
}
