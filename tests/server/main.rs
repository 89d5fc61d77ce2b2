//! Black-box tests over sockets, and the tools they share with the legacy transcripts.

#[allow(dead_code, reason = "other test binaries use the rest")]
mod fixture;
#[cfg(target_os = "linux")]
mod measure;
#[allow(dead_code, reason = "other test binaries use the rest")]
mod peer;
mod program;
#[allow(dead_code, reason = "other test binaries use the rest")]
mod transcript;

mod accepting;
mod activation;
#[cfg(target_os = "linux")]
mod bodies;
mod command_line;
#[cfg(target_os = "linux")]
mod idle;
mod listening;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod process_1;
#[cfg(target_os = "linux")]
mod rights;
mod signals;
#[cfg(target_os = "linux")]
mod slow_readers;
mod transcript_language;
mod verbose;
