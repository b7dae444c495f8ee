//! Literals of strings and bytes: quotes, raw forms and escapes.

use crate::ast::Literal;

/// How a literal begins.
#[derive(Clone, Copy)]
pub(super) struct Start {
    bytes: bool,
    raw: bool,
    /// Length of the prefix before the quotes.
    prefix: usize,
    quote: u8,
    triple: bool,
}

/// Whether a literal of a string or bytes begins here.
pub(super) fn start(rest: &str) -> Option<Start> {
    let text = rest.as_bytes();
    let (mut bytes, mut raw, mut prefix) = (false, false, 0);
    while prefix < 2 {
        match text.get(prefix) {
            Some(b'b' | b'B') if !bytes => bytes = true,
            Some(b'r' | b'R') if !raw => raw = true,
            _ => break,
        }
        prefix += 1;
    }
    let quote = *text.get(prefix).filter(|b| matches!(b, b'"' | b'\''))?;
    let triple = text.get(prefix + 1) == Some(&quote) && text.get(prefix + 2) == Some(&quote);
    Some(Start { bytes, raw, prefix, quote, triple })
}

/// The literal and its length.
pub(super) fn read(rest: &str, start: Start) -> Result<(Literal, usize), String> {
    let quotes = if start.triple { 3 } else { 1 };
    let body = start.prefix + quotes;
    let end = end_of(rest.as_bytes(), body, start).ok_or_else(|| {
        format!("Syntax error: token recognition error at: '{}'", rest.lines().next().unwrap_or_default())
    })?;
    let text = rest.get(body..end).unwrap_or_default().replace("\r\n", "\n");
    let content = if start.raw { Content::raw(&text) } else { unescape(&text, start.bytes)? };
    let literal = if start.bytes {
        Literal::Bytes(content.0.into())
    } else {
        let text = String::from_utf8(content.0).map_err(|_| INVALID.to_owned())?;
        Literal::String(text.into())
    };
    Ok((literal, end + quotes))
}

fn end_of(text: &[u8], mut at: usize, start: Start) -> Option<usize> {
    loop {
        let byte = *text.get(at)?;
        if byte == b'\\' && !start.raw {
            at += 2;
            continue;
        }
        if byte == start.quote {
            let closes = !start.triple || (text.get(at + 1) == Some(&byte) && text.get(at + 2) == Some(&byte));
            if closes {
                return Some(at);
            }
        }
        if matches!(byte, b'\n' | b'\r') && !start.triple {
            return None;
        }
        at += 1;
    }
}

const INVALID: &str = "unable to unescape string";

struct Content(Vec<u8>);

impl Content {
    fn raw(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }

    fn push(&mut self, c: char) {
        self.0.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn unescape(text: &str, bytes: bool) -> Result<Content, String> {
    let mut out = Content(Vec::with_capacity(text.len()));
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.0.extend_from_slice(before.as_bytes());
        let used = push_escape(&mut out, escape, bytes).ok_or_else(|| INVALID.to_owned())?;
        rest = escape.get(used..).ok_or_else(|| INVALID.to_owned())?;
    }
    out.0.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Adds what an escape stands for, and tells its length.
fn push_escape(out: &mut Content, escape: &str, bytes: bool) -> Option<usize> {
    let code = |from: usize, length: usize, radix: u32| {
        let digits = escape.get(from..from + length)?;
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
    };
    let simple = match escape.as_bytes().get(1)? {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b @ (b'\\' | b'\'' | b'"' | b'`' | b'?') => *b,
        b'x' | b'X' => return push_code(out, code(2, 2, 16)?, bytes).then_some(4),
        b'u' if !bytes => return push_code(out, code(2, 4, 16)?, false).then_some(6),
        b'U' if !bytes => return push_code(out, code(2, 8, 16)?, false).then_some(10),
        b'0'..=b'3' => return push_code(out, code(1, 3, 8)?, bytes).then_some(4),
        _ => return None,
    };
    out.0.push(simple);
    Some(2)
}

fn push_code(out: &mut Content, code: u32, bytes: bool) -> bool {
    if bytes {
        return u8::try_from(code).map(|byte| out.0.push(byte)).is_ok();
    }
    char::from_u32(code).map(|c| out.push(c)).is_some()
}
