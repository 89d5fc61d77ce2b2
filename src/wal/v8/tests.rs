//! The bytes, and what is made of others.

use std::path::Path;

use proptest::prelude::*;

use super::record::{self, Fault, Stop, check};
use super::*;
use crate::base::ids::Pri;
use crate::base::property_config;
use crate::base::slot::{SLOT_BITS, Slot};
use crate::base::time::Secs;
use crate::engine::job::JobCounts;
use crate::wal::check::check as check_directory;
use crate::wal::disk::Disk;
use crate::wal::dump::{Form, dump};
use crate::wal::format::{Bad, Entries, Next, PauseImage, Rest};
use crate::wal::journal::{Settings, Sync};
use crate::wal::record::SpanNanos;
use crate::wal::recover::Recovery;
use crate::wal::v7::V7;

const HERE: V8 = V8 {
    fingerprint: Fingerprint(0x1122_3344_5566_7788),
    owner: ShardId(2),
    skip_damage: false,
};

const HEAD: Head = Head {
    number: 7,
    highest: JobId(0x0102),
    begun_at: WallNanos(-2),
    before_end: 0x0a0b,
    is_synced: true,
};

fn job(state: SavedState) -> JobImage {
    JobImage {
        id: JobId(5 << SLOT_BITS | u64::from(Slot::of(TubeName::DEFAULT).0)),
        pri: Pri(9),
        delay: SpanNanos(3_000_000_000),
        ttr: SpanNanos(60_000_000_000),
        body_len: 0,
        created_at: WallNanos(0x1111),
        deadline_at: WallNanos(0x2222),
        counts: JobCounts {
            reserves: 1,
            timeouts: 2,
            releases: 3,
            buries: 4,
            kicks: 5,
        },
        state,
    }
}

fn full(body: &[u8]) -> Entry<'_> {
    Entry::Full {
        job: JobImage {
            body_len: body.len() as u32,
            ..job(SavedState::Ready)
        },
        tube: TubeName::DEFAULT,
        body,
    }
}

/// One of each kind.
fn entries() -> [Entry<'static>; 6] {
    [
        full(b"work"),
        Entry::Change {
            job: job(SavedState::Buried),
        },
        Entry::End {
            job: record::ended(JobId(0x0102)),
        },
        Entry::Mark {
            highest: JobId(0x0102),
        },
        Entry::Pause {
            tube: TubeName::DEFAULT,
            pause: PauseImage {
                number: 3,
                length: Secs(10),
                until: WallNanos(0x3333),
            },
        },
        Entry::Resume { number: 3 },
    ]
}

fn encoded(seed: u32, offset: u64, synced: u64, entry: &Entry<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let spot = Spot {
        seed,
        offset,
        synced,
    };
    record::encode(spot, entry, &mut bytes);
    bytes
}

/// A file with these records, each of which says that all before it was synced.
fn file(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let seed = HERE.write_head(&HEAD, &mut bytes);
    for entry in entries {
        let offset = bytes.len() as u64;
        let spot = Spot {
            seed,
            offset,
            synced: offset,
        };
        HERE.write(spot, entry, &mut bytes);
    }
    bytes
}

#[test]
fn the_header_is_pinned() {
    let mut bytes = Vec::new();
    let sum = HERE.write_head(&HEAD, &mut bytes);
    let pinned = b"beanlog\n\x08\0\0\0\x02\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11\
        \x07\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\
        \x0b\x0a\0\0\0\0\0\0\x01\0\0";
    assert_eq!(bytes[..SUM_AT], pinned[..]);
    assert_eq!(sum, 0xab6e0656);
    assert_eq!(
        bytes[SUM_AT..],
        [&sum.to_le_bytes()[..], b"\n"].concat()[..]
    );
}

