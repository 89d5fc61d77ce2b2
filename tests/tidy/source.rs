//! A Rust file as the rules see it: its text, the same text with comments and literals blanked out,
//! and for each line whether it belongs to a test.
//!
//! This is a scanner, not a parser. It knows just enough of the language (nested comments, raw
//! strings, lifetimes) to never take a quoted word for code.

/// One Rust file. The three lists have one entry per line.
pub(crate) struct Source {
    /// Path from the package's root, with `/`.
    pub(crate) path: String,
    /// The lines as written.
    pub(crate) lines: Vec<String>,
    /// The lines without comments and without what stands in literals; columns are kept.
    pub(crate) code: Vec<String>,
    /// Whether the line is test code.
    pub(crate) test: Vec<bool>,
}

/// A function with a body: its name, and the indices of its first and last line.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let blanked = Blanker::new(text).run();
        let code: Vec<String> = blanked.split('\n').map(str::to_string).collect();
        let test = mark_tests(path, &code);
        let lines = text.split('\n').map(str::to_string).collect();
        Source {
            path: path.to_string(),
            lines,
            code,
            test,
        }
    }

    /// First directory or file name below `src/`, without `.rs`; nothing outside `src/`.
    pub(crate) fn module(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        let first = inside.split('/').next()?;
        Some(first.strip_suffix(".rs").unwrap_or(first))
    }

    /// Every function that has a body, in order of its first line.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (first, line) in self.code.iter().enumerate() {
            let Some(at) = find_word(line, "fn") else {
                continue;
            };
            let name: String = line[at + 2..]
                .trim_start()
                .chars()
                .take_while(|c| is_word(*c))
                .collect();
            if name.is_empty() {
                continue; // a function pointer type
            }
            if let Some((last, true)) = item_end(&self.code, first, at) {
                found.push(Function { name, first, last });
            }
        }
        found
    }
}

/// Whether `c` can be part of a name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Where `word` stands in `line` with nothing of a name on either side.
pub(crate) fn find_word(line: &str, word: &str) -> Option<usize> {
    line.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn is_test_path(path: &str) -> bool {
    let tops = ["tests/", "legacy-tests/", "ctests/", "benches/", "fuzz/"];
    tops.iter().any(|top| path.starts_with(top))
        || path.ends_with("/tests.rs")
        || path.contains("/tests/")
}

/// Marks what stands behind `#[cfg(test)]` and `#[test]`, to the end of the item.
fn mark_tests(path: &str, code: &[String]) -> Vec<bool> {
    let mut marks = vec![is_test_path(path); code.len()];
    for (at, line) in code.iter().enumerate() {
        for attribute in ["#[cfg(test)]", "#[test]"] {
            let Some(column) = line.find(attribute) else {
                continue;
            };
            let end = item_end(code, at, column + attribute.len());
            let last = end.map_or(at, |(last, _)| last);
            marks[at..=last].fill(true);
        }
    }
    marks
}

/// The line on which the item that starts at `(line, column)` ends, and whether it ends in a brace
/// of its own. Nothing if the text stops first.
fn item_end(code: &[String], line: usize, column: usize) -> Option<(usize, bool)> {
    let mut depth = 0_usize;
    let mut inside = 0_usize;
    for (row, text) in code.iter().enumerate().skip(line) {
        let from = if row == line { column } else { 0 };
        for c in text[from..].chars() {
            match c {
                '(' | '[' => inside += 1,
                ')' | ']' => inside = inside.saturating_sub(1),
                ';' if depth == 0 && inside == 0 => return Some((row, false)),
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if c == '}' && depth == 0 {
                return Some((row, true));
            }
        }
    }
    None
}

/// Copies a text and puts spaces where comments and the insides of literals were.
struct Blanker<'a> {
    rest: &'a str,
    out: String,
}

impl<'a> Blanker<'a> {
    fn new(text: &'a str) -> Blanker<'a> {
        Blanker {
            rest: text,
            out: String::with_capacity(text.len()),
        }
    }

    fn run(mut self) -> String {
        while let Some(c) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.blank(block_comment_len(self.rest));
            } else if let Some(len) = raw_string_len(self.rest, self.out.chars().next_back()) {
                self.blank(len);
            } else if c == '"' {
                self.literal(string_len(self.rest));
            } else if c == '\'' {
                self.literal(char_len(self.rest).unwrap_or(1));
            } else {
                self.out.push(c);
                self.rest = &self.rest[c.len_utf8()..];
            }
        }
        self.out
    }

    /// Keeps the quotes of a literal and blanks what is between them.
    fn literal(&mut self, len: usize) {
        let quote = &self.rest[..1];
        self.out.push_str(quote);
        self.rest = &self.rest[1..];
        if len >= 2 {
            self.blank(len - 2);
            self.out.push_str(quote);
            self.rest = self.rest.get(1..).unwrap_or("");
        }
    }

    fn blank(&mut self, len: usize) {
        let (gone, rest) = self.rest.split_at(len);
        self.out
            .extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

fn block_comment_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of a raw string at the start of `text`, if there is one and no name runs into it.
fn raw_string_len(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(is_word) {
        return None;
    }
    let head = ["r", "br", "cr"].into_iter().find(|head| {
        text.strip_prefix(head)
            .is_some_and(|rest| rest.trim_start_matches('#').starts_with('"'))
    })?;
    let hashes = text[head.len()..].find('"')?;
    let open = head.len() + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = text[open..].find(&close)?;
    Some(open + end + close.len())
}

fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a character literal at the start of `text`; nothing if it is a lifetime or a label.
fn char_len(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        let (at, _) = chars.skip(1).find(|&(_, c)| c == '\'')?;
        return Some(at + 1);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(at + 1)
}
