//! What a client can say, how it is written, and which answers it can have.

use beanshard::base::limits::LINE_LEN_MAX;

use crate::random::Random;
use crate::reply::Reply;

/// A command, or something that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Put(Put),
    Use(&'static str),
    Watch(&'static str),
    Ignore(&'static str),
    Reserve,
    ReserveWithTimeout(u32),
    ReserveJob(u64),
    Delete(u64),
    Release(u64, u32, u32),
    Bury(u64, u32),
    Touch(u64),
    Kick(u32),
    KickJob(u64),
    Peek(u64),
    PeekOf(&'static str),
    PauseTube(&'static str, u32),
    StatsJob(u64),
    StatsTube(&'static str),
    Stats,
    ListTubes,
    ListTubeUsed,
    ListTubesWatched,
    /// Text that is refused with this line.
    Nonsense(&'static str, &'static str),
    /// A line longer than any may be.
    LongLine,
    /// Something after which the server closes.
    Last(&'static str),
}

/// A job to be put. No two have the same body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    pub(crate) pri: u32,
    pub(crate) delay: u32,
    pub(crate) ttr: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) fate: Fate,
}

/// What is to become of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Inserted,
    Unterminated,
    TooBig,
}

/// What a client is inclined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Producer,
    Worker,
    Any,
}

/// What there is to speak of.
pub(crate) struct Topics<'a> {
    pub(crate) role: Role,
    pub(crate) tubes: &'a [&'static str],
    /// Ids of jobs that the client has or had.
    pub(crate) own: &'a [u64],
    /// Ids of jobs that somebody put.
    pub(crate) all: &'a [u64],
    pub(crate) body_len_max: u32,
    /// Longest body that is put as a rule.
    pub(crate) body_len_mean: u64,
    /// Whether there are jobs enough.
    pub(crate) is_full: bool,
    /// Number of this command among all.
    pub(crate) number: u64,
}

const NONSENSE: [(&str, &str); 6] = [
    ("nonsense\r\n", "UNKNOWN_COMMAND"),
    ("peek x\r\n", "BAD_FORMAT"),
    ("put x 0 1 4\r\njunk\r\n", "BAD_FORMAT"),
    ("put 1 0 1 4 \r\njunk\r\n", "BAD_FORMAT"),
    ("delete \r\n", "BAD_FORMAT"),
    ("use -x\r\n", "BAD_FORMAT"),
];

impl Command {
    pub(crate) fn random(random: &mut Random, topics: &Topics<'_>) -> Command {
        let producing = topics.role == Role::Producer;
        let id = pick_id(random, topics);
        let tube = random.pick(topics.tubes);
        let pri = pick_pri(random);
        match random.below(100) {
            0..34 if producing && !topics.is_full => random_put(random, topics),
            0..24 if topics.role == Role::Worker => Command::Reserve,
            0..16 if !topics.is_full => random_put(random, topics),
            16..22 if !producing => Command::Reserve,
            22..34 if !producing => Command::ReserveWithTimeout(random.below(5) as u32),
            34..39 => Command::ReserveJob(id),
            39..49 => Command::Delete(id),
            49..55 => Command::Release(id, pri, random.below(6).saturating_sub(3) as u32),
            55..59 => Command::Bury(id, pri),
            59..63 => Command::Touch(id),
            63..65 => Command::Kick(random.below(4) as u32),
            65..67 => Command::KickJob(id),
            67..75 => Command::Watch(tube),
            75..79 => Command::Ignore(tube),
            79..84 => Command::Use(tube),
            84 => Command::Peek(id),
            85..87 => Command::PeekOf(random.pick(&["ready", "delayed", "buried"])),
            87 => Command::PauseTube(tube, random.below(4) as u32),
            88 => Command::StatsJob(id),
            89 => Command::StatsTube(tube),
            90 => Command::Stats,
            91 => Command::ListTubes,
            92 => Command::ListTubeUsed,
            93 => Command::ListTubesWatched,
            94..96 => {
                let (text, answer) = random.pick(&NONSENSE);
                Command::Nonsense(text, answer)
            }
            96 => Command::LongLine,
            97 if random.percent(20) => Command::Last(random.pick(&["quit\r\n", "GET / HTTP\r\n"])),
            _ if topics.is_full => Command::Delete(id),
            _ => random_put(random, topics),
        }
    }

