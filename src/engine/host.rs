//! What the engine needs of the world: somewhere to say things, and somewhere to write them down.

use crate::base::ids::{Caller, JobId};
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::job::{JobKey, JobRecord};
use crate::engine::stats::JournalStats;

/// Takes what the engine says. The event borrows from the engine, so that a body is copied at most
/// once, to where it leaves the process.
pub trait Outbox {
    /// `event` is for the session of `to`, about its ask `to.seq`; announcements have
    /// [`Seq::NONE`](crate::base::ids::Seq::NONE).
    fn emit(&mut self, to: Caller, event: Event<'_>);

    /// The same, but what is said must not leave before the journal has confirmed `ticket`.
    /// Only a host whose journal confirms at once may take one for the other.
    fn emit_after(&mut self, ticket: Ticket, to: Caller, event: Event<'_>) {
        let _ = ticket;
        self.emit(to, event);
    }
}

/// How much a journal has been told: grows with every record, and covers all that came before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Where a shard's history is kept, so that a restart finds the jobs again.
///
/// The engine reserves room before it changes anything; what was reserved can then be appended
/// without fail. That records reach the disk before answers reach clients is the journal's and its
/// host's affair.
pub trait Journal {
    /// Makes sure of the room for a new job's record, and for that of its later deletion.
    ///
    /// # Errors
    /// [`NoRoom`] if there is none. Nothing has changed then.
    fn reserve_put(&mut self, tube: TubeName<'_>, body: &[u8]) -> Result<(), NoRoom>;

    /// Makes sure of the room for one more record about a job that is there.
    ///
    /// # Errors
    /// [`NoRoom`] if there is none. Nothing has changed then.
    fn reserve_update(&mut self, id: JobId) -> Result<(), NoRoom>;

    /// Makes sure of the room for the record of a tube's pause, and for that of its end.
    ///
    /// # Errors
    /// [`NoRoom`] if there is none. Nothing has changed then.
    fn reserve_pause(&mut self, tube: TubeName<'_>) -> Result<(), NoRoom> {
        let _ = tube;
        Ok(())
    }

    /// Writes down what has happened. Room has been reserved.
    fn append(&mut self, record: Record<'_>);

    /// Number of the file with the job's full record, 0 if there is none.
    fn segment_of(&self, id: JobId, key: JobKey) -> u64;

    /// The journal's own numbers.
    fn stats(&self) -> JournalStats;

    /// How much the journal has been told. One that confirms at once need not count.
    fn position(&self) -> Ticket {
        Ticket::default()
    }

    /// What an answer about this job has to wait for, though the answer itself wrote nothing: the
    /// job may have been put a moment ago.
    fn ticket_of(&self, id: JobId) -> Ticket {
        let _ = id;
        Ticket::default()
    }
}

/// The journal has no room for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// One thing that happened to a job or a tube. A journal need not keep what happens to tubes.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a> {
    /// It came into being, or is written anew as it is.
    Put {
        /// Under which the journal keeps what it knows of the job.
        key: JobKey,
        /// What is kept of it.
        job: &'a JobRecord,
        /// Where it is.
        tube: TubeName<'a>,
        /// What it carries.
        body: &'a [u8],
    },
    /// It was released, buried or kicked, and is as `job` says now.
    Update {
        /// What is kept of it.
        job: &'a JobRecord,
        /// Bytes that it carries.
        body_len: u32,
    },
    /// It is gone.
    Delete {
        /// As under [`Record::Put`]; from now on it may be another job's.
        key: JobKey,
        /// What was kept of it.
        job: &'a JobRecord,
        /// Bytes that it carried.
        body_len: u32,
    },
    /// A tube was paused, perhaps while another pause of it ran, which this one replaces.
    Pause {
        /// The tube.
        tube: TubeName<'a>,
        /// For how long.
        length: Secs,
        /// Until when.
        until: Nanos,
    },
    /// The pause of a tube is over: by itself, because somebody has ended it, or because the tube
    /// has vanished.
    Resume {
        /// The tube.
        tube: TubeName<'a>,
    },
}

/// Both halves of the world, as the engine's functions take them.
pub trait Host: Outbox + Journal {}

impl<T: Outbox + Journal> Host for T {}

/// A host for one call, made of an outbox and a journal that are kept apart: whatever is said after
/// something was written down waits until that counts, whomever it is said to.
pub struct Joined<'a, O, J> {
    outbox: &'a mut O,
    journal: &'a mut J,
    /// What the journal had been told before the call.
    start: Ticket,
}

impl<'a, O, J: Journal> Joined<'a, O, J> {
    /// The host made of these.
    pub fn new(outbox: &'a mut O, journal: &'a mut J) -> Joined<'a, O, J> {
        let start = journal.position();
        Joined {
            outbox,
            journal,
            start,
        }
    }
}

impl<O: Outbox, J: Journal> Outbox for Joined<'_, O, J> {
    fn emit(&mut self, to: Caller, event: Event<'_>) {
        let position = self.journal.position();
        let ticket = if position > self.start {
            position
        } else if let Event::Reserved { id, .. } | Event::Found { id, .. } = event {
            self.journal.ticket_of(id)
        } else {
            Ticket::default()
        };
        self.outbox.emit_after(ticket, to, event);
    }
}

impl<O, J: Journal> Journal for Joined<'_, O, J> {
    fn reserve_put(&mut self, tube: TubeName<'_>, body: &[u8]) -> Result<(), NoRoom> {
        self.journal.reserve_put(tube, body)
    }

    fn reserve_update(&mut self, id: JobId) -> Result<(), NoRoom> {
        self.journal.reserve_update(id)
    }

    fn reserve_pause(&mut self, tube: TubeName<'_>) -> Result<(), NoRoom> {
        self.journal.reserve_pause(tube)
    }

    fn append(&mut self, record: Record<'_>) {
        self.journal.append(record);
    }

    fn segment_of(&self, id: JobId, key: JobKey) -> u64 {
        self.journal.segment_of(id, key)
    }

    fn stats(&self) -> JournalStats {
        self.journal.stats()
    }

    fn position(&self) -> Ticket {
        self.journal.position()
    }

    fn ticket_of(&self, id: JobId) -> Ticket {
        self.journal.ticket_of(id)
    }
}

/// The journal of a server that keeps its jobs in memory only. Its calls vanish.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn reserve_put(&mut self, _: TubeName<'_>, _: &[u8]) -> Result<(), NoRoom> {
        Ok(())
    }

    fn reserve_update(&mut self, _: JobId) -> Result<(), NoRoom> {
        Ok(())
    }

    fn append(&mut self, _: Record<'_>) {}

    fn segment_of(&self, _: JobId, _: JobKey) -> u64 {
        0
    }

    fn stats(&self) -> JournalStats {
        JournalStats::default()
    }
}
