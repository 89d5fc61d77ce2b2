//! First-in-first-out lists threaded through the slots of a slab: no memory of their own, and
//! entries leave from the middle in constant time.

/// A list. Its entries are slots whose [`Links`] the owner keeps.
#[derive(Debug, Default)]
pub struct List {
    ends: Option<Ends>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    front: u32,
    back: u32,
}

/// An entry's neighbours. Meaningless while the entry is in no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    before: u32,
    after: u32,
}

/// Whoever keeps the links of all entries.
pub trait Linked {
    /// The links of `slot`.
    fn links(&self, slot: u32) -> Links;
    /// Replaces the links of `slot`.
    fn set_links(&mut self, slot: u32, links: Links);
}

const NOBODY: u32 = u32::MAX;

impl Links {
    /// Links of an entry that is in no list.
    pub const NONE: Links = Links {
        before: NOBODY,
        after: NOBODY,
    };
}

impl List {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry that was added first.
    #[must_use]
    pub fn front(&self) -> Option<u32> {
        self.ends.map(|ends| ends.front)
    }

    /// Adds `slot`, which must be in no list of the same links, at the end.
    pub fn push_back(&mut self, slot: u32, linked: &mut impl Linked) {
        let before = self.ends.map_or(NOBODY, |ends| ends.back);
        linked.set_links(
            slot,
            Links {
                before,
                after: NOBODY,
            },
        );
        let front = match self.ends {
            Some(ends) => {
                let last = Links {
                    after: slot,
                    ..linked.links(ends.back)
                };
                linked.set_links(ends.back, last);
                ends.front
            }
            None => slot,
        };
        self.ends = Some(Ends { front, back: slot });
        self.len += 1;
    }

    /// Takes out `slot`, which must be in this list.
    pub fn remove(&mut self, slot: u32, linked: &mut impl Linked) {
        let ends = self.ends.expect("an entry's list is not empty");
        let links = linked.links(slot);
        if links.before != NOBODY {
            let before = Links {
                after: links.after,
                ..linked.links(links.before)
            };
            linked.set_links(links.before, before);
        }
        if links.after != NOBODY {
            let after = Links {
                before: links.before,
                ..linked.links(links.after)
            };
            linked.set_links(links.after, after);
        }
        let front = if ends.front == slot {
            links.after
        } else {
            ends.front
        };
        let back = if ends.back == slot {
            links.before
        } else {
            ends.back
        };
        self.ends = (front != NOBODY).then_some(Ends { front, back });
        self.len -= 1;
    }

    /// The entries, first to last.
    pub fn iter<'a>(&self, linked: &'a impl Linked) -> impl Iterator<Item = u32> + 'a {
        let mut next = self.front();
        std::iter::from_fn(move || {
            let slot = next?;
            let after = linked.links(slot).after;
            next = (after != NOBODY).then_some(after);
            Some(slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    impl Linked for Vec<Links> {
        fn links(&self, slot: u32) -> Links {
            self[slot as usize]
        }

        fn set_links(&mut self, slot: u32, links: Links) {
            self[slot as usize] = links;
        }
    }

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn a_list_keeps_the_order_of_arrival(
            steps in prop::collection::vec((any::<bool>(), 0..16u32), 0..200),
        ) {
            let mut links = vec![Links::NONE; 16];
            let mut list = List::default();
            let mut model: Vec<u32> = Vec::new();
            for (add, slot) in steps {
                match model.iter().position(|&s| s == slot) {
                    None if add => {
                        model.push(slot);
                        list.push_back(slot, &mut links);
                    }
                    Some(at) if !add => {
                        model.remove(at);
                        list.remove(slot, &mut links);
                    }
                    _ => {}
                }
                prop_assert_eq!(list.len(), model.len());
                prop_assert_eq!(list.iter(&links).collect::<Vec<_>>(), model.clone());
            }
        }
    }
}
