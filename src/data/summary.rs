//! What a tool has done, in numbers.

use std::fmt;

use crate::data::source::Found;
use crate::engine::job::JobState;
use crate::wal::format::Format;

/// See the module's description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Jobs that whoever asks first gets. Nobody holds one while no server runs.
    pub ready: u64,
    /// Jobs that wait for the end of their delay.
    pub delayed: u64,
    /// Jobs that are buried.
    pub buried: u64,
    /// Tubes that have jobs.
    pub tubes: u64,
    /// Tubes whose pauses were kept.
    pub pauses: u64,
    /// Tubes whose pauses could not be.
    pub lost_pauses: u64,
    /// Owners before; 0 if what was read is no directory of the sharded mode.
    pub owners_before: u16,
    /// Owners now; 0 if what was written is none.
    pub owners: u16,
    /// Bytes of the files that were written.
    pub bytes: u64,
    /// Files that could not be read to their end.
    pub damaged_files: u64,
    /// Binlogs whose ends were torn off, so that what was written last may be missing.
    pub torn: u64,
    /// There was nothing to be done.
    pub is_unchanged: bool,
}

impl Summary {
    /// All jobs.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.ready + self.delayed + self.buried
    }

    /// One more binlog was read.
    pub(super) fn count_binlog<F: Format>(&mut self, found: &Found<F>) {
        self.tubes += found.tube_count() as u64;
        self.damaged_files += found.damaged_files() as u64;
        self.torn += u64::from(found.torn().is_some());
    }

    /// One more job in this state.
    pub(super) fn count(&mut self, state: JobState) {
        match state {
            JobState::Delayed => self.delayed += 1,
            JobState::Buried => self.buried += 1,
            JobState::Ready | JobState::Offered { .. } | JobState::Reserved { .. } => {
                self.ready += 1;
            }
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unchanged {
            return writeln!(f, "nothing to do: it is for {} owners", self.owners);
        }
        writeln!(f, "jobs: {}", self.jobs())?;
        writeln!(f, "  ready: {}", self.ready)?;
        writeln!(f, "  delayed: {}", self.delayed)?;
        writeln!(f, "  buried: {}", self.buried)?;
        writeln!(f, "tubes: {}", self.tubes)?;
        match (self.owners_before, self.owners) {
            (0, after) => writeln!(f, "owners: {after}")?,
            (before, 0) => writeln!(f, "owners before: {before}")?,
            (before, after) => writeln!(f, "owners: {after}, before {before}")?,
        }
        writeln!(f, "bytes: {}", self.bytes)?;
        if self.pauses > 0 {
            writeln!(f, "paused tubes: {}", self.pauses)?;
        }
        if self.lost_pauses > 0 {
            let lost = self.lost_pauses;
            writeln!(f, "pauses lost: {lost}, the binlog of --legacy has none")?;
        }
        if self.torn > 0 {
            let torn = self.torn;
            writeln!(
                f,
                "torn ends: {torn}, what had never been synced is missing"
            )?;
        }
        if self.damaged_files > 0 {
            let files = self.damaged_files;
            writeln!(
                f,
                "damaged files: {files}, what could not be read is missing"
            )?;
        }
        Ok(())
    }
}
