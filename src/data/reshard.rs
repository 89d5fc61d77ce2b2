//! The same jobs at another number of owners. Ids stay, and with them slots and order.

use std::path::Path;

use crate::base::ids::{JobId, ShardId};
use crate::base::slot::{SLOTS, Slot};
use crate::data::error::DataError;
use crate::data::source::{Found, Owner, Owners};
use crate::data::summary::Summary;
use crate::data::target::{Pause, Target, format_of};
use crate::data::{Settings, Show, Stage, Step};
use crate::session::shards::ShardMap;
use crate::wal::topology::{FolderSet, Layout, Topology, sync_folder};
use crate::wal::v8::V8;

/// Makes the data directory at `path`, which no server uses, one for `owners` owners.
///
/// The new binlogs are in folders that the file `topology` does not name yet; when all of them are
/// on the disk it is replaced, and only then the old ones are removed. Both numbers give each owner
/// a range of slots, so that an old owner shares no more than its first and its last new one with
/// its neighbours, and one new binlog at most has to stay open from one old owner to the next.
///
/// # Errors
/// [`DataError`]; the directory is as it was then, unless nothing but removing the old folders has
/// failed.
///
/// # Panics
/// If `owners` is 0 or more than [`SHARDS_MAX`](crate::base::ids::ShardSet::SHARDS_MAX).
pub fn reshard(
    path: &Path,
    owners: u16,
    settings: Settings,
    show: Show<'_>,
) -> Result<Summary, DataError> {
    let mut old = Owners::lock(path)?;
    let map = ShardMap::new(owners.into());
    let mut summary = Summary {
        owners_before: old.topology.owners,
        owners,
        ..Summary::default()
    };
    if old.topology.owners == owners {
        summary.is_unchanged = true;
        return Ok(summary);
    }
    let mut new = New {
        topology: Topology {
            owners,
            fingerprint: map.fingerprint(),
        },
        map,
        folders: old.dir.folders().next(),
        open: None,
    };
    for index in 0..old.topology.owners {
        let owner = Owner { all: &old, index };
        new.take_owner(&owner, settings, &mut summary, show)?;
    }

    show(Step::new(Stage::Swap, 0, 2));
    sync_folder(path)?;
    show(Step::new(Stage::Swap, 1, 2));
    old.dir.write(Layout {
        topology: new.topology,
        folders: new.folders,
    })?;
    show(Step::new(Stage::Clean, 0, 1));
    old.dir.clean()?;
    show(Step::new(Stage::Clean, 1, 1));
    Ok(summary)
}

/// What is made.
struct New {
    topology: Topology,
    map: ShardMap,
    folders: FolderSet,
    /// The binlog that the next old owner may have something for.
    open: Option<Open>,
}

struct Open {
    owner: ShardId,
    target: Target<V8>,
    /// The highest id of all old owners whose slots it has.
    highest: JobId,
}

impl New {
    /// Writes all that an old owner has to where it belongs.
    fn take_owner(
        &mut self,
        old: &Owner<'_>,
        settings: Settings,
        summary: &mut Summary,
        show: Show<'_>,
    ) -> Result<(), DataError> {
        let mut found = old.all.read(old.index, settings, show)?;
        summary.count_binlog(&found);
        let pauses = take_pauses(&mut found);
        found.group_by(|tube| self.map.of_tube(tube));
        let highest = found.highest();
        let (first, last) = ends_of(old.all.map, old.id());
        let owners = self.map.of_slot(first).0..=self.map.of_slot(last).0;
        for owner in owners.map(ShardId) {
            let mut open = self.open(old.all, owner, settings)?;
            open.highest = open.highest.max(highest);
            let there = |pause: &&Pause| self.map.of_tube(pause.tube.as_name()) == owner;
            for pause in pauses.iter().filter(there) {
                // One that is over would only have to be forgotten.
                if pause.until > settings.now() {
                    open.target.pause(pause)?;
                    summary.pauses += 1;
                }
            }
            self.take_jobs(old, &mut found, &mut open, summary, show)?;
            if ends_of(self.map, owner).1 > last {
                self.open = Some(open);
            } else {
                summary.bytes += open.target.finish(open.highest)?;
            }
        }
        debug_assert_eq!(found.jobs_left(), 0, "every slot is somebody's");
        Ok(())
    }

    /// Writes those of the jobs that come next and belong to the binlog that is open.
    fn take_jobs(
        &self,
        old: &Owner<'_>,
        found: &mut Found<V8>,
        open: &mut Open,
        summary: &mut Summary,
        show: Show<'_>,
    ) -> Result<(), DataError> {
        let all = found.jobs_left() as u64;
        let stage = Stage::Write(Some(u16::from(open.owner.0)));
        let mut done = 0;
        let mut outcome = Ok(());
        while found.next_tube().map(|tube| self.map.of_tube(tube)) == Some(open.owner) {
            show(Step::new(stage, done, all));
            done += 1;
            found.restore_next(|one| {
                summary.count(one.job.state);
                let checked = old.check(one.job.id, one.tube);
                outcome = checked.and_then(|()| open.target.put(&one.job, one.tube, &one.body));
                None
            });
            std::mem::replace(&mut outcome, Ok(()))?;
        }
        show(Step::new(stage, done, all));
        Ok(())
    }

    /// The binlog of a new owner, with the folder for it if there is none yet.
    fn open(&mut self, old: &Owners, owner: ShardId, at: Settings) -> Result<Open, DataError> {
        if let Some(open) = self.open.take() {
            debug_assert_eq!(open.owner, owner, "slots are taken in their order");
            return Ok(open);
        }
        let index = u16::from(owner.0);
        let folder = old.dir.make_owner_dir(self.folders, index)?;
        let format = format_of(self.topology.fingerprint, index);
        Ok(Open {
            owner,
            target: Target::begin(format, &folder, at)?,
            highest: JobId(0),
        })
    }
}

/// The first and the last slot of an owner.
fn ends_of(map: ShardMap, owner: ShardId) -> (Slot, Slot) {
    let mut slots = (0..SLOTS as u16)
        .map(Slot)
        .filter(|&slot| map.of_slot(slot) == owner);
    let first = slots.next().unwrap_or(Slot(0));
    (first, slots.next_back().unwrap_or(first))
}

/// All pauses that are told of, those that are over too.
pub(super) fn take_pauses(found: &mut Found<V8>) -> Vec<Pause> {
    let mut pauses = Vec::new();
    while found.pauses_left() > 0 {
        found.restore_pause(|pause| {
            pauses.push(Pause {
                tube: pause.tube.into(),
                length: pause.length,
                until: pause.until,
            });
            true
        });
    }
    pauses
}
