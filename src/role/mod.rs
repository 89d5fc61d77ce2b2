//! Processes: what stands in one, and the loop that drives it. Each role is glue; what it glues is
//! tested without it.

mod acceptor;
pub mod backoff;
pub mod clients;
mod conn;
pub mod control;
pub mod error;
pub mod legacy;
mod memory;
pub mod process;
pub mod shard;
mod trace;
