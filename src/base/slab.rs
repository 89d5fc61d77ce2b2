//! Slots with stable `u32` keys. Keys are reused; a slot that is reused costs no allocation.
//!
//! Slots live in pages, and a page whose last slot is freed goes back to the allocator, so that
//! the memory of a large backlog does not stay when the backlog is gone. One empty page is kept,
//! lest a load that goes up and down at a page's edge allocates all the time.

use std::ops::{Index, IndexMut};

/// See the module's description.
pub struct Slab<T> {
    pages: Vec<Option<Box<Page<T>>>>,
    /// Pages with room, in no order.
    open: Vec<u32>,
    /// Indices of `pages` without a page.
    vacant: Vec<u32>,
    /// Pages that hold nothing.
    empty: usize,
    len: usize,
}

struct Page<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    live: u32,
    /// Where the page stands in `Slab::open`, or [`NOWHERE`].
    open_index: u32,
}

enum Slot<T> {
    Live(T),
    /// Next free slot of the page, or [`NOWHERE`].
    Free(u32),
}

/// Slots in a page.
const PAGE_LEN: u32 = 256;
/// Pages without a slot in use that are kept.
const EMPTY_PAGES_MAX: usize = 1;
const NOWHERE: u32 = u32::MAX;

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            pages: Vec::new(),
            open: Vec::new(),
            vacant: Vec::new(),
            empty: 0,
            len: 0,
        }
    }
}

impl<T> Slab<T> {
    /// Number of slots in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no slot is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores `value`; the key is its own until [`Slab::remove`].
    pub fn insert(&mut self, value: T) -> u32 {
        self.insert_with(|_| value)
    }

    /// Stores what `make` returns when told the key.
    pub fn insert_with(&mut self, make: impl FnOnce(u32) -> T) -> u32 {
        let page_index = match self.open.last() {
            Some(&index) => index,
            None => self.add_page(),
        };
        let page = self.pages[page_index as usize]
            .as_deref_mut()
            .expect("an open page is there");
        if page.live == 0 {
            self.empty -= 1;
        }
        let slot = if page.free == NOWHERE {
            page.slots.len() as u32
        } else {
            page.free
        };
        let key = page_index * PAGE_LEN + slot;
        let value = Slot::Live(make(key));
        if let Some(place) = page.slots.get_mut(slot as usize) {
            let Slot::Free(next) = std::mem::replace(place, value) else {
                unreachable!("the free list names free slots only")
            };
            page.free = next;
        } else {
            page.slots.push(value);
        }
        page.live += 1;
        self.len += 1;
        if page.live == PAGE_LEN {
            page.open_index = NOWHERE;
            self.open.pop();
        }
        key
    }

    /// Empties the slot of `key`.
    ///
    /// # Panics
    /// If the slot is not in use.
    pub fn remove(&mut self, key: u32) -> T {
        let (page_index, slot) = (key / PAGE_LEN, key % PAGE_LEN);
        let page = self.pages[page_index as usize]
            .as_deref_mut()
            .expect("slot is live");
        let free = Slot::Free(page.free);
        let Slot::Live(value) = std::mem::replace(&mut page.slots[slot as usize], free) else {
            panic!("slot is live");
        };
        page.free = slot;
        page.live -= 1;
        self.len -= 1;
        if page.open_index == NOWHERE {
            page.open_index = self.open.len() as u32;
            self.open.push(page_index);
        }
        if page.live == 0 {
            self.empty += 1;
            if self.empty > EMPTY_PAGES_MAX {
                self.drop_page(page_index);
            }
        }
        value
    }

    /// What is in the slot of `key`, if it is in use.
    #[must_use]
    pub fn get(&self, key: u32) -> Option<&T> {
        let page = self.pages.get((key / PAGE_LEN) as usize)?.as_deref()?;
        match page.slots.get((key % PAGE_LEN) as usize)? {
            Slot::Live(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    /// What is in the slot of `key`, if it is in use.
    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        let page = self
            .pages
            .get_mut((key / PAGE_LEN) as usize)?
            .as_deref_mut()?;
        match page.slots.get_mut((key % PAGE_LEN) as usize)? {
            Slot::Live(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    /// All slots in use, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.pages
            .iter()
            .zip(0u32..)
            .flat_map(|(page, page_index)| {
                let slots = page.as_deref().map_or(&[][..], |page| &page.slots[..]);
                slots
                    .iter()
                    .zip(0u32..)
                    .filter_map(move |(slot, index)| match slot {
                        Slot::Live(value) => Some((page_index * PAGE_LEN + index, value)),
                        Slot::Free(_) => None,
                    })
            })
    }

    fn add_page(&mut self) -> u32 {
        let page = Box::new(Page {
            slots: Vec::with_capacity(PAGE_LEN as usize),
            free: NOWHERE,
            live: 0,
            open_index: self.open.len() as u32,
        });
        let index = match self.vacant.pop() {
            Some(index) => {
                self.pages[index as usize] = Some(page);
                index
            }
            None => {
                self.pages.push(Some(page));
                self.pages.len() as u32 - 1
            }
        };
        self.open.push(index);
        self.empty += 1;
        index
    }

    fn drop_page(&mut self, index: u32) {
        let page = self.pages[index as usize]
            .take()
            .expect("an empty page is there");
        let at = page.open_index as usize;
        self.open.swap_remove(at);
        if let Some(&moved) = self.open.get(at) {
            let moved = self.pages[moved as usize]
                .as_deref_mut()
                .expect("an open page is there");
            moved.open_index = at as u32;
        }
        self.vacant.push(index);
        self.empty -= 1;
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
        assert_eq!(slab.pages.iter().flatten().count(), 100);
        for &key in keys.iter().rev() {
            slab.remove(key);
        }
        assert_eq!(slab.pages.iter().flatten().count(), EMPTY_PAGES_MAX);
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
