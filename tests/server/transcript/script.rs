//! Reads a transcript into steps. The language is described in the parent module.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::text::Text;
use crate::fixture::Listen;

/// A transcript, read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// Name of the file, for messages.
    pub(crate) file: String,
    /// Words put behind the server's command line.
    pub(crate) args: Vec<String>,
    /// How the server gets its socket.
    pub(crate) listen: Listen,
    /// Why no C server is asked, if none is.
    pub(crate) no_oracle: Option<String>,
    /// Why release 1.12 of the C server is not asked, if it is not.
    pub(crate) no_oracle_1_12: Option<String>,
    /// Why it is not played to our server with a binlog, if it is not.
    pub(crate) no_binlog: Option<String>,
    /// Why it is not played to our server in the sharded mode, if it is not.
    pub(crate) no_sharded: Option<String>,
    /// Why it is not played to that with several owners and frontends, if it is not.
    pub(crate) no_sharded_3: Option<String>,
    /// Keys whose values release 1.12 prints without the quotes.
    pub(crate) unquoted_in_1_12: Vec<String>,
    /// What is done and expected, in order.
    pub(crate) steps: Vec<Step>,
}

/// One line of a transcript.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Counted from 1.
    pub(crate) line: usize,
    /// The line as written.
    pub(crate) source: String,
    /// What it asks for.
    pub(crate) action: Action,
}

/// What a step asks for.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// One client does or expects something.
    Client(String, ClientAction),
    /// Time passes.
    Wait(Duration),
    /// The server gets a signal.
    Signal(Signal),
    /// The server is killed and started again; all clients are forgotten.
    Restart,
}

/// What one client does or expects.
#[derive(Clone, Debug)]
pub(crate) enum ClientAction {
    /// Sends these bytes.
    Send(Text),
    /// Closes the connection.
    Close,
    /// Closes the connection so that the server sees a reset.
    Reset,
    /// Ends its sending side.
    HalfClose,
    /// Expects one reply.
    Reply(Reply),
    /// Expects these bytes.
    Raw(Text),
    /// Expects the server to close the connection.
    Eof,
    /// Expects nothing for this long.
    Silence(Duration),
}

/// A reply that is expected.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// Longest wait for it; the default when absent.
    pub(crate) within: Option<Duration>,
    /// The line without its CR LF. `OK` when rows follow.
    pub(crate) line: Text,
    /// What follows the line.
    pub(crate) data: Data,
}

/// What follows the line of a reply.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// Nothing.
    None,
    /// A job's body.
    Body(Text),
    /// Rows of text.
    Rows { rows: Vec<String>, extent: Extent },
}

/// What the rows that are written are of those that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of them.
    All,
    /// All of them, in some order; the first is the first.
    Unordered,
    /// Some of them, in this order.
    Some,
}

/// Whether job ids stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The server must give out exactly the ids of the transcript.
    Exact,
    /// An id of the transcript is a name for what the server gives out in its place.
    Mapped,
}

/// Reads the transcript `source`. Errors name the file and the line.
pub(crate) fn parse(file: &str, source: &str, ids: Ids) -> Result<Script, String> {
    let mut script = Script {
        file: file.to_owned(),
        ..Script::default()
    };
    for (index, raw) in source.lines().enumerate() {
        let line = raw.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let read = if let Some(row) = row_of(line) {
            add_row(&mut script, row, ids)
        } else if script.steps.is_empty() && is_header(line) {
            read_header(&mut script, line)
        } else {
            read_action(line, ids).map(|action| {
                script.steps.push(Step {
                    line: index + 1,
                    source: line.to_owned(),
                    action,
                });
            })
        };
        read.map_err(|error| format!("{file}:{}: {error}: {line}", index + 1))?;
    }
    Ok(script)
}

fn is_header(line: &str) -> bool {
    HEADERS.iter().any(|key| line.starts_with(key))
}

fn read_header(script: &mut Script, line: &str) -> Result<(), String> {
    let (key, value) = line.split_once(':').ok_or("no colon")?;
    let value = value.trim();
    let reason = || {
        let reason = value
            .strip_prefix("no, ")
            .ok_or("write `no, ` and the reason")?;
        Ok::<_, String>(Some(reason.to_owned()))
    };
    match key {
        "args" => script.args = value.split_whitespace().map(str::to_owned).collect(),
        "listen" => {
            script.listen = match value {
                "unix" => Listen::Unix,
                "unix-path" => Listen::UnixPath,
                "port" => Listen::Port,
                _ => return Err("listen is unix, unix-path or port".into()),
            };
        }
        "binlog" => script.no_binlog = reason()?,
        "sharded" => script.no_sharded = reason()?,
        "sharded-3" => script.no_sharded_3 = reason()?,
        "oracle" => script.no_oracle = reason()?,
        "oracle-1.12" => match value.strip_suffix(" unquoted") {
            Some(keys) => {
                script.unquoted_in_1_12 = keys.split(' ').map(str::to_owned).collect();
            }
            None => script.no_oracle_1_12 = reason()?,
        },
        _ => return Err("unknown header".into()),
    }
    Ok(())
}

/// The row, if `line` has the form `a| row`.
fn row_of(line: &str) -> Option<&str> {
    let (client, row) = line.split_once('|')?;
    is_client(client).then(|| row.strip_prefix(' ').unwrap_or(row))
}

fn is_client(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase()) && bytes.all(|b| b.is_ascii_digit())
}

