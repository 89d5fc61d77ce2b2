//! The header that every frame begins with.
//!
//! | offset | bytes | field |
//! | -----: | ----: | --- |
//! |  0 | 4 | magic: the letters `BSWF` |
//! |  4 | 2 | wire version |
//! |  6 | 2 | kind, see [`crate::wire::kind`] |
//! |  8 | 2 | flags: bit 0 for a frame that continues a body; the others are 0 |
//! | 10 | 2 | length of the metadata; 0 if the frame continues a body |
//! | 12 | 4 | generation of the sender |
//! | 16 | 4 | generation of the receiver |
//! | 20 | 8 | topology fingerprint |
//! | 28 | 8 | number of the session; 0 in what is not about a session |
//! | 36 | 8 | id of the request; 0 in what answers none |
//! | 44 | 4 | length of the body from here to its end |
//! | 48 | 4 | how much of that is in this frame |
//!
//! The metadata and the part of the body follow. All numbers are little-endian. Frontend and run
//! are not repeated: a link has one of each, agreed on in its hello.

use crate::base::ids::{Caller, Fingerprint, Generation, Seq, SessionId};
use crate::base::limits::{BODY_PART_LEN_MAX, HEADER_LEN, META_LEN_MAX};
use crate::wire::cursor::Cursor;
use crate::wire::kind::{Kind, Sender};
use crate::wire::refusal::{DecodeError, Refusal};

/// Grows with every change to a header, a number or a layout.
pub const WIRE_VERSION: u16 = 1;

const MAGIC: [u8; 4] = *b"BSWF";

/// The frame continues a body.
const CONTINUES: u16 = 1;

/// What all frames of one direction of a link have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Which shard has what.
    pub topology: Fingerprint,
    /// Of the process that sends.
    pub sender: Generation,
    /// Of the process that it sends to.
    pub receiver: Generation,
}

impl Ends {
    /// Of the other direction.
    #[must_use]
    pub fn reversed(self) -> Ends {
        Ends {
            topology: self.topology,
            sender: self.receiver,
            receiver: self.sender,
        }
    }
}

/// What is known beforehand of the frames that come over a link.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// What is in each of them.
    pub ends: Ends,
    /// What the process at the other end is.
    pub from: Sender,
    /// Longest body in bytes that it may send.
    pub body_len_max: u32,
}

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Between which processes.
    pub ends: Ends,
    /// What it is.
    pub kind: Kind,
    /// Whether it goes on with a body that frames before it have begun.
    pub continues: bool,
    /// Length of its metadata.
    pub meta_len: u16,
    /// [`SessionId::number`] of the session that it is about.
    pub session: u64,
    /// The request that it is or answers.
    pub request: Seq,
    /// Length of the body from here to its end.
    pub body_len: u32,
    /// How much of that is in this frame.
    pub part_len: u32,
}

