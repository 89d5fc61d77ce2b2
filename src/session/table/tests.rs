//! Shards that answer when they are told to, and that are in reach or not.
