//! What a shard says, taken down with the tickets that it has to wait for.

use std::rc::Rc;

use beanshard::base::ids::{Caller, JobId, Pri, SessionId};
use beanshard::base::time::Secs;
use beanshard::engine::event::Event;
use beanshard::engine::host::{Outbox, Ticket};
use beanshard::engine::stats::{JobCounts, JobState};

use crate::life::TUBES;

/// See the module's description.
#[derive(Default)]
pub(crate) struct Notes(pub(crate) Vec<Note>);

pub(crate) struct Note {
    pub(crate) ticket: u64,
    pub(crate) to: SessionId,
    pub(crate) said: Said,
    pub(crate) body: Rc<[u8]>,
}

/// As much of an event as matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Inserted(JobId),
    /// What was asked, to jobs that were there.
    Done,
    Reserved(JobId),
    Found(JobId),
    Expired(JobId),
    OutOfMemory,
    /// Of a tube; 0 if none runs.
    Pause(Secs),
    Stats(Numbers, &'static str),
    Other,
}

/// A job's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) state: JobState,
    pub(crate) pri: Pri,
    pub(crate) delay: Secs,
    pub(crate) ttr: Secs,
    pub(crate) counts: JobCounts,
}

impl Said {
    fn of(event: &Event<'_>) -> Said {
        match event {
            Event::Inserted { id } => Said::Inserted(*id),
            Event::Deleted { .. }
            | Event::Released { .. }
            | Event::Buried { .. }
            | Event::Kicked { .. }
            | Event::KickedJob => Said::Done,
            Event::Reserved { id, .. } => Said::Reserved(*id),
            Event::Found { id, .. } => Said::Found(*id),
            Event::Expired { id } => Said::Expired(*id),
            Event::OutOfMemory => Said::OutOfMemory,
            Event::TubeStats(stats) => Said::Pause(stats.pause),
            Event::JobStats(stats) => {
                let is_it = |name: &&str| name.as_bytes() == stats.tube.as_bytes();
                let tube = TUBES.into_iter().find(is_it).expect("it is one of ours");
                let numbers = Numbers {
                    state: stats.state,
                    pri: stats.pri,
                    delay: stats.delay,
                    ttr: stats.ttr,
                    counts: stats.counts,
                };
                Said::Stats(numbers, tube)
            }
            _ => Said::Other,
        }
    }
}

impl Outbox for Notes {
    fn emit(&mut self, to: Caller, event: Event<'_>) {
        self.emit_after(Ticket(0), to, event);
    }

    fn emit_after(&mut self, ticket: Ticket, to: Caller, event: Event<'_>) {
        let body: Rc<[u8]> = match &event {
            Event::Found { body, .. } => body[..].into(),
            _ => Rc::default(),
        };
        self.0.push(Note {
            ticket: ticket.0,
            to: to.session,
            said: Said::of(&event),
            body,
        });
    }
}
