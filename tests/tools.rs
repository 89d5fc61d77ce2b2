//! The offline tools of the sharded mode's data: nothing of a job is lost on the way from a legacy
//! binlog through several numbers of owners and back, whoever is killed leaves the old or the new,
//! and what does not fit is refused.

#[path = "tools/book.rs"]
mod book;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[path = "tools/kills.rs"]
mod kills;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/peer.rs"]
mod peer;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/program.rs"]
mod program;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "sim/random.rs"]
mod random;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/transcript/mod.rs"]
mod transcript;

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;
use tempfile::TempDir;

use beanshard::data::summary::Summary;
use beanshard::data::{Settings, export, import, reshard};

use book::{State, numbered, settings};
use fixture::{Listen, Server};
use peer::Peer;
use program::{Ended, ours, run, words};

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder can be made")
}

fn reshard_to(dir: &Path, owners: u16) -> Summary {
    reshard(dir, owners, settings(), &mut |_| {}).expect("it can be done")
}

/// Runs ours with these words.
fn tool(args: &[&str]) -> Ended {
    run(&ours(args))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths are text")
}

fn assert_same(before: &State, after: &State) {
    assert_eq!(after.by_id(), before.by_id());
    assert_eq!(after.buried(), before.buried());
    assert_eq!(after.pauses, before.pauses);
}

#[test]
fn jobs_go_through_any_number_of_owners_as_they_are() {
    for seed in 0..4 {
        let dir = folder();
        book::make_sharded(dir.path(), seed, 2, 60);
        let before = State::of_sharded(dir.path());
        assert!(
            before.jobs.len() > 20 && !before.pauses.is_empty(),
            "a test"
        );
        let highest = before.highest.iter().max();
        for owners in [1, 3, 2, 5, 64, 7] {
            let summary = reshard_to(dir.path(), owners);
            assert_eq!(summary.jobs(), before.jobs.len() as u64);
            assert_eq!(summary.buried, before.count("buried"));
            assert_eq!(summary.pauses, before.pauses.len() as u64);
            let after = State::of_sharded(dir.path());
            assert_same(&before, &after);
            assert_eq!(after.highest.len(), usize::from(owners));
            assert_eq!(after.highest.iter().max(), highest, "to {owners}");
            assert!(owners > 5 || after.highest.iter().all(|&id| id > 0));
        }
        let folders = fs::read_dir(dir.path()).expect("it can be listed").count();
        assert_eq!(folders, 7 + 2, "the owners, the file topology, the lock");
    }
}

// An owner whose jobs are all gone gives no id again either, wherever its slots go.
#[test]
fn ids_that_were_given_are_not_given_again() {
    let dir = folder();
    book::make_sharded(dir.path(), 1, 1, 60);
    let before = State::of_sharded(dir.path());
    reshard_to(dir.path(), 64);
    let after = State::of_sharded(dir.path());
    assert!(after.highest.iter().all(|&id| id >= before.highest[0]));
}

#[test]
fn the_way_from_a_legacy_binlog_and_back_keeps_all() {
    for seed in 0..4 {
        let (legacy, dir, back) = (folder(), folder(), folder());
        book::make_legacy(legacy.path(), seed, 60);
        let bytes = book::bytes_in(legacy.path());
        let imported = import(legacy.path(), dir.path(), 2, settings(), &mut |_| {});
        let imported = imported.expect("it can be done");
        assert_eq!(book::bytes_in(legacy.path()), bytes, "it is only read");

        let before = State::of_legacy(legacy.path());
        let after = State::of_sharded(dir.path());
        assert_eq!(imported.jobs(), before.jobs.len() as u64);
        assert_eq!(imported.delayed, before.count("delayed"));
        assert_eq!(numbered(after.by_id()), numbered(before.by_id()));
        assert_eq!(after.buried(), before.buried());

        for owners in [1, 3, 2, 5] {
            reshard_to(dir.path(), owners);
        }
        let at = Settings {
            file_len: 1 << 20,
            ..settings()
        };
        let exported = export(dir.path(), back.path(), at, &mut |_| {}).expect("it can be done");
        assert_eq!(exported.jobs(), imported.jobs());
        assert_same(&after, &State::of_sharded(dir.path()));
        let last = State::of_legacy(back.path());
        assert_eq!(last.by_id(), numbered(after.by_birth()));
        assert_eq!(last.buried(), before.buried());
        assert!(!back.path().join("export.new").exists());
    }
}

