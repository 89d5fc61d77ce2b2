//! How plans are made up: commands of every kind, what looks like them, and bodies, weighted so
//! that jobs are there to be found and clients wait now and then.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::comparable::is_comparable;
use crate::plan::{CLIENTS, Plan, Step, Unit};

/// Seconds of a case: delays, times to run, pauses and timeouts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    delays: &'static [u32],
    ttrs: &'static [u32],
    pauses: &'static [u32],
    timeouts: &'static [u32],
    kicks: &'static [u32],
}

/// Of a case that takes no time: what is short is over at once or lasts longer than the case.
pub(crate) const UNTIMED: Times = Times {
    delays: &[0, 0, 0, 0, 0, 0, 100, 1000, u32::MAX],
    ttrs: &[100, 100, 100, 1000, 1, 0, u32::MAX],
    pauses: &[0, 0, 100, u32::MAX],
    timeouts: &[0, 0, 0, 100, 2_147_483_647],
    kicks: &[0, 1, 1, 2, 10, u32::MAX],
};

/// Of a case with waits of a little more than a second. No command makes several jobs ready, which
/// would then run out at the same moment.
pub(crate) const TIMED: Times = Times {
    delays: &[0, 0, 1, 1, 2, 100],
    ttrs: &[1, 1, 2, 2, 100],
    pauses: &[0, 1, 1, 2],
    timeouts: &[0, 1, 1, 2],
    kicks: &[1],
};

const TUBES: &[&str] = &["default", "default", "a", "b", "c", "x-1", "$t/(n)+;._"];
const PRIS: &[u32] = &[0, 0, 1, 5, 1023, 1024, u32::MAX];

/// A case in which no time passes.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![8 => Just(None), 1 => Just(Some(100)), 1 => Just(Some(0))].prop_flat_map(|limit| {
        let steps = vec(step(UNTIMED, limit), 1..50);
        steps.prop_map(move |steps| Plan {
            body_len_max: limit,
            steps,
        })
    })
}

/// A case with two waits.
pub(crate) fn timed_plan() -> impl Strategy<Value = Plan> {
    let client = 0..CLIENTS;
    let one = (client, command(TIMED)).prop_map(|(client, unit)| Step::Send {
        client,
        units: vec![unit],
    });
    let phase = vec(one, 3..11);
    vec(phase, 2).prop_map(|phases| Plan {
        body_len_max: None,
        steps: phases
            .into_iter()
            .flat_map(|phase| phase.into_iter().chain([Step::Wait]))
            .collect(),
    })
}

fn step(times: Times, limit: Option<u32>) -> impl Strategy<Value = Step> {
    let client = || 0..CLIENTS;
    let one = unit(times, limit).prop_map(|unit| vec![unit]);
    let batch = vec(unit(times, limit), 2..7);
    let units = prop_oneof![3 => one, 1 => batch];
    prop_oneof![
        40 => (client(), units).prop_map(|(client, units)| Step::Send { client, units }),
        1 => (client(), tail()).prop_map(|(client, tail)| Step::Close { client, tail }),
        1 => (client(), tail()).prop_map(|(client, tail)| Step::HalfClose { client, tail }),
    ]
}

/// What a client has begun to send when its connection ends: nothing, a line, a body.
fn tail() -> impl Strategy<Value = Vec<u8>> {
    select(vec![
        &b""[..],
        b"",
        b"stats",
        b"put 0 0 100 4\r",
        b"put 0 0 100 4\r\nab",
        b"put 0 0 100 4\r\nabcd\r",
    ])
    .prop_map(<[u8]>::to_vec)
}

fn unit(times: Times, limit: Option<u32>) -> impl Strategy<Value = Unit> {
    prop_oneof![
        12 => put(times, limit),
        30 => command(times),
        4 => near_miss().prop_map(Unit::Line),
        4 => mutated(times).prop_map(Unit::Line),
    ]
}

/// A well-formed command.
fn command(times: Times) -> BoxedStrategy<Unit> {
    let line = |line: BoxedStrategy<String>| line.prop_map(|line| Unit::Line(line.into_bytes()));
    prop_oneof![
        12 => simple_put(times),
        20 => held(times),
        40 => line(well_formed(times)),
    ]
    .boxed()
}

/// A command about a job that the client holds.
fn held(times: Times) -> impl Strategy<Value = Unit> {
    let delay = select(times.delays);
    (0..5usize, 0..3usize, select(PRIS), delay).prop_map(|(what, which, pri, delay)| {
        let (verb, rest) = match what {
            0 => ("release", format!(" {pri} {delay}")),
            1 => ("bury", format!(" {pri}")),
            2 => ("touch", String::new()),
            3 => ("delete", String::new()),
            _ => ("stats-job", String::new()),
        };
        Unit::Held { verb, which, rest }
    })
}