#[test]
fn records_are_pinned() {
    let pinned: [&[u8]; 6] = [
        b"S\0\0\0\xbfI\xeb\xed@\0\0\0\x01\x01\x07\0\x1a\x14\0\0\0\0\0\0\x09\0\0\0\x03\0\0\0<\
            \0\0\0\x11\x11\0\0\0\0\0\0\x22\x22\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\
            \0\0\x05\0\0\0defaultwork",
        b"H\0\0\0\xcd$\x0d\xa0@\0\0\0\x02\x03\0\0\x1a\x14\0\0\0\0\0\0\x09\0\0\0\x03\0\0\0<\0\
            \0\0\x11\x11\0\0\0\0\0\0\x22\x22\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\
            \0\x05\0\0\0",
        b"\x18\0\0\0\x08\x18\xac\x14@\0\0\0\x03\0\0\0\x02\x01\0\0\0\0\0\0",
        b"\x18\0\0\0\x984\xf9\x82@\0\0\0\x04\0\0\0\x02\x01\0\0\0\0\0\0",
        b"+\0\0\0\xc4\x8e\x92\xdf@\0\0\0\x05\0\x07\0\x03\0\0\0\0\0\0\0\n\0\0\0\x33\x33\0\0\0\0\0\0\
            default",
        b"\x18\0\0\0\x17\xcd%\xc1@\0\0\0\x06\0\0\0\x03\0\0\0\0\0\0\0",
    ];
    for (entry, pinned) in entries().iter().zip(pinned) {
        let bytes = encoded(0x1234, 64, 0x40, entry);
        assert_eq!(
            bytes.escape_ascii().to_string(),
            pinned.escape_ascii().to_string()
        );
    }
}

fn any_job() -> impl Strategy<Value = JobImage> {
    let id = 1..(1u64 << 52);
    let state = prop::sample::select(vec![
        SavedState::Ready,
        SavedState::Reserved,
        SavedState::Buried,
        SavedState::Delayed,
    ]);
    let times = (any::<u32>(), 1..=u32::MAX, any::<i64>(), any::<i64>());
    (id, any::<u32>(), times, any::<[u32; 5]>(), state).prop_map(
        |(id, pri, (delay, ttr, created_at, deadline_at), counts, state)| JobImage {
            id: JobId(id),
            pri: Pri(pri),
            delay: SpanNanos(i64::from(delay) * 1_000_000_000),
            ttr: SpanNanos(i64::from(ttr) * 1_000_000_000),
            body_len: 0,
            created_at: WallNanos(created_at),
            deadline_at: WallNanos(deadline_at),
            counts: JobCounts {
                reserves: counts[0],
                timeouts: counts[1],
                releases: counts[2],
                buries: counts[3],
                kicks: counts[4],
            },
            state,
        },
    )
}

/// A record's parts: what it is, the job, the tube, the body.
fn parts() -> impl Strategy<Value = (u8, JobImage, String, Vec<u8>)> {
    let body = prop::collection::vec(any::<u8>(), 0..300);
    (0..6u8, any_job(), "[a-z+/;.$_()][a-z-]{0,199}", body)
}

fn entry_of<'a>((what, job, tube, body): &'a (u8, JobImage, String, Vec<u8>)) -> Entry<'a> {
    let tube = TubeName::parse(tube.as_bytes()).unwrap();
    let slot = u64::from(Slot::of(tube).0);
    match what {
        0 => Entry::Full {
            job: JobImage {
                id: JobId(((job.id.0 >> SLOT_BITS) + 1) << SLOT_BITS | slot),
                body_len: body.len() as u32,
                ..*job
            },
            tube,
            body,
        },
        1 => Entry::Change { job: *job },
        2 => Entry::End {
            job: record::ended(job.id),
        },
        3 => Entry::Mark { highest: job.id },
        4 => Entry::Pause {
            tube,
            pause: PauseImage {
                number: job.id.0,
                length: Secs(1 + job.pri.0 / 2),
                until: job.deadline_at,
            },
        },
        _ => Entry::Resume { number: job.id.0 },
    }
}

