//! What clients see when a process of the sharded mode dies, stops, or loses a link: real
//! processes, real signals, and an account of every job.

#![cfg(target_os = "linux")]

#[path = "server/calm.rs"]
mod calm;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/peer.rs"]
mod peer;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/program.rs"]
mod program;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/transcript/mod.rs"]
mod transcript;

#[path = "failures/fleet.rs"]
mod fleet;
#[path = "failures/process.rs"]
mod process;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "sim/random.rs"]
mod random;

#[path = "failures/account.rs"]
mod account;
#[path = "failures/bound.rs"]
mod bound;
#[path = "failures/down.rs"]
mod down;
#[path = "failures/frontend.rs"]
mod frontend;
#[path = "failures/quiet.rs"]
mod quiet;
#[path = "failures/restart.rs"]
mod restart;
#[path = "failures/slow.rs"]
mod slow;
