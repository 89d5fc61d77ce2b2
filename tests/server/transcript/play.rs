//! Plays a transcript against a server and stops at the first thing that is not as written.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::client::{Client, Fill};
use super::script::{Action, ClientAction, Data, Extent, Reply, Script, Step};
use super::text::{Names, Text, show};
use crate::fixture::{Endpoint, Server, wait_until};

/// Who is asked.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Program and arguments, without those that the transcript adds.
    pub(crate) words: Vec<String>,
    /// Whether it leaves out the quotes that release 1.12 leaves out.
    pub(crate) is_1_12: bool,
}

/// Starts a server and plays `script` against it. The error says where, what was expected, what
/// came, and what was sent before.
pub(crate) fn play(script: &Script, target: &Target) -> Result<(), String> {
    let words: Vec<String> = target.words.iter().chain(&script.args).cloned().collect();
    let server = Server::start(&words, script.listen)
        .map_err(|error| format!("{}: cannot start {words:?}: {error}", script.file))?;
    let unquoted = if target.is_1_12 {
        &script.unquoted_in_1_12[..]
    } else {
        &[]
    };
    Player::new(server.endpoint().clone(), Some(server), unquoted).run(script)
}

/// Plays `script` against a server that is there already, as [`play`] does. Steps that concern the
/// process fail.
pub(crate) fn play_at(script: &Script, endpoint: Endpoint) -> Result<(), String> {
    Player::new(endpoint, None, &[]).run(script)
}

/// What differs, in the words of the report.
type Outcome = Result<(), String>;

struct Player<'a> {
    endpoint: Endpoint,
    server: Option<Server>,
    unquoted: &'a [String],
    clients: BTreeMap<String, Client>,
    names: Names,
    last_step: Instant,
}

impl<'a> Player<'a> {
    fn new(endpoint: Endpoint, server: Option<Server>, unquoted: &'a [String]) -> Player<'a> {
        Player {
            endpoint,
            server,
            unquoted,
            clients: BTreeMap::new(),
            names: Names::new(),
            last_step: Instant::now(),
        }
    }

    fn run(mut self, script: &Script) -> Result<(), String> {
        for (index, step) in script.steps.iter().enumerate() {
            let outcome = self.step(&step.action);
            outcome.map_err(|got| self.report(script, index, &got))?;
            self.last_step = Instant::now();
        }
        let outcome = self.nothing_left();
        outcome.map_err(|got| self.report(script, script.steps.len() - 1, &got))
    }

    fn step(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Client(name, action) => self.client_step(name, action),
            Action::Wait(time) => {
                let end = self.last_step + *time;
                wait_until(*time, || Instant::now() >= end);
                Ok(())
            }
            Action::Signal(signal) => {
                let server = self.server.as_ref().ok_or("no process to signal")?;
                let sent = match signal {
                    Signal::SIGSTOP | Signal::SIGCONT => server.signal_all(*signal),
                    _ => server.signal(*signal),
                };
                sent.map_err(|error| error.to_string())
            }
            Action::Restart => {
                self.nothing_left()?;
                self.clients.clear();
                let server = self.server.as_mut().ok_or("no process to restart")?;
                server.restart().map_err(|error| error.to_string())?;
                self.endpoint = server.endpoint().clone();
                Ok(())
            }
        }
    }

    fn client_step(&mut self, name: &str, action: &ClientAction) -> Outcome {
        if !self.clients.contains_key(name) {
            let client = Client::connect(&self.endpoint).map_err(|e| e.to_string())?;
            self.clients.insert(name.to_owned(), client);
        }
        let client = self.clients.get_mut(name).ok_or("client is there")?;
        match action {
            ClientAction::Send(text) => text
                .write_to(&self.names, client)
                .map_err(|e| format!("cannot send: {e}")),
            ClientAction::Close => {
                let closed = nothing_left(name, client);
                self.clients.remove(name);
                closed
            }
            ClientAction::Reset => {
                client.reset_on_close().map_err(|e| e.to_string())?;
                self.clients.remove(name);
                Ok(())
            }
            ClientAction::HalfClose => client.half_close().map_err(|e| e.to_string()),
            ClientAction::Reply(reply) => expect_reply(
                client,
                reply,
                &mut self.names,
                self.unquoted,
                self.last_step,
            ),
            ClientAction::Raw(text) => expect_raw(client, text, &self.names),
            ClientAction::Eof => expect_eof(client),
            ClientAction::Silence(time) => expect_silence(client, *time),
        }
    }

