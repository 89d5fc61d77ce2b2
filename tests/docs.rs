//! Reads the tables of `docs/` and says where they are not true: a row without a test or a reason,
//! a test that does not exist, a command, flag, reply, key or requirement without a row.

#[path = "../ctests/scan.rs"]
mod scan;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use beanshard::proto::command::Kind;

const COMPATIBILITY: &str = "docs/compatibility.md";
const REQUIREMENTS: &str = "docs/requirements.md";

/// Words of replies, each of which needs a row.
const REPLIES: &[&str] = &[
    "INSERTED",
    "BURIED",
    "EXPECTED_CRLF",
    "JOB_TOO_BIG",
    "DRAINING",
    "OUT_OF_MEMORY",
    "BAD_FORMAT",
    "UNKNOWN_COMMAND",
    "INTERNAL_ERROR",
    "USING",
    "RESERVED",
    "DEADLINE_SOON",
    "TIMED_OUT",
    "DELETED",
    "NOT_FOUND",
    "RELEASED",
    "TOUCHED",
    "KICKED",
    "FOUND",
    "WATCHING",
    "NOT_IGNORED",
    "OK",
    "PAUSED",
];

const SIGNALS: &[&str] = &["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGPIPE"];

const VARIABLES: &[&str] = &["LISTEN_PID", "LISTEN_FDS", "NOTIFY_SOCKET", "BEANSHARD_LOG"];

/// Groups of requirements with the number of the last in each.
const GROUPS: &[(&str, u32)] = &[
    ("D", 7),
    ("R3.", 15),
    ("A3.", 7),
    ("R4.", 7),
    ("C4.", 6),
    ("S4.", 5),
    ("A4.", 7),
];

/// Transcripts that list all keys of a statistics reply.
const KEYS: &[&str] = &["stats.txt", "stats-tube.txt", "stats-job.txt"];

/// A row of a table that has a column `test`.
struct Row {
    place: String,
    /// The heading above it.
    section: String,
    /// The first cell.
    subject: String,
    /// The last cell but one: in the table of behaviours what the sharded mode does.
    sharded: String,
    /// The cell under `test`.
    test: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    Some(inside.split('|').map(str::trim).collect())
}

/// The rows of all tables whose last column is `test`, and what is wrong with their form.
fn rows(path: &str, text: &str, found: &mut Vec<String>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut width = None;
    let mut in_table = false;
    let mut section = "";
    for (at, line) in text.lines().enumerate() {
        section = line.strip_prefix("## ").unwrap_or(section);
        let Some(cells) = cells(line) else {
            in_table = false;
            continue;
        };
        if !in_table {
            in_table = true;
            width = (cells.last() == Some(&"test")).then_some(cells.len());
            continue;
        }
        let Some(width) = width else { continue };
        let place = format!("{path}:{}", at + 1);
        if cells.len() != width {
            found.push(format!("{place}: {} cells, not {width}", cells.len()));
        } else if !cells[0].starts_with("---") {
            rows.push(Row {
                place,
                section: section.to_string(),
                subject: cells[0].to_string(),
                sharded: cells[width - 2].to_string(),
                test: cells[width - 1].to_string(),
            });
        }
    }
    rows
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether the cell says `none` with a reason, or lists tests that `exists` knows.
fn check_test(row: &Row, exists: impl Fn(&str) -> bool, found: &mut Vec<String>) {
    let place = &row.place;
    if let Some(reason) = row.test.strip_prefix("none") {
        if reason.strip_prefix(": ").is_none_or(str::is_empty) {
            found.push(format!("{place}: `none` without a reason"));
        }
        return;
    }
    for part in row.test.split(", ") {
        let name = part
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix('`'));
        match name {
            None => found.push(format!("{place}: `{part}` is no name between backquotes")),
            Some(name) if !exists(name) => found.push(format!("{place}: there is no `{name}`")),
            Some(_) => {}
        }
    }
}

/// Whether the test of this name runs in the sharded mode as well, or shows what comes before a
/// mode is chosen.
fn is_for_sharded(name: &str, excepted: &str) -> bool {
    let targets = [
        "keeping::",
        "routing::",
        "supervisor::",
        "cli::tests::",
        "server::command_line::",
        "make interop",
    ];
    let is_case = name.starts_with(|first: char| first.is_ascii_digit());
    if name.ends_with(".txt") {
        let text = read(&format!("legacy-tests/{name}"));
        return !text.lines().any(|line| line.starts_with("sharded: no"));
    }
    if is_case {
        return !excepted.lines().any(|line| line.starts_with(name));
    }
    targets.iter().any(|target| name.starts_with(target))
}

