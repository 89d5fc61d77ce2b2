//! Who waits for what, first come first served. Lists are threaded through the entries of the
//! table: a session is in one at most, and they need no memory of their own.

use crate::base::ids::{ShardId, ShardSet};
use crate::base::list::{Linked, Links, List};
use crate::base::slab::Slab;
use crate::session::shards::ShardMap;
use crate::session::table::Entry;
use crate::session::waiting::{Place, Stage};

/// See the module's description.
pub(super) struct Queues {
    of_shards: Box<[Queue]>,
    of_replies: Queue,
    /// Shards for which commands wait, or are about to be read anew.
    busy: ShardSet,
}

/// Those who wait for one thing.
#[derive(Default)]
struct Queue {
    /// They have been called, but nothing was left for them.
    returned: List,
    queued: List,
    /// They have a whole put, and need nothing but a way to the shard.
    held: List,
    /// Sessions that have been called and not been fed yet.
    called: usize,
}

impl Queue {
    fn is_busy(&self) -> bool {
        self.called > 0 || self.front().is_some()
    }

    /// Who is to be called next.
    fn front(&self) -> Option<u32> {
        self.returned.front().or_else(|| self.queued.front())
    }
}

impl Queues {
    pub(super) fn new(map: ShardMap) -> Queues {
        Queues {
            of_shards: map.all().iter().map(|_| Queue::default()).collect(),
            of_replies: Queue::default(),
            busy: ShardSet::EMPTY,
        }
    }

    /// Whether no command waits.
    pub(super) fn are_empty(&self) -> bool {
        self.busy.is_empty() && !self.of_replies.is_busy()
    }

    /// Shards for which commands wait. Whoever comes now comes after those.
    pub(super) fn busy(&self) -> ShardSet {
        self.busy
    }

    /// Whether commands wait for less to be owed to clients.
    pub(super) fn is_busy_with_replies(&self) -> bool {
        self.of_replies.is_busy()
    }

    /// Who is to be called next.
    pub(super) fn front(&self, place: Place) -> Option<u32> {
        self.of(place).front()
    }

    /// Whose put is to be submitted next when the shard is back.
    pub(super) fn first_held(&self, shard: ShardId) -> Option<u32> {
        self.of(Place::Shard(shard)).held.front()
    }

    pub(super) fn enter(
        &mut self,
        slot: u32,
        place: Place,
        stage: Stage,
        entries: &mut Slab<Entry>,
    ) {
        let queue = self.of_mut(place);
        match stage {
            Stage::Queued => queue.queued.push_back(slot, entries),
            Stage::Returned => queue.returned.push_back(slot, entries),
            Stage::Held => queue.held.push_back(slot, entries),
            Stage::Called => queue.called += 1,
        }
        self.look(place);
    }

    pub(super) fn leave(
        &mut self,
        slot: u32,
        place: Place,
        stage: Stage,
        entries: &mut Slab<Entry>,
    ) {
        let queue = self.of_mut(place);
        match stage {
            Stage::Queued => queue.queued.remove(slot, entries),
            Stage::Returned => queue.returned.remove(slot, entries),
            Stage::Held => queue.held.remove(slot, entries),
            Stage::Called => queue.called -= 1,
        }
        self.look(place);
    }

    fn look(&mut self, place: Place) {
        let is_busy = self.of(place).is_busy();
        if let Place::Shard(shard) = place {
            self.busy.remove(shard);
            if is_busy {
                self.busy.insert(shard);
            }
        }
    }

    fn of(&self, place: Place) -> &Queue {
        match place {
            Place::Shard(shard) => &self.of_shards[usize::from(shard.0)],
            Place::Replies => &self.of_replies,
        }
    }

    fn of_mut(&mut self, place: Place) -> &mut Queue {
        match place {
            Place::Shard(shard) => &mut self.of_shards[usize::from(shard.0)],
            Place::Replies => &mut self.of_replies,
        }
    }

    /// Counts those in the lists and those that are called.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn counted(&self) -> usize {
        let all = self.of_shards.iter().chain([&self.of_replies]);
        all.map(|q| q.returned.len() + q.queued.len() + q.held.len() + q.called)
            .sum()
    }
}

impl Linked for Slab<Entry> {
    fn links(&self, slot: u32) -> Links {
        self[slot].links
    }

    fn set_links(&mut self, slot: u32, links: Links) {
        self[slot].links = links;
    }
}
