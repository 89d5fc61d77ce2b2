//! Records against the bytes that the original writes, and against bytes of any kind.

use proptest::prelude::*;

use super::*;
use crate::base::property_config;

/// The first 97 bytes of a file that the original wrote after one put of `hello`: priority 7, TTR
/// 33, tube `tb`.
const REAL: [u8; 97] = [
    0x07, 0x00, 0x00, 0x00, // version
    0x02, 0x00, 0x00, 0x00, 0x74, 0x62, // length of the name, name
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // id
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // pri, padding
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // delay
    0x00, 0x0a, 0xf4, 0xae, 0x07, 0x00, 0x00, 0x00, // ttr
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // length of the body with CR LF, padding
    0xb0, 0x6c, 0x03, 0xb7, 0xc2, 0xba, 0xec, 0x18, // made at
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // state ends at
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // reserves, timeouts
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // releases, buries
    0x00, 0x00, 0x00, 0x00, // kicks
    0x01, 0x00, 0x00, 0x00, // state, padding
    0x68, 0x65, 0x6c, 0x6c, 0x6f, 0x0d, 0x0a, // body
];

fn real() -> Record<'static> {
    Record {
        job: JobImage {
            id: JobId(1),
            pri: Pri(7),
            delay: SpanNanos(0),
            ttr: SpanNanos(33_000_000_000),
            body_len: 5,
            created_at: WallNanos(0x18ec_bac2_b703_6cb0),
            deadline_at: WallNanos(0),
            counts: JobCounts::default(),
            state: SavedState::Ready,
        },
        content: Some(Content {
            tube: TubeName::parse(b"tb").unwrap(),
            body: b"hello",
        }),
    }
}

fn bytes_of(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(record, &mut bytes);
    bytes
}

