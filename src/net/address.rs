//! Socket addresses as people read them.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use socket2::SockAddr;

/// The address of a socket, for logs and messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// IPv4 or IPv6. Prints as `127.0.0.1:11300` or `[::1]:11300`.
    Internet(SocketAddr),
    /// A Unix socket's file. Prints as its path.
    Path(PathBuf),
    /// A Unix socket without a file, as clients' are. Prints as `unix`.
    Unnamed,
    /// An address that the system does not tell. Prints as `unknown`.
    Unknown,
}

impl Address {
    /// The port, if the address has one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Address::Internet(address) => Some(address.port()),
            Address::Path(_) | Address::Unnamed | Address::Unknown => None,
        }
    }
}

impl From<&SockAddr> for Address {
    fn from(address: &SockAddr) -> Address {
        if let Some(socket) = address.as_socket() {
            Address::Internet(socket)
        } else if let Some(path) = address.as_pathname() {
            Address::Path(path.to_owned())
        } else if address.is_unix() {
            Address::Unnamed
        } else {
            Address::Unknown
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Internet(address) => address.fmt(f),
            Address::Path(path) => path.display().fmt(f),
            Address::Unnamed => f.write_str("unix"),
            Address::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_people_know_them() {
        for text in ["127.0.0.1:11300", "[::1]:11300"] {
            let socket: SocketAddr = text.parse().unwrap();
            let address = Address::from(&SockAddr::from(socket));
            assert_eq!(address.to_string(), text);
            assert_eq!(address.port(), Some(11300));
        }
        let address = Address::from(&SockAddr::unix("/run/b.sock").unwrap());
        assert_eq!(address.to_string(), "/run/b.sock");
        assert_eq!(address.port(), None);
    }
}
