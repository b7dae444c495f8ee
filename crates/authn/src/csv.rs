//! Comma-separated rows with Go's quoting rules: a field is quoted as a whole or not at all, `""` is a quote, quoted fields may
//! span lines, blank lines are skipped.

/// Splits `text` into rows of fields.
///
/// # Errors
/// The line and what is wrong with its quotes.
pub(crate) fn parse(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut line = 1_usize;
    let mut characters = text.chars().filter(|c| *c != '\r').peekable();
    while let Some(first) = characters.peek().copied() {
        if first == '\n' && row.is_empty() {
            characters.next();
            line += 1;
            continue;
        }
        let start = line;
        let quoted = first == '"';
        let mut field = String::new();
        if quoted {
            characters.next();
        }
        let mut open = quoted;
        let ended_row = loop {
            match (characters.next(), open) {
                (Some('"'), true) if characters.peek() == Some(&'"') => {
                    characters.next();
                    field.push('"');
                }
                (Some('"'), true) => open = false,
                (Some('"'), false) => return Err(wrong_quote(start, quoted)),
                (Some('\n'), true) => {
                    line += 1;
                    field.push('\n');
                }
                (Some(other), true) => field.push(other),
                (None, true) => return Err(wrong_quote(start, true)),
                (Some(','), false) => break false,
                (Some('\n') | None, false) => break true,
                (Some(_), false) if quoted => return Err(wrong_quote(start, true)),
                (Some(other), false) => field.push(other),
            }
        };
        row.push(field);
        // A comma at the very end still opens one more, empty, field.
        let trailing = !ended_row && characters.peek().is_none();
        if trailing {
            row.push(String::new());
        }
        if ended_row || trailing {
            line += 1;
            rows.push(std::mem::take(&mut row));
        }
    }
    Ok(rows)
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
