//! What a supervisor and its children say to each other about who does what.
//!
//! | kind | metadata |
//! | --- | --- |
//! | setup | role 1, index 2, owners 2, frontends 2, generation 4, run 8, then the rest |
//! | its rest | the supervisor's process id 4 and start 8, longest body 4, size of a binlog 8, |
//! | | milliseconds between its syncs 8 (all ones: never), damage skipped 1, wait for an owner in |
//! | | milliseconds 4, reserves over several owners 1 (0 served, 1 refused), verbosity 4, |
//! | | draining 1 |
//! | link | the peer's role 1, index 2, generation 4 |
//! | link lost | the owner's index 2, generation 4 |
//!
//! These go over a control socket, which is for one child alone: all identities in their headers
//! are zero.

use crate::base::ids::{Fingerprint, Generation, RunId, ShardSet};
use crate::base::limits::FRONTENDS_MAX;
use crate::base::time::Nanos;
use crate::wire::control::{read_role, role_number};
use crate::wire::cursor::{Cursor, write_u16, write_u32, write_u64};
use crate::wire::header::Ends;
use crate::wire::kind::Sender;
use crate::wire::refusal::DecodeError;

/// Both ends of a control socket, in every header.
pub const NO_ENDS: Ends = Ends {
    topology: Fingerprint(0),
    sender: Generation::NONE,
    receiver: Generation::NONE,
};

/// All that a child has to know to be what it is to be. Said once, first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Frontend or owner.
    pub role: Sender,
    /// Which of its role, from 0.
    pub index: u16,
    /// How many owners there are, 1 to [`ShardSet::SHARDS_MAX`].
    pub owners: u16,
    /// How many frontends there are, 1 to [`FRONTENDS_MAX`].
    pub frontends: u16,
    /// Of this start.
    pub generation: Generation,
    /// Of the supervisor.
    pub run: RunId,
    /// The supervisor's number, as clients see it.
    pub supervisor_pid: u32,
    /// When the supervisor was started.
    pub started_at: Nanos,
    /// Longest body in bytes.
    pub body_len_max: u32,
    /// Size in bytes at which a binlog file is full.
    pub binlog_size_max: u64,
    /// Milliseconds between two syncs of a binlog, 0 if answers wait for each; none if the system
    /// syncs when it likes.
    pub sync_ms: Option<u64>,
    /// Whether an owner starts in spite of damage in its binlog.
    pub skips_damage: bool,
    /// Milliseconds for which a command waits for an owner that is not there.
    pub owner_wait_ms: u32,
    /// Whether a reserve over several owners is refused.
    pub rejects_multi_watch: bool,
    /// How much to tell on standard output.
    pub verbose: u32,
    /// Whether no new jobs are taken.
    pub is_draining: bool,
}

/// Who is at the other end of a link, whose descriptor comes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Frontend or owner, whichever oneself is not.
    pub role: Sender,
    /// Which of its role.
    pub index: u16,
    /// Of its start.
    pub generation: Generation,
}

/// An owner to which a frontend has no link any more, though it has not heard that it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLost {
    /// Which owner.
    pub index: u16,
    /// Of its start.
    pub generation: Generation,
}

/// Stands for no number of milliseconds.
const NEVER: u64 = u64::MAX;

impl Setup {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(role_number(self.role));
        write_u16(out, self.index);
        write_u16(out, self.owners);
        write_u16(out, self.frontends);
        write_u32(out, self.generation.0);
        write_u64(out, self.run.0);
        write_u32(out, self.supervisor_pid);
        write_u64(out, self.started_at.0);
        write_u32(out, self.body_len_max);
        write_u64(out, self.binlog_size_max);
        write_u64(out, self.sync_ms.unwrap_or(NEVER));
        out.push(u8::from(self.skips_damage));
        write_u32(out, self.owner_wait_ms);
        out.push(u8::from(self.rejects_multi_watch));
        write_u32(out, self.verbose);
        out.push(u8::from(self.is_draining));
    }

    pub(super) fn read(from: &mut Cursor<'_>) -> Result<Setup, DecodeError> {
        let setup = Setup {
            role: read_child(from)?,
            index: from.u16()?,
            owners: from.u16()?,
            frontends: from.u16()?,
            generation: Generation(from.u32()?),
            run: RunId(from.u64()?),
            supervisor_pid: from.u32()?,
            started_at: Nanos(from.u64()?),
            body_len_max: from.u32()?,
            binlog_size_max: from.u64()?,
            sync_ms: Some(from.u64()?).filter(|&millis| millis != NEVER),
            skips_damage: from.flag()?,
            owner_wait_ms: from.u32()?,
            rejects_multi_watch: from.flag()?,
            verbose: from.u32()?,
            is_draining: from.flag()?,
        };
        let is_possible = (1..=ShardSet::SHARDS_MAX).contains(&usize::from(setup.owners))
            && (1..=FRONTENDS_MAX).contains(&setup.frontends)
            && setup.index < setup.of_role();
        is_possible.then_some(setup).ok_or(DecodeError::Value)
    }

    /// How many there are of the child's role.
    fn of_role(&self) -> u16 {
        match self.role {
            Sender::Owner => self.owners,
            Sender::Frontend => self.frontends,
            Sender::Supervisor => 1,
        }
    }
}

