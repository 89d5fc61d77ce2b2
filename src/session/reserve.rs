//! One reservation, over however many shards have the watched tubes: ask, take the best, decline
//! the rest, give up. A state machine of its own that knows nothing of how a session is warned of
//! deadlines: that a wait is to end, and how it is answered then, is said to it (R3.15).
//!
//! With one shard in reach the job is simply taken. With several, each holds its best job for the
//! session and says which; when all have answered, the best of these is accepted and the others
//! are declined. While the session waits, the first job that is offered is accepted. Exactly one
//! outcome completes it: a job, or the answer to a wait that was given up and which every shard
//! has confirmed to be over (R3.13).

use crate::base::ids::{JobId, Pri, Seq, ShardId, ShardSet};
use crate::base::time::Nanos;
use crate::engine::op::{Op, Style};

/// See the module's description.
#[derive(Debug)]
pub(super) struct Reserving {
    /// The ask that events must be about.
    pub(super) seq: Seq,
    /// Shards that have watched tubes.
    targets: ShardSet,
    /// Shards whose answer to the latest ask is awaited.
    missing: ShardSet,
    /// Shards at which the session waits.
    waiting: ShardSet,
    phase: Phase,
    /// What to answer if there is no job: set from the start if the session does not wait.
    otherwise: Option<Outcome>,
    best: Option<Box<Offer>>,
    /// Whether it was to wait when it was started.
    was_to_wait: bool,
}

/// How a reserve without a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// `TIMED_OUT`
    TimedOut,
    /// `DEADLINE_SOON`
    DeadlineSoon,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Shards have been asked for a job.
    Asking,
    /// Shards have been told that the session does not wait any more.
    Cancelling,
    /// The best offer has been accepted.
    Accepting,
}

/// A job that a shard holds for the session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) shard: ShardId,
    pub(super) id: JobId,
    pub(super) pri: Pri,
    pub(super) created_at: Nanos,
}

/// What a shard says about a reservation, short of handing a job over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told {
    /// It has no job to give; the session waits there if it was to wait.
    NoJob,
    /// It holds this job for the session.
    Offered(Offer),
    /// What was accepted is gone.
    Gone,
    /// The session does not wait there any more.
    Cancelled,
}

/// What an event makes of the reservation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on.
    Undecided,
    /// It is over, without a job.
    Over(Outcome),
    /// What was offered is gone: it starts anew, under another seq.
    Again,
}

impl Reserving {
    /// A reservation at `targets`. If `otherwise` is given the session does not wait.
    pub(super) fn start(seq: Seq, targets: ShardSet, otherwise: Option<Outcome>) -> Reserving {
        Reserving {
            seq,
            targets,
            missing: targets,
            waiting: ShardSet::EMPTY,
            phase: Phase::Asking,
            otherwise,
            best: None,
            was_to_wait: otherwise.is_none(),
        }
    }

    /// The same reservation from the start, under another number: what to ask of whom.
    pub(super) fn again(&mut self, seq: Seq) -> (ShardSet, Op<'static>) {
        *self = Reserving::start(seq, self.targets, self.otherwise);
        let (style, wait) = (Style::for_shards(self.targets), self.was_to_wait);
        (self.targets, Op::Reserve { style, wait })
    }

    /// Whether it is under way at the shard.
    pub(super) fn asks(&self, shard: ShardId) -> bool {
        self.targets.contains(shard)
    }

    /// Whether no shard has a job to give, and each says so when it has.
    pub(super) fn has_settled(&self) -> bool {
        self.otherwise.is_none() && self.phase == Phase::Asking && self.missing.is_empty()
    }

    /// Whether nothing that comes behind it may be asked before it is answered: it is compared what
    /// several shards offer, or the session waits.
    pub(super) fn blocks(&self) -> bool {
        self.targets.len() > 1 || self.missing.is_empty() || self.phase != Phase::Asking
    }

    /// Whether it may still be given up: the session waits, and no offer has been accepted. What a
    /// lone shard answers first decides whether it waits.
    pub(super) fn can_give_up(&self) -> bool {
        self.otherwise.is_none() && self.phase == Phase::Asking && self.blocks()
    }

    /// Whether a lone shard has all the watched tubes.
    pub(super) fn is_of_one(&self) -> bool {
        self.targets.len() == 1
    }

