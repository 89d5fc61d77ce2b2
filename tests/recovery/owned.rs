//! A file of an owner's binlog, made of any bytes: what is read of it could have been written so,
//! and a start from it finds what the next start finds again.

use std::collections::BTreeMap;

use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{Fingerprint, JobId, ShardId};
use beanshard::base::time::Nanos;
use beanshard::engine::{Engine, IdScheme, Settings};
use beanshard::role::shard::Shard;
use beanshard::wal::error::WalError;
use beanshard::wal::format::{Entries, Format, Head, Next, Spot};
use beanshard::wal::journal::{self, Sync};
use beanshard::wal::record::WallNanos;
use beanshard::wal::recover::Recovery;
use beanshard::wal::v8::V8;
use beanshard::wal::v8::record::{measure, seal, synced_of};

use crate::memory::Memory;

const NOW: Nanos = Nanos(5_000_000_000_000);
const WALL: WallNanos = WallNanos(1_700_000_000_000_000_000);

fn format(skip_damage: bool) -> V8 {
    V8 {
        fingerprint: Fingerprint(7),
        owner: ShardId(1),
        skip_damage,
    }
}

/// The file that the input stands for, and what its header gives.
fn file_of(input: &[u8]) -> (Vec<u8>, u32) {
    let mut bytes = Vec::new();
    let head = Head {
        number: 1,
        highest: JobId(1 << 20),
        begun_at: WALL,
        before_end: 0,
        is_synced: true,
    };
    let seed = format(false).write_head(&head, &mut bytes);
    let Some((form, rest)) = input.split_first() else {
        return (bytes, seed);
    };
    if form % 4 == 0 {
        return (rest.to_vec(), seed);
    }
    let mut at = bytes.len();
    bytes.extend_from_slice(rest);
    while form % 4 != 1
        && let Ok(len) = measure(&bytes[at..])
    {
        seal(seed, at as u64, &mut bytes[at..at + len]);
        at += len;
    }
    (bytes, seed)
}

/// Reads it, starts from it, and starts again.
///
/// # Panics
/// If something is not as it should be.
pub(crate) fn run(input: &[u8]) {
    let (file, seed) = file_of(input);
    read(&file, seed);
    let files = BTreeMap::from([("binlog.1".to_owned(), file)]);
    let skip_damage = input.first().is_some_and(|form| form & 4 != 0);
    let Ok(first) = start(&files, skip_damage) else {
        return;
    };
    let found = first.1;
    let then = start(&first.0, skip_damage).expect("what was gone on with is sound");
    assert_eq!(found, then.1);
}

fn read(file: &[u8], seed: u32) {
    let Ok(mut segment) = format(false).open(1, file).expect("memory can be read") else {
        return;
    };
    while let Next::Entry { offset, len, entry } = segment.next_entry().expect("memory can be read")
    {
        let bytes = &file[offset as usize..][..len as usize];
        let spot = Spot {
            seed,
            offset,
            synced: synced_of(bytes),
        };
        let mut again = Vec::new();
        format(false).write(spot, &entry, &mut again);
        assert_eq!(again, bytes);
    }
    segment.synced_to().expect("memory can be read");
}

type Files = BTreeMap<String, Vec<u8>>;
/// Ids and bodies of the jobs, in their order.
type Found = Vec<(JobId, Vec<u8>)>;

/// What is on the disk after a start and an end, and the jobs that were found.
fn start(files: &Files, skip_damage: bool) -> Result<(Files, Found), WalError> {
    let settings = journal::Settings {
        file_len: 1000,
        sync: Sync::Always,
    };
    let recovery = || {
        let memory = Memory::new(files, 1 << 20);
        Recovery::read_as(
            format(skip_damage),
            memory,
            settings,
            NOW,
            WALL,
            &mut |_| (),
        )
    };
    let mut found = Vec::new();
    let mut looked_at = recovery()?;
    while looked_at.jobs_left() > 0 {
        looked_at.restore_next(|one| {
            found.push((one.job.id, one.body.to_vec()));
            None
        });
    }
    let engine = Engine::new(Settings {
        ids: IdScheme::Slotted,
        hasher: NameHasher::new([1, 2]),
        has_default: true,
    });
    let mut shard = Shard::recover(engine, recovery()?)?;
    shard.check_invariants();
    shard.close();
    assert!(shard.take_failure().is_none());
    Ok((shard.into_journal().into_storage().files(), found))
}
