//! The words everything else is said in: times, ids, names, limits, and the containers that the
//! queue is made of. Pure: nothing here knows a clock, a socket or a file.

pub mod bodies;
pub mod body;
pub mod hash;
pub mod heap;
pub mod ids;
pub mod limits;
pub mod list;
pub mod name;
pub mod ordset;
mod pages;
pub mod queue;
pub mod sift;
pub mod slab;
pub mod slot;
pub mod time;
pub mod turns;

/// How properties are tested: the seed of a failure is kept beside the test's source, in a file
/// that ends in `.regressions`.
#[cfg(test)]
pub(crate) fn property_config() -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, FileFailurePersistence};

    Config::with_failure_persistence(FileFailurePersistence::WithSource("regressions"))
}
