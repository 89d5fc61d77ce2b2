//! Streams cut into items, whole and in pieces.

use proptest::prelude::*;

use super::*;
use crate::base::property_config;

/// An item that owns what it shows.
#[derive(Clone, Debug, PartialEq)]
enum Got {
    Line(String),
    TooLong { http: bool },
    Body(Vec<u8>),
    Unterminated,
    Skipped(Skip),
}

/// A stand-in for a session and its conn. The lines `body N` and `skip N` announce what follows.
#[derive(Default)]
struct Client {
    input: Input,
    leftover: Vec<u8>,
    got: Vec<Got>,
}

impl Client {
    fn feed(&mut self, piece: &[u8]) {
        self.leftover.extend_from_slice(piece);
        let pending = mem::take(&mut self.leftover);
        let mut bytes = &pending[..];
        while let Some(item) = self.input.next(&mut bytes) {
            self.got.push(match item {
                Item::Line(line) => Got::Line(line.escape_ascii().to_string()),
                Item::LineTooLong { http, .. } => Got::TooLong { http },
                Item::Body(body) => Got::Body(body.to_vec()),
                Item::BodyUnterminated => Got::Unterminated,
                Item::Skipped(why) => Got::Skipped(why),
            });
            assert!(self.input.is_idle());
            if let Some(Got::Line(line)) = self.got.last() {
                if let Some(len) = line.strip_prefix("body ") {
                    self.input.expect_body(len.parse().unwrap());
                } else if let Some(len) = line.strip_prefix("skip ") {
                    self.input.skip(len.parse().unwrap(), Skip::TooBig);
                }
            }
        }
        assert!(bytes.len() <= LEFTOVER_LEN_MAX);
        self.leftover = bytes.to_vec();
        self.check_memory();
    }

    /// Reads as the network does: straight into the body where that is wanted.
    fn read(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let Some((body, wanted)) = self.input.direct() else {
                return self.feed(piece);
            };
            assert!(self.leftover.is_empty());
            assert!(wanted > 0 && wanted <= body.capacity() - body.len());
            let len = wanted.min(piece.len());
            body.extend_from_slice(piece.split_off(..len).unwrap());
            self.feed(b"");
        }
    }

    fn check_memory(&self) {
        if let State::Collecting(body) = &self.input.state {
            assert!(body.bytes.capacity() <= body.whole_len);
            let twice = 2 * (body.bytes.len() + DIRECT_LEN_MIN);
            assert!(body.bytes.capacity() <= BODY_RESERVE_LEN_MAX.max(twice));
        }
    }
}

fn items_of(stream: &[u8]) -> Vec<Got> {
    let mut client = Client::default();
    client.feed(stream);
    client.got
}

fn line(text: &str) -> Got {
    Got::Line(text.to_string())
}

const TOO_LONG: Got = Got::TooLong { http: false };

#[test]
fn lines_end_at_cr_lf_and_nowhere_else() {
    for (stream, items) in [
        (&b"stats\n"[..], vec![]),
        (b"stats\r", vec![]),
        (b"\r\n", vec![line("")]),
        (b"use a\nb\r\n", vec![line("use a\\nb")]),
        (b"\nlist-tube-used\r\n", vec![line("\\nlist-tube-used")]),
        (
            b"use a\rb\r\nstats\r\n",
            vec![line("use a\\rb"), line("stats")],
        ),
        (
            b"list-tube-used\r\r\nstats\r\n",
            vec![line("list-tube-used\\r"), line("stats")],
        ),
        (b"use a\r\nuse b\r\n", vec![line("use a"), line("use b")]),
    ] {
        assert_eq!(items_of(stream), items, "{}", stream.escape_ascii());
    }
}

#[test]
fn a_line_of_222_characters_is_the_longest() {
    for len in [0, 221, 222] {
        let text = "x".repeat(len);
        let stream = format!("{text}\r\nstats\r\n");
        assert_eq!(items_of(stream.as_bytes()), [line(&text), line("stats")]);
    }
}