/// A well-formed line that brings no body.
fn well_formed(times: Times) -> BoxedStrategy<String> {
    let id = || prop_oneof![20 => 1..10u64, 1 => Just(0), 1 => Just(u64::MAX)];
    let tube = || select(TUBES);
    let pri = || select(PRIS);
    let reserve = prop_oneof![
        1 => Just("reserve".to_owned()),
        3 => select(times.timeouts).prop_map(|secs| format!("reserve-with-timeout {secs}")),
    ];
    let of_job = (
        select(
            &[
                "peek",
                "delete",
                "touch",
                "kick-job",
                "reserve-job",
                "stats-job",
            ][..],
        ),
        id(),
    )
        .prop_map(|(verb, id)| format!("{verb} {id}"));
    let of_tube = (
        select(&["use", "watch", "watch", "ignore", "stats-tube"][..]),
        tube(),
    )
        .prop_map(|(verb, tube)| format!("{verb} {tube}"));
    let alone = select(
        &[
            "peek-ready",
            "peek-delayed",
            "peek-buried",
            "stats",
            "list-tubes",
            "list-tube-used",
            "list-tubes-watched",
        ][..],
    );
    let release = (id(), pri(), select(times.delays))
        .prop_map(|(id, pri, delay)| format!("release {id} {pri} {delay}"));
    let bury = (id(), pri()).prop_map(|(id, pri)| format!("bury {id} {pri}"));
    let kick = select(times.kicks).prop_map(|n| format!("kick {n}"));
    let pause =
        (tube(), select(times.pauses)).prop_map(|(tube, secs)| format!("pause-tube {tube} {secs}"));
    prop_oneof![
        12 => reserve,
        10 => of_job,
        10 => of_tube,
        6 => alone.prop_map(str::to_owned),
        2 => release,
        2 => bury,
        4 => kick,
        3 => pause,
    ]
    .boxed()
}

fn put_line(times: Times) -> impl Strategy<Value = String> {
    (select(PRIS), select(times.delays), select(times.ttrs))
        .prop_map(|(pri, delay, ttr)| format!("put {pri} {delay} {ttr}"))
}

/// A put that is accepted with a small body, where the limit allows it.
fn simple_put(times: Times) -> impl Strategy<Value = Unit> {
    (put_line(times), "[a-z]{0,4}").prop_map(|(line, body)| Unit::Put {
        line: format!("{line} {}", body.len()).into_bytes(),
        rest: format!("{body}\r\n").into_bytes(),
        replies: 1,
    })
}

/// A put of any kind: its body large or odd, too large, wrongly ended, or longer than announced.
fn put(times: Times, limit: Option<u32>) -> BoxedStrategy<Unit> {
    let limit = limit.unwrap_or(65_535);
    let bodies = prop_oneof![
        6 => vec(any::<u8>(), 0..40),
        4 => "(delete 1|stats|\r\n|\n|\r|put 0 0 1 1){1,4}".prop_map(String::into_bytes),
        1 => (0..400usize).prop_map(|len| vec![b'x'; len]),
        1 => select(vec![limit as usize, limit as usize + 1, 16_384, 16_385, 70_000])
            .prop_map(|len| vec![b'y'; len]),
    ];
    let ends = prop_oneof![
        8 => Just(&b"\r\n"[..]),
        1 => select(vec![&b"xx"[..], b"\n\r", b"\r\r", b"\0\0", b"\rx"]),
        1 => select(vec![&b"zzdelete 1\r\n"[..], b"z\r\nz\r\n", b"\r\nzz\r\n"]),
    ];
    let junk = prop_oneof![20 => Just(""), 1 => Just("x"), 1 => Just(" x")];
    let spaces = prop_oneof![20 => Just(" "), 1 => Just("   "), 1 => Just(" 00")];
    (put_line(times), spaces, bodies, ends, junk)
        .prop_map(move |(line, spaces, body, end, junk)| {
            let is_too_big = body.len() > limit as usize;
            let line = format!("{line}{spaces}{}", body.len());
            match junk {
                // Trailing junk comes to be judged only if the body is within the limit. Ours
                // then throws the body away, unless nobody can tell what size was meant.
                "" => {}
                junk if is_too_big => return counted(format!("{line}{junk}"), body, end),
                "x" => {
                    return Unit::Put {
                        line: format!("{line}x").into_bytes(),
                        rest: Vec::new(),
                        replies: 1,
                    };
                }
                _ => {}
            }
            counted(line, body, end)
        })
        .boxed()
}

/// The put with as many replies as its body's end makes: a body that goes on behind the announced
/// length leaves a line, which is no command.
fn counted(line: String, mut body: Vec<u8>, end: &[u8]) -> Unit {
    body.extend_from_slice(end);
    Unit::Put {
        line: line.into_bytes(),
        rest: body,
        replies: if end.len() > 2 { 2 } else { 1 },
    }
}

