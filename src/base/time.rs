//! Points in time and spans, as numbers. There is no way to ask here what time it is: `sys::clock`
//! reads the clock once a turn and everything below is told.

/// A point on the host's monotonic clock, in nanoseconds since an unspecified start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A span of whole seconds: the protocol's unit for delays, times to run, pauses and timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secs(pub u32);

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Nanos {
    /// The end of time: later than anything that can be waited for.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// The moment `span` after this one; stays at [`Nanos::MAX`] instead of wrapping.
    #[must_use]
    pub fn after(self, span: Secs) -> Nanos {
        Nanos(self.0.saturating_add(u64::from(span.0) * NANOS_PER_SEC))
    }

    /// The moment `span` before this one; stays at zero instead of wrapping.
    #[must_use]
    pub fn before(self, span: Secs) -> Nanos {
        Nanos(self.0.saturating_sub(u64::from(span.0) * NANOS_PER_SEC))
    }

    /// Whole seconds from `earlier` to this moment, cut toward zero, zero if `earlier` is later.
    #[must_use]
    pub fn secs_since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0) / NANOS_PER_SEC
    }

    /// Nanoseconds from `earlier` to this moment, zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Nanos::MAX.after(Secs(1)), Nanos::MAX);
        assert_eq!(Nanos(5).before(Secs(1)), Nanos(0));
        assert_eq!(Nanos(5).secs_since(Nanos(9)), 0);
        assert_eq!(
            Nanos(0).after(Secs(u32::MAX)).0,
            u64::from(u32::MAX) * NANOS_PER_SEC
        );
    }

    #[test]
    fn seconds_are_cut_toward_zero() {
        assert_eq!(Nanos(2_999_999_999).secs_since(Nanos(0)), 2);
    }
}