fn add_row(script: &mut Script, row: &str, ids: Ids) -> Result<(), String> {
    let Some(Step {
        action: Action::Client(_, ClientAction::Reply(reply)),
        ..
    }) = script.steps.last_mut()
    else {
        return Err("a row must follow `OK`".into());
    };
    let Data::Rows { rows, .. } = &mut reply.data else {
        return Err("a row must follow `OK`".into());
    };
    let row = match row.strip_prefix("id: ") {
        Some(id) if ids == Ids::Mapped && is_number(id) => format!("id: <{id}>"),
        Some(_) | None => row.to_owned(),
    };
    rows.push(row);
    Ok(())
}

fn read_action(line: &str, ids: Ids) -> Result<Action, String> {
    if let Some(time) = line.strip_prefix('+') {
        return Ok(Action::Wait(seconds(time)?));
    }
    if line == "!restart" {
        return Ok(Action::Restart);
    }
    if let Some(signal) = line.strip_prefix("!signal ") {
        let signal = format!("SIG{signal}")
            .parse()
            .map_err(|_| "unknown signal")?;
        return Ok(Action::Signal(signal));
    }
    let at = line.find(['<', '>']).ok_or("not a step")?;
    let (client, rest) = line.split_at(at);
    if !is_client(client) {
        return Err("a client is one letter, and digits if needed".into());
    }
    let action = match rest.split_once(' ') {
        Some((">>", raw)) => ClientAction::Send(Text::literal(quoted(raw)?)?),
        Some(("<<", "eof")) => ClientAction::Eof,
        Some(("<<", raw)) => ClientAction::Raw(Text::literal(quoted(raw)?)?),
        Some((">", words)) => read_send(words, ids)?,
        Some(("<", words)) => read_expectation(words, ids)?,
        Some(_) | None => return Err("`>`, `>>`, `<` or `<<` and a space are wanted".into()),
    };
    Ok(Action::Client(client.to_owned(), action))
}

fn read_send(words: &str, ids: Ids) -> Result<ClientAction, String> {
    match words {
        "(close)" => return Ok(ClientAction::Close),
        "(reset)" => return Ok(ClientAction::Reset),
        "(half-close)" => return Ok(ClientAction::HalfClose),
        _ => {}
    }
    let (line, body) = split_body(words);
    let line = mark_id(line, ID_COMMANDS, ids);
    let bytes = match body {
        Some(body) => format!("{line}\\r\\n{body}\\r\\n"),
        None => format!("{line}\\r\\n"),
    };
    Ok(ClientAction::Send(Text::literal(&bytes)?))
}

fn read_expectation(words: &str, ids: Ids) -> Result<ClientAction, String> {
    if let Some(time) = words.strip_prefix("silence") {
        let time = if time.is_empty() {
            SILENCE
        } else {
            seconds(time.trim())?
        };
        return Ok(ClientAction::Silence(time));
    }
    let (within, words) = match words.strip_prefix("within ") {
        Some(rest) => {
            let (time, words) = rest.split_once(' ').ok_or("a reply must follow the time")?;
            (Some(seconds(time)?), words)
        }
        None => (None, words),
    };
    let (line, body) = split_body(words);
    let data = match (line, body) {
        (_, Some(body)) => Data::Body(Text::literal(body)?),
        ("OK", None) => Data::Rows {
            rows: Vec::new(),
            extent: Extent::All,
        },
        ("OK unordered", None) => Data::Rows {
            rows: Vec::new(),
            extent: Extent::Unordered,
        },
        ("OK ...", None) => Data::Rows {
            rows: Vec::new(),
            extent: Extent::Some,
        },
        (_, None) => Data::None,
    };
    let line = Text::pattern(&mark_id(line, ID_REPLIES, ids))?;
    Ok(ClientAction::Reply(Reply { within, line, data }))
}

/// Splits `line | body`; ` |` at the end is an empty body.
fn split_body(words: &str) -> (&str, Option<&str>) {
    match words.split_once(" | ") {
        Some((line, body)) => (line, Some(body)),
        None => match words.strip_suffix(" |") {
            Some(line) => (line, Some("")),
            None => (words, None),
        },
    }
}

/// Makes a name of the job id behind the first word, if ids are mapped.
fn mark_id(line: &str, verbs: &[&str], ids: Ids) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let marked = words.get(1).map(|id| format!("<{id}>")).unwrap_or_default();
    let is_id = words.get(1).is_some_and(|id| is_number(id));
    if ids == Ids::Mapped && is_id && verbs.contains(&words[0]) {
        words[1] = &marked;
    }
    words.join(" ")
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

fn quoted(raw: &str) -> Result<&str, String> {
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    inner.ok_or_else(|| "raw bytes stand in double quotes".into())
}

fn seconds(word: &str) -> Result<Duration, String> {
    let number = word.strip_suffix('s').ok_or("a time ends in s")?;
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{word:?} is not a time"))?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

const HEADERS: &[&str] = &[
    "args:",
    "listen:",
    "binlog:",
    "sharded:",
    "sharded-3:",
    "oracle:",
    "oracle-1.12:",
];
const ID_COMMANDS: &[&str] = &[
    "delete",
    "release",
    "bury",
    "touch",
    "peek",
    "kick-job",
    "reserve-job",
    "stats-job",
];
const ID_REPLIES: &[&str] = &["INSERTED", "RESERVED", "FOUND", "BURIED"];
const SILENCE: Duration = Duration::from_millis(100);
