//! Text of a transcript: literal bytes, repetitions, names for values, and patterns.
//!
//! A text is kept in pieces, so that a body of a gibibyte costs no memory before it is sent.

use std::collections::HashMap;
use std::io::{self, Write};

/// Values that the server has given, by the name that the transcript calls them.
pub(crate) type Names = HashMap<String, Vec<u8>>;

/// Part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// `bytes`, `times` over.
    Bytes { bytes: Vec<u8>, times: usize },
    /// `<name>`: a number that the server chose.
    Name(String),
    /// `*`: at least one byte.
    Any,
    /// `#`: at least one digit.
    Digits,
    /// `@`: one lower-case hexadecimal digit.
    Hex,
    /// `~5`: 5 or 4.
    About(i64),
}

/// A parsed text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(Vec<Piece>);

impl Text {
    /// Reads literal text: `\` escapes, `{text*times}` and `<name>` are understood.
    pub(crate) fn literal(source: &str) -> Result<Text, String> {
        Reader::new(source, false).text()
    }

    /// Reads a pattern: as literal, and `*`, `#`, `@` and `~number` stand for what varies.
    pub(crate) fn pattern(source: &str) -> Result<Text, String> {
        Reader::new(source, true).text()
    }

    /// Writes the text with the names replaced. A name that has no value yet and is a number
    /// stands for itself; any other is an error.
    pub(crate) fn write_to(&self, names: &Names, out: &mut impl Write) -> io::Result<()> {
        for piece in &self.0 {
            match piece {
                Piece::Bytes { bytes, times } => write_times(bytes, *times, out)?,
                Piece::Name(name) => match names.get(name) {
                    Some(value) => out.write_all(value)?,
                    None if name.bytes().all(|b| b.is_ascii_digit()) => {
                        out.write_all(name.as_bytes())?;
                    }
                    None => return Err(io::Error::other(format!("nothing is called <{name}>"))),
                },
                Piece::Any | Piece::Digits | Piece::Hex | Piece::About(_) => {
                    return Err(io::Error::other("a pattern cannot be sent"));
                }
            }
        }
        Ok(())
    }

    /// The text as bytes, under the conditions of [`Text::write_to`].
    pub(crate) fn to_bytes(&self, names: &Names) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(names, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether `got` fits. Names that have no value yet take theirs from it.
    pub(crate) fn fits(&self, got: &[u8], names: &mut Names) -> bool {
        let mut trial = names.clone();
        let fits = fits(&self.0, got, &mut trial);
        if fits {
            *names = trial;
        }
        fits
    }
}

fn write_times(bytes: &[u8], times: usize, out: &mut impl Write) -> io::Result<()> {
    let per_chunk = (CHUNK_LEN / bytes.len().max(1)).clamp(1, times.max(1));
    let chunk = bytes.repeat(per_chunk);
    for _ in 0..times / per_chunk {
        out.write_all(&chunk)?;
    }
    out.write_all(&bytes.repeat(times % per_chunk))
}

fn fits(pieces: &[Piece], got: &[u8], names: &mut Names) -> bool {
    let Some((first, rest)) = pieces.split_first() else {
        return got.is_empty();
    };
    match first {
        Piece::Bytes { bytes, times } => {
            let (len, whole) = (bytes.len(), bytes.len() * times);
            got.len() >= whole
                && (0..*times).all(|at| got[at * len..(at + 1) * len] == bytes[..])
                && fits(rest, &got[whole..], names)
        }
        Piece::Name(name) => match names.get(name).cloned() {
            Some(value) => got
                .strip_prefix(&value[..])
                .is_some_and(|got| fits(rest, got, names)),
            None => number(got).is_some_and(|(value, left)| {
                !is_taken(value, name, names) && {
                    names.insert(name.clone(), value.to_vec());
                    fits(rest, left, names)
                }
            }),
        },
        Piece::Any => (1..=got.len()).any(|len| fits(rest, &got[len..], names)),
        Piece::Digits => number(got).is_some_and(|(_, left)| fits(rest, left, names)),
        Piece::Hex => match got.split_first() {
            Some((b'0'..=b'9' | b'a'..=b'f', left)) => fits(rest, left, names),
            Some(_) | None => false,
        },
        Piece::About(most) => number(got).is_some_and(|(value, left)| {
            let value = std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.parse::<i64>().ok());
            value.is_some_and(|value| value == *most || value == *most - 1)
                && fits(rest, left, names)
        }),
    }
}

/// Whether `value` cannot be what `name` stands for: two ids of a transcript are two jobs.
fn is_taken(value: &[u8], name: &str, names: &Names) -> bool {
    let is_id = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let mut others = names.iter().filter(|(other, _)| is_id(other));
    is_id(name) && others.any(|(_, taken)| taken == value)
}

