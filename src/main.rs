//! The program: reads the options, runs the role that they name, and ends with the exit status
//! that tells what became of it.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use beanshard::cli::{self, Action, Config, Output};
use beanshard::error::{Chain, Error};
use beanshard::logging;
use beanshard::role::legacy::Legacy;

fn main() -> ExitCode {
    let parsed = cli::parse(std::env::args_os());
    for warning in &parsed.warnings {
        complain(&parsed.program, warning);
    }
    match parsed.action {
        Action::Print {
            text,
            stream,
            status,
        } => print(&text, stream, status),
        Action::Run(config) => {
            logging::init(&parsed.program);
            match run(&config) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    complain(&parsed.program, Chain(&error));
                    ExitCode::from(error.exit_code())
                }
            }
        }
    }
}

fn run(config: &Config) -> Result<(), Error> {
    Ok(Legacy::start(config)?.run()?)
}

/// Writes a line to standard error. One that cannot be written is no reason to end in another way
/// than the exit status tells.
fn complain(program: &str, message: impl Display) {
    let _ = writeln!(io::stderr(), "{program}: {message}");
}

fn print(text: &str, stream: Output, status: u8) -> ExitCode {
    let printed = match stream {
        Output::Stdout => io::stdout().write_all(text.as_bytes()),
        Output::Stderr => io::stderr().write_all(text.as_bytes()),
    };
    // A reader that has gone away has seen enough.
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::from(status),
    }
}
