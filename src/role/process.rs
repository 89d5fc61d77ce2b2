//! What a process knows of itself and tells in `stats`.

use sd_notify::NotifyState;

use crate::base::hash::NameHasher;
use crate::base::ids::RunId;
use crate::base::time::Nanos;
use crate::session::stats::ProcessStats;
use crate::sys::process::{self, Machine, ProcessError, Usage};

/// What does not change while the process runs, and whether it takes new jobs.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    /// Number of the process that clients take for the server.
    pub pid: u32,
    /// When it was started.
    pub started_at: Nanos,
    /// Whether it takes no new jobs.
    pub is_draining: bool,
    /// What tells this run from others.
    pub run_id: String,
    /// What it runs on.
    pub machine: Machine,
    /// The version that clients compare.
    pub version: &'static str,
    /// Largest body in bytes.
    pub body_len_max: u32,
    /// Size in bytes at which a binlog file is full.
    pub binlog_size_max: u64,
}

impl ProcessFacts {
    /// What `stats` tells at this moment, of the CPU time too that the server has used.
    #[must_use]
    pub fn stats(&self, now: Nanos, usage: Usage) -> ProcessStats<'_> {
        ProcessStats {
            pid: self.pid,
            user_cpu_us: usage.user_micros,
            system_cpu_us: usage.system_micros,
            uptime_secs: now.secs_since(self.started_at),
            draining: self.is_draining,
            run_id: &self.run_id,
            hostname: &self.machine.nodename,
            os: &self.machine.version,
            platform: &self.machine.machine,
            version: self.version,
            body_len_max: self.body_len_max,
            binlog_size_max: self.binlog_size_max,
        }
    }
}

/// An id for this run, from the system's randomness. `stats` shows it bare, as the original does,
/// so it is drawn until its digits hold a letter that no YAML number has.
///
/// # Errors
/// If the system has no randomness to give.
pub fn draw_run_id() -> Result<RunId, ProcessError> {
    loop {
        let id = RunId(u64::from_ne_bytes(process::random_bytes()?));
        if is_text(&id.to_string()) {
            return Ok(id);
        }
    }
}

/// A key for the hashes of names, from the system's randomness.
pub(super) fn draw_hasher() -> Result<NameHasher, ProcessError> {
    let draw = || Ok::<_, ProcessError>(u64::from_ne_bytes(process::random_bytes()?));
    Ok(NameHasher::new([draw()?, draw()?]))
}

/// Tells the service manager that clients are served from now on, if there is one that listens.
pub(super) fn announce_ready() {
    notify(NotifyState::Ready);
}

/// Tells the service manager that the process is about to end, if there is one that listens.
pub(super) fn announce_stopping() {
    notify(NotifyState::Stopping);
}

fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        log::warn!("cannot notify the service manager error={error}");
    }
}

fn is_text(id: &str) -> bool {
    id.bytes().any(|byte| matches!(byte, b'a'..=b'd' | b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_cannot_be_taken_for_a_number() {
        assert!(!is_text("1234567890123456"));
        assert!(!is_text("12345678901234e6"));
        assert!(is_text("1234567890a23456"));
        let id = draw_run_id().unwrap();
        assert!(is_text(&id.to_string()));
        assert_ne!(id, draw_run_id().unwrap());
    }
}
