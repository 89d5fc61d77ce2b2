//! Whether children turn: they are asked now and then. One that does not answer is said to be slow,
//! and never killed for it: it may be stopped, or the machine busy.

use super::{Action, Places, Seat, after_millis};
use crate::base::limits::{PING_EVERY_MS, SLOW_AFTER_SECS};
use crate::base::time::{Nanos, Secs};

const SLOW_AFTER: Secs = Secs(SLOW_AFTER_SECS);

impl Places {
    /// The child there has answered. Says whether it was held to be slow.
    pub fn on_pong(&mut self, seat: Seat, number: u64) -> bool {
        let child = self.child_mut(seat);
        if child.ping.is_none_or(|ping| ping.number != number) {
            return false;
        }
        child.ping = None;
        std::mem::take(&mut child.is_slow)
    }

    pub(super) fn ask_after_health(&mut self, now: Nanos, due: &mut Vec<Action>) {
        if self.next_ping.is_none_or(|at| at > now) {
            return;
        }
        self.next_ping = Some(after_millis(now, PING_EVERY_MS));
        for number in 0..self.len() {
            let seat = self.seat(number);
            let child = &mut self.children[number];
            match child.ping {
                _ if child.ready().is_none() => {}
                None => {
                    self.pings += 1;
                    child.ask(now, self.pings);
                    due.push(Action::Ping(seat, self.pings));
                }
                Some(ping) if !child.is_slow && ping.sent.after(SLOW_AFTER) <= now => {
                    child.is_slow = true;
                    due.push(Action::ReportSlow(seat));
                }
                Some(_) => {}
            }
        }
    }
}
