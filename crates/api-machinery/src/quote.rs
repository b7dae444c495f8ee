//! Text in the form Go prints it: quoted strings and integer parse errors.
//!
//! Clients match on messages such as `Invalid value: "a\tb"`, so quoting has to agree with Go's `%q`, not with
//! Rust's `{:?}` (which writes `\u{7f}` where Go writes `\x7f`).

use std::fmt::Write;

/// Quotes `text` the way Go's `strconv.Quote` (and `%q`) does.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_quoted(&mut out, c);
    }
    out.push('"');
    out
}

fn push_quoted(out: &mut String, c: char) {
    let escape = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{b}' => "\\v",
        _ => "",
    };
    let code = u32::from(c);
    // Writing to a String cannot fail.
    let _ = match (escape, code) {
        ("", 0..=0x1f | 0x7f) => write!(out, "\\x{code:02x}"),
        ("", _) if is_printable(c) => out.write_char(c),
        ("", 0x80..=0xffff) => write!(out, "\\u{code:04x}"),
        ("", _) => write!(out, "\\U{code:08x}"),
        (escape, _) => out.write_str(escape),
    };
}

/// Go's `unicode.IsPrint` for the characters that matter here: letters, marks, numbers, punctuation, symbols, and
/// the ASCII space, but no other space, control or format character.
pub fn is_printable(c: char) -> bool {
    match u32::from(c) {
        0x20..=0x7e => true,
        0..=0x1f | 0x7f..=0xa0 | 0xad | 0x61c | 0x70f | 0x180e => false,
        0x600..=0x605 | 0x6dd | 0x890..=0x891 | 0x8e2 => false,
        0x1680 | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x3000 | 0xfeff => false,
        0xe000..=0xf8ff | 0xfff0..=0xfffb | 0xfffe..=0xffff => false,
        0xe0000..=0xe007f | 0xf0000..=0x10ffff => false,
        _ => true,
    }
}

/// What is wrong with a number, in the words of Go's `strconv`.
pub(crate) fn integer_problem(error: &std::num::ParseIntError) -> &'static str {
    match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        let cases = [
            ("", r#""""#),
            ("abc", r#""abc""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\n\t\r\u{7}\u{8}\u{b}\u{c}", r#""\n\t\r\a\b\v\f""#),
            ("\u{1}\u{7f}", r#""\x01\x7f""#),
            ("é", r#""é""#),
            ("\u{a0}", r#""\u00a0""#),
            ("\u{2028}", r#""\u2028""#),
            ("😀", r#""😀""#),
            ("\u{f0000}", r#""\U000f0000""#),
        ];
        for (input, expected) in cases {
            assert_eq!(go_quote(input), expected);
        }
    }
}
