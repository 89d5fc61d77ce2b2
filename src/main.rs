//! The program: reads the options, runs the role that they name, and ends with the exit status
//! that tells what became of it.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use beanshard::cli::{self, Action, Config, Mode, Output, ToolTask, WalTask};
use beanshard::data;
use beanshard::data::bar::Bar;
use beanshard::error::{Chain, Error};
use beanshard::logging;
use beanshard::role::{child, legacy, supervisor};
use beanshard::sys::clock;
use beanshard::wal::check::check;
use beanshard::wal::dump::{Form, dump};
use beanshard::wal::error::WalError;
use beanshard::wal::record::WallNanos;

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
        Action::Run(config) => match run(&parsed.program, &config) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&parsed.program, &error),
        },
        Action::Child(dir) => match child::run(dir) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let error = Error::from(error);
                complain(&parsed.program, Chain(&error));
                ExitCode::from(error.child_exit_code())
            }
        },
        Action::Wal(task) => match look(&task) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            // A reader that has gone away has seen enough.
            Err(WalError::Print { source }) if source.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(error) => fail(&parsed.program, &error.into()),
        },
        Action::Tool(task) => match convert(&parsed.program, &task) {
            Ok(text) => print(&text, Output::Stdout, 0),
            Err(error) => fail(&parsed.program, &error),
        },
    }
}

fn run(program: &str, config: &Config) -> Result<(), Error> {
    match config.mode {
        Mode::Legacy => {
            logging::init(program);
            legacy::serve(config)?;
        }
        Mode::Sharded => {
            logging::init(supervisor::NAME);
            supervisor::serve(config)?;
        }
    }
    Ok(())
}

/// Looks at a binlog directory and says whether nothing in it is damaged.
fn look(task: &WalTask) -> Result<bool, WalError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let is_sound = match task {
        WalTask::Dump { dir, is_json } => {
            let form = if *is_json { Form::Json } else { Form::Text };
            dump(dir, form, &mut out, &mut io::stderr())?
        }
        WalTask::Check { dir } => check(dir, &mut out)?,
    };
    out.flush()?;
    Ok(is_sound)
}

/// Makes other data of a directory. Returns what there is to say of it.
fn convert(program: &str, tool: &ToolTask) -> Result<String, Error> {
    logging::init(program);
    let settings = data::Settings {
        file_len: tool.file_len,
        owners: supervisor::usual_owners(),
        skip_damage: tool.skip_damage,
        wall: WallNanos(clock::wall()),
    };
    let mut bar = Bar::new();
    let start = clock::monotonic();
    let done = data::run(&tool.task, settings, &mut |step| bar.show(step));
    bar.end();
    let millis = clock::monotonic().since(start) / 1_000_000;
    let (secs, rest) = (millis / 1_000, millis % 1_000);
    Ok(format!("{}seconds: {secs}.{rest:03}\n", done?))
}

/// Tells of the error, and gives the exit status for it.
fn fail(program: &str, error: &Error) -> ExitCode {
    complain(program, Chain(error));
    ExitCode::from(error.exit_code())
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
