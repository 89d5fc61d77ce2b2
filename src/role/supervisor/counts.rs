//! Numbers of all processes for one that asks: a round of questions and the sum of the answers.
//! Pure. A child has one round at a time: who asks anew has given up the one before.

use crate::base::limits::{COUNTS_ASKED_MAX, COUNTS_MAX};
use crate::engine::stats::ShardStats;
use crate::sys::process::Usage;
use crate::wire::control::{Counts, Numbers};
use crate::wire::kind::Sender;

/// Where each process puts the microseconds that it has spent in the program.
const USER_MICROS: usize = 0;

/// And those that the kernel has spent for it.
const SYSTEM_MICROS: usize = 1;

/// Rounds that are under way.
#[derive(Debug)]
pub struct Rounds {
    /// By the place of who asks.
    rounds: Vec<Option<Round>>,
    /// By the place of who is asked: questions without an answer, of whichever round.
    unanswered: Vec<usize>,
    /// Number of the last one.
    last: u64,
}

/// A round whose last answer has come, or is not to come.
#[derive(Debug)]
pub struct Round {
    /// Number of this round.
    number: u64,
    /// The asker's own number for it.
    asked: u64,
    /// Which places have not answered.
    waiting: Vec<bool>,
    shard: ShardStats,
    numbers: [u64; COUNTS_MAX],
    /// How many of them there are.
    len: usize,
}

impl Rounds {
    /// For so many places.
    #[must_use]
    pub fn new(places: usize) -> Rounds {
        Rounds {
            rounds: (0..places).map(|_| None).collect(),
            unanswered: vec![0; places],
            last: 0,
        }
    }

    /// A child asks, with its own number, for what `others` count: the number with which they are
    /// to be asked. Those are taken out of `others` that owe so many answers that they are not
    /// asked again; the round waits for them as for all.
    pub fn begin(&mut self, from: usize, asked: u64, others: &mut Vec<usize>) -> u64 {
        self.last += 1;
        let mut waiting = vec![false; self.rounds.len()];
        others.iter().for_each(|&other| waiting[other] = true);
        others.retain(|&other| self.unanswered[other] < COUNTS_ASKED_MAX);
        others.iter().for_each(|&other| self.unanswered[other] += 1);
        self.rounds[from] = Some(Round {
            number: self.last,
            asked,
            waiting,
            shard: ShardStats::default(),
            numbers: [0; COUNTS_MAX],
            len: 0,
        });
        self.last
    }

    /// The child in place `from` has answered. What nobody waits for is dropped.
    pub fn on_counts(&mut self, from: usize, counts: &Counts<'_>) {
        self.unanswered[from] = self.unanswered[from].saturating_sub(1);
        let rounds = self.rounds.iter_mut().flatten();
        let mut awaited = rounds.filter(|round| round.number == counts.asked);
        if let Some(round) = awaited.next()
            && std::mem::take(&mut round.waiting[from])
        {
            round.add(counts);
        }
    }

    /// The child in this place has ended: it answers nothing more, and nothing that it has asked
    /// is of use.
    pub fn on_end(&mut self, place: usize) {
        self.rounds[place] = None;
        self.unanswered[place] = 0;
        for round in self.rounds.iter_mut().flatten() {
            round.waiting[place] = false;
        }
    }

    /// A round that is complete, and the place of who has asked.
    pub fn take_complete(&mut self) -> Option<(usize, Round)> {
        let is_complete = |round: &Round| !round.waiting.contains(&true);
        let place = self
            .rounds
            .iter()
            .position(|round| round.as_ref().is_some_and(is_complete))?;
        Some((place, self.rounds[place].take()?))
    }
}

impl Round {
    fn add(&mut self, counts: &Counts<'_>) {
        self.shard.merge(&counts.shard);
        let mut len = 0;
        for (sum, number) in self.numbers.iter_mut().zip(counts.numbers.iter()) {
            *sum = sum.saturating_add(number);
            len += 1;
        }
        self.len = self.len.max(len);
    }

