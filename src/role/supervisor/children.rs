//! The children as processes, with their control sockets: doing what is due, and hearing what they
//! say.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io;
use std::iter;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use super::LOG;
use super::counts::Rounds;
use super::places::{Action, Ended, Occupant, Places, Role, Seat};
use crate::base::ids::RunId;
use crate::base::limits::HOPELESS_STATUS;
use crate::base::time::Nanos;
use crate::cli::{CHILD_WORD, Sharding};
use crate::net::listener::Listener;
use crate::net::stream::Stream;
use crate::role::control::ControlSocket;
use crate::role::error::RoleError;
use crate::sys::poller::{Interest, Poller};
use crate::sys::spawn::{Child, End, Program};
use crate::wal::topology::DataDir;
use crate::wire::control::Control;
use crate::wire::setup::{Peer, Setup};

mod hear;

/// What all children have in common.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) program: Program,
    pub(super) owners: u16,
    pub(super) frontends: u16,
    pub(super) run: RunId,
    pub(super) pid: u32,
    pub(super) started_at: Nanos,
    pub(super) body_len_max: u32,
    pub(super) binlog_size_max: u64,
    pub(super) sharding: Sharding,
    pub(super) verbose: u32,
    /// Milliseconds between two syncs of a binlog, see [`Setup::sync_ms`].
    pub(super) sync_ms: Option<u64>,
    /// Where the owners have their binlogs, if they have any. Locked as long as this is here.
    pub(super) data: Option<DataDir>,
}

/// See the module's description.
pub(super) struct Children {
    common: Common,
    /// One for each frontend, or one for all of them. None when nobody is to come any more.
    listeners: Vec<Listener>,
    /// By place.
    running: Vec<Option<Running>>,
    rounds: Rounds,
    /// What the poller calls the first place; the others follow.
    first_key: usize,
}

/// A process and what is said to it.
struct Running {
    child: Child,
    control: ControlSocket,
    /// What the poller watches for; none if it has forgotten the socket.
    watched: Option<Interest>,
}

impl Children {
    pub(super) fn new(
        common: Common,
        listeners: Vec<Listener>,
        places: usize,
        first_key: usize,
    ) -> Children {
        Children {
            common,
            listeners,
            running: (0..places).map(|_| None).collect(),
            rounds: Rounds::new(places),
            first_key,
        }
    }

    /// How many owners and frontends there are to be.
    pub(super) fn shares(&self) -> (u16, u16) {
        (self.common.owners, self.common.frontends)
    }

    /// Where the owner has its binlog.
    pub(super) fn folder(&self, owner: u16) -> PathBuf {
        let data = self.common.data.as_ref();
        data.map_or_else(PathBuf::new, |data| data.owner(owner))
    }

    pub(super) fn close_listeners(&mut self) {
        self.listeners.clear();
    }

    /// Does what is due. What cannot be done is told to `places`.
    pub(super) fn act(&mut self, now: Nanos, action: Action, places: &mut Places, poller: &Poller) {
        match action {
            Action::Start(occupant) => self.start(now, occupant, places, poller),
            Action::Link { frontend, owner } => self.link(now, frontend, owner, places),
            Action::Ping(seat, number) => self.tell(places, seat, &Control::Ping(number), None),
            Action::ReportSlow(seat) => log::warn!(
                target: LOG,
                "child does not answer role={} index={} pid={}",
                seat.role,
                seat.index,
                self.pid(places, seat),
            ),
            Action::Drain(seat) => self.tell(places, seat, &Control::Drain, None),
            Action::Goodbye(seat) => self.tell(places, seat, &Control::Goodbye(None), None),
            Action::Kill(seat) => {
                log::warn!(
                    target: LOG,
                    "killing child role={} index={}",
                    seat.role,
                    seat.index,
                );
                self.kill(places.number(seat));
            }
            Action::Announce => {}
        }
    }

