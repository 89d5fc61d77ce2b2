#![doc = include_str!("ARCHITECTURE.md")]

pub mod base;

pub mod net;
pub mod sys;
