//! Writes a case down in the language of `legacy-tests`, with the C server's replies as those that
//! are expected, so that it can be saved there and played.

use std::fmt::Write as _;

use crate::answer::{Answer, Mask, mask};
use crate::plan::{CLIENTS, Chunk};

/// A transcript in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    lines: String,
    /// Values stand there in quotes that release 1.12 does not print.
    quoted: bool,
    /// Connections that each client has had before: each has a name of its own.
    had: [u32; CLIENTS + 1],
}

impl Record {
    /// A transcript of servers with this limit for bodies.
    pub(crate) fn new(body_len_max: Option<u32>) -> Record {
        let mut record = Record::default();
        if let Some(limit) = body_len_max {
            record.push(&format!("args: -z {limit}"));
        }
        // The one who asks at the end is there from the start, and counted.
        record.push(&format!("{}< silence 0.01s", record.name(CLIENTS)));
        record
    }

    /// The whole file.
    pub(crate) fn text(&self) -> String {
        let header = if self.quoted {
            "oracle-1.12: name tube hostname os platform unquoted\n"
        } else {
            ""
        };
        format!("# (Say here what this proves.)\n{header}{}", self.lines)
    }

    /// The client sends `chunks` in one write.
    pub(crate) fn sent(&mut self, client: usize, chunks: &[Chunk]) {
        let name = self.name(client);
        if let [chunk] = chunks
            && let Some(line) = plain(chunk)
        {
            return self.push(&format!("{name}> {line}"));
        }
        let bytes: Vec<u8> = chunks.iter().flat_map(Chunk::bytes).collect();
        self.raw(client, &bytes);
    }

    /// The client sends these bytes, which are no whole commands.
    pub(crate) fn raw(&mut self, client: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.push(&format!(
                "{}>> \"{}\"",
                self.name(client),
                escape(bytes, false)
            ));
        }
    }

    /// The client ends its connection, or its sending side.
    pub(crate) fn ended(&mut self, client: usize, is_half: bool) {
        let how = if is_half { "half-close" } else { "close" };
        self.push(&format!("{}> ({how})", self.name(client)));
        if !is_half {
            // The server has to notice it before the next step.
            self.push("+0.05s");
            self.had[client] += 1;
        }
    }

    /// So much time passes.
    pub(crate) fn waited(&mut self, seconds: f64) {
        self.push(&format!("+{seconds}s"));
    }

    /// The client gets this reply.
    pub(crate) fn got(&mut self, client: usize, answer: &Answer) {
        let name = self.name(client);
        if let Some(rows) = answer.rows() {
            self.push(&format!("{name}< OK"));
            for row in rows.iter().filter(|row| !row.is_empty()) {
                self.row(&name, row);
            }
            return;
        }
        let line = escape(&answer.line, true);
        match &answer.data {
            Some(body) => self.push(&format!("{name}< {line} | {}", escape(body, false))),
            None => self.push(&format!("{name}< {line}")),
        }
    }

    /// The client is left waiting.
    pub(crate) fn silent(&mut self, client: usize) {
        self.push(&format!("{}< silence 0.05s", self.name(client)));
    }

    /// The server closes the client's connection.
    pub(crate) fn closed(&mut self, client: usize) {
        self.push(&format!("{}<< eof", self.name(client)));
        self.had[client] += 1;
    }

    fn name(&self, client: usize) -> String {
        let letter = char::from(b'a' + client as u8);
        match self.had[client] {
            0 => letter.to_string(),
            had => format!("{letter}{}", had + 1),
        }
    }

    fn row(&mut self, name: &str, row: &str) {
        let Some((key, value)) = row.split_once(": ") else {
            return self.push(&format!("{name}| {}", escape(row.as_bytes(), true)));
        };
        let shown = escape(value.as_bytes(), true);
        let shown = match mask(key, value) {
            Mask::Exact => shown,
            Mask::Any => "*".to_owned(),
            // The C server reads the clock anew for each row, so that its whole seconds are
            // mostly one fewer.
            Mask::About => value
                .parse::<i64>()
                .map_or(shown, |value| format!("~{}", value + 1)),
            Mask::Quoted => {
                self.quoted = true;
                format!("\\\"{}\\\"", shown.replace("\\\"", ""))
            }
        };
        self.push(&format!("{name}| {key}: {shown}"));
    }

    fn push(&mut self, line: &str) {
        writeln!(self.lines, "{line}").expect("memory can be written to");
    }
}

/// A chunk in the short form, if it has one: a line of letters, and a body that ends as it should.
fn plain(chunk: &Chunk) -> Option<String> {
    let is_plain = |bytes: &[u8]| bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let line = &chunk.line;
    let is_odd = line.is_empty()
        || line.starts_with(b"(")
        || line.starts_with(b" ")
        || line.ends_with(b" ")
        || line.contains(&b'|')
        || !is_plain(line);
    if is_odd {
        return None;
    }
    let line = escape(line, false);
    if chunk.rest.is_empty() {
        return Some(line);
    }
    let body = chunk.rest.strip_suffix(b"\r\n")?;
    let is_shown = chunk.replies == 1 && is_plain(body);
    is_shown.then(|| format!("{line} | {}", escape(body, false)))
}

/// `bytes` as the language writes them. Long runs of one byte are written as a repetition.
fn escape(bytes: &[u8], is_pattern: bool) -> String {
    let mut out = String::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let run = rest.iter().take_while(|&&byte| byte == first).count();
        if run >= RUN_LEN_MIN && first.is_ascii_alphanumeric() {
            write!(out, "{{{}*{run}}}", char::from(first)).expect("memory can be written to");
            rest = &rest[run..];
            continue;
        }
        escape_byte(first, is_pattern, &mut out);
        rest = &rest[1..];
    }
    // A blank at either end would be lost with the line.
    if let Some(inner) = out.strip_suffix(' ') {
        out = format!("{inner}\\s");
    }
    if let Some(inner) = out.strip_prefix(' ') {
        out = format!("\\s{inner}");
    }
    out
}

fn escape_byte(byte: u8, is_pattern: bool, out: &mut String) {
    match byte {
        b'\r' => out.push_str("\\r"),
        b'\n' => out.push_str("\\n"),
        b'\t' => out.push_str("\\t"),
        0 => out.push_str("\\0"),
        b'\\' | b'"' | b'|' | b'{' | b'<' => {
            out.push('\\');
            out.push(char::from(byte));
        }
        b'*' | b'#' | b'@' | b'~' if is_pattern => {
            out.push('\\');
            out.push(char::from(byte));
        }
        b' '..=b'~' => out.push(char::from(byte)),
        _ => write!(out, "\\x{byte:02x}").expect("memory can be written to"),
    }
}

const RUN_LEN_MIN: usize = 20;
