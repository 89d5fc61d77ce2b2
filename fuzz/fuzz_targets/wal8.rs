//! The input is a file of an owner's binlog, or what stands behind its header. The first byte says
//! which, and whether checksums are made to fit: reading ends, what was read can be written and
//! reads the same, and a start from a directory with the file ends too.

#![no_main]

#[path = "../../tests/recovery/memory.rs"]
mod memory;
#[path = "../../tests/recovery/owned.rs"]
mod owned;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| owned::run(input));
