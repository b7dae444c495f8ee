//! Patterns as RE2 reads them, by a library that reads a little more and some of it in another way.

use regex::{Regex, RegexBuilder};

/// How much a compiled pattern may take.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// How often a part may be asked to repeat.
const MAX_REPEAT: u32 = 1000;

/// A compiled pattern, or what is wrong with it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if let Some(count) = over_repeated(pattern) {
        return Err(format!("error parsing regexp: invalid repeat count: `{{{count}}}`"));
    }
    let translated = translate(pattern);
    let built = RegexBuilder::new(&translated).size_limit(MAX_COMPILED_BYTES).build();
    built.map_err(|error| format!("error parsing regexp: {}", error.to_string().lines().last().unwrap_or_default()))
}

/// A count of repetitions beyond what RE2 allows.
fn over_repeated(pattern: &str) -> Option<String> {
    pattern.split('{').skip(1).find_map(|part| {
        let counts = part.split('}').next()?;
        let large = |text: &str| text.parse::<u32>().is_ok_and(|count| count > MAX_REPEAT);
        counts.split(',').any(large).then(|| counts.to_owned())
    })
}

/// Classes such as `\d` are of ASCII in RE2; inside brackets some characters mean nothing there that mean something here.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut bracket = false;
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '\\' => {
                let (text, length) = escape(rest, bracket);
                out.push_str(&text);
                used = length;
            }
            '[' if !bracket => {
                bracket = true;
                out.push('[');
                // A bracket right after the opening one is a member.
                let after = rest.get(1..).unwrap_or_default();
                let negated = after.starts_with('^');
                if negated {
                    out.push('^');
                    used += 1;
                }
                if rest.get(used..).unwrap_or_default().starts_with(']') {
                    out.push_str("\\]");
                    used += 1;
                }
            }
            '[' if rest.starts_with("[:") => {
                let end = rest.find(":]").map_or(used, |at| at + 2);
                out.push_str(rest.get(..end).unwrap_or_default());
                used = end;
            }
            '[' | '&' | '~' if bracket => {
                out.push('\\');
                out.push(c);
            }
            ']' => {
                bracket = false;
                out.push(c);
            }
            _ => out.push(c),
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    out
}

/// What an escape becomes, and its length.
fn escape(rest: &str, bracket: bool) -> (String, usize) {
    let Some(c) = rest.get(1..).and_then(|after| after.chars().next()) else { return ("\\".to_owned(), 1) };
    let class = match c {
        'd' => "0-9",
        'D' => "[^0-9]",
        'w' => "0-9A-Za-z_",
        'W' => "[^0-9A-Za-z_]",
        's' => "\\t\\n\\x0C\\r ",
        'S' => "[^\\t\\n\\x0C\\r ]",
        'b' if !bracket => return ("(?-u:\\b)".to_owned(), 2),
        'B' if !bracket => return ("(?-u:\\B)".to_owned(), 2),
        'Q' if !bracket => {
            let body = rest.get(2..).unwrap_or_default();
            let end = body.find("\\E");
            let text = body.get(..end.unwrap_or(body.len())).unwrap_or_default();
            return (regex::escape(text), 2 + text.len() + if end.is_some() { 2 } else { 0 });
        }
        _ => return (format!("\\{c}"), 1 + c.len_utf8()),
    };
    let plain = bracket || class.starts_with('[');
    (if plain { class.to_owned() } else { format!("[{class}]") }, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_re2() {
        for (pattern, text, found) in [
            (r"^\d+$", "١٢", false),
            (r"^\d+$", "12", true),
            (r"^[\w-]+$", "a-b_1", true),
            (r"^[\D]$", "x", true),
            (r"^\s$", "\u{b}", false),
            (r"^[a[b]$", "[", true),
            (r"^[^]a]$", "b", true),
            (r"^[[:alpha:]]$", "x", true),
            (r"^[a&&b]+$", "&", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"\bé", "é", false),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(text), found, "{pattern} {text}");
        }
        for pattern in ["a{1001}", "(", "(?=a)", "\\"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