    fn start(&mut self, now: Nanos, occupant: Occupant, places: &mut Places, poller: &Poller) {
        let Occupant { seat, generation } = occupant;
        let number = places.number(seat);
        match self.spawn(occupant, places.is_draining(), number, poller) {
            Ok(running) => {
                log::info!(
                    target: LOG,
                    "child started role={} index={} generation={} pid={}",
                    seat.role,
                    seat.index,
                    generation.0,
                    running.child.pid(),
                );
                self.running[number] = Some(running);
            }
            Err(error) => {
                log::error!(
                    target: LOG,
                    "cannot start child role={} index={} error={error} cause={:?}",
                    seat.role,
                    seat.index,
                    error.source(),
                );
                places.on_end(now, seat);
            }
        }
    }

    fn spawn(
        &self,
        Occupant { seat, generation }: Occupant,
        is_draining: bool,
        number: usize,
        poller: &Poller,
    ) -> Result<Running, RoleError> {
        let unmade = |source| RoleError::WatchControl { source };
        let common = &self.common;
        let listener = self.listener_for(seat).map_err(unmade)?;
        let (near, far) = Stream::pair().map_err(unmade)?;
        let mut control = ControlSocket::new(near, seat.role.into());
        let setup = Control::Setup(Setup {
            role: seat.role.into(),
            index: seat.index,
            owners: common.owners,
            frontends: common.frontends,
            generation,
            run: common.run,
            supervisor_pid: common.pid,
            started_at: common.started_at,
            body_len_max: common.body_len_max,
            binlog_size_max: common.binlog_size_max,
            sync_ms: common.sync_ms,
            skips_damage: common.sharding.skips_damage,
            owner_wait_ms: common.sharding.owner_wait_ms,
            rejects_multi_watch: common.sharding.rejects_multi_watch,
            verbose: common.verbose,
            is_draining,
        });
        control.push(&setup, listener)?;
        let key = self.first_key + number;
        let watched = control.interest();
        poller
            .watch(control.as_fd(), key, watched)
            .map_err(unmade)?;
        let title = format!("beanshard: {} {}", seat.role, seat.index);
        let dir = common.data.as_ref().filter(|_| seat.role == Role::Owner);
        let dir = dir.map(|data| data.owner(seat.index).into_os_string());
        let words: Vec<OsString> = iter::once(CHILD_WORD.into()).chain(dir).collect();
        let child = common
            .program
            .spawn(OsStr::new(&title), &words, far.as_fd())
            .inspect_err(|_| forget(poller, &control))?;
        Ok(Running {
            child,
            control,
            watched: Some(watched),
        })
    }

    /// A copy of the listening socket that a frontend is to have.
    fn listener_for(&self, seat: Seat) -> io::Result<Option<OwnedFd>> {
        match seat.role {
            Role::Owner => Ok(None),
            Role::Frontend => {
                let own = self.listeners.get(usize::from(seat.index));
                let listener = own
                    .or(self.listeners.first())
                    .ok_or(io::ErrorKind::NotFound)?;
                Ok(Some(listener.as_fd().try_clone_to_owned()?))
            }
        }
    }

    fn link(&mut self, now: Nanos, frontend: Occupant, owner: Occupant, places: &mut Places) {
        match Stream::pair() {
            Ok((near, far)) => {
                self.tell(places, frontend.seat, &peer(owner), Some(near.into()));
                self.tell(places, owner.seat, &peer(frontend), Some(far.into()));
            }
            Err(error) => {
                log::error!(target: LOG, "cannot make a link error={error}");
                places.on_link_lost(now, frontend.seat.index, owner.seat.index, owner.generation);
            }
        }
    }

    /// Says something to the child there. One that takes no more has to go: it would not know what
    /// it has to.
    fn tell(
        &mut self,
        places: &Places,
        seat: Seat,
        control: &Control<'_>,
        descriptor: Option<OwnedFd>,
    ) {
        let number = places.number(seat);
        let Some(running) = &mut self.running[number] else {
            return;
        };
        if let Err(error) = running.control.push(control, descriptor) {
            complain(seat, &error);
            self.kill(number);
        }
    }

    fn kill(&mut self, number: usize) {
        if let Some(running) = &mut self.running[number]
            && let Err(error) = running.child.kill()
        {
            let cause = error.source();
            log::error!(target: LOG, "cannot kill a child error={error} cause={cause:?}");
        }
    }

