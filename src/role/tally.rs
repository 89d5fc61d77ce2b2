//! What a process counts, as the numbers that it tells the supervisor: all roles have the same row
//! of them, with zeros for what is not theirs, so that they can be added up without being known.
//!
//! | index | number |
//! | ---: | --- |
//! | 0, 1 | CPU time in microseconds: in the program, in the kernel |
//! | 2, 3 | links of a frontend that can be asked, and that are not there |
//! | 4 | frames from peers that were refused |
//! | from 5 on | what [`Counts`] writes |

use crate::engine::stats::ShardStats;
use crate::session::stats::Counts;
use crate::sys::process::Usage;
use crate::wire;
use crate::wire::control::{Control, Numbers};
use crate::wire::refusal::{Refusal, Refusals};
use crate::wire::setup::Setup;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) usage: Usage,
    pub(super) links_up: u64,
    pub(super) links_down: u64,
    pub(super) refused_frames: u64,
    pub(super) counts: Counts,
}

/// Numbers before those of [`Counts`].
const OWN_LEN: usize = 5;

impl Tally {
    /// As a row of numbers.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut row = vec![
            self.usage.user_micros,
            self.usage.system_micros,
            self.links_up,
            self.links_down,
            self.refused_frames,
        ];
        self.counts.write_numbers(&mut row);
        row
    }

    /// What a row of numbers says, if it is one.
    pub(super) fn read(row: &[u64]) -> Option<Tally> {
        let (
            &[
                user_micros,
                system_micros,
                links_up,
                links_down,
                refused_frames,
            ],
            rest,
        ) = row.split_first_chunk::<OWN_LEN>()?;
        Some(Tally {
            usage: Usage {
                user_micros,
                system_micros,
            },
            links_up,
            links_down,
            refused_frames,
            counts: Counts::read_numbers(rest)?,
        })
    }
}

/// The answer of a child to the question `asked`.
pub(super) fn counts<'a>(setup: &Setup, asked: u64, row: &'a [u64]) -> Control<'a> {
    Control::Counts(wire::control::Counts {
        asked,
        role: setup.role,
        index: setup.index,
        // Frontends ask shards themselves, in the order of their other asks.
        shard: ShardStats::default(),
        numbers: Numbers::of(row),
    })
}

/// How many frames were refused.
pub(super) fn refused(refusals: &Refusals) -> u64 {
    Refusal::ALL.iter().map(|&why| refusals.of(why)).sum()
}
