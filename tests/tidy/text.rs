//! Rules about what is written on a line: words, columns, lengths of functions and files.

use crate::Finding;
use crate::finding;
use crate::layers::is_pure;
use crate::source::{Source, find_word};

/// Longest file, in lines.
const FILE_LINES_MAX: usize = 700;
/// Longest function: line of its closing brace minus line of its `fn`.
const FUNCTION_LINES_MAX: usize = 70;
/// Widest line, in columns.
const COLUMNS_MAX: usize = 100;

/// Where a word is refused.
#[derive(Clone, Copy)]
enum Place {
    /// Everywhere, tests included.
    Anywhere,
    /// In `src/`, tests included, except `sys/` and `capi/`.
    OutsideSys,
    /// In `src/` outside tests.
    Program,
    /// In the pure modules, outside tests.
    Pure,
    /// In `engine/`, `proto/` and `wire/`, outside tests.
    HotPath,
}

/// What is refused where, and what to write instead.
const BANS: &[(&str, Place, &str)] = &[
    (
        "unsafe",
        Place::OutsideSys,
        "put the call into sys/ as a safe function and call that",
    ),
    (
        ".unwrap()",
        Place::Program,
        "return the error, or `expect` the invariant that rules it out",
    ),
    ("dyn ", Place::Pure, "a generic parameter over a trait"),
    (
        "format!",
        Place::Pure,
        "append the bytes to the buffer that the caller passes in",
    ),
    (
        ".to_string()",
        Place::Pure,
        "borrow it, or append its bytes to the caller's buffer",
    ),
    (".clone()", Place::HotPath, "borrow it, or move it"),
    (
        "use crate::{",
        Place::Anywhere,
        "one `use crate::<module>::...` line for each module",
    ),
    (concat!("dbg", "!"), Place::Anywhere, "take it out"),
    (concat!("todo", "!"), Place::Anywhere, "write it"),
    (concat!("unimplemented", "!"), Place::Anywhere, "write it"),
];

/// Words banned above that stand where they are for a reason: file, word, how often. The list may
/// only shrink: a number too high is a finding as much as one too low.
pub(crate) const ALLOWED: &[(&str, &str, usize)] = &[];

/// Functions longer than the limit: file, function, lines. The list may only shrink.
pub(crate) const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Words that mark unfinished work, in comments too.
const MARKS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X"),
];

fn applies(place: Place, source: &Source, at: usize) -> bool {
    let module = source.module();
    let program = module.is_some() && !source.test[at];
    match place {
        Place::Anywhere => true,
        Place::OutsideSys => module.is_some_and(|name| name != "sys" && name != "capi"),
        Place::Program => program,
        Place::Pure => program && module.is_some_and(is_pure),
        Place::HotPath => {
            program && module.is_some_and(|name| matches!(name, "engine" | "proto" | "wire"))
        }
    }
}

/// Refused words, less those that `allowed` admits.
pub(crate) fn bans(source: &Source, allowed: &[(&str, &str, usize)], out: &mut Vec<Finding>) {
    for (what, place, instead) in BANS {
        let hits: Vec<usize> = (0..source.code.len())
            .filter(|&at| applies(*place, source, at) && names(&source.code[at], what))
            .collect();
        let entry = allowed
            .iter()
            .find(|(path, word, _)| *path == source.path && word == what);
        let expected = entry.map_or(0, |(_, _, count)| *count);
        if hits.len() > expected {
            let say = format!("`{}`: {instead}", what.trim());
            out.extend(
                hits.iter()
                    .skip(expected)
                    .map(|&at| finding(source, at, &say)),
            );
        } else if hits.len() < expected {
            let say = format!(
                "ALLOWED in tests/tidy/text.rs: lower `{what}` to {}",
                hits.len()
            );
            out.push(finding(source, 0, say));
        }
    }
}

/// Whether the line has `what` with no name running into either end of it.
fn names(line: &str, what: &str) -> bool {
    let word = what.trim_end();
    if what.starts_with('.') || what.ends_with('{') {
        return line.contains(word);
    }
    find_word(line, word).is_some()
}

/// Functions over the limit, less those of the list `known`.
pub(crate) fn functions(source: &Source, known: &[(&str, &str, usize)], out: &mut Vec<Finding>) {
    let mut here: Vec<_> = known
        .iter()
        .filter(|(path, ..)| *path == source.path)
        .collect();
    for function in source.functions() {
        let lines = function.last - function.first;
        let name = &function.name;
        let entry = here.iter().position(|(_, known, _)| known == name);
        let limit = entry.map_or(FUNCTION_LINES_MAX, |at| here.remove(at).2);
        if lines > limit {
            let say = format!("`{name}` has {lines} lines, {limit} at most: move its parts out");
            out.push(finding(source, function.first, say));
        } else if entry.is_some() && lines < limit {
            let say = format!("LONG_FUNCTIONS in tests/tidy/text.rs: lower `{name}` to {lines}");
            out.push(finding(source, function.first, say));
        }
    }
    for (_, name, _) in here {
        let say = format!("LONG_FUNCTIONS in tests/tidy/text.rs: `{name}` is gone, take it out");
        out.push(finding(source, 0, say));
    }
}

/// The form of a Rust file: its opening comment, its length, its columns.
pub(crate) fn form(source: &Source, out: &mut Vec<Finding>) {
    let opening = source.lines.first().map_or("", String::as_str);
    if !opening.starts_with("//!") && !opening.starts_with("#![doc = include_str!") {
        let say = "file without an opening comment: begin with `//!` and say what lives here";
        out.push(finding(source, 0, say));
    }
    let count = source.lines.len() - usize::from(source.lines.last().is_some_and(String::is_empty));
    if count > FILE_LINES_MAX {
        let say = format!("{count} lines, {FILE_LINES_MAX} at most: find the seam and split it");
        out.push(finding(source, FILE_LINES_MAX, say));
    }
    for (at, line) in source.lines.iter().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            let say = format!("{columns} columns, {COLUMNS_MAX} at most: break the line");
            out.push(finding(source, at, say));
        }
    }
}

/// What holds for every text file that is ours: no blanks at line ends, ASCII, no marks left; and
/// no tabs, where `tabs` does not admit them.
pub(crate) fn plain(path: &str, text: &str, tabs: bool, out: &mut Vec<Finding>) {
    for (at, line) in text.lines().enumerate() {
        let mut say = |what: String| {
            out.push(Finding {
                path: path.to_string(),
                line: at + 1,
                say: what,
            });
        };
        if line.ends_with([' ', '\t', '\r']) {
            say("blanks at the end of the line: take them out".to_string());
        }
        if !tabs && line.trim_end().contains('\t') {
            say("tab: indent with spaces, write `\\t` in a literal".to_string());
        }
        if let Some(c) = line.chars().find(|c| !c.is_ascii()) {
            say(format!(
                "`{c}` is not ASCII: write it in ASCII, or as an escape in a literal"
            ));
        }
        if let Some(mark) = MARKS.iter().find(|mark| find_word(line, mark).is_some()) {
            say(format!(
                "`{mark}`: do it now, or open an issue and say nothing here"
            ));
        }
    }
}
