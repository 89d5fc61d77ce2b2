//! `beanshard reshard ...`, `import ...`, `export ...`: the tools that make other data of a
//! directory that no server uses. As with `wal`, no command line of the original begins so.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use lexopt::{Arg, Parser};

use super::sharding::count;
use super::{
    Action, BINLOG_FILE_LEN_DEFAULT, BINLOG_FILE_LEN_MAX, Output, STATUS_USAGE, UsageError, size,
    unknown, usage_error, value,
};
use crate::base::ids::ShardSet;
use crate::data::Task;

/// A tool, and how it is to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolTask {
    /// Which, and on what.
    pub task: Task,
    /// Bytes of a binlog file that is written.
    pub file_len: u64,
    /// Whether what is damaged is passed over.
    pub skip_damage: bool,
}

/// The first words that lead here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Reshard,
    Import,
    Export,
}

impl Verb {
    /// The one that this word is.
    pub(super) fn of(word: &OsStr) -> Option<Verb> {
        match word.to_str()? {
            "reshard" => Some(Verb::Reshard),
            "import" => Some(Verb::Import),
            "export" => Some(Verb::Export),
            _ => None,
        }
    }

    /// Whether it has a flag with this name.
    fn takes(self, flag: &str) -> bool {
        match flag {
            "owners" => self != Verb::Export,
            "from" => self == Verb::Import,
            "to" => self == Verb::Export,
            _ => true,
        }
    }
}

/// What the flags have said so far.
struct Given {
    dir: Option<PathBuf>,
    from: Option<PathBuf>,
    to: Option<PathBuf>,
    owners: Option<u16>,
    file_len: u64,
    skip_damage: bool,
}

/// What `args`, those behind the verb, ask for.
pub(super) fn parse(program: &str, verb: Verb, args: impl Iterator<Item = OsString>) -> Action {
    let print = |text, stream, status| Action::Print {
        text,
        stream,
        status,
    };
    match read(verb, args) {
        Ok(Some(tool)) => Action::Tool(tool),
        Ok(None) => print(help(program, verb), Output::Stdout, 0),
        Err(error) => print(
            format!("{program}: {error}\n{}", help(program, verb)),
            Output::Stderr,
            STATUS_USAGE,
        ),
    }
}

/// Nothing if help is asked for.
fn read(verb: Verb, args: impl Iterator<Item = OsString>) -> Result<Option<ToolTask>, UsageError> {
    let mut parser = Parser::from_args(args);
    let mut given = Given {
        dir: None,
        from: None,
        to: None,
        owners: None,
        file_len: BINLOG_FILE_LEN_DEFAULT,
        skip_damage: false,
    };
    loop {
        let flag = match parser.next().map_err(usage_error)? {
            None => break,
            Some(Arg::Long(name)) if verb.takes(name) => name.to_owned(),
            Some(Arg::Long(name)) => return Err(unknown(&format!("--{name}"))),
            Some(Arg::Short('s')) => "binlog-size".to_owned(),
            Some(Arg::Short('h')) => "help".to_owned(),
            Some(Arg::Short(letter)) => return Err(unknown(&format!("-{letter}"))),
            Some(Arg::Value(word)) => return Err(UsageError::UnknownArgument { word }),
        };
        match flag.as_str() {
            "dir" => given.dir = Some(value(&mut parser)?.into()),
            "from" => given.from = Some(value(&mut parser)?.into()),
            "to" => given.to = Some(value(&mut parser)?.into()),
            "owners" => {
                let most = ShardSet::SHARDS_MAX as u16;
                given.owners = Some(count(&mut parser, "--owners", most)?);
            }
            "binlog-size" => given.file_len = size(&mut parser, BINLOG_FILE_LEN_MAX)?,
            "skip-damage" => given.skip_damage = true,
            "help" => return Ok(None),
            _ => return Err(unknown(&format!("--{flag}"))),
        }
    }
    let (file_len, skip_damage) = (given.file_len, given.skip_damage);
    Ok(Some(ToolTask {
        task: task(verb, given)?,
        file_len,
        skip_damage,
    }))
}

fn task(verb: Verb, given: Given) -> Result<Task, UsageError> {
    let missing = |flag| UsageError::MissingFlag { flag };
    let dir = given.dir.ok_or(missing("--dir"))?;
    Ok(match verb {
        Verb::Reshard => Task::Reshard {
            dir,
            owners: given.owners.ok_or(missing("--owners"))?,
        },
        Verb::Import => Task::Import {
            from: given.from.ok_or(missing("--from"))?,
            dir,
            owners: given.owners,
        },
        Verb::Export => Task::Export {
            dir,
            to: given.to.ok_or(missing("--to"))?,
        },
    })
}

