//! Jobs as the engine has them to jobs as records show them, and back. The engine's moments are
//! those of a clock that ends with the machine's run; records have the wall clock's.

use crate::base::time::{NANOS_PER_SEC, Nanos, Secs};
use crate::engine::job::{JobRecord, JobState};
use crate::wal::format::Format;
use crate::wal::record::{JobImage, SavedState, SpanNanos, WallNanos};

/// How far the wall clock is ahead of the engine's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    /// Nanoseconds, now.
    ahead: i64,
}

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

    pub(super) fn wall(self, moment: Nanos) -> WallNanos {
        WallNanos(signed(moment.0).saturating_add(self.ahead))
    }

    pub(super) fn moment(self, wall: WallNanos) -> Nanos {
        Nanos(u64::try_from(wall.0.saturating_sub(self.ahead)).unwrap_or(0))
    }

    /// The job as a record shows it.
    pub(super) fn image<F: Format>(self, job: &JobRecord, body_len: u32) -> JobImage {
        let (state, deadline_at) = match job.state {
            JobState::Ready | JobState::Offered { .. } => (SavedState::Ready, WallNanos(0)),
            JobState::Reserved { .. } => (SavedState::Reserved, self.wall(job.deadline)),
            JobState::Delayed => (SavedState::Delayed, self.wall(job.deadline)),
            JobState::Buried => (SavedState::Buried, F::burial_mark(job.deadline)),
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
    pub(super) fn deletion<F: Format>(self, job: &JobRecord, body_len: u32) -> JobImage {
        JobImage {
            state: SavedState::Deleted,
            ..self.image::<F>(job, body_len)
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

/// Stays at the largest number there is.
pub(super) fn signed(nanos: u64) -> i64 {
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
    use crate::base::ids::{JobId, Pri};
    use crate::engine::job::JobCounts;
    use crate::wal::files::NUMBER_MAX;
    use crate::wal::v7::{V7, burial_at, burial_mark, burial_of, highest_of, id_mark};

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
        let image = clocks.image::<V7>(&job(JobState::Delayed), 5);
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
        let first = clocks.image::<V7>(&job(JobState::Buried), 5);
        clocks.set(Nanos(NOW.0 + 1000), WallNanos(WALL.0 - 3_600_000_000_000));
        let second = JobRecord {
            deadline: Nanos(job(JobState::Buried).deadline.0 + 1000),
            ..job(JobState::Buried)
        };
        let second = clocks.image::<V7>(&second, 5);
        let (first, second) = (burial_of(&first).unwrap(), burial_of(&second).unwrap());
        assert_eq!(second.0 - first.0, 1000);
        assert_eq!(first, job(JobState::Buried).deadline);
        // A deadline of the original's is none of these.
        let theirs = JobImage {
            state: SavedState::Buried,
            deadline_at: WALL,
            ..clocks.image::<V7>(&job(JobState::Ready), 5)
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
        let end = clocks.deletion::<V7>(&job(JobState::Ready), 0);
        assert_eq!(highest_of(&end), JobId(7));
        let last = JobImage {
            id: JobId(u64::MAX),
            ..end
        };
        // Nobody counts on from such an id.
        assert_eq!(highest_of(&last), JobId(0));
    }
}