impl Header {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        self.encode_to(&mut bytes);
        bytes
    }

    /// Writes its bytes where they are to be: to move what has just been written in small pieces
    /// costs more than the writing.
    #[inline]
    pub fn encode_to(&self, bytes: &mut [u8; HEADER_LEN]) {
        let flags = if self.continues { CONTINUES } else { 0 };
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&WIRE_VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.kind.number().to_le_bytes());
        bytes[8..10].copy_from_slice(&flags.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.meta_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.ends.sender.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.ends.receiver.0.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.ends.topology.0.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.session.to_le_bytes());
        bytes[36..44].copy_from_slice(&self.request.0.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.body_len.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.part_len.to_le_bytes());
    }

    /// The header that `bytes` are, if it is one that may come over this link. What needs to be
    /// known of sessions and requests is checked by the owner, after this.
    ///
    /// # Errors
    /// The first [`Refusal`] that applies, in the order of their numbers.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_LEN], expected: &Expected) -> Result<Header, Refusal> {
        let fields = Fields::read(bytes)?;
        let ends = fields.check_ends(&expected.ends)?;
        let kind = Kind::of_number(fields.kind)
            .filter(|kind| kind.is_from(expected.from))
            .ok_or(Refusal::Kind)?;
        let continues = fields.check_flags(kind)?;
        let header = Header {
            ends,
            kind,
            continues,
            meta_len: fields.meta_len,
            session: fields.session,
            request: Seq(fields.request),
            body_len: fields.body_len,
            part_len: fields.part_len,
        };
        header.check_lengths(expected.body_len_max)?;
        Ok(header)
    }

    /// Bytes of the whole frame.
    #[inline]
    #[must_use]
    pub fn frame_len(&self) -> usize {
        HEADER_LEN + usize::from(self.meta_len) + self.part_len as usize
    }

    fn check_lengths(&self, body_len_max: u32) -> Result<(), Refusal> {
        let meta_len_max = if self.continues { 0 } else { META_LEN_MAX };
        if usize::from(self.meta_len) > meta_len_max {
            return Err(Refusal::MetaLength);
        }
        let body_len_max = if self.kind.has_body() {
            body_len_max
        } else {
            0
        };
        if self.body_len > body_len_max || (self.continues && self.body_len == 0) {
            return Err(Refusal::BodyLength);
        }
        let part_len_max = self.body_len.min(BODY_PART_LEN_MAX as u32);
        let part_len_min = self.body_len.min(1);
        if !(part_len_min..=part_len_max).contains(&self.part_len) {
            return Err(Refusal::PartLength);
        }
        Ok(())
    }

    /// Who asks or is told, on a link of the frontend with this index.
    #[must_use]
    pub fn caller(&self, frontend: u16) -> Caller {
        Caller {
            session: SessionId {
                frontend,
                number: self.session,
            },
            seq: self.request,
        }
    }
}

/// The fields as they stand there.
struct Fields {
    magic: [u8; 4],
    version: u16,
    kind: u16,
    flags: u16,
    meta_len: u16,
    sender: u32,
    receiver: u32,
    topology: u64,
    session: u64,
    request: u64,
    body_len: u32,
    part_len: u32,
}

impl Fields {
    fn read(bytes: &[u8; HEADER_LEN]) -> Result<Fields, DecodeError> {
        let mut from = Cursor::new(bytes);
        let fields = Fields {
            magic: from.u32()?.to_le_bytes(),
            version: from.u16()?,
            kind: from.u16()?,
            flags: from.u16()?,
            meta_len: from.u16()?,
            sender: from.u32()?,
            receiver: from.u32()?,
            topology: from.u64()?,
            session: from.u64()?,
            request: from.u64()?,
            body_len: from.u32()?,
            part_len: from.u32()?,
        };
        from.finish()?;
        Ok(fields)
    }

    fn check_ends(&self, expected: &Ends) -> Result<Ends, Refusal> {
        if self.magic != MAGIC {
            return Err(Refusal::Magic);
        }
        if self.version != WIRE_VERSION {
            return Err(Refusal::Version);
        }
        if self.topology != expected.topology.0 {
            return Err(Refusal::Topology);
        }
        if self.sender != expected.sender.0 {
            return Err(Refusal::Sender);
        }
        if self.receiver != expected.receiver.0 {
            return Err(Refusal::Receiver);
        }
        Ok(*expected)
    }

