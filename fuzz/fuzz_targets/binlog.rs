//! The input is the rest of a binlog file behind its header, whose version the first byte chooses:
//! reading it does not panic, a record that was read can be written and reads the same, and a file
//! read in one piece is what it is read record by record.

#![no_main]

use beanshard::wal::record::{Decoded, Version, decode, encode};
use beanshard::wal::segment::{Found, HEADER_LEN, Segment, Tail};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, records)) = input.split_first() else {
        return;
    };
    let version = if first % 2 == 0 { Version::V5 } else { Version::V7 };
    let file = [&version.number().to_le_bytes()[..], records].concat();
    let segment = Segment::open(&file[..]).expect("memory can be read");
    let Ok(mut segment) = segment else {
        panic!("the version is a known one");
    };
    let mut at = HEADER_LEN;
    loop {
        let expected = decode(version, &file[at..]);
        match segment.read_next().expect("memory can be read") {
            Found::Record {
                offset,
                len,
                record,
            } => {
                assert_eq!(offset, at as u64);
                at += len as usize;
                let len = len as usize;
                assert_eq!(expected, Ok(Decoded::Record { record, len }));
                let mut again = Vec::new();
                encode(&record, &mut again);
                let len = again.len();
                let expected = Ok(Decoded::Record { record, len });
                assert_eq!(decode(Version::V7, &again), expected);
            }
            Found::End { offset, tail } => {
                assert_eq!(offset, at as u64);
                let is_at_end = at == file.len();
                let found = match expected {
                    Ok(Decoded::Record { .. }) => panic!("a record was not read"),
                    Ok(Decoded::Zeros) if is_at_end => Tail::Clean,
                    Ok(Decoded::Zeros) => Tail::Zeros,
                    Ok(Decoded::Torn) => Tail::Torn,
                    Err(damage) => Tail::Damaged {
                        at: (at + damage.at) as u64,
                        fault: damage.fault,
                    },
                };
                return assert_eq!(found, tail);
            }
        }
    }
});
