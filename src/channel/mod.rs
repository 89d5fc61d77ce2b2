//! The two ends of a link between a frontend and an owner, sans I/O: frames come in, frames go out
//! into a buffer. Here are the rules that make a link safe: who may say what after what, what is
//! refused and counted, how much may be under way, and what is left of it when the link is lost.
//!
//! [`near::NearEnd`] is the frontend's, [`far::FarEnd`] the owner's. [`remote::RemoteShards`] is
//! all near ends of a frontend, and the way of its sessions to shards in other processes. Sockets,
//! clocks and the owners' queue are the roles'; the simulation has links of its own.

mod behind;
pub mod far;
mod held;
pub mod near;
pub mod remote;
mod speaker;

#[cfg(test)]
mod tests;

use crate::base::limits::{ASSEMBLY_OVERHEAD_BYTES, CREDIT_ASKS, CREDIT_BYTES, META_LEN_MAX};
use crate::wire::control::Hello;
use crate::wire::credit::Amount;

/// What both ends of a link have to agree on.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// What the one end says first, and the other has to say first.
    pub own: Hello,
    /// See `own`.
    pub awaited: Hello,
    /// Longest body in bytes.
    pub body_len_max: u32,
    /// How much may be under way from the frontend to the owner.
    pub window: Amount,
}

impl Terms {
    /// Those of a link with the usual window.
    #[must_use]
    pub fn new(own: Hello, awaited: Hello, body_len_max: u32) -> Terms {
        let window = Amount {
            asks: CREDIT_ASKS,
            bytes: CREDIT_BYTES.into(),
        };
        Terms {
            own,
            awaited,
            body_len_max,
            window,
        }
    }

    /// Bytes of bodies that an owner may have to put together at once: as many of the longest as
    /// the window lets under way. They are jobs that it will have when the last byte has come.
    fn owner_budget(&self) -> u64 {
        let overhead = ASSEMBLY_OVERHEAD_BYTES + META_LEN_MAX as u64;
        self.window.large_bodies() * (u64::from(self.body_len_max) + overhead)
    }
}
