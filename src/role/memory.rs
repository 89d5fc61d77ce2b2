//! Gives memory back to the system after many jobs, tubes or clients are gone. The allocator keeps
//! what was freed for the next ones, which may never come; asking it to let go costs time in
//! proportion to the memory, so it is asked only when what there is has shrunk to half.

use crate::base::limits::{TRIM_BYTES_MIN, TRIM_PAUSE_MS};
use crate::base::time::Nanos;
use crate::sys::process::trim_memory;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Most bytes since memory was last given back.
    peak: usize,
    last_trim: Nanos,
}

const TRIM_PAUSE_NANOS: u64 = TRIM_PAUSE_MS * 1_000_000;

impl Memory {
    /// Takes note of how many bytes are taken now, and gives memory back if it is worth it.
    /// Returns when to look again, if a trim is only put off.
    pub(super) fn look(&mut self, now: Nanos, bytes: usize) -> Option<Nanos> {
        self.peak = self.peak.max(bytes);
        if self.peak - bytes < TRIM_BYTES_MIN.max(self.peak / 2) {
            return None;
        }
        if now.since(self.last_trim) < TRIM_PAUSE_NANOS {
            return Some(Nanos(self.last_trim.0 + TRIM_PAUSE_NANOS));
        }
        trim_memory();
        self.peak = bytes;
        self.last_trim = now;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(5_000_000_000);

    #[test]
    fn memory_is_given_back_when_half_is_gone_and_not_too_often() {
        let mut memory = Memory::default();
        assert_eq!(memory.look(SECOND, 100 << 20), None);
        assert_eq!(memory.look(SECOND, 60 << 20), None);
        assert_eq!(memory.peak, 100 << 20, "40 % is not worth it");
        assert_eq!(memory.look(SECOND, 50 << 20), None);
        assert_eq!(memory.peak, 50 << 20, "half of it is");
        let again = Nanos(SECOND.0 + TRIM_PAUSE_NANOS);
        assert_eq!(memory.look(SECOND, 0), Some(again));
        assert_eq!(memory.look(again, 0), None);
        assert_eq!(memory.peak, 0);
    }

    #[test]
    fn a_small_server_is_left_alone() {
        let mut memory = Memory::default();
        memory.look(SECOND, TRIM_BYTES_MIN - 1);
        memory.look(SECOND, 0);
        assert_eq!(memory.peak, TRIM_BYTES_MIN - 1);
    }
}
