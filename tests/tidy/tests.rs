//! The rules, fed with wrong text: each must find what it is there for, and nothing in right text.

use crate::Finding;
use crate::layers;
use crate::source::Source;
use crate::text;
use crate::tree;

/// All that the rules for one Rust file say about `code`, as `line: message`.
fn findings(path: &str, code: &str) -> Vec<String> {
    let source = Source::new(path, code);
    let mut found = Vec::new();
    layers::check(&source, &mut found);
    text::bans(&source, &[], &mut found);
    text::functions(&source, &[], &mut found);
    text::form(&source, &mut found);
    text::plain(path, code, false, &mut found);
    found
        .iter()
        .map(|one| format!("{}: {}", one.line, one.say))
        .collect()
}

/// The file `path` with `line` behind its opening comment gives one finding, which has `part`.
fn refused(path: &str, line: &str, part: &str) {
    let found = findings(path, &format!("//! Test.\n{line}\n"));
    assert!(
        found.len() == 1 && found[0].contains(part),
        "{path}: {line:?} gave {found:?}"
    );
    assert!(found[0].starts_with("2: "), "{found:?}");
}

fn accepted(path: &str, line: &str) {
    let found = findings(path, &format!("//! Test.\n{line}\n"));
    assert!(found.is_empty(), "{path}: {line:?} gave {found:?}");
}

#[test]
fn import_upwards_is_found() {
    refused(
        "src/engine/mod.rs",
        "use crate::net::poller::Poller;",
        "may not import `net`",
    );
    refused(
        "src/base/ids.rs",
        "use crate::engine::job::Job;",
        "may not import `engine`",
    );
    refused(
        "src/net/link.rs",
        "fn f(x: crate::wire::Header) {}",
        "may not import `wire`",
    );
    refused(
        "src/wire/op.rs",
        "use crate::engine::job::Job;",
        "engine::op, engine::event",
    );
    refused(
        "src/wire/op.rs",
        "use crate::engine::{op::Op, job::Job};",
        "name one of them",
    );
    refused(
        "src/engine/job.rs",
        "use super::super::net::Poller;",
        "climbs out",
    );
    refused("src/proto.rs", "use super::engine::Engine;", "climbs out");
    refused("src/engine/mod.rs", "use crate::Thing;", "is no module");
    refused(
        "src/wire/op.rs",
        "use crate::{engine::op::Op};",
        "one `use crate::<module>",
    );
}

#[test]
fn import_downwards_is_right() {
    accepted("src/wire/op.rs", "use crate::engine::op::Op;");
    accepted("src/wire/op.rs", "use crate::wire::cursor::Cursor;");
    accepted(
        "src/role/legacy.rs",
        "use crate::engine::{op::Op, job::Job};",
    );
    accepted("src/engine/job.rs", "use super::Engine;");
    accepted("src/engine/job.rs", "// as in crate::net::poller");
    accepted("src/main.rs", "use beanshard::role::legacy;");
    accepted(
        "src/engine/mod.rs",
        "#[cfg(test)]\nmod tests {\n    use crate::net::Link;\n}",
    );
}

#[test]
fn module_without_a_layer_is_found() {
    let found = findings("src/queue/mod.rs", "//! Test.\n");
    assert!(found[0].contains("has no layer"), "{found:?}");
}

#[test]
fn impure_names_are_found() {
    refused(
        "src/engine/mod.rs",
        "use std::time::Instant; fn f() { Instant::now(); }",
        "`now: ",
    );
    refused("src/session/mod.rs", "use std::io;", "I/O belongs to");
    refused("src/proto/line.rs", "use std::{fs, mem};", "one `use` line");
    refused(
        "src/base/time.rs",
        "fn f() { libc::getpid(); }",
        "belong to sys/",
    );
    refused(
        "src/wire/op.rs",
        "fn f() { log::warn!(\"x\"); }",
        "do not log",
    );
    accepted("src/net/link.rs", "use std::io;");
    accepted(
        "src/proto/line.rs",
        "use std::mem; fn f() { catalog::x(); crate::proto::log::x(); }",
    );
}

#[test]
fn refused_words_are_found() {
    refused("src/engine/mod.rs", "fn f() { unsafe { g() } }", "sys/");
    refused("src/role/legacy.rs", "fn f() { x.unwrap(); }", "expect");
    refused("src/engine/mod.rs", "fn f(x: &dyn Host) {}", "generic");
    refused("src/proto/reply.rs", "fn f() { format!(\"x\"); }", "append");
    refused("src/session/mod.rs", "fn f() { x.to_string(); }", "append");
    refused("src/wire/op.rs", "fn f() { x.clone(); }", "borrow");
    refused(
        "tests/server.rs",
        concat!("fn f() { dbg", "!(1); }"),
        "take it out",
    );
    refused("src/cli.rs", concat!("fn f() { todo", "!(); }"), "write it");
    refused("src/cli.rs", concat!("// TO", "DO: later"), "do it now");
}

