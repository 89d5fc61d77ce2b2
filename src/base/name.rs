//! Tube names. Bytes become a name once, at the edge, and nobody checks them again.

use std::fmt;

use crate::base::limits::TUBE_NAME_LEN_MAX;

/// A tube name. Invariant: 1 to [`TUBE_NAME_LEN_MAX`] bytes of the protocol's set
/// (`A-Z a-z 0-9 - + / ; . $ _ ( )`), the first not `-`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TubeName<'a>(&'a [u8]);

impl<'a> TubeName<'a> {
    /// The tube that every session starts with and that always exists.
    pub const DEFAULT: TubeName<'static> = TubeName(b"default");

    /// `bytes` as a name, if they are one.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<TubeName<'a>> {
        let first = bytes.first()?;
        let fits = bytes.len() <= TUBE_NAME_LEN_MAX;
        let clean = bytes.iter().copied().all(is_name_byte);
        (fits && clean && *first != b'-').then_some(TubeName(bytes))
    }

    /// The name's bytes.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// Whether `byte` may occur in a tube name.
#[must_use]
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(&byte)
}

/// A tube name of one's own. The default tube's costs no memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TubeNameBuf(Option<Box<[u8]>>);

impl TubeNameBuf {
    /// The name of the default tube.
    pub const DEFAULT: TubeNameBuf = TubeNameBuf(None);

    /// The name, borrowed.
    #[must_use]
    pub fn as_name(&self) -> TubeName<'_> {
        self.0.as_deref().map_or(TubeName::DEFAULT, TubeName)
    }
}

impl From<TubeName<'_>> for TubeNameBuf {
    fn from(name: TubeName<'_>) -> TubeNameBuf {
        TubeNameBuf((name != TubeName::DEFAULT).then(|| name.0.into()))
    }
}

impl fmt::Debug for TubeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.0))
    }
}

impl fmt::Debug for TubeNameBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_name().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_1_to_200_bytes_of_the_set() {
        assert!(TubeName::parse(b"").is_none());
        assert!(TubeName::parse(&[b'x'; 200]).is_some());
        assert!(TubeName::parse(&[b'x'; 201]).is_none());
        for byte in 0..=255u8 {
            let allowed =
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"
                    .contains(&byte);
            assert_eq!(
                TubeName::parse(&[b'x', byte]).is_some(),
                allowed,
                "byte {byte}"
            );
        }
    }

    #[test]
    fn a_dash_may_stand_anywhere_but_first() {
        assert!(TubeName::parse(b"-x").is_none());
        assert!(TubeName::parse(b"x-").is_some());
    }

    #[test]
    fn an_owned_name_gives_back_what_went_in() {
        for name in [TubeName::DEFAULT, TubeName::parse(b"(a)/b").unwrap()] {
            assert_eq!(TubeNameBuf::from(name).as_name(), name);
        }
        assert_eq!(TubeNameBuf::from(TubeName::DEFAULT), TubeNameBuf::DEFAULT);
    }
}
