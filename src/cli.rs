//! The command line: the original's flags, by the original's rules, and long names for them.
//!
//! Parsing is a function from words to what is to be done; printing and ending are left to `main`.
//! Flags act at once from left to right, so that `-v` or `-h` answers before a later mistake is
//! seen, and of a flag given twice the later one counts. If the first word is `wal`, the others ask
//! for a look at a binlog directory; if it is `reshard`, `import` or `export`, they ask for other
//! data to be made of a directory. If it is `child`, the program is part of another's sharded
//! mode: no person writes that, and it learns all else from its control socket.

use std::ffi::{OsStr, OsString};
use std::iter::Peekable;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use lexopt::{Arg, Parser};

use crate::base::limits::{BODY_LEN_MAX_CEILING, BODY_LEN_MAX_DEFAULT};
use crate::net::listener::ListenSpec;

mod flags;
mod sharding;
mod tools;
mod wal;

use flags::{Flag, by_long, by_short, help};

pub use sharding::Sharding;
pub use tools::ToolTask;
pub use wal::WalTask;

/// The version as clients see it: the release whose behaviour is kept, and after the sign that
/// semantic versioning reserves for such additions, our own.
pub const VERSION: &str = concat!("1.13.0+beanshard.", env!("CARGO_PKG_VERSION"));

/// Largest size of a binlog file in bytes that `-s` accepts: the largest offset in a file.
pub const BINLOG_FILE_LEN_MAX: u64 = i64::MAX as u64;

/// Size of a binlog file in bytes unless `-s` says otherwise.
pub const BINLOG_FILE_LEN_DEFAULT: u64 = 10 << 20;

/// Longest time between syncs in milliseconds that `-f` accepts: what a signed 64-bit number of
/// nanoseconds can hold, nearly three centuries.
pub const SYNC_EVERY_MS_MAX: u64 = i64::MAX as u64 / 1_000_000;

/// Milliseconds between syncs unless `-f` or `-F` says otherwise.
pub const SYNC_EVERY_MS_DEFAULT: u64 = 50;

/// The first word of a child's command line.
pub const CHILD_WORD: &str = "child";

/// Exit status for every mistake in the command line.
const STATUS_USAGE: u8 = 5;

/// What the program is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many processes share the work.
    pub mode: Mode,
    /// Where to listen.
    pub listen: ListenSpec,
    /// Whose rights to take on after that.
    pub user: Option<OsString>,
    /// Largest job body in bytes.
    pub body_len_max: u32,
    /// Where the binlog is, if there is to be one.
    pub binlog_dir: Option<PathBuf>,
    /// Size of a binlog file in bytes; reported even without a binlog.
    pub binlog_file_len: u64,
    /// When the binlog is synced.
    pub binlog_sync: SyncPolicy,
    /// How much to tell on standard output: 0 nothing, 1 connections, 2 and more each command.
    pub verbose: u32,
    /// What is only of use in the sharded mode.
    pub sharding: Sharding,
}

/// How many processes share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One process, as the original.
    Legacy,
    /// A supervisor, frontends and owners.
    Sharded,
}

/// When the binlog is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At most so often, in milliseconds; 0 is after every operation.
    EveryMs(u64),
    /// When the system likes.
    Never,
}

impl SyncPolicy {
    /// Milliseconds between two syncs at most; none if the system syncs when it likes.
    #[must_use]
    pub fn millis(self) -> Option<u64> {
        match self {
            SyncPolicy::EveryMs(millis) => Some(millis),
            SyncPolicy::Never => None,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mode: Mode::Legacy,
            listen: ListenSpec::default(),
            user: None,
            body_len_max: BODY_LEN_MAX_DEFAULT,
            binlog_dir: None,
            binlog_file_len: BINLOG_FILE_LEN_DEFAULT,
            binlog_sync: SyncPolicy::EveryMs(SYNC_EVERY_MS_DEFAULT),
            verbose: 0,
            sharding: Sharding::default(),
        }
    }
}

/// What came of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The program's name as it was called, with which its messages begin.
    pub program: String,
    /// What to say on standard error before anything else, each on a line of its own behind the
    /// program's name.
    pub warnings: Vec<Warning>,
    /// What to do.
    pub action: Action,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Serve.
    Run(Config),
    /// Look at a binlog directory.
    Wal(WalTask),
    /// Make other data of a directory.
    Tool(ToolTask),
    /// Be what the supervisor at the other end of the control socket says: an owner with its binlog
    /// in this folder, if there is one.
    Child(Option<PathBuf>),
    /// Print `text` as it is and end.
    Print {
        /// Complete lines.
        text: String,
        /// Where to.
        stream: Output,
        /// The exit status.
        status: u8,
    },
}

