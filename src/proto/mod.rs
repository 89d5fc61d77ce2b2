//! The text protocol, from bytes to commands and from answers to bytes. Pure: nothing here knows a
//! socket, a queue or a moment; what a command means is said elsewhere.
//!
//! Reading borrows from the input and writing appends to the output, so that neither allocates.

pub mod command;
pub mod http;
pub mod line;
pub mod number;
pub mod reply;
pub mod yaml;
