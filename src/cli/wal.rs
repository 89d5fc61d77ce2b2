//! `beanshard wal ...`: the tools that look at a binlog directory. The original takes no bare word
//! on its command line, so this one cannot be meant for it.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser};

use super::{Action, Output, STATUS_USAGE, UsageError, unknown, usage_error};

/// The first word that leads here.
pub(super) const WORD: &str = "wal";

/// What is to be done with a binlog directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalTask {
    /// Print every record.
    Dump {
        /// The directory.
        dir: PathBuf,
        /// As JSON, an object a line.
        is_json: bool,
    },
    /// Print a summary, and tell by the exit status whether anything is damaged.
    Check {
        /// The directory.
        dir: PathBuf,
    },
}

/// What `args`, those behind [`WORD`], ask for.
pub(super) fn parse(program: &str, args: impl Iterator<Item = OsString>) -> Action {
    read(program, args).unwrap_or_else(|error| Action::Print {
        text: format!("{program}: {error}\n{}", help(program)),
        stream: Output::Stderr,
        status: STATUS_USAGE,
    })
}

fn read(program: &str, args: impl Iterator<Item = OsString>) -> Result<Action, UsageError> {
    let mut parser = Parser::from_args(args);
    let mut words = Vec::new();
    let mut is_json = false;
    while let Some(arg) = parser.next().map_err(usage_error)? {
        match arg {
            Arg::Long("json") => is_json = true,
            Arg::Long("help") | Arg::Short('h') => {
                return Ok(Action::Print {
                    text: help(program),
                    stream: Output::Stdout,
                    status: 0,
                });
            }
            Arg::Long(name) => return Err(unknown(&format!("--{name}"))),
            Arg::Short(letter) => return Err(unknown(&format!("-{letter}"))),
            Arg::Value(word) => words.push(word),
        }
    }
    let mut words = words.into_iter();
    let verb = words.next().ok_or(UsageError::MissingVerb)?;
    let task: fn(PathBuf, bool) -> WalTask = match verb.to_str() {
        Some("dump") => |dir, is_json| WalTask::Dump { dir, is_json },
        Some("check") if is_json => return Err(unknown("--json")),
        Some("check") => |dir, _| WalTask::Check { dir },
        _ => return Err(UsageError::UnknownArgument { word: verb }),
    };
    let dir = words.next().ok_or(UsageError::MissingDirectory)?;
    match words.next() {
        Some(word) => Err(UsageError::UnknownArgument { word }),
        None => Ok(Action::Wal(task(dir.into(), is_json))),
    }
}

fn help(program: &str) -> String {
    format!(
        "Use: {program} {WORD} dump [--json] DIR
     {program} {WORD} check DIR

Look at a binlog directory. Nothing is changed or locked.

 dump      print every record: file, offset, kind, and the job but for its body
     --json  an object of JSON for each line; times in nanoseconds
           kinds: full, short (a change of a job whose full record came before),
           mark (no job: ids below this one have been given)
 check     print what each file holds, and what is wrong with it
 --help    print this, and end

Exit status: 0 sound, 1 something is damaged, 5 wrong use, 10 DIR cannot be read.
A record torn off at the end of a file is named and is no damage.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Action {
        let words = ["beanshard", WORD].into_iter().chain(words.iter().copied());
        super::super::parse(words.map(OsString::from)).action
    }

    fn refusal(words: &[&str]) -> String {
        match parse_words(words) {
            Action::Print {
                text,
                stream: Output::Stderr,
                status: 5,
            } => text.lines().next().unwrap().to_owned(),
            other => panic!("{words:?}: {other:?}"),
        }
    }

    #[test]
    fn a_directory_is_dumped_or_checked() {
        let dir = PathBuf::from("/d");
        let dump = |is_json| {
            Action::Wal(WalTask::Dump {
                dir: dir.clone(),
                is_json,
            })
        };
        assert_eq!(parse_words(&["dump", "/d"]), dump(false));
        assert_eq!(parse_words(&["dump", "/d", "--json"]), dump(true));
        assert_eq!(parse_words(&["--json", "dump", "--", "/d"]), dump(true));
        let check = Action::Wal(WalTask::Check { dir: dir.clone() });
        assert_eq!(parse_words(&["check", "/d"]), check);
    }

    #[test]
    fn anything_else_is_wrong_use() {
        for (words, said) in [
            (&[][..], "dump or check is missing"),
            (&["dump"], "directory is missing"),
            (&["mend", "/d"], "unknown argument: mend"),
            (&["dump", "/d", "/e"], "unknown argument: /e"),
            (&["check", "--json", "/d"], "unknown flag: --json"),
            (&["check", "-x", "/d"], "unknown flag: -x"),
            (
                &["dump", "--json=1", "/d"],
                "flag takes no argument: --json",
            ),
        ] {
            assert_eq!(refusal(words), format!("beanshard: {said}"));
        }
    }

    #[test]
    fn the_word_counts_in_the_first_place_only() {
        let words = ["beanshard", "-V", WORD].map(OsString::from);
        let Action::Print {
            text, status: 5, ..
        } = super::super::parse(words).action
        else {
            panic!("taken");
        };
        assert!(text.starts_with("beanshard: unknown argument: wal\n"));
    }

    #[test]
    fn help_is_asked_for() {
        for words in [&["--help"][..], &["dump", "-h"]] {
            let Action::Print {
                text,
                stream: Output::Stdout,
                status: 0,
            } = parse_words(words)
            else {
                panic!("{words:?}");
            };
            assert!(text.starts_with("Use: beanshard wal dump [--json] DIR\n"));
            assert!(text.lines().all(|line| line.len() <= 100));
        }
    }
}
