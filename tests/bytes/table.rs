//! Clients of a session table over a lone shard, with a clock of their own and without sockets:
//! what a server does with the bytes that come, in the same order, but checked after each step.

use beanshard::base::hash::NameHasher;
use beanshard::base::ids::{SessionId, ShardId};
use beanshard::base::time::Nanos;
use beanshard::engine::host::NoJournal;
use beanshard::engine::{Engine, IdScheme, Settings};
use beanshard::role::shard::Shard;
use beanshard::session::input::LEFTOVER_LEN_MAX;
use beanshard::session::shards::ShardMap;
use beanshard::session::stats::ProcessStats;
use beanshard::session::table::{self, Fed, MultiWatch, Sessions};

use crate::answer::{Answer, take_answer};
use crate::framer::{Framer, Missing};
use crate::script::{CLIENTS, Op};

/// Largest body: some are gathered, and some read straight into memory of their own.
pub(crate) const BODY_LEN_MAX: u32 = 20_000;

/// The table and its clients.
pub(crate) struct Table {
    sessions: Sessions<Shard<NoJournal>>,
    clients: Vec<Option<Client>>,
    now: Nanos,
    /// Large bodies are read where the session wants them.
    is_direct: bool,
}

/// One client.
struct Client {
    id: SessionId,
    framer: Framer,
    unread: Vec<u8>,
    fed: Fed,
    has_ended: bool,
    output: Vec<u8>,
    answers: Vec<Answer>,
}

impl Table {
    /// A table of clients that are all connected.
    pub(crate) fn new(is_direct: bool) -> Table {
        let hasher = NameHasher::new([1, 2]);
        let engine = Engine::new(Settings {
            ids: IdScheme::Plain,
            hasher,
            has_default: true,
        });
        let settings = table::Settings {
            map: ShardMap::new(1),
            body_len_max: BODY_LEN_MAX,
            hasher,
            traced: false,
            frontend: 0,
            owner_wait: 0,
            multi_watch: MultiWatch::Serve,
        };
        let mut sessions = Sessions::new(Shard::new(engine, NoJournal), settings);
        let now = Nanos(1_000_000_000_000);
        let clients = (0..CLIENTS)
            .map(|_| Some(Client::new(sessions.open(now))))
            .collect();
        Table {
            sessions,
            clients,
            now,
            is_direct,
        }
    }

    /// Does one thing, and checks all that has to hold after it.
    pub(crate) fn obey(&mut self, op: &Op) {
        match op {
            Op::Feed { client, bytes } => self.feed(*client, bytes),
            Op::Pass { nanos } => self.pass(*nanos),
            Op::End { client } => self.end(*client),
            Op::Close { client } => self.close(*client),
            Op::Drain => self.sessions.shards.drain(),
        }
        self.settle();
        self.check();
    }

    /// Brings every client to where a command begins and lets it give one, then ends its input so
    /// that nobody waits any longer. Everybody must have been answered as often as there was
    /// something to answer. Returns all answers.
    pub(crate) fn finish(mut self) -> Vec<Vec<Answer>> {
        let mut last = Vec::new();
        for client in 0..CLIENTS {
            if self.resynchronise(client) {
                let bytes = b"list-tube-used\r\n".to_vec();
                self.obey(&Op::Feed { client, bytes });
                last.push(client);
            }
        }
        self.obey(&Op::Pass {
            nanos: u64::from(u32::MAX) * 1_000_000_000,
        });
        for client in 0..CLIENTS {
            self.obey(&Op::End { client });
        }
        for client in last {
            let Some(found) = &self.clients[client] else {
                continue;
            };
            let answer = found.answers.last().map(|answer| &answer.line[..]);
            assert!(
                found.framer.is_closed || answer.is_some_and(|line| line.starts_with(b"USING ")),
                "the last command is answered: {answer:?}"
            );
        }
        let clients = self.clients.into_iter();
        clients
            .map(|client| client.map_or_else(Vec::new, |client| client.answers))
            .collect()
    }

    /// Whether the client has been brought to where a command begins.
    fn resynchronise(&mut self, client: usize) -> bool {
        while let Some(found) = &self.clients[client] {
            if found.has_ended || found.framer.is_closed {
                return false;
            }
            let bytes = match found.framer.missing() {
                Missing::Nothing => return true,
                Missing::Bytes(bytes) => bytes.to_vec(),
                Missing::Body(len) if len <= MISSING_LEN_MAX => vec![b'x'; len as usize],
                Missing::Body(_) => return false,
            };
            self.obey(&Op::Feed { client, bytes });
        }
        false
    }

    fn feed(&mut self, client: usize, bytes: &[u8]) {
        let Some(found) = self.clients[client]
            .as_mut()
            .filter(|found| !found.has_ended)
        else {
            return;
        };
        found.framer.feed(bytes);
        let mut bytes = bytes;
        if self.is_direct
            && found.unread.is_empty()
            && let Some((body, wanted)) = self.sessions.direct(found.id)
        {
            let (first, rest) = bytes.split_at(wanted.min(bytes.len()));
            body.extend_from_slice(first);
            bytes = rest;
            let mut none = &[][..];
            found.fed = self.sessions.feed(self.now, found.id, &mut none);
        }
        found.unread.extend_from_slice(bytes);
        found.obey_unread(self.now, &mut self.sessions);
    }