fn whole(record: Record<'_>, len: usize) -> Result<Decoded<'_>, Damage> {
    Ok(Decoded::Record { record, len })
}

/// `REAL` without the version, with `new` at `at`.
fn altered(at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = REAL[4..].to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn a_real_record_is_read_and_written_to_the_byte() {
    assert_eq!(decode(Version::V7, &REAL[4..]), whole(real(), 93));
    assert_eq!(bytes_of(&real()), REAL[4..]);
    let mut longer = REAL[4..].to_vec();
    longer.extend_from_slice(b"\x01\x02\x03");
    assert_eq!(decode(Version::V7, &longer), whole(real(), 93));
}

#[test]
fn every_field_has_its_place() {
    let record = Record {
        job: JobImage {
            id: JobId(0x0807_0605_0403_0201),
            pri: Pri(0x1413_1211),
            delay: SpanNanos(0x2827_2625_2423_2221),
            ttr: SpanNanos(0x3837_3635_3433_3231),
            body_len: 0x0043_4241 - 2,
            created_at: WallNanos(0x5857_5655_5453_5251),
            deadline_at: WallNanos(0x6867_6665_6463_6261),
            counts: JobCounts {
                reserves: 0x7473_7271,
                timeouts: 0x8483_8281,
                releases: 0x9493_9291,
                buries: 0xa4a3_a2a1,
                kicks: 0xb4b3_b2b1,
            },
            state: SavedState::Buried,
        },
        content: None,
    };
    let bytes: &[u8; 84] = b"\0\0\0\0\
        \x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14bsh1\
        \x21\x22\x23\x24\x25\x26\x27\x28\x31\x32\x33\x34\x35\x36\x37\x38\
        \x41\x42\x43\0\0\0\0\0\x51\x52\x53\x54\x55\x56\x57\x58\
        \x61\x62\x63\x64\x65\x66\x67\x68\x71\x72\x73\x74\x81\x82\x83\x84\
        \x91\x92\x93\x94\xa1\xa2\xa3\xa4\xb1\xb2\xb3\xb4\x03\0\0.";
    assert_eq!(bytes_of(&record), bytes);
    assert_eq!(decode(Version::V7, bytes), whole(record, 84));
}

#[test]
fn version_5_has_a_longer_length_a_shorter_structure_and_microseconds() {
    let mut bytes = b"\x02\0\0\0\0\0\0\0tb".to_vec();
    bytes.extend_from_slice(&REAL[10..87]);
    bytes[10 + 24..10 + 32].copy_from_slice(&33_000_000u64.to_le_bytes());
    bytes[10 + 40..10 + 48].copy_from_slice(&u64::MAX.to_le_bytes());
    bytes.extend_from_slice(b"hello\r\n");
    let mut expected = real();
    expected.job.created_at = WallNanos(i64::MAX);
    assert_eq!(decode(Version::V5, &bytes), whole(expected, 94));
    assert_eq!(Version::V5.short_len(), 85);
    assert_eq!(Version::V7.short_len(), 84);
}

#[test]
fn padding_is_not_looked_at() {
    for at in [6 + 12, 6 + 36, 6 + 77] {
        assert_eq!(
            decode(Version::V7, &altered(at, &[9, 9, 9])),
            whole(real(), 93)
        );
    }
}

#[test]
fn zeros_are_the_end_however_many() {
    for version in [Version::V5, Version::V7] {
        for len in [0, 1, 3, 4, 8, 83, 84, 85, 4096] {
            assert_eq!(decode(version, &vec![0; len]), Ok(Decoded::Zeros), "{len}");
        }
        let mut bytes = vec![0; 4096];
        bytes[4095] = 1;
        let fault = Fault::BehindZeros;
        assert_eq!(decode(version, &bytes), Err(Damage { at: 4095, fault }));
    }
}

#[test]
fn a_record_cut_off_anywhere_is_torn() {
    for len in 1..93 {
        assert_eq!(
            decode(Version::V7, &REAL[4..][..len]),
            Ok(Decoded::Torn),
            "{len}"
        );
    }
}

#[test]
fn a_record_that_turns_into_zeros_is_torn_as_far_as_can_be_seen() {
    // After the length, half the name, the name, the first part of the structure, the structure,
    // half the body, half its end.
    for len in [4, 5, 6, 6 + 32, 6 + 76, 86, 90, 92] {
        let mut bytes = REAL[4..][..len].to_vec();
        bytes.resize(4096, 0);
        assert_eq!(decode(Version::V7, &bytes), Ok(Decoded::Torn), "{len}");
        bytes[4095] = 1;
        assert!(decode(Version::V7, &bytes).is_err(), "{len}");
    }
}

// Half a change with zeros for the rest would say that the job is gone.
#[test]
fn a_short_record_of_ours_that_turns_into_zeros_is_torn_wherever_it_does() {
    let mut short = real();
    short.content = None;
    let whole_bytes = bytes_of(&short);
    for len in 1..84 {
        let mut bytes = whole_bytes[..len].to_vec();
        bytes.resize(4096, 0);
        let expected = match len {
            ..=4 => Decoded::Zeros,
            _ => Decoded::Torn,
        };
        assert_eq!(decode(Version::V7, &bytes), Ok(expected), "{len}");
        bytes[4095] = 1;
        assert!(decode(Version::V7, &bytes).is_err(), "{len}");
    }
    // The original's have neither mark.
    let mut bytes = whole_bytes;
    bytes[4 + 12..4 + 16].fill(0);
    bytes[4 + 76..].fill(0);
    short.job.state = SavedState::Deleted;
    assert_eq!(decode(Version::V7, &bytes), whole(short, 84));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let size = |found: i32| (found.to_le_bytes(), Fault::BodySize { found });
    for (at, bytes, fault) in [
        (0, (-1i32).to_le_bytes(), Fault::NameLen { found: -1 }),
        (0, 201i32.to_le_bytes(), Fault::NameLen { found: 201 }),
        (6 + 32, size(-1).0, size(-1).1),
        (6 + 32, size(0).0, size(0).1),
        (6 + 32, size(1).0, size(1).1),
        (6 + 32, size((1 << 30) + 3).0, size((1 << 30) + 3).1),
        (6 + 32, size(6).0, Fault::BodyEnd),
        (6 + 76, [5, 0, 0, 0], Fault::State { found: 5 }),
        (6 + 76, [0, 0, 0, 0], Fault::FullDeleted),
    ] {
        let place = if fault == Fault::BodyEnd {
            6 + 80 + 4
        } else {
            at
        };
        let expected = Err(Damage { at: place, fault });
        assert_eq!(
            decode(Version::V7, &altered(at, &bytes)),
            expected,
            "{fault}"
        );
    }
    let expected = Err(Damage {
        at: 4,
        fault: Fault::Name,
    });
    assert_eq!(decode(Version::V7, &altered(4, b"-b")), expected);
    let expected = Err(Damage {
        at: 6,
        fault: Fault::Id,
    });
    assert_eq!(decode(Version::V7, &altered(6, &[0; 8])), expected);
}

#[test]
fn a_body_of_the_greatest_size_is_only_not_there_yet() {
    let bytes = altered(6 + 32, &((1i32 << 30) + 2).to_le_bytes());
    assert_eq!(decode(Version::V7, &bytes), Ok(Decoded::Torn));
}

fn job() -> impl Strategy<Value = JobImage> {
    let times = any::<(i64, i64, i64, i64)>();
    let counts = any::<(u32, u32, u32, u32, u32)>();
    (1..=u64::MAX, any::<u32>(), times, counts, 1..5u8).prop_map(
        |(id, pri, times, counts, state)| JobImage {
            id: JobId(id),
            pri: Pri(pri),
            delay: SpanNanos(times.0),
            ttr: SpanNanos(times.1),
            body_len: 0,
            created_at: WallNanos(times.2),
            deadline_at: WallNanos(times.3),
            counts: JobCounts {
                reserves: counts.0,
                timeouts: counts.1,
                releases: counts.2,
                buries: counts.3,
                kicks: counts.4,
            },
            state: SavedState::of(state).unwrap(),
        },
    )
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn what_is_written_is_read(
        job in job(),
        name in "[a-z0-9+/;.$_()][-a-z]{0,199}",
        body in prop::collection::vec(any::<u8>(), 0..300),
        is_full: bool,
        is_deleted: bool,
        rest in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut job = JobImage { body_len: body.len() as u32, ..job };
        if is_deleted && !is_full {
            job.state = SavedState::Deleted;
        }
        let tube = TubeName::parse(name.as_bytes()).unwrap();
        let record = Record { job, content: is_full.then_some(Content { tube, body: &body }) };
        let mut bytes = bytes_of(&record);
        let len = bytes.len();
        bytes.extend_from_slice(&rest);
        prop_assert_eq!(decode(Version::V7, &bytes), whole(record, len));
    }

    #[test]
    fn any_bytes_are_something(
        start in 0..3usize,
        at in 0..93usize,
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut input = REAL[4..][..[0, at, 93][start]].to_vec();
        input.extend_from_slice(&bytes);
        for version in [Version::V5, Version::V7] {
            match decode(version, &input) {
                Ok(Decoded::Record { record, len }) => {
                    prop_assert!(version.short_len() <= len && len <= input.len());
                    let again = bytes_of(&record);
                    prop_assert_eq!(decode(Version::V7, &again), whole(record, again.len()));
                }
                Ok(Decoded::Zeros) => prop_assert!(input.iter().all(|&byte| byte == 0)),
                Ok(Decoded::Torn) => prop_assert!(!input.is_empty()),
                Err(damage) => prop_assert!(damage.at < input.len()),
            }
        }
    }
}