    /// The bytes that a client sends.
    pub(crate) fn text(&self) -> Vec<u8> {
        let line = match self {
            Command::Put(put) => return put.text(),
            Command::LongLine => "x".repeat(LINE_LEN_MAX + 7),
            Command::Nonsense(text, _) | Command::Last(text) => return text.as_bytes().to_vec(),
            Command::Use(tube) => format!("use {tube}"),
            Command::Watch(tube) => format!("watch {tube}"),
            Command::Ignore(tube) => format!("ignore {tube}"),
            Command::Reserve => "reserve".to_owned(),
            Command::ReserveWithTimeout(secs) => format!("reserve-with-timeout {secs}"),
            Command::ReserveJob(id) => format!("reserve-job {id}"),
            Command::Delete(id) => format!("delete {id}"),
            Command::Release(id, pri, delay) => format!("release {id} {pri} {delay}"),
            Command::Bury(id, pri) => format!("bury {id} {pri}"),
            Command::Touch(id) => format!("touch {id}"),
            Command::Kick(count) => format!("kick {count}"),
            Command::KickJob(id) => format!("kick-job {id}"),
            Command::Peek(id) => format!("peek {id}"),
            Command::PeekOf(state) => format!("peek-{state}"),
            Command::PauseTube(tube, secs) => format!("pause-tube {tube} {secs}"),
            Command::StatsJob(id) => format!("stats-job {id}"),
            Command::StatsTube(tube) => format!("stats-tube {tube}"),
            Command::Stats => "stats".to_owned(),
            Command::ListTubes => "list-tubes".to_owned(),
            Command::ListTubeUsed => "list-tube-used".to_owned(),
            Command::ListTubesWatched => "list-tubes-watched".to_owned(),
        };
        format!("{line}\r\n").into_bytes()
    }

    pub(crate) fn is_reserve(&self) -> bool {
        matches!(self, Command::Reserve | Command::ReserveWithTimeout(_))
    }

    /// Whether it may take the job from the client.
    pub(crate) fn finishes(&self, id: u64) -> bool {
        match *self {
            Command::Delete(job) | Command::Release(job, ..) | Command::Bury(job, _) => job == id,
            _ => false,
        }
    }