/// The records of a file with their offsets, and its end.
fn walk(bytes: &[u8]) -> Result<(Vec<u64>, u64, Rest, u64), BadHead> {
    let mut segment = HERE.open(HEAD.number, bytes).unwrap()?;
    let mut offsets = Vec::new();
    loop {
        match segment.next_entry().unwrap() {
            Next::Entry { offset, .. } => offsets.push(offset),
            Next::End { offset, rest } => {
                let synced = segment.synced_to().unwrap();
                return Ok((offsets, offset, rest, synced));
            }
        }
    }
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn what_was_written_is_read(
        all in prop::collection::vec(parts(), 0..8),
        unused in 0..100usize,
    ) {
        let entries: Vec<Entry<'_>> = all.iter().map(entry_of).collect();
        let mut bytes = file(&entries);
        let end = bytes.len() as u64;
        bytes.resize(bytes.len() + unused, 0);
        let mut segment = HERE.open(HEAD.number, &bytes[..]).unwrap().unwrap();
        prop_assert_eq!(segment.head(), Some(HEAD));
        for expected in &entries {
            let len = match expected {
                Entry::Full { tube, body, .. } => V8::full_len(*tube, body.len()),
                Entry::Pause { tube, .. } => V8::pause_len(*tube).unwrap(),
                _ => V8::SHORT_LEN,
            };
            let next = segment.next_entry().unwrap();
            let Next::Entry { entry, len: found, .. } = next else {
                panic!("{next:?}");
            };
            prop_assert_eq!(&entry, expected);
            prop_assert!(found <= len);
        }
        let rest = if unused == 0 { Rest::Nothing } else { Rest::Zeros };
        prop_assert_eq!(segment.next_entry().unwrap(), Next::End { offset: end, rest });
    }

    #[test]
    fn any_bytes_are_no_record_or_one_that_would_be_written_so(
        seed: u32,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        for kind in 0..8 {
            for len in [NUMBER, record::JOB_LEN, bytes.len()] {
                let mut bytes = bytes.clone();
                bytes.resize(bytes.len().max(len).max(NUMBER), 0);
                bytes[..4].copy_from_slice(&(len as u32).to_le_bytes());
                bytes[12] = kind;
                record::seal(seed, 99, &mut bytes[..len.max(13)]);
                if let Ok(found) = check(seed, 99, &bytes) {
                    let again = encoded(seed, 99, found.synced, &found.entry(&bytes));
                    prop_assert_eq!(&again[..], &bytes[..found.len]);
                }
            }
        }
    }

    #[test]
    fn any_file_ends(bytes in prop::collection::vec(any::<u8>(), 0..400), is_ours: bool) {
        let bytes = if is_ours { [file(&entries()), bytes].concat() } else { bytes };
        let _ = walk(&bytes);
    }
}

const NUMBER: usize = record::NUMBER_LEN;

#[test]
fn a_changed_byte_is_found_where_it_is() {
    let whole = file(&entries());
    let (offsets, end, rest, synced) = walk(&whole).unwrap();
    assert_eq!((end, rest), (whole.len() as u64, Rest::Nothing));
    assert_eq!(Some(&synced), offsets.last());
    for at in 0..whole.len() {
        for change in [1, 0x80, 0xff, whole[at]] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            if bytes == whole {
                continue;
            }
            match walk(&bytes) {
                Err(BadHead::Damaged(bad)) => assert!(bad.at == 0 && at < HEAD_LEN, "{at}"),
                // As if it were another program's from the first byte on.
                Err(bad) => panic!("{at}: {bad:?}"),
                Ok((before, end, rest, synced)) => {
                    let nth = offsets
                        .iter()
                        .rposition(|&offset| offset <= at as u64)
                        .unwrap();
                    assert_eq!(before, offsets[..nth]);
                    assert_eq!(end, offsets[nth]);
                    let is_bad = matches!(rest, Rest::Bad(Bad { at, .. }) if at == end);
                    assert!(is_bad, "{at}: {rest:?}");
                    // Whoever comes behind says that it was whole.
                    assert_eq!(synced > end, nth + 1 < offsets.len(), "{at}");
                }
            }
        }
    }
}

