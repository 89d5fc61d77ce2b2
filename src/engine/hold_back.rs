//! Frontends that are slow to take what they are told. Their waiters are handed nothing while that
//! lasts: a job would only lie in a queue that grows, while another frontend's waiter could have
//! it. They still wait, parked: they count, they can cancel, and they stand among the waiters of no
//! tube, so that whoever hands out jobs never meets them.
//!
//! A waiter is parked if and only if its frontend is held back, so nothing is kept to say so.

use crate::base::time::Nanos;
use crate::engine::client::Wait;
use crate::engine::host::Host;
use crate::engine::{By, Engine};

impl Engine {
    /// Hands waiters of this frontend no job until [`Engine::let_go`]. A reserve that comes in the
    /// meantime and finds a job at once still gets it, because it has to be answered with something
    /// anyway; one that finds none waits with the others. Does nothing if the frontend is held back
    /// already. Looks at all sessions.
    ///
    /// It stays so when the last session of the frontend is detached: whoever has called this
    /// also calls [`Engine::let_go`] when the link ends.
    pub fn hold_back(&mut self, frontend: u16) {
        if self.held_back.contains(&frontend) {
            return;
        }
        let waits = self.end_waits(frontend);
        self.held_back.insert(frontend);
        for (client, wait) in waits {
            self.start_wait(client, wait);
        }
    }

    /// Lets waiters of this frontend have jobs again. Each of them meets what is ready in its tubes
    /// as if it began to wait now, the session that came first before the others. Does nothing if
    /// the frontend is not held back. Looks at all sessions.
    pub fn let_go(&mut self, now: Nanos, frontend: u16, host: &mut impl Host) {
        if !self.held_back.contains(&frontend) {
            return;
        }
        let waits = self.end_waits(frontend);
        self.held_back.remove(&frontend);
        for (client, wait) in waits {
            let from = self.clients[client].caller(wait.seq);
            if !self.reserve_at_once(now, By { client, from }, wait.style, host) {
                self.start_wait(client, wait);
            }
        }
    }

    /// Whether the client is one of a frontend that is held back.
    pub(super) fn is_held_back(&self, client: u32) -> bool {
        !self.held_back.is_empty()
            && self
                .held_back
                .contains(&self.clients[client].session.frontend)
    }

    /// Ends the waits of all sessions of the frontend, and tells them, first session first: slots
    /// are used again, so their order would mean nothing.
    fn end_waits(&mut self, frontend: u16) -> Vec<(u32, Wait)> {
        let all = self.clients.iter();
        let mut waiting: Vec<u32> = all
            .filter(|(_, client)| client.session.frontend == frontend && client.wait().is_some())
            .map(|(slot, _)| slot)
            .collect();
        waiting.sort_unstable_by_key(|&client| self.clients[client].session);
        let ended = waiting
            .into_iter()
            .filter_map(|client| Some((client, self.end_wait(client)?)));
        ended.collect()
    }
}
