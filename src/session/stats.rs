//! The numbers of the clients half, and the data of the four statistics replies. Rows, their order
//! and their types are the original's (legacy-behaviour section 4); text is quoted as its newest
//! version does, so that YAML reads a name like `1.5` as text.

use crate::base::ids::{Seq, SessionId, ShardSet};
use crate::base::limits::COUNTS_MAX;
use crate::engine::stats::{JobGauges, JobState, JobStats, ShardStats, TubeStats};
use crate::proto::command::Kind;
use crate::proto::reply::write_ok;
use crate::proto::yaml::Yaml;
use crate::session::gather::Sum;

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

    /// Adds what another process has counted.
    pub fn merge(&mut self, other: &Counts) {
        for (sum, number) in self.numbers_mut().into_iter().zip(other.numbers()) {
            *sum = sum.saturating_add(number);
        }
    }

    /// Appends all numbers, [`Counts::LEN`] of them: commands in the order of [`Kind::ALL`], then
    /// sessions that are open, have put, have reserved, wait, and were opened. Processes of one
    /// release alone understand each other's.
    pub fn write_numbers(&self, out: &mut Vec<u64>) {
        out.extend(self.numbers());
    }

    /// What another process has written. None if those are not [`Counts::LEN`] numbers.
    #[must_use]
    pub fn read_numbers(numbers: &[u64]) -> Option<Counts> {
        let mut counts = Counts::default();
        if numbers.len() != Counts::LEN {
            return None;
        }
        for (place, &number) in counts.numbers_mut().into_iter().zip(numbers) {
            *place = number;
        }
        Some(counts)
    }

    /// How many numbers there are.
    pub const LEN: usize = Kind::ALL.len() + 5;

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let sessions = [
            self.connections,
            self.producers,
            self.workers,
            self.waiting,
            self.total_connections,
        ];
        self.commands.into_iter().chain(sessions)
    }

    fn numbers_mut(&mut self) -> impl IntoIterator<Item = &mut u64> {
        let sessions = [
            &mut self.connections,
            &mut self.producers,
            &mut self.workers,
            &mut self.waiting,
            &mut self.total_connections,
        ];
        self.commands.iter_mut().chain(sessions)
    }
}

const _: () = assert!(
    Counts::LEN + COUNTS_OF_OTHERS <= COUNTS_MAX,
    "all that a process tells of itself fits one frame"
);

/// Numbers that processes tell of themselves besides [`Counts`], at most.
const COUNTS_OF_OTHERS: usize = 8;

/// The other processes of a sharded server, for `stats`.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// What all other frontends have counted.
    pub counts: Counts,
    /// Owners there should be.
    pub owners: u16,
    /// Frontends there should be.
    pub frontends: u16,
    /// Links between frontends and owners that stand.
    pub links_up: u64,
    /// Links between frontends and owners that do not.
    pub links_down: u64,
    /// Frames that were refused.
    pub refused_frames: u64,
}

/// A `stats` of which all but the numbers of the processes is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatsDue {
    /// Who has asked.
    pub session: SessionId,
    /// Which of its asks it is. It may have been given up meanwhile.
    pub seq: Seq,
}

/// What `stats` tells besides what shards know.
pub(crate) struct Known<'a> {
    /// The process or processes as a whole.
    pub(crate) process: &'a ProcessStats<'a>,
    /// What this process has counted.
    pub(crate) counts: &'a Counts,
    /// None in a server of one process.
    pub(crate) fleet: Option<&'a Fleet>,
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

/// Appends the reply to `stats`. In a server of several processes keys of its own come after the
/// original's, and file numbers, which have no sum, stand there.
pub(super) fn write_stats(out: &mut Vec<u8>, shards: &Sum, known: &Known<'_>) {
    let mut total = shards.total();
    let Some(fleet) = known.fleet else {
        let rows = |yaml: &mut Yaml<'_>| write_totals(yaml, &total, known.counts, known.process);
        return write_ok(out, |out| rows(&mut Yaml::begin(out)));
    };
    let mut counts = known.counts.clone();
    counts.merge(&fleet.counts);
    total.journal.oldest_index = 0;
    total.journal.current_index = 0;
    write_ok(out, |out| {
        let mut yaml = Yaml::begin(out);
        write_totals(&mut yaml, &total, &counts, known.process);
        write_fleet(&mut yaml, shards, fleet);
    });
}

