//! One answer from many shards: stats and list-tubes. Each shard answers from one moment of its
//! own; the whole is not atomic (S4.4). An answer of which a part does not come in time is none.

use smallvec::SmallVec;

use crate::base::ids::{Seq, ShardId, ShardSet};
use crate::base::limits::GATHER_SECS_MAX;
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::engine::stats::ShardStats;

/// What has come together so far.
#[derive(Debug)]
pub(super) struct Gathering<T> {
    /// The ask that answers must be about: a late one is about an earlier ask.
    pub(super) seq: Seq,
    /// When it is too late for the rest.
    pub(super) until: Nanos,
    missing: ShardSet,
    /// The answers of the shards that have given theirs.
    pub(super) sum: T,
}

impl<T: Default> Gathering<T> {
    /// Nothing yet, of the shards in `from`, which are asked at `now` under the number `seq`.
    pub(super) fn start(now: Nanos, seq: Seq, from: ShardSet) -> Gathering<T> {
        Gathering {
            seq,
            until: now.after(Secs(GATHER_SECS_MAX)),
            missing: from,
            sum: T::default(),
        }
    }

    /// Whether the shard has not said everything yet.
    pub(super) fn misses(&self, shard: ShardId) -> bool {
        self.missing.contains(shard)
    }

    /// Whether every shard has said everything.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// The shard has said everything. Says whether all have.
    pub(super) fn finish(&mut self, shard: ShardId) -> bool {
        self.missing.remove(shard);
        self.missing.is_empty()
    }
}

/// The numbers of one or several shards, each shard's by themselves. Those of a lone shard need no
/// memory of their own.
#[derive(Debug, Default)]
pub(super) struct Sum {
    first: Option<(ShardId, ShardStats)>,
    others: Vec<(ShardId, ShardStats)>,
}

impl Sum {
    pub(super) fn add(&mut self, shard: ShardId, stats: ShardStats) {
        match self.first {
            Some(_) => self.others.push((shard, stats)),
            None => self.first = Some((shard, stats)),
        }
    }

    pub(super) fn total(&self) -> ShardStats {
        let mut total = self.first.map_or(ShardStats::default(), |(_, stats)| stats);
        self.others.iter().for_each(|(_, stats)| total.merge(stats));
        total
    }

    /// What the shard has said.
    pub(super) fn of(&self, shard: ShardId) -> Option<&ShardStats> {
        let mut all = self.first.iter().chain(&self.others);
        all.find(|(from, _)| *from == shard).map(|(_, stats)| stats)
    }
}

/// Names of tubes: those of one shard one after another in one piece of memory, shards by their
/// number, whoever answers first. No tube is at two shards, so no name comes twice (S4.3).
#[derive(Debug, Default)]
pub(super) struct Names {
    parts: SmallVec<[(ShardId, Vec<u8>); 1]>,
}

const _: () = assert!(crate::base::limits::TUBE_NAME_LEN_MAX <= u8::MAX as usize);

impl Names {
    pub(super) fn add(&mut self, shard: ShardId, name: TubeName<'_>) {
        let found = self.parts.binary_search_by_key(&shard.0, |(of, _)| of.0);
        let place = found.unwrap_or_else(|place| {
            self.parts.insert(place, (shard, Vec::new()));
            place
        });
        let (_, bytes) = &mut self.parts[place];
        bytes.push(name.as_bytes().len() as u8);
        bytes.extend_from_slice(name.as_bytes());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = TubeName<'_>> {
        self.parts.iter().flat_map(|(_, bytes)| names(bytes))
    }
}

fn names(bytes: &[u8]) -> impl Iterator<Item = TubeName<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&len, after) = rest.split_first()?;
        let (name, after) = after.split_at(usize::from(len));
        rest = after;
        TubeName::parse(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4.1, S4.3
    #[test]
    fn the_last_of_several_shards_completes_the_answer() {
        let mut gathering: Gathering<Names> =
            Gathering::start(Nanos(5), Seq(1), ShardSet::first(2));
        gathering
            .sum
            .add(ShardId(1), TubeName::parse(b"x").unwrap());
        assert!(!gathering.finish(ShardId(1)));
        gathering.sum.add(ShardId(0), TubeName::DEFAULT);
        gathering
            .sum
            .add(ShardId(0), TubeName::parse(b"y").unwrap());
        assert!(!gathering.is_complete() && gathering.misses(ShardId(0)));
        assert!(gathering.finish(ShardId(0)));
        assert!(gathering.is_complete() && !gathering.misses(ShardId(0)));
        let names: Vec<_> = gathering.sum.iter().map(TubeName::as_bytes).collect();
        assert_eq!(names, [&b"default"[..], b"y", b"x"]);
    }

    // S4.5
    #[test]
    fn numbers_are_added_and_file_numbers_are_not() {
        let mut sum = Sum::default();
        let mut stats = ShardStats {
            total_jobs: 3,
            ..Default::default()
        };
        stats.journal.current_index = 4;
        sum.add(ShardId(2), stats);
        assert_eq!(
            sum.total().journal.current_index,
            4,
            "of one shard it is the number"
        );
        sum.add(ShardId(0), stats);
        assert_eq!(sum.total().total_jobs, 6);
        assert_eq!(sum.total().journal.current_index, 0);
        assert_eq!(sum.of(ShardId(0)), Some(&stats));
        assert_eq!(sum.of(ShardId(1)), None);
    }
}
