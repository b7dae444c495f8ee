//! Indented JSON, as Go's encoder indents: two spaces, empty collections closed at once.

/// Indents compact JSON.
pub(crate) fn indent(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut characters = compact.chars().peekable();
    while let Some(character) = characters.next() {
        if in_text {
            out.push(character);
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match character {
            '"' => {
                in_text = true;
                out.push(character);
            }
            '{' | '[' => {
                out.push(character);
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            white if white.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_left_alone() {
        let compact = r#"{"a":[1,{"b":"x,\"{y}:"}],"c":{},"d":[],"e":null}"#;
        let expected = "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,\\\"{y}:\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  \"e\": null\n}";
        assert_eq!(indent(compact), expected);
        assert_eq!(indent("{}\n"), "{}");
    }
}
