//! Where a command line ends: at CR LF, the two together. Either of them alone is a byte like any
//! other.
//!
//! The original looks at the first CR only, so that a stray one hides every line end behind it for
//! up to 224 bytes, and it loses a line end that lies across its buffer's border. No honest client
//! can notice the difference, and these lines are not kept from their end here.

use memchr::memchr_iter;

/// What ends a command line, a body and a reply line.
pub const CRLF: &[u8] = b"\r\n";

/// The index of the first CR LF in `bytes`, which is the length of the line in front of it.
///
/// A CR that is the last of `bytes` ends nothing yet: its LF may be on the way.
#[must_use]
pub fn find_end(bytes: &[u8]) -> Option<usize> {
    memchr_iter(b'\n', bytes)
        .filter_map(|lf| lf.checked_sub(1))
        .find(|&before| bytes[before] == b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    #[test]
    fn a_line_ends_at_the_pair_and_nowhere_else() {
        for (bytes, end) in [
            (&b""[..], None),
            (b"\r\n", Some(0)),
            (b"stats\r\n", Some(5)),
            (b"stats\n", None),
            (b"stats\r", None),
            (b"\nstats\r\n", Some(6)),
            (b"use a\rb\r\n", Some(7)),
            (b"use a\nb\r\n", Some(7)),
            (b"list-tube-used\r\r\n", Some(15)),
            (b"\n\r\n\r\n", Some(1)),
            (b"a\r\nb\r\n", Some(1)),
        ] {
            assert_eq!(find_end(bytes), end, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn the_first_pair_is_found(text in "[\r\nx]{0,300}") {
            let bytes = text.as_bytes();
            prop_assert_eq!(find_end(bytes), bytes.windows(2).position(|pair| pair == CRLF));
        }
    }
}
