//! Commands: from a line to what it asks for, borrowed from the line.
//!
//! Recognition is the original's: the first entry of [`Kind::ALL`] that the line begins with is its
//! command, whatever the rest looks like. The argument readers behind it are strict, `kick` apart,
//! and judge a line by itself; limits that are a matter of configuration are the session's.

use memchr::{memchr, memrchr};

use crate::base::ids::{JobId, Pri};
use crate::base::limits::RESERVE_TIMEOUT_SECS_MAX;
use crate::base::name::{TubeName, is_name_byte};
use crate::base::time::Secs;
use crate::proto::http::is_http;
use crate::proto::number::{parse_kick_count, parse_secs, parse_u32, parse_u64};

/// A well-formed command. What it names need not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Make a job out of the body that follows the line.
    Put {
        /// Its priority.
        pri: Pri,
        /// How long it is kept before it is ready.
        delay: Secs,
        /// How long a reservation of it lasts, as asked: 0 has yet to be raised.
        ttr: Secs,
        /// Length of the body without its CR LF, as announced: no limit has been applied.
        body_len: u32,
        /// What stands behind the last digit. Anything makes the line malformed, but only a body
        /// within the limit comes to be judged by it.
        trailing: Trailing,
    },
    /// Show a job.
    Peek(JobId),
    /// Show the next ready job of the tube in use.
    PeekReady,
    /// Show the delayed job of the tube in use that is ready soonest.
    PeekDelayed,
    /// Show the job of the tube in use that has been buried longest.
    PeekBuried,
    /// Reserve a job, and wait for one as long as it takes.
    Reserve,
    /// Reserve a job, and wait for one no longer than this; 0 does not wait. At most
    /// [`RESERVE_TIMEOUT_SECS_MAX`].
    ReserveWithTimeout(Secs),
    /// Reserve this job.
    ReserveJob(JobId),
    /// Delete a job.
    Delete(JobId),
    /// Give a reserved job back.
    Release {
        /// The job.
        id: JobId,
        /// Its priority from now on.
        pri: Pri,
        /// How long it is kept before it is ready.
        delay: Secs,
    },
    /// Put a reserved job aside.
    Bury {
        /// The job.
        id: JobId,
        /// Its priority from now on.
        pri: Pri,
    },
    /// Make up to this many buried jobs of the tube in use ready, or delayed ones if none is
    /// buried.
    Kick {
        /// How many at most.
        count: u32,
    },
    /// Make this buried or delayed job ready.
    KickJob(JobId),
    /// Let a reservation's time begin anew.
    Touch(JobId),
    /// Describe a job.
    StatsJob(JobId),
    /// Describe a tube.
    StatsTube(TubeName<'a>),
    /// Describe the server.
    Stats,
    /// Put into this tube from now on.
    Use(TubeName<'a>),
    /// Reserve from this tube too.
    Watch(TubeName<'a>),
    /// Reserve from this tube no longer.
    Ignore(TubeName<'a>),
    /// List the tubes that the session watches.
    ListTubesWatched,
    /// Name the tube in use.
    ListTubeUsed,
    /// List all tubes.
    ListTubes,
    /// Close the connection.
    Quit,
    /// Let nobody reserve from a tube for a while.
    PauseTube {
        /// The tube.
        tube: TubeName<'a>,
        /// For how long from now on; 0 ends a pause.
        pause: Secs,
    },
}

impl Command<'_> {
    /// Which command it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Command::Put { .. } => Kind::Put,
            Command::Peek(_) => Kind::Peek,
            Command::PeekReady => Kind::PeekReady,
            Command::PeekDelayed => Kind::PeekDelayed,
            Command::PeekBuried => Kind::PeekBuried,
            Command::ReserveWithTimeout(_) => Kind::ReserveWithTimeout,
            Command::ReserveJob(_) => Kind::ReserveJob,
            Command::Reserve => Kind::Reserve,
            Command::Delete(_) => Kind::Delete,
            Command::Release { .. } => Kind::Release,
            Command::Bury { .. } => Kind::Bury,
            Command::Kick { .. } => Kind::Kick,
            Command::KickJob(_) => Kind::KickJob,
            Command::Touch(_) => Kind::Touch,
            Command::StatsJob(_) => Kind::StatsJob,
            Command::StatsTube(_) => Kind::StatsTube,
            Command::Stats => Kind::Stats,
            Command::Use(_) => Kind::Use,
            Command::Watch(_) => Kind::Watch,
            Command::Ignore(_) => Kind::Ignore,
            Command::ListTubesWatched => Kind::ListTubesWatched,
            Command::ListTubeUsed => Kind::ListTubeUsed,
            Command::ListTubes => Kind::ListTubes,
            Command::Quit => Kind::Quit,
            Command::PauseTube { .. } => Kind::PauseTube,
        }
    }
}

