//! Whether the simulation sees what it is there to see: the program is changed in one place, and
//! the simulation has to fail with an assertion of its own. Each change is a fault that somebody
//! could make. What it is made to must stand in the file exactly once.
//!
//! It builds the program some twenty times, so it is run on request: `make mutants`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A fault.
struct Mutant {
    what: &'static str,
    /// The test that has to fail.
    test: &'static str,
    file: &'static str,
    /// What is replaced by what.
    changes: &'static [(&'static str, &'static str)],
}

/// Sessions over links, of owners that keep nothing.
const SESSIONS: &str = "sessions_keep_their_promises_over_any_shards";

/// Owners with binlogs, through crashes.
const BINLOGS: &str = "owners_keep_what_they_have_confirmed_through_any_crash";

/// A shard in the process, and the same over a link.
const TWIN: &str = "one_shard_answers_alike_near_and_far";

/// Seeds that are tried with each.
const SEEDS: [(&str, &str); 3] = [(SESSIONS, "256"), (BINLOGS, "64"), (TWIN, "256")];

/// Steps of each.
const STEPS: &str = "4000";

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "a late attach is accepted",
        test: SESSIONS,
        file: "src/channel/far.rs",
        changes: &[(
            "if caller.seq <= self.last_attach {",
            "if caller.seq == Seq::NONE {",
        )],
    },
    Mutant {
        what: "a repeated detach is obeyed again",
        test: SESSIONS,
        file: "src/channel/far.rs",
        changes: &[(
            "if self.sessions.remove(&session.number).is_none() {",
            "self.sessions.remove(&session.number);\n        if session.number == 0 {",
        )],
    },
    Mutant {
        what: "credit is not given back",
        test: SESSIONS,
        file: "src/channel/far.rs",
        changes: &[("self.owed.add(known.cost);", "")],
    },
    Mutant {
        what: "a request that is out of order is obeyed",
        test: SESSIONS,
        file: "src/channel/far.rs",
        changes: &[("request > last ||", "request <= last || request > last ||")],
    },
    Mutant {
        what: "what waits for credit is sent over the next link",
        test: SESSIONS,
        file: "src/channel/near.rs",
        changes: &[
            (
                "self.link.take().is_some_and(|link| link.is_greeted)",
                "let link = self.link.as_mut();\n        \
                 link.is_some_and(|link| std::mem::take(&mut link.is_greeted))",
            ),
            (
                "waiting: VecDeque::new(),",
                "waiting: self.link.take().map_or_else(VecDeque::new, |link| link.waiting),",
            ),
        ],
    },
    Mutant {
        what: "a deadline that has passed still counts",
        test: SESSIONS,
        file: "src/session/reservations.rs",
        changes: &[("&& end.0 <= now", "&& end.0.0 < now.0 / 2")],
    },
    Mutant {
        what: "an offer is not declined",
        test: SESSIONS,
        file: "src/session/reserve.rs",
        changes: &[(
            "ask(ShardSet::of(worse.shard), Op::Decline { id: worse.id });",
            "let _ = worse.shard;",
        )],
    },
    Mutant {
        what: "a session that is lost at one shard stays at the others",
        test: SESSIONS,
        file: "src/session/waiting.rs",
        changes: &[(
            "        self.lost = true;",
            "        self.attached = ShardSet::EMPTY;\n        self.lost = true;",
        )],
    },
    Mutant {
        what: "a client is told that what it asked has failed though it may have been done",
        test: SESSIONS,
        file: "src/session/table/reach.rs",
        changes: &[(
            "Loss::All => hall.lose(slot),",
            "Loss::All => hall.say(slot, reply::INTERNAL_ERROR),",
        )],
    },
    Mutant {
        what: "a session with a job at a lost shard goes on",
        test: SESSIONS,
        file: "src/session/waiting.rs",
        changes: &[(
            "reservations.jobs().any(|id| map.of_job(id) == shard)",
            "reservations.jobs().any(|id| map.of_job(id) != shard)",
        )],
    },
    Mutant {
        what: "sessions are not introduced to a shard that is back",
        test: SESSIONS,
        file: "src/session/table/reach.rs",
        changes: &[(
            "                self.introduce(now, id, shard);",
            "                self.shards.attach(shard, id);\n                let _ = now;",
        )],
    },
    Mutant {
        what: "what a lost link's sessions had is not released",
        test: SESSIONS,
        file: "src/role/hub.rs",
        changes: &[(
            "for session in end.sessions() {",
            "for session in end.sessions().into_iter().take(0) {",
        )],
    },
    Mutant {
        what: "what is behind a reserve that waits is done at once",
        test: TWIN,
        file: "src/channel/far.rs",
        changes: &[(
            "is_behind: is_behind && !kind.refers_back(),",
            "is_behind: is_behind && kind.refers_back(),",
        )],
    },
    Mutant {
        what: "the end of a wait that comes late ends a later one",
        test: SESSIONS,
        file: "src/engine/reserve.rs",
        changes: &[(
            "if wait.is_some_and(|wait| wait.seq == by.from.seq) {",
            "if wait.is_some_and(|wait| wait.seq >= by.from.seq) {",
        )],
    },
    Mutant {
        what: "the time of a reserve behind others runs before its turn",
        test: TWIN,
        file: "src/session/commands.rs",
        changes: &[("is_alone.then_some(room.now)", "Some(room.now)")],
    },
    Mutant {
        what: "an answer leaves before it is confirmed",
        test: BINLOGS,
        file: "src/channel/held.rs",
        changes: &[(
            "turn.ticket <= confirmed)",
            "turn.ticket <= confirmed.max(turn.ticket))",
        )],
    },
    Mutant {
        what: "a start does not look how far ids were given",
        test: BINLOGS,
        file: "src/role/shard.rs",
        changes: &[("engine.skip_ids(recovery.highest());", "")],
    },
    Mutant {
        what: "a deletion is not written",
        test: BINLOGS,
        file: "src/wal/journal.rs",
        changes: &[("self.write_entry(&Entry::End { job });", "let _ = job;")],
    },
    Mutant {
        what: "pauses are not written",
        test: BINLOGS,
        file: "src/wal/journal.rs",
        changes: &[(
            "self.write_pause(number, tube, length, until);",
            "let _ = (number, length, until);",
        )],
    },
    Mutant {
        what: "a torn end is not cut",
        test: BINLOGS,
        file: "src/wal/recover/files.rs",
        changes: &[("Some(_) => self.cut_end(&mut file)?,", "Some(_) => {}")],
    },
    Mutant {
        what: "a start does not sync what it has read",
        test: BINLOGS,
        file: "src/wal/recover/files.rs",
        changes: &[(
            "Ok(file) => self.keep(vec![file], false, &name),",
            "Ok(_) => Ok(()),",
        )],
    },
];

