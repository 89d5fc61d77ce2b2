//! Which of the fixed number of slots a tube belongs to. A slot belongs to a shard, and a job's id
//! carries its slot, so this function must never change: data on disk depends on it.

use xxhash_rust::xxh3::xxh3_64;

use crate::base::name::TubeName;

/// Number of slots that tubes are spread over.
pub const SLOTS: u64 = 1024;

/// Bits of a job id that hold its slot.
pub const SLOT_BITS: u32 = SLOTS.trailing_zeros();

const _: () = assert!(SLOTS.is_power_of_two(), "slots fill their bits of an id");

/// One of the slots: a number below [`SLOTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

impl Slot {
    /// The slot of the tube with this name: XXH3-64 of its bytes, without a seed, modulo
    /// [`SLOTS`].
    #[must_use]
    pub fn of(tube: TubeName<'_>) -> Slot {
        Slot((xxh3_64(tube.as_bytes()) % SLOTS) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_pinned() {
        let slot_of = |name: &str| Slot::of(TubeName::parse(name.as_bytes()).unwrap()).0;
        assert_eq!(
            ["default", "a", "email", "x_y"].map(slot_of),
            [26, 543, 929, 574]
        );
    }
}
