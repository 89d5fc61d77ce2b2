#![doc = include_str!("ARCHITECTURE.md")]

pub mod base;
pub mod cli;
pub mod engine;
pub mod error;
pub mod net;
pub mod proto;
pub mod role;
pub mod session;
pub mod sys;