/// What stands behind the last digit of a `put` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailing {
    /// Nothing, as it should be.
    Nothing,
    /// A space, and perhaps more. The size is beyond doubt, and so is the length of the body that
    /// has to be thrown away with the line.
    Apart,
    /// Something that is not a space, as in `10b`. Nobody can say what size was meant, and nothing
    /// is thrown away with the line.
    Attached,
}

/// Which command a line is, without its arguments. As a number (`as usize`) the index in
/// [`Kind::ALL`].
#[expect(missing_docs, reason = "each is the Command of the same name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Put,
    Peek,
    PeekReady,
    PeekDelayed,
    PeekBuried,
    ReserveWithTimeout,
    ReserveJob,
    Reserve,
    Delete,
    Release,
    Bury,
    Kick,
    KickJob,
    Touch,
    StatsJob,
    StatsTube,
    Stats,
    Use,
    Watch,
    Ignore,
    ListTubesWatched,
    ListTubeUsed,
    ListTubes,
    Quit,
    PauseTube,
}

impl Kind {
    /// All commands, in the order in which a line is compared with their prefixes: where one prefix
    /// begins like another, the longer one comes first.
    pub const ALL: [Kind; 25] = [
        Kind::Put,
        Kind::Peek,
        Kind::PeekReady,
        Kind::PeekDelayed,
        Kind::PeekBuried,
        Kind::ReserveWithTimeout,
        Kind::ReserveJob,
        Kind::Reserve,
        Kind::Delete,
        Kind::Release,
        Kind::Bury,
        Kind::Kick,
        Kind::KickJob,
        Kind::Touch,
        Kind::StatsJob,
        Kind::StatsTube,
        Kind::Stats,
        Kind::Use,
        Kind::Watch,
        Kind::Ignore,
        Kind::ListTubesWatched,
        Kind::ListTubeUsed,
        Kind::ListTubes,
        Kind::Quit,
        Kind::PauseTube,
    ];

    /// Those of [`Kind::ALL`] whose prefix begins with `byte`, in the same order. A line is
    /// compared with no others.
    fn beginning_with(byte: u8) -> &'static [Kind] {
        match byte {
            b'p' => &[
                Kind::Put,
                Kind::Peek,
                Kind::PeekReady,
                Kind::PeekDelayed,
                Kind::PeekBuried,
                Kind::PauseTube,
            ],
            b'r' => &[
                Kind::ReserveWithTimeout,
                Kind::ReserveJob,
                Kind::Reserve,
                Kind::Release,
            ],
            b'd' => &[Kind::Delete],
            b'b' => &[Kind::Bury],
            b'k' => &[Kind::Kick, Kind::KickJob],
            b't' => &[Kind::Touch],
            b's' => &[Kind::StatsJob, Kind::StatsTube, Kind::Stats],
            b'u' => &[Kind::Use],
            b'w' => &[Kind::Watch],
            b'i' => &[Kind::Ignore],
            b'l' => &[Kind::ListTubesWatched, Kind::ListTubeUsed, Kind::ListTubes],
            b'q' => &[Kind::Quit],
            _ => &[],
        }
    }

    /// What a line of this command begins with, the space in front of the first argument included
    /// where it is demanded.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::Put => "put ",
            Kind::Peek => "peek ",
            Kind::PeekReady => "peek-ready",
            Kind::PeekDelayed => "peek-delayed",
            Kind::PeekBuried => "peek-buried",
            Kind::ReserveWithTimeout => "reserve-with-timeout ",
            Kind::ReserveJob => "reserve-job ",
            Kind::Reserve => "reserve",
            Kind::Delete => "delete ",
            Kind::Release => "release ",
            Kind::Bury => "bury ",
            Kind::Kick => "kick ",
            Kind::KickJob => "kick-job ",
            Kind::Touch => "touch ",
            Kind::StatsJob => "stats-job ",
            Kind::StatsTube => "stats-tube ",
            Kind::Stats => "stats",
            Kind::Use => "use ",
            Kind::Watch => "watch ",
            Kind::Ignore => "ignore ",
            Kind::ListTubesWatched => "list-tubes-watched",
            Kind::ListTubeUsed => "list-tube-used",
            Kind::ListTubes => "list-tubes",
            Kind::Quit => "quit",
            Kind::PauseTube => "pause-tube",
        }
    }

    /// The key under which `stats` shows how often the command was given, where it does.
    #[must_use]
    pub fn stats_key(self) -> Option<&'static str> {
        match self {
            Kind::Put => Some("cmd-put"),
            Kind::Peek => Some("cmd-peek"),
            Kind::PeekReady => Some("cmd-peek-ready"),
            Kind::PeekDelayed => Some("cmd-peek-delayed"),
            Kind::PeekBuried => Some("cmd-peek-buried"),
            Kind::ReserveWithTimeout => Some("cmd-reserve-with-timeout"),
            Kind::Reserve => Some("cmd-reserve"),
            Kind::Delete => Some("cmd-delete"),
            Kind::Release => Some("cmd-release"),
            Kind::Bury => Some("cmd-bury"),
            Kind::Kick => Some("cmd-kick"),
            Kind::Touch => Some("cmd-touch"),
            Kind::StatsJob => Some("cmd-stats-job"),
            Kind::StatsTube => Some("cmd-stats-tube"),
            Kind::Stats => Some("cmd-stats"),
            Kind::Use => Some("cmd-use"),
            Kind::Watch => Some("cmd-watch"),
            Kind::Ignore => Some("cmd-ignore"),
            Kind::ListTubesWatched => Some("cmd-list-tubes-watched"),
            Kind::ListTubeUsed => Some("cmd-list-tube-used"),
            Kind::ListTubes => Some("cmd-list-tubes"),
            Kind::PauseTube => Some("cmd-pause-tube"),
            // Quirk: the original does not count these.
            Kind::ReserveJob | Kind::KickJob | Kind::Quit => None,
        }
    }
}