    /// Nobody has been told more than the transcript says.
    fn nothing_left(&mut self) -> Outcome {
        self.clients
            .iter_mut()
            .try_for_each(|(name, client)| nothing_left(name, client))
    }

    fn report(&self, script: &Script, index: usize, got: &str) -> String {
        let Step { line, source, .. } = &script.steps[index];
        let before: String = script.steps[..index]
            .iter()
            .map(|step| format!("    {:>3}  {}\n", step.line, step.source))
            .collect();
        let output = self.server.as_ref().map(Server::output).unwrap_or_default();
        let file = &script.file;
        format!(
            "{file}:{line}\n  expected  {source}{}\n  got       {got}\n  before\n{before}  \
             server says\n{output}",
            rows_of(&script.steps[index].action),
        )
    }
}

/// The rows that stand below the step in the transcript.
fn rows_of(action: &Action) -> String {
    match action {
        Action::Client(
            _,
            ClientAction::Reply(Reply {
                data: Data::Rows { rows, .. },
                ..
            }),
        ) => rows
            .iter()
            .map(|row| format!("\n            {row}"))
            .collect(),
        _ => String::new(),
    }
}

fn nothing_left(name: &str, client: &mut Client) -> Outcome {
    if client.input().is_empty() {
        client
            .fill(Instant::now())
            .map_err(|error| error.to_string())?;
    }
    match client.input() {
        [] => Ok(()),
        more => Err(format!(
            "for {name}, besides all that is written: {}",
            show(more)
        )),
    }
}

fn expect_reply(
    client: &mut Client,
    reply: &Reply,
    names: &mut Names,
    unquoted: &[String],
    last_step: Instant,
) -> Outcome {
    let end = last_step + reply.within.unwrap_or(REPLY_LIMIT);
    let Some(line) = client.line(end).map_err(|error| error.to_string())? else {
        return Err(silence_or_end(client, Instant::now()));
    };
    let data = read_data(client, &line)?;
    let shown = show_reply(&line, data.as_deref());
    let data = data.unwrap_or_default();
    let fits = match &reply.data {
        Data::None => data.is_empty() && !has_data(&line) && reply.line.fits(&line, names),
        Data::Body(body) => {
            let body = body.to_bytes(names).map_err(|error| error.to_string())?;
            has_data(&line) && reply.line.fits(&line, names) && data == body
        }
        Data::Rows { rows, extent } => {
            let rows = Rows {
                rows,
                extent: *extent,
                unquoted,
            };
            line.starts_with(b"OK ") && rows.fit(&data, names)?
        }
    };
    if fits { Ok(()) } else { Err(shown) }
}

/// Reads what the reply `line` announces.
fn read_data(client: &mut Client, line: &[u8]) -> Result<Option<Vec<u8>>, String> {
    if !has_data(line) {
        return Ok(None);
    }
    let len = line
        .rsplit(|b| *b == b' ')
        .next()
        .and_then(|len| std::str::from_utf8(len).ok());
    let len: usize = len
        .and_then(|len| len.parse().ok())
        .ok_or_else(|| show(line))?;
    let end = Instant::now() + DATA_LIMIT;
    let data = client
        .take(len + 2, end)
        .map_err(|error| error.to_string())?;
    let Some(mut data) = data else {
        return Err(format!(
            "{} and then only: {}",
            show(line),
            show(client.input())
        ));
    };
    if data.split_off(len) != b"\r\n" {
        return Err(format!(
            "{} without CR LF behind: {}",
            show(line),
            show(&data)
        ));
    }
    Ok(Some(data))
}

