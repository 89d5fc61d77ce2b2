//! The formats that are tested.

use beanshard::base::ids::{Fingerprint, ShardId};
use beanshard::engine::IdScheme;
use beanshard::wal::format::Format;
use beanshard::wal::v7::V7;
use beanshard::wal::v8::V8;

/// A format, and what goes with it.
pub(crate) trait Form: Format {
    /// How jobs get their ids.
    const IDS: IdScheme;

    /// The format of the directory that is tested.
    fn here() -> Self;
}

impl Form for V7 {
    const IDS: IdScheme = IdScheme::Plain;

    fn here() -> V7 {
        V7
    }
}

impl Form for V8 {
    const IDS: IdScheme = IdScheme::Slotted;

    fn here() -> V8 {
        V8 {
            fingerprint: Fingerprint(0xfeed),
            owner: ShardId(3),
            skip_damage: false,
        }
    }
}