/// One of the two standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Something a user should know and that stops nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A flag of old, kept for the sake of old scripts.
    #[error("flag without effect: -{flag}, the binlog is always compacted")]
    Obsolete {
        /// The flag's letter.
        flag: char,
    },
    /// A body limit above what is possible.
    #[error("max job size lowered from {asked} to {BODY_LEN_MAX_CEILING}")]
    BodyLenLowered {
        /// Bytes asked for.
        asked: u64,
    },
}

/// A mistake in the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum UsageError {
    #[error("unknown flag: {flag}")]
    UnknownFlag { flag: String },
    #[error("unknown argument: {}", word.display())]
    UnknownArgument { word: OsString },
    #[error("flag requires an argument: {flag}")]
    MissingValue { flag: String },
    #[error("flag takes no argument: {flag}")]
    UnexpectedValue { flag: String },
    #[error("invalid size: {}", value.display())]
    InvalidSize { value: OsString },
    #[error("dump or check is missing")]
    MissingVerb,
    #[error("directory is missing")]
    MissingDirectory,
    #[error("{flag} is missing")]
    MissingFlag { flag: &'static str },
    #[error("invalid number: {}, {flag} takes 1 to {max}", value.display())]
    InvalidCount {
        flag: &'static str,
        max: u16,
        value: OsString,
    },
    #[error("invalid value: {}, --multi-watch takes serve or reject", value.display())]
    InvalidMultiWatch { value: OsString },
    #[error("flag needs --sharded: {flag}")]
    NeedsSharded { flag: &'static str },
}

/// What `args`, the program's name first, asks for.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Parsed {
    let mut args = args.into_iter().peekable();
    let program = args.next().map_or_else(
        || env!("CARGO_PKG_NAME").to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    if args.next_if(|word| word == wal::WORD).is_some() {
        return Parsed {
            warnings: Vec::new(),
            action: wal::parse(&program, args),
            program,
        };
    }
    let tool = args.peek().and_then(|word| tools::Verb::of(word));
    if let Some(verb) = tool {
        args.next();
        return Parsed {
            warnings: Vec::new(),
            action: tools::parse(&program, verb, args),
            program,
        };
    }
    let mut reader = Reader::new(&program);
    let action = reader.read(args).unwrap_or_else(|error| {
        let help = help(&program);
        Action::Print {
            text: format!("{program}: {error}\n{help}"),
            stream: Output::Stderr,
            status: STATUS_USAGE,
        }
    });
    Parsed {
        warnings: reader.warnings,
        action,
        program,
    }
}

/// The state of the reading: what the words so far have come to.
struct Reader<'a> {
    program: &'a str,
    config: Config,
    warnings: Vec<Warning>,
    /// A flag that is only of use in the sharded mode, if one was given.
    needs_sharded: Option<&'static str>,
}