#[test]
fn a_longer_line_is_refused_once_and_hides_nothing() {
    for len in (223..232).chain([446, 447, 448, 449, 671, 5000, 200_000]) {
        for (first, http) in [("x", false), ("GET /", true), ("hOst:", true)] {
            let stream = format!("{first}{}\r\nstats\r\n", "x".repeat(len - first.len()));
            let items = [Got::TooLong { http }, line("stats")];
            assert_eq!(items_of(stream.as_bytes()), items, "{len} characters");
        }
    }
}

#[test]
fn nothing_is_said_before_a_long_line_ends() {
    let mut client = Client::default();
    for _ in 0..10 {
        client.feed(&[b'a'; 50]);
    }
    assert_eq!(client.got, []);
    assert!(!client.input.is_idle());
    assert!(client.leftover.is_empty());
    client.feed(b"\r");
    client.feed(b"");
    assert_eq!(client.got, []);
    client.feed(b"\nput 0 0 1 1\r\n");
    assert_eq!(client.got, [TOO_LONG, line("put 0 0 1 1")]);
}

#[test]
fn a_body_is_as_long_as_announced_and_holds_any_bytes() {
    for (stream, items) in [
        (
            &b"body 0\r\n\r\nstats\r\n"[..],
            vec![line("body 0"), Got::Body(vec![]), line("stats")],
        ),
        (
            b"body 4\r\n\r\n\0\n\r\n",
            vec![line("body 4"), Got::Body(b"\r\n\0\n".to_vec())],
        ),
        (
            b"body 3\r\nabcdestats\r\n",
            vec![line("body 3"), Got::Unterminated, line("stats")],
        ),
        (
            b"body 3\r\nabc\r\r\n\r\n",
            vec![line("body 3"), Got::Unterminated, line("\\n")],
        ),
        (
            b"body 3\r\nabc\n\r\r\n",
            vec![line("body 3"), Got::Unterminated, line("")],
        ),
        (b"body 3\r\nabc\r", vec![line("body 3")]),
    ] {
        assert_eq!(items_of(stream), items, "{}", stream.escape_ascii());
    }
}

#[test]
fn bodies_around_the_border_between_gathering_and_collecting() {
    for len in [
        BODY_GATHER_LEN_MAX - 1,
        BODY_GATHER_LEN_MAX,
        BODY_GATHER_LEN_MAX + 1,
        65_535,
    ] {
        for (end, item) in [
            ("\r\n", Got::Body(vec![b'z'; len])),
            ("\r.", Got::Unterminated),
        ] {
            let announced = line(&format!("body {len}"));
            let stream = format!("body {len}\r\n{}{end}stats\r\n", "z".repeat(len));
            let items = [announced, item, line("stats")];
            assert_eq!(items_of(stream.as_bytes()), items);

            let mut client = Client::default();
            stream
                .as_bytes()
                .chunks(1000)
                .for_each(|piece| client.read(piece));
            assert_eq!(client.got, items);
        }
    }
}

#[test]
fn what_is_skipped_is_counted_and_not_looked_at() {
    for (stream, items) in [
        (
            &b"skip 0\r\nstats\r\n"[..],
            vec![line("skip 0"), Got::Skipped(Skip::TooBig), line("stats")],
        ),
        (
            b"skip 9\r\nquit\r\n\r\n\nstats\r\n",
            vec![line("skip 9"), Got::Skipped(Skip::TooBig), line("stats")],
        ),
        (
            b"skip 4294967297\r\nstats\r\n",
            vec![line("skip 4294967297")],
        ),
    ] {
        assert_eq!(items_of(stream), items, "{}", stream.escape_ascii());
    }
}

