//! Non-blocking sockets: listening, accepting, reading and writing, for TCP and Unix alike. What
//! is ready when is `sys::poller`'s business.

pub mod address;
pub mod listener;
pub mod stream;
