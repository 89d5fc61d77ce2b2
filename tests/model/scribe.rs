//! The host of both sides: takes down what is said and written, in one list of lines, so that the
//! order of the two is compared as well; and a journal that has room for as many records as it is
//! told, and that can be replayed.

use beanshard::base::body::Body;
use beanshard::base::ids::{Caller, JobId, Pri, SessionId};
use beanshard::base::name::{TubeName, TubeNameBuf};
use beanshard::base::time::{Nanos, Secs};
use beanshard::engine::event::Event;
use beanshard::engine::host::{Journal, NoRoom, Outbox, Record};
use beanshard::engine::job::{JobKey, JobRecord, JobState};
use beanshard::engine::stats::{JobStats, JournalStats};

/// See the module's description.
#[derive(Default)]
pub(crate) struct Scribe {
    lines: Vec<String>,
    /// Records that there is room for until it is set anew.
    pub(crate) room: u32,
    /// Whether something was refused since this was last cleared.
    pub(crate) refused: bool,
    history: Vec<Entry>,
}

/// A record of one's own.
enum Entry {
    Put {
        job: JobRecord,
        tube: TubeNameBuf,
        body: Body,
    },
    Update {
        job: JobRecord,
    },
    Delete {
        id: JobId,
    },
}

/// What a restart would know of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) id: JobId,
    pub(crate) tube: TubeNameBuf,
    pub(crate) pri: Pri,
    pub(crate) delay: Secs,
    pub(crate) state: JobState,
    pub(crate) body: Vec<u8>,
}

impl Scribe {
    /// All lines since they were last taken.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// The jobs that a restart at `now` would find, buried ones last and in the order of burial. A
    /// delay that is over is over, though nothing was written about that.
    pub(crate) fn replay(&self, now: Nanos) -> Vec<Kept> {
        let mut jobs: Vec<(JobRecord, &TubeNameBuf, &Body)> = Vec::new();
        let place = |jobs: &[(JobRecord, _, _)], id| {
            let found = jobs.iter().position(|(job, _, _)| job.id == id);
            found.expect("a record is about a job that was put and not deleted")
        };
        for entry in &self.history {
            match entry {
                Entry::Put { job, tube, body } => jobs.push((*job, tube, body)),
                Entry::Update { job } => {
                    let at = place(&jobs, job.id);
                    let (_, tube, body) = jobs.remove(at);
                    jobs.push((*job, tube, body));
                }
                Entry::Delete { id } => {
                    let at = place(&jobs, *id);
                    jobs.remove(at);
                }
            }
        }
        let (mut buried, mut others) = (Vec::new(), Vec::new());
        for (job, tube, body) in jobs {
            let is_over = job.state == JobState::Delayed && job.deadline <= now;
            let kept = Kept {
                id: job.id,
                tube: tube.clone(),
                pri: job.pri,
                delay: job.delay,
                state: if is_over { JobState::Ready } else { job.state },
                body: body.to_vec(),
            };
            if kept.state == JobState::Buried {
                buried.push(kept);
            } else {
                others.push(kept);
            }
        }
        others.sort_by_key(|kept| kept.id);
        others.append(&mut buried);
        others
    }

    fn take_room(&mut self) -> Result<(), NoRoom> {
        self.refused |= self.room == 0;
        self.room = self.room.checked_sub(1).ok_or(NoRoom)?;
        Ok(())
    }
}

impl Outbox for Scribe {
    fn emit(&mut self, to: Caller, event: Event<'_>) {
        let line = format!("{} {}", name_of(to), event_text(event));
        self.lines.push(line);
    }
}

impl Journal for Scribe {
    fn reserve_put(&mut self, tube: TubeName<'_>, body: &[u8]) -> Result<(), NoRoom> {
        let room = self.take_room();
        let bytes = body.escape_ascii();
        self.lines
            .push(format!("  room for a put of {bytes} in {tube:?}: {room:?}"));
        room
    }

    fn reserve_update(&mut self, id: JobId) -> Result<(), NoRoom> {
        let room = self.take_room();
        self.lines
            .push(format!("  room for an update of {id:?}: {room:?}"));
        room
    }

    fn append(&mut self, record: Record<'_>) {
        let (entry, line) = match record {
            Record::Put {
                job, tube, body, ..
            } => {
                let bytes = body.escape_ascii();
                let line = format!("  record: put in {tube:?} {bytes} {}", record_text(job));
                let entry = Entry::Put {
                    job: *job,
                    tube: tube.into(),
                    body: Body::copy_of(body),
                };
                (entry, line)
            }
            Record::Update { job, body_len } => {
                let line = format!("  record: update {} {body_len}", record_text(job));
                (Entry::Update { job: *job }, line)
            }
            Record::Delete { job, body_len, .. } => {
                let line = format!("  record: delete {:?} {body_len}", job.id);
                (Entry::Delete { id: job.id }, line)
            }
            // Not every journal keeps these.
            Record::Pause { .. } | Record::Resume { .. } => return,
        };
        self.history.push(entry);
        self.lines.push(line);
    }

    fn segment_of(&self, id: JobId, _: JobKey) -> u64 {
        id.0 % 7
    }

    fn stats(&self) -> JournalStats {
        JournalStats {
            oldest_index: 2,
            current_index: 5,
            records_migrated: 3,
            records_written: self.history.len() as u64,
        }
    }
}

/// A session as `c7`: the third seat's, the seventh to come.
pub(crate) fn session_name(session: SessionId) -> String {
    let seat = char::from(b'a' + session.slot() as u8);
    format!("{seat}{}", session.number >> 24)
}

/// A caller as `c7#12`, which adds the number of the ask.
pub(crate) fn name_of(caller: Caller) -> String {
    format!("{}#{}", session_name(caller.session), caller.seq.0)
}

/// All that the event says, except which of the engine's slots a session has.
fn event_text(event: Event<'_>) -> String {
    let shown = format!("{event:?}");
    match event {
        Event::Reserved { body, .. } | Event::Found { body, .. } => {
            format!("{shown} {}", body.escape_ascii())
        }
        Event::JobStats(stats) => {
            let state = without_slot(stats.state);
            format!("{:?}", JobStats { state, ..stats })
        }
        Event::Using
        | Event::Watching
        | Event::Ignored
        | Event::Inserted { .. }
        | Event::Draining
        | Event::OutOfMemory
        | Event::NoJob
        | Event::Offered { .. }
        | Event::Gone
        | Event::Cancelled
        | Event::Expired { .. }
        | Event::Deleted { .. }
        | Event::Released { .. }
        | Event::Buried { .. }
        | Event::Touched { .. }
        | Event::Kicked { .. }
        | Event::KickedJob
        | Event::NotFound
        | Event::Paused
        | Event::TubeStats(_)
        | Event::ShardStats(_)
        | Event::Tube(_)
        | Event::TubesEnd => shown,
    }
}

/// All that a record says; its deadline only where that means something.
fn record_text(job: &JobRecord) -> String {
    let deadline = if job.state == JobState::Delayed {
        job.deadline
    } else {
        Nanos(0)
    };
    format!("{:?}", JobRecord { deadline, ..*job })
}

fn without_slot(state: JobState) -> JobState {
    match state {
        JobState::Offered { .. } => JobState::Offered { to: 0 },
        JobState::Reserved { .. } => JobState::Reserved { by: 0 },
        JobState::Ready | JobState::Delayed | JobState::Buried => state,
    }
}
