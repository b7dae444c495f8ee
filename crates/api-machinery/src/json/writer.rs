//! Writing JSON as upstream's encoder does.

use std::cell::Cell;
use std::fmt::Write as _;

use serde_json::{Map as ValueMap, Value};

/// The first buffer of a thread; it holds most objects. Texts grow by doubling from here.
const INITIAL_BYTES: usize = 8 << 10;
/// A buffer larger than this is not kept for the thread's next text.
const MAX_KEPT_BYTES: usize = 256 << 10;

thread_local! {
    /// The buffer of the thread's last text: a new one would have to grow each time, and texts that are kept would be up to
    /// half empty.
    static SPARE: Cell<String> = const { Cell::new(String::new()) };
}

/// Which bytes begin a character that is perhaps written as an escape: U+2028 and U+2029 start with 0xe2, anything else
/// above ASCII is written as it is.
const MAY_NEED_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        table[control] = true;
        control += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'&' as usize] = true;
    table[0xe2] = true;
    table
};

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;

/// Sets the highest bit of a byte, if any is below `limit`, which is at most 0x80; perhaps of others as well, then.
const fn below(word: u64, limit: u64) -> u64 {
    word.wrapping_sub(limit * ONES) & !word
}

/// Whether one of eight bytes is, or may be part of, a character that needs an escape. Those above ASCII may be.
const fn any_of_eight(bytes: [u8; 8]) -> bool {
    let word = u64::from_ne_bytes(bytes);
    let control = below(word, 0x20);
    // `"` and `&` differ in one bit, as do `<` and `>`.
    let quote = below((word | (0x04 * ONES)) ^ (b'&' as u64 * ONES), 1);
    let angle = below((word | (0x02 * ONES)) ^ (b'>' as u64 * ONES), 1);
    let backslash = below(word ^ (b'\\' as u64 * ONES), 1);
    (word | control | quote | angle | backslash) & TOPS != 0
}

/// Whether a text is written as it is, as far as can be told at a glance: most are short, and of letters and digits.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (words, rest) = bytes.as_chunks();
    match bytes.last_chunk() {
        // The last eight have what is left of the words, and more.
        Some(last) => !any_of_eight(*last) && !words.iter().any(|word| any_of_eight(*word)),
        None => !rest.iter().any(|byte| MAY_NEED_ESCAPE[usize::from(*byte)]),
    }
}

/// A JSON text in the making.
#[derive(Debug)]
pub struct Writer {
    out: String,
    /// Whether kinds that stand within objects say what they are.
    pub(super) shows_kinds: bool,
    /// Whether what is secret is left out.
    pub(super) redacts: bool,
    /// Whether members of structs are written in the order of their names.
    pub(super) sorts: bool,
}

impl Default for Writer {
    fn default() -> Self {
        let mut out = SPARE.take();
        if out.capacity() == 0 {
            out.reserve(INITIAL_BYTES);
        }
        Self { out, shows_kinds: false, redacts: false, sorts: false }
    }
}

/// Whether some of this JSON may have to be written otherwise. Many bytes at once are looked at, and all of these.
fn may_change(json: &[u8]) -> bool {
    const THESE: [u8; 8] = [b' ', b'\t', b'\r', b'\n', b'<', b'>', b'&', 0xe2];
    let is_one = |byte: &u8| THESE.iter().fold(0, |one, this| one | u8::from(byte == this));
    let some = |bytes: &[u8]| bytes.iter().fold(0, |some, byte| some | is_one(byte)) != 0;
    let (words, rest) = json.as_chunks::<32>();
    words.iter().any(|word| some(word)) || some(rest)
}

impl Writer {
    /// An empty text of an object that clients are shown: kinds that stand within it say what they are.
    pub(super) fn of_object() -> Self {
        Self { shows_kinds: true, ..Self::default() }
    }

    /// An empty text that is not for clients, such as one for a log.
    pub(super) fn redacting() -> Self {
        Self { redacts: true, ..Self::default() }
    }

    /// The text written so far, in a string of just that size unless it is large.
    #[must_use]
    pub fn into_string(mut self) -> String {
        if self.out.capacity() > MAX_KEPT_BYTES {
            return self.out;
        }
        let written = self.out.as_str().to_owned();
        self.out.clear();
        SPARE.set(self.out);
        written
    }

    /// How many bytes have been written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing has been written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes back what was written since there were `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
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

    /// Writes text that is JSON already, and somebody else's: as upstream does, without space between its parts, and with
    /// Go's escapes.
    pub fn compacted(&mut self, json: &str) {
        if !may_change(json.as_bytes()) {
            return self.raw(json);
        }
        let (mut in_text, mut is_escaped) = (false, false);
        for character in json.chars() {
            match character {
                ' ' | '\t' | '\r' | '\n' if !in_text => {}
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a string cannot fail.
                    let _ = write!(self.out, "\\u{:04x}", u32::from(character));
                }
                other => self.out.push(other),
            }
            in_text ^= character == '"' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
        }
    }

    /// Writes one character of structure.
    pub fn symbol(&mut self, symbol: char) {
        self.out.push(symbol);
    }

    /// Writes a string with Go's escapes.
    pub fn string(&mut self, text: &str) {
        self.out.reserve(text.len() + 2);
        self.out.push('"');
        self.escaped(text);
        self.out.push('"');
    }

    /// Writes the inside of a string.
    fn escaped(&mut self, text: &str) {
        if is_plain(text) {
            self.out.push_str(text);
        } else {
            self.escape_some(text);
        }
    }

    /// The same where some characters may need escapes.
    fn escape_some(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| MAY_NEED_ESCAPE[usize::from(byte)]) {
            let (plain, special) = rest.split_at(at);
            self.out.push_str(plain);
            let Some(symbol) = special.chars().next() else { break };
            self.escape(symbol);
            rest = special.get(symbol.len_utf8()..).unwrap_or_default();
        }
        self.out.push_str(rest);
    }

    /// Writes one character, as an escape if it needs one.
    fn escape(&mut self, symbol: char) {
        match symbol {
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            '\u{8}' => self.out.push_str("\\b"),
            '\u{c}' => self.out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..' ' => {
                // Writing to a string cannot fail.
                let _ = write!(self.out, "\\u{:04x}", symbol as u32);
            }
            plain => self.out.push(plain),
        }
    }

    /// Writes an object's member name and the colon.
    pub fn key(&mut self, name: &str) {
        self.string(name);
        self.out.push(':');
    }

    /// Writes the name of a member that begins with `prefix`, which needs no escapes.
    pub fn prefixed_key(&mut self, prefix: &'static str, name: &str) {
        self.out.push('"');
        self.out.push_str(prefix);
        self.escaped(name);
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
            Value::Object(map) => self.object(map),
        }
    }

    /// Writes a free-form object.
    pub fn object(&mut self, map: &ValueMap<String, Value>) {
        self.object_of(map.iter().map(|(name, item)| (name.as_str(), item)));
    }

    /// Writes a free-form object of these members.
    pub fn object_of<'v>(&mut self, members: impl Iterator<Item = (&'v str, &'v Value)>) {
        self.out.push('{');
        for (index, (name, item)) in members.enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.key(name);
            self.value(item);
        }
        self.out.push('}');
    }
}
