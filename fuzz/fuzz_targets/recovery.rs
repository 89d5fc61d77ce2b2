//! The input is a directory of a binlog and what happens after a start from it, as
//! `tests/recovery/script.rs` says: whatever the files hold, the next start finds the jobs that
//! this one had.

#![no_main]

#[path = "../../tests/recovery/memory.rs"]
mod memory;
#[path = "../../tests/recovery/script.rs"]
mod script;
#[path = "../../tests/recovery/trial.rs"]
mod trial;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| trial::run(&script::read(input)));
