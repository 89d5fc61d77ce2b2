//! Compiles the tests in C and writes down which there are, for `main.rs` to include.
//!
//! Ours are every `test*.c` of this folder. Those in the folder that `CTESTS_DIR` names come beside
//! them: what is compiled of it are copies, so that a header of ours is found before one of the
//! same name that lies there, and its tests get another name, because both may have one of the
//! same. Nothing there has to be edited.

#[path = "scan.rs"]
mod scan;

use std::collections::BTreeSet;
use std::env;
use std::fmt::{Display, Write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use cc::Build;

/// What names of tests and of benchmarks begin with.
const PREFIXES: [&str; 2] = ["cttest_", "ctbench_"];
/// What stands behind that in the names of those from elsewhere.
const EXTERNAL: &str = "external_";
/// Names the folder with more tests.
const DIR_VARIABLE: &str = "CTESTS_DIR";

/// Test or benchmark: as C and as a person knows it.
struct Entry {
    symbol: String,
    name: String,
}

pub(crate) fn main() {
    for path in ["ctests", "ctests/build.rs", "ctests/scan.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for name in [DIR_VARIABLE, "CC", "CFLAGS", "AR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    demand_compiler();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut objects = Vec::new();
    let mut entries = ours(&mut objects);
    if let Some(dir) = env::var_os(DIR_VARIABLE).filter(|dir| !dir.is_empty()) {
        println!("cargo::rerun-if-changed={}", dir.display());
        external(Path::new(&dir), &out, &mut objects, &mut entries);
    }
    let mut archive = compiler();
    archive.objects(&objects);
    done(
        archive.try_compile("beanshard_ctests"),
        "libbeanshard_ctests.a",
    );
    println!("cargo::rustc-link-search=native={}", out.display());
    fs::write(out.join("ctests.rs"), table(&entries)).unwrap_or_else(|error| fail(error));
    preload(&out);
}

/// The settings of every file.
fn compiler() -> Build {
    let mut build = Build::new();
    build.include("ctests/include").cargo_metadata(false);
    build
}

/// Compiles our tests and what they stand on.
fn ours(objects: &mut Vec<PathBuf>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for path in files_in(Path::new("ctests"), "c") {
        let name = name_of(&path);
        if matches!(name.as_str(), "layout.c" | "preload.c") {
            continue;
        }
        let mut build = compiler();
        build
            .warnings(true)
            .extra_warnings(true)
            .warnings_into_errors(true);
        objects.extend(compile(&mut build, &path));
        for symbol in tests_in(&compiler(), &path) {
            let name = symbol
                .replacen("cttest_", "", 1)
                .replacen("ctbench_", "", 1);
            entries.push(Entry { symbol, name });
        }
    }
    entries
}

/// Compiles the tests of another folder, and those of its other files that can be of use to them.
fn external(dir: &Path, out: &Path, objects: &mut Vec<PathBuf>, entries: &mut Vec<Entry>) {
    let copies = Copies::make(dir, &out.join("external"));
    let interface = interface();
    let (mut tests, mut others) = (Vec::new(), Vec::new());
    for path in files_in(dir, "c") {
        let copy = copies.add(&path);
        let found = tests_in(copies.compiler(dir).cargo_warnings(false), &copy);
        if found.is_empty() {
            others.push(copy)
        } else {
            tests.push((copy, found))
        }
    }
    if tests.is_empty() {
        fail(format_args!(
            "{DIR_VARIABLE}={}: no C tests there",
            dir.display()
        ));
    }
    for (copy, found) in tests {
        let mut build = copies.compiler(dir);
        for symbol in found {
            let (prefix, name) = symbol.split_at(symbol.find('_').map_or(0, |at| at + 1));
            let renamed = format!("{prefix}{EXTERNAL}{name}");
            build.define(&symbol, renamed.as_str());
            entries.push(Entry {
                symbol: renamed,
                name: format!("external::{name}"),
            });
        }
        objects.extend(compile(&mut build, &copy));
    }
    for copy in others {
        let defined = scan::defined(&text_of(&copy));
        // The file of another library with this interface, or a program of its own.
        let is_foreign = |name: &String| interface.contains(name) || name == "main";
        if defined.iter().any(is_foreign) {
            continue;
        }
        let mut build = copies.compiler(dir);
        build.cargo_warnings(false).file(&copy);
        match build.try_compile_intermediates() {
            Ok(compiled) => objects.extend(compiled),
            Err(_) => {
                let name = name_of(&copy);
                println!("cargo::warning={name}: left out, does not compile with ctests/include");
            }
        }
    }
}

/// Copies of files from elsewhere, with our headers beside them and above them.
struct Copies {
    folder: PathBuf,
}

impl Copies {
    fn make(from: &Path, root: &Path) -> Copies {
        let folder = root.join("files");
        // What an earlier run left there would be compiled as well.
        let _ = fs::remove_dir_all(root);
        let copies = Copies { folder };
        let headers = files_in(from, "h");
        for header in headers {
            copies.add(&header);
        }
        for place in [root, &copies.folder] {
            for (header, file) in [
                ("dat.h", "ctests/include/dat.h"),
                ("ct/ct.h", "ctests/include/ct/ct.h"),
                ("ct.h", "ctests/include/ct/ct.h"),
            ] {
                copy(Path::new(file), &place.join(header), "");
            }
        }
        copies
    }

    /// Copies a file; messages about it will name the original.
    fn add(&self, path: &Path) -> PathBuf {
        let copied = self.folder.join(name_of(path));
        let shown = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let shown = shown
            .display()
            .to_string()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        copy(path, &copied, &format!("#line 1 \"{shown}\"\n"));
        copied
    }

    /// The settings for such a copy. What it includes and was not copied is looked for where the
    /// original lies.
    fn compiler(&self, from: &Path) -> Build {
        let mut build = compiler();
        build.warnings(false).flag("-iquote").flag(from);
        build
    }
}

/// The functions that the library and the runner have.
fn interface() -> BTreeSet<String> {
    ["dat.h", "ct/ct.h"]
        .iter()
        .map(|header| text_of(&Path::new("ctests/include").join(header)))
        .flat_map(|text| scan::declared(&text))
        .collect()
}

/// The tests and benchmarks that a file defines, as the compiler sees it.
fn tests_in(build: &Build, path: &Path) -> Vec<String> {
    let expanded = build.clone().file(path).try_expand();
    let text = match expanded {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        // Why is said when it is compiled, if anybody needs it.
        Err(_) => text_of(path),
    };
    let is_test = |name: &String| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    scan::defined(&text).into_iter().filter(is_test).collect()
}

fn compile(build: &mut Build, path: &Path) -> Vec<PathBuf> {
    done(build.file(path).try_compile_intermediates(), path.display())
}

/// What was made, or the end of the build with what is wrong with `what`.
fn done<T>(result: Result<T, cc::Error>, what: impl Display) -> T {
    result.unwrap_or_else(|error| fail(format_args!("{what}: {error}")))
}

/// Ends the build if there is nothing to compile C with.
fn demand_compiler() {
    let found = compiler().try_get_compiler().map(|compiler| {
        let mut command = compiler.to_command();
        let is_there = command.arg("--version").output().is_ok();
        (is_there, compiler.path().display().to_string())
    });
    let missing = match found {
        Ok((true, _)) => return,
        Ok((false, path)) => path,
        Err(error) => error.to_string(),
    };
    fail(format_args!(
        "the feature `ctests`, and nothing else, needs a C compiler, as `cc` or what CC names: \
         {missing}"
    ));
}

fn fail(message: impl Display) -> ! {
    println!("cargo::error={message}");
    process::exit(1);
}

/// The library that is loaded before a server whose disk is to be full. Only the linker of some
/// systems can make it.
fn preload(out: &Path) {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let compiler = compiler().get_compiler();
    let status = compiler
        .to_command()
        .args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(out.join("preload.so"))
        .args(["ctests/preload.c", "-ldl"])
        .status();
    if !status.is_ok_and(|status| status.success()) {
        fail("ctests/preload.c: cannot be compiled");
    }
}

/// Rust text that declares all entries and lists them.
fn table(entries: &[Entry]) -> String {
    let mut text = String::from("unsafe extern \"C\" {\n");
    let is_test = |entry: &&Entry| entry.symbol.starts_with(PREFIXES[0]);
    for entry in entries {
        let parameter = if is_test(&entry) { "" } else { "n: c_int" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    fn {}({parameter});", entry.symbol);
    }
    text.push_str("}\n");
    let (tests, benches): (Vec<_>, Vec<_>) = entries.iter().partition(is_test);
    for (list, kind, entries) in [("TESTS", "Test", tests), ("BENCHES", "Bench", benches)] {
        let _ = writeln!(text, "static {list}: &[(&str, {kind})] = &[");
        for entry in entries {
            let _ = writeln!(text, "    ({:?}, {}),", entry.name, entry.symbol);
        }
        text.push_str("];\n");
    }
    text
}

/// Files with this extension right in the folder, in the order of their names.
fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| fail(format_args!("{}: {error}", folder.display())));
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|found| found == extension) && path.is_file())
        .collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// A file's text, whatever its encoding: names are ASCII.
fn text_of(path: &Path) -> String {
    match fs::read(path) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => fail(format_args!("{}: {error}", path.display())),
    }
}

/// Copies a file's text behind a first line.
fn copy(from: &Path, to: &Path, first: &str) {
    let folder = to.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::read(from))
        .and_then(|text| fs::write(to, [first.as_bytes(), &text].concat()));
    written.unwrap_or_else(|error| fail(format_args!("{}: {error}", from.display())));
}
