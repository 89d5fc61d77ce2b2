//! Numbers in command lines, as the original reads them.
//!
//! All but one are read strictly: any number of spaces (0x20 and nothing else), at least one
//! decimal digit, then as many digits as follow. There are no signs and no other bases, leading
//! zeros are fine, and a number too large for its type is no number. Whether something may stand
//! behind the last digit is for the caller to say. The count of `kick` is the exception.

use crate::base::time::Secs;

/// The number at the front of `bytes`, up to 2^64 - 1, and what stands behind its last digit.
#[must_use]
pub fn parse_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let start = bytes.iter().position(|&byte| byte != b' ')?;
    parse_digits(&bytes[start..])
}

/// The number at the front of `bytes`, up to 2^32 - 1, and what stands behind its last digit.
#[must_use]
pub fn parse_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = parse_u64(bytes)?;
    Some((u32::try_from(number).ok()?, rest))
}

/// The whole seconds at the front of `bytes`, up to 2^32 - 1, and what stands behind the last
/// digit.
#[must_use]
pub fn parse_secs(bytes: &[u8]) -> Option<(Secs, &[u8])> {
    let (secs, rest) = parse_u32(bytes)?;
    Some((Secs(secs), rest))
}

/// The count of a `kick`, whose reader in the original is C's `strtoul`: white space of any kind,
/// a sign or none, digits; the rest of the line is ignored, a minus negates modulo 2^64, and the
/// result is cut to its lower 32 bits. Without a digit or above 2^64 - 1 it is no count.
// Quirk: `kick 1x` kicks one job, `kick -1` all of them and `kick 4294967296` none.
#[must_use]
pub fn parse_kick_count(bytes: &[u8]) -> Option<u32> {
    let start = bytes.iter().position(|&byte| !is_c_space(byte))?;
    let (negative, digits) = match &bytes[start..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let (magnitude, _) = parse_digits(digits)?;
    let count = if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    Some(count as u32)
}

fn parse_digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    let mut len = 0;
    while let Some(digit) = bytes.get(len).and_then(|&byte| digit(byte)) {
        // So few digits cannot be too large a number, and hardly any number has more of them.
        number = if len < FITTING_DIGITS {
            number * 10 + digit
        } else {
            number.checked_mul(10)?.checked_add(digit)?
        };
        len += 1;
    }
    (len > 0).then(|| (number, &bytes[len..]))
}

/// Decimal digits of which any number fits 64 bits.
const FITTING_DIGITS: usize = 19;

fn digit(byte: u8) -> Option<u64> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(u64::from(value))
}

/// White space in the C locale. The standard library's ASCII white space lacks the vertical tab.
fn is_c_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::property_config;

    #[test]
    fn spaces_then_digits_then_the_rest() {
        for (bytes, parsed) in [
            (&b"0"[..], Some((0, &b""[..]))),
            (b"1 2", Some((1, b" 2"))),
            (b"   7x", Some((7, b"x"))),
            (b"000000000000000000000000000012", Some((12, b""))),
            (b"18446744073709551615", Some((u64::MAX, b""))),
            (b"18446744073709551616", None),
            (b"99999999999999999999999999999999999999999999999999", None),
            (b"", None),
            (b"   ", None),
            (b"x1", None),
            (b"-1", None),
            (b"+1", None),
            (b"\t1", None),
            (b" \t1", None),
            (b"0x1", Some((0, b"x1"))),
            (b"1\0", Some((1, b"\0"))),
        ] {
            assert_eq!(parse_u64(bytes), parsed, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_number_of_32_bits_ends_at_4294967295() {
        assert_eq!(parse_u32(b" 4294967295 x"), Some((u32::MAX, &b" x"[..])));
        assert_eq!(parse_u32(b"4294967296"), None);
        assert_eq!(parse_u32(b"18446744073709551616"), None);
        assert_eq!(parse_secs(b"4294967295"), Some((Secs(u32::MAX), &b""[..])));
        assert_eq!(parse_secs(b"4294967296"), None);
    }

    #[test]
    fn the_count_of_kick_is_lenient() {
        for (bytes, count) in [
            (&b"1"[..], Some(1)),
            (b"1x", Some(1)),
            (b"1 2", Some(1)),
            (b" \t\n\x0b\x0c\r5", Some(5)),
            (b"+5", Some(5)),
            (b"-1", Some(u32::MAX)),
            (b"-5", Some(u32::MAX - 4)),
            (b"-0", Some(0)),
            (b"4294967295", Some(u32::MAX)),
            (b"4294967296", Some(0)),
            (b"4294967297", Some(1)),
            (b"18446744073709551615", Some(u32::MAX)),
            (b"18446744073709551616", None),
            (b"-18446744073709551616", None),
            (b"0x10", Some(0)),
            (b"", None),
            (b" ", None),
            (b"x", None),
            (b"-", None),
            (b"- 1", None),
            (b"+-1", None),
            (b"\x001", None),
        ] {
            assert_eq!(parse_kick_count(bytes), count, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #![proptest_config(property_config())]

        #[test]
        fn what_is_printed_is_read(number: u64, spaces in 0..5usize, rest in "([^0-9].*)?") {
            let text = format!("{:spaces$}{number}{rest}", "");
            prop_assert_eq!(parse_u64(text.as_bytes()), Some((number, rest.as_bytes())));
            prop_assert_eq!(parse_kick_count(text.as_bytes()), Some(number as u32));
            let small = u32::try_from(number).ok().map(|small| (small, rest.as_bytes()));
            prop_assert_eq!(parse_u32(text.as_bytes()), small);
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>) {
            let _ = (parse_u64(&bytes), parse_u32(&bytes), parse_kick_count(&bytes));
        }
    }
}
