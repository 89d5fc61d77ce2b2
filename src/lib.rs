#![doc = include_str!("ARCHITECTURE.md")]

pub mod base;

pub mod engine;
pub mod proto;

pub mod session;

pub mod net;
pub mod sys;
pub mod wal;

pub mod cli;
pub mod error;
pub mod logging;
pub mod role;