#[test]
fn a_header_that_was_half_written_is_told_from_a_damaged_one() {
    let whole = file(&[]);
    for len in 1..HEAD_LEN {
        let mut bytes = whole.clone();
        bytes[len..].fill(0);
        assert!(matches!(walk(&bytes), Err(BadHead::Torn(_))), "{len}");
        bytes.truncate(len);
        assert!(matches!(walk(&bytes), Err(BadHead::Torn(_))), "{len}");
    }
    // The first block is missing, others are there.
    let mut bytes = file(&entries());
    bytes[..HEAD_LEN].fill(0);
    assert!(matches!(walk(&bytes), Err(BadHead::Torn(_))));
    // Nothing was ever written.
    for len in [0, 1, HEAD_LEN, 5000] {
        let (offsets, end, rest, synced) = walk(&vec![0; len]).unwrap();
        assert_eq!((offsets.len(), end, rest, synced), (0, 0, Rest::Zeros, 0));
    }
}

#[test]
fn what_is_not_ours_is_named() {
    let bytes = file(&entries());
    let opened = |here: V8, number, bytes: &[u8]| match here.open(number, bytes).unwrap() {
        Err(BadHead::Foreign(why)) => why,
        other => panic!("{:?}", other.err()),
    };
    let other = V8 {
        fingerprint: Fingerprint(1),
        ..HERE
    };
    assert_eq!(
        opened(other, 7, &bytes),
        "topology 1122334455667788 was found, 0000000000000001 was expected"
    );
    let other = V8 {
        owner: ShardId(3),
        ..HERE
    };
    assert_eq!(
        opened(other, 7, &bytes),
        "owner 2 was found, 3 was expected"
    );
    assert_eq!(
        opened(HERE, 8, &bytes),
        "file number 7 was found, 8 was expected"
    );
    let v7 = [b"\x07\0\0\0", &bytes[4..]].concat();
    assert_eq!(opened(HERE, 7, &v7), "version 7 was found, 8 was expected");
    let mut v9 = bytes.clone();
    v9[8] = 9;
    let sum = crc32c::crc32c(&v9[..SUM_AT]);
    v9[SUM_AT..][..4].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(opened(HERE, 7, &v9), "version 9 was found, 8 was expected");
}

#[test]
fn a_record_is_believed_only_where_it_was_written() {
    let entry = full(b"work");
    let bytes = encoded(5, 100, 0, &entry);
    assert!(check(5, 100, &bytes).is_ok());
    for (seed, offset) in [(5, 101), (6, 100)] {
        let found = check(seed, offset, &bytes).err();
        assert_eq!(found, Some(Stop::Fault(Fault::Checksum)));
    }
    // So a body that is a record is not taken for one when damage is searched behind.
    let inner = file(&entries());
    let mut bytes = file(&[full(&inner), Entry::Mark { highest: JobId(9) }]);
    let (offsets, ..) = walk(&bytes).unwrap();
    bytes.truncate(offsets[1] as usize);
    bytes[HEAD_LEN + 20] ^= 1;
    let (.., synced) = walk(&bytes).unwrap();
    assert_eq!(synced, 0);
}

#[test]
fn a_checksum_that_fits_makes_nonsense_no_record() {
    let [full, change, end, mark, pause, resume] = entries().map(|one| encoded(1, 64, 9, &one));
    let cases: [(&[u8], usize, u8, usize); 20] = [
        (&full, 9, 1, 8),
        (&full, 13, 0, 13),
        (&full, 13, 5, 13),
        (&full, 14, 0, 72),
        (&full, 14, 200, 14),
        (&full, 16, 0xff, 16),
        (&full, 23, 0x80, 16),
        (&full, 32, 0, 32),
        (&full, 72, b'-', 72),
        (&change, 13, 0, 13),
        (&change, 14, 1, 14),
        (&change, 23, 0x80, 16),
        (&change, 32, 0, 32),
        (&end, 13, 1, 13),
        (&end, 23, 0x80, 16),
        (&mark, 15, 1, 13),
        (&pause, 13, 1, 13),
        (&pause, 14, 6, 14),
        (&pause, 24, 0, 24),
        (&resume, 16, 0, 16),
    ];
    for (whole, at, byte, field) in cases {
        let mut bytes = whole.to_vec();
        bytes[at] = byte;
        record::seal(1, 64, &mut bytes);
        let expected = Stop::Fault(Fault::Field { at: field });
        assert_eq!(check(1, 64, &bytes).err(), Some(expected), "{at} {byte}");
    }
}