    fn check_flags(&self, kind: Kind) -> Result<bool, Refusal> {
        match self.flags {
            0 => Ok(false),
            CONTINUES if kind.has_body() => Ok(true),
            _ => Err(Refusal::Flags),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::BODY_LEN_MAX_CEILING;
    use crate::wire::kind::OpKind;

    const EXPECTED: Expected = Expected {
        ends: Ends {
            topology: Fingerprint(0x1112_1314_1516_1718),
            sender: Generation(0x2122_2324),
            receiver: Generation(0x3132_3334),
        },
        from: Sender::Frontend,
        body_len_max: BODY_LEN_MAX_CEILING,
    };

    fn put() -> Header {
        Header {
            ends: EXPECTED.ends,
            kind: Kind::Op(OpKind::Put),
            continues: false,
            meta_len: 0x0142,
            session: 0x4142_4344_4546_4748,
            request: Seq(0x5152_5354_5556_5758),
            body_len: 0x0102_0304,
            part_len: 0x0000_a1a2,
        }
    }

    const BYTES: &[u8; HEADER_LEN] = b"BSWF\x01\0\x24\0\0\0\x42\x01\
        \x24\x23\x22\x21\x34\x33\x32\x31\x18\x17\x16\x15\x14\x13\x12\x11\
        \x48\x47\x46\x45\x44\x43\x42\x41\x58\x57\x56\x55\x54\x53\x52\x51\
        \x04\x03\x02\x01\xa2\xa1\0\0";

    // R3.2
    #[test]
    fn header_bytes_are_pinned() {
        assert_eq!(put().encode(), *BYTES);
        assert_eq!(Header::decode(BYTES, &EXPECTED), Ok(put()));

        let next = Header {
            continues: true,
            meta_len: 0,
            ..put()
        };
        let mut bytes = *BYTES;
        bytes[8] = 1;
        bytes[10..12].fill(0);
        assert_eq!(next.encode(), bytes);
        assert_eq!(Header::decode(&bytes, &EXPECTED), Ok(next));
    }

    /// Why the header is refused when the byte at `at` is `value`.
    fn refusal(at: usize, value: u8) -> Option<Refusal> {
        let mut bytes = *BYTES;
        bytes[at] = value;
        Header::decode(&bytes, &EXPECTED).err()
    }

    // A3.2, R3.2, R3.6
    #[test]
    fn each_check_has_its_own_refusal() {
        assert_eq!(refusal(0, b'X'), Some(Refusal::Magic));
        assert_eq!(refusal(4, 2), Some(Refusal::Version));
        assert_eq!(refusal(20, 0), Some(Refusal::Topology));
        assert_eq!(refusal(12, 0x25), Some(Refusal::Sender));
        assert_eq!(refusal(16, 0x35), Some(Refusal::Receiver));
        assert_eq!(refusal(6, 127), Some(Refusal::Kind));
        assert_eq!(refusal(6, 134), Some(Refusal::Kind), "an owner's to send");
        assert_eq!(refusal(8, 2), Some(Refusal::Flags));
        assert_eq!(refusal(8, 1), Some(Refusal::MetaLength), "it continues");
        assert_eq!(refusal(11, 5), Some(Refusal::MetaLength));
        assert_eq!(refusal(47, 0x41), Some(Refusal::BodyLength));
        assert_eq!(refusal(6, 33), Some(Refusal::BodyLength), "it has none");
        assert_eq!(refusal(50, 1), Some(Refusal::PartLength));
        assert_eq!(refusal(28, 0), None, "sessions are the owner's to know");
    }

    // A3.2
    #[test]
    fn the_first_check_that_fails_decides() {
        let order = [
            (0, b'X', Refusal::Magic),
            (4, 9, Refusal::Version),
            (20, 0, Refusal::Topology),
            (12, 0, Refusal::Sender),
            (16, 0, Refusal::Receiver),
            (6, 255, Refusal::Kind),
            (8, 255, Refusal::Flags),
            (11, 255, Refusal::MetaLength),
            (47, 255, Refusal::BodyLength),
            (51, 255, Refusal::PartLength),
        ];
        let mut bytes = *BYTES;
        for (at, value, refusal) in order.into_iter().rev() {
            bytes[at] = value;
            assert_eq!(Header::decode(&bytes, &EXPECTED), Err(refusal));
        }
    }

    #[test]
    fn a_part_is_not_empty_and_not_more_than_the_body() {
        let lengths = |body_len, part_len| Header {
            body_len,
            part_len,
            ..put()
        };
        let check = |header: Header| header.check_lengths(BODY_LEN_MAX_CEILING);
        assert_eq!(check(lengths(0, 0)), Ok(()));
        assert_eq!(check(lengths(1, 0)), Err(Refusal::PartLength));
        assert_eq!(check(lengths(1, 1)), Ok(()));
        assert_eq!(check(lengths(1, 2)), Err(Refusal::PartLength));
        assert_eq!(check(lengths(65_537, 65_536)), Ok(()));
        assert_eq!(check(lengths(65_537, 65_537)), Err(Refusal::PartLength));
    }
}
