//! The data of stats and list replies: a line `---`, then a row `key: value` or an item `- name`
//! each, every line ended by LF alone. Clients split it by hand at the first colon and space, so
//! there is one space and never another form.

use crate::base::name::TubeName;
use crate::proto::reply::write_u64;

/// Appends a document to the buffer that it was begun on.
pub struct Yaml<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Yaml<'a> {
    /// Begins a document at the end of `out`.
    #[must_use]
    pub fn begin(out: &'a mut Vec<u8>) -> Yaml<'a> {
        out.extend_from_slice(b"---\n");
        Yaml { out }
    }

    /// Appends a row whose value is a number without a sign.
    pub fn u64(&mut self, key: &str, value: u64) {
        self.row(key, |out| write_u64(out, value));
    }

    /// Appends a row whose key holds a number between `before` and `after`, and whose value is a
    /// number without a sign.
    pub fn numbered(&mut self, (before, number, after): (&str, u64, &str), value: u64) {
        self.out.extend_from_slice(before.as_bytes());
        write_u64(self.out, number);
        self.u64(after, value);
    }

    /// Appends a row whose value is a number that may be negative.
    pub fn i64(&mut self, key: &str, value: i64) {
        self.row(key, |out| {
            if value < 0 {
                out.push(b'-');
            }
            write_u64(out, value.unsigned_abs());
        });
    }

    /// Appends a row whose value is `true` or `false`.
    pub fn bool(&mut self, key: &str, value: bool) {
        self.bare(key, if value { "true" } else { "false" });
    }

    /// Appends a row whose value is `text` as it is. For words of ours only: YAML decides what it
    /// takes them for.
    pub fn bare(&mut self, key: &str, text: &str) {
        self.row(key, |out| out.extend_from_slice(text.as_bytes()));
    }

    /// Appends a row whose value is `text` between double quotes, so that YAML takes it for text
    /// whatever it looks like.
    ///
    /// The original escapes nothing. Here quotes, backslashes, control characters and bytes that
    /// are not UTF-8 are escaped, without which the reader would stumble over them; all other text
    /// comes out the same.
    pub fn quoted(&mut self, key: &str, text: &[u8]) {
        self.row(key, |out| {
            out.push(b'"');
            for chunk in text.utf8_chunks() {
                write_escaped(out, chunk.valid());
                for &byte in chunk.invalid() {
                    write_hex_escape(out, byte);
                }
            }
            out.push(b'"');
        });
    }

    /// Appends a row whose value is a span in seconds with six digits behind the point, given in
    /// microseconds.
    pub fn seconds(&mut self, key: &str, micros: u64) {
        let mut fraction = *b".000000";
        let mut left = micros % MICROS_PER_SEC;
        for digit in fraction[1..].iter_mut().rev() {
            *digit += (left % 10) as u8;
            left /= 10;
        }
        self.row(key, |out| {
            write_u64(out, micros / MICROS_PER_SEC);
            out.extend_from_slice(&fraction);
        });
    }

    /// Appends an item of a list.
    // Quirk: the name is never quoted, although YAML takes some for numbers or truth values.
    pub fn item(&mut self, name: TubeName<'_>) {
        self.out.extend_from_slice(b"- ");
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'\n');
    }

    fn row(&mut self, key: &str, write_value: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b": ");
        write_value(self.out);
        self.out.push(b'\n');
    }
}

const MICROS_PER_SEC: u64 = 1_000_000;

fn write_escaped(out: &mut Vec<u8>, text: &str) {
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend_from_slice(&[b'\\', char as u8]),
            // All control characters are below U+0100, so that two digits hold them.
            _ if char.is_control() => write_hex_escape(out, char as u8),
            _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn write_hex_escape(out: &mut Vec<u8>, value: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let high = DIGITS[usize::from(value >> 4)];
    let low = DIGITS[usize::from(value & 15)];
    out.extend_from_slice(&[b'\\', b'x', high, low]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: impl FnOnce(&mut Yaml<'_>), rows: &str) {
        let mut out = b"OK\r\n".to_vec();
        write(&mut Yaml::begin(&mut out));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("OK\r\n---\n{rows}")
        );
    }

    #[test]
    fn rows_are_key_colon_space_value() {
        check(|_| {}, "");
        check(
            |yaml| {
                yaml.u64("cmd-put", u64::MAX);
                yaml.i64("time-left", -1);
                yaml.i64("binlog-oldest-index", i64::MIN);
                yaml.bool("draining", true);
                yaml.bool("draining", false);
                yaml.bare("state", "ready");
            },
            "cmd-put: 18446744073709551615\ntime-left: -1\n\
             binlog-oldest-index: -9223372036854775808\ndraining: true\ndraining: false\n\
             state: ready\n",
        );
    }

    #[test]
    fn seconds_have_six_digits_behind_the_point() {
        check(
            |yaml| {
                yaml.seconds("a", 0);
                yaml.seconds("b", 1);
                yaml.seconds("c", 999_999);
                yaml.seconds("d", 12_034_500);
                yaml.seconds("e", u64::MAX);
            },
            "a: 0.000000\nb: 0.000001\nc: 0.999999\nd: 12.034500\ne: 18446744073709.551615\n",
        );
    }

    #[test]
    fn plain_text_is_quoted_as_it_is() {
        check(
            |yaml| {
                yaml.quoted("version", b"1.13");
                yaml.quoted("os", b"#1 SMP PREEMPT: Tue, x'");
                yaml.quoted("name", b"$x_(a)-+/;.");
                yaml.quoted("hostname", "b\u{fc}ro".as_bytes());
                yaml.quoted("platform", b"");
            },
            "version: \"1.13\"\nos: \"#1 SMP PREEMPT: Tue, x'\"\nname: \"$x_(a)-+/;.\"\n\
             hostname: \"b\u{fc}ro\"\nplatform: \"\"\n",
        );
    }

    #[test]
    fn what_would_end_or_break_the_quotes_is_escaped() {
        check(
            |yaml| yaml.quoted("os", b"a\"b\\c\nd\x7f\0\xffe\xc2\x85"),
            "os: \"a\\\"b\\\\c\\x0ad\\x7f\\x00\\xffe\\x85\"\n",
        );
    }

    #[test]
    fn items_are_never_quoted() {
        check(
            |yaml| {
                yaml.item(TubeName::DEFAULT);
                yaml.item(TubeName::parse(b"1").unwrap());
                yaml.item(TubeName::parse(b"$x").unwrap());
            },
            "- default\n- 1\n- $x\n",
        );
    }
}
