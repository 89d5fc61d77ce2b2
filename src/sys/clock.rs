//! The clocks. Nothing else in the program asks what time it is: the loop reads the clock once a
//! turn and tells everybody below.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use crate::base::time::{NANOS_PER_SEC, Nanos};

/// What is added to the kernel's number, in nanoseconds: 146 years, so that moments before the
/// machine was started can be told too. Jobs outlive that.
const HEAD_START_NANOS: u64 = 1 << 62;

/// The moment on the host's monotonic clock.
///
/// The number is the kernel's own but for a constant, so that processes of one host can send it to
/// one another, which they could not do with an `Instant`. It never goes back and does not follow a
/// step of the wall clock; where it starts is unspecified.
///
/// # Panics
/// If the system has no monotonic clock, without which no job could ever be due.
#[must_use]
pub fn monotonic() -> Nanos {
    let time =
        clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every supported system has this clock");
    let secs = u64::try_from(time.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec()).unwrap_or(0);
    let since_start = secs.saturating_mul(NANOS_PER_SEC).saturating_add(nanos);
    Nanos(HEAD_START_NANOS.saturating_add(since_start))
}

/// Nanoseconds on the wall clock since the beginning of 1970, zero if it stands before that. For
/// the binlog alone, whose records outlive the monotonic clock; it may step either way.
#[must_use]
pub fn wall() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let mut last = monotonic();
        for _ in 0..1000 {
            let now = monotonic();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn the_wall_clock_counts_from_1970() {
        let since_2020 = Duration::from_secs(50 * 365 * 86_400);
        assert!(i128::from(wall()) > since_2020.as_nanos().cast_signed());
    }
}