// A server with -u has to be able to use it.
#[test]
fn what_the_superuser_makes_belongs_to_whom_the_directory_does() {
    if !geteuid().is_root() {
        return program::skip("only the superuser can give files away");
    }
    let (legacy, dir, to) = (folder(), folder(), folder());
    book::make_legacy(legacy.path(), 1, 9);
    for dir in [&dir, &to] {
        chown(dir.path(), Some(65_534), Some(65_534)).expect("it can be given away");
    }
    import(legacy.path(), dir.path(), 2, settings(), &mut |_| {}).expect("it can be done");
    reshard_to(dir.path(), 3);
    export(dir.path(), to.path(), settings(), &mut |_| {}).expect("it can be done");
    let mut left = vec![dir.path().to_owned(), to.path().to_owned()];
    while let Some(path) = left.pop() {
        let data = fs::metadata(&path).expect("it is there");
        let is_text = path.ends_with("topology");
        assert!(is_text || data.uid() == 65_534, "{}", path.display());
        if data.is_dir() {
            let entries = fs::read_dir(&path).expect("it can be listed");
            left.extend(entries.map(|entry| entry.expect("it can be listed").path()));
        }
    }
}

/// What a server says of the jobs of an export.
fn assert_served(server: &Server, state: &State) {
    let mut peer = Peer::of(server);
    for job in state.by_id() {
        let found = peer.ask(&format!("peek {}", job.id));
        assert_eq!(found, format!("FOUND {} {}", job.id, job.body.len()));
        assert_eq!(peer.body(job.body.len()), job.body);
        let mut row = |key| peer.row(&format!("stats-job {}", job.id), key);
        assert_eq!(row("state"), job.state);
        assert_eq!(row("pri"), job.pri.to_string());
        assert_eq!(row("tube").trim_matches('"'), job.tube);
    }
    for (tube, bodies) in state.buried() {
        assert_eq!(peer.ask(&format!("use {tube}")), format!("USING {tube}"));
        for body in bodies {
            let found = peer.ask("peek-buried");
            assert_eq!(peer.body(body.len()), body, "{tube}");
            let id = found.split(' ').nth(1).expect("it is found");
            assert_eq!(peer.ask(&format!("delete {id}")), "DELETED");
        }
    }
    assert_eq!(peer.stat("current-jobs-buried"), "0");
    let ready = peer.stat("current-jobs-ready");
    assert_eq!(ready, state.count("ready").to_string());
}

fn export_is_served_by(words: &[String]) {
    let (dir, to) = (folder(), folder());
    book::make_sharded(dir.path(), 3, 3, 150);
    let exported = tool(&[
        "export",
        "--dir",
        text(dir.path()),
        "--to",
        text(to.path()),
        "-s4096",
    ]);
    assert_eq!(exported.status, Some(0), "{exported:?}");
    let state = State::of_legacy(to.path());
    assert!(fs::read_dir(to.path()).expect("it can be listed").count() > 3);
    let server = Server::start_in(to, words, Listen::Tcp).expect("it starts");
    assert_served(&server, &state);
}

#[test]
fn the_c_server_has_the_jobs_of_an_export() {
    let oracle = env::var("BEANSHARD_ORACLE").unwrap_or_else(|_| "beanstalkd".into());
    if Command::new(&oracle).arg("-v").output().is_err() {
        return program::skip("no beanstalkd in PATH or BEANSHARD_ORACLE");
    }
    export_is_served_by(&words(&[&*oracle, "-b", "<dir>"], &["-s", "4096"]));
}

