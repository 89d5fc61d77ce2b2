//! Reads the sources and says where they leave the house style: import direction, impure names,
//! refused words, lengths, form, files that nothing compiles, links that lead nowhere. A finding
//! names the file, the line and what to write instead. The rules themselves are tested in
//! `tidy/tests.rs` with wrong text.

use std::fs;
use std::path::Path;

#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tests.rs"]
mod tests;
#[path = "tidy/text.rs"]
mod text;
#[path = "tidy/tree.rs"]
mod tree;

use source::Source;

/// Directories that hold nothing of ours, or a package with a style of its own.
const SKIPPED: &[&str] = &[
    "target",
    ".git",
    "node_modules",
    "__pycache__",
    "tools/bsload",
];

/// Where something is wrong, and what to write instead.
struct Finding {
    path: String,
    line: usize,
    say: String,
}

/// A finding on the line with index `at`.
fn finding(source: &Source, at: usize, say: impl Into<String>) -> Finding {
    Finding {
        path: source.path.clone(),
        line: at + 1,
        say: say.into(),
    }
}

/// Appends the paths of all files below `dir`, from the package's root.
fn walk(root: &Path, dir: &str, out: &mut Vec<String>) {
    let mut names: Vec<(String, bool)> = fs::read_dir(root.join(dir))
        .expect("directory can be read")
        .map(|entry| entry.expect("entry can be read"))
        .map(|entry| (entry.file_name().into_string(), entry.path().is_dir()))
        .map(|(name, is_dir)| (name.expect("names are UTF-8"), is_dir))
        .collect();
    names.sort();
    for (name, is_dir) in names {
        let path = if dir.is_empty() {
            name.clone()
        } else {
            format!("{dir}/{name}")
        };
        if SKIPPED.iter().any(|skip| *skip == name || *skip == path) {
            continue;
        }
        if is_dir {
            walk(root, &path, out);
        } else {
            out.push(path);
        }
    }
}

fn check_rust(sources: &[Source], found: &mut Vec<Finding>) {
    for source in sources {
        layers::check(source, found);
        text::bans(source, text::ALLOWED, found);
        text::functions(source, text::LONG_FUNCTIONS, found);
        text::form(source, found);
    }
    let listed = text::ALLOWED
        .iter()
        .chain(text::LONG_FUNCTIONS)
        .map(|(path, ..)| *path);
    for path in listed.filter(|path| sources.iter().all(|source| source.path != *path)) {
        let say = "listed as an exception in tests/tidy/text.rs and gone: take it out".to_string();
        found.push(Finding {
            path: path.to_string(),
            line: 1,
            say,
        });
    }
}

#[test]
fn sources_are_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    walk(root, "", &mut paths);
    let read = |path: &String| fs::read_to_string(root.join(path)).expect("file is UTF-8");

    let mut found = Vec::new();
    let is_text = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or("");
        let endings = [
            ".rs", ".md", ".py", ".js", ".sh", ".toml", ".c", ".h", ".service",
        ];
        name == "Makefile" || endings.iter().any(|ending| name.ends_with(ending))
    };
    for path in paths.iter().filter(is_text) {
        text::plain(path, &read(path), path.ends_with("Makefile"), &mut found);
    }
    for path in paths.iter().filter(|path| path.ends_with(".md")) {
        tree::links(
            path,
            &read(path),
            |target| root.join(target).exists(),
            &mut found,
        );
    }
    let rust = paths.iter().filter(|path| path.ends_with(".rs"));
    let sources: Vec<Source> = rust.map(|path| Source::new(path, &read(path))).collect();
    check_rust(&sources, &mut found);
    tree::unlisted(&read(&"Cargo.toml".to_string()), &sources, &mut found);

    let lines: Vec<String> = found
        .iter()
        .map(|one| format!("{}:{}: {}", one.path, one.line, one.say))
        .collect();
    assert!(
        found.is_empty(),
        "{} findings\n{}\n",
        found.len(),
        lines.join("\n")
    );
}
