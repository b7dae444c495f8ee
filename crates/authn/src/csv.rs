//! Comma-separated rows with Go's quoting rules: a field is quoted as a whole or not at all, `""` is a quote, quoted fields may
//! span lines, blank lines are skipped.

use std::iter::Peekable;
use std::str::Chars;

/// The quotes of the record that begins in a line are wrong, in Go's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CsvError {
    #[error("record on line {0}: extraneous or missing \" in quoted-field")]
    Quoted(usize),
    #[error("record on line {0}: bare \" in non-quoted-field")]
    Bare(usize),
}

impl CsvError {
    fn of(line: usize, quoted: bool) -> Self {
        if quoted { Self::Quoted(line) } else { Self::Bare(line) }
    }
}

/// Splits `text` into rows of fields.
///
/// # Errors
/// When the quotes of a line are wrong.
pub(crate) fn parse(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
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
    fn field(&mut self) -> Result<(String, FieldEnd), CsvError> {
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
                Some('"') => return Err(CsvError::of(start, quoted)),
                Some(_) if quoted => return Err(CsvError::Quoted(start)),
                Some(other) => field.push(other),
            }
        }
    }

    /// What follows an opening quote, up to and with the closing one.
    fn quoted_part(&mut self, start: usize, field: &mut String) -> Result<(), CsvError> {
        loop {
            match self.next() {
                Some('"') if self.characters.peek() == Some(&'"') => {
                    self.next();
                    field.push('"');
                }
                Some('"') => return Ok(()),
                Some(other) => field.push(other),
                None => return Err(CsvError::Quoted(start)),
            }
        }
    }
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
