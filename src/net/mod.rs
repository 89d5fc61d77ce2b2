//! Non-blocking sockets: listening, accepting, reading and writing, for TCP and Unix alike, and
//! links between our own processes. What
//! is ready when is `sys::poller`'s business.

pub mod address;
pub mod link;
pub mod listener;
pub mod stream;
