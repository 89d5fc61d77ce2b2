//! Black-box tests over sockets, and the tools they share with the legacy transcripts.

#[allow(dead_code, reason = "other test binaries use the rest")]
mod fixture;
#[allow(dead_code, reason = "other test binaries use the rest")]
mod transcript;
mod transcript_language;