    fn pass(&mut self, nanos: u64) {
        self.now = Nanos(self.now.0.saturating_add(nanos));
        let now = self.now;
        self.sessions
            .tick_shard(now, ShardId(0), |shard, outbox| shard.tick(now, outbox));
        self.sessions.tick(now);
    }

    fn end(&mut self, client: usize) {
        if let Some(found) = &mut self.clients[client] {
            found.has_ended = true;
            self.sessions.end_input(self.now, found.id);
        }
    }

    fn close(&mut self, client: usize) {
        if let Some(found) = self.clients[client].take() {
            self.sessions.close(self.now, found.id);
            self.clients[client] = Some(Client::new(self.sessions.open(self.now)));
        }
    }

    /// Delivers what has been answered and lets those go on who can, until nobody can.
    fn settle(&mut self) {
        let mut touched = Vec::new();
        loop {
            if self.sessions.is_stats_due() {
                let mut due = Vec::new();
                self.sessions.take_stats_due(&mut due);
                self.sessions
                    .answer_stats(&due, &ProcessStats::default(), None);
            }
            touched.clear();
            self.sessions.take_touched(&mut touched);
            for client in self.clients.iter_mut().flatten() {
                client.deliver(&mut self.sessions);
            }
            let now = self.now;
            let mut has_moved = false;
            for client in self.clients.iter_mut().flatten() {
                if client.fed == Fed::Waits {
                    has_moved |= client.obey_unread(now, &mut self.sessions);
                }
            }
            if touched.is_empty() && !has_moved {
                return;
            }
        }
    }

    fn check(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.sessions.shards.check_invariants();
            self.sessions.check_invariants();
        }
        assert!(self.sessions.len() == CLIENTS, "a session is lost");
        for client in self.clients.iter().flatten() {
            client.check();
        }
    }
}

impl Client {
    fn new(id: SessionId) -> Client {
        Client {
            id,
            framer: Framer::new(BODY_LEN_MAX),
            unread: Vec::new(),
            fed: Fed::WantsMore,
            has_ended: false,
            output: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Whether anything was obeyed.
    fn obey_unread(&mut self, now: Nanos, sessions: &mut Sessions<Shard<NoJournal>>) -> bool {
        let mut rest = &self.unread[..];
        self.fed = sessions.feed(now, self.id, &mut rest);
        let len = self.unread.len() - rest.len();
        self.unread.drain(..len);
        len > 0
    }

    fn deliver(&mut self, sessions: &mut Sessions<Shard<NoJournal>>) {
        let Some(mut replies) = sessions.replies(self.id) else {
            return;
        };
        while !replies.is_empty() {
            let mut slices = [&[][..]; 4];
            let filled = replies.slices(&mut slices);
            let sent = slices[..filled].concat();
            self.output.extend_from_slice(&sent);
            replies.advance(sent.len());
        }
        drop(replies);
        sessions.recycle(self.id);
        while let Some(answer) = take_answer(&mut self.output) {
            assert!(is_known(&answer), "no reply of the protocol: {answer:?}");
            self.answers.push(answer);
        }
        assert!(self.output.is_empty(), "part of a reply: {:?}", self.output);
    }

    fn check(&self) {
        let (replies, due) = (self.answers.len(), self.framer.replies);
        match self.fed {
            Fed::WantsMore => {
                assert_eq!(replies, due, "as many replies as commands");
                assert!(
                    !self.framer.is_closed,
                    "a command is obeyed behind the last"
                );
                assert!(self.unread.len() <= LEFTOVER_LEN_MAX, "too much is left");
            }
            Fed::Waits => {
                assert!(replies < due, "a client waits for nothing");
                assert!(!self.has_ended, "a client that is gone waits");
            }
            Fed::Closing => {
                assert!(self.framer.is_closed, "a client is closed without a reason");
                assert_eq!(replies, due, "as many replies as commands before the last");
            }
        }
    }
}

/// Whether it begins like a reply that the protocol has.
fn is_known(answer: &Answer) -> bool {
    let word = answer.line.split(|&byte| byte == b' ').next();
    word.is_some_and(|word| WORDS.split(' ').any(|known| known.as_bytes() == word))
}

const WORDS: &str = "INSERTED BURIED EXPECTED_CRLF JOB_TOO_BIG DRAINING USING RESERVED \
     DEADLINE_SOON TIMED_OUT DELETED RELEASED TOUCHED KICKED FOUND NOT_FOUND WATCHING NOT_IGNORED \
     OK PAUSED UNKNOWN_COMMAND BAD_FORMAT";

/// Missing bytes of a body that are sent. A body of gibibytes would take too long.
const MISSING_LEN_MAX: u64 = 1 << 18;
