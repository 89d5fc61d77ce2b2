//! How a string of bytes is read as a directory, and as what happens after a start from it.
//!
//! Three bytes choose the length of files, the sync with the room on the disk, and how many steps
//! there are. Each step is two bytes. All that follows is files: a byte for the name, one for the
//! form, two for the length, and so many bytes of content.

use std::collections::BTreeMap;

use beanshard::base::ids::{JobId, Pri};
use beanshard::base::name::TubeName;
use beanshard::engine::job::JobCounts;
use beanshard::wal::journal::{Settings, Sync};
use beanshard::wal::record::{
    Content, JobImage, Record, SavedState, SpanNanos, Version, WallNanos, encode,
};

/// A directory and what happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) settings: Settings,
    /// Bytes that are free on the disk.
    pub(crate) room: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// No two jobs were buried at the same moment, as far as is known.
    pub(crate) has_order: bool,
}

/// Something that is done to the shard.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A job with a body of so many bytes.
    Put {
        tube: u8,
        body_len: usize,
    },
    /// A delayed job.
    PutDelayed {
        tube: u8,
    },
    Reserve,
    /// The following are for the job that is the `nth` by id.
    ReserveJob {
        nth: u8,
    },
    Release {
        nth: u8,
        is_delayed: bool,
    },
    Bury {
        nth: u8,
    },
    Delete {
        nth: u8,
    },
    KickJob {
        nth: u8,
    },
    Kick {
        count: u8,
    },
    /// So many seconds pass.
    Pass {
        secs: u8,
    },
    Flush,
}

/// Tubes that scripts use.
pub(crate) const TUBES: [&[u8]; 3] = [b"default", b"a", b"mail.to+from/x;y$(z)_-"];

/// Names that are no plain numbers, or great ones.
const NAMES: [&str; 15] = [
    "ahead.1",
    "ahead.2",
    "ahead.18446744073709551615",
    "ahead.x",
    "spare",
    "lock",
    "other",
    "binlog.",
    "binlog.007",
    "binlog.3.damaged",
    "binlog.2147483644",
    "binlog.2147483645",
    "binlog.2147483646",
    "binlog.4294967297",
    "binlog.18446744073709551615",
];

/// Bytes from the beginning of what is left; zeros when there is nothing.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn one(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (now, later) = self.0.split_at(len.min(self.0.len()));
        self.0 = later;
        now
    }
}

/// Reads a script.
pub(crate) fn read(script: &[u8]) -> Script {
    let mut bytes = Bytes(script);
    let file_len = [0, 172, 300, 1000, 4096, 10_000][usize::from(bytes.one() % 6)];
    let choice = bytes.one();
    let sync = [Sync::Always, Sync::Every(1_500_000_000), Sync::Never][usize::from(choice % 3)];
    let room = match choice / 3 % 4 {
        0 => 1 << 30,
        1 => 4 * file_len.max(88),
        2 => 10 * file_len.max(88),
        _ => 20 * u64::from(choice),
    };
    let count = bytes.one() % 100;
    let steps = (0..count).map(|_| step(&mut bytes)).collect();
    let mut files = BTreeMap::new();
    let mut has_order = true;
    while !bytes.0.is_empty() {
        let (name, form) = (name(bytes.one()), bytes.one());
        let len = u16::from_le_bytes([bytes.one(), bytes.one()]);
        let content = bytes.take(len.into());
        has_order &= form % 4 >= 2;
        let content = match form % 4 {
            0 => content.to_vec(),
            // Space that was set aside and not used.
            1 => [content, &[0; 500]].concat(),
            2 => [records(content), vec![0; 100]].concat(),
            _ => records(content),
        };
        files.insert(name, content);
    }
    Script {
        settings: Settings { file_len, sync },
        room,
        steps,
        files,
        has_order,
    }
}

fn name(byte: u8) -> String {
    match NAMES.get(usize::from(byte).wrapping_sub(200)) {
        Some(name) => (*name).to_owned(),
        None => format!("binlog.{byte}"),
    }
}

fn step(bytes: &mut Bytes<'_>) -> Step {
    let (what, nth) = (bytes.one(), bytes.one());
    match what % 16 {
        0 | 1 => Step::Put {
            tube: what / 16,
            body_len: usize::from(nth),
        },
        2 => Step::Put {
            tube: what / 16,
            body_len: 20 * usize::from(nth),
        },
        3 => Step::PutDelayed { tube: nth },
        4 | 5 => Step::Reserve,
        6 => Step::ReserveJob { nth },
        7 => Step::Release {
            nth,
            is_delayed: what >= 128,
        },
        8 => Step::Bury { nth },
        9 | 10 => Step::Delete { nth },
        11 => Step::KickJob { nth },
        12 => Step::Kick { count: nth },
        13 => Step::Pass { secs: nth },
        _ => Step::Flush,
    }
}

/// A file of version 7 with a record for each four bytes: what it is, the id, the tube and the
/// length of the body, and the numbers.
fn records(bytes: &[u8]) -> Vec<u8> {
    let mut file = Version::V7.number().to_le_bytes().to_vec();
    for record in bytes.chunks_exact(4) {
        let [what, id, shape, numbers] = record.try_into().expect("chunks are exact");
        write(what, id, shape, numbers, &mut file);
    }
    file
}

fn write(what: u8, id: u8, shape: u8, numbers: u8, out: &mut Vec<u8>) {
    let body = vec![numbers; usize::from(shape / 3)];
    let states = [
        SavedState::Ready,
        SavedState::Buried,
        SavedState::Delayed,
        SavedState::Reserved,
    ];
    let is_short = what & 4 != 0;
    let state = match what & 3 {
        0 if is_short => SavedState::Deleted,
        at => states[usize::from(at)],
    };
    let mut job = JobImage {
        id: match id {
            0..240 => JobId(u64::from(id) + 1),
            240.. => JobId(u64::MAX - u64::from(255 - id)),
        },
        pri: Pri(u32::from(numbers) << 24),
        delay: SpanNanos(i64::from(numbers) * 500_000_000),
        ttr: SpanNanos(1_000_000_000),
        body_len: body.len() as u32,
        created_at: WallNanos(1_600_000_000_000_000_000),
        deadline_at: match what >> 4 {
            0..4 if state == SavedState::Buried => WallNanos((i64::from(id) * 37 % 257) * 9000 + 1),
            _ if state == SavedState::Buried => WallNanos(1_700_000_000_000_000_000),
            0..8 => WallNanos(1_700_000_000_000_000_000 + i64::from(what) * 250_000_001),
            8 => WallNanos(i64::MAX - i64::from(numbers)),
            9 => WallNanos(i64::MIN + i64::from(numbers)),
            _ => WallNanos(0),
        },
        counts: JobCounts {
            buries: u32::from(what >> 4),
            kicks: u32::from(numbers),
            ..JobCounts::default()
        },
        state,
    };
    if what & 8 != 0 && is_short && state == SavedState::Deleted {
        // The mark of the highest id.
        job = JobImage {
            pri: Pri(0),
            delay: SpanNanos(0),
            ttr: SpanNanos(0),
            body_len: 0,
            created_at: WallNanos(0),
            deadline_at: WallNanos(0),
            counts: JobCounts::default(),
            ..job
        };
    }
    let tube = TubeName::parse(TUBES[usize::from(shape % 3)]).expect("names are good");
    let content = (!is_short).then_some(Content { tube, body: &body });
    encode(&Record { job, content }, out);
}
