//! The pages that slots live in, whatever a slot is: which of them have room, and when one goes
//! back to the allocator. That is when its last slot is freed, so that the memory of a large
//! backlog does not stay when the backlog is gone. One empty page is kept, lest a load that goes
//! up and down at a page's edge allocates all the time.

/// See the module's description. `S` are the slots of one page; its default has none and takes no
/// memory.
pub(super) struct Pages<S> {
    pages: Vec<Page<S>>,
    /// Pages with room, in no order.
    open: Vec<u32>,
    /// Indices in `pages` of those that went back: they have no slots.
    vacant: Vec<u32>,
    /// Pages that hold nothing.
    empty: usize,
    /// Slots in use.
    len: usize,
}

/// In place, not boxed: one look less on the way to a slot.
struct Page<S> {
    slots: S,
    live: u32,
    /// Where the page stands in `Pages::open`, or [`NOWHERE`].
    open_index: u32,
}

/// Pages without a slot in use that are kept.
pub(super) const EMPTY_PAGES_MAX: usize = 1;
/// What stands for no index.
pub(super) const NOWHERE: u32 = u32::MAX;

impl<S> Default for Pages<S> {
    fn default() -> Pages<S> {
        Pages {
            pages: Vec::new(),
            open: Vec::new(),
            vacant: Vec::new(),
            empty: 0,
            len: 0,
        }
    }
}

impl<S: Default> Pages<S> {
    /// Number of slots in use.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Has `fill` take a slot of a page with room into use. It is given the page's index and its
    /// slots, of which `page_len` may be in use; if no page has room, `make` makes one.
    #[inline]
    pub(super) fn take<R>(
        &mut self,
        page_len: u32,
        make: impl FnOnce() -> S,
        fill: impl FnOnce(u32, &mut S) -> R,
    ) -> R {
        let index = match self.open.last() {
            Some(&index) => index,
            None => self.add_page(make()),
        };
        let page = &mut self.pages[index as usize];
        if page.live == 0 {
            self.empty -= 1;
        }
        let filled = fill(index, &mut page.slots);
        page.live += 1;
        self.len += 1;
        if page.live == page_len {
            page.open_index = NOWHERE;
            self.open.pop();
        }
        filled
    }

    /// Has `clear` take a slot of the page at `index` out of use. It panics if that is not in use.
    #[inline]
    pub(super) fn give_back<R>(&mut self, index: u32, clear: impl FnOnce(&mut S) -> R) -> R {
        let page = &mut self.pages[index as usize];
        let cleared = clear(&mut page.slots);
        page.live -= 1;
        self.len -= 1;
        if page.open_index == NOWHERE {
            page.open_index = self.open.len() as u32;
            self.open.push(index);
        }
        if page.live == 0 {
            self.empty += 1;
            if self.empty > EMPTY_PAGES_MAX {
                self.drop_page(index);
            }
        }
        cleared
    }

    /// The slots of the page at `index`, if there has been one.
    pub(super) fn get(&self, index: u32) -> Option<&S> {
        self.pages.get(index as usize).map(|page| &page.slots)
    }

    /// The slots of the page at `index`, if there has been one.
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut S> {
        self.pages
            .get_mut(index as usize)
            .map(|page| &mut page.slots)
    }

    /// All pages, with their indices, those included that went back.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &S)> {
        (0..).zip(self.pages.iter().map(|page| &page.slots))
    }

    /// Number of pages that have memory.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.pages.len() - self.vacant.len()
    }

    #[cold]
    fn add_page(&mut self, slots: S) -> u32 {
        let page = Page {
            slots,
            live: 0,
            open_index: self.open.len() as u32,
        };
        let index = match self.vacant.pop() {
            Some(index) => {
                self.pages[index as usize] = page;
                index
            }
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
        };
        self.open.push(index);
        self.empty += 1;
        index
    }

    #[cold]
    fn drop_page(&mut self, index: u32) {
        let page = &mut self.pages[index as usize];
        page.slots = S::default();
        let at = page.open_index as usize;
        self.open.swap_remove(at);
        if let Some(&moved) = self.open.get(at) {
            self.pages[moved as usize].open_index = at as u32;
        }
        self.vacant.push(index);
        self.empty -= 1;
    }
}
