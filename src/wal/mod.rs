//! The binlog on disk: records in two formats, the original's and that of an owner, the files that
//! hold them, the journal that writes them, a start that reads them, and the account of a whole
//! directory, which changes and locks nothing, so that it may be used beside a server that writes.
//!
//! Every byte is taken for what it may be: written by another program, cut off by a crash, or
//! damaged. Sizes are checked before they are used, and what is wrong is told with its place.

pub mod check;
mod compact;
mod convert;
pub mod directory;
pub mod disk;
pub mod dump;
pub mod error;
mod files;
pub mod format;
pub mod journal;
mod json;
mod pauses;
mod positions;
pub mod reader;
pub mod record;
pub mod recover;
mod room;
pub mod segment;
pub mod shard_journal;
pub mod storage;
mod syncer;
pub mod topology;
pub mod v7;
pub mod v8;
