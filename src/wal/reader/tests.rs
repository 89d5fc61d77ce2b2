//! The account against directories made by hand.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::base::ids::Pri;
use crate::base::name::TubeName;
use crate::engine::job::JobCounts;
use crate::wal::check::check;
use crate::wal::dump::{Form, dump};
use crate::wal::record::{Fault, SpanNanos, WallNanos, encode};
use crate::wal::v7::id_mark;

fn image(id: u64, state: SavedState, body: &[u8]) -> JobImage {
    JobImage {
        id: JobId(id),
        pri: Pri(1),
        delay: SpanNanos(0),
        ttr: SpanNanos(1),
        body_len: body.len() as u32,
        created_at: WallNanos(1),
        deadline_at: WallNanos(0),
        counts: JobCounts::default(),
        state,
    }
}

fn full(id: u64, tube: &str, body: &[u8]) -> Vec<u8> {
    let job = image(id, SavedState::Ready, body);
    let tube = TubeName::parse(tube.as_bytes()).unwrap();
    let content = Some(Content { tube, body });
    let mut bytes = Vec::new();
    encode(&Record { job, content }, &mut bytes);
    bytes
}

fn short(id: u64, state: SavedState, body_len: u32) -> Vec<u8> {
    let job = JobImage {
        body_len,
        ..image(id, state, b"")
    };
    let mut bytes = Vec::new();
    encode(&Record { job, content: None }, &mut bytes);
    bytes
}

/// A directory with these files, of version 7, numbered from 1.
fn directory(files: &[&[Vec<u8>]]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (number, records) in (1..).zip(files) {
        let bytes = [b"\x07\0\0\0".to_vec(), records.concat()].concat();
        fs::write(dir.path().join(format!("binlog.{number}")), bytes).unwrap();
    }
    dir
}

fn read(dir: &TempDir) -> Account {
    Account::read(&Directory::look(dir.path()).unwrap()).unwrap()
}

fn summary(dir: &TempDir) -> (bool, String) {
    let mut out = Vec::new();
    let is_sound = check(dir.path(), &mut out).unwrap();
    (is_sound, String::from_utf8(out).unwrap())
}

#[test]
fn bytes_live_where_the_records_of_living_jobs_are() {
    let dir = directory(&[
        &[full(1, "a", b"one"), full(2, "b", b"two")],
        &[
            short(1, SavedState::Buried, 3),
            short(2, SavedState::Deleted, 3),
        ],
        &[short(1, SavedState::Ready, 3), full(3, "a", b"")],
    ]);
    let account = read(&dir);
    let bytes: Vec<_> = account
        .files
        .iter()
        .map(|file| (file.record_bytes, file.live_bytes))
        .collect();
    assert_eq!(bytes, [(180, 90), (168, 84), (84 + 87, 84 + 87)]);
    assert_eq!(
        account.jobs.keys().collect::<Vec<_>>(),
        [&JobId(1), &JobId(3)]
    );
    let one = &account.jobs[&JobId(1)];
    assert_eq!(
        (one.file, one.offset, one.used_bytes()),
        (0, 4, 90 + 2 * 84)
    );
    assert_eq!(one.job.state, SavedState::Ready);
    assert_eq!(account.deleted, 1);
    assert!(account.is_sound());
}

#[test]
fn a_copy_makes_all_older_records_of_its_job_dead() {
    let dir = directory(&[
        &[full(1, "a", b"one"), short(1, SavedState::Buried, 3)],
        &[full(1, "a", b"one")],
    ]);
    let account = read(&dir);
    assert_eq!(
        (account.files[0].live_bytes, account.files[1].live_bytes),
        (0, 90)
    );
    assert_eq!(account.jobs[&JobId(1)].file, 1);
    assert!(account.is_sound());
}

#[test]
fn short_records_of_jobs_of_removed_files_are_counted_and_no_damage() {
    let dir = directory(&[&[
        short(9, SavedState::Buried, 3),
        short(9, SavedState::Deleted, 3),
    ]]);
    let account = read(&dir);
    let expected = RecordCounts {
        full: 0,
        changes: 1,
        deletions: 1,
        marks: 0,
        orphans: 2,
    };
    assert_eq!(account.files[0].records, expected);
    assert_eq!((account.jobs.len(), account.deleted), (0, 0));
    assert!(account.is_sound());
}