#[test]
fn a_length_is_believed_only_of_a_record_of_its_kind() {
    let whole = encoded(1, 64, 9, &full(b"work"));
    let stopped = |len: u32, kind: u8| {
        let mut bytes = whole.clone();
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes[12] = kind;
        check(1, 64, &bytes).err()
    };
    let len = |found| Some(Stop::Fault(Fault::Len { found }));
    assert_eq!(stopped(u32::MAX, 1), len(u32::MAX));
    assert_eq!(stopped(72, 1), len(72));
    assert_eq!(stopped(73, 2), len(73));
    assert_eq!(stopped(25, 3), len(25));
    assert_eq!(stopped(237, 5), len(237));
    assert_eq!(stopped(0, 1), Some(Stop::Zeros));
    assert_eq!(stopped(24, 7), Some(Stop::Fault(Fault::Kind { found: 7 })));
    let more = whole.len() + 1;
    assert_eq!(stopped(more as u32, 1), Some(Stop::More { len: more }));
}

/// What `wal dump` and `wal check` say of a directory with this file and one behind it, and whether
/// nothing is damaged.
fn looked_at(file: &[u8], form: Form) -> (String, String, bool) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("binlog.7"), file).unwrap();
    let mut next = Vec::new();
    let head = Head {
        number: 8,
        before_end: file.len() as u64,
        ..HEAD
    };
    HERE.write_head(&head, &mut next);
    std::fs::write(dir.path().join("binlog.8"), &next).unwrap();
    let (mut records, mut notes, mut summary) = (Vec::new(), Vec::new(), Vec::new());
    let is_whole = dump(dir.path(), form, &mut records, &mut notes).unwrap();
    let is_sound = check_directory(dir.path(), &mut summary).unwrap();
    // What contradicts itself is found by the check alone.
    assert!(is_whole || !is_sound);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(records), text(summary), is_sound)
}

#[test]
fn a_directory_is_shown() {
    let (records, summary, is_sound) = looked_at(&file(&entries()), Form::Text);
    assert!(is_sound);
    assert_eq!(
        records,
        "\
binlog.7 0 head owner=2 topology=1122334455667788 number=7 highest=258 begun=-0.000000002 \
before_end=2571 synced=true
binlog.7 64 full id=5146 tube=default state=ready pri=9 delay=3 ttr=60 created=0.000004369 \
deadline=0.000008738 reserves=1 timeouts=2 releases=3 buries=4 kicks=5 body=4
binlog.7 147 change id=5146 state=buried pri=9 delay=3 ttr=60 created=0.000004369 \
deadline=0.000008738 reserves=1 timeouts=2 releases=3 buries=4 kicks=5 body=0
binlog.7 219 end id=258
binlog.7 243 mark id=258
binlog.7 267 pause number=3 tube=default length=10 until=0.000013107
binlog.7 310 resume number=3
binlog.7 334 end: clean
binlog.8 0 head owner=2 topology=1122334455667788 number=8 highest=258 begun=-0.000000002 \
before_end=334 synced=true
binlog.8 64 end: clean
"
    );
    assert_eq!(
        summary,
        "\
binlog.7: version 8, owner 2 of topology 1122334455667788, 334 bytes; 1 full, 1 changes, \
1 deletions, 1 marks of the highest id, 1 pauses, 1 ends of pauses; 83 bytes live, 187 dead
binlog.8: version 8, owner 2 of topology 1122334455667788, 64 bytes; 0 full, 0 changes, \
0 deletions; 0 bytes live, 0 dead
2 files, 398 bytes: 83 live
1 jobs: 0 ready, 0 reserved, 0 delayed, 1 buried; 0 pauses; highest id 5146
sound
"
    );
    let (records, ..) = looked_at(&file(&entries()), Form::Json);
    assert_eq!(
        records.lines().nth(5).unwrap(),
        r#"{"file":"binlog.7","offset":267,"version":8,"kind":"pause","#.to_owned()
            + r#""number":3,"tube":"default","length_s":10,"until_ns":13107}"#
    );
}

