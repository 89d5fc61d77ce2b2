//! Clients come, speak and go, and frontends do for them what the network does.

use beanshard::proto::command::Kind;
use beanshard::session::stats::{Fleet, ProcessStats};
use beanshard::session::table::{Fed, Traced};

use crate::client::{Client, Weather};
use crate::command::{Command, Role, Topics};
use crate::reply::Reply;
use crate::truth::Who;
use crate::world::{World, say};

/// Commands that a client may have said without an answer.
const SENT_MAX: usize = 8;

impl World {
    /// One comes to a frontend that turns, if there is one.
    pub(crate) fn open(&mut self) -> bool {
        let turns: Vec<usize> = (0..self.frontends.len())
            .filter(|&f| self.frontends[f].turns())
            .collect();
        if turns.is_empty() {
            return false;
        }
        let f = self.random.pick(&turns);
        let now = self.now;
        let frontend = &mut self.frontends[f];
        let who = Who {
            generation: frontend.generation,
            session: frontend.table().open(now),
        };
        frontend.opened += 1;
        self.opened += 1;
        let roles = [Role::Producer, Role::Worker, Role::Worker, Role::Any];
        let role = self.random.pick(&roles);
        let serial = who.session.number >> 24;
        say!(self, "c{} opens as f{f}.{serial}", self.opened);
        self.clients.push(Client::new(who, self.opened, f, role));
        self.look(f);
        true
    }

    /// One comes and says where it wants to put and reserve.
    pub(crate) fn open_settled(&mut self) {
        if !self.open() {
            return;
        }
        let index = self.clients.len() - 1;
        let mut commands = vec![Command::Use(self.random.pick(&self.tubes))];
        if self.clients[index].role != Role::Producer {
            for _ in 0..self.random.below(4) {
                commands.push(Command::Watch(self.random.pick(&self.tubes)));
            }
            if self.random.percent(30) {
                commands.push(Command::Ignore("default"));
            }
        }
        let truth = &mut self.truth.borrow_mut();
        for command in commands {
            self.clients[index].say(command, truth);
        }
    }

    /// The connection of a client is lost.
    pub(crate) fn close(&mut self, index: usize) {
        let client = self.clients.swap_remove(index);
        let (f, now) = (client.frontend, self.now);
        say!(self, "c{} is gone", client.number);
        let table = self.frontends[f].table();
        table.close(now, client.id);
        assert!(table.replies(client.id).is_none());
        self.look(f);
    }

    pub(crate) fn close_some(&mut self) {
        if self.clients.len() < self.profile.clients {
            self.open_settled();
        } else if self.random.percent(40)
            && let Some(index) = self.some_client()
        {
            self.close(index);
        }
    }

    pub(crate) fn end_input_of_some(&mut self) {
        let Some(index) = self.some_client() else {
            return;
        };
        let client = &mut self.clients[index];
        if client.input_ended || client.is_closing {
            return;
        }
        // What has not arrived by now is cut off, in the middle of a command perhaps.
        client.input_ended = true;
        client.pending.clear();
        let (id, number, f) = (client.id, client.number, client.frontend);
        say!(self, "c{number} ends its input");
        let now = self.now;
        self.frontends[f].table().end_input(now, id);
        self.look(f);
        self.serve(index, usize::MAX);
    }

    pub(crate) fn talk(&mut self) {
        let Some(index) = self.some_client() else {
            return;
        };
        for _ in 0..=self.random.below(self.profile.pipeline) {
            let client = &mut self.clients[index];
            if !client.may_speak() || client.sent.len() > SENT_MAX {
                return;
            }
            self.spoken += 1;
            let mut truth = self.truth.borrow_mut();
            let topics = Topics {
                role: client.role,
                tubes: &self.tubes,
                own: &client.own,
                all: &self.all,
                body_len_max: self.profile.body_len_max,
                body_len_mean: self.profile.body_len_mean,
                is_full: truth.jobs.len() >= self.profile.jobs_max,
                number: self.spoken,
            };
            let command = Command::random(&mut self.random, &topics);
            client.say(command, &mut truth);
        }
        if self.random.percent(50) {
            self.arrive(index, usize::MAX);
        }
    }

    pub(crate) fn arrive_some(&mut self) {
        let most = self.random.pick(&[1, 9, 200, 9_000, 90_000]);
        if let Some(index) = self.some_client() {
            self.arrive(index, most);
        }
    }

    /// Lets up to `most` bytes of a client arrive.
    pub(crate) fn arrive(&mut self, index: usize, most: usize) {
        let client = &mut self.clients[index];
        let frontend = &mut self.frontends[client.frontend];
        if client.is_closing {
            client.pending.clear();
        }
        let mut count = client.pending.len().min(most);
        if count == 0 || !frontend.turns() {
            return;
        }
        // A large body is read straight to where it stays, as from a socket.
        if client.unfed.is_empty()
            && let Some((body, wanted)) = frontend.table().direct(client.id)
        {
            count = count.min(wanted);
            body.extend(client.pending.drain(..count));
        } else {
            client.unfed.extend(client.pending.drain(..count));
        }
        client.arrive(self.now, count);
        self.feed(index);
    }

