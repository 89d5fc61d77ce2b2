//! Files as bytes in memory, and readers that give them in pieces.

use proptest::prelude::*;

use super::*;
use crate::base::ids::{JobId, Pri};
use crate::base::name::TubeName;
use crate::base::property_config;
use crate::engine::job::JobCounts;
use crate::wal::record::{
    Content, Decoded, JobImage, SavedState, SpanNanos, WallNanos, decode, encode,
};

/// Gives its bytes a few at a time, and is interrupted now and then.
struct Slow<'a> {
    bytes: &'a [u8],
    piece: usize,
    calls: usize,
}

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = self.piece.min(into.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(len);
        into[..len].copy_from_slice(now);
        self.bytes = later;
        Ok(len)
    }
}

fn put(id: u64, body: &[u8]) -> Vec<u8> {
    let job = JobImage {
        id: JobId(id),
        pri: Pri(1),
        delay: SpanNanos(0),
        ttr: SpanNanos(1),
        body_len: body.len() as u32,
        created_at: WallNanos(1),
        deadline_at: WallNanos(0),
        counts: JobCounts::default(),
        state: SavedState::Ready,
    };
    let tube = TubeName::DEFAULT;
    let content = Some(Content { tube, body });
    let mut bytes = Vec::new();
    encode(&Record { job, content }, &mut bytes);
    bytes
}

fn file(records: &[u8]) -> Vec<u8> {
    [b"\x07\0\0\0", records].concat()
}

/// Offsets and lengths of the records, and how the file ends where.
fn walk(source: impl Read) -> (Vec<(u64, u64)>, u64, Tail) {
    let mut segment = Segment::open(source).unwrap().unwrap_or_else(|header| {
        panic!("{header:?}");
    });
    let mut records = Vec::new();
    loop {
        match segment.read_next().unwrap() {
            Found::Record { offset, len, .. } => records.push((offset, len)),
            Found::End { offset, tail } => return (records, offset, tail),
        }
    }
}

#[test]
fn names_are_plain_decimal() {
    let of = |name: &str| FileName::of(OsStr::new(name));
    assert_eq!(of("binlog.1"), FileName::Segment(1));
    assert_eq!(of("binlog.0"), FileName::Segment(0));
    assert_eq!(of(&file_name(u64::MAX)), FileName::Segment(u64::MAX));
    for odd in [
        "binlog.",
        "binlog.007",
        "binlog.00",
        "binlog.+3",
        "binlog.-2",
        "binlog. 1",
        "binlog.1x",
        "binlog.1.old",
        "binlog.01.damaged",
        "binlog..damaged",
        "binlog.18446744073709551616",
    ] {
        assert_eq!(of(odd), FileName::Odd, "{odd}");
    }
    assert_eq!(of("binlog.7.damaged"), FileName::PutAside);
    for ahead in ["spare", "ahead.1", "ahead.18446744073709551616"] {
        assert_eq!(of(ahead), FileName::Ahead, "{ahead}");
    }
    for other in [
        "lock",
        "binlog",
        "xbinlog.1",
        "Binlog.1",
        "ahead.",
        "ahead.-1",
        "spare.1",
        "",
    ] {
        assert_eq!(of(other), FileName::Other, "{other}");
    }
}

#[test]
fn headers_are_known_or_told() {
    let of = |bytes: &[u8]| Segment::open(bytes).unwrap().err();
    assert_eq!(of(b"\x07\0\0"), Some(BadHeader::Short(3)));
    assert_eq!(of(b"\0\0\0\x01"), Some(BadHeader::Unknown(1 << 24)));
    assert_eq!(of(b"\0\0\0\0\x01"), Some(BadHeader::Unknown(0)));
    assert_eq!(of(b"\x06\0\0\0"), Some(BadHeader::Unknown(6)));
    assert_eq!(of(b"\xff\xff\xff\xff"), Some(BadHeader::Unknown(-1)));
    assert_eq!(of(b"\x07\0\0\0"), None);
    assert_eq!(of(b"\x05\0\0\0"), None);
}

#[test]
fn a_file_that_was_never_written_to_ends_as_it_is() {
    for len in [0, 1, 4, 5, 500, 1_000_000] {
        let bytes = vec![0; len];
        assert!(Segment::open(&bytes[..]).unwrap().ok().unwrap().is_blank());
        let tail = if len == 0 { Tail::Clean } else { Tail::Zeros };
        assert_eq!(walk(&bytes[..]), (vec![], len.min(4) as u64, tail));
    }
    let far = [&[0; 1_000_000][..], b"x"].concat();
    let header = Segment::open(&far[..]).unwrap().err();
    assert_eq!(header, Some(BadHeader::Unknown(0)));
    assert!(
        !Segment::open(&b"\x07\0\0\0"[..])
            .unwrap()
            .ok()
            .unwrap()
            .is_blank()
    );
}