#[test]
fn damage_in_a_directory_is_shown() {
    let mut bytes = file(&entries());
    bytes[180] ^= 1;
    let (records, summary, is_sound) = looked_at(&bytes, Form::Text);
    assert!(!is_sound);
    let wrong = "binlog.7 147 end: damaged at 147: checksum is wrong\n";
    assert!(records.contains(wrong), "{records}");
    assert!(summary.ends_with("DAMAGED\n"), "{summary}");
    // A change of a job that never was.
    let unknown = Entry::Change {
        job: job(SavedState::Ready),
    };
    let (_, summary, _) = looked_at(&file(&[unknown]), Form::Text);
    let wrong = "binlog.7: damaged at 64: job is not there\n";
    assert!(summary.contains(wrong), "{summary}");
}

fn read(dir: &Path) -> Result<Recovery<Disk, V8>, WalError> {
    let settings = Settings {
        file_len: 4096,
        sync: Sync::Always,
    };
    let disk = Disk::lock(dir)?;
    let (now, wall) = (Nanos(1), WallNanos(1));
    Recovery::read_as(HERE, disk, settings, now, wall, &mut |_| ())
}

#[test]
fn what_alone_tells_how_far_ids_were_given_stays_until_something_else_does() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("binlog.7"), file(&[])).unwrap();
    let has = |name| dir.path().join(name).exists();
    // A start that ends before it has begun a file of its own.
    assert_eq!(read(dir.path()).unwrap().highest(), HEAD.highest);
    assert!(has("binlog.7"));
    drop(read(dir.path()).unwrap().finish().unwrap());
    assert!(has("binlog.8") && !has("binlog.7"));
    assert_eq!(read(dir.path()).unwrap().highest(), HEAD.highest);
}

#[test]
fn a_start_refuses_what_cannot_have_been_written() {
    let dir = tempfile::tempdir().unwrap();
    let newer = job(SavedState::Ready);
    let older = JobImage {
        id: HEAD.highest,
        ..newer
    };
    let other = TubeName::parse(b"other").unwrap();
    let full = full(b"work");
    let copy = Entry::Full {
        job: JobImage {
            body_len: 4,
            ..newer
        },
        tube: TubeName::DEFAULT,
        body: b"worm",
    };
    let moved = Entry::Full {
        job: JobImage {
            id: JobId(5 << SLOT_BITS | u64::from(Slot::of(other).0)),
            ..newer
        },
        tube: other,
        body: b"",
    };
    let ended = |id| Entry::End {
        job: record::ended(id),
    };
    let cases = [
        (vec![Entry::Change { job: newer }], Some(64)),
        (vec![ended(newer.id)], Some(64)),
        (vec![full, ended(newer.id), ended(newer.id)], Some(171)),
        (vec![full, copy], Some(147)),
        (vec![full, full], None),
        (vec![full, moved], None),
        (vec![Entry::Change { job: older }, ended(older.id)], None),
    ];
    for (entries, damaged) in cases {
        std::fs::write(dir.path().join("binlog.7"), file(&entries)).unwrap();
        let at = match read(dir.path()) {
            Err(WalError::Damaged { name, at, .. }) if name == "binlog.7" => Some(at),
            other => other.map(|_| None).unwrap(),
        };
        assert_eq!(at, damaged, "{entries:?}");
    }
}

#[test]
fn the_original_s_journal_leaves_owners_files_alone() {
    let bytes = file(&entries());
    let opened = V7.open(7, &bytes[..]).unwrap();
    let Err(BadHead::Foreign(why)) = opened else {
        panic!("it is taken for one of its own");
    };
    assert_eq!(why, "version 8 was found, 7 was expected");
}
