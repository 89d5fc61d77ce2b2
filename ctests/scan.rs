//! Finds functions in C text. It knows just enough of the language to take no comment, literal,
//! directive or call for a definition.

/// The functions that the text defines, in their order.
pub(crate) fn defined(text: &str) -> Vec<String> {
    functions(text, '{')
}

/// The functions that the text declares and does not define.
#[allow(dead_code, reason = "not everybody who scans wants both")]
pub(crate) fn declared(text: &str) -> Vec<String> {
    functions(text, ';')
}

/// Names at the outermost level that have a list of parameters behind them and then, but for
/// attributes, `end`.
fn functions(text: &str, end: char) -> Vec<String> {
    let mut found = Vec::new();
    let mut name = None;
    let mut last = "";
    let (mut parens, mut braces) = (0_usize, 0_usize);
    let text = plain(text);
    for token in tokens(&text) {
        let is_outermost = parens == 0 && braces == 0;
        match token {
            "(" => {
                let is_name = is_outermost && last.starts_with(is_word) && !last.starts_with("__");
                if is_name && name.is_none() {
                    name = Some(last.to_string());
                }
                parens += 1;
            }
            ")" => parens = parens.saturating_sub(1),
            "{" | ";" | "=" => {
                if is_outermost {
                    found.extend(name.take().filter(|_| token.starts_with(end)));
                }
                braces += usize::from(token == "{");
            }
            "}" => braces = braces.saturating_sub(1),
            _ => {}
        }
        last = token;
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Words, and all other characters one by one, without blanks.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let len = match rest.find(|c| !is_word(c)) {
            Some(0) => first.len_utf8(),
            Some(len) => len,
            None => rest.len(),
        };
        let (token, behind) = rest.split_at(len);
        rest = behind.trim_start();
        Some(token)
    })
}

/// The text without comments, directives and what stands in literals.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_line_start = true;
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '/' if rest.starts_with("//") => line_len(rest),
            '#' if is_line_start => line_len(rest),
            '"' | '\'' => literal_len(rest, c),
            _ => 0,
        };
        if len == 0 {
            out.push(c);
            is_line_start = c == '\n' || is_line_start && c.is_whitespace();
            rest = &rest[c.len_utf8()..];
        } else {
            out.push(' ');
            rest = &rest[len..];
        }
    }
    out
}

/// Up to the end of the line, and of the lines that continue it.
fn line_len(text: &str) -> usize {
    let ends = text.match_indices('\n').map(|(at, _)| at);
    ends.into_iter()
        .find(|&at| !text[..at].trim_end_matches('\r').ends_with('\\'))
        .unwrap_or(text.len())
}

/// Up to the closing quote, which is the same as the one that opens.
fn literal_len(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        #define MAKE(x) \
            void cttest_##x(void) {
        /* void cttest_in_comment(void) { */
        // void cttest_behind_slashes(void) {
        static const char *text = "void cttest_in_text(void) {";
        void cttest_declared(void);
        extern int (*falloc)(int fd, int len);
        int table[] = {1, 2};
        struct Pair { int a; int (*f)(void); };

        void
        cttest_old_style ()
        {
            cttest_called(); if (a) { b('{'); }
        }
        static inline void __attribute__((format(printf, 1, 2))) say(const char *format, ...) {}
        __attribute__((unused)) static int spare(void) { return 0; }
    "#;

    #[test]
    fn definitions_are_told_from_all_that_looks_like_them() {
        assert_eq!(defined(TEXT), ["cttest_old_style", "say", "spare"]);
    }

    #[test]
    fn declarations_are_found() {
        assert_eq!(declared(TEXT), ["cttest_declared", "int"]);
        let text = "char *f(const char *x, ...) __attribute__((format(printf, 1, 2)));\nint g();";
        assert_eq!(declared(text), ["f", "g"]);
    }
}