/// Splits off the longest decimal number at the start; its sign may be there.
fn number(got: &[u8]) -> Option<(&[u8], &[u8])> {
    let sign = usize::from(got.first() == Some(&b'-'));
    let digits = got[sign..]
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .count();
    (digits > 0).then(|| got.split_at(sign + digits))
}

/// Reads the source of a text.
struct Reader<'a> {
    left: std::str::Chars<'a>,
    is_pattern: bool,
    pieces: Vec<Piece>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str, is_pattern: bool) -> Reader<'a> {
        Reader {
            left: source.chars(),
            is_pattern,
            pieces: Vec::new(),
        }
    }

    fn text(mut self) -> Result<Text, String> {
        while let Some(c) = self.left.next() {
            match c {
                '{' => {
                    let inner = self.until('}')?;
                    let repeat = repetition(&inner)?;
                    self.pieces.push(repeat);
                }
                '<' => {
                    let name = self.until('>')?;
                    self.pieces.push(Piece::Name(name));
                }
                '*' if self.is_pattern => self.pieces.push(Piece::Any),
                '#' if self.is_pattern => self.pieces.push(Piece::Digits),
                '@' if self.is_pattern => self.pieces.push(Piece::Hex),
                '~' if self.is_pattern => {
                    let (value, left) = number(self.left.as_str().as_bytes())
                        .and_then(|(value, _)| self.left.as_str().split_at_checked(value.len()))
                        .ok_or("no number behind ~")?;
                    let value = value
                        .parse()
                        .map_err(|_| "the number behind ~ is too large")?;
                    self.pieces.push(Piece::About(value));
                    self.left = left.chars();
                }
                '\\' => {
                    let byte = self.escape()?;
                    self.push_byte(byte);
                }
                ' '..='~' => self.push_byte(c as u8),
                _ => return Err(format!("{c:?} is not printable ASCII: write \\xNN")),
            }
        }
        Ok(Text(self.pieces))
    }

    fn push_byte(&mut self, byte: u8) {
        match self.pieces.last_mut() {
            Some(Piece::Bytes { bytes, times: 1 }) => bytes.push(byte),
            _ => self.pieces.push(Piece::Bytes {
                bytes: vec![byte],
                times: 1,
            }),
        }
    }

    fn until(&mut self, end: char) -> Result<String, String> {
        let (inner, left) = self
            .left
            .as_str()
            .split_once(end)
            .ok_or_else(|| format!("{end} is missing"))?;
        self.left = left.chars();
        Ok(inner.to_owned())
    }

    fn escape(&mut self) -> Result<u8, String> {
        match self.left.next() {
            Some('r') => Ok(b'\r'),
            Some('n') => Ok(b'\n'),
            Some('t') => Ok(b'\t'),
            Some('0') => Ok(0),
            Some('s') => Ok(b' '),
            Some('x') => {
                let (hex, left) = self
                    .left
                    .as_str()
                    .split_at_checked(2)
                    .ok_or("\\x is cut off")?;
                self.left = left.chars();
                u8::from_str_radix(hex, 16).map_err(|_| format!("\\x{hex} is not a byte"))
            }
            Some(c @ ('\\' | '"' | '|' | '{' | '<' | '*' | '#' | '@' | '~')) => Ok(c as u8),
            other => Err(format!(
                "unknown escape \\{}",
                other.map_or(String::new(), String::from)
            )),
        }
    }
}

/// Reads the inside of `{text*times}`.
fn repetition(inner: &str) -> Result<Piece, String> {
    let (text, times) = inner.rsplit_once('*').ok_or("{text*times} needs a *")?;
    let times = times
        .parse()
        .map_err(|_| format!("{times:?} is not a count"))?;
    let bytes = Text::literal(text)?
        .to_bytes(&Names::new())
        .map_err(|error| error.to_string())?;
    Ok(Piece::Bytes { bytes, times })
}

/// `bytes` as a transcript writes them; long ones are cut in the middle.
pub(crate) fn show(bytes: &[u8]) -> String {
    if bytes.len() > SHOWN_LEN_MAX {
        let (head, tail) = (&bytes[..SHOWN_LEN_MAX / 2], &bytes[bytes.len() - 100..]);
        let len = bytes.len();
        return format!("{}[... {len} bytes in all ...]{}", show(head), show(tail));
    }
    bytes
        .escape_ascii()
        .to_string()
        .replace("\\\"", "\"")
        .replace("\\'", "'")
}

const CHUNK_LEN: usize = 1 << 20;
const SHOWN_LEN_MAX: usize = 4000;