#[test]
fn our_server_has_the_jobs_of_an_export() {
    export_is_served_by(&ours(&["--legacy", "-b", "<dir>"]));
}

#[test]
fn the_sharded_server_has_the_jobs_of_a_reshard() {
    let (legacy, dir) = (folder(), folder());
    book::make_legacy(legacy.path(), 3, 150);
    let at = text(dir.path());
    for words in [
        &[
            "import",
            "--from",
            text(legacy.path()),
            "--dir",
            at,
            "--owners",
            "2",
        ][..],
        &["reshard", "--dir", at, "--owners", "3"],
    ] {
        let ended = tool(words);
        assert_eq!(ended.status, Some(0), "{ended:?}");
    }
    let state = State::of_sharded(dir.path());
    let words = ours(&["--sharded", "--frontends", "1", "-b", "<dir>"]);
    let server = Server::start_in(dir, &words, Listen::Tcp).expect("it starts");
    assert_served(&server, &state);
    let mut peer = Peer::of(&server);
    let put = peer.put(b"new");
    let id = put.split(' ').nth(1).and_then(|id| id.parse().ok());
    let before = state.jobs.iter().filter(|job| job.tube == "default");
    assert!(id > before.map(|job| job.id).max(), "{put}");
}

#[test]
fn a_summary_tells_what_was_done() {
    let (dir, to) = (folder(), folder());
    book::make_sharded(dir.path(), 5, 2, 60);
    let state = State::of_sharded(dir.path());
    let at = text(dir.path());
    let done = tool(&["reshard", "--dir", at, "--owners", "3"]);
    assert_eq!((done.status, &*done.stderr), (Some(0), ""));
    let lines: Vec<&str> = done.stdout.lines().collect();
    let jobs = |name, count: u64| format!("{name}: {count}");
    assert_eq!(lines[0], jobs("jobs", state.jobs.len() as u64));
    assert_eq!(lines[1], jobs("  ready", state.count("ready")));
    assert_eq!(lines[2], jobs("  delayed", state.count("delayed")));
    assert_eq!(lines[3], jobs("  buried", state.count("buried")));
    assert_eq!(lines[5], "owners: 3, before 2");
    assert!(lines[6].starts_with("bytes: "), "{lines:?}");
    // By the real clock those run too that are over in these tests.
    assert_eq!(lines[7], jobs("paused tubes", 5));
    assert!(lines[8].starts_with("seconds: "), "{lines:?}");

    let again = tool(&["reshard", "--dir", at, "--owners", "3"]);
    assert_eq!(again.status, Some(0));
    assert!(
        again
            .stdout
            .starts_with("nothing to do: it is for 3 owners\n")
    );

    let done = tool(&["export", "--dir", at, "--to", text(to.path())]);
    assert!(done.stdout.contains("pauses lost: 5, "), "{done:?}");
}

#[test]
fn what_is_not_what_it_should_be_is_refused() {
    let (legacy, dir, empty, full) = (folder(), folder(), folder(), folder());
    book::make_legacy(legacy.path(), 1, 9);
    book::make_sharded(dir.path(), 1, 2, 9);
    fs::write(full.path().join("mine"), b"").expect("it can be written");
    let [legacy, dir, empty, full] = [&legacy, &dir, &empty, &full].map(|dir| text(dir.path()));
    for (words, said) in [
        (
            &["reshard", "--dir", legacy, "--owners", "3"][..],
            format!("{legacy}: no data directory of --sharded, "),
        ),
        (
            &["reshard", "--dir", empty, "--owners", "3"],
            format!("{empty}: no data directory of --sharded, "),
        ),
        (
            &["export", "--dir", legacy, "--to", empty],
            format!("{legacy}: no data directory of --sharded, "),
        ),
        (
            &["export", "--dir", dir, "--to", full],
            format!("{full}: not empty, there is mine"),
        ),
        (
            &["export", "--dir", dir, "--to", "/not/there"],
            "failed to lock wal dir /not/there: open: ".to_owned(),
        ),
        (
            &["import", "--from", legacy, "--dir", full],
            format!("{full}: not empty, there is mine"),
        ),
        (
            &["import", "--from", legacy, "--dir", "/not/there"],
            "failed to lock wal dir /not/there: open: ".to_owned(),
        ),
        (
            &["import", "--from", dir, "--dir", empty],
            format!("{dir}: no binlog of --legacy, "),
        ),
    ] {
        let before = [legacy, dir, full].map(|dir| book::bytes_in(Path::new(dir)));
        let ended = tool(words);
        assert_eq!(ended.status, Some(10), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(&said), "{words:?}: {ended:?}");
        let after = [legacy, dir, full].map(|dir| book::bytes_in(Path::new(dir)));
        assert_eq!(before, after, "{words:?}");
    }
}

