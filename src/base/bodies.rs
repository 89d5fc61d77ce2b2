//! Where the bodies of jobs are kept. Small ones lie in cells of a few sizes, side by side and
//! without anything before or between them, because the allocator's header and a count of holders
//! cost a body of 64 bytes half as much again: 96 bytes each, here 64. They are copied once on
//! their way in and once on their way out, and nobody shares them. Large ones are kept as they
//! come and shared.

use crate::base::body::{Body, BodyCow};
use crate::base::limits::BODY_COPY_LEN_MAX;
use crate::base::pages::{NOWHERE, Pages};
use crate::base::slab::Slab;

/// See the module's description.
#[derive(Default)]
pub struct Bodies {
    /// Small bodies, by the size of their cells.
    cells: [Pages<Cells>; CLASSES],
    large: Slab<Body>,
}

/// A body that is kept: its place, which is used again once it is removed.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    at: u32,
    len: u32,
}

/// The cells of a page.
#[derive(Default)]
struct Cells {
    /// Those that have ever been in use. In a cell that is free, the first four bytes are the next
    /// free one.
    bytes: Vec<u8>,
    /// First free cell, or [`NOWHERE`].
    free: u32,
}

/// Sizes of cells.
const CLASSES: usize = 24;
/// Most bytes that the cells of a page take, as a power of two: 16 KiB.
const PAGE_SHIFT: u32 = 14;

/// A size of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    /// Its place among the sizes.
    index: usize,
    /// Bytes of a cell.
    size: usize,
    /// Cells of a page, as a power of two.
    page_shift: u32,
}

impl Class {
    /// The smallest cells that `len` bytes fit in, of which there are at least one and at most
    /// [`BODY_COPY_LEN_MAX`]. Up to 128 bytes sizes are 16 apart, then there are four to each
    /// doubling: at most 15 bytes or a fifth are left unused.
    #[inline]
    fn of(len: usize) -> Class {
        let last = len - 1;
        let (index, size) = if last < 128 {
            (last / 16, (last / 16 + 1) * 16)
        } else {
            let step = last.ilog2() - 2;
            let steps = last >> step;
            let doublings = step as usize - 5;
            (8 + 4 * doublings + steps - 4, (steps + 1) << step)
        };
        Class {
            index,
            size,
            page_shift: PAGE_SHIFT - (size - 1).ilog2() - 1,
        }
    }

    fn page_len(self) -> u32 {
        1 << self.page_shift
    }

    /// The page of a place, and the cell in it.
    fn split(self, at: u32) -> (u32, u32) {
        (at >> self.page_shift, at & (self.page_len() - 1))
    }
}

impl Bodies {
    /// Keeps a body until [`Bodies::remove`]. A small one is copied, a large one shared, unless it
    /// is only lent.
    pub fn insert(&mut self, body: &BodyCow<'_>) -> Kept {
        let len = body.len();
        let at = if len == 0 {
            0
        } else if len <= BODY_COPY_LEN_MAX {
            self.insert_small(body)
        } else {
            self.large.insert(body.to_body())
        };
        Kept {
            at,
            len: len as u32,
        }
    }

    /// The body that is kept there.
    ///
    /// # Panics
    /// If it was removed and its memory is gone.
    #[must_use]
    pub fn get(&self, kept: Kept) -> BodyCow<'_> {
        match kept.len() {
            0 => BodyCow::Borrowed(&[]),
            len if len <= BODY_COPY_LEN_MAX => {
                let class = Class::of(len);
                let (page, cell) = class.split(kept.at);
                let cells = self.cells[class.index].get(page).expect("body is kept");
                let from = cell as usize * class.size;
                BodyCow::Borrowed(&cells.bytes[from..from + len])
            }
            _ => BodyCow::Shared(self.large[kept.at].clone()),
        }
    }

    /// Frees the place of a body.
    pub fn remove(&mut self, kept: Kept) {
        match kept.len() {
            0 => {}
            len if len <= BODY_COPY_LEN_MAX => {
                let class = Class::of(len);
                let (page, cell) = class.split(kept.at);
                self.cells[class.index].give_back(page, |cells| cells.clear(cell, class));
            }
            _ => drop(self.large.remove(kept.at)),
        }
    }

    fn insert_small(&mut self, body: &[u8]) -> u32 {
        let class = Class::of(body.len());
        self.cells[class.index].take(
            class.page_len(),
            || Cells::new(class),
            |page, cells| page << class.page_shift | cells.fill(body, class),
        )
    }
}

