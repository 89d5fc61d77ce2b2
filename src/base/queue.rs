//! A priority queue for entries that mostly come in order, as jobs of one priority do by their ids
//! and jobs of one delay by their deadlines.
//!
//! An entry that belongs behind all others of the run is appended to it; any other goes into a
//! heap. The first entry is the first of either. So a queue that is used first in, first out never
//! looks at more than its two ends, however long it is: in a heap of a million entries, taking the
//! first one moves ten others, and where each of them is now has to be written into a slot that is
//! in no cache. With other orders it is a heap and one comparison.
//!
//! As in [`Heap`], an owner is told where each entry is and says so to remove it, but for the run
//! that is the same for all: entries are found there by their keys.

use std::collections::VecDeque;

use crate::base::heap::{Entry, Heap};

/// See the module's description. The least key comes first; no two keys are the same.
pub struct Queue<K> {
    /// The least of all: it is looked at several times for each change.
    first: Option<Entry<K>>,
    /// All of them. None if there has never been one: many queues never have any.
    entries: Option<Box<Entries<K>>>,
}

struct Entries<K> {
    run: Run<K>,
    heap: Heap<K>,
}

/// The position of all entries of the run.
const IN_RUN: u32 = u32::MAX;

impl<K> Default for Queue<K> {
    fn default() -> Queue<K> {
        Queue {
            first: None,
            entries: None,
        }
    }
}

impl<K> Default for Entries<K> {
    fn default() -> Entries<K> {
        Entries {
            run: Run::default(),
            heap: Heap::default(),
        }
    }
}

impl<K: Ord + Copy> Queue<K> {
    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first(&self) -> Option<Entry<K>> {
        self.first
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<K>> {
        let all = self.entries.iter();
        all.flat_map(|all| all.run.iter().chain(all.heap.iter()))
    }

    /// The entry with this key, if it is at `position`. For checks: looks at all that are there.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn at(&self, position: u32, key: K) -> Option<Entry<K>> {
        let all = self.entries.as_ref()?;
        let found = if position == IN_RUN {
            all.run.iter().find(|entry| entry.key == key)
        } else {
            all.heap.iter().nth(position as usize)
        };
        found.filter(|entry| entry.key == key)
    }

    /// Adds an entry.
    pub fn push(&mut self, key: K, slot: u32, mut placed: impl FnMut(u32, u32)) {
        if self.first.is_none_or(|first| key < first.key) {
            self.first = Some(Entry { key, slot });
        }
        let all = self.entries.get_or_insert_default();
        if all.run.last().is_none_or(|last| last.key < key) {
            all.run.push(Entry { key, slot });
            placed(slot, IN_RUN);
        } else {
            all.heap.push(key, slot, placed);
        }
    }

    /// Takes out the entry with this key, which is at `position`.
    ///
    /// # Panics
    /// If it is not.
    pub fn remove(&mut self, position: u32, key: K, placed: impl FnMut(u32, u32)) -> Entry<K> {
        let all = self.entries.as_mut().expect("there is an entry");
        let removed = if position == IN_RUN {
            all.run.remove(key)
        } else {
            all.heap.remove(position, placed)
        };
        debug_assert!(removed.key == key, "an entry is where it was placed");
        if self.first.is_some_and(|first| first.key == key) {
            self.first = all.least();
        }
        removed
    }

    /// Gives the entry with this key, which is at `position`, another key.
    ///
    /// # Panics
    /// If it is not.
    pub fn change(&mut self, position: u32, key: K, changed: K, mut placed: impl FnMut(u32, u32)) {
        let entry = self.remove(position, key, &mut placed);
        self.push(changed, entry.slot, placed);
    }
}

impl<K: Ord + Copy> Entries<K> {
    fn least(&self) -> Option<Entry<K>> {
        match (self.run.first(), self.heap.first()) {
            (Some(one), Some(other)) => Some(if one.key < other.key { one } else { other }),
            (one, other) => one.or(other),
        }
    }
}

/// Entries in the order of their keys, in chunks, so that it grows without moving them all, and one
/// leaves from the middle by moving a few.
struct Run<K> {
    /// None is empty, unless it is the only one.
    chunks: VecDeque<VecDeque<Entry<K>>>,
    /// The memory of a chunk that was emptied, for the next one.
    spare: VecDeque<Entry<K>>,
}

/// Most entries of a chunk.
const CHUNK_LEN: usize = 256;
/// Entries for which a run without any keeps memory.
const KEPT_CAPACITY: usize = 64;

impl<K> Default for Run<K> {
    fn default() -> Run<K> {
        Run {
            chunks: VecDeque::new(),
            spare: VecDeque::new(),
        }
    }
}

impl<K: Ord + Copy> Run<K> {
    fn first(&self) -> Option<Entry<K>> {
        self.chunks.front()?.front().copied()
    }

    fn last(&self) -> Option<Entry<K>> {
        self.chunks.back()?.back().copied()
    }