#[test]
fn the_body_of_a_refused_put_is_skipped_and_an_empty_one_only_if_it_is_there() {
    for (len, stream, expected) in [
        (4, &b"quit\r\nnext\r\n"[..], "next"),
        (0, b"\r\nnext\r\n", "next"),
        (0, b"next\r\n", "next"),
        (0, b"\rnext\r\n", "\rnext"),
    ] {
        for cut in 0..stream.len() {
            let mut input = Input::default();
            input.skip_refused_body(len);
            let (mut head, mut lines) = (&stream[..cut], Vec::new());
            while let Some(item) = input.next(&mut head) {
                lines.extend(matches!(item, Item::Line(_)).then(|| format!("{item:?}")));
            }
            let rest = [head, &stream[cut..]].concat();
            let mut rest = &rest[..];
            while let Some(item) = input.next(&mut rest) {
                lines.extend(matches!(item, Item::Line(_)).then(|| format!("{item:?}")));
            }
            assert_eq!(
                lines,
                [format!("{:?}", Item::Line(expected.as_bytes()))],
                "cut at {cut}"
            );
        }
    }
}

#[test]
fn a_skip_of_nothing_needs_no_further_byte() {
    let mut input = Input::default();
    input.skip(0, Skip::Answered);
    assert!(!input.is_idle());
    assert!(matches!(
        input.next(&mut &b""[..]),
        Some(Item::Skipped(Skip::Answered))
    ));
    assert!(input.is_idle());
}

#[test]
fn memory_follows_what_has_arrived_and_not_what_was_announced() {
    let mut client = Client::default();
    client.feed(b"body 1073741824\r\n");
    let (body, wanted) = client.input.direct().unwrap();
    assert_eq!(wanted, BODY_RESERVE_LEN_MAX);
    assert!(body.capacity() <= BODY_RESERVE_LEN_MAX);
    for _ in 0..100 {
        client.read(&[b'x'; 50_000]);
        client.check_memory();
    }
}

#[test]
fn the_last_growth_of_a_body_is_exact() {
    let mut client = Client::default();
    let len = 3 * BODY_RESERVE_LEN_MAX;
    client.feed(format!("body {len}\r\n").as_bytes());
    let most = 2 * BODY_RESERVE_LEN_MAX + 4 * DIRECT_LEN_MIN;
    client.read(&vec![b'x'; most]);
    let (body, wanted) = client.input.direct().unwrap();
    assert_eq!((body.capacity(), wanted), (len + 2, len + 2 - most));
    client.read(&vec![b'x'; len - most]);
    client.read(b"\r\n");
    assert_eq!(client.got.last(), Some(&Got::Body(vec![b'x'; len])));
}

#[test]
fn only_a_large_body_is_read_directly() {
    let mut client = Client::default();
    for line in [&b"stats\r\n"[..], b"body 16384\r\n"] {
        client.feed(line);
        assert!(client.input.direct().is_none());
    }
    client.feed(&[b'x'; 16_386]);
    client.feed(b"skip 100000\r\n");
    assert!(client.input.direct().is_none());
    client.feed(&[b'x'; 100_000]);
    client.feed(b"body 16385\r\n");
    assert!(client.input.direct().is_some());
    let (body, wanted) = client.input.direct().unwrap();
    body.resize(wanted, b'x');
    assert_eq!(wanted, 16_387);
    assert!(client.input.direct().is_none());
    client.feed(b"");
    assert_eq!(client.got.last(), Some(&Got::Unterminated));
}

#[test]
fn a_body_without_memory_is_skipped_to_its_end() {
    let mut client = Client::default();
    client.feed(b"body 100000\r\n");
    client.read(&[b'x'; 40_000]);
    let State::Collecting(body) = &client.input.state else {
        panic!("a large body is collected");
    };
    client.input.state = body.abandoned();
    client.read(&[b'x'; 60_000]);
    client.read(b"\r\nstats\r\n");
    let items = [
        line("body 100000"),
        Got::Skipped(Skip::OutOfMemory),
        line("stats"),
    ];
    assert_eq!(client.got, items);
}

