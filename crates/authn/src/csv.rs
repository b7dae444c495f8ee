//! Comma-separated rows with Go's quoting rules: a field is quoted as a whole or not at all, `""` is a quote, quoted fields may
//! span lines, blank lines are skipped.

use std::iter::Peekable;
use std::str::Chars;

/// Splits `text` into rows of fields.
///
/// # Errors
/// The line and what is wrong with its quotes.
pub(crate) fn parse(text: &str) -> Result<Vec<Vec<String>>, String> {
    let text = text.replace("\r\n", "\n");
    let mut input = Input { characters: text.chars().peekable(), line: 1 };
    let mut rows = Vec::new();
    while let Some(first) = input.characters.peek().copied() {
        if first == '\n' {
            input.next();
            continue;
        }
        let mut row = Vec::new();
        loop {
            let (field, end) = input.field()?;
            row.push(field);
            if end == FieldEnd::Row {
                break;
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

#[derive(PartialEq, Eq)]
enum FieldEnd {
    Comma,
    Row,
}

struct Input<'a> {
    characters: Peekable<Chars<'a>>,
    line: usize,
}

impl Input<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.characters.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// One field with the comma or line end behind it.
    fn field(&mut self) -> Result<(String, FieldEnd), String> {
        let start = self.line;
        let quoted = self.characters.peek() == Some(&'"');
        let mut field = String::new();
        if quoted {
            self.next();
            self.quoted_part(start, &mut field)?;
        }
        loop {
            match self.next() {
                Some(',') => return Ok((field, FieldEnd::Comma)),
                Some('\n') | None => return Ok((field, FieldEnd::Row)),
                Some('"') => return Err(wrong_quote(start, quoted)),
                Some(_) if quoted => return Err(wrong_quote(start, true)),
                Some(other) => field.push(other),
            }
        }
    }

    /// What follows an opening quote, up to and with the closing one.
    fn quoted_part(&mut self, start: usize, field: &mut String) -> Result<(), String> {
        loop {
            match self.next() {
                Some('"') if self.characters.peek() == Some(&'"') => {
                    self.next();
                    field.push('"');
                }
                Some('"') => return Ok(()),
                Some(other) => field.push(other),
                None => return Err(wrong_quote(start, true)),
            }
        }
    }
}

fn wrong_quote(line: usize, quoted: bool) -> String {
    let what = if quoted { "extraneous or missing \" in quoted-field" } else { "bare \" in non-quoted-field" };
    format!("record on line {line}: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_split_as_go_splits_them() {
        let cases: [(&str, &[&[&str]]); 7] = [
            ("", &[]),
            ("a,b\nc", &[&["a", "b"], &["c"]]),
            ("a,,b\r\n\r\n", &[&["a", "", "b"]]),
            ("a,", &[&["a", ""]]),
            ("a,\nb", &[&["a", ""], &["b"]]),
            ("\"x,\"\"y\"\"\",z", &[&["x,\"y\"", "z"]]),
            ("\"two\nlines\",b", &[&["two\nlines", "b"]]),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap(), expected, "{text:?}");
        }
    }
}
