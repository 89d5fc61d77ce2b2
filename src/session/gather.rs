//! One answer from many shards: stats and list-tubes. Each shard answers from one moment of its
//! own; the whole is not atomic (S4.4).

use crate::base::ids::{ShardId, ShardSet};
use crate::base::name::TubeName;
use crate::engine::stats::ShardStats;

/// What has come together so far.
#[derive(Debug)]
pub(super) struct Gathering<T> {
    missing: ShardSet,
    /// The answers of the shards that have given theirs.
    pub(super) sum: T,
}

impl<T: Default> Gathering<T> {
    /// Nothing yet, of the shards in `from`.
    pub(super) fn start(from: ShardSet) -> Gathering<T> {
        Gathering {
            missing: from,
            sum: T::default(),
        }
    }

    /// The shard has said everything. Says whether all have.
    pub(super) fn finish(&mut self, shard: ShardId) -> bool {
        self.missing.remove(shard);
        self.missing.is_empty()
    }
}

/// Sums of the numbers of several shards.
#[derive(Debug, Default)]
pub(super) struct Sum(Option<ShardStats>);

impl Sum {
    pub(super) fn add(&mut self, stats: ShardStats) {
        match &mut self.0 {
            Some(sum) => sum.merge(&stats),
            None => self.0 = Some(stats),
        }
    }

    pub(super) fn total(&self) -> ShardStats {
        self.0.unwrap_or_default()
    }
}

/// Names of tubes, one after another in one piece of memory. No tube is at two shards, so no name
/// comes twice (S4.3).
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
}

const _: () = assert!(crate::base::limits::TUBE_NAME_LEN_MAX <= u8::MAX as usize);

impl Names {
    pub(super) fn add(&mut self, name: TubeName<'_>) {
        self.bytes.push(name.as_bytes().len() as u8);
        self.bytes.extend_from_slice(name.as_bytes());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = TubeName<'_>> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (&len, after) = rest.split_first()?;
            let (name, after) = after.split_at(usize::from(len));
            rest = after;
            TubeName::parse(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4.1, S4.3
    #[test]
    fn the_last_of_several_shards_completes_the_answer() {
        let mut gathering: Gathering<Names> = Gathering::start(ShardSet::first(2));
        gathering.sum.add(TubeName::DEFAULT);
        assert!(!gathering.finish(ShardId(1)));
        gathering.sum.add(TubeName::parse(b"x").unwrap());
        assert!(gathering.finish(ShardId(0)));
        let names: Vec<_> = gathering.sum.iter().map(TubeName::as_bytes).collect();
        assert_eq!(names, [&b"default"[..], b"x"]);
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
        sum.add(stats);
        assert_eq!(
            sum.total().journal.current_index,
            4,
            "of one shard it is the number"
        );
        sum.add(stats);
        assert_eq!(sum.total().total_jobs, 6);
        assert_eq!(sum.total().journal.current_index, 0);
    }
}
