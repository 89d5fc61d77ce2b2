//! The clients half with its sockets: accepts, reads, lets commands be obeyed, and writes. Used by
//! every role that has client connections; what the commands do is the sessions' and the shards'
//! affair.
//!
//! A turn: what is ready is read, once each; all complete commands are obeyed; then each conn that
//! has been answered is written to until all is sent or its socket is full. A conn that is found
//! to be gone then gives its jobs back, and whoever gets them is written to as well. Reads and
//! writes elsewhere are bugs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;

use crate::base::ids::SessionId;
use crate::base::limits::{
    READ_AHEAD_BYTES_MAX, READ_BYTES_MAX, REPLIES_KEPT_BYTES_MAX, REPLIES_KEPT_MICROS,
    REPLY_BACKLOG_BYTES_MAX,
};
use crate::base::time::Nanos;
use crate::engine::host::Ticket;
use crate::net::stream::{ReadOutcome, Stream};
use crate::role::conn::Conn;
use crate::role::process::ProcessFacts;
use crate::role::trace::Tracer;
use crate::session::input::LEFTOVER_LEN_MAX;
use crate::session::shards::Shards;
use crate::session::stats::{Fleet, ProcessStats, StatsDue};
use crate::session::table::{Fed, Sessions};
use crate::sys::poller::{Interest, Poller, Ready};
use crate::sys::process;

/// See the module's description.
pub struct Clients<S> {
    /// The conversations.
    pub sessions: Sessions<S>,
    /// What `stats` tells of this process.
    pub facts: ProcessFacts,
    /// By the slot of the session.
    conns: Vec<Option<Conn>>,
    /// Poller keys of conns begin here.
    first_key: usize,
    /// What one read brings, behind what was left over from the one before.
    scratch: Box<[u8]>,
    touched: Vec<SessionId>,
    dirty: Vec<SessionId>,
    /// Conns whose replies have to wait until the shards' journals confirm what they say.
    held: Vec<SessionId>,
    /// Conns whose replies are kept for more to come, and until when, in that order.
    kept: VecDeque<(Nanos, SessionId)>,
    /// Conns with commands left that can be obeyed in the next turn.
    runnable: Vec<SessionId>,
    tracer: Tracer,
    /// `stats` is answered by whoever knows of the other processes.
    has_fleet: bool,
    stats_due: Vec<StatsDue>,
    /// Conns that were closed since this was last taken.
    closed_count: usize,
}

/// What a client may hold in buffers, in bytes. Most hold nothing; but memory that busy ones have
/// left is to be found when they are gone.
const CLIENT_BYTES: usize = READ_AHEAD_BYTES_MAX + REPLY_BACKLOG_BYTES_MAX;

const REPLIES_KEPT_NANOS: u64 = REPLIES_KEPT_MICROS * 1_000;

/// The target of this module's log lines.
const LOG: &str = "clients";

impl<S: Shards> Clients<S> {
    /// No clients yet. `first_key` and all keys above it are used with the poller.
    #[must_use]
    pub fn new(
        sessions: Sessions<S>,
        facts: ProcessFacts,
        first_key: usize,
        tracer: Tracer,
    ) -> Clients<S> {
        Clients {
            sessions,
            facts,
            conns: Vec::new(),
            first_key,
            scratch: vec![0; LEFTOVER_LEN_MAX + READ_BYTES_MAX].into_boxed_slice(),
            touched: Vec::new(),
            dirty: Vec::new(),
            held: Vec::new(),
            kept: VecDeque::new(),
            runnable: Vec::new(),
            tracer,
            has_fleet: false,
            stats_due: Vec::new(),
            closed_count: 0,
        }
    }

    /// The same in a server of several processes: `stats` is answered by
    /// [`Clients::answer_stats`], with what the others know.
    #[must_use]
    pub fn with_fleet(self) -> Clients<S> {
        Clients {
            has_fleet: true,
            ..self
        }
    }

    /// Takes what is to be answered by [`Clients::answer_stats`].
    pub fn take_stats_due(&mut self, into: &mut Vec<StatsDue>) {
        self.sessions.take_stats_due(into);
    }

