//! Any directory whatever, as if a crash, another program or damage had left it: a start from it
//! does not panic, and loses nothing that the start before has found. In memory.

#[path = "recovery/memory.rs"]
mod memory;
#[path = "recovery/owned.rs"]
mod owned;
#[path = "recovery/script.rs"]
mod script;
#[path = "recovery/trial.rs"]
mod trial;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// The directories that the fuzzer begins with.
#[test]
fn seeds_of_the_fuzzer_are_taken() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/recovery");
    for seed in fs::read_dir(seeds).expect("there are seeds") {
        let bytes = fs::read(seed.expect("it is there").path()).expect("it can be read");
        trial::run(&script::read(&bytes));
    }
}

/// The owners' files that the fuzzer begins with.
#[test]
fn seeds_of_owners_files_are_taken() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/wal8");
    for seed in fs::read_dir(seeds).expect("there are seeds") {
        owned::run(&fs::read(seed.expect("it is there").path()).expect("it can be read"));
    }
}

/// A file as a script has it: its name, its form, and its records or bytes.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let record = (any::<u8>(), 0..12u8, any::<u8>(), any::<u8>());
    let record = record.prop_map(|(what, id, shape, numbers)| vec![what, id, shape, numbers]);
    let content = prop_oneof![
        9 => prop::collection::vec(record, 0..12).prop_map(|records| records.concat()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ];
    let name = prop_oneof![5 => 0..6u8, 1 => 200..215u8];
    (name, any::<u8>(), content).prop_map(|(name, form, content)| {
        let len = (content.len() as u16).to_le_bytes();
        [&[name, form][..], &len, &content].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_next_start_from_an_owners_file_finds_what_this_one_had(
        form: u8,
        records in prop::collection::vec((0..8u8, any::<[u8; 3]>(), 0..90usize), 0..12),
    ) {
        let record = |(kind, [a, b, c], len): (u8, [u8; 3], usize)| {
            let len = [0, 0, 72, 24, 24, 0, 24, 0][usize::from(kind)].max(13 + len % 2 * len);
            let mut bytes = vec![0; len];
            bytes[0] = len as u8;
            bytes[12] = kind;
            for (at, byte) in [(13, a % 6), (16, b), (24, c), (32, 1)] {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            bytes
        };
        let records: Vec<u8> = records.into_iter().flat_map(record).collect();
        owned::run(&[&[form][..], &records].concat());
    }

    #[test]
    fn the_next_start_finds_what_this_one_had(
        choices: [u8; 2],
        steps in prop::collection::vec(any::<[u8; 2]>(), 0..60),
        files in prop::collection::vec(file(), 0..5),
    ) {
        let head = [choices[0], choices[1], steps.len() as u8];
        let script = [&head[..], &steps.concat(), &files.concat()].concat();
        trial::run(&script::read(&script));
    }
}
