//! Processes: what stands in one, and the loop that drives it. Each role is glue; what it glues is
//! tested without it.

mod acceptor;
pub mod backoff;
mod binlog;
pub mod child;
pub mod clients;
mod conn;
pub mod control;
pub mod error;
pub mod frontend;
pub mod hub;
pub mod legacy;
mod links;
mod memory;
pub mod owner;
pub mod process;
pub mod shard;
pub mod supervisor;
mod tally;
mod trace;
mod uplink;