/// Why a line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// To be answered `BAD_FORMAT`.
    BadFormat,
    /// To be answered `UNKNOWN_COMMAND`.
    UnknownCommand,
    /// A web client is talking. Nothing it sends may be obeyed, and the connection is to be closed
    /// without an answer.
    Http,
}

/// A line that is no command, and what has to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub fault: Fault,
    /// The command that the line begins like, for the trace.
    pub kind: Option<Kind>,
    /// Whether the counter of `kind` moves all the same.
    pub counted: bool,
    /// Of a refused `put` the length of the body that it announces, where that can be read. The
    /// client sends so many bytes and a CR LF, which must be thrown away lest they be run as
    /// commands.
    pub body_len: Option<u32>,
}

/// Reads a line, given without its CR LF.
///
/// # Errors
/// If it is no command.
pub fn parse(line: &[u8]) -> Result<Command<'_>, Refused> {
    let Some((kind, arguments)) = recognise(line) else {
        return Err(refuse_unknown(line));
    };
    parse_arguments(kind, arguments)
        .filter(|command| !may_hold_nul(command) || memchr(0, arguments).is_none())
        .ok_or_else(|| refuse(kind, arguments))
}

// Quirk: a prefix is enough, and the space in front of the first argument belongs to it or not.
// `reservex` is a malformed `reserve`, `quitx` quits, `pause-tubex 0` pauses the tube `x`.
fn recognise(line: &[u8]) -> Option<(Kind, &[u8])> {
    let candidates = Kind::beginning_with(*line.first()?);
    candidates.iter().find_map(|&kind| {
        let arguments = line.strip_prefix(kind.prefix().as_bytes())?;
        Some((kind, arguments))
    })
}

/// Whether the line of a command that was read may have a NUL, which none may have: only where the
/// reader stops before the end of the line, because a NUL is in neither a name nor a number.
fn may_hold_nul(command: &Command<'_>) -> bool {
    matches!(command, Command::Kick { .. } | Command::Quit)
        || matches!(command, Command::Put { trailing, .. } if *trailing != Trailing::Nothing)
}

fn parse_arguments(kind: Kind, arguments: &[u8]) -> Option<Command<'_>> {
    match kind {
        Kind::Put => parse_put(arguments),
        Kind::Peek => parse_id(arguments).map(Command::Peek),
        Kind::PeekReady => parse_none(arguments, Command::PeekReady),
        Kind::PeekDelayed => parse_none(arguments, Command::PeekDelayed),
        Kind::PeekBuried => parse_none(arguments, Command::PeekBuried),
        Kind::ReserveWithTimeout => parse_timeout(arguments).map(Command::ReserveWithTimeout),
        Kind::ReserveJob => parse_id(arguments).map(Command::ReserveJob),
        Kind::Reserve => parse_none(arguments, Command::Reserve),
        Kind::Delete => parse_id(arguments).map(Command::Delete),
        Kind::Release => parse_release(arguments),
        Kind::Bury => parse_bury(arguments),
        Kind::Kick => parse_kick_count(arguments).map(|count| Command::Kick { count }),
        Kind::KickJob => parse_id(arguments).map(Command::KickJob),
        Kind::Touch => parse_id(arguments).map(Command::Touch),
        Kind::StatsJob => parse_id(arguments).map(Command::StatsJob),
        Kind::StatsTube => TubeName::parse(arguments).map(Command::StatsTube),
        Kind::Stats => parse_none(arguments, Command::Stats),
        Kind::Use => TubeName::parse(arguments).map(Command::Use),
        Kind::Watch => TubeName::parse(arguments).map(Command::Watch),
        Kind::Ignore => TubeName::parse(arguments).map(Command::Ignore),
        Kind::ListTubesWatched => parse_none(arguments, Command::ListTubesWatched),
        Kind::ListTubeUsed => parse_none(arguments, Command::ListTubeUsed),
        Kind::ListTubes => parse_none(arguments, Command::ListTubes),
        Kind::Quit => Some(Command::Quit),
        Kind::PauseTube => parse_pause_tube(arguments),
    }
}