fn write_fleet(yaml: &mut Yaml<'_>, shards: &Sum, fleet: &Fleet) {
    yaml.bare("mode", "sharded");
    yaml.u64("owners", fleet.owners.into());
    yaml.u64("frontends", fleet.frontends.into());
    yaml.u64("links-up", fleet.links_up);
    yaml.u64("links-down", fleet.links_down);
    yaml.u64("refused-frames", fleet.refused_frames);
    for shard in ShardSet::first(ShardSet::SHARDS_MAX).iter() {
        let Some(ShardStats { jobs, journal, .. }) = shards.of(shard) else {
            continue;
        };
        let jobs = jobs.ready + jobs.reserved + jobs.delayed + jobs.buried;
        let mut row = |what, value| yaml.numbered(("owner-", shard.0.into(), what), value);
        row("-current-jobs", jobs);
        row("-binlog-oldest-index", journal.oldest_index);
        row("-binlog-current-index", journal.current_index);
    }
}

/// Appends the original's rows.
fn write_totals(
    yaml: &mut Yaml<'_>,
    shards: &ShardStats,
    counts: &Counts,
    process: &ProcessStats<'_>,
) {
    write_gauges(yaml, &shards.jobs);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ShardId;

    fn shard(ready: u64, current_index: u64) -> ShardStats {
        let mut stats = ShardStats::default();
        stats.jobs.ready = ready;
        stats.jobs.urgent = ready;
        stats.jobs.buried = 1;
        stats.journal.oldest_index = 1;
        stats.journal.current_index = current_index;
        stats
    }

    fn text(shards: &Sum, counts: &Counts, fleet: Option<&Fleet>) -> String {
        let process = &ProcessStats::default();
        let known = Known {
            process,
            counts,
            fleet,
        };
        let mut out = Vec::new();
        write_stats(&mut out, shards, &known);
        String::from_utf8(out).unwrap()
    }

    fn keys(text: &str) -> Vec<&str> {
        text.lines()
            .filter_map(|row| row.split_once(": "))
            .map(|row| row.0)
            .collect()
    }

    // S4.1, S4.5
    #[test]
    fn a_server_of_several_processes_adds_its_keys_behind_the_originals() {
        let mut counts = Counts {
            connections: 2,
            ..Counts::default()
        };
        counts.command(Kind::Put);
        let mut sum = Sum::default();
        sum.add(ShardId(1), shard(5, 9));
        let alone = text(&sum, &counts, None);
        assert!(alone.contains("\nbinlog-current-index: 9\n"));
        sum.add(ShardId(0), shard(3, 4));

        let mut fleet = Fleet {
            owners: 2,
            frontends: 3,
            links_up: 5,
            links_down: 1,
            refused_frames: 4,
            ..Fleet::default()
        };
        fleet.counts.connections = 40;
        fleet.counts.command(Kind::Put);
        let told = text(&sum, &counts, Some(&fleet));
        let (original, all) = (keys(&alone), keys(&told));
        assert_eq!(all[..original.len()], original);
        let rest = told.split_once("mode: ").unwrap().1;
        assert_eq!(
            rest,
            "sharded\nowners: 2\nfrontends: 3\nlinks-up: 5\nlinks-down: 1\nrefused-frames: 4\n\
             owner-0-current-jobs: 4\nowner-0-binlog-oldest-index: 1\n\
             owner-0-binlog-current-index: 4\nowner-1-current-jobs: 6\n\
             owner-1-binlog-oldest-index: 1\nowner-1-binlog-current-index: 9\n\r\n"
        );
        for row in [
            "current-connections: 42",
            "cmd-put: 2",
            "current-jobs-ready: 8",
            "binlog-oldest-index: 0",
            "binlog-current-index: 0",
        ] {
            assert!(told.contains(&format!("\n{row}\n")), "{row}");
        }
    }

    #[test]
    fn the_file_numbers_of_a_lone_owner_are_in_its_own_keys_too() {
        let mut sum = Sum::default();
        sum.add(ShardId(0), shard(0, 9));
        let told = text(&sum, &Counts::default(), Some(&Fleet::default()));
        assert!(told.contains("\nbinlog-current-index: 0\n"));
        assert!(told.contains("\nowner-0-binlog-current-index: 9\n"));
    }

    // S4.2
    #[test]
    fn counts_go_from_process_to_process_and_are_added() {
        assert_eq!(Counts::LEN, 30);
        let numbers: Vec<u64> = (1..=30).collect();
        let counts = Counts::read_numbers(&numbers).unwrap();
        assert_eq!(counts.commands[..], numbers[..25]);
        assert_eq!((counts.connections, counts.producers), (26, 27));
        assert_eq!((counts.workers, counts.waiting), (28, 29));
        assert_eq!(counts.total_connections, 30);
        let mut sum = counts.clone();
        sum.merge(&counts);
        let mut written = vec![7];
        sum.write_numbers(&mut written);
        let doubled: Vec<u64> = numbers.iter().map(|number| 2 * number).collect();
        assert_eq!(written[1..], doubled);
        assert!(Counts::read_numbers(&numbers[1..]).is_none());
        assert!(Counts::read_numbers(&written).is_none());
    }
}
