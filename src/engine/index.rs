//! The way from a job's id to its slot.
//!
//! A hash table that grows moves all its entries at once, and for a million jobs that takes long
//! enough for clients to notice. So this is many tables, each of which grows by itself. If they
//! were all of one size they would all grow at the same time, and nothing would be gained; so
//! their shares differ, the largest twice the smallest and in equal steps of a logarithm between.
//! While the number of jobs doubles they grow one after another, evenly spread.
//!
//! Jobs that were put one after another mostly go so, too. So eight neighbours in the sequence
//! stand side by side in the table instead of in eight places of which none is in a cache: with a
//! million jobs that was a third of what a command cost.

use hashbrown::HashTable;

use crate::base::hash::id_hash;
use crate::base::ids::JobId;

/// See the module's description. Only slots are kept; whoever owns the jobs says which id is in a
/// slot.
pub(super) struct IdIndex {
    parts: Vec<HashTable<u32>>,
    /// Which part has an id, by some bits of its hash.
    part_of: Box<[u8; SHARES]>,
    /// The bit of an id at which its number in the sequence begins.
    sequence_at: u32,
}

/// Tables that the index is made of.
const PARTS: usize = 64;
/// What the ids are divided into, to be dealt out to the parts.
const SHARES: usize = 4096;
/// Consecutive numbers that stand side by side. More of them would leave some parts of a table
/// crowded and others empty.
const NEIGHBOURS: u64 = 8;
/// Below this capacity, in entries, a part does not shrink.
const KEPT_CAPACITY: usize = 64;

impl IdIndex {
    /// An index for ids whose number in the sequence begins at this bit.
    pub(super) fn new(sequence_at: u32) -> IdIndex {
        let part_of = std::array::from_fn(|share| {
            let middle = (share as f64 + 0.5) / SHARES as f64;
            (PARTS as f64 * (1.0 + middle).log2()) as u8
        });
        IdIndex {
            parts: (0..PARTS).map(|_| HashTable::new()).collect(),
            part_of: Box::new(part_of),
            sequence_at,
        }
    }

    /// The slot of the job with this id.
    pub(super) fn find(&self, id: JobId, id_of: impl Fn(u32) -> JobId) -> Option<u32> {
        let hash = hash_of(id, self.sequence_at);
        self.parts[self.part(hash)]
            .find(hash, |&slot| id_of(slot) == id)
            .copied()
    }

    /// Adds a job that is not in the index.
    pub(super) fn insert(&mut self, slot: u32, id_of: impl Fn(u32) -> JobId) {
        let at = self.sequence_at;
        let hash = hash_of(id_of(slot), at);
        let part = self.part(hash);
        self.parts[part].insert_unique(hash, slot, |&slot| hash_of(id_of(slot), at));
    }

    /// Takes out the job with this id, which is in `slot`.
    pub(super) fn remove(&mut self, id: JobId, slot: u32, id_of: impl Fn(u32) -> JobId) {
        let at = self.sequence_at;
        let hash = hash_of(id, at);
        let part = self.part(hash);
        let table = &mut self.parts[part];
        if let Ok(entry) = table.find_entry(hash, |&other| other == slot) {
            entry.remove();
        }
        if table.capacity() > KEPT_CAPACITY.max(8 * table.len()) {
            table.shrink_to(KEPT_CAPACITY.max(2 * table.len()), |&slot| {
                hash_of(id_of(slot), at)
            });
        }
    }

    /// The part for a hash. A table takes the lowest bits for the place and the highest for a tag;
    /// these are others.
    fn part(&self, hash: u64) -> usize {
        usize::from(self.part_of[(hash >> 40) as usize % SHARES])
    }
}

/// The hash of an id. Of neighbours it differs in the lowest bits by one each, and in the highest.
fn hash_of(id: JobId, sequence_at: u32) -> u64 {
    let neighbour = id.0 >> sequence_at & (NEIGHBOURS - 1);
    let hash = id_hash(id.0 & !((NEIGHBOURS - 1) << sequence_at));
    hash.wrapping_add(neighbour | neighbour << (u64::BITS - NEIGHBOURS.ilog2()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_ids_and_those_of_one_slot_spread_as_they_should() {
        for at in [0, 10] {
            let index = IdIndex::new(at);
            let mut counts = [0; PARTS];
            let part_of = |n: u64| index.part(hash_of(JobId(n << at), at));
            (1..=640_000).for_each(|n| counts[part_of(n)] += 1);
            let expected = |part: usize| 7000.0 * (part as f64 / PARTS as f64).exp2();
            for (part, &count) in counts.iter().enumerate() {
                let ratio = f64::from(count) / expected(part);
                assert!(
                    (0.8..1.25).contains(&ratio),
                    "part {part}: {count}, sequence at {at}"
                );
            }
        }
    }

    #[test]
    fn neighbours_stand_side_by_side_and_are_told_apart() {
        for at in [0, 10] {
            let hash = |n: u64| hash_of(JobId((n << at) | (5 % (1 << at))), at);
            for n in 0..NEIGHBOURS {
                assert_eq!(hash(800 + n) as u32, hash(800) as u32 + n as u32);
                assert_eq!(
                    (0..NEIGHBOURS)
                        .filter(|&m| hash(800 + m) >> 57 == hash(800 + n) >> 57)
                        .count(),
                    1
                );
            }
        }
    }

    #[test]
    fn parts_do_not_grow_together() {
        let mut index = IdIndex::new(0);
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
        let mut index = IdIndex::new(0);
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
