//! The flags as data: one table feeds the parser and the help text.

use std::fmt::Write;

/// What a flag is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    Binlog,
    SyncMs,
    NoSync,
    Listen,
    Port,
    BinlogSize,
    User,
    Verbose,
    BodyLenMax,
    Compact,
    NoCompact,
    Legacy,
    Sharded,
    Owners,
    Frontends,
    OwnerWait,
    MultiWatch,
    SkipDamage,
    OldVersion,
    Version,
    OldHelp,
    Help,
}

struct Row {
    flag: Flag,
    short: Option<char>,
    long: Option<&'static str>,
    value: &'static str,
    help: &'static str,
}

/// In the order of the help text.
const ROWS: [Row; 22] = [
    row(
        Flag::Binlog,
        Some('b'),
        Some("binlog"),
        "DIR",
        "keep jobs in a binlog in DIR, which must be there",
    ),
    row(
        Flag::SyncMs,
        Some('f'),
        Some("fsync-ms"),
        "MS",
        "sync the binlog every MS milliseconds at most (50), 0 is at once",
    ),
    row(
        Flag::NoSync,
        Some('F'),
        Some("no-fsync"),
        "",
        "never sync the binlog",
    ),
    row(
        Flag::Listen,
        Some('l'),
        Some("listen"),
        "ADDR",
        "listen on a host name or address, or on unix:PATH (every address)",
    ),
    row(
        Flag::Port,
        Some('p'),
        Some("port"),
        "PORT",
        "listen on a port number or service name (11300)",
    ),
    row(
        Flag::User,
        Some('u'),
        Some("user"),
        "USER",
        "become USER, with USER's groups, once listening",
    ),
    row(
        Flag::BodyLenMax,
        Some('z'),
        Some("max-job-size"),
        "BYTES",
        "largest job body (65535), 1073741824 at most",
    ),
    row(
        Flag::BinlogSize,
        Some('s'),
        Some("binlog-size"),
        "BYTES",
        "size of a binlog file (10485760)",
    ),
    row(
        Flag::Verbose,
        Some('V'),
        Some("verbose"),
        "",
        "tell of connections on standard output, twice: of commands too",
    ),
    row(
        Flag::Legacy,
        None,
        Some("legacy"),
        "",
        "serve from one process (the default)",
    ),
    row(
        Flag::Sharded,
        None,
        Some("sharded"),
        "",
        "serve from several processes, with jobs in memory only",
    ),
    row(
        Flag::Owners,
        None,
        Some("owners"),
        "N",
        "with --sharded: processes that have jobs, 64 at most (a quarter of all)",
    ),
    row(
        Flag::Frontends,
        None,
        Some("frontends"),
        "N",
        "with --sharded: processes that have clients, 64 at most (the rest)",
    ),
    row(
        Flag::OwnerWait,
        None,
        Some("owner-wait"),
        "MS",
        "with --sharded: wait so long for jobs whose process is not there (1000)",
    ),
    row(
        Flag::MultiWatch,
        None,
        Some("multi-watch"),
        "HOW",
        "with --sharded: serve or reject a reserve over several of them (serve)",
    ),
    row(
        Flag::SkipDamage,
        None,
        Some("skip-damage"),
        "",
        "with --sharded: start though a binlog is damaged, without what is lost",
    ),
    row(Flag::Compact, Some('c'), None, "", "without effect"),
    row(Flag::NoCompact, Some('n'), None, "", "without effect"),
    row(
        Flag::OldVersion,
        Some('v'),
        None,
        "",
        "print the version as beanstalkd does, and end",
    ),
    row(
        Flag::Version,
        None,
        Some("version"),
        "",
        "print the version, and end",
    ),
    row(
        Flag::OldHelp,
        Some('h'),
        None,
        "",
        "print this on standard error, and end",
    ),
    row(Flag::Help, None, Some("help"), "", "print this, and end"),
];

const fn row(
    flag: Flag,
    short: Option<char>,
    long: Option<&'static str>,
    value: &'static str,
    help: &'static str,
) -> Row {
    Row {
        flag,
        short,
        long,
        value,
        help,
    }
}

/// The flag with this letter.
pub(super) fn by_short(letter: char) -> Option<Flag> {
    find(|row| row.short == Some(letter))
}

/// The flag with this long name; there are no abbreviations.
pub(super) fn by_long(name: &str) -> Option<Flag> {
    find(|row| row.long == Some(name))
}

fn find(matches: impl Fn(&Row) -> bool) -> Option<Flag> {
    ROWS.iter().find(|row| matches(row)).map(|row| row.flag)
}

/// The help text.
pub(super) fn help(program: &str) -> String {
    let mut text = format!(
        "Use: {program} [OPTIONS]\n     {program} wal --help   (to look at a binlog)\n\
         \x20    {program} reshard --help   (also import, export: data of --sharded)\n\n\
         Options:\n"
    );
    for row in &ROWS {
        let short = row.short.map(|letter| format!("-{letter}"));
        let long = row.long.map(|name| format!("--{name}"));
        let names = match (short, long) {
            (Some(short), Some(long)) => format!("{short}, {long}"),
            (Some(short), None) => short,
            (None, Some(long)) => format!("    {long}"),
            (None, None) => String::new(),
        };
        let names = format!("{names} {}", row.value);
        // Writing to a string cannot fail.
        let _ = writeln!(text, " {names:<27}{}", row.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_name_of_its_own() {
        for row in &ROWS {
            assert!(row.short.is_some() || row.long.is_some());
            assert!(
                row.short
                    .is_none_or(|letter| by_short(letter) == Some(row.flag))
            );
            assert!(row.long.is_none_or(|name| by_long(name) == Some(row.flag)));
        }
    }

    #[test]
    fn the_help_fits_a_terminal_of_100_columns() {
        let help = help("beanstalkd");
        assert!(help.starts_with("Use: beanstalkd [OPTIONS]\n"));
        assert!(
            help.lines()
                .all(|line| line.len() <= 100 && line.trim_end() == line),
            "{help}"
        );
        assert_eq!(help.lines().count(), ROWS.len() + 5);
    }
}