fn has_data(line: &[u8]) -> bool {
    [&b"RESERVED "[..], b"FOUND ", b"OK "]
        .iter()
        .any(|word| line.starts_with(word))
}

fn show_reply(line: &[u8], data: Option<&[u8]>) -> String {
    match data {
        None => show(line),
        Some(data) if line.starts_with(b"OK ") => {
            let rows = data.split(|b| *b == b'\n').map(show).collect::<Vec<_>>();
            format!(
                "{}\n            {}",
                show(line),
                rows.join("\n            ")
            )
        }
        Some(data) => format!("{} | {}", show(line), show(data)),
    }
}

/// The rows of an `OK` reply that are expected.
struct Rows<'a> {
    rows: &'a [String],
    extent: Extent,
    unquoted: &'a [String],
}

impl Rows<'_> {
    /// Whether `data` has these rows. Every row ends in LF.
    fn fit(&self, data: &[u8], names: &mut Names) -> Result<bool, String> {
        let Some(data) = data.strip_suffix(b"\n") else {
            return Ok(false);
        };
        let mut got: VecDeque<&[u8]> = data.split(|b| *b == b'\n').collect();
        for (index, row) in self.rows.iter().enumerate() {
            let key = row.split(':').next().unwrap_or_default();
            let bare = self.unquoted.iter().any(|unquoted| unquoted == key);
            let pattern = if bare {
                row.replace('"', "")
            } else {
                row.clone()
            };
            let pattern = Text::pattern(&pattern)?;
            let among = match self.extent {
                Extent::All => 1,
                Extent::Unordered if index == 0 => 1,
                Extent::Unordered | Extent::Some => got.len(),
            };
            let mut first = got.iter().take(among);
            let found = first.position(|got| pattern.fits(got, names));
            let Some(at) = found else { return Ok(false) };
            match self.extent {
                Extent::All | Extent::Unordered => drop(got.remove(at)),
                Extent::Some => drop(got.drain(..=at)),
            }
        }
        Ok(self.extent == Extent::Some || got.is_empty())
    }
}

fn expect_raw(client: &mut Client, text: &Text, names: &Names) -> Outcome {
    let wanted = text.to_bytes(names).map_err(|error| error.to_string())?;
    let end = Instant::now() + REPLY_LIMIT;
    match client
        .take(wanted.len(), end)
        .map_err(|error| error.to_string())?
    {
        Some(got) if got == wanted => Ok(()),
        Some(got) => Err(show(&got)),
        None => Err(silence_or_end(client, end)),
    }
}

fn expect_eof(client: &mut Client) -> Outcome {
    match client
        .fill(Instant::now() + REPLY_LIMIT)
        .map_err(|error| error.to_string())?
    {
        Fill::Eof if client.input().is_empty() => Ok(()),
        Fill::Eof | Fill::Data => Err(show(client.input())),
        Fill::Nothing => Err("the connection stays open".into()),
    }
}

fn expect_silence(client: &mut Client, time: Duration) -> Outcome {
    if !client.input().is_empty() {
        return Err(show(client.input()));
    }
    match client
        .fill(Instant::now() + time)
        .map_err(|error| error.to_string())?
    {
        Fill::Nothing => Ok(()),
        Fill::Data => Err(show(client.input())),
        Fill::Eof => Err("end of the connection".into()),
    }
}

fn silence_or_end(client: &mut Client, end: Instant) -> String {
    let ended = matches!(client.fill(end), Ok(Fill::Eof));
    let what = if ended {
        "end of the connection"
    } else {
        "nothing more in time"
    };
    match client.input() {
        [] => what.to_owned(),
        part => format!("{} and then {what}", show(part)),
    }
}

/// Wait for a reply unless the transcript gives another.
const REPLY_LIMIT: Duration = Duration::from_secs(8);
/// Wait for the data that a reply has announced.
const DATA_LIMIT: Duration = Duration::from_secs(20);
