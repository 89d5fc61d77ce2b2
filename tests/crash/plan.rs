//! What a run is like, drawn from its seed.

use beanshard::base::time::NANOS_PER_SEC;
use beanshard::wal::journal::{Settings, Sync};

use crate::random::Random;

/// What happens, by how likely it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Put,
    Reserve,
    ReserveJob,
    Release,
    Bury,
    Kick,
    KickJob,
    Delete,
    Touch,
    Peek,
    Leave,
    Pass,
}

/// How likely each is in the middle.
const USUAL: [(What, u64); 12] = [
    (What::Put, 24),
    (What::Reserve, 16),
    (What::ReserveJob, 8),
    (What::Release, 12),
    (What::Bury, 12),
    (What::Kick, 4),
    (What::KickJob, 8),
    (What::Delete, 12),
    (What::Touch, 2),
    (What::Peek, 3),
    (What::Leave, 1),
    (What::Pass, 6),
];

/// See the module's description.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    weights: [(What, u64); 12],
    /// Chances in percent that a turn ends after a step, and that a sync does.
    pub(crate) flush_chance: u64,
    pub(crate) sync_chance: u64,
    /// Bytes of the bodies that are not odd.
    pub(crate) body_len: u64,
    /// Jobs above which puts become deletions.
    pub(crate) jobs_max: usize,
}

impl Plan {
    pub(crate) fn draw(sync: Sync, random: &mut Random) -> Plan {
        let weights = USUAL.map(|(what, weight)| (what, weight * random.pick(&[1, 2, 4, 8])));
        let file_len = random.pick(&[300, 512, 1000, 1024, 2048, 4096, 8192]);
        Plan {
            settings: Settings { file_len, sync },
            weights,
            flush_chance: random.pick(&[20, 60, 90, 100]),
            sync_chance: random.pick(&[5, 20, 60, 100]),
            body_len: random.pick(&[1, 20, 100, 400, 1200]),
            jobs_max: random.pick(&[3, 8, 20]),
        }
    }

    /// With files of a usual length, and bodies of which they hold a hundred at least.
    pub(crate) fn draw_usual(sync: Sync, random: &mut Random) -> Plan {
        let kib = random.pick(&[32, 64, 256, 1024]);
        let file_len = kib * 1024;
        let body_len = match kib {
            32 | 64 => random.pick(&[20, 100, file_len / 200]),
            _ => file_len / 200,
        };
        Plan {
            settings: Settings { file_len, sync },
            body_len,
            ..Plan::draw(sync, random)
        }
    }

    pub(crate) fn what(&self, random: &mut Random) -> What {
        let sum = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut left = random.below(sum);
        for (what, weight) in self.weights {
            if left < weight {
                return what;
            }
            left -= weight;
        }
        What::Pass
    }

    /// Bytes of a body: now and then none, about a file, or more than one.
    pub(crate) fn body_len(&self, random: &mut Random) -> u64 {
        match random.below(20) {
            0 => 0,
            1 => self.settings.file_len.saturating_sub(random.below(240)),
            2 => self.settings.file_len + random.below(self.settings.file_len),
            _ => random.below(2 * self.body_len),
        }
    }
}

/// All there are.
pub(crate) fn draw_sync(random: &mut Random) -> Sync {
    match random.below(4) {
        0 => Sync::Never,
        1 => Sync::Every(random.below(3 * NANOS_PER_SEC)),
        _ => Sync::Always,
    }
}