#[test]
fn a_directory_in_use_is_refused() {
    // A server of the other mode locks as any does, and it will not look at what comes later.
    let server = Server::start(&ours(&["-b", "<dir>"]), Listen::Tcp).expect("it starts");
    assert_eq!(Peer::of(&server).put(b"work"), "INSERTED 1");
    let to = folder();
    let (from, to) = (text(server.dir()), text(to.path()));
    let ended = tool(&["import", "--from", from, "--dir", to]);
    assert_eq!(ended.status, Some(10), "{ended:?}");
    assert!(ended.stderr.contains("failed to lock wal dir"), "{ended:?}");

    let dir = folder();
    book::make_sharded(dir.path(), 1, 2, 9);
    book::copy(dir.path(), &server.dir().join("."));
    for words in [
        &["reshard", "--dir", from, "--owners", "3"][..],
        &["export", "--dir", from, "--to", to],
    ] {
        let ended = tool(words);
        assert_eq!(ended.status, Some(10), "{ended:?}");
        assert!(ended.stderr.contains("failed to lock wal dir"), "{ended:?}");
    }
    // An owner that has lost its supervisor.
    let of_owner = dir.path().join("owner-001");
    fs::rename(&of_owner, dir.path().join("kept")).expect("it can be renamed");
    std::os::unix::fs::symlink(server.dir(), &of_owner).expect("a link can be made");
    let ended = tool(&["reshard", "--dir", text(dir.path()), "--owners", "3"]);
    assert_eq!(ended.status, Some(10), "{ended:?}");
    assert!(ended.stderr.contains("owner-001"), "{ended:?}");
}

#[test]
fn damage_stops_a_tool_unless_it_is_to_be_passed_over() {
    let (dir, legacy) = (folder(), folder());
    book::make_sharded(dir.path(), 2, 2, 60);
    book::make_legacy(legacy.path(), 2, 60);
    let spoil = |path: &Path, at: usize| {
        let mut bytes = fs::read(path).expect("it can be read");
        bytes[at] ^= 0x40;
        fs::remove_file(path).expect("it can be removed");
        fs::write(path, bytes).expect("it can be written");
    };
    let old = dir.path().join("owner-000/binlog.1");
    spoil(&old, 100);
    // The length of the tube's name.
    spoil(&legacy.path().join("binlog.1"), 6);
    let to = folder();
    let (dir, legacy, to) = (text(dir.path()), text(legacy.path()), text(to.path()));
    for (words, said) in [
        (
            &["reshard", "--dir", dir, "--owners", "3"][..],
            "owner-000: binlog: binlog.1 is damaged at ",
        ),
        (
            &["export", "--dir", dir, "--to", to],
            "owner-000: binlog: binlog.1 is damaged at ",
        ),
        (
            &["import", "--from", legacy, "--dir", to],
            "1 of its files are damaged",
        ),
    ] {
        let ended = tool(words);
        assert_eq!(ended.status, Some(1), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{words:?}: {ended:?}");
    }
    for words in [
        &["reshard", "--dir", dir, "--owners", "3"][..],
        &["import", "--from", legacy, "--dir", to],
    ] {
        let ended = tool(&[words, &["--skip-damage"]].concat());
        assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
        assert!(ended.stdout.contains("damaged files: 1"), "{ended:?}");
    }
}
