//! Black-box tests over sockets, and the tools they share with the legacy transcripts.

#[allow(dead_code, reason = "other test binaries use the rest")]
mod fixture;
#[cfg(target_os = "linux")]
mod measure;
mod peer;
mod program;
#[allow(dead_code, reason = "other test binaries use the rest")]
mod transcript;

mod activation;
mod command_line;
mod listening;
#[cfg(target_os = "linux")]
mod process_1;
#[cfg(target_os = "linux")]
mod rights;
mod signals;
mod transcript_language;
mod verbose;
