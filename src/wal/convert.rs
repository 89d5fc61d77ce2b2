//! Jobs as the engine has them to jobs as records show them, and back. The engine's moments are
//! those of a clock that ends with the machine's run; records have the wall clock's.

use crate::base::ids::JobId;
use crate::base::time::{NANOS_PER_SEC, Nanos, Secs};
use crate::engine::job::{JobRecord, JobState};
use crate::wal::files::{NUMBER_MAX, SHORT_LEN};
use crate::wal::record::{JobImage, SavedState, SpanNanos, WallNanos};

/// How far the wall clock is ahead of the engine's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    /// Nanoseconds, now.
    ahead: i64,
}

/// What the moment of a burial leaves when divided by [`BURIAL_UNIT`]. The original ignores a
/// buried job's deadline and never writes one of this form: its clock has microseconds. So it tells
/// our own records, in which the field keeps the job's place among those buried. That is the moment
/// by the engine's clock as it is, because the wall clock may be set back; a later run of the
/// machine, in which the engine's clock begins anew, goes on behind the latest burial it finds.
const BURIAL_MARK: i64 = 1;

/// Nanoseconds in a microsecond.
const BURIAL_UNIT: i64 = 1000;

impl Clocks {
    /// At this moment the wall clock shows `wall`.
    pub(super) fn new(now: Nanos, wall: WallNanos) -> Clocks {
        Clocks {
            ahead: wall.0.saturating_sub(signed(now.0)),
        }
    }

    /// At this later moment the wall clock shows `wall`.
    pub(super) fn set(&mut self, now: Nanos, wall: WallNanos) {
        self.ahead = wall.0.saturating_sub(signed(now.0));
    }

    fn wall(self, moment: Nanos) -> WallNanos {
        WallNanos(signed(moment.0).saturating_add(self.ahead))
    }

    fn moment(self, wall: WallNanos) -> Nanos {
        Nanos(u64::try_from(wall.0.saturating_sub(self.ahead)).unwrap_or(0))
    }

    /// The job as a record shows it.
    pub(super) fn image(self, job: &JobRecord, body_len: u32) -> JobImage {
        let (state, deadline_at) = match job.state {
            JobState::Ready | JobState::Offered { .. } => (SavedState::Ready, WallNanos(0)),
            JobState::Reserved { .. } => (SavedState::Reserved, self.wall(job.deadline)),
            JobState::Delayed => (SavedState::Delayed, self.wall(job.deadline)),
            JobState::Buried => (SavedState::Buried, burial_mark(job.deadline)),
        };
        JobImage {
            id: job.id,
            pri: job.pri,
            delay: span(job.delay),
            ttr: span(job.ttr),
            body_len,
            created_at: self.wall(job.created_at),
            deadline_at,
            counts: job.counts,
            state,
        }
    }

    /// The record of the job's end.
    pub(super) fn deletion(self, job: &JobRecord, body_len: u32) -> JobImage {
        JobImage {
            state: SavedState::Deleted,
            ..self.image(job, body_len)
        }
    }

    /// The job that a record shows, as it is after a start: nobody holds it. Where it stands among
    /// those buried is another question.
    pub(super) fn job(self, image: &JobImage) -> JobRecord {
        let (state, deadline) = match image.state {
            SavedState::Delayed => (JobState::Delayed, self.moment(image.deadline_at)),
            SavedState::Buried => (JobState::Buried, Nanos(0)),
            SavedState::Ready | SavedState::Reserved | SavedState::Deleted => {
                (JobState::Ready, Nanos(0))
            }
        };
        JobRecord {
            id: image.id,
            pri: image.pri,
            delay: secs(image.delay),
            ttr: secs(image.ttr),
            created_at: self.moment(image.created_at),
            deadline,
            counts: image.counts,
            state,
        }
    }
}

/// The field that keeps the moment of a burial.
fn burial_mark(moment: Nanos) -> WallNanos {
    let unit = signed(moment.0) / BURIAL_UNIT;
    WallNanos(unit * BURIAL_UNIT + BURIAL_MARK)
}

/// When the job was buried, if the record tells.
pub(super) fn burial_of(image: &JobImage) -> Option<Nanos> {
    let told = image.deadline_at.0;
    let is_told = image.state == SavedState::Buried && told.rem_euclid(BURIAL_UNIT) == BURIAL_MARK;
    is_told.then(|| Nanos(u64::try_from(told - BURIAL_MARK).unwrap_or(0)))
}

/// Stands for the moment of a burial that a record does not tell: later than those before it in the
/// directory, the latest of which was `latest`. It is made of the place of the record, so that it
/// is the same at every start as long as the record is there, whichever others have gone.
pub(super) fn burial_at(file: u64, offset: u64, latest: Nanos) -> Nanos {
    let nth = (offset / SHORT_LEN).min((1 << NTH_BITS) - 1);
    let unit = (file << NTH_BITS | nth) * BURIAL_UNIT.unsigned_abs();
    let next = Nanos(latest.0.saturating_add(BURIAL_UNIT.unsigned_abs()));
    next.max(Nanos(unit))
}

/// Bits for the place of a record in its file. What is left is enough for every number of a file.
const NTH_BITS: u32 = 22;