/// A stretch of a stream and the items that it makes.
type Part = (Vec<u8>, Vec<Got>);

/// Bytes full of half line ends, but without a whole one.
fn no_line_end(len: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    let alphabet = prop::sample::select(b"GET :\r\n\0x".as_slice());
    prop::collection::vec(alphabet, len).prop_map(|mut bytes| {
        for at in 1..bytes.len() {
            if bytes[at - 1] == b'\r' && bytes[at] == b'\n' {
                bytes[at] = b'x';
            }
        }
        bytes
    })
}

fn a_line() -> impl Strategy<Value = Part> {
    no_line_end(0..600usize).prop_map(|text| {
        let item = if text.len() + CRLF.len() <= LINE_LEN_MAX {
            line(&text.escape_ascii().to_string())
        } else {
            Got::TooLong {
                http: is_http(&text),
            }
        };
        ([&text, CRLF].concat(), vec![item])
    })
}

fn a_body() -> impl Strategy<Value = Part> {
    let small = no_line_end(0..300usize);
    let large = (16_380..50_000usize).prop_map(|len| b"\r\nxyz".repeat(len / 5));
    let end = prop::sample::select(vec![b"\r\n", b"\r\n", b"\n\r", b"\rx", b"x\n"]);
    (prop_oneof![3 => small.boxed(), 1 => large.boxed()], end).prop_map(|(body, end)| {
        let announced = format!("body {}", body.len());
        let stream = [announced.as_bytes(), CRLF, &body, end].concat();
        let item = if end == CRLF {
            Got::Body(body)
        } else {
            Got::Unterminated
        };
        (stream, vec![line(&announced), item])
    })
}

fn a_skip() -> impl Strategy<Value = Part> {
    (0..2000usize).prop_map(|len| {
        let announced = format!("skip {len}");
        let skipped = &b"\r\nquit\r\n".repeat(len)[..len];
        let stream = [announced.as_bytes(), CRLF, skipped].concat();
        (stream, vec![line(&announced), Got::Skipped(Skip::TooBig)])
    })
}

fn a_stream() -> impl Strategy<Value = Part> {
    let part = prop_oneof![a_line().boxed(), a_body().boxed(), a_skip().boxed()];
    prop::collection::vec(part, 0..12).prop_map(|parts| {
        let (streams, items): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        (streams.concat(), items.concat())
    })
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn a_stream_is_the_same_however_it_is_cut(
        (stream, items) in a_stream(),
        lens in prop::collection::vec(prop_oneof![0..4usize, 200..250usize, 0..40_000usize], 1..50),
    ) {
        prop_assert_eq!(&items_of(&stream), &items);

        let mut client = Client::default();
        let mut left = &stream[..];
        for (at, &len) in lens.iter().cycle().enumerate() {
            if left.is_empty() || lens.iter().all(|&len| len == 0) {
                break;
            }
            let piece = left.split_off(..len.min(left.len())).unwrap();
            if at % 2 == 0 { client.feed(piece) } else { client.read(piece) }
        }
        client.feed(left);
        prop_assert_eq!(&client.got, &items);
        prop_assert!(client.input.is_idle() && client.leftover.is_empty());
    }

    #[test]
    fn a_stream_is_the_same_byte_by_byte((stream, items) in a_stream_of_small_parts()) {
        let mut client = Client::default();
        stream.chunks(1).for_each(|byte| client.feed(byte));
        prop_assert_eq!(client.got, items);
    }

    #[test]
    fn any_bytes_are_cut(stream: Vec<u8>) {
        items_of(&stream);
    }
}

fn a_stream_of_small_parts() -> impl Strategy<Value = Part> {
    a_stream().prop_filter("byte by byte is slow", |(stream, _)| stream.len() < 16_000)
}
