//! What the system offers: clocks, signals, readiness, descriptors, rights. The only place in the
//! program for `unsafe`: each block is a call, and each function around one is safe to call.

pub mod clock;
pub mod fd;
pub mod file;
pub mod poller;
pub mod process;
pub mod signal;
pub mod spawn;
