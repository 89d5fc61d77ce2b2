//! When a child that has ended is started again: at once the first time, then after pauses that
//! grow, so that one that cannot live does not keep the machine busy. Pure: it is told the time.

use crate::base::limits::{RESTART_DELAYS_MS, RESTART_RESET_SECS};
use crate::base::time::{Nanos, Secs};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The rule for one child's place.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    /// How often in a row it has ended without having served for long.
    ends: usize,
    /// Since when it serves, if it does.
    served_from: Option<Nanos>,
}

impl Backoff {
    /// The child serves from now on. Being started is not enough: one that reads its binlog for
    /// minutes and then fails has never served.
    pub fn on_ready(&mut self, now: Nanos) {
        self.served_from = Some(now);
    }

    /// The child has ended, or could not be started: the moment of the next start.
    pub fn on_end(&mut self, now: Nanos) -> Nanos {
        let is_forgiven = self
            .served_from
            .take()
            .is_some_and(|from| from.after(Secs(RESTART_RESET_SECS)) <= now);
        if is_forgiven {
            self.ends = 0;
        }
        let last = RESTART_DELAYS_MS.len() - 1;
        let delay_ms = RESTART_DELAYS_MS[self.ends.min(last)];
        self.ends = self.ends.saturating_add(1);
        Nanos(now.0.saturating_add(delay_ms * NANOS_PER_MILLI))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Nanos = Nanos(1 << 62);

    fn delay_ms(backoff: &mut Backoff, now: Nanos) -> u64 {
        backoff.on_end(now).since(now) / NANOS_PER_MILLI
    }

    #[test]
    fn pauses_grow_to_the_longest_and_stay_there() {
        let mut backoff = Backoff::default();
        let delays: Vec<u64> = (0..6).map(|_| delay_ms(&mut backoff, START)).collect();
        assert_eq!(delays, [0, 100, 1_000, 5_000, 5_000, 5_000]);
    }

    #[test]
    fn who_has_served_for_a_while_is_forgiven() {
        let mut backoff = Backoff::default();
        let mut now = START;
        for expected in [0, 100, 1_000] {
            backoff.on_ready(now);
            now = Nanos(now.after(Secs(RESTART_RESET_SECS)).0 - 1);
            assert_eq!(delay_ms(&mut backoff, now), expected);
        }
        backoff.on_ready(now);
        now = now.after(Secs(RESTART_RESET_SECS));
        assert_eq!(delay_ms(&mut backoff, now), 0);
        assert_eq!(delay_ms(&mut backoff, now), 100);
    }

    #[test]
    fn who_never_gets_ready_is_not_forgiven_however_long_it_takes() {
        let mut backoff = Backoff::default();
        backoff.on_ready(START);
        assert_eq!(delay_ms(&mut backoff, START), 0);
        let later = START.after(Secs(86_400));
        assert_eq!(delay_ms(&mut backoff, later), 100);
        assert_eq!(delay_ms(&mut backoff, later.after(Secs(86_400))), 1_000);
    }
}