    /// Answers `stats`; who has been waiting for too long has been told so already. `tell` makes
    /// what the processes know of themselves of what this one knows. To be followed by
    /// [`Clients::finish_turn`].
    pub fn answer_stats(
        &mut self,
        due: &[StatsDue],
        fleet: &Fleet,
        tell: impl for<'a> FnOnce(&'a ProcessFacts) -> ProcessStats<'a>,
    ) {
        self.sessions
            .answer_stats(due, &tell(&self.facts), Some(fleet));
    }

    /// Takes in a client that has connected.
    pub fn open(&mut self, now: Nanos, stream: Stream, poller: &Poller) {
        let session = self.sessions.open(now);
        let slot = session.slot() as usize;
        if let Err(error) = poller.watch(stream.as_fd(), self.first_key + slot, Interest::READ) {
            log::warn!(target: LOG, "cannot watch connection peer={} error={error}", stream.peer());
            return self.sessions.close(now, session);
        }
        log::debug!(target: LOG, "connection opened peer={}", stream.peer());
        self.tracer.accepted(&stream);
        if self.conns.len() <= slot {
            self.conns.resize_with(slot + 1, || None);
        }
        self.conns[slot] = Some(Conn::new(stream, session));
    }

    /// Reads what has come, and has it obeyed.
    pub fn on_ready(&mut self, now: Nanos, ready: Ready, poller: &Poller) {
        let slot = ready.key - self.first_key;
        let Some(conn) = self.conns.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let session = conn.session;
        if conn.is_full {
            if ready.writable {
                conn.is_full = false;
                self.soil(session);
            }
            return;
        }
        if conn.has_ended || conn.fed == Fed::Closing {
            // Nothing is left to read. What is still reported is that nobody is there any more.
            if ready.hangup {
                self.lose_peer(now, session, poller);
            }
            return;
        }
        if conn.interest.readable && ready.readable {
            if let Err(error) = self.read(now, slot) {
                log::debug!(target: LOG, "connection lost error={error}");
                self.close(now, session, poller);
            }
        } else if ready.hangup {
            // The client is gone and has sent more than is read ahead of a command that waits. It
            // will not wait for jobs, and the rest is read when there is room.
            self.sessions.end_input(now, session);
            self.abandon(now, session, poller);
        }
    }

    /// Nobody is there any more, and nothing is left to be read: what was read is obeyed, and the
    /// conn closed when that is done.
    fn lose_peer(&mut self, now: Nanos, session: SessionId, poller: &Poller) {
        let Some(conn) = conn_of(&mut self.conns, session) else {
            return;
        };
        if self.sessions.is_answered(session) && conn.is_over() {
            return self.close(now, session, poller);
        }
        self.abandon(now, session, poller);
    }

    /// Sends the conn nothing any more.
    fn abandon(&mut self, now: Nanos, session: SessionId, poller: &Poller) {
        let Some(conn) = conn_of(&mut self.conns, session) else {
            return;
        };
        if let Err(error) = conn.lose_peer(poller) {
            log::warn!(target: LOG, "cannot forget connection error={error}");
            return self.close(now, session, poller);
        }
        self.soil(session);
    }

    /// Bytes that the clients take or may have taken lately, at most.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.sessions.len() * CLIENT_BYTES
    }

    /// Whether there is work left that needs no readiness.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.runnable.is_empty()
    }

    /// Takes the number of conns that were closed since the last call: descriptors that are free.
    pub fn take_closed_count(&mut self) -> usize {
        std::mem::take(&mut self.closed_count)
    }

    /// When [`Clients::finish_turn`] has something to do next that no readiness tells of.
    #[must_use]
    pub fn moment(&self) -> Option<Nanos> {
        self.kept.front().map(|&(until, _)| until)
    }

    /// Writes what is kept for more to come, of which there will be none: the process ends.
    pub fn write_kept(&mut self, now: Nanos, poller: &Poller) {
        self.finish_turn(Nanos(now.0 + REPLIES_KEPT_NANOS), poller);
    }

    /// Goes on with what can go on, and writes what has been answered. The end of a turn.
    pub fn finish_turn(&mut self, now: Nanos, poller: &Poller) {
        self.soil_kept(now);
        let mut runnable = std::mem::take(&mut self.runnable);
        for session in runnable.drain(..) {
            self.soil(session);
            self.obey_unread(now, session);
        }
        self.runnable = runnable;
        // A conn that turns out to be gone gives its jobs back, which may answer others.
        loop {
            self.settle(now);
            let confirmed = self.sessions.shards.flush();
            self.release(confirmed);
            self.tracer.print(&mut self.sessions, &self.conns);
            if self.dirty.is_empty() {
                return;
            }
            let mut dirty = std::mem::take(&mut self.dirty);
            for session in dirty.drain(..) {
                if self.sessions.held_until(session) > confirmed {
                    self.hold(session);
                } else if !self.keeps_for_more(now, session) {
                    self.write(now, session, poller);
                }
            }
            debug_assert!(
                self.dirty.is_empty(),
                "writing leaves nothing to be written"
            );
            self.dirty = dirty;
        }
    }

    /// Whether the replies are kept for a moment, because more of what the client has sent already
    /// is about to be answered: a write costs more than all else that a command does. Where shards
    /// answer at once there is nothing to wait for.
    fn keeps_for_more(&mut self, now: Nanos, session: SessionId) -> bool {
        let Some(conn) = conn_of(&mut self.conns, session).filter(|_| self.has_fleet) else {
            return false;
        };
        let has_more = conn.fed == Fed::Waits && !conn.unread.is_empty() && !conn.is_gone;
        if !has_more || self.sessions.is_answered(session) || self.sessions.waits_for_job(session) {
            return false;
        }
        let len = self.sessions.replies(session).map_or(0, |owed| owed.len());
        if len == 0 || len > REPLIES_KEPT_BYTES_MAX {
            return false;
        }
        match conn.kept_until {
            Some(until) if until <= now => return false,
            Some(_) => {}
            None => {
                let until = Nanos(now.0 + REPLIES_KEPT_NANOS);
                conn.kept_until = Some(until);
                self.kept.push_back((until, session));
            }
        }
        conn.is_dirty = false;
        true
    }

    /// Has the conns written to whose replies have been kept long enough.
    fn soil_kept(&mut self, now: Nanos) {
        while let Some(&(until, session)) = self.kept.front()
            && until <= now
        {
            self.kept.pop_front();
            if conn_of(&mut self.conns, session).is_some_and(|c| c.kept_until == Some(until)) {
                self.soil(session);
            }
        }
    }

    /// Leaves the conn until what its replies say is confirmed.
    fn hold(&mut self, session: SessionId) {
        if let Some(conn) = conn_of(&mut self.conns, session) {
            conn.is_dirty = false;
            if !conn.is_held {
                conn.is_held = true;
                self.held.push(session);
            }
        }
    }

    /// Has the conns written to whose replies say nothing that is not confirmed.
    fn release(&mut self, confirmed: Ticket) {
        let mut held = std::mem::take(&mut self.held);
        held.retain(|&session| {
            let waits = self.sessions.held_until(session) > confirmed;
            if !waits && let Some(conn) = conn_of(&mut self.conns, session) {
                conn.is_held = false;
                self.soil(session);
            }
            waits
        });
        self.held = held;
    }

    /// Lets sessions that were answered obey what they have sent meanwhile, until none is left.
    fn settle(&mut self, now: Nanos) {
        loop {
            if !self.has_fleet {
                self.answer_own_stats(now);
            }
            let mut touched = std::mem::take(&mut self.touched);
            self.sessions.take_touched(&mut touched);
            if touched.is_empty() {
                self.touched = touched;
                return;
            }
            for session in touched.drain(..) {
                self.soil(session);
                self.obey_unread(now, session);
                self.note_loss(session);
            }
            self.touched = touched;
        }
    }

    fn answer_own_stats(&mut self, now: Nanos) {
        if self.sessions.is_stats_due() {
            let mut due = std::mem::take(&mut self.stats_due);
            self.sessions.take_stats_due(&mut due);
            let process = self.facts.stats(now, process::usage());
            self.sessions.answer_stats(&due, &process, None);
            due.clear();
            self.stats_due = due;
        }
    }

    /// A session that is lost obeys nothing any more, whether it has something to obey or not.
    fn note_loss(&mut self, session: SessionId) {
        if self.sessions.is_lost(session)
            && let Some(conn) = conn_of(&mut self.conns, session)
        {
            conn.fed = Fed::Closing;
            conn.unread = Vec::new();
        }
    }

    fn read(&mut self, now: Nanos, slot: usize) -> io::Result<()> {
        let Some(conn) = &mut self.conns[slot] else {
            return Ok(());
        };
        let session = conn.session;
        if let Some((body, wanted)) = self.sessions.direct(session) {
            let outcome = conn.stream.read_append(body, wanted)?;
            self.on_read(now, session, outcome, |clients, _| {
                clients.obey(now, session, 0)
            });
        } else if conn.unread.len() <= LEFTOVER_LEN_MAX {
            // What was left over is too short to be an item, and is put in front of the rest.
            let left = conn.unread.len();
            self.scratch[..left].copy_from_slice(&conn.unread);
            let outcome = conn.stream.read(&mut self.scratch[left..])?;
            self.on_read(now, session, outcome, |clients, len| {
                clients.obey(now, session, left + len);
            });
        } else {
            let outcome = conn.stream.read_append(&mut conn.unread, READ_BYTES_MAX)?;
            self.on_read(now, session, outcome, |clients, _| {
                clients.obey_unread(now, session)
            });
        }
        Ok(())
    }

    fn on_read(
        &mut self,
        now: Nanos,
        session: SessionId,
        outcome: ReadOutcome,
        obey: impl FnOnce(&mut Self, usize),
    ) {
        match outcome {
            ReadOutcome::WouldBlock => return,
            ReadOutcome::Bytes(len) => obey(self, len),
            ReadOutcome::End => {
                if let Some(conn) = conn_of(&mut self.conns, session) {
                    conn.has_ended = true;
                }
                self.sessions.end_input(now, session);
            }
        }
        self.soil(session);
    }

    /// Has the first `len` bytes of the scratch buffer obeyed; what is left of them is unread.
    fn obey(&mut self, now: Nanos, session: SessionId, len: usize) {
        let Some(conn) = conn_of(&mut self.conns, session) else {
            return;
        };
        let mut bytes = &self.scratch[..len];
        conn.fed = self.sessions.feed(now, session, &mut bytes);
        conn.unread.clear();
        conn.unread.extend_from_slice(bytes);
    }

    fn obey_unread(&mut self, now: Nanos, session: SessionId) {
        let Some(conn) = conn_of(&mut self.conns, session) else {
            return;
        };
        if conn.unread.is_empty() || conn.is_full {
            return;
        }
        let mut bytes = &conn.unread[..];
        conn.fed = self.sessions.feed(now, session, &mut bytes);
        let obeyed = conn.unread.len() - bytes.len();
        conn.unread.drain(..obeyed);
    }

    /// Notes that the conn is to be looked at at the end of the turn.
    fn soil(&mut self, session: SessionId) {
        if let Some(conn) = conn_of(&mut self.conns, session)
            && !conn.is_dirty
        {
            conn.is_dirty = true;
            self.dirty.push(session);
        }
    }

    /// Sends what the conn is owed, as much as the socket takes, and decides what becomes of it.
    fn write(&mut self, now: Nanos, session: SessionId, poller: &Poller) {
        let Some(conn) = conn_of(&mut self.conns, session) else {
            return;
        };
        conn.is_dirty = false;
        conn.kept_until = None;
        let sent = match self.sessions.replies(session) {
            Some(mut replies) => conn.send(&mut replies),
            None => Ok(()),
        };
        if let Err(error) = sent {
            log::debug!(target: LOG, "connection lost error={error}");
            let is_awaiting = conn.has_ended && !self.sessions.is_answered(session);
            if !is_awaiting || conn.lose_peer(poller).is_err() {
                return self.close(now, session, poller);
            }
            // The rest of what it has sent is obeyed all the same, see `lose_peer`.
            if let Some(mut replies) = self.sessions.replies(session) {
                conn.throw_away(&mut replies);
            }
        }
        if conn.fed == Fed::Closing && self.sessions.is_lost(session) {
            // What the socket has not taken by now is not waited for.
            return self.close(now, session, poller);
        }
        if conn.is_full {
            return self.update_interest(now, session, poller);
        }
        self.sessions.recycle(session);
        if conn.unread.is_empty() {
            conn.unread = Vec::new();
        }
        if conn.is_over() && self.sessions.is_answered(session) {
            return self.close(now, session, poller);
        }
        if conn.fed == Fed::Waits && !conn.unread.is_empty() && self.sessions.may_go_on(session) {
            self.runnable.push(session);
        }
        self.update_interest(now, session, poller);
    }

    fn update_interest(&mut self, now: Nanos, session: SessionId, poller: &Poller) {
        let Some(conn) = conn_of(&mut self.conns, session) else {
            return;
        };
        let key = self.first_key + session.slot() as usize;
        if let Err(error) = conn.update_interest(key, poller) {
            log::warn!(target: LOG, "cannot watch connection error={error}");
            self.close(now, session, poller);
        }
    }

    fn close(&mut self, now: Nanos, session: SessionId, poller: &Poller) {
        self.tracer.print(&mut self.sessions, &self.conns);
        let Some(place) = self.conns.get_mut(session.slot() as usize) else {
            return;
        };
        let Some(conn) = place.take_if(|conn| conn.session == session) else {
            return;
        };
        self.tracer.closed(&conn.stream);
        if conn.is_watched()
            && let Err(error) = poller.forget_closing(conn.stream.as_fd())
        {
            log::warn!(target: LOG, "cannot forget connection error={error}");
        }
        self.closed_count += 1;
        drop(conn);
        self.shrink();
        self.sessions.close(now, session);
    }
}

impl<S> Clients<S> {
    /// Gives up the places of the latest conns when they are free, and their memory when most are.
    fn shrink(&mut self) {
        while let Some(None) = self.conns.last() {
            self.conns.pop();
        }
        let kept = CONNS_KEPT.max(2 * self.conns.len());
        if self.conns.capacity() > 2 * kept {
            self.conns.shrink_to(kept);
        }
    }
}

/// Places of conns that are kept when there are fewer.
const CONNS_KEPT: usize = 256;

fn conn_of(conns: &mut [Option<Conn>], session: SessionId) -> Option<&mut Conn> {
    let conn = conns.get_mut(session.slot() as usize)?.as_mut()?;
    (conn.session == session).then_some(conn)
}

#[cfg(test)]
mod tests;
