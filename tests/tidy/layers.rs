//! Which module may name which: the layers of `src/`, and what the pure ones must not know.

use crate::Finding;
use crate::finding;
use crate::source::{Source, find_word, is_word};

/// A module of `src/` and what it may import, besides itself. An entry with a submodule
/// (`engine::op`) admits that one alone.
struct Module {
    name: &'static str,
    layer: u8,
    pure: bool,
    imports: &'static [&'static str],
}

const fn pure(name: &'static str, layer: u8, imports: &'static [&'static str]) -> Module {
    Module {
        name,
        layer,
        pure: true,
        imports,
    }
}

const fn shell(name: &'static str, layer: u8, imports: &'static [&'static str]) -> Module {
    Module {
        name,
        layer,
        pure: false,
        imports,
    }
}

/// Every module of `src/`, lowest layer first. A new module is entered here, with its layer, before
/// anything can import it.
const MODULES: &[Module] = &[
    pure("base", 0, &[]),
    pure("engine", 1, &["base"]),
    pure("proto", 1, &["base"]),
    pure(
        "wire",
        2,
        &["base", "engine::op", "engine::event", "engine::stats"],
    ),
    pure(
        "session",
        2,
        &[
            "base",
            "proto",
            "engine::op",
            "engine::event",
            "engine::stats",
            "engine::host",
        ],
    ),
    pure(
        "channel",
        3,
        &[
            "base",
            "wire",
            "session",
            "engine::op",
            "engine::event",
            "engine::host",
        ],
    ),
    shell("sys", 3, &["base"]),
    shell("net", 3, &["base", "sys"]),
    shell(
        "wal",
        3,
        &[
            "base",
            "engine::host",
            "engine::job",
            "engine::stats",
            "sys",
        ],
    ),
    shell(
        "data",
        4,
        &["base", "engine", "session::shards", "sys", "wal"],
    ),
    shell("logging", 4, &["base", "cli"]),
    shell("cli", 4, &["base", "net", "data"]),
    shell(
        "role",
        4,
        &[
            "base", "engine", "proto", "wire", "session", "channel", "sys", "net", "wal", "cli",
            "logging",
        ],
    ),
    shell("capi", 4, &["base", "engine", "sys", "net", "cli", "error"]),
    shell(
        "error",
        4,
        &["base", "wire", "sys", "net", "wal", "cli", "role", "data"],
    ),
];

/// What a pure module must not name, and where it belongs.
const IMPURE: &[(&str, &str)] = &[
    (
        "std::{",
        "one `use` line for each module of std, so that this test can read them",
    ),
    ("std::fs", "files belong to wal/ and sys/"),
    ("std::net", "sockets belong to net/"),
    (
        "std::io",
        "bytes come in as slices and go out into a buffer; I/O belongs to net/ and wal/",
    ),
    ("std::os", "descriptors belong to sys/"),
    ("std::env", "the environment is read by cli and main"),
    ("std::process", "processes belong to sys/ and role/"),
    ("std::thread", "threads belong to role/ and wal/"),
    ("Instant::now", "time is an argument: take `now: Nanos`"),
    ("SystemTime", "time is an argument: take `now: Nanos`"),
    ("libc", "system calls belong to sys/"),
    ("nix::", "system calls belong to sys/"),
    ("polling", "the event loop belongs to net/poller.rs"),
    ("socket2", "sockets belong to net/"),
    ("signal_hook", "signals belong to sys/signal.rs"),
    ("sd_notify", "readiness is announced by role/"),
    (
        "log::",
        "pure modules answer and do not log; the role that hears the answer logs",
    ),
];

/// Imports against the direction of the layers, and impure names in pure modules.
pub(crate) fn check(source: &Source, out: &mut Vec<Finding>) {
    let Some(name) = source
        .module()
        .filter(|name| !matches!(*name, "main" | "lib"))
    else {
        return;
    };
    let Some(module) = MODULES.iter().find(|module| module.name == name) else {
        let say = format!("module `{name}` has no layer: enter it in tests/tidy/layers.rs");
        return out.push(finding(source, 0, say));
    };
    for (at, line) in source.code.iter().enumerate() {
        if source.test[at] {
            continue;
        }
        check_imports(source, at, line, module, out);
        if module.pure {
            check_purity(source, at, line, out);
        }
    }
}

/// Whether the module is one of the five that know nothing of the machine.
pub(crate) fn is_pure(name: &str) -> bool {
    MODULES
        .iter()
        .any(|module| module.name == name && module.pure)
}

fn check_imports(source: &Source, at: usize, line: &str, module: &Module, out: &mut Vec<Finding>) {
    for (found, _) in line.match_indices("crate::") {
        if line[..found].ends_with(|c| is_word(c) || c == '$') {
            continue;
        }
        let path: Vec<&str> = line[found + "crate::".len()..]
            .splitn(3, "::")
            .map(word)
            .collect();
        let (target, inner) = (path[0], path.get(1).copied().unwrap_or(""));
        if target.is_empty() || target == module.name || allows(module, target, inner) {
            continue;
        }
        out.push(finding(source, at, refusal(module, target)));
    }
    let own_root = source.path == format!("src/{}.rs", module.name)
        || source.path == format!("src/{}/mod.rs", module.name);
    if line.contains("super::super::") || (own_root && find_word(line, "super").is_some()) {
        let say = "path climbs out of its module: write `crate::<module>::...`";
        out.push(finding(source, at, say));
    }
}

/// The name at the start of `text`.
fn word(text: &str) -> &str {
    text.split(|c| !is_word(c)).next().unwrap_or("")
}

fn allows(module: &Module, target: &str, inner: &str) -> bool {
    module
        .imports
        .iter()
        .any(|entry| match entry.split_once("::") {
            Some((outer, only)) => outer == target && only == inner,
            None => *entry == target,
        })
}

fn refusal(module: &Module, target: &str) -> String {
    let own = module.name;
    let parts: Vec<&str> = module
        .imports
        .iter()
        .copied()
        .filter(|entry| {
            entry
                .split_once("::")
                .is_some_and(|(outer, _)| outer == target)
        })
        .collect();
    if !parts.is_empty() {
        return format!(
            "`{own}` may import {} alone: name one of them in full",
            parts.join(", ")
        );
    }
    match MODULES.iter().find(|module| module.name == target) {
        None => format!("`crate::{target}` is no module: name the module that defines it"),
        Some(other) => format!(
            "`{own}` (layer {}) may not import `{target}` (layer {}): pass what is needed as an \
             argument, or move it to a module that both may import",
            module.layer, other.layer
        ),
    }
}

fn check_purity(source: &Source, at: usize, line: &str, out: &mut Vec<Finding>) {
    for (name, instead) in IMPURE {
        let hit = line.match_indices(name).any(|(found, _)| {
            let before = line[..found].chars().next_back();
            let after = line[found + name.len()..].chars().next();
            let open = name.ends_with([':', '{']) || !after.is_some_and(is_word);
            open && !before.is_some_and(|c| is_word(c) || c == ':')
        });
        if hit {
            let name = name.trim_end_matches([':', '{']);
            out.push(finding(
                source,
                at,
                format!("`{name}` in a pure module: {instead}"),
            ));
        }
    }
}