    /// The answer, with what the supervisor has used by itself.
    #[must_use]
    pub fn answer(&mut self, usage: Usage) -> Counts<'_> {
        self.numbers[USER_MICROS] += usage.user_micros;
        self.numbers[SYSTEM_MICROS] += usage.system_micros;
        self.len = self.len.max(SYSTEM_MICROS + 1);
        Counts {
            asked: self.asked,
            role: Sender::Supervisor,
            index: 0,
            shard: self.shard,
            numbers: Numbers::of(&self.numbers[..self.len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(asked: u64, shard: ShardStats, numbers: &[u64]) -> Counts<'_> {
        Counts {
            asked,
            role: Sender::Owner,
            index: 0,
            shard,
            numbers: Numbers::of(numbers),
        }
    }

    fn shard(tubes: u64) -> ShardStats {
        ShardStats {
            tubes,
            ..ShardStats::default()
        }
    }

    const USAGE: Usage = Usage {
        user_micros: 1_000,
        system_micros: 2_000,
    };

    #[test]
    fn answers_are_summed_when_all_have_come() {
        let mut rounds = Rounds::new(4);
        let number = rounds.begin(2, 77, &mut vec![0, 1, 3]);
        rounds.on_counts(0, &counts(number, shard(1), &[1, 2, 3]));
        // Twice, a stranger to the round, and one of a round that never was.
        rounds.on_counts(0, &counts(number, shard(1), &[1, 2, 3]));
        rounds.on_counts(2, &counts(number, shard(1), &[1, 2, 3]));
        rounds.on_counts(1, &counts(number + 1, shard(1), &[1, 2, 3]));
        assert!(rounds.take_complete().is_none());
        rounds.on_counts(3, &counts(number, shard(10), &[10, 20, 30, u64::MAX]));
        rounds.on_end(1);
        let (place, mut round) = rounds.take_complete().unwrap();
        assert_eq!(place, 2);
        let expected = [1_011, 2_022, 33, u64::MAX];
        let answer = round.answer(USAGE);
        assert_eq!((answer.asked, answer.role), (77, Sender::Supervisor));
        assert_eq!(
            (answer.shard, answer.numbers),
            (shard(11), Numbers::of(&expected))
        );
        assert!(rounds.take_complete().is_none());
    }

    #[test]
    fn who_asks_anew_or_ends_has_given_up() {
        let mut rounds = Rounds::new(3);
        let old = rounds.begin(2, 1, &mut vec![0]);
        let new = rounds.begin(2, 2, &mut vec![0, 1]);
        rounds.on_counts(0, &counts(old, shard(5), &[]));
        rounds.on_counts(1, &counts(new, shard(1), &[]));
        assert!(rounds.take_complete().is_none());
        rounds.on_counts(0, &counts(new, shard(1), &[]));
        let (place, mut round) = rounds.take_complete().unwrap();
        let answer = round.answer(USAGE);
        assert_eq!((place, answer.asked, answer.shard), (2, 2, shard(2)));
        assert_eq!(answer.numbers, Numbers::of(&[1_000, 2_000]));
        rounds.begin(2, 3, &mut vec![]);
        rounds.on_end(2);
        assert!(rounds.take_complete().is_none());
        rounds.begin(2, 4, &mut vec![]);
        assert_eq!(rounds.take_complete().unwrap().0, 2);
    }

    #[test]
    fn who_answers_nobody_is_asked_no_more_and_waited_for() {
        let mut rounds = Rounds::new(3);
        for _ in 0..COUNTS_ASKED_MAX {
            let mut others = vec![0, 1];
            let number = rounds.begin(2, 1, &mut others);
            assert_eq!(others, [0, 1]);
            rounds.on_counts(1, &counts(number, shard(1), &[]));
        }
        let mut others = vec![0, 1];
        let number = rounds.begin(2, 2, &mut others);
        assert_eq!(others, [1]);
        rounds.on_counts(1, &counts(number, shard(1), &[]));
        assert!(rounds.take_complete().is_none());
        rounds.on_counts(0, &counts(1, shard(1), &[]));
        let mut others = vec![0, 1];
        rounds.begin(2, 3, &mut others);
        assert_eq!(others, [0, 1]);
    }
}
