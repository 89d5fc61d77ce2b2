//! Files made by hand, of both versions, with the same story: job 1 was put and deleted, job 2 was
//! in a file that is gone, job 3 was put, taken and released with a delay, job 4 was buried, job 5
//! was copied while somebody held it, and the end is a mark that ids up to 6 have been given.

use crate::life::Shown;

/// Puts together the structure of a job, of which `unit` nanoseconds are 1.
struct Job {
    unit: u64,
    id: u64,
    pri: u32,
    delay_secs: u64,
    ttr_secs: u64,
    created: u64,
    body_size: i32,
    deadline: u64,
    counts: [u32; 5],
    state: u8,
}

/// When all jobs were put.
pub(crate) const CREATED_NANOS: u64 = 1_700_000_000_123_456_000;
/// When the delay of job 3 ends, in the year 2100.
pub(crate) const DEADLINE_NANOS: u64 = 4_102_444_800_000_000_000;

impl Job {
    /// The 77 bytes without padding at the end.
    fn bytes(&self) -> Vec<u8> {
        let time = |nanos: u64| (nanos / self.unit).to_le_bytes();
        let mut bytes = self.id.to_le_bytes().to_vec();
        bytes.extend(self.pri.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(time(self.delay_secs * 1_000_000_000));
        bytes.extend(time(self.ttr_secs * 1_000_000_000));
        bytes.extend(self.body_size.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(time(self.created));
        bytes.extend(time(self.deadline));
        for count in self.counts {
            bytes.extend(count.to_le_bytes());
        }
        bytes.push(self.state);
        assert_eq!(bytes.len(), 77);
        bytes
    }
}

/// The records, as the name's length and the name, the job, and the body.
fn story(unit: u64) -> Vec<(&'static str, Job, &'static str)> {
    let job = |id, state, body_size| Job {
        unit,
        id,
        pri: 7,
        delay_secs: 0,
        ttr_secs: 60,
        created: CREATED_NANOS,
        body_size,
        deadline: 0,
        counts: [0; 5],
        state,
    };
    let released = Job {
        pri: 9,
        delay_secs: 3600,
        deadline: DEADLINE_NANOS,
        counts: [1, 0, 1, 0, 0],
        ..job(3, 4, 7)
    };
    let buried = Job {
        counts: [1, 2, 0, 1, 3],
        ..job(4, 3, 2)
    };
    let held = Job {
        deadline: CREATED_NANOS,
        counts: [1, 0, 0, 0, 0],
        ..job(5, 2, 3)
    };
    let mark = Job {
        pri: 0,
        ttr_secs: 0,
        created: 0,
        ..job(7, 0, 2)
    };
    vec![
        ("tb", job(1, 1, 5), "one\r\n"),
        ("", job(2, 3, 9), ""),
        ("tb", job(3, 1, 7), "three\r\n"),
        ("", job(1, 0, 5), ""),
        ("default", job(4, 1, 2), "\r\n"),
        ("", released, ""),
        ("", buried, ""),
        ("tb", held, "x\r\n"),
        ("", mark, ""),
    ]
}

/// A file of version 5: lengths of 8 bytes, structures of 77, microseconds.
pub(crate) fn version_5() -> Vec<u8> {
    let mut bytes = 5i32.to_le_bytes().to_vec();
    for (name, job, body) in story(1000) {
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(job.bytes());
        bytes.extend(body.as_bytes());
    }
    bytes
}

/// A file of version 7: lengths of 4 bytes, structures of 80, nanoseconds.
pub(crate) fn version_7() -> Vec<u8> {
    file_of(story(1))
}

/// Another one: the C server has buried job 2, then job 1, was started again, and has copied job 2.
/// Job 3 was delayed, up to a moment that is past.
pub(crate) fn copied_burial() -> Vec<u8> {
    let job = |id, state, deadline, buries| Job {
        unit: 1,
        id,
        pri: 7,
        delay_secs: 0,
        ttr_secs: 60,
        created: CREATED_NANOS,
        body_size: 2,
        deadline,
        counts: [0, 0, 0, buries, 0],
        state,
    };
    file_of(vec![
        ("tb", job(1, 1, 0, 0), "\r\n"),
        ("tb", job(2, 1, 0, 0), "\r\n"),
        ("tb", job(3, 4, CREATED_NANOS + 1000, 0), "\r\n"),
        ("", job(2, 3, CREATED_NANOS, 1), ""),
        ("", job(1, 3, CREATED_NANOS + 1000, 1), ""),
        ("tb", job(2, 3, CREATED_NANOS, 2), "\r\n"),
    ])
}

fn file_of(story: Vec<(&'static str, Job, &'static str)>) -> Vec<u8> {
    let mut bytes = 7i32.to_le_bytes().to_vec();
    for (name, job, body) in story {
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(job.bytes());
        bytes.extend([0; 3]);
        bytes.extend(body.as_bytes());
    }
    bytes
}

/// Jobs 3 to 5 after that.
pub(crate) fn jobs() -> Vec<Shown> {
    let shown = |tube: &str, state: &str, pri, delay, counts| Shown {
        tube: tube.to_owned(),
        state: state.to_owned(),
        pri,
        delay,
        ttr: 60,
        counts,
    };
    vec![
        shown("tb", "delayed", 9, 3600, [1, 0, 1, 0, 0]),
        shown("default", "buried", 7, 0, [1, 2, 0, 1, 3]),
        shown("tb", "reserved", 7, 0, [1, 0, 0, 0, 0]),
    ]
}

/// The dump of [`version_7`].
pub(crate) const TEXT: &str = include_str!("dump.txt");

/// The same as JSON.
pub(crate) const JSON: &str = include_str!("dump.jsonl");