/// Lines that stand close to a command: prefixes, words run together, borders of numbers and of
/// lengths.
fn near_miss() -> BoxedStrategy<Vec<u8>> {
    let words = select(NEAR_MISSES).prop_map(|word| word.as_bytes().to_vec());
    let numbers = (
        select(
            &[
                "delete ",
                "release 1 0 ",
                "release 1 ",
                "bury 1 ",
                "pause-tube a ",
                "kick ",
            ][..],
        ),
        select(NUMBERS),
    )
        .prop_map(|(words, number)| format!("{words}{number}").into_bytes());
    let names = (
        select(&["use ", "watch ", "ignore ", "stats-tube ", "pause-tube "][..]),
        select(vec![199usize, 200, 201, 210, 300]),
        select(&["", "-", " 0"][..]),
    )
        .prop_map(|(verb, len, end)| format!("{verb}{}{end}", "n".repeat(len)).into_bytes());
    let long = (220..460usize).prop_map(|len| vec![b'l'; len]);
    let bytes = vec(any::<u8>(), 0..30);
    prop_oneof![8 => words, 4 => numbers, 2 => names, 1 => long, 1 => bytes]
        .prop_map(comparable)
        .boxed()
}

const NUMBERS: &[&str] = &[
    "",
    " ",
    "1 ",
    " 1",
    "+1",
    "-1",
    "1x",
    "0x1",
    "\t1",
    "007",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
];

const NEAR_MISSES: &[&str] = &[
    "",
    " ",
    "put",
    "put ",
    "put 0",
    "put 0 0 0",
    "put 0 0 0 -1",
    "put -1 0 0 x",
    "put 0 0 0 1.0",
    "put 0 0 1 4294967296",
    "peek",
    "peek ",
    "peekfoo",
    "peek-foo",
    "peek-readyx",
    "peek-ready ",
    "peek-delayed 1",
    "peek-buried\t",
    "reserve ",
    "reservex",
    "reserve-job",
    "reserve-job ",
    "delete",
    "delete ",
    "release",
    "release ",
    "release 1",
    "release 1 0",
    "bury",
    "bury 1",
    "kick",
    "kick ",
    "kickx",
    "kick 1x",
    "kick 1 2",
    "kick -1",
    "kick 4294967297",
    "kick-job",
    "kick-job ",
    "touch",
    "touch ",
    "stats-job",
    "stats-job ",
    "stats-job x",
    "stats-tube",
    "stats-tube ",
    "stats-tubes",
    "statsx",
    "stats ",
    "use",
    "use ",
    "use  a",
    "use a ",
    "use a b",
    "use -a",
    "use a-",
    "use {a}",
    "use a\nb",
    "watch",
    "watch ",
    "ignore",
    "ignore ",
    "ignore default",
    "list-tube",
    "list-tubesx",
    "list-tubes-watche",
    "list-tubes-watchedx",
    "list-tube-used ",
    "quit",
    "quitx",
    "quit now",
    "QUIT",
    "Stats",
    "pause-tube",
    "pause-tube ",
    "pause-tubea 0",
    "pause-tubedefault 0",
    "pause-tube  a   0",
    "pause-tube a 0 ",
    "pause-tube a",
    "pause-tube default0",
    "pause-tube -a 0",
    "pause-tube nosuch 0",
    "stats-tube nosuch",
    "\nstats",
    "use a\0b",
    "\0",
    "stats\0",
    "quit\0",
];

/// A well-formed line with something wrong in it.
fn mutated(times: Times) -> BoxedStrategy<Vec<u8>> {
    let change = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0..8usize,
    );
    (well_formed(times), vec(change, 1..3))
        .prop_map(|(line, changes)| {
            let mut line = line.into_bytes();
            for (at, what, how) in changes {
                let at = at.index(line.len() + 1);
                mutate(&mut line, at, what, how);
            }
            comparable(line)
        })
        .boxed()
}

fn mutate(line: &mut Vec<u8>, at: usize, what: prop::sample::Index, how: usize) {
    let is_inside = at < line.len();
    match how {
        0 | 1 => line.insert(at, ODD_BYTES[what.index(ODD_BYTES.len())]),
        2 if is_inside => drop(line.remove(at)),
        3 if is_inside => line[at] = ODD_BYTES[what.index(ODD_BYTES.len())],
        4 if is_inside => line[at] = line[at].to_ascii_uppercase(),
        5 => line.truncate(at),
        6 => line.insert(at, b' '),
        _ => {
            let number = NUMBERS[what.index(NUMBERS.len())];
            line.splice(at..at, number.bytes());
        }
    }
}

const ODD_BYTES: &[u8] = b" \t\n\0-+09aZ:{}\x80\xff";

/// The line if both servers have to answer it alike, else another.
fn comparable(line: Vec<u8>) -> Vec<u8> {
    if is_comparable(&line) {
        line
    } else {
        b"list-tube-used".to_vec()
    }
}
