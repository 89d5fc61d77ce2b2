//! Replies as a client reads them off the wire.

/// A reply: its line without CR LF, and the data behind it if its line announces some.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) line: String,
    pub(crate) data: Vec<u8>,
}

impl Reply {
    /// Takes a reply off the front of `bytes`, if a whole one is there.
    pub(crate) fn cut(bytes: &mut Vec<u8>) -> Option<Reply> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = String::from_utf8(bytes[..end].to_vec()).expect("a reply line is text");
        let words: Vec<&str> = line.split(' ').collect();
        let announced = match words[..] {
            ["RESERVED" | "FOUND", _, len] | ["OK", len] => Some(len),
            _ => None,
        };
        let mut used = end + 2;
        let mut data = Vec::new();
        if let Some(len) = announced {
            let len: usize = len.parse().expect("a length is a number");
            let whole = bytes.get(used..used + len + 2)?;
            let body = whole.strip_suffix(b"\r\n");
            data = body.expect("data ends in CR LF").to_vec();
            used += len + 2;
        }
        bytes.drain(..used);
        Some(Reply { line, data })
    }

    /// The id in the line.
    pub(crate) fn id(&self) -> Option<u64> {
        self.line.split(' ').nth(1)?.parse().ok()
    }

    pub(crate) fn is(&self, word: &str) -> bool {
        self.line.split(' ').next() == Some(word)
    }

    /// The value of a row of the data.
    pub(crate) fn row(&self, key: &str) -> Option<&str> {
        let rows = std::str::from_utf8(&self.data).ok()?.lines();
        let mut rows = rows.filter_map(|row| row.split_once(": "));
        rows.find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.row(key)?.parse().ok()
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Vec<&str> {
        let text = std::str::from_utf8(&self.data).expect("a list is text");
        text.lines()
            .filter_map(|line| line.strip_prefix("- "))
            .collect()
    }
}
