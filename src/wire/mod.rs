//! What goes over the link between a frontend and an owner, to bytes and back. Pure: bytes come in
//! as slices and go out into a buffer; who sends, waits and counts is in `role` and `net`.
//!
//! A link carries frames: a [`header`], metadata, and a part of a job's body. A frame without a
//! body, or with a small one, is all that is said; a larger body goes on in frames of its own,
//! between which those of other sessions may come ([`frame`], [`outgoing`], [`assembler`]). What
//! the metadata means is said by the frame's [`kind`]: an [`op`], an [`event`], or what the
//! processes have to say to each other themselves ([`control`]).
//!
//! All numbers are little-endian and have a fixed place. Whoever changes one meets a test with
//! literal bytes, and [`header::WIRE_VERSION`] beside it: processes of two versions never talk.
//!
//! Bytes from a link are checked and never believed: what is wrong is a [`refusal::Refusal`],
//! which costs the link, and nothing is allocated for a length before the bytes are there.

pub mod assembler;
pub mod control;
pub mod credit;
pub mod cursor;
pub mod event;
pub mod frame;
pub mod header;
pub mod kind;
pub mod op;
pub mod outgoing;
pub mod refusal;
pub mod setup;
pub mod stats;

#[cfg(test)]
mod tests;
