#![doc = include_str!("ARCHITECTURE.md")]

pub mod base;
pub mod engine;
pub mod proto;
pub mod session;
