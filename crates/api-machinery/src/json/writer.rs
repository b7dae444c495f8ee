//! Writing JSON as upstream's encoder does.

use std::fmt::Write as _;

use crate::value::Value;

/// A JSON text in the making.
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
}

impl Writer {
    /// The text written so far.
    #[must_use]
    pub fn into_string(self) -> String {
        self.out
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.out.push_str("null");
    }

    /// Writes a truth value.
    pub fn bool(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// Writes an integer.
    pub fn int(&mut self, value: i64) {
        self.out.push_str(itoa::Buffer::new().format(value));
    }

    /// Writes a double in its shortest form, with an exponent below 1e-6 and from 1e21 on.
    pub fn float(&mut self, value: f64) {
        let size = value.abs();
        // Writing to a string cannot fail.
        let _ = if !value.is_finite() {
            write!(self.out, "null")
        } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
            let text = format!("{value:e}");
            let signed = if text.contains("e-") { text } else { text.replace('e', "e+") };
            write!(self.out, "{signed}")
        } else {
            write!(self.out, "{value}")
        };
    }

    /// Writes text that is JSON already.
    pub fn raw(&mut self, json: &str) {
        self.out.push_str(json);
    }

    /// Writes one character of structure.
    pub fn symbol(&mut self, symbol: char) {
        self.out.push(symbol);
    }

    /// Writes a string with Go's escapes.
    pub fn string(&mut self, text: &str) {
        self.out.push('"');
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            // U+2028 and U+2029 start with 0xe2; anything else above ASCII is written as it is.
            if byte >= 0x20 && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2 | 0x7f) {
                continue;
            }
            let Some(symbol) = text.get(at..).and_then(|rest| rest.chars().next()) else { continue };
            if self.escaped(text, from, at, symbol) {
                from = at + symbol.len_utf8();
            }
        }
        self.out.push_str(text.get(from..).unwrap_or_default());
        self.out.push('"');
    }

    /// Writes what stands between `from` and `at`, then the escape of `symbol` if it needs one.
    fn escaped(&mut self, text: &str, from: usize, at: usize, symbol: char) -> bool {
        let short = match symbol {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => "",
            control if control < ' ' => "",
            _ => return false,
        };
        self.out.push_str(text.get(from..at).unwrap_or_default());
        if short.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(self.out, "\\u{:04x}", symbol as u32);
        } else {
            self.out.push_str(short);
        }
        true
    }

    /// Writes an object's member name and the colon.
    pub fn key(&mut self, name: &str) {
        self.string(name);
        self.out.push(':');
    }

    /// Writes a name that needs no escapes and the colon.
    pub(super) fn plain_key(&mut self, name: &str) {
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
    }

    /// Writes a free-form value.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(integer), _, _) => self.int(integer),
                (None, Some(large), _) => self.out.push_str(itoa::Buffer::new().format(large)),
                (None, None, float) => self.float(float.unwrap_or_default()),
            },
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.value(item);
                }
                self.out.push(']');
            }
            Value::Object(map) => {
                self.out.push('{');
                for (index, (name, item)) in map.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.key(name);
                    self.value(item);
                }
                self.out.push('}');
            }
        }
    }
}
