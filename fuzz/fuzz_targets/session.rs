//! What four clients send, in pieces and over time, read from the input as
//! `tests/bytes/script.rs` says: every command is answered once, and nobody gets out of step.

#![no_main]

#[allow(dead_code, reason = "the comparison with the C server uses the rest")]
#[path = "../../tests/oracle/answer.rs"]
mod answer;
#[path = "../../tests/bytes/framer.rs"]
mod framer;
#[path = "../../tests/bytes/script.rs"]
mod script;
#[path = "../../tests/bytes/table.rs"]
mod table;

use libfuzzer_sys::fuzz_target;

use table::Table;

fuzz_target!(|input: &[u8]| {
    for is_direct in [false, true] {
        let mut table = Table::new(is_direct);
        for op in script::read(input) {
            table.obey(&op);
        }
        table.finish();
    }
});
