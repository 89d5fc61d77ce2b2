//! Replies: cutting them out of what a server has sent, and what of them is compared. Values that
//! no two servers share are masked; whole seconds that are counted down or up may differ by one.

use std::borrow::Cow;

/// How far the two servers can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alike {
    /// In all.
    All,
    /// Ours gives other ids, and has rows of its own in `stats`.
    AllButIds,
    /// The same, and lists have their own order.
    AllButIdsAndOrder,
}

/// A reply line, without its CR LF, and the data behind it where the line announces some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The line.
    pub(crate) line: Vec<u8>,
    /// The data, without its CR LF.
    pub(crate) data: Option<Vec<u8>>,
}

/// Takes one reply off the front of `bytes`, if it is complete.
pub(crate) fn take_answer(bytes: &mut Vec<u8>) -> Option<Answer> {
    let line_len = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let line = bytes[..line_len].to_vec();
    let Some(len) = data_len(&line) else {
        bytes.drain(..line_len + 2);
        return Some(Answer { line, data: None });
    };
    let start = line_len + 2;
    let data = bytes.get(start..start + len)?.to_vec();
    // Anything but CR LF behind the data shows up in front of the next reply.
    let end = bytes.get(start + len..start + len + 2)?;
    let end = start + len + if end == b"\r\n" { 2 } else { 0 };
    bytes.drain(..end);
    Some(Answer {
        line,
        data: Some(data),
    })
}

/// How much data a reply line announces.
fn data_len(line: &[u8]) -> Option<usize> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    match words.next()? {
        "OK" => {}
        "RESERVED" | "FOUND" => drop(words.next()?),
        _ => return None,
    }
    let len = words.next()?.parse().ok()?;
    words.next().is_none().then_some(len)
}

impl Answer {
    /// The id of the job that a `RESERVED` brings.
    pub(crate) fn reserved_id(&self) -> Option<u64> {
        let line = std::str::from_utf8(&self.line).ok()?;
        let mut words = line.strip_prefix("RESERVED ")?.split(' ');
        words.next()?.parse().ok()
    }

    /// The rows of a statistics or list reply.
    pub(crate) fn rows(&self) -> Option<Vec<Cow<'_, str>>> {
        let data = self
            .data
            .as_ref()
            .filter(|_| self.line.starts_with(b"OK "))?;
        Some(
            data.split(|&byte| byte == b'\n')
                .map(String::from_utf8_lossy)
                .collect(),
        )
    }

    /// The number that stands in the row `key`.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let rows = self.rows()?;
        let value = |row: &str| {
            let (name, value) = row.split_once(": ")?;
            (name == key).then(|| value.parse().ok()).flatten()
        };
        rows.iter().find_map(|row| value(row))
    }

    /// Whether a client may take ours and theirs for the same, as far as they can be compared.
    pub(crate) fn is_like(&self, other: &Answer, alike: Alike) -> bool {
        let (Some(mut ours), Some(mut theirs)) = (self.rows(), other.rows()) else {
            return self == other;
        };
        if alike != Alike::All
            && let Some(at) = ours.iter().position(|row| row == "mode: sharded")
        {
            // Behind all rows stands an empty one.
            ours.drain(at..ours.len() - 1);
        }
        let is_list = ours.get(1).is_some_and(|row| row.starts_with("- "));
        if alike == Alike::AllButIdsAndOrder && is_list {
            ours.sort();
            theirs.sort();
        }
        ours.len() == theirs.len()
            && ours
                .iter()
                .zip(&theirs)
                .all(|(ours, theirs)| is_row_like(ours, theirs))
    }
}

/// What the transcript's language has to say about a row so that it fits any server.
pub(crate) enum Mask {
    /// As it stands.
    Exact,
    /// Anything.
    Any,
    /// This or one less.
    About,
    /// In double quotes, which release 1.12 does not print.
    Quoted,
}

/// How the row `key: value` is compared.
pub(crate) fn mask(key: &str, value: &str) -> Mask {
    match key {
        // Commands that the observer gives count as well.
        "pid" | "version" | "rusage-utime" | "rusage-stime" | "uptime" | "cmd-stats" => Mask::Any,
        "id" if value.len() == 16 => Mask::Any,
        "age" | "time-left" | "pause-time-left" => Mask::About,
        "name" | "tube" | "hostname" | "os" | "platform" => Mask::Quoted,
        _ => Mask::Exact,
    }
}

fn is_row_like(ours: &str, theirs: &str) -> bool {
    let (Some((key, a)), Some((other, b))) = (ours.split_once(": "), theirs.split_once(": "))
    else {
        return ours == theirs;
    };
    key == other
        && match mask(key, b) {
            Mask::Exact => a == b,
            Mask::Any => true,
            Mask::Quoted => a.trim_matches('"') == b.trim_matches('"'),
            Mask::About => match (a.parse::<i64>(), b.parse::<i64>()) {
                (Ok(a), Ok(b)) => a.abs_diff(b) <= 1,
                (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
            },
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_cut_where_their_data_ends() {
        let mut bytes = b"RESERVED 7 4\r\na\r\nb\r\nOK 3\r\n---\r\nUSING a\r\nOK 4\r\n-".to_vec();
        let reserved = take_answer(&mut bytes).unwrap();
        assert_eq!(reserved.data.as_deref(), Some(&b"a\r\nb"[..]));
        assert_eq!(reserved.reserved_id(), Some(7));
        assert_eq!(take_answer(&mut bytes).unwrap().line, b"OK 3");
        assert_eq!(take_answer(&mut bytes).unwrap().line, b"USING a");
        assert_eq!(take_answer(&mut bytes), None);
        assert_eq!(bytes, b"OK 4\r\n-");
    }

    #[test]
    fn what_no_two_servers_share_is_masked() {
        assert!(is_row_like("name: \"a\"", "name: a"));
        assert!(is_row_like("age: 1", "age: 0"));
        assert!(!is_row_like("age: 2", "age: 0"));
        assert!(!is_row_like("ttr: 1", "ttr: 0"));
        assert!(is_row_like("id: 0123456789abcdef", "id: fedcba9876543210"));
        assert!(!is_row_like("id: 1", "id: 2"));
        assert!(!is_row_like("- a", "- b"));
    }
}