    fn iter(&self) -> impl Iterator<Item = Entry<K>> {
        self.chunks.iter().flatten().copied()
    }

    /// Appends an entry, whose key must be greater than all others.
    fn push(&mut self, entry: Entry<K>) {
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK_LEN => chunk.push_back(entry),
            _ => self.push_chunk(entry),
        }
    }

    #[cold]
    fn push_chunk(&mut self, entry: Entry<K>) {
        let mut chunk = std::mem::take(&mut self.spare);
        chunk.push_back(entry);
        self.chunks.push_back(chunk);
    }

    fn remove(&mut self, key: K) -> Entry<K> {
        if let Some(chunk) = self.chunks.front_mut()
            && let Some(&first) = chunk.front()
            && first.key == key
        {
            chunk.pop_front();
            if chunk.is_empty() && self.has_more_than_is_kept() {
                self.drop_chunk(0);
            }
            return first;
        }
        self.remove_later(key)
    }

    /// Takes out an entry that is not the first.
    fn remove_later(&mut self, key: K) -> Entry<K> {
        let is_before = |chunk: &VecDeque<Entry<K>>| chunk.front().is_some_and(|e| e.key <= key);
        let at = self.chunks.partition_point(is_before).saturating_sub(1);
        let chunk = &mut self.chunks[at];
        let removed = chunk
            .binary_search_by_key(&key, |entry| entry.key)
            .ok()
            .and_then(|index| chunk.remove(index))
            .expect("an entry is where it was placed");
        if chunk.is_empty() {
            self.drop_chunk(at);
        }
        removed
    }

    /// Whether there is memory for more entries than an empty run keeps it for.
    fn has_more_than_is_kept(&self) -> bool {
        self.chunks.len() > 1 || self.chunks[0].capacity() > KEPT_CAPACITY
    }

    /// Deals with the chunk at `at`, which has become empty.
    #[cold]
    fn drop_chunk(&mut self, at: usize) {
        if self.chunks.len() > 1 {
            self.spare = self.chunks.remove(at).unwrap_or_default();
        } else {
            // There is no backlog any more.
            self.chunks[at].shrink_to(KEPT_CAPACITY);
            self.spare = VecDeque::new();
        }
        if self.chunks.capacity() > KEPT_CAPACITY.max(4 * self.chunks.len()) {
            self.chunks.shrink_to(2 * self.chunks.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    proptest! {
        #![proptest_config(property_config())]

        // Of three keys two grow, so that the run fills several chunks and the heap something.
        #[test]
        fn a_queue_is_a_sorted_set(steps in prop::collection::vec(any::<u16>(), 0..3000)) {
            let mut queue = Queue::default();
            let mut model = BTreeMap::new();
            let mut positions = Vec::new();
            for step in steps {
                let number = usize::from(step / 8);
                let chosen = match step % 8 {
                    0 => model.first_key_value(),
                    1 => model.iter().nth(number % model.len().max(1)),
                    _ => None,
                };
                if let Some((&key, &slot)) = chosen {
                    let position = positions[slot as usize];
                    let placed = |slot, at| positions[slot as usize] = at;
                    prop_assert_eq!(queue.remove(position, key, placed), Entry { key, slot });
                    model.remove(&key);
                } else {
                    let slot = positions.len() as u32;
                    let key = if step % 3 == 0 { (number as u32, slot) } else { (9000, slot) };
                    positions.push(0);
                    queue.push(key, slot, |slot, at| positions[slot as usize] = at);
                    model.insert(key, slot);
                }
                let first = model.first_key_value().map(|(&key, &slot)| Entry { key, slot });
                prop_assert_eq!(queue.first(), first);
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
            let mut listed: Vec<_> = queue.iter().map(|entry| (entry.key, entry.slot)).collect();
            listed.sort_unstable();
            prop_assert_eq!(listed, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_comes_in_order_is_never_moved() {
        let mut queue = Queue::default();
        let mut placed = 0;
        (0..10_000u32).for_each(|n| queue.push(n, n, |_, _| placed += 1));
        for n in 0..10_000 {
            queue.push(10_000 + n, n, |_, _| placed += 1);
            queue.remove(IN_RUN, n, |_, _| placed += 1);
        }
        assert_eq!(placed, 20_000);
    }

    #[test]
    fn memory_goes_back_when_a_large_queue_is_emptied() {
        // From the front, and chunk by chunk out of the middle.
        for step in [1, CHUNK_LEN as u32 + 1] {
            let mut queue = Queue::default();
            let len = 100_000u32;
            (0..len).for_each(|n| queue.push(n, n, |_, _| {}));
            for start in 0..step {
                for n in (start..len).step_by(step as usize) {
                    queue.remove(IN_RUN, n, |_, _| {});
                }
            }
            let run = &queue.entries.expect("there were some").run;
            assert!(run.chunks.len() == 1 && run.chunks.capacity() <= KEPT_CAPACITY);
            assert!(run.chunks[0].capacity() <= KEPT_CAPACITY && run.spare.capacity() == 0);
        }
    }
}
