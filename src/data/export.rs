//! The jobs of a directory of the sharded mode in a new legacy binlog, which the C server can read.
//! They get ids 1, 2, 3, ... in the order in which they were put.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::ids::JobId;
use crate::base::time::Nanos;
use crate::data::error::DataError;
use crate::data::reshard::take_pauses;
use crate::data::source::{Owner, Owners};
use crate::data::summary::Summary;
use crate::data::target::Target;
use crate::data::{Settings, Show, Stage, Step, refuse_others};
use crate::engine::job::JobRecord;
use crate::wal::directory::{LOCK, lock_folder};
use crate::wal::segment::FileName;
use crate::wal::topology::{remove_folder, sync_folder};
use crate::wal::v7::V7;

/// The folder in which the binlog is made.
const WORK: &str = "export.new";

/// Makes of the empty directory at `to` a binlog that has the jobs of the data directory at `path`,
/// which no server uses.
///
/// The files are made in a folder inside of it. To take their places they have to be renamed one by
/// one, and a server that finds some of them only would take these for all. So that none can start
/// meanwhile, neither this one nor the C one, that folder first becomes `lock`, which every server
/// wants to be a file. It goes when all files are in their places.
///
/// # Errors
/// [`DataError`]; the binlog is empty then, or no server starts on it. To do it again makes it
/// good.
pub fn export(
    path: &Path,
    to: &Path,
    settings: Settings,
    show: Show<'_>,
) -> Result<Summary, DataError> {
    let old = Owners::lock(path)?;
    clean(to)?;
    let lock = lock_folder(to)?;
    remove_if_there(&to.join(WORK))?;
    refuse_others(to)?;
    let mut summary = Summary {
        owners_before: old.topology.owners,
        ..Summary::default()
    };
    let order = order(&old, settings, show)?;

    let work = to.join(WORK);
    fs::create_dir(&work).map_err(failed("make", &work))?;
    let mut target = Target::begin(V7, &work, settings)?;
    for index in 0..old.topology.owners {
        let owner = Owner { all: &old, index };
        take_owner(&owner, &order, &mut target, settings, &mut summary, show)?;
    }
    summary.bytes = target.finish(JobId(0))?;
    // Nobody else comes in between: the directory is locked, and then this is.
    let work_lock = lock_folder(&work)?;
    publish(to, show)?;
    drop((lock, work_lock));
    Ok(summary)
}

/// All jobs in the order in which they were put. The place of one is its new id.
fn order(
    old: &Owners,
    settings: Settings,
    show: Show<'_>,
) -> Result<Vec<(Nanos, JobId)>, DataError> {
    let mut order = Vec::new();
    for index in 0..old.topology.owners {
        order.extend(old.read(index, settings, show)?.births());
    }
    order.sort_unstable();
    Ok(order)
}

fn take_owner(
    owner: &Owner<'_>,
    order: &[(Nanos, JobId)],
    target: &mut Target<V7>,
    settings: Settings,
    summary: &mut Summary,
    show: Show<'_>,
) -> Result<(), DataError> {
    let mut found = owner.all.read(owner.index, settings, show)?;
    summary.count_binlog(&found);
    let pauses = take_pauses(&mut found);
    let running = pauses.iter().filter(|one| one.until > settings.now());
    summary.lost_pauses += running.count() as u64;
    let stage = Stage::Write(None);
    let all = order.len() as u64;
    while found.jobs_left() > 0 {
        let done = summary.jobs();
        show(Step::new(stage, done, all));
        let mut outcome = Ok(());
        found.restore_next(|one| {
            let birth = (one.job.created_at, one.job.id);
            let before = order.partition_point(|&other| other < birth) as u64;
            let job = JobRecord {
                id: JobId(before + 1),
                ..one.job
            };
            summary.count(job.state);
            let checked = owner.check(birth.1, one.tube);
            outcome = checked.and_then(|()| target.put(&job, one.tube, &one.body));
            None
        });
        outcome?;
    }
    Ok(())
}

/// Puts the files into their places.
fn publish(to: &Path, show: Show<'_>) -> Result<(), DataError> {
    let (work, gate) = (to.join(WORK), to.join(LOCK));
    let files = files_of(&work)?;
    let (mut done, all) = (0, files.len() as u64 + 5);
    let mut next = || {
        show(Step::new(Stage::Swap, done, all));
        done += 1;
    };
    next();
    fs::remove_file(&gate).map_err(failed("remove", &gate))?;
    next();
    fs::rename(&work, &gate).map_err(failed("rename", &work))?;
    next();
    sync_folder(to)?;
    for file in files {
        next();
        fs::rename(gate.join(&file), to.join(&file)).map_err(failed("rename", &file))?;
    }
    sync_folder(&gate)?;
    sync_folder(to)?;
    next();
    let inner = gate.join(LOCK);
    fs::remove_file(&inner).map_err(failed("remove", &inner))?;
    next();
    fs::remove_dir(&gate).map_err(failed("remove", &gate))?;
    sync_folder(to)?;
    next();
    Ok(())
}

/// Removes what an export has left that was killed while it put files into their places. No server
/// can have used them.
fn clean(to: &Path) -> Result<(), DataError> {
    let gate = to.join(LOCK);
    if !gate.is_dir() {
        return Ok(());
    }
    let _lock = lock_folder(&gate)?;
    for file in files_of(to)? {
        let file = to.join(file);
        fs::remove_file(&file).map_err(failed("remove", &file))?;
    }
    sync_folder(to)?;
    Ok(remove_folder(&gate)?)
}

fn remove_if_there(work: &Path) -> Result<(), DataError> {
    if work.is_dir() {
        remove_folder(work)?;
    }
    Ok(())
}

/// The names of the files of the binlog in this folder.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            if let FileName::Segment(_) = FileName::of(&name) {
                files.push(name.into());
            }
        }
        Ok(files)
    };
    list().map_err(failed("list", path))
}

fn failed(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataError {
    move |source| DataError::Publish {
        step,
        path: path.to_owned(),
        source,
    }
}