    /// Gives up the wait: `ask` is told whom to ask what. The outcome stands unless a job was
    /// handed over or offered before the shards heard of it.
    pub(super) fn give_up(&mut self, outcome: Outcome, mut ask: impl FnMut(ShardSet, Op<'static>)) {
        debug_assert!(self.can_give_up());
        self.otherwise = Some(outcome);
        self.phase = Phase::Cancelling;
        self.missing = self.targets;
        ask(self.targets, Op::Cancel);
    }

    /// Takes what `shard` says about the ask.
    pub(super) fn on_told(
        &mut self,
        shard: ShardId,
        told: Told,
        mut ask: impl FnMut(ShardSet, Op<'static>),
    ) -> Verdict {
        match told {
            Told::NoJob => {
                // If the session has given up meanwhile, the end of the wait is still to come.
                if self.phase == Phase::Asking {
                    self.missing.remove(shard);
                    if self.otherwise.is_none() {
                        self.waiting.insert(shard);
                    }
                }
            }
            Told::Offered(offer) => {
                if self.phase == Phase::Asking {
                    self.missing.remove(shard);
                }
                self.waiting.remove(shard);
                self.compare(offer, &mut ask);
            }
            Told::Cancelled => {
                // Waits that ended because an offer was accepted are of no interest.
                if self.phase == Phase::Cancelling {
                    self.missing.remove(shard);
                    self.waiting.remove(shard);
                }
            }
            Told::Gone => {
                self.best = None;
                return match self.otherwise {
                    Some(outcome) if self.was_to_wait => Verdict::Over(outcome),
                    Some(_) | None => Verdict::Again,
                };
            }
        }
        self.settle(ask)
    }

    /// Keeps the better of the best offer and this one; declines the other.
    fn compare(&mut self, offer: Offer, ask: &mut impl FnMut(ShardSet, Op<'static>)) {
        let rank = |offer: &Offer| (offer.pri, offer.created_at, offer.id);
        let keep_best = self
            .best
            .as_deref()
            .is_some_and(|best| self.phase == Phase::Accepting || rank(best) <= rank(&offer));
        let worse = if keep_best {
            Some(offer)
        } else {
            self.best.replace(Box::new(offer)).map(|worse| *worse)
        };
        if let Some(worse) = worse {
            ask(ShardSet::of(worse.shard), Op::Decline { id: worse.id });
        }
    }

    /// Decides once every shard has answered.
    fn settle(&mut self, mut ask: impl FnMut(ShardSet, Op<'static>)) -> Verdict {
        if !self.missing.is_empty() || self.phase == Phase::Accepting {
            return Verdict::Undecided;
        }
        match (&self.best, self.otherwise) {
            (Some(best), _) => {
                self.phase = Phase::Accepting;
                ask(ShardSet::of(best.shard), Op::Accept { id: best.id });
                if !self.waiting.is_empty() {
                    ask(std::mem::take(&mut self.waiting), Op::Cancel);
                }
                Verdict::Undecided
            }
            (None, Some(outcome)) => Verdict::Over(outcome),
            (None, None) => Verdict::Undecided,
        }
    }
}

/// What to say to a shard that speaks of a reservation that is no longer the session's concern.
pub(super) fn answer_stale(told: Told) -> Option<Op<'static>> {
    match told {
        Told::Offered(Offer { id, .. }) => Some(Op::Decline { id }),
        Told::NoJob | Told::Gone | Told::Cancelled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reservation and what it has asked of whom since last looked at.
    struct Story {
        reserving: Reserving,
        asked: Vec<String>,
    }

    impl Story {
        fn of(shards: usize, otherwise: Option<Outcome>) -> Story {
            let targets = ShardSet::first(shards);
            let reserving = Reserving::start(Seq(1), targets, otherwise);
            Story {
                reserving,
                asked: Vec::new(),
            }
        }

        fn told(&mut self, shard: u8, told: Told) -> Verdict {
            let asked = &mut self.asked;
            self.reserving.on_told(ShardId(shard), told, |to, op| {
                asked.push(format!(
                    "{:?} {op:?}",
                    to.iter().map(|s| s.0).collect::<Vec<_>>()
                ));
            })
        }

        fn give_up(&mut self) {
            let asked = &mut self.asked;
            self.reserving.give_up(Outcome::TimedOut, |to, op| {
                asked.push(format!(
                    "{:?} {op:?}",
                    to.iter().map(|s| s.0).collect::<Vec<_>>()
                ));
            });
        }

        fn asked(&mut self) -> String {
            std::mem::take(&mut self.asked).join(", ")
        }
    }

    fn offered(shard: u8, id: u64, pri: u32, created_at: u64) -> Told {
        Told::Offered(Offer {
            shard: ShardId(shard),
            id: JobId(id),
            pri: Pri(pri),
            created_at: Nanos(created_at),
        })
    }

    // R4.7
    #[test]
    fn the_best_offer_is_accepted_and_the_others_are_declined() {
        let mut story = Story::of(4, None);
        assert_eq!(story.told(0, offered(0, 7, 5, 9)), Verdict::Undecided);
        assert_eq!(story.told(1, Told::NoJob), Verdict::Undecided);
        assert_eq!(story.told(2, offered(2, 8, 5, 1)), Verdict::Undecided);
        assert_eq!(story.asked(), "[0] Decline { id: JobId(7) }");
        assert_eq!(story.told(3, offered(3, 1, 6, 0)), Verdict::Undecided);
        assert_eq!(
            story.asked(),
            "[3] Decline { id: JobId(1) }, [2] Accept { id: JobId(8) }, [1] Cancel"
        );
        assert!(!story.reserving.can_give_up());
    }

    #[test]
    fn while_waiting_the_first_offer_is_accepted_and_later_ones_are_declined() {
        let mut story = Story::of(2, None);
        story.told(0, Told::NoJob);
        story.told(1, Told::NoJob);
        assert_eq!(story.told(1, offered(1, 3, 9, 9)), Verdict::Undecided);
        assert_eq!(story.asked(), "[1] Accept { id: JobId(3) }, [0] Cancel");
        assert_eq!(story.told(0, offered(0, 2, 0, 0)), Verdict::Undecided);
        assert_eq!(story.told(0, Told::Cancelled), Verdict::Undecided);
        assert_eq!(story.asked(), "[0] Decline { id: JobId(2) }");
        assert_eq!(story.told(1, Told::Gone), Verdict::Again);
    }

    // R3.13, A4.6
    #[test]
    fn a_wait_is_over_when_every_shard_says_so() {
        let mut story = Story::of(2, None);
        story.told(0, Told::NoJob);
        story.give_up();
        assert_eq!(story.asked(), "[0, 1] Cancel");
        assert_eq!(story.told(0, Told::Cancelled), Verdict::Undecided);
        assert_eq!(
            story.told(1, Told::NoJob),
            Verdict::Undecided,
            "the answer to the first ask"
        );
        assert_eq!(
            story.told(1, Told::Cancelled),
            Verdict::Over(Outcome::TimedOut)
        );
    }

    #[test]
    fn an_offer_that_was_under_way_beats_the_timeout() {
        let mut story = Story::of(2, None);
        story.told(0, Told::NoJob);
        story.told(1, Told::NoJob);
        story.give_up();
        story.told(1, offered(1, 5, 0, 0));
        story.told(0, Told::Cancelled);
        assert_eq!(story.asked(), "[0, 1] Cancel");
        assert_eq!(story.told(1, Told::Cancelled), Verdict::Undecided);
        assert_eq!(story.asked(), "[1] Accept { id: JobId(5) }");
        assert_eq!(story.told(1, Told::Gone), Verdict::Over(Outcome::TimedOut));
    }

    #[test]
    fn without_waiting_no_job_is_the_outcome() {
        let mut story = Story::of(2, Some(Outcome::DeadlineSoon));
        assert_eq!(story.told(0, Told::NoJob), Verdict::Undecided);
        assert_eq!(
            story.told(1, Told::NoJob),
            Verdict::Over(Outcome::DeadlineSoon)
        );
    }

    #[test]
    fn an_offer_that_is_gone_starts_a_new_round_unless_the_wait_was_given_up() {
        let mut story = Story::of(2, Some(Outcome::TimedOut));
        story.told(0, Told::NoJob);
        story.told(1, offered(1, 5, 0, 0));
        assert_eq!(story.told(1, Told::Gone), Verdict::Again);
    }
}