/// Whether there is a test of this name, see the head of `docs/compatibility.md`.
fn is_test(name: &str) -> bool {
    if let Some(target) = name.strip_prefix("make ") {
        return read("Makefile").contains(&format!("\n{target}:"));
    }
    if let Some(name) = name.strip_prefix("ctests::") {
        return is_c_test(name);
    }
    if name.contains("::") {
        return is_function(name);
    }
    let is_file = |path: String| root().join(path).is_file();
    if name.ends_with(".txt") {
        return is_file(format!("legacy-tests/{name}"));
    }
    let is_case = name.starts_with(|first: char| first.is_ascii_digit());
    is_case && is_file(format!("tests/cases/{name}.py"))
}

/// Whether a test or a benchmark in C has this name.
fn is_c_test(name: &str) -> bool {
    let names = [format!("cttest_{name}"), format!("ctbench_{name}")];
    fs::read_dir(root().join("ctests"))
        .expect("folder can be read")
        .map(|entry| entry.expect("entry can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .map(|path| fs::read_to_string(path).expect("file is text"))
        .any(|text| {
            scan::defined(&text)
                .iter()
                .any(|found| names.contains(found))
        })
}

/// Whether `target::module::name` or `module::name` is a test function. A module may be a file of
/// its own or stand in the file of its parent.
fn is_function(name: &str) -> bool {
    let mut parts: Vec<&str> = name.split("::").collect();
    let function = parts.pop().expect("there is one");
    let is_target = |first: &str| {
        let files = [
            format!("tests/{first}.rs"),
            format!("tests/{first}/main.rs"),
        ];
        files.iter().any(|file| root().join(file).is_file())
    };
    let is_target = parts.first().is_some_and(|first| is_target(first));
    let base = root().join(if is_target { "tests" } else { "src" });
    let inline = &parts[..parts.len() - 1];
    files_of(&base, &parts)
        .into_iter()
        .chain(files_of(&base, inline))
        .filter_map(|path| fs::read_to_string(path).ok())
        .any(|text| has_test(&text, function))
}

fn files_of(base: &Path, modules: &[&str]) -> Vec<PathBuf> {
    let path = modules
        .iter()
        .fold(base.to_owned(), |path, part| path.join(part));
    let inside = ["mod.rs", "main.rs"].map(|file| path.join(file));
    [vec![path.with_extension("rs")], inside.to_vec()].concat()
}

/// Whether the text has a function of this name with the attribute of a test.
fn has_test(text: &str, function: &str) -> bool {
    let start = format!("fn {function}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |at: usize| {
        lines[at].starts_with(&start)
            && lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("#["))
                .any(|line| *line == "#[test]")
    };
    (0..lines.len()).any(is_it)
}

/// Flags in the help text: what stands on each line before the explanation.
fn flags(help: &str) -> Vec<String> {
    help.lines()
        .filter(|line| line.trim_start().starts_with('-'))
        .flat_map(|line| line.split([' ', ',']).take(8))
        .filter(|word| word.starts_with('-'))
        .map(str::to_string)
        .collect()
}

/// Says of each of `names` whether a row of one of the sections has it between backquotes in its
/// first cell, alone or with words behind it.
fn check_subjects<'a>(
    rows: &[Row],
    sections: &[&str],
    names: impl IntoIterator<Item = &'a str>,
    found: &mut Vec<String>,
) {
    for name in names {
        let is_it = |text: &str| text.split(' ').any(|word| word == name);
        let mut there = rows.iter().filter(|row| sections.contains(&&*row.section));
        if !there.any(|row| quoted(&row.subject).any(is_it)) {
            found.push(format!(
                "{COMPATIBILITY}: no row for `{name}` in {sections:?}"
            ));
        }
    }
}

// A4.7
#[test]
fn what_the_sharded_mode_does_the_same_is_shown_in_it() {
    let mut found = Vec::new();
    let excepted = read("tests/cases/exceptions.txt");
    for row in rows(COMPATIBILITY, &read(COMPATIBILITY), &mut found) {
        let claims = row.sharded.starts_with("same");
        if claims && !quoted(&row.test).any(|name| is_for_sharded(name, &excepted)) {
            found.push(format!("{}: no test of the row is sharded", row.place));
        }
        if row.sharded == "not yet" {
            found.push(format!("{}: say what there is by now", row.place));
        }
    }
    report(found);
}

fn report(found: Vec<String>) {
    let count = found.len();
    assert!(count == 0, "{count} findings\n{}\n", found.join("\n"));
}

#[test]
fn every_row_names_tests_that_exist() {
    let mut found = Vec::new();
    for path in [COMPATIBILITY, REQUIREMENTS] {
        let rows = rows(path, &read(path), &mut found);
        assert!(rows.len() > 50, "{path} has {} rows", rows.len());
        for row in rows {
            check_test(&row, is_test, &mut found);
        }
    }
    report(found);
}

#[test]
fn files_that_the_documents_name_exist() {
    let mut found = Vec::new();
    for path in [COMPATIBILITY, REQUIREMENTS] {
        let text = read(path);
        let names = text.lines().flat_map(quoted);
        for name in names.filter(|name| !name.contains([' ', '*'])) {
            let dirs = ["src/", "tests/", "legacy-tests/", "packaging/"];
            let is_path = dirs.iter().any(|dir| name.starts_with(dir));
            if is_path && !root().join(name).exists() {
                found.push(format!("{path}: there is no `{name}`"));
            }
        }
    }
    report(found);
}