    fn feed(&mut self, index: usize) {
        let now = self.now;
        let client = &mut self.clients[index];
        let f = client.frontend;
        let mut bytes = &client.unfed[..];
        let before = bytes.len();
        let table = self.frontends[f].table();
        let fed = table.feed(now, client.id, &mut bytes);
        let used = before - bytes.len();
        if self.verbose && used > 0 {
            let text = client.unfed[..used].escape_ascii().to_string();
            let shown = &text[..text.len().min(70)];
            let seconds = now.0 as f64 / 1e9;
            eprintln!("{seconds:9.3}  c{} < {shown} {fed:?}", client.number);
        }
        client.unfed.drain(..used);
        client.must_feed = fed == Fed::Waits;
        client.is_closing |= fed == Fed::Closing;
        self.look(f);
    }

    pub(crate) fn serve_some(&mut self) {
        let touched: Vec<usize> = (0..self.clients.len())
            .filter(|&index| self.clients[index].is_touched)
            .collect();
        if touched.is_empty() {
            return;
        }
        let index = self.random.pick(&touched);
        let slow = self.random.percent(self.profile.slow_reader);
        self.serve(index, if slow { 50 } else { usize::MAX });
    }

    /// Does what the network does for a session that is touched: sends up to `most` bytes of
    /// replies, feeds on, and closes what is over.
    pub(crate) fn serve(&mut self, index: usize, most: usize) {
        let f = self.clients[index].frontend;
        if !self.frontends[f].turns() {
            return;
        }
        let sent_all = self.send(index, most);
        self.clients[index].is_touched = !sent_all;
        if self.frontends[f].table().is_lost(self.clients[index].id) {
            self.truth.borrow_mut().see("lost");
            return self.close(index);
        }
        if self.clients[index].must_feed {
            self.feed(index);
        }
        let client = &self.clients[index];
        let is_answered = self.frontends[f].table().is_answered(client.id);
        let is_over = client.input_ended && !client.must_feed && is_answered;
        let is_idle = sent_all && !client.is_touched;
        if is_idle && (client.is_closing || is_over) {
            assert!(
                client.is_answered(),
                "c{} was owed something",
                client.number
            );
            self.close(index);
        }
    }

    /// Lets a client read up to `most` bytes of what it is owed. Whether that was all.
    fn send(&mut self, index: usize, most: usize) -> bool {
        let full_until = self.full_until();
        let client = &mut self.clients[index];
        let frontend = &mut self.frontends[client.frontend];
        let table = frontend.table();
        let Some(mut replies) = table.replies(client.id) else {
            return true;
        };
        let mut slices = [&[][..]; 8];
        let filled = replies.slices(&mut slices);
        let mut bytes = slices[..filled].concat();
        bytes.truncate(most);
        replies.advance(bytes.len());
        let sent_all = replies.is_empty();
        drop(replies);
        table.recycle(client.id);
        client.received.extend_from_slice(&bytes);
        let weather = Weather {
            map: self.map,
            down_until: &frontend.down_until,
            owner_wait: self.profile.owner_wait,
            full_until: &full_until,
        };
        while let Some(reply) = Reply::cut(&mut client.received) {
            say!(self, "c{} > {}", client.number, reply.line);
            if reply.is("INSERTED") {
                self.all.extend(reply.id());
            }
            let truth = &mut self.truth.borrow_mut();
            client.on_reply(self.now, reply, truth, &weather);
        }
        sent_all
    }

    /// A client whose frontend turns.
    fn some_client(&mut self) -> Option<usize> {
        let count = self.clients.len();
        let index = (count > 0).then(|| self.random.index(count))?;
        let f = self.clients[index].frontend;
        self.frontends[f].turns().then_some(index)
    }

    /// Lets a frontend hear what the other processes count, and answer who has asked.
    pub(crate) fn answer_stats(&mut self, f: usize) {
        if !self.frontends[f].turns() {
            return;
        }
        let mut fleet = Fleet::default();
        let others = self.frontends.iter().enumerate().filter(|(at, _)| *at != f);
        for table in others.filter_map(|(_, other)| other.sessions.as_ref()) {
            fleet.counts.merge(table.counts());
        }
        let due = std::mem::take(&mut self.frontends[f].due);
        let table = self.frontends[f].table();
        table.answer_stats(&due, &ProcessStats::default(), Some(&fleet));
        // Who asks now is answered the next time.
        let mut due = Vec::new();
        table.take_stats_due(&mut due);
        self.frontends[f].due = due;
        self.look(f);
    }

    /// Takes from a frontend what it tells after whatever was done with it.
    pub(crate) fn look(&mut self, f: usize) {
        let mut touched = Vec::new();
        let table = self.frontends[f].table();
        table.take_touched(&mut touched);
        let traces = table.take_traces();
        for id in touched {
            if let Some(index) = self.index_of(id) {
                let client = &mut self.clients[index];
                client.is_touched = true;
                let is_lost = self.frontends[f].table().is_lost(id);
                assert!(
                    !is_lost || client.may_be_lost,
                    "c{} loses its connection for nothing",
                    client.number
                );
            }
        }
        for trace in traces {
            let Some(index) = self.index_of(trace.session) else {
                continue;
            };
            let client = &mut self.clients[index];
            match trace.what {
                Traced::Command(Some(Kind::Reserve | Kind::ReserveWithTimeout)) => {
                    client.reserves.push_back(self.now);
                }
                Traced::Reply(line) => client.note_answer(&line),
                Traced::Command(_) | Traced::Body(_) => {}
            }
        }
    }
}
