//! What processes say to each other for themselves.
//!
//! | kind | metadata |
//! | --- | --- |
//! | hello | version 2, run 8, topology 8, role 1, index 2, generations of both ends 4 each |
//! | goodbye | why, 1: 0 for an end in order, else the number of a refusal |
//! | ping, pong | a number that the pong repeats, 8 |
//! | credit | asks 4, bytes 8 |
//! | refused | why, 1; session and request are in the header |
//! | drain | nothing |
//! | ask for counts | a number that the answer repeats, 8 |
//! | counts | that number 8, role 1, index 2, the shard's numbers, then up to 64 numbers of 8 |
//! | attach, detach | nothing; the session is in the header |
//! | setup, link, link lost | see [`crate::wire::setup`] |
//! | ready | nothing |

use crate::base::ids::{Fingerprint, Generation, RunId};
use crate::base::limits::{COUNTS_MAX, META_LEN_MAX};
use crate::engine::stats::ShardStats;
use crate::wire::credit::Amount;
use crate::wire::cursor::{Cursor, write_u16, write_u32, write_u64};
use crate::wire::header::{Ends, WIRE_VERSION};
use crate::wire::kind::{ControlKind, Sender};
use crate::wire::refusal::{DecodeError, Refusal};
use crate::wire::setup::{LinkLost, Peer, Setup};
use crate::wire::stats;

/// Anything that processes say for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// The first frame of either direction.
    Hello(Hello),
    /// The last one. With a reason if the peer is at fault.
    Goodbye(Option<Refusal>),
    /// Asks whether the peer still turns.
    Ping(u64),
    /// It does: the number is the ping's.
    Pong(u64),
    /// This much may be asked anew.
    Credit(Amount),
    /// A request was refused and has changed nothing.
    Refused(Refusal),
    /// Take no new jobs.
    Drain,
    /// Asks for all that the peer counts. The number comes back with the answer.
    AskCounts(u64),
    /// The answer.
    Counts(Counts<'a>),
    /// What the child is to be. The first frame to it; a frontend's listening socket comes along.
    Setup(Setup),
    /// The child serves.
    Ready,
    /// A link to this peer comes along.
    Link(Peer),
    /// There is no link to this owner any more.
    LinkLost(LinkLost),
    /// The session is about to ask.
    Attach,
    /// The session is gone, with all that it held.
    Detach,
}

/// Who one is, and whom one takes the peer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Which wire one speaks.
    pub version: u16,
    /// The run that one belongs to.
    pub run: RunId,
    /// Topology and both generations.
    pub ends: Ends,
    /// What one is.
    pub role: Sender,
    /// Which of its role one is.
    pub index: u16,
}

impl Hello {
    /// Of this program.
    #[must_use]
    pub fn new(run: RunId, ends: Ends, role: Sender, index: u16) -> Hello {
        Hello {
            version: WIRE_VERSION,
            run,
            ends,
            role,
            index,
        }
    }

    /// That the peer is who it was expected to be.
    ///
    /// # Errors
    /// The first [`Refusal`] that applies, in the order of their numbers.
    pub fn check(&self, expected: &Hello) -> Result<(), Refusal> {
        let checks = [
            (self.version == expected.version, Refusal::Version),
            (self.run == expected.run, Refusal::Run),
            (
                self.ends.topology == expected.ends.topology,
                Refusal::Topology,
            ),
            (self.ends.sender == expected.ends.sender, Refusal::Sender),
            (
                self.ends.receiver == expected.ends.receiver,
                Refusal::Receiver,
            ),
            (self.role == expected.role, Refusal::Peer),
            (self.index == expected.index, Refusal::Peer),
        ];
        let failed = checks.into_iter().find(|(is_right, _)| !is_right);
        failed.map_or(Ok(()), |(_, refusal)| Err(refusal))
    }
}

/// All that a process counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<'a> {
    /// Number of the question.
    pub asked: u64,
    /// What the process is.
    pub role: Sender,
    /// Which of its role.
    pub index: u16,
    /// The numbers of its shard; zeros if it has none.
    pub shard: ShardStats,
    /// Its other numbers, in an order that both sides know.
    pub numbers: Numbers<'a>,
}

/// Up to [`COUNTS_MAX`] numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers<'a>(Repr<'a>);

#[derive(Clone, Copy, Debug)]
enum Repr<'a> {
    Encoded(&'a [u8]),
    Plain(&'a [u64]),
}

impl PartialEq for Repr<'_> {
    fn eq(&self, other: &Self) -> bool {
        Numbers(*self).iter().eq(Numbers(*other).iter())
    }
}

impl Eq for Repr<'_> {}

