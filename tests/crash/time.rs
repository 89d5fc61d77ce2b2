//! The clocks of a machine that may be started anew.

use beanshard::base::time::Nanos;
use beanshard::wal::record::WallNanos;

use crate::random::Random;

/// Both clocks.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    pub(crate) now: Nanos,
    pub(crate) wall: WallNanos,
}

impl Time {
    pub(crate) fn new() -> Time {
        Time {
            now: Nanos(1 << 62),
            wall: WallNanos(1_700_000_000_000_000_000),
        }
    }

    pub(crate) fn pass(&mut self, nanos: u64) {
        self.now.0 += nanos;
        self.wall.0 += nanos.cast_signed();
    }

    /// The machine is started anew, and its wall clock may have been set.
    pub(crate) fn restart(&mut self, random: &mut Random) {
        self.now = Nanos((1 << 62) + random.below(1 << 40));
        self.wall.0 += random.pick(&[0, 1, 5_000_000_000, -1_000_000_000_000]);
    }

    pub(crate) fn wall_of(self, moment: Nanos) -> WallNanos {
        let ahead = self.wall.0 - self.now.0.cast_signed();
        WallNanos(moment.0.cast_signed() + ahead)
    }
}
