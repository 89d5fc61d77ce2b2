//! How much one end of a link may ask of the other before it has to wait. The frontend spends what
//! it has; the owner grants it anew as asks are answered, in its own time, several at once.
//!
//! A body costs its bytes, but no more than one part does: the parts of large bodies take turns
//! with what others ask, so that a large one must not take all that there is until its last byte
//! has come.

use crate::base::limits::{BODY_PART_LEN_MAX, CREDIT_ASKS, CREDIT_BYTES};
use crate::wire::refusal::Refusal;

/// A number of asks and what their bodies cost: the rest of an ask has a limit of its own, so
/// that the number of asks bounds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Asks.
    pub asks: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Bytes that an ask with a body of `body_len` bytes costs.
#[must_use]
pub fn cost_of(body_len: u32) -> u64 {
    u64::from(body_len).min(BODY_PART_LEN_MAX as u64)
}

impl Amount {
    /// How many bodies of more than one part this lets be under way at once.
    #[must_use]
    pub fn large_bodies(&self) -> u64 {
        self.bytes.div_ceil(BODY_PART_LEN_MAX as u64)
    }
}

/// What one end may still ask. The invariant: what is left and what is under way make up the
/// window.
#[derive(Clone, Copy, Debug)]
pub struct Credit {
    window: Amount,
    spent: Amount,
}

impl Credit {
    /// All of the window that this program gives.
    #[must_use]
    pub fn full() -> Credit {
        Credit::of(Amount {
            asks: CREDIT_ASKS,
            bytes: u64::from(CREDIT_BYTES),
        })
    }

    /// All of this window.
    #[must_use]
    pub fn of(window: Amount) -> Credit {
        Credit {
            window,
            spent: Amount::default(),
        }
    }

    /// Whether nothing may be asked for now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spent.asks >= self.window.asks || self.spent.bytes >= self.window.bytes
    }

    /// What is under way.
    #[must_use]
    pub fn spent(&self) -> Amount {
        self.spent
    }

    /// What is left. No bytes are, if the last ask took more than there were.
    #[must_use]
    pub fn left(&self) -> Amount {
        Amount {
            asks: self.window.asks - self.spent.asks,
            bytes: self.window.bytes.saturating_sub(self.spent.bytes),
        }
    }

    /// Takes an ask that costs `bytes` bytes, if there is anything left. It may take more bytes
    /// than there are: whatever the window is, an ask has to get through.
    ///
    /// # Errors
    /// [`Refusal::Credit`] if nothing is left. Nothing is taken then.
    pub fn spend(&mut self, bytes: u64) -> Result<(), Refusal> {
        if self.is_empty() {
            return Err(Refusal::Credit);
        }
        self.spent.asks += 1;
        self.spent.bytes += bytes;
        Ok(())
    }

    /// Gets back what was spent.
    ///
    /// # Errors
    /// [`Refusal::Credit`] if so much was never spent. Nothing has changed then.
    pub fn grant(&mut self, amount: Amount) -> Result<(), Refusal> {
        let asks = self.spent.asks.checked_sub(amount.asks);
        let bytes = self.spent.bytes.checked_sub(amount.bytes);
        let (Some(asks), Some(bytes)) = (asks, bytes) else {
            return Err(Refusal::Credit);
        };
        self.spent = Amount { asks, bytes };
        Ok(())
    }
}

/// What is to be granted with the next frame that grants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Owed(Amount);

impl Owed {
    /// An ask that cost `bytes` bytes has been obeyed, or refused: it is not under way any more.
    pub fn add(&mut self, bytes: u64) {
        self.0.asks += 1;
        self.0.bytes += bytes;
    }

    /// What is to be granted now, if anything is. It is not owed after that.
    pub fn take(&mut self) -> Option<Amount> {
        let amount = std::mem::take(&mut self.0);
        (amount != Amount::default()).then_some(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_large_body_costs_one_part_of_it() {
        let part = BODY_PART_LEN_MAX as u32;
        assert_eq!([0, 1, part - 1, part].map(cost_of), [0, 1, 65_535, 65_536]);
        assert_eq!([part + 1, u32::MAX].map(cost_of), [65_536; 2]);
        let large = |bytes| Amount { asks: 9, bytes }.large_bodies();
        assert_eq!([1, 65_536, 65_537].map(large), [1, 1, 2]);
    }

    #[test]
    fn an_ask_larger_than_the_window_gets_through_alone() {
        let mut credit = Credit::of(Amount { asks: 3, bytes: 10 });
        assert_eq!(credit.spend(9), Ok(()));
        assert_eq!(credit.spend(1_000), Ok(()), "something was left");
        assert!(credit.is_empty());
        assert_eq!(credit.spend(1), Err(Refusal::Credit));
        assert_eq!(credit.left(), Amount { asks: 1, bytes: 0 });
        let all = Amount {
            asks: 2,
            bytes: 1_009,
        };
        assert_eq!(credit.grant(all), Ok(()));
        assert_eq!(
            credit.grant(Amount { asks: 1, bytes: 0 }),
            Err(Refusal::Credit)
        );
        assert_eq!(credit.left(), Amount { asks: 3, bytes: 10 });
    }

    proptest! {
        #![proptest_config(crate::base::property_config())]

        // R3.6
        #[test]
        fn no_credit_is_made_or_lost(
            asks in 1u32..20,
            bytes in 1u64..200,
            steps in prop::collection::vec((0u8..4, 0u64..90), 1..300),
        ) {
            let window = Amount { asks, bytes };
            let mut credit = Credit::of(window);
            let mut owed = Owed::default();
            let mut asked = VecDeque::new();
            let mut answered = Amount::default();
            let mut granted = VecDeque::new();
            for (step, cost) in steps {
                match step {
                    0 if credit.spend(cost).is_ok() => asked.push_back(cost),
                    1 => if let Some(cost) = asked.pop_front() {
                        owed.add(cost);
                        answered.asks += 1;
                        answered.bytes += cost;
                    },
                    2 => granted.extend(owed.take()),
                    _ => if let Some(amount) = granted.pop_front() {
                        credit.grant(amount).unwrap();
                        answered.asks -= amount.asks;
                        answered.bytes -= amount.bytes;
                    },
                }
                let under_way = Amount {
                    asks: asked.len() as u32 + answered.asks,
                    bytes: asked.iter().sum::<u64>() + answered.bytes,
                };
                prop_assert_eq!(credit.spent(), under_way);
                prop_assert_eq!(credit.left().asks + credit.spent().asks, window.asks);
                prop_assert!(credit.spent().bytes < window.bytes + 90);
            }
            asked.drain(..).for_each(|cost| owed.add(cost));
            granted.extend(owed.take());
            granted.drain(..).for_each(|amount| credit.grant(amount).unwrap());
            prop_assert_eq!(credit.left(), window);
        }
    }
}
