//! Processes: what stands in one, and the loop that drives it. Each role is glue; what it glues is
//! tested without it.

mod acceptor;
pub mod backoff;
pub mod child;
pub mod clients;
mod conn;
pub mod control;
pub mod error;
pub mod frontend;
pub mod legacy;
mod memory;
pub mod owner;
pub mod process;
pub mod shard;
pub mod supervisor;
mod trace;