#[test]
fn words_in_their_place_are_right() {
    accepted("src/sys/fd.rs", "fn f() { unsafe { g() } }");
    accepted(
        "src/role/legacy.rs",
        "fn f(x: &dyn Host) { format!(\"{x}\").to_string(); }",
    );
    accepted("src/session/table/tests/room.rs", "fn f() { x.unwrap(); }");
    accepted("src/session/mod.rs", "fn f() { x.clone(); }");
    accepted(
        "src/engine/mod.rs",
        "#[cfg(test)]\nmod tests {\n    fn f() { x.unwrap(); }\n}",
    );
    accepted(
        "src/engine/mod.rs",
        "fn f() { g(\"unsafe .unwrap()\", r#\"dyn \"x\" \"#, '\"'); }",
    );
    accepted(
        "src/engine/mod.rs",
        "/* unsafe /* .unwrap() */ dyn */ fn f<'a>(x: &'a str) {}",
    );
    accepted(
        "src/engine/mod.rs",
        "fn dynamic() { information!(); let unsafe_count = 1; }",
    );
}

#[test]
fn code_behind_a_test_module_is_program_again() {
    let text = "//! Test.\n#[cfg(test)]\nuse std::io;\nfn f() {\n    x.unwrap();\n}\n";
    let found = findings("src/role/legacy.rs", text);
    assert!(found.len() == 1 && found[0].starts_with("5: "), "{found:?}");
}

#[test]
fn form_is_checked() {
    let found = findings("src/cli.rs", "use std::mem;\n");
    assert!(found[0].starts_with("1: file without"), "{found:?}");
    refused(
        "src/cli.rs",
        &format!("// {}", "x".repeat(98)),
        "101 columns",
    );
    refused("src/cli.rs", "fn f() {} ", "blanks at the end");
    refused("src/cli.rs", "\tfn f() {}", "tab");
    refused("src/cli.rs", "// \u{fc}", "not ASCII");
    let long = format!("//! Test.\n{}", "\n".repeat(700));
    assert!(findings("src/cli.rs", &long)[0].starts_with("701: 701 lines"));
    accepted("src/cli.rs", &"\n".repeat(698));
}

#[test]
fn long_function_is_found() {
    let body = |lines: usize| format!("fn long(\n) {{\n{}}}", "    x();\n".repeat(lines));
    accepted("src/cli.rs", &body(68));
    refused("src/cli.rs", &body(69), "`long` has 71 lines, 70 at most");
}

/// What the two lists of exceptions make of `code`.
fn with_lists(code: &str, words: usize, lines: usize) -> Vec<String> {
    let source = Source::new("src/engine/a.rs", code);
    let mut found = Vec::new();
    text::bans(
        &source,
        &[("src/engine/a.rs", ".clone()", words)],
        &mut found,
    );
    text::functions(&source, &[("src/engine/a.rs", "long", lines)], &mut found);
    found.into_iter().map(|one| one.say).collect()
}

#[test]
fn exceptions_may_only_shrink() {
    let code = format!("fn long() {{\n{}}}\n", "    x.clone();\n".repeat(80));
    assert!(with_lists(&code, 80, 81).is_empty());
    assert!(with_lists(&code, 79, 81)[0].contains("borrow"));
    assert!(with_lists(&code, 81, 81)[0].contains("lower `.clone()` to 80"));
    assert!(with_lists(&code, 80, 80)[0].contains("80 at most"));
    assert!(with_lists(&code, 80, 82)[0].contains("lower `long` to 81"));
    assert!(with_lists("fn short() {}\n", 0, 82)[0].contains("take it out"));
}

#[test]
fn file_that_nothing_compiles_is_found() {
    let manifest =
        "[[test]]\nname = \"a\"\n[[test]]\nname = \"l\"\npath = \"legacy-tests/main.rs\"\n";
    let sources = [
        Source::new("src/lib.rs", "//! Test.\npub mod base;\n"),
        Source::new("src/base/mod.rs", "//! Test.\n"),
        Source::new("src/base/lost.rs", "//! Test.\n"),
        Source::new("tests/a.rs", "//! Test.\n#[path = \"a/b.rs\"]\nmod b;\n"),
        Source::new("tests/a/b.rs", "//! Test.\n"),
        Source::new("tests/a/c.rs", "//! Test.\n"),
        Source::new("tests/d.rs", "//! Test.\n"),
        Source::new("legacy-tests/main.rs", "//! Test.\nmod e;\n"),
        Source::new("legacy-tests/e.rs", "//! Test.\n"),
    ];
    let mut found: Vec<Finding> = Vec::new();
    tree::unlisted(manifest, &sources, &mut found);
    let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["src/base/lost.rs", "tests/a/c.rs", "tests/d.rs"]);
}

#[test]
fn broken_link_is_found() {
    let text = "[a](there.md) [b](gone.md#x) `[c](code.md)` [d](https://x.y)\n\
                ```\n[e](fenced.md)\n```\n[f](../up.md) [g](#here)\n[h]: lost.md\n";
    let mut found: Vec<Finding> = Vec::new();
    let there = ["docs/there.md", "up.md"];
    tree::links(
        "docs/page.md",
        text,
        |path| there.contains(&path),
        &mut found,
    );
    let lines: Vec<(usize, bool)> = found
        .iter()
        .map(|one| (one.line, one.say.contains("mend the path")))
        .collect();
    assert_eq!(lines, [(1, true), (6, true)]);
}