#[test]
fn everything_a_client_or_user_can_meet_has_a_row() {
    let mut found = Vec::new();
    let rows = rows(COMPATIBILITY, &read(COMPATIBILITY), &mut found);
    let commands = Kind::ALL.iter().map(|kind| kind.prefix().trim_end());
    check_subjects(&rows, &["Commands"], commands, &mut found);
    check_subjects(&rows, &["Commands"], REPLIES.iter().copied(), &mut found);
    check_subjects(&rows, &["Signals"], SIGNALS.iter().copied(), &mut found);
    check_subjects(
        &rows,
        &["Environment"],
        VARIABLES.iter().copied(),
        &mut found,
    );
    for transcript in KEYS {
        let text = read(&format!("legacy-tests/{transcript}"));
        let data = text.lines().filter_map(|line| line.split_once("| "));
        let keys = data.filter_map(|(_, row)| Some(row.split_once(": ")?.0));
        check_subjects(&rows, &["Statistics"], keys, &mut found);
    }
    let help = Command::new(env!("CARGO_BIN_EXE_beanshard"))
        .arg("--help")
        .output();
    let help = String::from_utf8(help.expect("ours runs").stdout).expect("text");
    let flags = flags(&help);
    assert!(flags.len() > 20, "{flags:?}");
    check_subjects(
        &rows,
        &["Options"],
        flags.iter().map(String::as_str),
        &mut found,
    );
    report(found);
}

#[test]
fn every_quirk_and_bug_has_a_row() {
    let mut found = Vec::new();
    let rows = rows(COMPATIBILITY, &read(COMPATIBILITY), &mut found);
    let quirks = (1..=22).map(|number| format!("K{number}"));
    let bugs = (1..=33).map(|number| format!("Q{number}"));
    for id in quirks.chain(bugs).chain(["Q5b".to_string()]) {
        let start = format!("**{id}** ");
        let count = rows
            .iter()
            .filter(|row| row.subject.starts_with(&start))
            .count();
        if count != 1 {
            found.push(format!("{COMPATIBILITY}: {count} rows for {id}"));
        }
    }
    report(found);
}

#[test]
fn every_requirement_has_a_row() {
    let mut found = Vec::new();
    let rows = rows(REQUIREMENTS, &read(REQUIREMENTS), &mut found);
    for (group, last) in GROUPS {
        for id in (1..=*last).map(|number| format!("{group}{number}")) {
            let count = rows.iter().filter(|row| row.subject == id).count();
            if count != 1 {
                found.push(format!("{REQUIREMENTS}: {count} rows for {id}"));
            }
        }
    }
    report(found);
}

#[test]
fn what_is_wrong_with_a_row_is_said() {
    let said = |test: &str| {
        let mut found = Vec::new();
        let table = format!("| a | test |\n| --- | --- |\n| `x` | {test} |\n");
        for row in rows("d.md", &table, &mut found) {
            check_test(&row, |name| name == "known", &mut found);
        }
        found.join("; ")
    };
    assert_eq!(said("`known`"), "");
    assert_eq!(said("`known`, `known`"), "");
    assert_eq!(said("none: needs the binlog"), "");
    assert_eq!(said("none"), "d.md:3: `none` without a reason");
    assert_eq!(said("`known`, `lost`"), "d.md:3: there is no `lost`");
    assert_eq!(
        said("pending"),
        "d.md:3: `pending` is no name between backquotes"
    );
    assert_eq!(said(""), "d.md:3: `` is no name between backquotes");
    assert_eq!(said("`known` | `known`"), "d.md:3: 3 cells, not 2");
}

#[test]
fn names_are_looked_up() {
    for name in [
        "put.txt",
        "testserv/pause.txt",
        "04_refused_body_must_not_run",
        "make check",
        "docs::names_are_looked_up",
        "cli::tests::optp",
        "engine::tests::a_reservation_ends_at_its_deadline",
        "proto::line::tests::the_first_pair_is_found",
        "tidy::sources_are_tidy",
        "ctests::heap_priority",
        "ctests::2cmdpacket",
        "ctests::heap_insert",
    ] {
        assert!(is_test(name), "{name}");
    }
    for name in [
        "",
        "put",
        "no-such.txt",
        "04_no_such",
        "make nothing",
        "docs::is_test",
        "docs::nothing",
        "cli::nothing::optp",
        "nothing::tests::optp",
        "ctests::main",
        "ctests::heap",
    ] {
        assert!(!is_test(name), "{name}");
    }
}

#[test]
fn flags_are_read_from_the_help() {
    let help =
        "Use: x [OPTIONS]\n\n -b, --binlog DIR   keep -this\n     --legacy       a-b\n -c     no\n";
    assert_eq!(flags(help), ["-b", "--binlog", "--legacy", "-c"]);
}
