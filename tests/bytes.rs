//! Any bytes whatever, in any pieces: nothing panics, every command is answered once, what is
//! answered does not depend on the pieces, and no client gets out of step. In memory, with a clock
//! of its own, and against a live server.

#[allow(dead_code, reason = "the comparison with the C server uses the rest")]
#[path = "oracle/answer.rs"]
mod answer;
#[allow(dead_code, reason = "other test binaries use the rest")]
#[path = "server/fixture.rs"]
mod fixture;
#[path = "bytes/framer.rs"]
mod framer;
#[path = "bytes/live.rs"]
mod live;
#[path = "bytes/noise.rs"]
mod noise;
#[path = "bytes/script.rs"]
mod script;
#[path = "bytes/table.rs"]
mod table;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use answer::Answer;
use script::Op;
use table::Table;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 8 * ProptestConfig::default().cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

fn play(ops: &[Op], is_direct: bool) -> Vec<Vec<Answer>> {
    let mut table = Table::new(is_direct);
    ops.iter().for_each(|op| table.obey(op));
    table.finish()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_command_is_answered_once(
        ops in noise::script(script::CLIENTS),
        is_direct: bool,
    ) {
        play(&ops, is_direct);
    }

    #[test]
    fn answers_do_not_depend_on_the_pieces(
        ops in noise::script(1),
        cuts in prop::collection::vec(1..400usize, 1..20),
    ) {
        let whole = play(&ops, false);
        prop_assert_eq!(&whole, &play(&noise::cut(&ops, &cuts), false));
        prop_assert_eq!(&whole, &play(&noise::cut(&ops, &cuts), true));
        prop_assert_eq!(&whole, &play(&noise::cut(&ops, &[1]), false));
    }
}