#[test]
fn a_body_that_changes_its_length_is_damage() {
    let dir = directory(&[&[
        full(1, "a", b"one"),
        short(1, SavedState::Buried, 4),
        full(1, "b", b"longer"),
    ]]);
    let account = read(&dir);
    let kinds: Vec<_> = account.files[0]
        .contradictions
        .iter()
        .map(|one| (one.offset, one.kind))
        .collect();
    let len = |before, now| ContradictionKind::BodyLen { before, now };
    assert_eq!(
        kinds,
        [
            (94, len(3, 4)),
            (178, len(3, 6)),
            (178, ContradictionKind::Tube)
        ]
    );
    assert_eq!(account.jobs[&JobId(1)].job.body_len, 6);
    let (is_sound, text) = summary(&dir);
    assert!(!is_sound);
    assert!(text.contains("binlog.1: damaged at 94: job 1: body of 4 bytes had 3 before\n"));
    assert!(text.ends_with("DAMAGED\n"));
}

#[test]
fn damage_ends_a_file_and_not_the_others() {
    let mut bad = full(2, "a", b"two");
    bad[5 + 76] = 9;
    let dir = directory(&[
        &[full(1, "a", b"one"), bad.clone(), full(3, "a", b"three")],
        &[full(4, "a", b"four")],
    ]);
    let account = read(&dir);
    assert_eq!(
        account.jobs.keys().collect::<Vec<_>>(),
        [&JobId(1), &JobId(4)]
    );
    let tail = Tail::Damaged {
        at: 4 + 90 + 5 + 76,
        fault: Fault::State { found: 9 },
    };
    assert_eq!(account.files[0].tail, tail);
    assert_eq!(account.files[0].rest_bytes(), 90 + 92);
    assert!(!account.is_sound());
}

#[test]
fn a_torn_copy_leaves_the_older_one_alone() {
    let mut torn = full(1, "a", b"one");
    torn.truncate(60);
    let dir = directory(&[&[full(1, "a", b"one")], &[torn]]);
    let account = read(&dir);
    assert_eq!(account.jobs[&JobId(1)].file, 0);
    let (is_sound, text) = summary(&dir);
    assert!(is_sound);
    assert!(text.contains("binlog.2: version 7, 64 bytes; 0 full, 0 changes, 0 deletions; "));
    assert!(text.contains("; the last 60 hold a torn record\n"));
    assert!(text.ends_with("sound but for a torn record at the end of a file\n"));
}

#[test]
fn files_that_nobody_can_read_are_damage() {
    let dir = directory(&[&[full(1, "a", b"one")]]);
    for (number, bytes) in [(2, &b"\x06\0\0\0"[..]), (4, b"\x07")] {
        fs::write(dir.path().join(format!("binlog.{number}")), bytes).unwrap();
    }
    let (is_sound, text) = summary(&dir);
    assert!(!is_sound);
    for line in [
        "binlog.2: 4 bytes; damaged at 0: version 6 is unknown\n",
        "binlog.4: 1 bytes; damaged at 0: file ends after 1 bytes, within its header\n",
        "1 jobs: 1 ready, 0 reserved, 0 delayed, 0 buried; 0 were deleted; highest id 1\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn files_that_were_never_written_to_are_no_damage() {
    let dir = directory(&[&[full(1, "a", b"one")]]);
    for (name, len) in [("binlog.2", 0), ("binlog.3", 3), ("binlog.4", 4096)] {
        fs::write(dir.path().join(name), vec![0; len]).unwrap();
    }
    for name in ["ahead.1", "spare"] {
        fs::write(dir.path().join(name), [0; 10]).unwrap();
    }
    let (is_sound, text) = summary(&dir);
    assert!(is_sound, "{text}");
    for line in [
        "binlog.2: 0 bytes; never written to\n",
        "binlog.4: 4096 bytes; never written to\n",
        "4 files, 4193 bytes: 90 live, 0 dead, 4099 unused\n",
        "2 empty files made for later, 20 bytes\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

// Q20
#[test]
fn a_mark_of_the_highest_id_is_no_deletion() {
    let mut mark = Vec::new();
    let job = id_mark(JobId(8));
    encode(&Record { job, content: None }, &mut mark);
    let dir = directory(&[&[mark]]);
    let account = read(&dir);
    let records = account.files[0].records;
    assert_eq!(
        (records.marks, records.deletions, records.orphans),
        (1, 0, 0)
    );
    assert_eq!(account.highest, JobId(7));
    let mut out = Vec::new();
    assert!(dump(dir.path(), Form::Text, &mut out, &mut Vec::new()).unwrap());
    assert_eq!(out, b"binlog.1 4 mark id=8\nbinlog.1 88 end: clean\n");
}

#[test]
fn an_empty_directory_is_sound() {
    let dir = tempfile::tempdir().unwrap();
    let (is_sound, text) = summary(&dir);
    assert!(is_sound);
    assert!(
        text.starts_with("0 files, 0 bytes: 0 live, 0 dead, 0 unused\n"),
        "{text}"
    );
}
