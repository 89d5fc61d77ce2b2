//! The binlog against the C server: what it writes is read here as it meant it, what is written
//! here it reads, and damage of any kind is told and brings nothing down. `BEANSHARD_ORACLE` is the
//! path of the C server (else `beanstalkd` is looked for in `PATH`).

#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[path = "binlog/hand.rs"]
mod hand;
#[path = "binlog/life.rs"]
mod life;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/peer.rs"]
mod peer;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/program.rs"]
mod program;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/transcript/mod.rs"]
mod transcript;
#[path = "binlog/trip.rs"]
mod trip;
#[path = "binlog/written.rs"]
mod written;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use beanshard::base::ids::JobId;
use beanshard::base::time::Nanos;
use beanshard::wal::check::check;
use beanshard::wal::directory::{Directory, Lock};
use beanshard::wal::disk::Disk;
use beanshard::wal::dump::{Form, dump};
use beanshard::wal::journal::{Settings, Sync};
use beanshard::wal::reader::Account;
use beanshard::wal::record::{Decoded, Record, WallNanos, decode};
use beanshard::wal::recover::Recovery;
use beanshard::wal::segment::{Tail, file_name};

use fixture::{Listen, Server};
use life::{Life, Maker, Shown};
use peer::Peer;
use program::{ours, run, words};

/// The words that start the C server with its binlog in the fixture's folder and with `flags`, if
/// the server is there.
fn their_words(flags: &[&str]) -> Option<Vec<String>> {
    let oracle = env::var("BEANSHARD_ORACLE").unwrap_or_else(|_| "beanstalkd".into());
    if Command::new(&oracle).arg("-v").output().is_err() {
        program::skip("no beanstalkd in PATH or BEANSHARD_ORACLE");
        return None;
    }
    Some(words(&[&*oracle, "-b", "<dir>", "-f", "0"], flags))
}

/// Starts the C server with its binlog in the fixture's folder, if it is there. `fill` may put
/// files into that folder before.
fn theirs(fill: impl FnOnce(&Path)) -> Option<Server> {
    let words = their_words(&["-s", "4096", "-z", "65537"])?;
    let dir = tempfile::tempdir().expect("a folder can be made");
    fill(dir.path());
    Some(Server::start_in(dir, &words, Listen::Tcp).expect("it starts"))
}

fn account(dir: &Path) -> Account {
    let directory = Directory::look(dir).expect("the directory can be read");
    Account::read(&directory).expect("its files can be read")
}

fn bytes_of(dir: &Path, number: u64) -> Vec<u8> {
    fs::read(dir.join(file_name(number))).expect("the file is there")
}

/// The body of a living job, from its full record.
fn body_of(dir: &Path, account: &Account, id: u64) -> Vec<u8> {
    let job = &account.jobs[&JobId(id)];
    let file = &account.files[job.file];
    let bytes = bytes_of(dir, file.number);
    let version = file.version.expect("a job comes from a known layout");
    match decode(version, &bytes[job.offset as usize..]) {
        Ok(Decoded::Record {
            record:
                Record {
                    content: Some(content),
                    ..
                },
            ..
        }) => content.body.to_vec(),
        other => panic!("job {id}: {other:?}"),
    }
}

// L6.2, 6.6
#[test]
fn jobs_of_the_c_server_are_read_as_it_last_wrote_them() {
    let mut copies = 0;
    for seed in 1..=4 {
        let Some(mut server) = theirs(|_| ()) else {
            return;
        };
        let mut life = Life::new(&server, Maker::Theirs, seed);
        (0..400).for_each(|_| life.step());
        let migrated = Peer::of(&server).stat("binlog-records-migrated");
        copies += migrated.parse::<u64>().expect("a number");
        life.check();
        let pid = server.pid().as_raw().cast_unsigned();
        let dir = server.dir().to_owned();
        assert_eq!(
            Directory::look(&dir).expect("it is there").lock,
            Lock::Held(pid)
        );
        server.stop(Signal::SIGTERM).expect("it ends");

        let account = account(&dir);
        assert_eq!(Directory::look(&dir).expect("it is there").lock, Lock::Free);
        life.check_account(&dir, &account);
        assert!(account.files.len() > 1 && account.deleted > 0);
        let last = account.files.last().expect("there are files");
        assert!(matches!(last.tail, Tail::Zeros | Tail::Clean));
    }
    assert!(copies > 0, "nothing was copied to free a file");
}

