//! What a shard knows of a session: the tube it puts into, those it reserves from, the jobs it
//! holds, and whether it waits. Nothing of a connection.

use std::cell::Cell;

use hashbrown::HashTable;

use crate::base::hash::id_hash;
use crate::base::ids::{Caller, Seq, SessionId};
use crate::base::list::List;
use crate::base::ordset::OrdSet;
use crate::base::slab::Slab;
use crate::engine::op::Style;

/// See the module's description.
pub(super) struct Client {
    pub(super) session: SessionId,
    /// Slot of the tube in use, if that is one of this shard's.
    pub(super) using: Option<u32>,
    /// Those of the watched tubes that are this shard's.
    pub(super) watches: OrdSet<Watch>,
    /// Reserved jobs, in the order of reservation.
    pub(super) reserved: List,
    pub(super) reserve: Reserve,
}

/// A watched tube.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) tube: u32,
    /// Index among the tube's waiters. Meaningless while the client does not wait, or is parked.
    pub(super) waiter: u32,
}

/// How far the latest reserve has come, if it is not over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reserve {
    None,
    /// It has found nothing yet.
    Waiting(Wait),
    /// A job is kept for it.
    Offered {
        /// The ask that it was offered to: what is said to an earlier offer is not meant for it.
        seq: Seq,
        /// Slot of the job.
        job: u32,
    },
}

/// A reserve that has found nothing yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) seq: Seq,
    pub(super) style: Style,
}

impl Client {
    fn new(session: SessionId) -> Client {
        Client {
            session,
            using: None,
            watches: OrdSet::default(),
            reserved: List::default(),
            reserve: Reserve::None,
        }
    }

    /// The client as the one who asked `seq`.
    pub(super) fn caller(&self, seq: Seq) -> Caller {
        Caller {
            session: self.session,
            seq,
        }
    }

    /// The reserve that has found nothing yet, if there is one.
    pub(super) fn wait(&self) -> Option<Wait> {
        match self.reserve {
            Reserve::Waiting(wait) => Some(wait),
            Reserve::None | Reserve::Offered { .. } => None,
        }
    }

    /// Slot of the job that is kept for the client, if one is.
    pub(super) fn offer(&self) -> Option<u32> {
        match self.reserve {
            Reserve::Offered { job, .. } => Some(job),
            Reserve::None | Reserve::Waiting(_) => None,
        }
    }

    /// Where `tube` stands among the watched tubes.
    pub(super) fn watch_index(&self, tube: u32) -> Option<usize> {
        self.watches
            .position(id_hash(tube), |watch| watch.tube == tube)
    }
}

/// The hash that a client's watched tubes are found by.
pub(super) fn watch_hash(watch: &Watch) -> u64 {
    id_hash(watch.tube)
}

/// All sessions that a shard knows.
#[derive(Default)]
pub(super) struct Clients {
    slots: Slab<Client>,
    by_session: HashTable<u32>,
    /// Slot of the client that was asked for last, and will mostly be the next: a client that sends
    /// many commands at once is found without the table.
    latest: Cell<u32>,
}

/// Below this capacity, in entries, the table of sessions does not shrink.
const KEPT_CAPACITY: usize = 256;

impl Clients {
    pub(super) fn find(&self, session: SessionId) -> Option<u32> {
        let latest = self.latest.get();
        let is_it = |client: &Client| client.session == session;
        if self.slots.get(latest).is_some_and(is_it) {
            return Some(latest);
        }
        let found = self
            .by_session
            .find(id_hash(session), |&slot| is_it(&self.slots[slot]))
            .copied();
        self.latest.set(found.unwrap_or(latest));
        found
    }

    pub(super) fn insert(&mut self, session: SessionId) -> u32 {
        let slot = self.slots.insert(Client::new(session));
        let slots = &self.slots;
        let hash_of = |&slot: &u32| id_hash(slots[slot].session);
        self.by_session
            .insert_unique(id_hash(session), slot, hash_of);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> Client {
        let client = self.slots.remove(slot);
        if let Ok(entry) = self
            .by_session
            .find_entry(id_hash(client.session), |&s| s == slot)
        {
            entry.remove();
        }
        if self.by_session.capacity() > KEPT_CAPACITY.max(8 * self.by_session.len()) {
            let slots = &self.slots;
            let kept = KEPT_CAPACITY.max(2 * self.by_session.len());
            self.by_session
                .shrink_to(kept, |&slot| id_hash(slots[slot].session));
        }
        client
    }

    /// All of them, in no order that would mean anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Client)> {
        self.slots.iter()
    }
}

impl std::ops::Index<u32> for Clients {
    type Output = Client;

    fn index(&self, slot: u32) -> &Client {
        &self.slots[slot]
    }
}

impl std::ops::IndexMut<u32> for Clients {
    fn index_mut(&mut self, slot: u32) -> &mut Client {
        &mut self.slots[slot]
    }
}
