//! The log: one line a record on standard error, for people and for the journal that collects the
//! lines of all our processes.

use std::fmt::Write as _;
use std::io::{self, Write};

use env_logger::Builder;
use log::{LevelFilter, Record};

/// The variable that says what is logged, as `debug` or `listener=debug,warn`.
const FILTER_VARIABLE: &str = "BEANSHARD_LOG";

/// Starts the log. Each line begins with `name`, the process's name as people know it: how the
/// program was called, or a role and its number.
///
/// Records up to the level `info` are shown unless `BEANSHARD_LOG` asks for more or less. A second
/// call changes nothing.
pub fn init(name: &str) {
    let name = name.to_owned();
    let started = Builder::new()
        .filter_level(LevelFilter::Info)
        .parse_env(FILTER_VARIABLE)
        .format(move |out, record| write_record(out, &name, record))
        .try_init();
    // The only failure is that there is a log already.
    let _ = started;
}

/// Writes `<name>: <level> <target>: <text>` and a line end. What a text may quote from outside
/// cannot begin another line.
fn write_record(out: &mut impl Write, name: &str, record: &Record<'_>) -> io::Result<()> {
    let mut text = String::new();
    for c in record.args().to_string().chars() {
        if c.is_control() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", c.escape_default());
        } else {
            text.push(c);
        }
    }
    let level = match record.level() {
        log::Level::Error => "error",
        log::Level::Warn => "warn",
        log::Level::Info => "info",
        log::Level::Debug => "debug",
        log::Level::Trace => "trace",
    };
    writeln!(out, "{name}: {level} {}: {text}", record.target())
}

#[cfg(test)]
mod tests {
    use log::Level;

    use super::*;

    fn line(args: std::fmt::Arguments<'_>) -> String {
        let record = Record::builder()
            .level(Level::Warn)
            .target("listener")
            .args(args)
            .build();
        let mut out = Vec::new();
        write_record(&mut out, "owner/2", &record).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_record_is_a_line() {
        assert_eq!(
            line(format_args!("removing socket path={}", "/run/b")),
            "owner/2: warn listener: removing socket path=/run/b\n"
        );
        assert_eq!(
            line(format_args!("path={}", "a\nb\tc")),
            "owner/2: warn listener: path=a\\nb\\tc\n"
        );
    }

    #[test]
    fn starting_twice_is_harmless() {
        init("a");
        init("b");
    }
}