/// What the simulation is built from.
const SOURCES: [&str; 6] = [
    "Cargo.toml",
    "Cargo.lock",
    "src",
    "tests/sim.rs",
    "tests/sim",
    "tests/crash/storage.rs",
];

/// A copy of the package in which only the library and the simulation are left.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn new(root: &Path) -> Copy {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        for source in SOURCES {
            copy(&package.join(source), &root.join(source));
        }
        let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("manifest can be read");
        let is_left = |section: &&str| {
            let is_of_tests = section.starts_with("[test]]") || section.starts_with("[bin]]");
            !is_of_tests || section.contains("name = \"sim\"")
        };
        let sections: Vec<&str> = manifest.split("\n[").filter(is_left).collect();
        fs::write(root.join("Cargo.toml"), sections.join("\n[")).expect("manifest is written");
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        Copy {
            root: root.to_path_buf(),
            target: target
                .unwrap_or_else(|| package.join("target"))
                .join("mutants"),
        }
    }

    /// Runs this test of the simulation, or only builds it if it is none.
    fn cargo(&self, test: Option<&str>) -> Output {
        let arguments = match test {
            Some(test) => vec![test, "--", "--exact", "--nocapture"],
            None => vec!["--no-run"],
        };
        let seeds = SEEDS.iter().find(|(of, _)| Some(*of) == test);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new(cargo)
            .args(["test", "--locked", "--offline", "--test", "sim"])
            .args(arguments)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            // Building takes longer than running.
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env("RUST_BACKTRACE", "0")
            .env("SEEDS", seeds.map_or("0", |(_, seeds)| *seeds))
            .env("STEPS", STEPS)
            .env_remove("SEED")
            .output()
            .expect("cargo runs")
    }

    /// What the simulation says of the program with the mutant's changes.
    ///
    /// # Errors
    /// What is wrong, if the changes cannot be made or do not build, or if nothing is noticed.
    fn try_out(&self, mutant: &Mutant) -> Result<String, String> {
        let path = self.root.join(mutant.file);
        let sound = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let mut text = sound.clone();
        for (from, to) in mutant.changes {
            let count = sound.matches(from).count();
            if count != 1 {
                return Err(format!("`{from}` stands {count} times in {}", mutant.file));
            }
            text = text.replace(from, to);
        }
        fs::write(&path, text).map_err(|error| error.to_string())?;
        let built = self.cargo(None);
        let run = built
            .status
            .success()
            .then(|| self.cargo(Some(mutant.test)));
        fs::write(&path, sound).map_err(|error| error.to_string())?;
        let Some(run) = run else {
            let error = String::from_utf8_lossy(&built.stderr).into_owned();
            return Err(format!("does not build: {error}"));
        };
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        if run.status.success() {
            return Err("is not noticed".to_owned());
        }
        let mut lines = said
            .lines()
            .skip_while(|l| !l.contains("panicked at tests/sim/"));
        let assertion = lines.nth(1).map(str::to_owned);
        let is_told = said.contains("replay: SEED=");
        assertion
            .filter(|_| is_told)
            .ok_or_else(|| format!("fails, but not by an assertion of the simulation: {said}"))
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("folder can be made");
        for entry in fs::read_dir(from).expect("folder can be read") {
            let name = entry.expect("entry can be read").file_name();
            copy(&from.join(&name), &to.join(&name));
        }
    } else {
        fs::create_dir_all(to.parent().expect("files are in folders")).expect("folder can be made");
        fs::copy(from, to).expect("file can be copied");
    }
}

#[test]
#[ignore = "builds the program some twenty times"]
fn the_simulation_sees_every_mutant() {
    let folder = tempfile::tempdir().expect("folder can be made");
    let copy = Copy::new(folder.path());
    for test in [SESSIONS, BINLOGS] {
        let sound = copy.cargo(Some(test));
        let said = String::from_utf8_lossy(&sound.stderr).into_owned();
        assert!(sound.status.success(), "the sound program fails: {said}");
    }
    let mut survivors = Vec::new();
    for mutant in MUTANTS {
        match copy.try_out(mutant) {
            Ok(assertion) => println!("{}: {assertion}", mutant.what),
            Err(why) => survivors.push(format!("{}: {why}", mutant.what)),
        }
    }
    assert!(survivors.is_empty(), "{}", survivors.join("\n"));
}
