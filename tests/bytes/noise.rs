//! Makes up what clients send: commands, what looks like them, parts of them, and any bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::script::Op;

/// A script in which `clients` take part.
pub(crate) fn script(clients: usize) -> impl Strategy<Value = Vec<Op>> {
    vec(op(clients), 0..40)
}

/// The same script with the bytes of each arrival cut into pieces of these lengths, over and over.
pub(crate) fn cut(ops: &[Op], lens: &[usize]) -> Vec<Op> {
    let mut lens = lens.iter().cycle();
    let mut out = Vec::new();
    for op in ops {
        let Op::Feed { client, bytes } = op else {
            out.push(op.clone());
            continue;
        };
        // Single bytes of a large body would take too long.
        let least = bytes.len() / 2000;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let len = lens.next().map_or(1, |len| *len.max(&least));
            let (piece, next) = rest.split_at(len.min(rest.len()));
            out.push(Op::Feed {
                client: *client,
                bytes: piece.to_vec(),
            });
            rest = next;
        }
    }
    out
}

fn op(clients: usize) -> BoxedStrategy<Op> {
    let client = move || 0..clients;
    let nanos = select(
        &[
            1,
            300_000_000,
            1_000_000_000,
            1_000_000_001,
            100_000_000_000u64,
        ][..],
    );
    let bytes = vec(piece(), 1..6).prop_map(|pieces| pieces.concat());
    prop_oneof![
        40 => (client(), bytes).prop_map(|(client, bytes)| Op::Feed { client, bytes }),
        6 => nanos.prop_map(|nanos| Op::Pass { nanos }),
        1 => client().prop_map(|client| Op::End { client }),
        2 => client().prop_map(|client| Op::Close { client }),
    ]
    .boxed()
}

fn piece() -> BoxedStrategy<Vec<u8>> {
    let line = || select(LINES).prop_map(|line| format!("{line}\r\n").into_bytes());
    let fragment = (select(LINES), any::<Index>())
        .prop_map(|(line, at)| line.as_bytes()[..at.index(line.len() + 1)].to_vec());
    let mutated = (line(), any::<Index>(), any::<u8>()).prop_map(|(mut line, at, byte)| {
        let at = at.index(line.len());
        line[at] = byte;
        line
    });
    let ends = vec(select(&b"\r\n"[..]), 1..4);
    let long = (200..500usize).prop_map(|len| vec![b'l'; len]);
    let long_put = (0..30usize, 10..110usize, 150..300usize).prop_map(|(size, spaces, junk)| {
        let (spaces, junk) = (" ".repeat(spaces), "x".repeat(junk));
        format!("put 0 0 1{spaces}{size} {junk}\r\n").into_bytes()
    });
    let http = select(&["GET / HTTP/1.1\r\n", "Host: x\r\n"][..])
        .prop_map(|line| line.as_bytes().to_vec());
    prop_oneof![
        30 => line(),
        12 => put(),
        4 => fragment,
        4 => mutated,
        4 => vec(any::<u8>(), 0..30),
        3 => ends,
        1 => long,
        2 => long_put,
        1 => select(&["quit\r\n", "quit"][..]).prop_map(|line| line.as_bytes().to_vec()),
        1 => http,
    ]
    .boxed()
}

/// A put whose body is as announced, or not.
fn put() -> impl Strategy<Value = Vec<u8>> {
    let pri = select(&["0", "1", "1024", "4294967295", "-1", "4294967296"][..]);
    let times = select(&["0 1", "0 0", "1 1", "0 100", "5 4294967295", "0 x"][..]);
    let body = prop_oneof![
        8 => vec(any::<u8>(), 0..20),
        2 => "(delete 1\r\n|stats\r\n|\r\n){1,3}".prop_map(String::into_bytes),
        1 => select(&[16_384usize, 16_385, 20_000, 20_001, 40_000][..])
            .prop_map(|len| vec![b'y'; len]),
    ];
    let off = select(&[0i64, 0, 0, 0, 0, 0, -2, 1, 3, 200_000][..]);
    let junk = select(&["", "", "", "", "", "x", " ", " x", "\0"][..]);
    let end = select(&["\r\n", "\r\n", "\r\n", "\r\n", "", "\r", "\n\r"][..]);
    (pri, times, body, off, junk, end).prop_map(|(pri, times, body, off, junk, end)| {
        let len = (body.len() as i64 + off).max(0);
        let line = format!("put {pri} {times} {len}{junk}\r\n");
        [line.as_bytes(), &body, end.as_bytes()].concat()
    })
}

const LINES: &[&str] = &[
    "",
    "put 0 0 1 3",
    "put 0 0 1 0",
    "put 0 0 1",
    "put -1 0 1 0",
    "reserve",
    "reserve",
    "reserve-with-timeout 0",
    "reserve-with-timeout 0",
    "reserve-with-timeout 1",
    "reserve-with-timeout 2147483647",
    "reserve-job 1",
    "reserve-job 2",
    "delete 1",
    "delete 2",
    "release 1 0 0",
    "release 1 1 1",
    "release 2 1024 0",
    "bury 1 0",
    "bury 2 5",
    "kick 1",
    "kick 100",
    "kick-job 1",
    "kick-job 2",
    "touch 1",
    "touch 2",
    "peek 1",
    "peek-ready",
    "peek-delayed",
    "peek-buried",
    "stats-job 1",
    "stats-tube default",
    "stats",
    "use a",
    "use default",
    "watch a",
    "watch b",
    "ignore a",
    "ignore default",
    "list-tubes",
    "list-tube-used",
    "list-tubes-watched",
    "pause-tube default 0",
    "pause-tube a 1",
    "pause-tube default 1",
    "pause-tubea 0",
    "nonsense",
    "use -",
    "delete x",
];
