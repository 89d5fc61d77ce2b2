//! Fields of a frame's metadata, one after another: bounded reading, and appending.

use crate::base::name::TubeName;
use crate::wire::refusal::DecodeError;

/// Reads fields from the front of some bytes. Reading past their end is an error, and so is leaving
/// some unread.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Short`] if they are not there; the same for all that follows.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Short)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A number of one byte.
    ///
    /// # Errors
    /// See [`Cursor::bytes`].
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_le_bytes)
    }

    /// A number of two bytes.
    ///
    /// # Errors
    /// See [`Cursor::bytes`].
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number of four bytes.
    ///
    /// # Errors
    /// See [`Cursor::bytes`].
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of eight bytes.
    ///
    /// # Errors
    /// See [`Cursor::bytes`].
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A byte that is 0 or 1.
    ///
    /// # Errors
    /// [`DecodeError::Value`] if it is neither.
    pub fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Value),
        }
    }

    /// A tube's name after a byte with its length.
    ///
    /// # Errors
    /// [`DecodeError::Value`] if the bytes are no name.
    pub fn name(&mut self) -> Result<TubeName<'a>, DecodeError> {
        let len = self.u8()?;
        TubeName::parse(self.bytes(usize::from(len))?).ok_or(DecodeError::Value)
    }

    /// All has been read.
    ///
    /// # Errors
    /// [`DecodeError::Long`] if something has not.
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Long)
        }
    }
}

/// Appends a number of two bytes.
pub fn write_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a number of four bytes.
pub fn write_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a number of eight bytes.
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

const _: () = assert!(crate::base::limits::TUBE_NAME_LEN_MAX <= u8::MAX as usize);

/// Appends a name after a byte with its length.
pub fn write_name(out: &mut Vec<u8>, name: TubeName<'_>) {
    out.push(name.as_bytes().len() as u8);
    out.extend_from_slice(name.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_and_end_where_the_bytes_end() {
        let mut bytes = Vec::new();
        bytes.push(1);
        write_u16(&mut bytes, 0x0302);
        write_u32(&mut bytes, 0x0706_0504);
        write_u64(&mut bytes, 0x0f0e_0d0c_0b0a_0908);
        write_name(&mut bytes, TubeName::DEFAULT);
        assert_eq!(
            bytes,
            *b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x07default"
        );

        let mut fields = Cursor::new(&bytes);
        assert_eq!(fields.flag(), Ok(true));
        assert_eq!(fields.u16(), Ok(0x0302));
        assert_eq!(fields.u32(), Ok(0x0706_0504));
        assert_eq!(fields.clone().finish(), Err(DecodeError::Long));
        assert_eq!(fields.u64(), Ok(0x0f0e_0d0c_0b0a_0908));
        assert_eq!(fields.name(), Ok(TubeName::DEFAULT));
        assert_eq!(fields.u8(), Err(DecodeError::Short));
        assert_eq!(fields.finish(), Ok(()));
    }

    #[test]
    fn what_cannot_be_meant_is_an_error() {
        assert_eq!(Cursor::new(b"\x02").flag(), Err(DecodeError::Value));
        assert_eq!(Cursor::new(b"\x00").name(), Err(DecodeError::Value));
        assert_eq!(Cursor::new(b"\x02-a").name(), Err(DecodeError::Value));
        assert_eq!(Cursor::new(b"\x03ab").name(), Err(DecodeError::Short));
        let mut short = Cursor::new(b"abc");
        assert_eq!(short.u32(), Err(DecodeError::Short));
        assert_eq!(short.bytes(usize::MAX), Err(DecodeError::Short));
        assert_eq!(short.bytes(3), Ok(&b"abc"[..]), "nothing was taken");
    }
}
