//! Rules about the tree as a whole: no Rust file that nothing compiles, no link that leads nowhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::source::Source;

/// Rust files under `src/`, `tests/`, `legacy-tests/` or `ctests/` that no target of the manifest
/// reaches by `mod` lines: they would lie there and test nothing.
pub(crate) fn unlisted(manifest: &str, sources: &[Source], out: &mut Vec<Finding>) {
    let by_path: BTreeMap<&str, &Source> = sources
        .iter()
        .map(|source| (source.path.as_str(), source))
        .collect();
    let mut reached = BTreeSet::new();
    let mut next = targets(manifest);
    while let Some(path) = next.pop() {
        let Some(source) = by_path.get(path.as_str()) else {
            continue;
        };
        if reached.insert(path) {
            next.extend(children(source));
        }
    }
    for source in sources {
        let ours = ["src/", "tests/", "legacy-tests/", "ctests/"]
            .iter()
            .any(|t| source.path.starts_with(t));
        if ours && !reached.contains(&source.path) {
            let say = "no target compiles this file: name it in a `mod` line of its parent, or in \
                       a [[test]] of Cargo.toml";
            out.push(Finding {
                path: source.path.clone(),
                line: 1,
                say: say.to_string(),
            });
        }
    }
}

/// The root file of every target: its `path`, else `tests/<name>.rs`.
fn targets(manifest: &str) -> Vec<String> {
    let always = ["build.rs", "src/lib.rs", "src/main.rs"];
    let mut found = always.map(str::to_string).to_vec();
    let mut in_test = false;
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            in_test = line == "[[test]]";
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let value = value.trim().trim_matches('"');
        match key.trim() {
            "name" if in_test => found.push(format!("tests/{value}.rs")),
            "path" if value.ends_with(".rs") => found.push(value.to_string()),
            _ => {}
        }
    }
    found
}

/// Where the files that the `mod` lines of `source` name can be. All places that the language has
/// are given; those where no file is do no harm.
fn children(source: &Source) -> Vec<String> {
    let (dir, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let mut found = Vec::new();
    for (code, line) in source.code.iter().zip(&source.lines) {
        if code.trim_start().starts_with("#[path") {
            let quoted = line.split('"').nth(1).unwrap_or("");
            found.push(resolve(dir, quoted));
        }
        let Some(name) = mod_line(code) else { continue };
        for place in [dir.to_string(), format!("{dir}/{stem}")] {
            found.push(format!("{place}/{name}.rs"));
            found.push(format!("{place}/{name}/mod.rs"));
        }
    }
    found
}

/// `file`, which may begin with `../`, as seen from `dir`.
fn resolve(mut dir: &str, mut file: &str) -> String {
    while let Some(rest) = file.strip_prefix("../") {
        file = rest;
        dir = dir.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    if dir.is_empty() {
        file.to_string()
    } else {
        format!("{dir}/{file}")
    }
}

/// `name` of a line `[pub...] mod name;`.
fn mod_line(code: &str) -> Option<&str> {
    let head = code.trim().strip_suffix(';')?;
    let (before, name) = head.rsplit_once(' ').unwrap_or(("", head));
    (before == "mod" || before.ends_with(" mod")).then_some(name)
}

/// Relative links of a Markdown file whose target `exists` does not know.
pub(crate) fn links(path: &str, text: &str, exists: impl Fn(&str) -> bool, out: &mut Vec<Finding>) {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    let mut fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets_of(line) {
            let file = target.split('#').next().unwrap_or("");
            let outside = file.contains("://") || file.starts_with("mailto:");
            let item = file.contains("::") || (path.starts_with("src/") && !file.contains('.'));
            if file.is_empty() || outside || item || exists(&join(dir, file)) {
                continue;
            }
            let say = format!("link to `{target}`, where nothing is: mend the path");
            out.push(Finding {
                path: path.to_string(),
                line: at + 1,
                say,
            });
        }
    }
}

/// Targets of `[text](target)` and of `[name]: target`, code spans left out.
fn targets_of(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (index, part) in line.split('`').enumerate() {
        if index % 2 == 1 {
            continue;
        }
        found.extend(
            part.split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next()),
        );
    }
    if let Some((_, target)) = line.split_once("]: ").filter(|_| line.starts_with('[')) {
        found.push(target.trim());
    }
    found
}

/// `file` seen from `dir`, with `.` and `..` resolved.
fn join(dir: &str, file: &str) -> String {
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
