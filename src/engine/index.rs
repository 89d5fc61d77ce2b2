//! The way from a job's id to its slot.
//!
//! A hash table that grows moves all its entries at once, and for a million jobs that takes long
//! enough for clients to notice. So this is many tables, each of which grows by itself. If they
//! were all of one size they would all grow at the same time, and nothing would be gained; so
//! their shares differ, the largest twice the smallest and in equal steps of a logarithm between.
//! While the number of jobs doubles they grow one after another, evenly spread.

use hashbrown::HashTable;

use crate::base::hash::id_hash;
use crate::base::ids::JobId;

/// See the module's description. Only slots are kept; whoever owns the jobs says which id is in a
/// slot.
pub(super) struct IdIndex {
    parts: Vec<HashTable<u32>>,
    /// Which part has an id, by some bits of its hash.
    part_of: Box<[u8; SHARES]>,
}

/// Tables that the index is made of.
const PARTS: usize = 64;
/// What the ids are divided into, to be dealt out to the parts.
const SHARES: usize = 4096;
/// Below this capacity, in entries, a part does not shrink.
const KEPT_CAPACITY: usize = 64;

impl Default for IdIndex {
    fn default() -> IdIndex {
        let part_of = std::array::from_fn(|share| {
            let middle = (share as f64 + 0.5) / SHARES as f64;
            (PARTS as f64 * (1.0 + middle).log2()) as u8
        });
        IdIndex {
            parts: (0..PARTS).map(|_| HashTable::new()).collect(),
            part_of: Box::new(part_of),
        }
    }
}

impl IdIndex {
    /// The slot of the job with this id.
    pub(super) fn find(&self, id: JobId, id_of: impl Fn(u32) -> JobId) -> Option<u32> {
        let hash = id_hash(id);
        self.parts[self.part(hash)]
            .find(hash, |&slot| id_of(slot) == id)
            .copied()
    }

    /// Adds a job that is not in the index.
    pub(super) fn insert(&mut self, slot: u32, id_of: impl Fn(u32) -> JobId) {
        let hash = id_hash(id_of(slot));
        let part = self.part(hash);
        self.parts[part].insert_unique(hash, slot, |&slot| id_hash(id_of(slot)));
    }

    /// Takes out the job with this id, which is in `slot`.
    pub(super) fn remove(&mut self, id: JobId, slot: u32, id_of: impl Fn(u32) -> JobId) {
        let hash = id_hash(id);
        let part = self.part(hash);
        let table = &mut self.parts[part];
        if let Ok(entry) = table.find_entry(hash, |&other| other == slot) {
            entry.remove();
        }
        if table.capacity() > KEPT_CAPACITY.max(8 * table.len()) {
            table.shrink_to(KEPT_CAPACITY.max(2 * table.len()), |&slot| {
                id_hash(id_of(slot))
            });
        }
    }

    /// The part for a hash. A table takes the lowest bits for the place and the highest for a tag;
    /// these are others.
    fn part(&self, hash: u64) -> usize {
        usize::from(self.part_of[(hash >> 40) as usize % SHARES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_ids_and_those_of_one_slot_spread_as_they_should() {
        let index = IdIndex::default();
        for step in [1, 1 << 10] {
            let mut counts = [0; PARTS];
            (1..=64_000u64).for_each(|n| counts[index.part(id_hash(JobId(n * step)))] += 1);
            let expected = |part: usize| 700.0 * (part as f64 / PARTS as f64).exp2();
            for (part, &count) in counts.iter().enumerate() {
                let ratio = f64::from(count) / expected(part);
                assert!(
                    (0.8..1.25).contains(&ratio),
                    "part {part}: {count}, step {step}"
                );
            }
        }
    }

    #[test]
    fn parts_do_not_grow_together() {
        let mut index = IdIndex::default();
        let mut grown_at_once = 0;
        let id_of = |slot: u32| JobId(u64::from(slot) + 1);
        let mut before = vec![0; PARTS];
        for slot in 0..200_000 {
            index.insert(slot, id_of);
            if slot % 1_000 == 999 {
                let now: Vec<_> = index.parts.iter().map(HashTable::capacity).collect();
                let grown = now
                    .iter()
                    .zip(&before)
                    .filter(|(now, before)| now > before)
                    .count();
                if slot > 20_000 {
                    grown_at_once = grown_at_once.max(grown);
                }
                before = now;
            }
        }
        assert!(
            grown_at_once <= 12,
            "{grown_at_once} of {PARTS} parts grew within 1000 puts"
        );
    }

    #[test]
    fn an_index_that_is_emptied_gives_its_memory_back() {
        let id_of = |slot: u32| JobId(u64::from(slot) + 1);
        let mut index = IdIndex::default();
        for slot in 0..100_000 {
            index.insert(slot, id_of);
        }
        assert_eq!(index.find(JobId(77), id_of), Some(76));
        for slot in 0..100_000 {
            index.remove(id_of(slot), slot, id_of);
        }
        assert_eq!(index.find(JobId(77), id_of), None);
        assert!(
            index
                .parts
                .iter()
                .all(|part| part.capacity() <= 2 * KEPT_CAPACITY)
        );
    }
}
