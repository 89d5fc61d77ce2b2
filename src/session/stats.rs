//! The numbers of the clients half, and the data of the four statistics replies. Rows, their order
//! and their types are the original's (legacy-behaviour section 4); text is quoted as its newest
//! version does, so that YAML reads a name like `1.5` as text.

use crate::engine::stats::{JobGauges, JobState, JobStats, ShardStats, TubeStats};
use crate::proto::command::Kind;
use crate::proto::reply::write_ok;
use crate::proto::yaml::Yaml;

/// What the clients half counts. Each session and each command is counted once, where it was
/// parsed (S4.2).
#[derive(Clone, Debug)]
pub struct Counts {
    /// Commands by kind, in the order of [`Kind::ALL`].
    commands: [u64; Kind::ALL.len()],
    /// Sessions that are open.
    pub connections: u64,
    /// Open sessions that have put.
    pub producers: u64,
    /// Open sessions that have reserved.
    pub workers: u64,
    /// Sessions whose reserve waits.
    pub waiting: u64,
    /// Sessions since the start.
    pub total_connections: u64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            commands: [0; Kind::ALL.len()],
            connections: 0,
            producers: 0,
            workers: 0,
            waiting: 0,
            total_connections: 0,
        }
    }
}

impl Counts {
    /// Counts a command.
    pub fn command(&mut self, kind: Kind) {
        self.commands[kind as usize] += 1;
    }
}

/// What the process knows of itself, for `stats`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessStats<'a> {
    /// Its process id.
    pub pid: u32,
    /// CPU time spent in the program, in microseconds.
    pub user_cpu_us: u64,
    /// CPU time spent in the kernel for it, in microseconds.
    pub system_cpu_us: u64,
    /// Whole seconds since it was started.
    pub uptime_secs: u64,
    /// Whether it takes no new jobs.
    pub draining: bool,
    /// What tells this run from others: 16 hexadecimal digits.
    pub run_id: &'a str,
    /// Name of the host.
    pub hostname: &'a str,
    /// Version of the operating system, as `uname` says it.
    pub os: &'a str,
    /// Kind of machine, as `uname` says it.
    pub platform: &'a str,
    /// The version that clients compare.
    pub version: &'a str,
    /// Largest body in bytes.
    pub body_len_max: u32,
    /// Size in bytes at which a binlog file is full.
    pub binlog_size_max: u64,
}

/// The order of the `cmd-` rows, which is not that of recognition.
const COMMAND_ROWS: [Kind; 22] = [
    Kind::Put,
    Kind::Peek,
    Kind::PeekReady,
    Kind::PeekDelayed,
    Kind::PeekBuried,
    Kind::Reserve,
    Kind::ReserveWithTimeout,
    Kind::Delete,
    Kind::Release,
    Kind::Use,
    Kind::Watch,
    Kind::Ignore,
    Kind::Bury,
    Kind::Kick,
    Kind::Touch,
    Kind::Stats,
    Kind::StatsJob,
    Kind::StatsTube,
    Kind::ListTubes,
    Kind::ListTubeUsed,
    Kind::ListTubesWatched,
    Kind::PauseTube,
];

/// Appends the reply to `stats`.
pub fn write_stats(
    out: &mut Vec<u8>,
    shards: &ShardStats,
    counts: &Counts,
    process: &ProcessStats<'_>,
) {
    write_ok(out, |out| {
        let mut yaml = Yaml::begin(out);
        write_gauges(&mut yaml, &shards.jobs);
        for kind in COMMAND_ROWS {
            if let Some(key) = kind.stats_key() {
                yaml.u64(key, counts.commands[kind as usize]);
            }
        }
        yaml.u64("job-timeouts", shards.job_timeouts);
        yaml.u64("total-jobs", shards.total_jobs);
        yaml.u64("max-job-size", process.body_len_max.into());
        yaml.u64("current-tubes", shards.tubes);
        yaml.u64("current-connections", counts.connections);
        yaml.u64("current-producers", counts.producers);
        yaml.u64("current-workers", counts.workers);
        yaml.u64("current-waiting", counts.waiting);
        yaml.u64("total-connections", counts.total_connections);
        yaml.u64("pid", process.pid.into());
        yaml.quoted("version", process.version.as_bytes());
        yaml.seconds("rusage-utime", process.user_cpu_us);
        yaml.seconds("rusage-stime", process.system_cpu_us);
        yaml.u64("uptime", process.uptime_secs);
        yaml.u64("binlog-oldest-index", shards.journal.oldest_index);
        yaml.u64("binlog-current-index", shards.journal.current_index);
        yaml.u64("binlog-records-migrated", shards.journal.records_migrated);
        yaml.u64("binlog-records-written", shards.journal.records_written);
        yaml.u64("binlog-max-size", process.binlog_size_max);
        yaml.bool("draining", process.draining);
        // Quirk: bare, as in the original (K17). It holds a letter that no number has.
        yaml.bare("id", process.run_id);
        yaml.quoted("hostname", process.hostname.as_bytes());
        yaml.quoted("os", process.os.as_bytes());
        yaml.quoted("platform", process.platform.as_bytes());
    });
}

/// Appends the reply to `stats-tube`.
pub fn write_tube_stats(out: &mut Vec<u8>, stats: &TubeStats<'_>) {
    write_ok(out, |out| {
        let mut yaml = Yaml::begin(out);
        yaml.quoted("name", stats.name.as_bytes());
        write_gauges(&mut yaml, &stats.jobs);
        yaml.u64("total-jobs", stats.total_jobs);
        yaml.u64("current-using", stats.using);
        yaml.u64("current-watching", stats.watching);
        yaml.u64("current-waiting", stats.waiting);
        yaml.u64("cmd-delete", stats.deletes);
        yaml.u64("cmd-pause-tube", stats.pauses);
        yaml.u64("pause", stats.pause.0.into());
        yaml.u64("pause-time-left", stats.pause_left_secs);
    });
}

/// Appends the reply to `stats-job`.
pub fn write_job_stats(out: &mut Vec<u8>, stats: &JobStats<'_>) {
    write_ok(out, |out| {
        let mut yaml = Yaml::begin(out);
        yaml.u64("id", stats.id.0);
        yaml.quoted("tube", stats.tube.as_bytes());
        yaml.bare("state", state_word(stats.state));
        yaml.u64("pri", stats.pri.0.into());
        yaml.u64("age", stats.age_secs);
        yaml.u64("delay", stats.delay.0.into());
        yaml.u64("ttr", stats.ttr.0.into());
        yaml.u64("time-left", stats.left_secs);
        yaml.u64("file", stats.segment);
        yaml.u64("reserves", stats.counts.reserves.into());
        yaml.u64("timeouts", stats.counts.timeouts.into());
        yaml.u64("releases", stats.counts.releases.into());
        yaml.u64("buries", stats.counts.buries.into());
        yaml.u64("kicks", stats.counts.kicks.into());
    });
}

fn write_gauges(yaml: &mut Yaml<'_>, jobs: &JobGauges) {
    yaml.u64("current-jobs-urgent", jobs.urgent);
    yaml.u64("current-jobs-ready", jobs.ready);
    yaml.u64("current-jobs-reserved", jobs.reserved);
    yaml.u64("current-jobs-delayed", jobs.delayed);
    yaml.u64("current-jobs-buried", jobs.buried);
}

fn state_word(state: JobState) -> &'static str {
    match state {
        JobState::Ready | JobState::Offered { .. } => "ready",
        JobState::Reserved { .. } => "reserved",
        JobState::Delayed => "delayed",
        JobState::Buried => "buried",
    }
}
