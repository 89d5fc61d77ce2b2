//! How everything ends: frontends first, because owners serve them, and by force at last.

use super::{Action, Outcome, Places, Role};
use crate::base::limits::{KILL_LIMIT_SECS, STOP_LIMIT_SECS};
use crate::base::time::{Nanos, Secs};

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Clients are not served yet.
    Starting,
    /// They are.
    Serving,
    /// Children of this role are told to end, or have ended; they have until then.
    Stopping { role: Role, until: Nanos },
    /// Children are ended, and waited for until then.
    Killing { outcome: Outcome, until: Nanos },
}

impl Places {
    /// Ends everything: in order when asked for the first time, at once when asked again.
    pub fn stop(&mut self, now: Nanos) {
        match self.phase {
            Phase::Starting | Phase::Serving => {
                self.phase = Phase::Stopping {
                    role: Role::Frontend,
                    until: now.after(Secs(STOP_LIMIT_SECS)),
                };
            }
            Phase::Stopping { .. } => self.kill(now, Outcome::Forced),
            Phase::Killing { .. } => {}
        }
    }

    /// Whether nobody is started any more.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        match self.phase {
            Phase::Starting | Phase::Serving => false,
            Phase::Stopping { .. } | Phase::Killing { .. } => true,
        }
    }

    /// How everything has ended, once it has.
    #[must_use]
    pub fn outcome(&self, now: Nanos) -> Option<Outcome> {
        let outcome = match self.phase {
            Phase::Starting | Phase::Serving => return None,
            Phase::Stopping { .. } => Outcome::Stopped,
            Phase::Killing { outcome, .. } => outcome,
        };
        self.is_over(now).then_some(outcome)
    }

    pub(super) fn is_over(&self, now: Nanos) -> bool {
        let is_late = match self.phase {
            Phase::Starting | Phase::Serving => return false,
            Phase::Stopping { .. } => false,
            Phase::Killing { until, .. } => until <= now,
        };
        is_late || !self.children.iter().any(|child| child.is_there())
    }

    pub(super) fn kill(&mut self, now: Nanos, outcome: Outcome) {
        self.phase = Phase::Killing {
            outcome,
            until: now.after(Secs(KILL_LIMIT_SECS)),
        };
    }

    pub(super) fn say_goodbye(&mut self, now: Nanos, due: &mut Vec<Action>) {
        if let Phase::Stopping {
            role: Role::Frontend,
            ..
        } = self.phase
            && !self.has_any(Role::Frontend)
        {
            self.phase = Phase::Stopping {
                role: Role::Owner,
                until: now.after(Secs(STOP_LIMIT_SECS)),
            };
        }
        let Phase::Stopping { role, .. } = self.phase else {
            return;
        };
        for number in 0..self.len() {
            let seat = self.seat(number);
            let child = &mut self.children[number];
            if seat.role == role && child.is_there() && !child.is_leaving {
                child.is_leaving = true;
                due.push(Action::Goodbye(seat));
            }
        }
    }

    /// Ends who should have ended by now.
    pub(super) fn kill_who_is_late(&mut self, now: Nanos, due: &mut Vec<Action>) {
        let late = match self.phase {
            Phase::Starting | Phase::Serving => None,
            Phase::Stopping { role, until } => (until <= now).then_some(Some(role)),
            Phase::Killing { .. } => Some(None),
        };
        for number in 0..self.len() {
            let seat = self.seat(number);
            let child = &mut self.children[number];
            let is_late = late.is_some_and(|role| role.is_none_or(|role| role == seat.role))
                || child.closed_until().is_some_and(|until| until <= now);
            if is_late && child.is_there() && !child.is_killed {
                child.is_killed = true;
                due.push(Action::Kill(seat));
            }
        }
    }

    fn has_any(&self, role: Role) -> bool {
        (0..self.len())
            .any(|number| self.seat(number).role == role && self.children[number].is_there())
    }
}
