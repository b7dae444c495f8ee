//! JSON values as YAML text: block style, sorted keys, and quotes wherever YAML 1.1 would read something else.

use serde_json::Value;

/// The YAML text of a value, newline included. Lists are not indented below their key.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_map(&mut out, value, 0, false),
        Value::Array(list) if !list.is_empty() => write_list(&mut out, list, 0, false),
        scalar => {
            write_scalar(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// `inline` tells that the first line continues one that is already indented, after `- `.
fn write_map(out: &mut String, value: &Value, depth: usize, inline: bool) {
    let Value::Object(map) = value else { return };
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_unstable();
    for (index, key) in keys.into_iter().enumerate() {
        if index > 0 || !inline {
            indent(out, depth);
        }
        write_text(out, key, None);
        out.push(':');
        write_member(out, map.get(key).unwrap_or(&Value::Null), depth);
    }
}

fn write_member(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            write_map(out, value, depth + 1, false);
        }
        Value::Array(list) if !list.is_empty() => {
            out.push('\n');
            write_list(out, list, depth, false);
        }
        scalar => {
            out.push(' ');
            write_scalar(out, scalar, depth + 1);
            out.push('\n');
        }
    }
}

fn write_list(out: &mut String, list: &[Value], depth: usize, inline: bool) {
    for (index, item) in list.iter().enumerate() {
        if index > 0 || !inline {
            indent(out, depth);
        }
        out.push_str("- ");
        match item {
            Value::Object(map) if !map.is_empty() => write_map(out, item, depth + 1, true),
            Value::Array(items) if !items.is_empty() => write_list(out, items, depth + 1, true),
            scalar => {
                write_scalar(out, scalar, depth + 1);
                out.push('\n');
            }
        }
    }
}

/// A value that fits after a key or a dash; `depth` is the indentation of the lines of a block text.
fn write_scalar(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(out, text, Some(depth)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn write_text(out: &mut String, text: &str, block_depth: Option<usize>) {
    match block_depth {
        Some(depth) if fits_block(text) => write_block(out, text, depth),
        depth if reads_as_other(text) || text.contains(is_special) => write_double_quoted(out, text, depth),
        depth if is_plain(text) => write_folded(out, text, depth),
        depth => {
            out.push('\'');
            write_folded(out, &text.replace('\'', "''"), depth);
            out.push('\'');
        }
    }
}

/// Where a line is broken: at the first single space behind this column.
const LINE_WIDTH: usize = 80;

/// Whether a line that ends with `out` is broken here; keys never are.
fn breaks(out: &str, depth: Option<usize>) -> bool {
    let line = out.rfind('\n').map_or(out, |at| out.get(at + 1..).unwrap_or_default());
    depth.is_some() && line.len() > LINE_WIDTH && line.chars().count() > LINE_WIDTH
}

fn break_line(out: &mut String, depth: Option<usize>) {
    out.push('\n');
    indent(out, depth.unwrap_or_default());
}

/// A text without escapes, with long lines broken at spaces.
fn write_folded(out: &mut String, text: &str, depth: Option<usize>) {
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let alone = c == ' ' && before != ' ' && rest.peek().is_some_and(|next| *next != ' ');
        if alone && breaks(out, depth) {
            break_line(out, depth);
        } else {
            out.push(c);
        }
        before = c;
    }
}

/// Characters that only double quotes can carry.
fn is_special(c: char) -> bool {
    c.is_control() || matches!(c, '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Several lines, none of which needs escapes, starts the text with a space, or ends in one.
fn fits_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.chars().any(|c| c != '\n' && c != '\t' && is_special(c))
        && !text.split('\n').any(|line| line.ends_with([' ', '\t']))
}

fn write_block(out: &mut String, text: &str, depth: usize) {
    let body = text.trim_end_matches('\n');
    let endings = text.len() - body.len();
    out.push_str(match endings {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(out, depth);
            out.push_str(line);
        }
    }
    out.extend(std::iter::repeat_n('\n', endings.saturating_sub(1)));
}

fn write_double_quoted(out: &mut String, text: &str, depth: Option<usize>) {
    out.push('"');
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let breaks_here = c == ' ' && before != ' ' && rest.peek().is_some() && breaks(out, depth);
        before = c;
        match c {
            ' ' if breaks_here => {
                break_line(out, depth);
                if rest.peek() == Some(&' ') {
                    // A space at the start of a line would be lost.
                    out.push('\\');
                }
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            c if is_special(c) && u32::from(c) <= 0xff => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c if is_special(c) => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Whether the text, written plain, is still one scalar of the same characters.
fn is_plain(text: &str) -> bool {
    let opens = |c: char| "-?:,[]{}#&*!|>'\"%@`".contains(c);
    let mut chars = text.chars();
    let starts_well = match (chars.next(), chars.next()) {
        (Some('-' | '?' | ':'), Some(next)) => !next.is_whitespace() && !text.starts_with("---"),
        (Some(first), _) => !opens(first),
        (None, _) => false,
    };
    starts_well
        && !text.starts_with(' ')
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text != "..."
}

/// Whether YAML 1.1 reads the plain text as null, a boolean, a number, a date or a merge key.
fn reads_as_other(text: &str) -> bool {
    const WORDS: [&str; 14] = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", "..."];
    let lower = text.to_ascii_lowercase();
    WORDS.contains(&lower.as_str()) || is_number(&lower) || is_date(text)
}

fn is_number(lower: &str) -> bool {
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(lower);
    if matches!(unsigned, ".inf" | ".nan") {
        return true;
    }
    let digits = unsigned.replace('_', "");
    let all = |text: &str, radix: u32| !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if digits.strip_prefix(prefix).is_some_and(|rest| all(rest, radix)) {
            return true;
        }
    }
    let starts = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (starts && digits.parse::<f64>().is_ok()) || is_sexagesimal(&digits)
}

/// Base 60, such as `1:30`, which YAML 1.1 reads as a number.
fn is_sexagesimal(digits: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((first, rest)) = digits.split_once(':') else { return false };
    let whole = rest.split_once('.').map_or(rest, |(whole, _)| whole);
    let fraction = rest.split_once('.').is_none_or(|(_, fraction)| fraction.bytes().all(|byte| byte.is_ascii_digit()));
    let is_place = |part: &str| is_number(part) && (part.len() == 1 || (part.len() == 2 && part < "60"));
    is_number(first) && whole.split(':').all(is_place) && fraction
}

/// Starts like `2006-01-02`: quoted so that no reader makes a timestamp of it.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { return false };
    year.len() == 4
        && all_digits(year)
        && all_digits(month)
        && month.len() <= 2
        && rest.starts_with(|c: char| c.is_ascii_digit())
}
