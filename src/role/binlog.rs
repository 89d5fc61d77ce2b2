//! The start of a process that has a binlog.

use std::path::Path;

use crate::engine::Engine;
use crate::role::error::RoleError;
use crate::role::shard::Shard;
use crate::sys::clock;
use crate::wal::disk::Disk;
use crate::wal::format::Format;
use crate::wal::journal::{Settings, Sync, Wal};
use crate::wal::record::WallNanos;
use crate::wal::recover::{Progress, Recovery};

/// Seconds between two lines about how far the reading of a binlog is.
const REPORT_SECS: u64 = 1;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The target of this module's log lines.
const LOG: &str = "binlog";

/// When a binlog is synced that is to be so every so many milliseconds, or at once if they are 0.
pub(super) fn sync_of(millis: Option<u64>) -> Sync {
    match millis {
        Some(0) => Sync::Always,
        Some(millis) => Sync::Every(millis.saturating_mul(NANOS_PER_MILLI)),
        None => Sync::Never,
    }
}

/// The shard that the binlog in `dir` tells of. The directory is locked as long as it lives.
pub(super) fn recover<F: Format>(
    engine: Engine,
    dir: &Path,
    format: F,
    settings: Settings,
) -> Result<Shard<Wal<Disk, F>>, RoleError> {
    let disk = Disk::lock(dir)?;
    let start = clock::monotonic();
    let mut last_report = start;
    let mut total = Progress::default();
    let mut report = |progress: Progress| {
        total = progress;
        let now = clock::monotonic();
        if now.secs_since(last_report) >= REPORT_SECS {
            last_report = now;
            let Progress { records, bytes, .. } = progress;
            log::info!(target: LOG, "reading binlog records={records} bytes={bytes}");
        }
    };
    let wall = WallNanos(clock::wall());
    let recovery = Recovery::read_as(format, disk, settings, start, wall, &mut report)?;
    let jobs = recovery.jobs_left();
    let shard = Shard::recover(engine, recovery)?;
    log::info!(
        target: LOG,
        "binlog read dir={} records={} jobs={jobs} ms={}",
        dir.display(),
        total.records,
        clock::monotonic().since(start) / NANOS_PER_MILLI,
    );
    Ok(shard)
}