// 6.9, K15, K20
#[test]
fn a_restart_of_the_c_server_finds_what_the_account_says() {
    let Some(mut server) = theirs(|_| ()) else {
        return;
    };
    let mut life = Life::new(&server, Maker::Theirs, 11);
    (0..400).for_each(|_| life.step());
    server.stop(Signal::SIGTERM).expect("it ends");
    let account = account(server.dir());
    server.restart().expect("it starts again");

    let mut peer = Peer::of(&server);
    for (id, live) in &account.jobs {
        let expected = Shown::of(live).after_restart(Maker::Theirs);
        assert_eq!(Shown::ask(&mut peer, id.0), expected, "{id:?}");
    }
    let states = ["ready", "reserved", "delayed", "buried"];
    let there: u64 = states
        .map(|state| peer.stat(&format!("current-jobs-{state}")).parse::<u64>())
        .into_iter()
        .sum::<Result<u64, _>>()
        .expect("numbers");
    assert_eq!(there, account.jobs.len() as u64);
}

#[test]
fn files_made_by_hand_are_read_by_both() {
    for (version, bytes) in [(5, hand::version_5()), (7, hand::version_7())] {
        let dir = tempfile::tempdir().expect("a folder can be made");
        let fill = |dir: &Path| fs::write(dir.join("binlog.1"), &bytes).expect("written");
        fill(dir.path());
        let account = account(dir.path());
        assert!(account.is_sound(), "{:?}", account.files);
        let jobs: Vec<Shown> = account.jobs.values().map(Shown::of).collect();
        assert_eq!(jobs, hand::jobs(), "version {version}");
        assert_eq!(body_of(dir.path(), &account, 3), b"three");

        let Some(server) = theirs(fill) else { return };
        let mut peer = Peer::of(&server);
        for (id, shown) in (3..).zip(hand::jobs()) {
            let expected = shown.after_restart(Maker::Theirs);
            assert_eq!(Shown::ask(&mut peer, id), expected, "version {version}");
        }
        assert_eq!(peer.ask("peek 3"), "FOUND 3 5");
        assert_eq!(peer.body(5), b"three");
        assert_eq!(peer.ask("peek 1"), "NOT_FOUND");
    }
}

#[test]
fn a_file_that_was_never_written_to_is_sound() {
    for len in [0, 3, 4, 4096] {
        let dir = tempfile::tempdir().expect("a folder can be made");
        fs::write(dir.path().join("binlog.1"), vec![0; len]).expect("written");
        assert_eq!(look(dir.path()), (true, true), "{len}");
    }
}

#[test]
fn a_file_that_the_c_server_reports_for_its_zeros_is_sound() {
    for zeros in [4, 83] {
        let mut bytes = hand::version_7();
        bytes.resize(bytes.len() + zeros, 0);
        let dir = tempfile::tempdir().expect("a folder can be made");
        fs::write(dir.path().join("binlog.1"), bytes).expect("written");
        assert!(account(dir.path()).is_sound());
    }
}

/// Reads the directory in every way there is.
fn look(dir: &Path) -> (bool, bool) {
    let mut out = Vec::new();
    let checked = check(dir, &mut out).expect("it can be read");
    let mut notes = Vec::new();
    let text = dump(dir, Form::Text, &mut out, &mut notes).expect("it can be read");
    let json = dump(dir, Form::Json, &mut out, &mut notes).expect("it can be read");
    assert_eq!(text, json);
    assert!(out.is_ascii());
    (checked, text)
}

/// What a start finds, with the lengths of the bodies.
fn recovered(dir: &Path) -> BTreeMap<JobId, (Shown, usize)> {
    let disk = Disk::lock(dir).expect("nobody uses it");
    let settings = Settings {
        file_len: 4096,
        sync: Sync::Never,
    };
    let (now, wall) = (Nanos(1 << 40), WallNanos(1 << 60));
    let mut recovery =
        Recovery::read(disk, settings, now, wall, &mut |_| ()).expect("it can be read");
    let mut found = BTreeMap::new();
    while recovery.jobs_left() > 0 {
        recovery.restore_next(|one| {
            let shown = Shown::at_restore(&one);
            let before = found.insert(one.job.id, (shown, one.body.len()));
            assert!(before.is_none(), "{:?} comes twice", one.job.id);
            None
        });
    }
    found
}

