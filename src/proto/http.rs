//! Tells when a web client is talking. A browser that was led to our port, or a server that was
//! made to send a request on somebody's behalf, would otherwise have the lines of its request's
//! body run as commands; the connection is closed instead. No client of ours sends these words: the
//! protocol's own are in lower case, and none begins with `host:`.

/// The methods that a request can begin with, each with the space behind it. `PRI` opens HTTP/2.
const METHODS: [&[u8]; 10] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
    b"PRI ",
];

/// The header that every request has, in whichever case.
const HOST: &[u8] = b"host:";

/// Whether a web client has sent this line, of which the first bytes are enough: it begins with an
/// HTTP method and a space, or with the `Host` header, whose name is compared without case.
#[must_use]
pub fn is_http(line: &[u8]) -> bool {
    METHODS.iter().any(|method| line.starts_with(method))
        || line
            .get(..HOST.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(HOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_the_host_header_are_http() {
        for line in [
            &b"GET / HTTP/1.1"[..],
            b"HEAD /",
            b"POST / HTTP/1.1",
            b"PUT /x",
            b"DELETE /x",
            b"CONNECT host:1",
            b"OPTIONS *",
            b"TRACE /",
            b"PATCH /",
            b"PRI * HTTP/2.0",
            b"GET ",
            b"Host: x",
            b"host:x",
            b"HOST:",
        ] {
            assert!(is_http(line), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_method_needs_its_space() {
        for method in METHODS {
            let (space, word) = method.split_last().unwrap();
            assert_eq!(*space, b' ');
            assert!(is_http(method));
            assert!(!is_http(word));
            assert!(!is_http(&[word, b"/ "].concat()));
        }
    }

    #[test]
    fn everything_else_is_not() {
        for line in [
            &b""[..],
            b"put 0 0 1 1",
            b"delete 1",
            b"get /",
            b"GET",
            b"GETX /",
            b" GET /",
            b"POST\t/",
            b"host",
            b"hosts:",
            b" host: x",
            b"Accept: GET ",
        ] {
            assert!(!is_http(line), "{}", line.escape_ascii());
        }
    }
}
