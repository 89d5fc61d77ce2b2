//! Slots with stable `u32` keys. Keys are reused; a slot that is reused costs no allocation, and
//! the memory of slots goes back page by page, see `base::pages`.

use std::ops::{Index, IndexMut};

use crate::base::pages::{NOWHERE, Pages};

/// See the module's description.
pub struct Slab<T> {
    pages: Pages<Slots<T>>,
}

/// The slots of a page.
struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// First free slot among them, or [`NOWHERE`].
    free: u32,
}

enum Slot<T> {
    Live(T),
    /// Next free slot of the page, or [`NOWHERE`].
    Free(u32),
}

/// Bytes that a `T` takes in a slab.
#[must_use]
pub const fn slot_bytes<T>() -> usize {
    size_of::<Slot<T>>()
}

/// Slots in a page.
const PAGE_LEN: u32 = 256;

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        let pages = Pages::default();
        Slab { pages }
    }
}

impl<T> Slab<T> {
    /// Number of slots in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether no slot is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stores `value`; the key is its own until [`Slab::remove`].
    pub fn insert(&mut self, value: T) -> u32 {
        self.insert_with(|_| value)
    }

    /// Stores what `make` returns when told the key.
    pub fn insert_with(&mut self, make: impl FnOnce(u32) -> T) -> u32 {
        self.pages.take(PAGE_LEN, Slots::new, |page, slots| {
            let key = page * PAGE_LEN + slots.next();
            slots.fill(make(key));
            key
        })
    }

    /// Empties the slot of `key`.
    ///
    /// # Panics
    /// If the slot is not in use.
    pub fn remove(&mut self, key: u32) -> T {
        let (page, slot) = (key / PAGE_LEN, key % PAGE_LEN);
        self.pages.give_back(page, |slots| slots.clear(slot))
    }

    /// What is in the slot of `key`, if it is in use.
    #[must_use]
    pub fn get(&self, key: u32) -> Option<&T> {
        let slots = self.pages.get(key / PAGE_LEN)?;
        match slots.slots.get((key % PAGE_LEN) as usize)? {
            Slot::Live(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    /// What is in the slot of `key`, if it is in use.
    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        let slots = self.pages.get_mut(key / PAGE_LEN)?;
        match slots.slots.get_mut((key % PAGE_LEN) as usize)? {
            Slot::Live(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    /// All slots in use, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.pages.iter().flat_map(|(page, slots)| {
            let numbered = (0u32..).zip(&slots.slots);
            numbered.filter_map(move |(index, slot)| match slot {
                Slot::Live(value) => Some((page * PAGE_LEN + index, value)),
                Slot::Free(_) => None,
            })
        })
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            slots: Vec::new(),
            free: NOWHERE,
        }
    }
}

impl<T> Slots<T> {
    fn new() -> Slots<T> {
        Slots {
            slots: Vec::with_capacity(PAGE_LEN as usize),
            free: NOWHERE,
        }
    }

    /// The slot that is filled next.
    fn next(&self) -> u32 {
        if self.free == NOWHERE {
            self.slots.len() as u32
        } else {
            self.free
        }
    }

    fn fill(&mut self, value: T) {
        let value = Slot::Live(value);
        if let Some(place) = self.slots.get_mut(self.free as usize) {
            let Slot::Free(next) = std::mem::replace(place, value) else {
                unreachable!("the free list names free slots only")
            };
            self.free = next;
        } else {
            self.slots.push(value);
        }
    }

    fn clear(&mut self, slot: u32) -> T {
        let free = Slot::Free(self.free);
        let Slot::Live(value) = std::mem::replace(&mut self.slots[slot as usize], free) else {
            panic!("slot is live");
        };
        self.free = slot;
        value
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, key: u32) -> &T {
        self.get(key).expect("slot is live")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, key: u32) -> &mut T {
        self.get_mut(key).expect("slot is live")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::pages::EMPTY_PAGES_MAX;
    use crate::base::property_config;

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn a_slab_is_a_map_with_keys_of_its_own(
            steps in prop::collection::vec(any::<u16>(), 0..3000),
        ) {
            let mut slab = Slab::default();
            let mut model = BTreeMap::new();
            for step in steps {
                // Long runs of either kind, so that pages fill and empty.
                if step & 0x300 != 0 || model.is_empty() {
                    let key = slab.insert(step);
                    prop_assert_eq!(model.insert(key, step), None);
                } else {
                    for _ in 0..(step % 64).min(model.len() as u16) {
                        let at = usize::from(step) % model.len();
                        let (&key, &value) = model.iter().nth(at).unwrap();
                        model.remove(&key);
                        prop_assert_eq!(slab.remove(key), value);
                        prop_assert!(slab.get(key).is_none());
                    }
                }
                prop_assert_eq!(slab.len(), model.len());
            }
            let listed: Vec<_> = slab.iter().map(|(key, &value)| (key, value)).collect();
            prop_assert_eq!(listed, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn pages_go_back_when_their_last_slot_is_freed() {
        let mut slab = Slab::default();
        let keys: Vec<_> = (0..100 * PAGE_LEN).map(|i| slab.insert(i)).collect();
        assert_eq!(slab.pages.count(), 100);
        for &key in keys.iter().rev() {
            slab.remove(key);
        }
        assert_eq!(slab.pages.count(), EMPTY_PAGES_MAX);
        let again = slab.insert(0);
        assert!(
            again < 100 * PAGE_LEN,
            "keys of returned pages are used again"
        );
    }

    #[test]
    #[should_panic(expected = "slot is live")]
    fn removing_twice_is_a_fault() {
        let mut slab = Slab::default();
        let key = slab.insert(());
        slab.remove(key);
        slab.remove(key);
    }
}
