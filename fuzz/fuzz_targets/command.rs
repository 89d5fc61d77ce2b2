//! The input is a line: reading it does not panic, and what it was read as, written down anew,
//! reads the same.

#![no_main]

use beanshard::proto::command::{Command, Trailing, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let Ok(command) = parse(line) else { return };
    let written = write(&command);
    let again = parse(&written).unwrap_or_else(|refused| {
        panic!(
            "{command:?} is written as {}: {refused:?}",
            written.escape_ascii()
        )
    });
    assert_eq!(command, again, "{}", written.escape_ascii());
});

/// The command as a line.
fn write(command: &Command<'_>) -> Vec<u8> {
    let prefix = command.kind().prefix();
    let arguments = match *command {
        Command::Put {
            pri,
            delay,
            ttr,
            body_len,
            trailing,
        } => {
            let junk = match trailing {
                Trailing::Nothing => "",
                Trailing::Apart => " x",
                Trailing::Attached => "x",
            };
            format!("{} {} {} {body_len}{junk}", pri.0, delay.0, ttr.0)
        }
        Command::Peek(id)
        | Command::ReserveJob(id)
        | Command::Delete(id)
        | Command::KickJob(id)
        | Command::Touch(id)
        | Command::StatsJob(id) => id.0.to_string(),
        Command::Release { id, pri, delay } => format!("{} {} {}", id.0, pri.0, delay.0),
        Command::Bury { id, pri } => format!("{} {}", id.0, pri.0),
        Command::ReserveWithTimeout(timeout) => timeout.0.to_string(),
        Command::Kick { count } => count.to_string(),
        Command::Use(tube)
        | Command::Watch(tube)
        | Command::Ignore(tube)
        | Command::StatsTube(tube) => text(tube.as_bytes()),
        Command::PauseTube { tube, pause } => format!(" {} {}", text(tube.as_bytes()), pause.0),
        Command::PeekReady
        | Command::PeekDelayed
        | Command::PeekBuried
        | Command::Reserve
        | Command::Stats
        | Command::ListTubesWatched
        | Command::ListTubeUsed
        | Command::ListTubes
        | Command::Quit => String::new(),
    };
    format!("{prefix}{arguments}").into_bytes()
}

/// A tube's name, which is ASCII.
fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).expect("a name is ASCII")
}