impl Peer {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.push(role_number(self.role));
        write_u16(out, self.index);
        write_u32(out, self.generation.0);
    }

    pub(super) fn read(from: &mut Cursor<'_>) -> Result<Peer, DecodeError> {
        Ok(Peer {
            role: read_child(from)?,
            index: from.u16()?,
            generation: Generation(from.u32()?),
        })
    }
}

impl LinkLost {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        write_u16(out, self.index);
        write_u32(out, self.generation.0);
    }

    pub(super) fn read(from: &mut Cursor<'_>) -> Result<LinkLost, DecodeError> {
        Ok(LinkLost {
            index: from.u16()?,
            generation: Generation(from.u32()?),
        })
    }
}

/// A role that children have.
fn read_child(from: &mut Cursor<'_>) -> Result<Sender, DecodeError> {
    match read_role(from)? {
        Sender::Supervisor => Err(DecodeError::Value),
        role @ (Sender::Frontend | Sender::Owner) => Ok(role),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::wire::control::{Control, decode};
    use crate::wire::kind::{ControlKind, Kind};

    /// What `kind` says, made of these numbers.
    pub(crate) fn sample(
        kind: ControlKind,
        longs: &[u64; 7],
        ints: &[u32; 5],
        flag: bool,
    ) -> Control<'static> {
        let (index, generation) = (4, Generation(ints[2]));
        match kind {
            ControlKind::Link => Control::Link(Peer {
                role: Sender::Owner,
                index,
                generation,
            }),
            ControlKind::LinkLost => Control::LinkLost(LinkLost { index, generation }),
            _ => Control::Setup(Setup {
                role: Sender::Owner,
                index,
                owners: 5 + (ints[0] % 60) as u16,
                frontends: 1 + (ints[1] % 64) as u16,
                generation,
                run: RunId(longs[0]),
                supervisor_pid: ints[3],
                started_at: Nanos(longs[1]),
                body_len_max: ints[4],
                binlog_size_max: longs[2],
                sync_ms: flag.then_some(longs[3]),
                skips_damage: flag,
                owner_wait_ms: ints[0],
                rejects_multi_watch: flag,
                verbose: ints[1],
                is_draining: !flag,
            }),
        }
    }

    /// The metadata of the sample made of the numbers 0x101, 0x202 and so on, and 8, 9 and so on.
    pub(crate) fn pinned(kind: Kind) -> Vec<u8> {
        match kind.number() {
            10 => b"\x03\x04\0\x0d\0\x0a\0\x0a\0\0\0\
                \x01\x01\0\0\0\0\0\0\x0b\0\0\0\x02\x02\0\0\0\0\0\0\x0c\0\0\0\
                \x03\x03\0\0\0\0\0\0\x04\x04\0\0\0\0\0\0\x01\
                \x08\0\0\0\x01\x09\0\0\0\0"
                .to_vec(),
            12 => b"\x03\x04\0\x0a\0\0\0".to_vec(),
            13 => b"\x04\0\x0a\0\0\0".to_vec(),
            number => panic!("{number} is somebody else's"),
        }
    }

    #[test]
    fn a_setup_that_cannot_be_meant_is_refused() {
        let read_back = |change: fn(&mut Setup)| {
            let kind = ControlKind::Setup;
            let Control::Setup(mut setup) = sample(kind, &[1; 7], &[1; 5], false) else {
                panic!("it is a setup");
            };
            change(&mut setup);
            let mut meta = Vec::new();
            setup.write(&mut meta);
            decode(kind, &meta).map(|read| assert_eq!(read, Control::Setup(setup)))
        };
        assert_eq!(read_back(|_| ()), Ok(()));
        let changes: [fn(&mut Setup); 7] = [
            |setup| setup.role = Sender::Supervisor,
            |setup| setup.index = setup.owners,
            |setup| (setup.role, setup.index) = (Sender::Frontend, setup.frontends),
            |setup| (setup.index, setup.owners) = (0, 0),
            |setup| setup.owners = 65,
            |setup| setup.frontends = 0,
            |setup| setup.frontends = FRONTENDS_MAX + 1,
        ];
        for change in changes {
            assert_eq!(read_back(change), Err(DecodeError::Value));
        }
    }
}
