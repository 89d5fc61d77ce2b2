//! A tool that stops before any of its steps, as if it were killed there, and one that really is
//! killed. A start, or another run, finds the old or the new.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use beanshard::data::{Step, export, import, reshard};
use beanshard::wal::directory::lock_folder;
use beanshard::wal::topology::DataDir;

use crate::assert_same;
use crate::book::{self, State, numbered, owners_of, settings, topology};
use crate::fixture::{START_LIMIT, wait_until};
use crate::folder;
use crate::program::PROGRAM;
use crate::text;

/// What stops a tool in the middle of it.
struct Kill;

/// Runs `run` once to its end, and then once for each of its steps, before which it is killed. Each
/// run has a copy of `dir`, and `check` looks at it.
fn each_kill(
    dir: &Path,
    run: impl Fn(&Path, &mut dyn FnMut(Step)),
    check: impl Fn(&Path, Option<Step>),
) {
    let copy = || -> TempDir {
        let to = folder();
        book::copy(dir, to.path());
        to
    };
    let whole = copy();
    let mut steps = 0;
    run(whole.path(), &mut |_| steps += 1);
    check(whole.path(), None);
    assert!(steps > 20, "there are steps to be killed before");
    for nth in 0..steps {
        let at = copy();
        let (mut step, mut last) = (0, None);
        let mut show = |one| {
            if step == nth {
                last = Some(one);
                resume_unwind(Box::new(Kill));
            }
            step += 1;
        };
        let ran = catch_unwind(AssertUnwindSafe(|| run(at.path(), &mut show)));
        let payload = ran.expect_err("it was killed");
        assert!(payload.is::<Kill>(), "it has failed before");
        check(at.path(), last);
    }
}

/// What a start does, for whichever number of owners the directory is.
fn start(dir: &Path) -> u16 {
    let owners = owners_of(dir).expect("it is a data directory");
    let data = DataDir::open(dir, topology(owners)).expect("it starts");
    let folders = fs::read_dir(dir).expect("it can be listed").count();
    assert_eq!(folders, usize::from(owners) + 2, "nothing is left over");
    drop(data);
    owners
}

#[test]
fn a_reshard_that_is_killed_leaves_the_old_or_the_new() {
    let dir = folder();
    book::make_sharded(dir.path(), 7, 2, 25);
    let before = State::of_sharded(dir.path());
    let run = |dir: &Path, show: &mut dyn FnMut(Step)| {
        reshard(dir, 3, settings(), show).expect("it can be done");
    };
    each_kill(dir.path(), run, |dir, step| {
        let found = owners_of(dir);
        // The other way of going on: once more.
        let other = folder();
        book::copy(dir, other.path());
        assert_eq!(Some(start(dir)), found, "{step:?}");
        assert_same(&before, &State::of_sharded(dir));

        run(other.path(), &mut |_| {});
        assert_eq!(start(other.path()), 3);
        assert_same(&before, &State::of_sharded(other.path()));
    });
}

#[test]
fn an_import_that_is_killed_leaves_nothing_or_all() {
    let (legacy, empty) = (folder(), folder());
    book::make_legacy(legacy.path(), 7, 25);
    let before = State::of_legacy(legacy.path());
    let run = |dir: &Path, show: &mut dyn FnMut(Step)| {
        import(legacy.path(), dir, 3, settings(), show).expect("it can be done");
    };
    each_kill(empty.path(), run, |dir, step| {
        let is_done = owners_of(dir).is_some();
        let other = folder();
        book::copy(dir, other.path());
        drop(DataDir::open(dir, topology(3)).expect("it starts"));
        assert_eq!(start(dir), 3);
        let after = State::of_sharded(dir);
        if is_done {
            assert_eq!(numbered(after.by_id()), numbered(before.by_id()));
        } else {
            assert_eq!(after.jobs, [], "{step:?}");
            run(other.path(), &mut |_| {});
            let again = State::of_sharded(other.path());
            assert_eq!(numbered(again.by_id()), numbered(before.by_id()));
        }
    });
}

#[test]
fn an_export_that_is_killed_leaves_nothing_or_all_or_what_no_server_takes() {
    let (dir, empty) = (folder(), folder());
    book::make_sharded(dir.path(), 7, 2, 25);
    let before = numbered(State::of_sharded(dir.path()).by_birth());
    let run = |to: &Path, show: &mut dyn FnMut(Step)| {
        export(dir.path(), to, settings(), show).expect("it can be done");
    };
    each_kill(empty.path(), run, |to, step| {
        let other = folder();
        book::copy(to, other.path());
        let is_done = match lock_folder(to) {
            Err(_) => {
                assert!(to.join("lock").is_dir(), "{step:?}");
                false
            }
            Ok(lock) => {
                drop(lock);
                let found = State::of_legacy(to).by_id();
                assert!(found.is_empty() || found == before, "{step:?}");
                !found.is_empty()
            }
        };
        if !is_done {
            run(other.path(), &mut |_| {});
            assert_eq!(State::of_legacy(other.path()).by_id(), before);
        }
    });
}

#[test]
fn a_process_that_is_killed_leaves_the_old_or_the_new() {
    let dir = folder();
    book::make_sharded(dir.path(), 9, 2, 3000);
    let before = State::of_sharded(dir.path());
    let is_there = |name: &str| dir.path().join(name).exists();
    let mut set = 1;
    for nth in 0..6 {
        let next = set + 1;
        let owners = owners_of(dir.path()).map_or(0, |owners| owners % 5 + 1);
        let last = format!("owner-{:03}.{next}", owners - 1);
        let mut words = Command::new(PROGRAM);
        words.args([
            "reshard",
            "--dir",
            text(dir.path()),
            "-s",
            "4096",
            "--owners",
        ]);
        words.arg(owners.to_string());
        let words = words.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = words.spawn().expect("it starts");
        let reached = wait_until(START_LIMIT, || match nth {
            0 | 1 => is_there(&format!("owner-000.{next}/binlog.2")),
            2 | 3 => is_there(&last),
            _ => is_there("topology.new") || owners_of(dir.path()) == Some(owners),
        });
        assert!(reached, "it has come so far");
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        if start(dir.path()) == owners {
            set = next;
        }
        assert_same(&before, &State::of_sharded(dir.path()));
    }
}