impl Kept {
    /// Length of the body in bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(self) -> usize {
        self.len as usize
    }
}

impl Cells {
    fn new(class: Class) -> Cells {
        Cells {
            bytes: Vec::with_capacity(class.size << class.page_shift),
            free: NOWHERE,
        }
    }

    /// Puts the body into a free cell.
    fn fill(&mut self, body: &[u8], class: Class) -> u32 {
        if self.free == NOWHERE {
            let from = self.bytes.len();
            self.bytes.extend_from_slice(body);
            self.bytes.resize(from + class.size, 0);
            return (from / class.size) as u32;
        }
        let cell = self.free;
        let from = cell as usize * class.size;
        let place = &mut self.bytes[from..from + class.size];
        if let Some(next) = place.first_chunk() {
            self.free = u32::from_ne_bytes(*next);
        }
        place[..body.len()].copy_from_slice(body);
        cell
    }

    fn clear(&mut self, cell: u32, class: Class) {
        let from = cell as usize * class.size;
        if let Some(next) = self.bytes[from..].first_chunk_mut() {
            *next = self.free.to_ne_bytes();
        }
        self.free = cell;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::pages::EMPTY_PAGES_MAX;
    use crate::base::property_config;

    const PAGE_BYTES: usize = 1 << PAGE_SHIFT;

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn what_is_kept_stays_as_it_is(
            steps in prop::collection::vec((any::<u8>(), 0..2100usize, 0..70usize), 0..300),
        ) {
            let mut bodies = Bodies::default();
            let mut model: Vec<(Kept, Vec<u8>)> = Vec::new();
            for (byte, long, short) in steps {
                if byte % 3 == 0 && !model.is_empty() {
                    let (kept, bytes) = model.swap_remove(long % model.len());
                    prop_assert_eq!(&bodies.get(kept)[..], &bytes[..]);
                    bodies.remove(kept);
                } else {
                    let len = if byte % 2 == 0 { long } else { short };
                    let bytes = vec![byte; len];
                    model.push((bodies.insert(&BodyCow::Borrowed(&bytes)), bytes));
                }
            }
            for (kept, bytes) in model {
                prop_assert_eq!(&bodies.get(kept)[..], &bytes[..]);
            }
        }
    }

    #[test]
    fn every_length_has_a_cell_that_it_fits_without_much_waste() {
        let mut before = Class::of(1);
        for len in 1..=BODY_COPY_LEN_MAX {
            let class = Class::of(len);
            assert!(len <= class.size && class.size - len <= 15.max(len / 4));
            assert!(class.index == before.index || class.index == before.index + 1);
            assert_eq!(class.index == before.index, class.size == before.size);
            let page_bytes = class.size << class.page_shift;
            assert!((PAGE_BYTES / 2 + 1..=PAGE_BYTES).contains(&page_bytes));
            before = class;
        }
        assert_eq!(before.index, CLASSES - 1);
    }

    #[test]
    fn pages_go_back_when_their_last_body_is_removed() {
        let mut bodies = Bodies::default();
        let body = [7; 64];
        let kept: Vec<_> = (0..100 * PAGE_BYTES / 64)
            .map(|_| bodies.insert(&BodyCow::Borrowed(&body)))
            .collect();
        let pages = |bodies: &Bodies| bodies.cells[Class::of(64).index].count();
        assert_eq!(pages(&bodies), 100);
        kept.into_iter().for_each(|kept| bodies.remove(kept));
        assert_eq!(pages(&bodies), EMPTY_PAGES_MAX);
    }

    #[test]
    fn a_large_body_is_shared_and_a_small_one_is_not() {
        let mut bodies = Bodies::default();
        for (len, holders) in [(BODY_COPY_LEN_MAX, 1), (BODY_COPY_LEN_MAX + 1, 2)] {
            let body = Body::from_vec(vec![7; len]);
            let kept = bodies.insert(&body.clone().into());
            assert_eq!(body.holders(), holders);
            assert_eq!(&bodies.get(kept)[..], &body[..]);
            bodies.remove(kept);
            assert_eq!(body.holders(), 1);
        }
    }
}