#[test]
fn mutations_of_real_files_are_told_or_taken_and_bring_nothing_down() {
    let Some(mut server) = theirs(|_| ()) else {
        return;
    };
    let mut life = Life::new(&server, Maker::Theirs, 5);
    (0..100).for_each(|_| life.step());
    server.stop(Signal::SIGTERM).expect("it ends");
    let numbers = Directory::look(server.dir()).expect("it is there").numbers;
    let files: Vec<_> = numbers
        .iter()
        .map(|&number| bytes_of(server.dir(), number))
        .collect();

    let change = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<u8>(),
    );
    let changes = prop::collection::vec(change, 0..6);
    let cut = prop::option::of(any::<prop::sample::Index>());
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&(changes, cut), |(changes, cut)| {
        let mut files = files.clone();
        for (file, at, byte) in changes {
            let index = file.index(files.len());
            let bytes = &mut files[index];
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let (Some(cut), Some(last)) = (cut, files.last_mut()) {
            last.truncate(cut.index(last.len()));
        }
        let dir = tempfile::tempdir().map_err(|error| TestCaseError::fail(error.to_string()))?;
        for (number, bytes) in (1..).zip(&files) {
            fs::write(dir.path().join(file_name(number)), bytes).expect("written");
        }
        let (checked, dumped) = look(dir.path());
        prop_assert!(
            dumped || !checked,
            "what the dump calls damaged, the check does too"
        );
        let account = account(dir.path());
        let expected: BTreeMap<_, _> = account
            .jobs
            .iter()
            .map(|(&id, live)| (id, (Shown::at_start(live), live.job.body_len as usize)))
            .collect();
        prop_assert_eq!(recovered(dir.path()), expected);
        Ok(())
    });
    outcome.expect("every file can be looked at");
}

#[test]
fn the_program_tells_by_its_status_how_things_are() {
    let dir = tempfile::tempdir().expect("a folder can be made");
    let path = dir.path().display().to_string();
    let wal = |words: &[&str]| run(&ours(&[&["wal"], words].concat()));
    fs::write(dir.path().join("binlog.1"), hand::version_7()).expect("written");

    let ended = wal(&["check", &path]);
    assert_eq!((ended.status, &*ended.stderr), (Some(0), ""));
    assert!(ended.stdout.ends_with("sound\n"), "{ended:?}");
    let ended = wal(&["dump", &path]);
    assert_eq!((ended.status, &*ended.stdout), (Some(0), hand::TEXT));
    let ended = wal(&["dump", "--json", &path]);
    assert_eq!((ended.status, &*ended.stdout), (Some(0), hand::JSON));

    let mut bytes = hand::version_7();
    bytes[4 + 3] = 1;
    fs::write(dir.path().join("binlog.2"), bytes).expect("written");
    fs::write(dir.path().join("binlog.a\u{1b}"), b"").expect("written");
    let ended = wal(&["check", &path]);
    assert_eq!(ended.status, Some(1));
    assert!(
        ended.stdout.contains("damaged at 4: name length "),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("note: binlog.a\\u{1b}: not a file"));
    assert!(ended.stdout.ends_with("DAMAGED\n"));
    let ended = wal(&["dump", &path]);
    assert_eq!(ended.status, Some(1));
    assert!(ended.stderr.starts_with("binlog.a\\u{1b}: not a file"));
    let ended = wal(&["dump", "--json", &path]);
    let end = "{\"file\":\"binlog.2\",\"offset\":4,\"end\":\"damaged\",\"at\":4,\"fault\":\"name ";
    assert!(ended.stdout.contains(end), "{ended:?}");

    let ended = wal(&["check", &format!("{path}/no")]);
    assert_eq!(ended.status, Some(10), "{ended:?}");
    assert!(ended.stderr.contains("/no: cannot list: No such file"));
    assert_eq!(wal(&["check"]).status, Some(5));
    assert_eq!(wal(&["--help"]).status, Some(0));
}

#[test]
fn a_directory_in_use_is_read_and_named_as_such() {
    let Some(server) = theirs(|_| ()) else { return };
    let path = server.dir().display().to_string();
    assert_eq!(Peer::of(&server).put(b"work"), "INSERTED 1");
    let note = format!("{path}: in use by process {}", server.pid());
    let ended = run(&ours(&["wal", "check", &path]));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(
        ended.stdout.starts_with(&format!("note: {note};")),
        "{ended:?}"
    );
    let ended = run(&ours(&["wal", "dump", &path]));
    assert!(ended.stderr.starts_with(&note), "{ended:?}");
    assert!(
        ended
            .stdout
            .contains(" full id=1 tube=default state=ready ")
    );
}
