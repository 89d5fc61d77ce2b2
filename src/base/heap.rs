//! A priority queue whose owner knows where each entry is, so that entries leave from the middle.
//!
//! Entries carry their key, so that comparing touches the heap's own memory alone, and a slot: the
//! owner's name for the entry. Each call that moves entries tells the owner where they are now
//! (`placed(slot, position)`), and the owner hands that position back to remove or change one. A
//! 4-ary heap: half the levels of a binary one, and the children of an entry share a cache line.

use crate::base::sift::{self, Nodes};

/// See the module's description. The least key comes first.
pub struct Heap<K> {
    entries: Vec<Entry<K>>,
}

/// A key and the owner's name for what has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<K> {
    /// What entries are ordered by.
    pub key: K,
    /// The owner's name for the entry.
    pub slot: u32,
}

const ARITY: usize = 4;
/// Below this capacity, in entries, memory is not given back.
const KEPT_CAPACITY: usize = 64;

impl<K> Default for Heap<K> {
    fn default() -> Heap<K> {
        Heap {
            entries: Vec::new(),
        }
    }
}

impl<K: Ord + Copy> Heap<K> {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first(&self) -> Option<Entry<K>> {
        self.entries.first().copied()
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<K>> {
        self.entries.iter().copied()
    }

    /// Adds an entry.
    pub fn push(&mut self, key: K, slot: u32, placed: impl FnMut(u32, u32)) {
        self.entries.push(Entry { key, slot });
        let last = self.entries.len() - 1;
        sift::rise(&mut self.placing(placed), ARITY, last);
    }

    /// Takes out the entry at `position`.
    ///
    /// # Panics
    /// If there is none.
    pub fn remove(&mut self, position: u32, placed: impl FnMut(u32, u32)) -> Entry<K> {
        let position = position as usize;
        let removed = self.entries.swap_remove(position);
        if position < self.entries.len() {
            sift::settle(&mut self.placing(placed), ARITY, position);
        }
        if self.entries.capacity() > KEPT_CAPACITY.max(4 * self.entries.len()) {
            self.entries
                .shrink_to(KEPT_CAPACITY.max(2 * self.entries.len()));
        }
        removed
    }

    /// Gives the entry at `position` another key.
    ///
    /// # Panics
    /// If there is none.
    pub fn change(&mut self, position: u32, key: K, placed: impl FnMut(u32, u32)) {
        self.entries[position as usize].key = key;
        sift::settle(&mut self.placing(placed), ARITY, position as usize);
    }

    /// Gives the entry at `position` another name.
    ///
    /// # Panics
    /// If there is none.
    pub fn rename(&mut self, position: u32, slot: u32) {
        self.entries[position as usize].slot = slot;
    }

    fn placing<F: FnMut(u32, u32)>(&mut self, placed: F) -> Placing<'_, K, F> {
        let entries = &mut self.entries;
        Placing { entries, placed }
    }
}

/// A heap's entries, and how their owner is told where they are.
struct Placing<'a, K, F> {
    entries: &'a mut [Entry<K>],
    placed: F,
}

impl<K: Ord + Copy, F: FnMut(u32, u32)> Nodes for Placing<'_, K, F> {
    type Node = Entry<K>;

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn node(&self, at: usize) -> Entry<K> {
        self.entries[at]
    }

    fn put(&mut self, at: usize, node: Entry<K>) {
        self.entries[at] = node;
        (self.placed)(node.slot, at as u32);
    }

    fn precedes(&self, one: &Entry<K>, other: &Entry<K>) -> bool {
        one.key < other.key
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn a_heap_is_a_sorted_set(steps in prop::collection::vec((0..4u8, any::<u32>()), 0..500)) {
            let mut heap = Heap::default();
            let mut model = BTreeSet::new();
            let mut keys = Vec::new();
            let mut positions: Vec<Option<u32>> = Vec::new();
            for (kind, number) in steps {
                let live: Vec<u32> =
                    (0..).zip(&positions).filter(|(_, p)| p.is_some()).map(|(s, _)| s).collect();
                let chosen = live.get(number as usize % live.len().max(1)).copied();
                match (kind, chosen) {
                    (2, Some(slot)) => {
                        let at = positions[slot as usize].take().unwrap();
                        let removed =
                            heap.remove(at, |slot, at| positions[slot as usize] = Some(at));
                        prop_assert_eq!(removed.slot, slot);
                        prop_assert!(model.remove(&(removed.key, slot)));
                    }
                    (3, Some(slot)) => {
                        let at = positions[slot as usize].unwrap();
                        model.remove(&(keys[slot as usize], slot));
                        keys[slot as usize] = number % 50;
                        model.insert((number % 50, slot));
                        let placed = |slot, at| positions[slot as usize] = Some(at);
                        heap.change(at, number % 50, placed);
                    }
                    _ => {
                        let slot = keys.len() as u32;
                        keys.push(number % 50);
                        positions.push(None);
                        model.insert((number % 50, slot));
                        let placed = |slot, at| positions[slot as usize] = Some(at);
                        heap.push(number % 50, slot, placed);
                    }
                }
                prop_assert_eq!(heap.len(), model.len());
                prop_assert_eq!(heap.first().map(|e| e.key), model.first().map(|&(key, _)| key));
                for entry in heap.iter() {
                    let at = positions[entry.slot as usize].unwrap();
                    prop_assert_eq!(heap.entries[at as usize], entry);
                }
            }
        }
    }

    #[test]
    fn memory_goes_back_when_a_large_heap_is_emptied() {
        let mut heap = Heap::default();
        for i in 0..100_000u32 {
            heap.push(i, i, |_, _| {});
        }
        while !heap.is_empty() {
            heap.remove(0, |_, _| {});
        }
        assert!(heap.entries.capacity() <= KEPT_CAPACITY);
    }
}
