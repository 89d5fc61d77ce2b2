//! Text for JSON.

use std::fmt::{self, Display, Write};

/// Prints as a string of JSON, quotes included, whatever is in it.
pub(super) struct Quoted<T>(pub(super) T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        write!(Escape(f), "{}", self.0)?;
        f.write_char('"')
    }
}

struct Escape<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escape<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '"' | '\\' => {
                    self.0.write_char('\\')?;
                    self.0.write_char(c)?;
                }
                '\0'..='\x1f' | '\x7f' => write!(self.0, "\\u{:04x}", u32::from(c))?,
                _ => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_the_string_or_the_line_is_escaped() {
        assert_eq!(
            Quoted("a\"b\\c\n\u{1b}\u{e9}").to_string(),
            "\"a\\\"b\\\\c\\u000a\\u001b\u{e9}\""
        );
        assert_eq!(
            Quoted(format_args!("{}/{}", 1, '"')).to_string(),
            "\"1/\\\"\""
        );
    }
}