fn parse_put(arguments: &[u8]) -> Option<Command<'_>> {
    let (pri, rest) = parse_u32(arguments)?;
    let (delay, rest) = parse_secs(rest)?;
    let (ttr, rest) = parse_secs(rest)?;
    let (body_len, rest) = parse_u32(rest)?;
    let trailing = match rest {
        [] => Trailing::Nothing,
        [b' ', ..] => Trailing::Apart,
        [..] => Trailing::Attached,
    };
    Some(Command::Put {
        pri: Pri(pri),
        delay,
        ttr,
        body_len,
        trailing,
    })
}

fn parse_release(arguments: &[u8]) -> Option<Command<'_>> {
    let (id, rest) = parse_u64(arguments)?;
    let (pri, rest) = parse_u32(rest)?;
    let delay = nothing_behind(parse_secs(rest))?;
    Some(Command::Release {
        id: JobId(id),
        pri: Pri(pri),
        delay,
    })
}

fn parse_bury(arguments: &[u8]) -> Option<Command<'_>> {
    let (id, rest) = parse_u64(arguments)?;
    let pri = nothing_behind(parse_u32(rest))?;
    Some(Command::Bury {
        id: JobId(id),
        pri: Pri(pri),
    })
}

fn parse_pause_tube(arguments: &[u8]) -> Option<Command<'_>> {
    let (name, pause) = parse_name_and_pause(arguments)?;
    let tube = TubeName::parse(name)?;
    Some(Command::PauseTube { tube, pause })
}

/// The arguments of `pause-tube` with a name that may yet be too long or begin with a dash.
fn parse_name_and_pause(arguments: &[u8]) -> Option<(&[u8], Secs)> {
    let start = arguments.iter().position(|&byte| byte != b' ')?;
    let spaceless = &arguments[start..];
    let is_name = |&&byte: &&u8| is_name_byte(byte);
    let (name, rest) = spaceless.split_at(spaceless.iter().take_while(is_name).count());
    let pause = nothing_behind(parse_secs(rest))?;
    Some((name, pause))
}

fn parse_id(arguments: &[u8]) -> Option<JobId> {
    nothing_behind(parse_u64(arguments)).map(JobId)
}

fn parse_timeout(arguments: &[u8]) -> Option<Secs> {
    nothing_behind(parse_secs(arguments)).filter(|timeout| timeout.0 <= RESERVE_TIMEOUT_SECS_MAX)
}

fn parse_none<'a>(arguments: &[u8], command: Command<'a>) -> Option<Command<'a>> {
    arguments.is_empty().then_some(command)
}

/// The value, if it is the last thing on its line.
fn nothing_behind<T>(parsed: Option<(T, &[u8])>) -> Option<T> {
    let (value, rest) = parsed?;
    rest.is_empty().then_some(value)
}

fn refuse_unknown(line: &[u8]) -> Refused {
    let fault = if is_http(line) {
        Fault::Http
    } else if memchr(0, line).is_some() {
        Fault::BadFormat
    } else {
        Fault::UnknownCommand
    };
    Refused {
        fault,
        kind: None,
        counted: false,
        body_len: None,
    }
}

fn refuse(kind: Kind, arguments: &[u8]) -> Refused {
    // Quirk: `pause-tube` is counted before its name is checked, and only then. A line with a NUL
    // does not get that far: it is in neither a name nor a number.
    let counted = kind == Kind::PauseTube && parse_name_and_pause(arguments).is_some();
    let body_len = if kind == Kind::Put {
        parse_announced_len(arguments)
    } else {
        None
    };
    Refused {
        fault: Fault::BadFormat,
        kind: Some(kind),
        counted,
        body_len,
    }
}

/// The length of the body that a line announces which is too long to be read, from the beginning of
/// that line: only of a `put`, and only if its fourth word has come to an end.
#[must_use]
pub fn announced_len(beginning: &[u8]) -> Option<u32> {
    let arguments = beginning.strip_prefix(Kind::Put.prefix().as_bytes())?;
    let (whole_words, _) = arguments.split_at(memrchr(b' ', arguments)?);
    parse_announced_len(whole_words)
}

/// The size in the arguments of a `put`, whatever is wrong with the others.
fn parse_announced_len(arguments: &[u8]) -> Option<u32> {
    let mut words = arguments
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    nothing_behind(parse_u32(words.nth(3)?))
}

#[cfg(test)]
mod tests;
