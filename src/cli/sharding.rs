//! Options of the sharded mode.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use lexopt::Parser;

use super::flags::Flag;
use super::{Reader, UsageError, parse_size, size, value};
use crate::base::ids::ShardSet;
use crate::base::limits::{FRONTENDS_MAX, OWNER_WAIT_MS_DEFAULT, OWNER_WAIT_MS_MAX};

/// How the work is shared in the sharded mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Processes that have jobs, 1 to [`ShardSet::SHARDS_MAX`]; as many as suit the machine if
    /// nothing is said.
    pub owners: Option<u16>,
    /// Processes that have clients, 1 to [`FRONTENDS_MAX`]; as many as suit the machine if nothing
    /// is said.
    pub frontends: Option<u16>,
    /// Milliseconds for which a command waits for an owner that is not there, up to
    /// [`OWNER_WAIT_MS_MAX`].
    pub owner_wait_ms: u32,
    /// Whether a reserve of tubes that several owners have is refused.
    pub rejects_multi_watch: bool,
    /// Whether owners start in spite of damage in their binlogs.
    pub skips_damage: bool,
}

impl Default for Sharding {
    fn default() -> Sharding {
        Sharding {
            owners: None,
            frontends: None,
            owner_wait_ms: OWNER_WAIT_MS_DEFAULT,
            rejects_multi_watch: false,
            skips_damage: false,
        }
    }
}

impl Reader<'_> {
    /// Carries out a flag that is only of use in the sharded mode, whichever mode that will be.
    pub(super) fn share(&mut self, flag: Flag, parser: &mut Parser) -> Result<(), UsageError> {
        let sharding = &mut self.config.sharding;
        let name = match flag {
            Flag::Owners => {
                sharding.owners = Some(count(parser, "--owners", ShardSet::SHARDS_MAX as u16)?);
                "--owners"
            }
            Flag::Frontends => {
                sharding.frontends = Some(count(parser, "--frontends", FRONTENDS_MAX)?);
                "--frontends"
            }
            Flag::OwnerWait => {
                sharding.owner_wait_ms = size(parser, u64::from(OWNER_WAIT_MS_MAX))? as u32;
                "--owner-wait"
            }
            Flag::SkipDamage => {
                sharding.skips_damage = true;
                "--skip-damage"
            }
            _ => {
                sharding.rejects_multi_watch = is_reject(value(parser)?)?;
                "--multi-watch"
            }
        };
        self.needs_sharded = Some(name);
        Ok(())
    }
}

/// A number of processes, from 1 to `max`, as the value of the flag `flag`.
pub(super) fn count(parser: &mut Parser, flag: &'static str, max: u16) -> Result<u16, UsageError> {
    let value = value(parser)?;
    let count = parse_size(value.as_bytes()).and_then(|count| u16::try_from(count).ok());
    match count {
        Some(count) if (1..=max).contains(&count) => Ok(count),
        _ => Err(UsageError::InvalidCount { flag, max, value }),
    }
}

/// Whether reserves over several owners are to be refused.
fn is_reject(value: OsString) -> Result<bool, UsageError> {
    match value.as_bytes() {
        b"serve" => Ok(false),
        b"reject" => Ok(true),
        _ => Err(UsageError::InvalidMultiWatch { value }),
    }
}