impl<'a> Numbers<'a> {
    /// These.
    ///
    /// # Panics
    /// If they are more than [`COUNTS_MAX`].
    #[must_use]
    pub fn of(numbers: &'a [u64]) -> Numbers<'a> {
        assert!(
            numbers.len() <= COUNTS_MAX,
            "more numbers than a frame has room for"
        );
        Numbers(Repr::Plain(numbers))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = u64> + 'a {
        let (encoded, plain) = match self.0 {
            Repr::Encoded(bytes) => (bytes, &[][..]),
            Repr::Plain(numbers) => (&[][..], numbers),
        };
        let decoded = encoded
            .as_chunks::<8>()
            .0
            .iter()
            .map(|eight| u64::from_le_bytes(*eight));
        decoded.chain(plain.iter().copied())
    }

    fn read(from: &mut Cursor<'a>) -> Result<Numbers<'a>, DecodeError> {
        let count = usize::from(from.u8()?);
        if count > COUNTS_MAX {
            return Err(DecodeError::Value);
        }
        Ok(Numbers(Repr::Encoded(from.bytes(count * 8)?)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.iter().count() as u8);
        self.iter().for_each(|number| write_u64(out, number));
    }
}

const _: () = assert!(
    COUNTS_MAX <= u8::MAX as usize
        && 8 + 1 + 2 + size_of::<ShardStats>() + 1 + 8 * COUNTS_MAX <= META_LEN_MAX,
    "all that a process counts fits one frame"
);

impl Control<'_> {
    /// What kind of frame carries it.
    #[must_use]
    pub fn kind(&self) -> ControlKind {
        match self {
            Control::Hello(_) => ControlKind::Hello,
            Control::Goodbye(_) => ControlKind::Goodbye,
            Control::Ping(_) => ControlKind::Ping,
            Control::Pong(_) => ControlKind::Pong,
            Control::Credit(_) => ControlKind::Credit,
            Control::Refused(_) => ControlKind::Refused,
            Control::Drain => ControlKind::Drain,
            Control::AskCounts(_) => ControlKind::AskCounts,
            Control::Counts(_) => ControlKind::Counts,
            Control::Setup(_) => ControlKind::Setup,
            Control::Ready => ControlKind::Ready,
            Control::Link(_) => ControlKind::Link,
            Control::LinkLost(_) => ControlKind::LinkLost,
            Control::Attach => ControlKind::Attach,
            Control::Detach => ControlKind::Detach,
        }
    }

    /// Appends its metadata.
    pub fn write_fields(&self, out: &mut Vec<u8>) {
        match self {
            Control::Hello(hello) => write_hello(out, hello),
            Control::Goodbye(why) => out.push(why.map_or(0, Refusal::number)),
            Control::Ping(number) | Control::Pong(number) | Control::AskCounts(number) => {
                write_u64(out, *number);
            }
            Control::Credit(amount) => {
                write_u32(out, amount.asks);
                write_u64(out, amount.bytes);
            }
            Control::Refused(why) => out.push(why.number()),
            Control::Counts(counts) => {
                write_u64(out, counts.asked);
                out.push(role_number(counts.role));
                write_u16(out, counts.index);
                stats::write_shard(out, &counts.shard);
                counts.numbers.write(out);
            }
            Control::Setup(setup) => setup.write(out),
            Control::Link(peer) => peer.write(out),
            Control::LinkLost(owner) => owner.write(out),
            Control::Drain | Control::Ready | Control::Attach | Control::Detach => {}
        }
    }
}

/// What a frame of this kind with this metadata says.
///
/// # Errors
/// [`DecodeError`] if it says nothing.
pub fn decode(kind: ControlKind, meta: &[u8]) -> Result<Control<'_>, DecodeError> {
    let mut fields = Cursor::new(meta);
    let from = &mut fields;
    let control = match kind {
        ControlKind::Hello => Control::Hello(read_hello(from)?),
        ControlKind::Goodbye => Control::Goodbye(match from.u8()? {
            0 => None,
            number => Some(refusal(number)?),
        }),
        ControlKind::Ping => Control::Ping(from.u64()?),
        ControlKind::Pong => Control::Pong(from.u64()?),
        ControlKind::Credit => Control::Credit(Amount {
            asks: from.u32()?,
            bytes: from.u64()?,
        }),
        ControlKind::Refused => Control::Refused(refusal(from.u8()?)?),
        ControlKind::Drain => Control::Drain,
        ControlKind::AskCounts => Control::AskCounts(from.u64()?),
        ControlKind::Counts => Control::Counts(Counts {
            asked: from.u64()?,
            role: read_role(from)?,
            index: from.u16()?,
            shard: stats::read_shard(from)?,
            numbers: Numbers::read(from)?,
        }),
        ControlKind::Setup => Control::Setup(Setup::read(from)?),
        ControlKind::Ready => Control::Ready,
        ControlKind::Link => Control::Link(Peer::read(from)?),
        ControlKind::LinkLost => Control::LinkLost(LinkLost::read(from)?),
        ControlKind::Attach => Control::Attach,
        ControlKind::Detach => Control::Detach,
    };
    fields.finish()?;
    Ok(control)
}

fn refusal(number: u8) -> Result<Refusal, DecodeError> {
    Refusal::of_number(number).ok_or(DecodeError::Value)
}

fn write_hello(out: &mut Vec<u8>, hello: &Hello) {
    write_u16(out, hello.version);
    write_u64(out, hello.run.0);
    write_u64(out, hello.ends.topology.0);
    out.push(role_number(hello.role));
    write_u16(out, hello.index);
    write_u32(out, hello.ends.sender.0);
    write_u32(out, hello.ends.receiver.0);
}

fn read_hello(from: &mut Cursor<'_>) -> Result<Hello, DecodeError> {
    let version = from.u16()?;
    let run = RunId(from.u64()?);
    let topology = Fingerprint(from.u64()?);
    let role = read_role(from)?;
    let index = from.u16()?;
    let ends = Ends {
        topology,
        sender: Generation(from.u32()?),
        receiver: Generation(from.u32()?),
    };
    Ok(Hello {
        version,
        run,
        ends,
        role,
        index,
    })
}

/// Numbers for ever, too.
pub(super) fn role_number(role: Sender) -> u8 {
    match role {
        Sender::Supervisor => 1,
        Sender::Frontend => 2,
        Sender::Owner => 3,
    }
}

pub(super) fn read_role(from: &mut Cursor<'_>) -> Result<Sender, DecodeError> {
    match from.u8()? {
        1 => Ok(Sender::Supervisor),
        2 => Ok(Sender::Frontend),
        3 => Ok(Sender::Owner),
        _ => Err(DecodeError::Value),
    }
}
