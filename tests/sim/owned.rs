//! Asks and events as they are while they travel: owned copies of what borrows. Names of tubes come
//! from a fixed list, so that a copy of one is a reference to the list.

use beanshard::base::body::Body;
use beanshard::base::ids::JobId;
use beanshard::base::name::TubeName;
use beanshard::base::time::Nanos;
use beanshard::engine::event::Event;
use beanshard::engine::op::Op;
use beanshard::engine::stats::{JobStats, TubeStats};

/// Every name that a tube can have here. Any five shards have some of them each.
pub(crate) const NAMES: [&str; 27] = [
    "default", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q",
    "r", "s", "t", "u", "v", "w", "x", "y", "z",
];

/// `name` as a name that lives as long as is needed.
pub(crate) fn own_name(name: TubeName<'_>) -> TubeName<'static> {
    let is_it = |known: &&&str| known.as_bytes() == name.as_bytes();
    tube(NAMES.iter().find(is_it).expect("all names are known"))
}

pub(crate) fn tube(name: &str) -> TubeName<'_> {
    TubeName::parse(name.as_bytes()).expect("names are well-formed")
}

/// `op`, independent of where it came from.
pub(crate) fn own_op(op: Op<'_>) -> Op<'static> {
    match op {
        Op::Use { tube } => Op::Use {
            tube: own_name(tube),
        },
        Op::Watch { tube } => Op::Watch {
            tube: own_name(tube),
        },
        Op::Ignore { tube } => Op::Ignore {
            tube: own_name(tube),
        },
        Op::StatsTube { tube } => Op::StatsTube {
            tube: own_name(tube),
        },
        Op::PauseTube { tube, pause } => Op::PauseTube {
            tube: own_name(tube),
            pause,
        },
        Op::Put(put) => Op::Put(put),
        Op::Reserve { style, wait } => Op::Reserve { style, wait },
        Op::Accept { id } => Op::Accept { id },
        Op::Decline { id } => Op::Decline { id },
        Op::ReserveJob { id } => Op::ReserveJob { id },
        Op::Delete { id } => Op::Delete { id },
        Op::Release { id, pri, delay } => Op::Release { id, pri, delay },
        Op::Bury { id, pri } => Op::Bury { id, pri },
        Op::Touch { id } => Op::Touch { id },
        Op::Kick { count } => Op::Kick { count },
        Op::KickJob { id } => Op::KickJob { id },
        Op::Peek { id } => Op::Peek { id },
        Op::StatsJob { id } => Op::StatsJob { id },
        Op::Unuse => Op::Unuse,
        Op::Cancel => Op::Cancel,
        Op::PeekReady => Op::PeekReady,
        Op::PeekDelayed => Op::PeekDelayed,
        Op::PeekBuried => Op::PeekBuried,
        Op::Stats => Op::Stats,
        Op::ListTubes => Op::ListTubes,
    }
}

/// An event with its body, if it has one.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Reserved {
        id: JobId,
        deadline: Nanos,
        body: Body,
    },
    Found {
        id: JobId,
        body: Body,
    },
    Other(Event<'static>),
}

impl Owned {
    /// A copy of `event`. Bodies are copied, not shared, as between processes.
    pub(crate) fn of(event: &Event<'_>) -> Owned {
        Owned::Other(match *event {
            Event::Reserved { id, deadline, body } => {
                let body = Body::copy_of(body);
                return Owned::Reserved { id, deadline, body };
            }
            Event::Found { id, body } => {
                let body = Body::copy_of(body);
                return Owned::Found { id, body };
            }
            Event::Offered {
                id,
                pri,
                created_at,
            } => Event::Offered {
                id,
                pri,
                created_at,
            },
            Event::JobStats(stats) => Event::JobStats(JobStats {
                tube: own_name(stats.tube),
                ..stats
            }),
            Event::TubeStats(stats) => Event::TubeStats(TubeStats {
                name: own_name(stats.name),
                ..stats
            }),
            Event::Tube(name) => Event::Tube(own_name(name)),
            Event::ShardStats(stats) => Event::ShardStats(stats),
            Event::Inserted { id } => Event::Inserted { id },
            Event::Expired { id } => Event::Expired { id },
            Event::Deleted { id } => Event::Deleted { id },
            Event::Released { id } => Event::Released { id },
            Event::Buried { id } => Event::Buried { id },
            Event::Touched { id, deadline } => Event::Touched { id, deadline },
            Event::Kicked { count } => Event::Kicked { count },
            Event::Using => Event::Using,
            Event::Watching => Event::Watching,
            Event::Ignored => Event::Ignored,
            Event::Draining => Event::Draining,
            Event::OutOfMemory => Event::OutOfMemory,
            Event::NoJob => Event::NoJob,
            Event::Gone => Event::Gone,
            Event::Cancelled => Event::Cancelled,
            Event::KickedJob => Event::KickedJob,
            Event::NotFound => Event::NotFound,
            Event::Paused => Event::Paused,
            Event::TubesEnd => Event::TubesEnd,
        })
    }

    /// The event, as one hears it.
    pub(crate) fn event(&self) -> Event<'_> {
        match self {
            Owned::Reserved { id, deadline, body } => Event::Reserved {
                id: *id,
                deadline: *deadline,
                body,
            },
            Owned::Found { id, body } => Event::Found { id: *id, body },
            Owned::Other(event) => event.clone(),
        }
    }
}
