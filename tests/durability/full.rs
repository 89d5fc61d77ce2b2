//! full