impl<'a> Reader<'a> {
    fn new(program: &'a str) -> Reader<'a> {
        Reader {
            program,
            config: Config::default(),
            warnings: Vec::new(),
            needs_sharded: None,
        }
    }

    fn read(
        &mut self,
        mut args: Peekable<impl Iterator<Item = OsString>>,
    ) -> Result<Action, UsageError> {
        if args.next_if(|word| word == CHILD_WORD).is_some() {
            return match args.next() {
                dir if args.peek().is_none() => Ok(Action::Child(dir.map(PathBuf::from))),
                _ => Err(UsageError::UnknownArgument {
                    word: args.next().unwrap_or_default(),
                }),
            };
        }
        if let Some(action) = self.read_flags(args)? {
            return Ok(action);
        }
        match (self.config.mode, self.needs_sharded) {
            (Mode::Legacy, Some(flag)) => return Err(UsageError::NeedsSharded { flag }),
            (Mode::Legacy | Mode::Sharded, _) => {}
        }
        Ok(Action::Run(self.config.clone()))
    }

    /// Applies flag after flag, up to one that ends the program.
    fn read_flags(
        &mut self,
        args: impl Iterator<Item = OsString>,
    ) -> Result<Option<Action>, UsageError> {
        let mut parser = Parser::from_args(args);
        // The original knows no `-p=11300`: there the value is `=11300`.
        parser.set_short_equals(false);
        loop {
            // `--` ends the flags elsewhere; here it is a word like others.
            let next = parser.try_raw_args();
            if next.is_some_and(|words| words.peek() == Some(OsStr::new("--"))) {
                return Err(unknown("--"));
            }
            let flag = match parser.next().map_err(usage_error)? {
                None => return Ok(None),
                Some(Arg::Short(letter)) => {
                    by_short(letter).ok_or_else(|| unknown(&format!("-{letter}")))?
                }
                Some(Arg::Long(name)) => {
                    by_long(name).ok_or_else(|| unknown(&format!("--{name}")))?
                }
                Some(Arg::Value(word)) => return Err(UsageError::UnknownArgument { word }),
            };
            if let Some(action) = self.apply(flag, &mut parser)? {
                return Ok(Some(action));
            }
        }
    }

    /// Carries out `flag`, and takes its value from `parser` if it has one.
    fn apply(&mut self, flag: Flag, parser: &mut Parser) -> Result<Option<Action>, UsageError> {
        let config = &mut self.config;
        match flag {
            Flag::Binlog => config.binlog_dir = Some(value(parser)?.into()),
            Flag::SyncMs => {
                config.binlog_sync = SyncPolicy::EveryMs(size(parser, SYNC_EVERY_MS_MAX)?)
            }
            Flag::NoSync => config.binlog_sync = SyncPolicy::Never,
            Flag::Listen => config.listen.address = Some(value(parser)?),
            Flag::Port => config.listen.port = Some(value(parser)?),
            Flag::BinlogSize => config.binlog_file_len = size(parser, BINLOG_FILE_LEN_MAX)?,
            Flag::User => config.user = Some(value(parser)?),
            Flag::Verbose => config.verbose = config.verbose.saturating_add(1),
            Flag::BodyLenMax => {
                let asked = size(parser, u64::MAX)?;
                self.limit_body(asked);
            }
            Flag::Compact => self.warnings.push(Warning::Obsolete { flag: 'c' }),
            Flag::NoCompact => self.warnings.push(Warning::Obsolete { flag: 'n' }),
            Flag::Legacy => config.mode = Mode::Legacy,
            Flag::Sharded => config.mode = Mode::Sharded,
            Flag::Owners
            | Flag::Frontends
            | Flag::OwnerWait
            | Flag::MultiWatch
            | Flag::SkipDamage => {
                self.share(flag, parser)?;
            }
            Flag::OldVersion => return Ok(Some(print_version("beanstalkd", VERSION))),
            Flag::Version => {
                return Ok(Some(print_version(
                    env!("CARGO_PKG_NAME"),
                    env!("CARGO_PKG_VERSION"),
                )));
            }
            // Quirk: the short form writes to standard error, with status 0.
            Flag::OldHelp => return Ok(Some(self.print_help(Output::Stderr))),
            Flag::Help => return Ok(Some(self.print_help(Output::Stdout))),
        }
        Ok(None)
    }

    fn limit_body(&mut self, asked: u64) {
        let allowed = u32::try_from(asked)
            .ok()
            .filter(|&len| len <= BODY_LEN_MAX_CEILING);
        if allowed.is_none() {
            self.warnings.push(Warning::BodyLenLowered { asked });
        }
        self.config.body_len_max = allowed.unwrap_or(BODY_LEN_MAX_CEILING);
    }

    fn print_help(&self, stream: Output) -> Action {
        Action::Print {
            text: help(self.program),
            stream,
            status: 0,
        }
    }
}

fn print_version(name: &str, version: &str) -> Action {
    Action::Print {
        text: format!("{name} {version}\n"),
        stream: Output::Stdout,
        status: 0,
    }
}

/// The rest of the flag's word, else the next word, whatever it looks like.
fn value(parser: &mut Parser) -> Result<OsString, UsageError> {
    parser.value().map_err(usage_error)
}

/// A number from 0 to `max`: digits, with white space before them and nothing behind.
fn size(parser: &mut Parser, max: u64) -> Result<u64, UsageError> {
    let value = value(parser)?;
    match parse_size(value.as_bytes()) {
        Some(size) if size <= max => Ok(size),
        _ => Err(UsageError::InvalidSize { value }),
    }
}

fn parse_size(text: &[u8]) -> Option<u64> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte))?;
    let digits = &text[start..];
    // The number parser of the standard library would take a sign.
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn unknown(flag: &str) -> UsageError {
    UsageError::UnknownFlag {
        flag: flag.to_owned(),
    }
}

fn usage_error(error: lexopt::Error) -> UsageError {
    match error {
        lexopt::Error::MissingValue { option } => UsageError::MissingValue {
            flag: option.unwrap_or_default(),
        },
        lexopt::Error::UnexpectedValue { option, .. } => {
            UsageError::UnexpectedValue { flag: option }
        }
        // The parser is not asked for anything that could end in its other errors.
        other => unknown(&other.to_string()),
    }
}

#[cfg(test)]
mod tests;
