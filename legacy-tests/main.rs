//! Runs each transcript in this folder as a test of its own: against `beanshard --legacy`, as
//! `binlog::NAME` against the same with a binlog on which every answer waits, as `sharded::NAME`
//! and `sharded3::NAME` against `--sharded` with one owner and one frontend and with several of
//! both, as `sharded-binlog::NAME` against `--sharded` with such binlogs, and as `oracle::NAME`
//! against the C server where one is at hand.
//!
//! Environment:
//! - `BEANSHARD_ORACLE`: path of the C server (else `beanstalkd` is looked for in `PATH`);
//! - `TRANSCRIPT_SERVER`: command line, split at blanks, to test in place of `--legacy`.
//!
//! Nearly all of a transcript's time is waiting, so far more of them run at once than there are
//! cores; `--test-threads` overrides that.

#[path = "../tests/server/calm.rs"]
mod calm;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "../tests/server/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "../tests/server/transcript/mod.rs"]
mod transcript;

use std::env;
use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};

use transcript::{Ids, Script, Target, parse, play};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(THREADS));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("legacy-tests");
    let mut files = Vec::new();
    if let Err(error) = collect(&root, &mut files) {
        eprintln!("{}: {error}", root.display());
        return ExitCode::FAILURE;
    }
    files.sort();
    let oracle = oracle();
    if oracle.is_none() {
        eprintln!(
            "no beanstalkd in PATH or BEANSHARD_ORACLE: nothing is compared with the C server"
        );
    }
    let ours = ours();
    let trials = files
        .iter()
        .flat_map(|file| trials(&root, file, &ours, oracle.as_ref()))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The tests that one file makes. A file that cannot be read makes one, which fails.
fn trials(root: &Path, file: &Path, ours: &Target, oracle: Option<&Target>) -> Vec<Trial> {
    let relative = file.strip_prefix(root).unwrap_or(file);
    let name = relative.with_extension("").display().to_string();
    let shown = Path::new("legacy-tests").join(relative);
    let (exact, mapped) = match (
        read(file, &shown, Ids::Exact),
        read(file, &shown, Ids::Mapped),
    ) {
        (Ok(exact), Ok(mapped)) => (exact, mapped),
        (Err(error), _) | (_, Err(error)) => {
            return vec![Trial::test(name, move || Err(error.into()))];
        }
    };
    let oracle = oracle.filter(|oracle| {
        exact.no_oracle.is_none() && !(oracle.is_1_12 && exact.no_oracle_1_12.is_some())
    });
    let asked = oracle.map(|oracle| trial(format!("oracle::{name}"), &exact, oracle));
    let kept = exact.no_binlog.is_none().then(|| {
        trial(
            format!("binlog::{name}"),
            &exact,
            &with_binlog(ours.clone()),
        )
    });
    let applies =
        mapped.no_binlog.is_none() && mapped.no_sharded.is_none() && mapped.no_sharded_3.is_none();
    let kept_sharded = applies.then(|| {
        let target = with_binlog(sharding(BINLOG_SHAPE));
        trial(format!("sharded-binlog::{name}"), &mapped, &target)
    });
    let sharded = shapes(relative, &mapped)
        .into_iter()
        .map(|(prefix, words)| trial(format!("{prefix}::{name}"), &mapped, &sharding(words)));
    [trial(name.clone(), &exact, ours)]
        .into_iter()
        .chain(kept)
        .chain(sharded)
        .chain(kept_sharded)
        .chain(asked)
        .collect()
}

/// The sharded servers that a file is played to: the name of the test, and how many owners and
/// frontends there are.
fn shapes(file: &Path, script: &Script) -> Vec<(String, (u16, u16))> {
    let is_routing = file.starts_with("routing");
    let applies = |shape: &(u16, u16)| {
        script.no_sharded.is_none()
            && (script.no_sharded_3.is_none() || *shape == (1, 1))
            && (is_routing || USUAL_SHAPES.contains(shape))
    };
    let named = |shape| match shape {
        (1, 1) => "sharded".to_owned(),
        (3, 2) => "sharded3".to_owned(),
        (owners, frontends) => format!("sharded{owners}x{frontends}"),
    };
    let shapes = SHAPES.into_iter().filter(applies);
    shapes.map(|shape| (named(shape), shape)).collect()
}

/// Ours with so many owners and frontends. Its ids carry the slots of their tubes.
fn sharding((owners, frontends): (u16, u16)) -> Target {
    let words = format!("--sharded --owners {owners} --frontends {frontends}");
    let program = env!("CARGO_BIN_EXE_beanshard").to_owned();
    Target {
        words: iter::once(program)
            .chain(words.split(' ').map(str::to_owned))
            .collect(),
        is_1_12: false,
    }
}

/// The same with a binlog.
fn with_binlog(mut target: Target) -> Target {
    target.words.extend(BINLOG.map(str::to_owned));
    target
}

fn trial(name: String, script: &Script, target: &Target) -> Trial {
    let (script, target) = (script.clone(), target.clone());
    Trial::test(name, move || Ok(calm::in_calm(|| play(&script, &target))?))
}

/// Reads a transcript. Its first line must say what it proves.
fn read(file: &Path, shown: &Path, ids: Ids) -> Result<Script, String> {
    let shown = shown.display().to_string();
    let source = fs::read_to_string(file).map_err(|error| format!("{shown}: {error}"))?;
    if !source.starts_with("# ") {
        return Err(format!(
            "{shown}:1: the first line must say what the transcript proves"
        ));
    }
    let script = parse(&shown, &source, ids)?;
    if script.steps.is_empty() {
        return Err(format!("{shown}: no steps"));
    }
    Ok(script)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    Ok(())
}

fn ours() -> Target {
    let words = env::var("TRANSCRIPT_SERVER")
        .map(|words| words.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_else(|_| vec![env!("CARGO_BIN_EXE_beanshard").into(), "--legacy".into()]);
    Target {
        words,
        is_1_12: false,
    }
}

/// The C server, if it can be run.
fn oracle() -> Option<Target> {
    let program = env::var("BEANSHARD_ORACLE").unwrap_or_else(|_| "beanstalkd".into());
    let output = Command::new(&program).arg("-v").output().ok()?;
    let is_1_12 = String::from_utf8_lossy(&output.stdout).trim() == "beanstalkd 1.12";
    Some(Target {
        words: vec![program],
        is_1_12,
    })
}

/// A binlog in the server's folder. Its files are so small that many are made and given up.
const BINLOG: [&str; 5] = ["-b", "<dir>", "-f0", "-s", "4096"];

/// Owners and frontends of the sharded servers that transcripts of `routing/` are played to. The
/// names of their tubes are chosen so that they are at different owners, see `tests/routing.rs`.
const SHAPES: [(u16, u16); 8] = [
    (1, 1),
    (1, 2),
    (2, 1),
    (2, 2),
    (3, 1),
    (3, 2),
    (5, 1),
    (5, 2),
];
/// Those that the others are played to.
const USUAL_SHAPES: [(u16, u16); 2] = [(1, 1), (3, 2)];

/// What is played to with binlogs.
const BINLOG_SHAPE: (u16, u16) = (2, 1);

const THREADS: usize = 24;