const _: () = assert!(
    NUMBER_MAX < (i64::MAX / BURIAL_UNIT) as u64 >> NTH_BITS,
    "every place is a moment"
);

/// The record that says that no id below `next` may be given again, and nothing else: the end of a
/// job that never was. The original ignores it. No job's own end looks like it, because no job has
/// a time to run of 0.
pub(super) fn id_mark(next: JobId) -> JobImage {
    JobImage {
        id: next,
        pri: crate::base::ids::Pri(0),
        delay: SpanNanos(0),
        ttr: SpanNanos(0),
        body_len: 0,
        created_at: WallNanos(0),
        deadline_at: WallNanos(0),
        counts: Default::default(),
        state: SavedState::Deleted,
    }
}

/// Whether it is that record.
pub(super) fn is_id_mark(image: &JobImage) -> bool {
    *image == id_mark(image.id)
}

/// The highest id that has been given, as far as this record tells; 0 if it does not.
pub(super) fn highest_of(image: &JobImage) -> JobId {
    if image.id >= JobId::UNCOUNTED {
        JobId(0)
    } else if is_id_mark(image) {
        JobId(image.id.0 - 1)
    } else {
        image.id
    }
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

fn span(secs: Secs) -> SpanNanos {
    SpanNanos(i64::from(secs.0) * NANOS_PER_SEC.cast_signed())
}

/// Whole seconds, rounded up; nobody writes parts of one.
fn secs(span: SpanNanos) -> Secs {
    let nanos = u64::try_from(span.0).unwrap_or(0);
    Secs(u32::try_from(nanos.div_ceil(NANOS_PER_SEC)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Pri;
    use crate::engine::job::JobCounts;

    const NOW: Nanos = Nanos(5_000_000_000_000);
    const WALL: WallNanos = WallNanos(1_700_000_000_000_000_000);

    fn job(state: JobState) -> JobRecord {
        JobRecord {
            id: JobId(7),
            pri: Pri(3),
            delay: Secs(u32::MAX),
            ttr: Secs(1),
            created_at: Nanos(NOW.0 - 9),
            deadline: NOW.after(Secs(10)),
            counts: JobCounts::default(),
            state,
        }
    }

    #[test]
    fn a_job_comes_back_with_what_is_left_of_its_delay() {
        let clocks = Clocks::new(NOW, WALL);
        let image = clocks.image(&job(JobState::Delayed), 5);
        // Another run of the machine, three seconds later.
        let later = Clocks::new(Nanos(77), WallNanos(WALL.0 + 3_000_000_000));
        let back = later.job(&image);
        assert_eq!(back.deadline, Nanos(77).after(Secs(7)));
        assert_eq!((back.delay, back.ttr), (Secs(u32::MAX), Secs(1)));
        // It was made before that run, and its age is cut.
        assert_eq!(back.created_at, Nanos(0));
        assert_eq!(clocks.job(&image).created_at, Nanos(NOW.0 - 9));
    }

    // Q21
    #[test]
    fn burials_keep_their_order_whatever_the_wall_clock_shows() {
        let mut clocks = Clocks::new(NOW, WALL);
        let first = clocks.image(&job(JobState::Buried), 5);
        clocks.set(Nanos(NOW.0 + 1000), WallNanos(WALL.0 - 3_600_000_000_000));
        let second = JobRecord {
            deadline: Nanos(job(JobState::Buried).deadline.0 + 1000),
            ..job(JobState::Buried)
        };
        let second = clocks.image(&second, 5);
        let (first, second) = (burial_of(&first).unwrap(), burial_of(&second).unwrap());
        assert_eq!(second.0 - first.0, 1000);
        assert_eq!(first, job(JobState::Buried).deadline);
        // A deadline of the original's is none of these.
        let theirs = JobImage {
            state: SavedState::Buried,
            deadline_at: WALL,
            ..clocks.image(&job(JobState::Ready), 5)
        };
        assert_eq!(burial_of(&theirs), None);
    }

    // Q21
    #[test]
    fn burials_of_the_original_stand_in_the_order_of_their_records() {
        let first = burial_at(1, 4, Nanos(0));
        let second = burial_at(1, 88, first);
        let third = burial_at(2, 4, second);
        assert!(first < second && second < third);
        // Whichever others are gone.
        assert_eq!(burial_at(2, 4, Nanos(0)), third);
        assert!(burial_at(2, 4, NOW) > NOW);
        let far = burial_at(NUMBER_MAX, u64::MAX, Nanos(0));
        assert_eq!(burial_mark(far).0, far.0.cast_signed() + 1);
    }

    // Q20
    #[test]
    fn a_mark_is_told_from_the_end_of_a_job() {
        let clocks = Clocks::new(NOW, WALL);
        assert_eq!(highest_of(&id_mark(JobId(8))), JobId(7));
        let end = clocks.deletion(&job(JobState::Ready), 0);
        assert_eq!(highest_of(&end), JobId(7));
        let last = JobImage {
            id: JobId(u64::MAX),
            ..end
        };
        // Nobody counts on from such an id.
        assert_eq!(highest_of(&last), JobId(0));
    }
}