#[test]
fn records_follow_one_another_to_the_end() {
    let one = put(1, b"one");
    let two = put(2, b"");
    let bytes = file(&[&one[..], &two].concat());
    let (at, len) = (4 + one.len() as u64, two.len() as u64);
    let records = vec![(4, one.len() as u64), (at, len)];
    assert_eq!(walk(&bytes[..]), (records.clone(), at + len, Tail::Clean));
    let zeros = [&bytes[..], &[0; 300_000]].concat();
    assert_eq!(walk(&zeros[..]), (records, at + len, Tail::Zeros));
    let torn = &bytes[..bytes.len() - 1];
    assert_eq!(walk(torn), (vec![(4, at - 4)], at, Tail::Torn));
}

#[test]
fn what_is_far_behind_zeros_is_found() {
    let mut bytes = file(&[0; 1_000_000]);
    assert_eq!(walk(&bytes[..]), (vec![], 4, Tail::Zeros));
    bytes.push(1);
    let tail = Tail::Damaged {
        at: 1_000_004,
        fault: Fault::BehindZeros,
    };
    assert_eq!(walk(&bytes[..]), (vec![], 4, tail));
}

#[test]
fn a_torn_record_before_many_zeros_is_told_from_damage() {
    let mut bytes = file(&put(1, b"work"));
    let len = bytes.len();
    bytes[len - 2..].fill(0);
    bytes.resize(1_000_000, 0);
    assert_eq!(walk(&bytes[..]), (vec![], 4, Tail::Torn));
    bytes.push(1);
    let tail = Tail::Damaged {
        at: len as u64 - 2,
        fault: Fault::BodyEnd,
    };
    assert_eq!(walk(&bytes[..]), (vec![], 4, tail));
}

#[test]
fn a_record_longer_than_what_is_read_at_once_is_whole() {
    let record = put(1, &vec![7; 3 * READ_LEN]);
    let bytes = file(&[&record[..], &put(2, b"x")].concat());
    let (records, _, tail) = walk(&bytes[..]);
    assert_eq!((records.len(), tail), (2, Tail::Clean));
}

#[test]
fn a_claim_of_a_large_body_costs_no_memory() {
    let mut record = put(1, b"work");
    let at = 4 + "default".len() + 32;
    record[at..at + 4].copy_from_slice(&(1i32 << 30).to_le_bytes());
    let bytes = file(&record);
    let mut segment = Segment::open(&bytes[..]).unwrap().ok().unwrap();
    let torn = Found::End {
        offset: 4,
        tail: Tail::Torn,
    };
    assert_eq!(segment.read_next().unwrap(), torn);
    assert!(segment.window.capacity() <= 2 * READ_LEN);
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn pieces_make_no_difference(
        bodies in prop::collection::vec(0..400usize, 0..20),
        cut in 0..2000usize,
        zeros in 0..200usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        piece in 1..700usize,
    ) {
        let records: Vec<u8> =
            (1..).zip(&bodies).flat_map(|(id, &len)| put(id, &vec![b'x'; len])).collect();
        let mut bytes = file(&records);
        bytes.truncate(bytes.len().saturating_sub(cut).max(4));
        bytes.resize(bytes.len() + zeros, 0);
        for (at, byte) in changes {
            if bytes.len() > 4 {
                let at = 4 + at.index(bytes.len() - 4);
                bytes[at] = byte;
            }
        }
        let whole = walk(&bytes[..]);
        prop_assert_eq!(&whole, &walk(Slow { bytes: &bytes, piece, calls: 0 }));

        let mut at = 4;
        for (offset, len) in &whole.0 {
            prop_assert_eq!(*offset, at as u64);
            at += *len as usize;
        }
        let tail = match decode(Version::V7, &bytes[at..]) {
            Ok(Decoded::Record { .. }) => None,
            Ok(Decoded::Zeros) if at == bytes.len() => Some(Tail::Clean),
            Ok(Decoded::Zeros) => Some(Tail::Zeros),
            Ok(Decoded::Torn) => Some(Tail::Torn),
            Err(damage) => Some(Tail::Damaged {
                at: (at + damage.at) as u64,
                fault: damage.fault,
            }),
        };
        prop_assert_eq!(Some(whole.2), tail);
    }
}
