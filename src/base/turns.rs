//! Whose turn it is among those that stand in an array. The waiters of a tube and the multiset of
//! the C interface both take by this rule.
//!
//! Quirk: neither first come first served nor round robin, but the original's cursor over an array
//! whose holes are filled with the last element (L3.11, K8), pinned by `hand-out-in-a-loop` and
//! its kin.

/// Where the next one is taken, modulo their number. Only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Cursor(usize);

impl Cursor {
    /// Index of the one among `len` whose turn it is. None if there are none.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<usize> {
        let index = self.0.checked_rem(len)?;
        self.0 = index + 1;
        Some(index)
    }

    /// What becomes of the cursor when the only one there is was taken.
    #[inline]
    pub fn pass(&mut self) {
        self.0 = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_from_the_end() {
        let mut cursor = Cursor::default();
        let mut waiting = vec![1, 2, 3, 4, 5, 6];
        let mut taken = Vec::new();
        while let Some(index) = cursor.take(waiting.len()) {
            taken.push(waiting.swap_remove(index));
        }
        assert_eq!(taken, [1, 2, 3, 6, 5, 4]);
    }

    #[test]
    fn who_is_alone_is_passed() {
        let (mut taken, mut passed) = (Cursor::default(), Cursor::default());
        assert_eq!(taken.take(1), Some(0));
        passed.pass();
        assert_eq!(taken, passed);
    }
}
