//! Which child is where, and what is to be done about it: starts, links, questions after health,
//! and the end of everything. Pure: it is told the time and what has happened, and says what to do.
//!
//! It knows what there should be and what there is, and [`Places::due`] names the differences. So
//! nothing is forgotten because it could not be done when it was due: a link that a slow child was
//! not told of is made when the child answers again.

use std::fmt;

use crate::base::ids::Generation;
use crate::base::limits::{FAILED_STARTS_MAX, PING_EVERY_MS};
use crate::base::time::Nanos;
use crate::wire::kind::Sender;

mod child;
mod health;
mod links;
mod stop;

use child::{Child, Link, State};
use stop::Phase;

/// What a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has jobs.
    Owner,
    /// It has clients.
    Frontend,
}

/// A child's place, whoever has it at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// What the child is.
    pub role: Role,
    /// Which of its role.
    pub index: u16,
}

/// A child: a place and which start of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// Its place.
    pub seat: Seat,
    /// Of its start.
    pub generation: Generation,
}

/// Something to be done. What goes wrong with it is told like anything else that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start this child.
    Start(Occupant),
    /// Make a link between these.
    Link {
        /// One end.
        frontend: Occupant,
        /// The other.
        owner: Occupant,
    },
    /// Ask the child whether it turns, with this number.
    Ping(Seat, u64),
    /// Say that the child does not answer.
    ReportSlow(Seat),
    /// Tell the child to take no new jobs.
    Drain(Seat),
    /// Tell the child to end.
    Goodbye(Seat),
    /// End the child.
    Kill(Seat),
    /// Say that clients are served.
    Announce,
}

/// How it all has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As asked.
    Stopped,
    /// At once, because it was asked twice.
    Forced,
    /// This child does not start.
    GaveUp(Seat),
    /// This child says that it cannot start, however often it is tried.
    Hopeless(Seat),
}

/// What is known of a child that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which start of its place it was.
    pub generation: Generation,
    /// Whether it had ever served.
    pub has_served: bool,
    /// Whether it had been told to end.
    pub is_expected: bool,
}

/// See the module's description.
#[derive(Debug)]
pub struct Places {
    /// Owners, then frontends.
    children: Vec<Child>,
    owners: u16,
    /// Owners of the first frontend, then of the second, and so on.
    links: Vec<Link>,
    phase: Phase,
    /// The youngest.
    generation: Generation,
    /// Whether all owners have served at the same time, so that frontends are of use.
    has_owners: bool,
    is_draining: bool,
    /// When health is asked after, if there is somebody to ask.
    next_ping: Option<Nanos>,
    /// Number of the last question after health.
    pings: u64,
}