fn help(program: &str, verb: Verb) -> String {
    let head = match verb {
        Verb::Reshard => format!(
            "Use: {program} reshard --dir DIR --owners N [OPTIONS]

Make a data directory of --sharded one for another number of owners. Ids stay.
"
        ),
        Verb::Import => format!(
            "Use: {program} import --from BINLOG --dir DIR [--owners N] [OPTIONS]

Fill the empty directory DIR with the jobs of a binlog of --legacy or beanstalkd,
for --sharded. BINLOG is only read. The jobs get new ids, in the order of the old.
"
        ),
        Verb::Export => format!(
            "Use: {program} export --dir DIR --to BINLOG [OPTIONS]

Fill the empty directory BINLOG with the jobs of a data directory of --sharded,
for --legacy or beanstalkd. DIR is only read. The jobs get ids 1, 2, 3, ... in the
order in which they were put. Pauses of tubes are lost.
"
        ),
    };
    format!(
        "{head}
No server may use any of them meanwhile.
Who is killed has changed nothing, or everything.

 -s, --binlog-size BYTES   size of each file that is written (10485760)
     --skip-damage         go on without what is damaged
 -h, --help                print this, and end

Exit status: 0 done, 1 something is damaged or cannot be written, 5 wrong use,
10 a directory cannot be read, is in use, or is not what it should be.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Action {
        let words = ["beanshard"].into_iter().chain(words.iter().copied());
        super::super::parse(words.map(OsString::from)).action
    }

    fn tool(task: Task) -> Action {
        Action::Tool(ToolTask {
            task,
            file_len: BINLOG_FILE_LEN_DEFAULT,
            skip_damage: false,
        })
    }

    #[test]
    fn each_tool_has_its_flags() {
        let dir = || PathBuf::from("/d");
        let import = |owners| {
            tool(Task::Import {
                from: "/b".into(),
                dir: dir(),
                owners,
            })
        };
        for (words, action) in [
            (
                &["reshard", "--dir", "/d", "--owners=4"][..],
                tool(Task::Reshard {
                    dir: dir(),
                    owners: 4,
                }),
            ),
            (&["import", "--dir=/d", "--from", "/b"], import(None)),
            (
                &["import", "--from", "/b", "--owners", "64", "--dir", "/d"],
                import(Some(64)),
            ),
            (
                &["export", "--dir", "/d", "--to", "/b"],
                tool(Task::Export {
                    dir: dir(),
                    to: "/b".into(),
                }),
            ),
            (
                &[
                    "export",
                    "--dir",
                    "/d",
                    "--to",
                    "/b",
                    "-s",
                    "9",
                    "--skip-damage",
                ],
                Action::Tool(ToolTask {
                    task: Task::Export {
                        dir: dir(),
                        to: "/b".into(),
                    },
                    file_len: 9,
                    skip_damage: true,
                }),
            ),
        ] {
            assert_eq!(parse_words(words), action, "{words:?}");
        }
    }

    #[test]
    fn anything_else_is_wrong_use() {
        for (words, said) in [
            (&["reshard", "--dir", "/d"][..], "--owners is missing"),
            (&["reshard", "--owners", "4"], "--dir is missing"),
            (&["import", "--dir", "/d"], "--from is missing"),
            (&["export", "--dir", "/d"], "--to is missing"),
            (&["export", "--owners", "4"], "unknown flag: --owners"),
            (&["reshard", "--to", "/d"], "unknown flag: --to"),
            (&["reshard", "--from", "/d"], "unknown flag: --from"),
            (&["import", "--else"], "unknown flag: --else"),
            (&["import", "-b"], "unknown flag: -b"),
            (&["import", "/d"], "unknown argument: /d"),
            (
                &["reshard", "--dir", "/d", "--owners", "65"],
                "invalid number: 65, --owners takes 1 to 64",
            ),
            (&["export", "-s", "x"], "invalid size: x"),
        ] {
            let Action::Print {
                text,
                stream: Output::Stderr,
                status: 5,
            } = parse_words(words)
            else {
                panic!("{words:?}");
            };
            let first = text.lines().next();
            assert_eq!(first, Some(format!("beanshard: {said}").as_str()));
        }
    }

    #[test]
    fn help_is_asked_for() {
        for verb in ["reshard", "import", "export"] {
            for flag in ["--help", "-h"] {
                let Action::Print {
                    text,
                    stream: Output::Stdout,
                    status: 0,
                } = parse_words(&[verb, flag])
                else {
                    panic!("{verb}");
                };
                assert!(text.starts_with(&format!("Use: beanshard {verb} ")));
                assert!(text.lines().all(|line| line.len() <= 100));
            }
        }
    }
}
