//! One client's conversation: what its bytes ask for and what it is answered.

pub mod input;
