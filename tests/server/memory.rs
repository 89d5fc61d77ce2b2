//! What a large backlog leaves behind when it is gone.

use std::time::Duration;

use crate::fixture::wait_until;
use crate::measure::kib;
use crate::peer::{Peer, put};
use crate::program::serve;

const JOBS: u64 = 300_000;
/// Commands sent before their answers are taken.
const BATCH: u64 = 10_000;

fn put_all(peer: &mut Peer) {
    let block = put(&[b'x'; 100]).repeat(BATCH as usize);
    for batch in 0..JOBS / BATCH {
        peer.send(&block);
        for id in 1..=BATCH {
            let expected = format!("INSERTED {}", batch * BATCH + id);
            assert_eq!(peer.line(), expected);
        }
    }
}

fn delete_all(peer: &mut Peer) {
    for batch in 0..JOBS / BATCH {
        let ids = batch * BATCH + 1..=(batch + 1) * BATCH;
        let lines: Vec<String> = ids.map(|id| format!("delete {id}\r\n")).collect();
        peer.send(lines.concat());
        for _ in 0..BATCH {
            assert_eq!(peer.line(), "DELETED");
        }
    }
}

// A3.3: an operator sees the memory of a backlog go when the backlog goes.
#[test]
fn memory_goes_back_to_the_system_with_the_jobs() {
    let server = serve(&[]);
    let mut peer = Peer::of(&server);
    put_all(&mut peer);
    let peak = kib(&server, "VmRSS");
    assert!(peak > JOBS / 10, "{peak} KiB for {JOBS} jobs");
    delete_all(&mut peer);
    let now = || kib(&server, "VmRSS");
    let is_back = || now() * 100 < peak * 40;
    assert!(
        wait_until(Duration::from_secs(4), is_back),
        "{} of {peak} KiB",
        now()
    );
    eprintln!("{} of {peak} KiB after {JOBS} jobs of 100 bytes", now());
}
