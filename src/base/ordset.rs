//! A set that remembers an order, as the original keeps its lists of tubes: new entries go to the
//! end, and a removed entry's place is taken by the last one. A client sees that order in
//! `list-tubes` and `list-tubes-watched` (legacy-behaviour L3.23).

use hashbrown::HashTable;
use smallvec::SmallVec;

/// See the module's description. Finding is by hash once the set is large, by looking at each
/// entry while it is small. The caller supplies the hash, always the same for equal entries.
#[derive(Debug)]
pub struct OrdSet<T> {
    /// Most sets have one entry for as long as they live, and there are many of them: one entry
    /// costs no memory of its own.
    items: SmallVec<[T; 1]>,
    /// Indices of `items`, by hash. Only there while the set is large.
    index: Option<Box<HashTable<u32>>>,
}

/// Entries that are searched without an index.
const UNINDEXED_LEN_MAX: usize = 8;

impl<T> Default for OrdSet<T> {
    fn default() -> OrdSet<T> {
        OrdSet {
            items: SmallVec::new(),
            index: None,
        }
    }
}

impl<T> OrdSet<T> {
    /// The entries in order.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The entries in order. Changing an entry must leave its hash and equality alone.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Where the entry stands that has this hash and satisfies `is_it`.
    pub fn position(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<usize> {
        match &self.index {
            Some(index) => index
                .find(hash, |&at| is_it(&self.items[at as usize]))
                .map(|&at| at as usize),
            None => self.items.iter().position(is_it),
        }
    }

    /// Adds an entry that is not in the set yet.
    pub fn push(&mut self, item: T, hash_of: impl Fn(&T) -> u64) {
        let at = self.items.len() as u32;
        let hash = hash_of(&item);
        self.items.push(item);
        match &mut self.index {
            Some(index) => {
                let items = &self.items;
                index.insert_unique(hash, at, |&at| hash_of(&items[at as usize]));
            }
            None if self.items.len() > UNINDEXED_LEN_MAX => {
                let mut index = HashTable::with_capacity(2 * self.items.len());
                for (item, at) in self.items.iter().zip(0u32..) {
                    let items = &self.items;
                    index.insert_unique(hash_of(item), at, |&at| hash_of(&items[at as usize]));
                }
                self.index = Some(Box::new(index));
            }
            None => {}
        }
    }

    /// Takes out the entry at `at`; the last one takes its place.
    ///
    /// # Panics
    /// If there is none.
    pub fn swap_remove(&mut self, at: usize, hash_of: impl Fn(&T) -> u64) -> T {
        if let Some(index) = &mut self.index {
            let last = self.items.len() - 1;
            if let Ok(entry) = index.find_entry(hash_of(&self.items[at]), |&i| i as usize == at) {
                entry.remove();
            }
            if last != at
                && let Some(moved) =
                    index.find_mut(hash_of(&self.items[last]), |&i| i as usize == last)
            {
                *moved = at as u32;
            }
        }
        let item = self.items.swap_remove(at);
        if self.items.len() <= UNINDEXED_LEN_MAX / 2 {
            self.index = None;
            self.items.shrink_to_fit();
        } else if self.items.capacity() > 4 * self.items.len() {
            self.shrink(hash_of);
        }
        item
    }

    /// Gives back the memory that a much larger set has left.
    fn shrink(&mut self, hash_of: impl Fn(&T) -> u64) {
        let kept = 2 * self.items.len();
        let mut items = SmallVec::with_capacity(kept);
        items.append(&mut self.items);
        self.items = items;
        if let Some(index) = &mut self.index {
            let items = &self.items;
            index.shrink_to(kept, |&at| hash_of(&items[at as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn large_and_small_sets_find_alike(
            steps in prop::collection::vec((any::<bool>(), 0..24u64), 0..400),
        ) {
            // A hash with collisions, so that equality has to decide.
            let hash_of = |n: &u64| n % 5;
            let mut set = OrdSet::default();
            let mut model: Vec<u64> = Vec::new();
            for (add, n) in steps {
                let at = set.position(hash_of(&n), |&m| m == n);
                prop_assert_eq!(at, model.iter().position(|&m| m == n));
                match at {
                    None if add => {
                        set.push(n, hash_of);
                        model.push(n);
                    }
                    Some(at) if !add => {
                        prop_assert_eq!(set.swap_remove(at, hash_of), n);
                        model.swap_remove(at);
                    }
                    _ => {}
                }
                prop_assert_eq!(set.as_slice(), &model[..]);
            }
        }
    }
}