    fn pid(&self, places: &Places, seat: Seat) -> u32 {
        let running = self.running[places.number(seat)].as_ref();
        running.map_or(0, |running| running.child.pid())
    }

    /// Finds out who has ended.
    pub(super) fn reap(&mut self, now: Nanos, places: &mut Places, poller: &Poller) {
        for number in 0..self.running.len() {
            let Some(running) = &mut self.running[number] else {
                continue;
            };
            let mut is_hopeless = false;
            let how = match running.child.ended() {
                Ok(None) => continue,
                Ok(Some(end)) => {
                    is_hopeless = end == End::Exited(HOPELESS_STATUS.into());
                    end.to_string()
                }
                Err(error) => {
                    log::error!(target: LOG, "{error} cause={:?}", error.source());
                    "unknown".to_owned()
                }
            };
            self.forget(number, poller);
            self.running[number] = None;
            self.rounds.on_end(number);
            let seat = places.seat(number);
            if let Some(ended) = places.on_end(now, seat) {
                report_end(seat, ended, &how, self.common.data.is_some());
            }
            if is_hopeless {
                places.on_hopeless(now, seat);
            }
        }
    }

    /// Writes what is to be said.
    pub(super) fn flush(&mut self, places: &Places, poller: &Poller) {
        for number in 0..self.running.len() {
            if let Err(error) = self.flush_one(number, poller) {
                complain(places.seat(number), &error);
                self.kill_and_forget(number, poller);
            }
        }
    }

    fn flush_one(&mut self, number: usize, poller: &Poller) -> Result<(), RoleError> {
        let Some(running) = &mut self.running[number] else {
            return Ok(());
        };
        let Some(watched) = running.watched else {
            return Ok(());
        };
        match running.control.flush() {
            // The child has gone, which is heard of by other ways.
            Err(error) if error.is_peer_gone() => return Ok(()),
            flushed => flushed?,
        }
        let interest = running.control.interest();
        if interest != watched {
            let key = self.first_key + number;
            poller
                .change(running.control.as_fd(), key, interest)
                .map_err(|source| RoleError::WatchControl { source })?;
            running.watched = Some(interest);
        }
        Ok(())
    }

    fn kill_and_forget(&mut self, number: usize, poller: &Poller) {
        self.kill(number);
        self.forget(number, poller);
    }

    /// Its socket says nothing more.
    fn forget(&mut self, number: usize, poller: &Poller) {
        if let Some(running) = &mut self.running[number]
            && running.watched.take().is_some()
        {
            forget(poller, &running.control);
        }
    }
}

fn forget(poller: &Poller, control: &ControlSocket) {
    if let Err(error) = poller.forget(control.as_fd()) {
        log::error!(target: LOG, "cannot forget a child error={error}");
    }
}

/// Says to one end of a link who is at the other.
fn peer(of: Occupant) -> Control<'static> {
    Control::Link(Peer {
        role: of.seat.role.into(),
        index: of.seat.index,
        generation: of.generation,
    })
}

fn complain(seat: Seat, error: &dyn Error) {
    log::error!(
        target: LOG,
        "child cannot be talked to role={} index={} error={error} cause={:?}",
        seat.role,
        seat.index,
        error.source(),
    );
}

/// An owner that ends without having been told to has lost its jobs, unless they are kept in a
/// binlog.
fn report_end(seat: Seat, ended: Ended, how: &str, is_kept: bool) {
    let Seat { role, index } = seat;
    let generation = ended.generation.0;
    let what = format!("child ended role={role} index={index} generation={generation} how={how}");
    if ended.is_expected {
        log::info!(target: LOG, "{what}");
        return;
    }
    match role {
        Role::Frontend => log::warn!(target: LOG, "{what}"),
        Role::Owner => {
            let lost = if ended.has_served && !is_kept {
                "yes"
            } else {
                "no"
            };
            log::warn!(target: LOG, "{what} jobs-lost={lost}");
        }
    }
}
