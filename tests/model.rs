//! The engine against a model of it: random asks by several sessions over several tubes, told to
//! the engine and to the plainest queue that does what the original does, which must say the same,
//! word for word, and write down the same.
//!
//! The parts: `steps` draws what happens, `run` makes it happen to both and compares, `scribe`
//! takes down what either says and is the journal that sometimes has no room, `naive` is the model.
//! A failure prints the transcript of the shortest run that still fails.

#[path = "model/naive.rs"]
mod naive;
#[path = "model/run.rs"]
mod run;
#[path = "model/scribe.rs"]
mod scribe;
#[path = "model/steps.rs"]
mod steps;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

/// Runs in an ordinary test; about two seconds.
const CASES: u32 = 800;
/// Steps in the longest run. Long enough for a dozen jobs to meet half a dozen waiters, short
/// enough to be cut down to the few that matter.
const STEPS_MAX: usize = 200;

fn config() -> Config {
    let default = Config::default();
    // An explicit number of cases would win over the environment's.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        default.cases
    } else {
        CASES
    };
    Config {
        cases,
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/model/regressions.txt",
        ))),
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_engine_says_what_the_plainest_queue_says(
        kind in steps::kind(),
        steps in prop::collection::vec(steps::step(), 1..STEPS_MAX),
    ) {
        run::play(kind, &steps).map_err(TestCaseError::fail)?;
    }
}
