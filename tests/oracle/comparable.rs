//! Lines that the two servers are known to answer differently, on purpose, and that are therefore
//! never sent. Each is a row of `docs/compatibility.md` or a transcript without an oracle.

/// The server's line buffer.
const BLOCK_LEN: usize = 224;

/// Whether both servers have to answer this line, sent without its CR LF and with no body behind
/// it, alike.
pub(crate) fn is_comparable(line: &[u8]) -> bool {
    !is_ambiguous_end(line)
        && !is_http(line)
        && !is_lenient_timeout(line)
        && !may_bring_a_body(line)
}

/// Q23: a CR that ends nothing, or a CR LF across the border of two blocks.
fn is_ambiguous_end(line: &[u8]) -> bool {
    line.contains(&b'\r') || (line.len() + 2) % BLOCK_LEN == 1
}

/// Ours closes the connection.
fn is_http(line: &[u8]) -> bool {
    let is_method = [
        "GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "CONNECT ", "OPTIONS ", "TRACE ", "PATCH ",
        "PRI ",
    ]
    .iter()
    .any(|method| line.starts_with(method.as_bytes()));
    is_method || line.to_ascii_lowercase().starts_with(b"host:")
}

/// Release 1.12 reads anything as a timeout, and ours nothing but a number.
fn is_lenient_timeout(line: &[u8]) -> bool {
    let Some(argument) = line.strip_prefix(b"reserve-with-timeout") else {
        return false;
    };
    let Some(spaced) = argument.strip_prefix(b" ") else {
        return true;
    };
    let digits = spaced.trim_ascii_start();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let leading = &spaced[..spaced.len() - digits.len()];
    let fits = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse::<i32>().ok());
    !(is_number && fits.is_some() && leading.iter().all(|&byte| byte == b' '))
}

/// A put whose size can be read: it is accepted, or ours throws the body of the refused one away.
/// Such lines are sent with their body only.
fn may_bring_a_body(line: &[u8]) -> bool {
    let Some(arguments) = line.strip_prefix(b"put ") else {
        return false;
    };
    let mut words = arguments
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    let size = words.nth(3).unwrap_or_default();
    !size.is_empty() && size.iter().all(u8::is_ascii_digit)
        // Numbers may stand without a space between them and what ends the one before.
        || arguments.iter().filter(|byte| byte.is_ascii_digit()).count() >= 4
            && reads_as_put(arguments)
}

/// Whether four numbers can be read, whatever stands behind the last one, and the size, being
/// followed by junk, is not above any limit.
fn reads_as_put(arguments: &[u8]) -> bool {
    let mut rest = arguments;
    let mut size = 0;
    for _ in 0..4 {
        rest = rest.trim_ascii_start();
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..len]).ok();
        let Some(number) = number.and_then(|digits| digits.parse::<u32>().ok()) else {
            return false;
        };
        size = number;
        rest = &rest[len..];
    }
    rest.is_empty() || rest.starts_with(b" ") || size > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_on_purpose_is_left_out() {
        for line in [
            &b"use a\rb"[..],
            b"Host: x",
            b"GET /",
            b"reserve-with-timeout",
            b"reserve-with-timeout x",
            b"reserve-with-timeout 1x",
            b"reserve-with-timeout 2147483648",
            b"put 0 0 1 4",
            b"put -1 0 1 4",
            b"put 0 0 1 4 ",
            &[b'x'; 223],
        ] {
            assert!(!is_comparable(line), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn the_rest_is_sent() {
        for line in [
            &b""[..],
            b"put ",
            b"put 0 0 1 -4",
            b"put 0 0 1",
            b"put 0 0 1 0x",
            b"reserve-with-timeout  0",
            b"pause-tubedefault 0",
            b"use a\0b",
            &[b'x'; 222],
            &[b'x'; 224],
        ] {
            assert!(is_comparable(line), "{}", line.escape_ascii());
        }
    }
}