impl Places {
    /// So many places, all of them free.
    #[must_use]
    pub fn new(owners: u16, frontends: u16) -> Places {
        let (o, f) = (usize::from(owners), usize::from(frontends));
        Places {
            children: vec![Child::default(); o + f],
            owners,
            links: vec![Link::default(); o * f],
            phase: Phase::Starting,
            generation: Generation::NONE,
            has_owners: false,
            is_draining: false,
            next_ping: None,
            pings: 0,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether there are none, which cannot be of use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The number of a place, from 0.
    #[must_use]
    pub fn number(&self, seat: Seat) -> usize {
        usize::from(match seat.role {
            Role::Owner => seat.index,
            Role::Frontend => self.owners + seat.index,
        })
    }

    /// The place with this number.
    #[must_use]
    pub fn seat(&self, number: usize) -> Seat {
        match (number as u16).checked_sub(self.owners) {
            None => Seat {
                role: Role::Owner,
                index: number as u16,
            },
            Some(index) => Seat {
                role: Role::Frontend,
                index,
            },
        }
    }

    /// Whether the child there serves.
    #[must_use]
    pub fn is_ready(&self, seat: Seat) -> bool {
        self.child(seat).ready().is_some()
    }

    /// Whether children take no new jobs.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// The child there serves from now on.
    pub fn on_ready(&mut self, now: Nanos, seat: Seat) {
        let child = self.child_mut(seat);
        let State::Starting { generation } = child.state else {
            return;
        };
        child.state = State::Ready { generation };
        child.failed_starts = 0;
        child.backoff.on_ready(now);
        self.next_ping
            .get_or_insert(after_millis(now, PING_EVERY_MS));
        let owners = &self.children[..usize::from(self.owners)];
        self.has_owners |= owners.iter().all(|owner| owner.ready().is_some());
    }

    /// The child there has ended, or could not be started. None if there was none.
    pub fn on_end(&mut self, now: Nanos, seat: Seat) -> Option<Ended> {
        let is_expected = self.child(seat).is_leaving;
        let is_start = matches!(self.phase, Phase::Starting);
        let number = self.number(seat);
        let ended = self.children[number].end(now, is_expected)?;
        for (frontend, owner) in self.links_of(seat) {
            *self.link_mut(frontend, owner) = Link::default();
        }
        if is_start && self.child(seat).failed_starts >= FAILED_STARTS_MAX {
            self.kill(now, Outcome::GaveUp(seat));
        }
        Some(ended)
    }

    /// The child there, which has ended, has said that another start would change nothing. Before
    /// clients are served that is the end; later its tubes alone are out of reach, and it is tried
    /// again all the same, because somebody may have mended what is wrong.
    pub fn on_hopeless(&mut self, now: Nanos, seat: Seat) {
        if matches!(self.phase, Phase::Starting) {
            self.kill(now, Outcome::Hopeless(seat));
        }
    }

    /// The child there has closed its socket. It is about to end, and not waited for without end.
    pub fn on_closed(&mut self, now: Nanos, seat: Seat) {
        self.child_mut(seat).closed.get_or_insert(now);
    }

    /// No new jobs from now on.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// What is to be done at `now`. It is taken to be done: to be asked again after each time.
    pub fn due(&mut self, now: Nanos) -> Vec<Action> {
        let mut due = Vec::new();
        if self.is_over(now) {
            return due;
        }
        match self.phase {
            Phase::Starting | Phase::Serving => {
                self.start_children(now, &mut due);
                self.make_links(now, &mut due);
                self.ask_after_health(now, &mut due);
                self.tell_of_drain(&mut due);
                if matches!(self.phase, Phase::Starting)
                    && self.children.iter().all(|child| child.ready().is_some())
                {
                    self.phase = Phase::Serving;
                    due.push(Action::Announce);
                }
            }
            Phase::Stopping { .. } => self.say_goodbye(now, &mut due),
            Phase::Killing { .. } => {}
        }
        self.kill_who_is_late(now, &mut due);
        due
    }

    /// When something is due next, if nothing happens before.
    #[must_use]
    pub fn moment(&self) -> Option<Nanos> {
        let closed = self.children.iter().filter_map(Child::closed_until);
        let others: Vec<Nanos> = match self.phase {
            Phase::Starting | Phase::Serving => {
                let starts =
                    (0..self.len()).filter_map(|number| match self.children[number].state {
                        State::Away { until } => self.may_start(number).then_some(until),
                        State::Starting { .. } | State::Ready { .. } => None,
                    });
                let links = self
                    .missing_links()
                    .map(|(f, o)| self.link(f, o).not_before);
                let has_somebody = self.children.iter().any(|child| child.ready().is_some());
                let ping = self.next_ping.filter(|_| has_somebody);
                starts.chain(links).chain(ping).collect()
            }
            Phase::Stopping { role, until } => {
                let waits_for = |number: &usize| {
                    let child = &self.children[*number];
                    self.seat(*number).role == role && child.is_there() && !child.is_killed
                };
                let is_somebody = (0..self.len()).any(|number| waits_for(&number));
                is_somebody.then_some(until).into_iter().collect()
            }
            Phase::Killing { until, .. } => vec![until],
        };
        closed.chain(others).min()
    }

    fn start_children(&mut self, now: Nanos, due: &mut Vec<Action>) {
        for number in 0..self.len() {
            let State::Away { until } = self.children[number].state else {
                continue;
            };
            if until <= now && self.may_start(number) {
                self.generation = self.generation.next();
                let generation = self.generation;
                let is_draining = self.is_draining;
                let seat = self.seat(number);
                self.children[number].start(generation, is_draining);
                due.push(Action::Start(Occupant { seat, generation }));
            }
        }
    }

    /// Frontends are of no use before owners are there for the first time.
    fn may_start(&self, number: usize) -> bool {
        self.has_owners || self.seat(number).role == Role::Owner
    }

    fn tell_of_drain(&mut self, due: &mut Vec<Action>) {
        if !self.is_draining {
            return;
        }
        for number in 0..self.len() {
            let seat = self.seat(number);
            let child = &mut self.children[number];
            if child.is_there() && !child.is_draining {
                child.is_draining = true;
                due.push(Action::Drain(seat));
            }
        }
    }

    fn frontends(&self) -> u16 {
        self.len() as u16 - self.owners
    }

    fn child(&self, seat: Seat) -> &Child {
        &self.children[self.number(seat)]
    }

    fn child_mut(&mut self, seat: Seat) -> &mut Child {
        let number = self.number(seat);
        &mut self.children[number]
    }
}

fn owner_seat(index: u16) -> Seat {
    Seat {
        role: Role::Owner,
        index,
    }
}

fn frontend_seat(index: u16) -> Seat {
    Seat {
        role: Role::Frontend,
        index,
    }
}

fn after_millis(now: Nanos, millis: u64) -> Nanos {
    Nanos(now.0.saturating_add(millis * NANOS_PER_MILLI))
}

const NANOS_PER_MILLI: u64 = 1_000_000;

impl Role {
    /// Its name, as in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Frontend => "frontend",
        }
    }
}

impl From<Role> for Sender {
    fn from(role: Role) -> Sender {
        match role {
            Role::Owner => Sender::Owner,
            Role::Frontend => Sender::Frontend,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// As in `owner/2`.
impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.index)
    }
}

#[cfg(test)]
mod tests;
