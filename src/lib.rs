#![doc = include_str!("ARCHITECTURE.md")]

// The pure modules match their own enums completely; tests may look at a few cases only.
#[cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
pub mod base;

#[cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
pub mod engine;
#[cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
pub mod proto;

#[cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
pub mod session;
#[cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
pub mod wire;

#[cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]
pub mod channel;

pub mod net;
pub mod sys;
pub mod wal;

pub mod cli;
pub mod data;
pub mod error;
pub mod logging;
pub mod role;

#[cfg(feature = "ctests")]
mod capi;
