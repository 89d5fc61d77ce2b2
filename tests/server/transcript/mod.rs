//! Transcripts: tests that say what is sent and what comes back, and nothing about how.
//!
//! A transcript is a list of lines. Blank ones and those starting with `#` say nothing. Clients are
//! a letter, or a letter and digits; each connects when it is first named.
//!
//! | line | does |
//! | --- | --- |
//! | `a> put 0 0 1 4 \| work` | sends the line and, behind ` \| `, the body, CR LF after each |
//! | `a>> "use a\x0db\r\n"` | sends exactly these bytes |
//! | `a> (close)`, `(reset)`, `(half-close)` | ends the connection, or its sending side |
//! | `a< RESERVED 1 4 \| work` | expects this reply, and the body behind ` \| ` |
//! | `a< within 0.5s TIMED_OUT` | the same, no later than this after the step before |
//! | `a< OK` and lines `a\| row` | expects a data reply with exactly these rows |
//! | `a< OK ...` and lines `a\| row` | the same, and other rows may stand between |
//! | `a< OK unordered` and lines `a\| row` | these rows, those behind the first in any order |
//! | `a<< "bytes"` | expects exactly these bytes |
//! | `a<< eof` | expects the server to close the connection |
//! | `a< silence 0.3s` | expects nothing for so long (0.1 s if no time is given) |
//! | `+1.2s` | waits until so much time has passed since the step before |
//! | `!signal USR1` | sends the server a signal; `STOP` and `CONT` go to all its processes |
//! | `!restart` | kills the server and starts it anew in the same folder; clients are forgotten |
//!
//! In every text `\r \n \t \0 \s` (a blank) `\xNN` and `\` before a special character are escapes,
//! `{ab*3}` is `ababab`, and `<job>` is a number that the server chose, bound where it first comes.
//! In reply lines and rows, but not in bodies, `*` stands for anything but nothing, `#` for digits,
//! `@` for one hexadecimal digit, and `~5` for 5 or 4.
//!
//! Before the first step there may be headers: `args: -z 10` (words for the server, `<dir>` is a
//! folder of its own), `listen: unix`, `unix-path` or `port` (see
//! [`Listen`](crate::fixture::Listen)), `oracle: no, REASON` (the C server is known to
//! differ), `oracle-1.12: no, REASON` (only release 1.12 differs),
//! `oracle-1.12: KEY KEY unquoted` (it prints these values without quotes), `binlog: no, REASON`,
//! `sharded: no, REASON` and `sharded-3: no, REASON` (ours with a binlog, in the sharded mode, and
//! in that with several owners and frontends, differs on purpose).
//!
//! Where ids are mapped ([`Ids::Mapped`]) an id of the transcript is a name for the one that the
//! server gives in its place, in commands, replies and rows `id:`; bytes sent or expected raw stay
//! as they are.
//!
//! A transcript ends well only if no client has been told more than is written.

pub(crate) mod client;
mod play;
mod script;
mod text;

#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use play::{Target, play, play_at};
#[allow(unused_imports, reason = "each test binary uses its part")]
pub(crate) use script::{Ids, Script, parse};