    /// Whether the command may be answered that it has failed: it asks owners.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Command::Put(put) => put.fate != Fate::TooBig,
            Command::Nonsense(..)
            | Command::LongLine
            | Command::Last(_)
            | Command::ListTubeUsed
            | Command::ListTubesWatched => false,
            _ => true,
        }
    }

    /// Whether the reply is of a form that the command can have, as far as the command tells.
    pub(crate) fn accepts(&self, reply: &Reply) -> bool {
        let words: Vec<&str> = reply.line.split(' ').collect();
        let is = |word: &str, id: u64| word.parse() == Ok(id);
        match (self, &words[..]) {
            (Command::Put(put), ["INSERTED", _]) => put.fate == Fate::Inserted,
            (Command::Put(put), ["EXPECTED_CRLF"]) => put.fate == Fate::Unterminated,
            (Command::Put(put), ["JOB_TOO_BIG"]) => put.fate == Fate::TooBig,
            (Command::Use(tube), ["USING", used]) => used == tube,
            (Command::Watch(_), ["WATCHING", _]) => true,
            (Command::Ignore(_), ["WATCHING", _] | ["NOT_IGNORED"]) => true,
            (Command::Reserve | Command::ReserveWithTimeout(_), ["RESERVED", ..]) => true,
            (Command::Reserve | Command::ReserveWithTimeout(_), ["DEADLINE_SOON"]) => true,
            (Command::Reserve | Command::ReserveWithTimeout(_), ["TIMED_OUT"]) => true,
            (Command::ReserveJob(id), ["RESERVED", job, _]) => is(job, *id),
            (Command::Delete(_), ["DELETED"]) => true,
            (Command::Release(..), ["RELEASED"]) => true,
            (Command::Bury(..), ["BURIED"]) => true,
            (Command::Touch(_), ["TOUCHED"]) => true,
            (Command::Kick(most), ["KICKED", count]) => {
                count.parse::<u32>().is_ok_and(|count| count <= *most)
            }
            (Command::KickJob(_), ["KICKED"]) => true,
            (Command::Peek(id), ["FOUND", job, _]) => is(job, *id),
            (Command::PeekOf(_), ["FOUND", ..] | ["NOT_FOUND"]) => true,
            (Command::PauseTube(..), ["PAUSED"]) => true,
            (Command::StatsJob(id), ["OK", _]) => reply.number("id") == Some(*id),
            (Command::StatsTube(tube), ["OK", _]) => {
                reply.row("name") == Some(&format!("{tube:?}"))
            }
            (Command::Stats, ["OK", _]) => reply.number("current-connections").is_some(),
            (Command::ListTubes, ["OK", _]) => reply.items().contains(&"default"),
            // A shard has not answered in time.
            (Command::Stats | Command::ListTubes, ["INTERNAL_ERROR"]) => true,
            (Command::ListTubesWatched, ["OK", _]) => true,
            (Command::ListTubeUsed, ["USING", _]) => true,
            (Command::Nonsense(_, answer), [line]) => line == answer,
            (Command::LongLine, ["BAD_FORMAT"]) => true,
            (_, ["OUT_OF_MEMORY"]) => self.needs_room(),
            (_, ["NOT_FOUND"]) => self.speaks_of_something(),
            (_, ["INTERNAL_ERROR"]) => self.can_fail(),
            _ => false,
        }
    }

    /// Whether it may be refused while the disk is full. The end of a job never is.
    fn needs_room(&self) -> bool {
        match self {
            Command::Put(put) => put.fate == Fate::Inserted,
            Command::Release(..) | Command::Bury(..) | Command::PauseTube(..) => true,
            _ => false,
        }
    }

    /// Whether it names a job or a tube that need not be there.
    fn speaks_of_something(&self) -> bool {
        matches!(
            self,
            Command::ReserveJob(_)
                | Command::Delete(_)
                | Command::Release(..)
                | Command::Bury(..)
                | Command::Touch(_)
                | Command::KickJob(_)
                | Command::Peek(_)
                | Command::PauseTube(..)
                | Command::StatsJob(_)
                | Command::StatsTube(_)
        )
    }
}

impl Put {
    /// One that is ready, with this body.
    pub(crate) fn plain(body: Vec<u8>) -> Put {
        Put {
            pri: 7,
            delay: 0,
            ttr: 1,
            body,
            fate: Fate::Inserted,
        }
    }

    fn text(&self) -> Vec<u8> {
        let Put {
            pri, delay, ttr, ..
        } = self;
        let mut text = format!("put {pri} {delay} {ttr} {}\r\n", self.body.len()).into_bytes();
        text.extend_from_slice(&self.body);
        text.extend_from_slice(match self.fate {
            Fate::Inserted | Fate::TooBig => b"\r\n",
            Fate::Unterminated => b"!!",
        });
        text
    }
}

fn random_put(random: &mut Random, topics: &Topics<'_>) -> Command {
    let fate = match random.below(24) {
        0 => Fate::Unterminated,
        1 if random.percent(30) => Fate::TooBig,
        _ => Fate::Inserted,
    };
    let len = match fate {
        Fate::TooBig => topics.body_len_max as usize + 1 + random.index(9),
        Fate::Inserted | Fate::Unterminated => random.index(topics.body_len_mean as usize),
    };
    let mut body = format!("{:x}", topics.number).into_bytes();
    body.resize(body.len().max(len), b'.');
    Command::Put(Put {
        pri: pick_pri(random),
        delay: random.below(8).saturating_sub(5) as u32,
        ttr: random.below(6) as u32,
        body,
        fate,
    })
}

/// Few priorities, so that creation times come to decide, and on both sides of urgent.
fn pick_pri(random: &mut Random) -> u32 {
    random.pick(&[0, 7, 7, 1023, 1024])
}

fn pick_id(random: &mut Random, topics: &Topics<'_>) -> u64 {
    let from = if random.percent(70) && !topics.own.is_empty() {
        topics.own
    } else {
        topics.all
    };
    if from.is_empty() || random.percent(4) {
        random.below(1 << 14)
    } else {
        // Rather the late ones than the early ones, which are gone.
        from[from.len() - 1 - random.index(from.len().min(12))]
    }
}
