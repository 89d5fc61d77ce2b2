//! The pauses that a journal keeps: which tubes are paused until when, and which file tells of it.
//! In the files a pause has a number, so that the record of its end is short whatever the tube is
//! called.

use std::collections::BTreeMap;

use crate::base::name::{TubeName, TubeNameBuf};
use crate::base::time::{Nanos, Secs};
use crate::wal::files::Home;

/// See the module's description.
#[derive(Default)]
pub(super) struct Pauses {
    running: BTreeMap<u64, Pause>,
    numbers: BTreeMap<TubeNameBuf, u64>,
    /// The highest number that was given.
    last: u64,
}

/// A pause that runs.
pub(super) struct Pause {
    pub(super) tube: TubeNameBuf,
    pub(super) length: Secs,
    pub(super) until: Nanos,
    pub(super) home: Home,
}

impl Pauses {
    /// How many run.
    pub(super) fn len(&self) -> u64 {
        self.running.len() as u64
    }

    pub(super) fn get(&self, number: u64) -> Option<&Pause> {
        self.running.get(&number)
    }

    /// Numbers up to this one have been given.
    pub(super) fn skip(&mut self, number: u64) {
        self.last = self.last.max(number);
    }

    /// The number of the tube's pause, or the next one if none runs.
    pub(super) fn number_of(&mut self, tube: TubeName<'_>) -> u64 {
        if let Some(&number) = self.numbers.get(&TubeNameBuf::from(tube)) {
            return number;
        }
        self.last += 1;
        self.last
    }

    /// The pause with this number runs from now on. Returns the one whose place it takes.
    pub(super) fn insert(&mut self, number: u64, pause: Pause) -> Option<Pause> {
        self.skip(number);
        self.numbers.insert(pause.tube.clone(), number);
        self.running.insert(number, pause)
    }

    /// The tube is not paused any more. Returns the pause that ran, with its number.
    pub(super) fn remove(&mut self, tube: TubeName<'_>) -> Option<(u64, Pause)> {
        let number = self.numbers.remove(&TubeNameBuf::from(tube))?;
        let pause = self.running.remove(&number)?;
        Some((number, pause))
    }
}
