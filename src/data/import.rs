//! The jobs of a legacy binlog in a new directory of the sharded mode. They get new ids, which have
//! to say the slots of their tubes, in the order of the old ones.

use std::fs::File;
use std::path::Path;

use crate::base::ids::JobId;
use crate::base::slot::Slot;
use crate::data::error::DataError;
use crate::data::source::{Found, read};
use crate::data::summary::Summary;
use crate::data::target::{Target, format_of};
use crate::data::{Settings, Show, Stage, Step, refuse_others};
use crate::engine::IdScheme;
use crate::engine::job::JobRecord;
use crate::session::shards::ShardMap;
use crate::wal::directory::lock_folder;
use crate::wal::topology::{DataDir, FolderSet, Kind, Layout, Topology, look, sync_folder};
use crate::wal::v7::V7;
use crate::wal::v8::V8;

/// Makes of the empty directory at `path` one for `owners` owners, with the jobs of the binlog at
/// `from`, which no server uses. That is only read.
///
/// While it is being filled there is `topology.new`, and no owner's folder is one that a server
/// would take for its own.
///
/// # Errors
/// [`DataError`]; the directory counts as empty then.
///
/// # Panics
/// If `owners` is 0 or more than [`SHARDS_MAX`](crate::base::ids::ShardSet::SHARDS_MAX).
pub fn import(
    from: &Path,
    path: &Path,
    owners: u16,
    settings: Settings,
    show: Show<'_>,
) -> Result<Summary, DataError> {
    let _lock = lock_legacy(from)?;
    let mut dir = DataDir::lock(path)?;
    if *dir.kind() == Kind::New {
        dir.clean()?;
    }
    refuse_others(path)?;
    let mut found = read(V7, from, None, settings, show)?;
    let map = ShardMap::new(owners.into());
    let layout = Layout {
        topology: Topology {
            owners,
            fingerprint: map.fingerprint(),
        },
        folders: FolderSet::FIRST.next(),
    };
    let mut summary = Summary {
        owners,
        ..Summary::default()
    };
    summary.count_binlog(&found);
    let ids = ids_of(&found);
    found.group_by(|tube| map.of_tube(tube));

    dir.announce(layout)?;
    for index in 0..owners {
        let folder = dir.make_owner_dir(layout.folders, index)?;
        let format = format_of(layout.topology.fingerprint, index);
        let mut target = Target::begin(format, &folder, settings)?;
        let is_here = |found: &Found<V7>| {
            let tube = found.next_tube();
            tube.map(|tube| u16::from(map.of_tube(tube).0)) == Some(index)
        };
        let stage = Stage::Write(Some(index));
        let all = found.jobs_left() as u64;
        while is_here(&found) {
            let done = all - found.jobs_left() as u64;
            show(Step::new(stage, done, all));
            take_job(&mut found, &ids, &mut target, &mut summary)?;
        }
        summary.bytes += target.finish(JobId(0))?;
    }
    show(Step::new(Stage::Swap, 0, 2));
    sync_folder(path)?;
    show(Step::new(Stage::Swap, 1, 2));
    dir.write(layout)?;
    show(Step::new(Stage::Swap, 2, 2));
    Ok(summary)
}

/// Locks a directory if it is a binlog of the other mode.
fn lock_legacy(from: &Path) -> Result<File, DataError> {
    match look(from)? {
        Kind::Legacy(_) => Ok(lock_folder(from)?),
        Kind::New | Kind::Sharded(_) => {
            let path = from.to_owned();
            Err(DataError::NotLegacy { path })
        }
    }
}

/// All ids in their order. The place of one is the sequence of the new one.
fn ids_of(found: &Found<V7>) -> Vec<JobId> {
    let mut ids: Vec<JobId> = found.births().map(|(_, id)| id).collect();
    ids.sort_unstable();
    ids
}

fn take_job(
    found: &mut Found<V7>,
    ids: &[JobId],
    target: &mut Target<V8>,
    summary: &mut Summary,
) -> Result<(), DataError> {
    let mut outcome = Ok(());
    found.restore_next(|one| {
        let before = ids.partition_point(|&id| id < one.job.id) as u64;
        let id = IdScheme::Slotted.id(before + 1, Slot::of(one.tube));
        summary.count(one.job.state);
        let job = JobRecord { id, ..one.job };
        outcome = target.put(&job, one.tube, &one.body);
        None
    });
    outcome
}
