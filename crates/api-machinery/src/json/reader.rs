//! The tokens of a JSON text, the path to where the reader is, and errors in Go's words.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

use super::document::{Decoded, MAX_DEPTH, MAX_PROBLEMS, Problems, TypeMeta};

/// Why a document was refused; the text is what upstream says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);

/// The next piece of a document. After an opening bracket the reader stands inside.
#[derive(Debug)]
pub enum Token<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number's text.
    Number(&'a str),
    /// A string.
    Str(Cow<'a, str>),
    /// `{`
    Object,
    /// `[`
    Array,
}

impl Token<'_> {
    /// The kind of value as decode errors name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Token::Null => "null",
            Token::Bool(_) => "bool",
            Token::Number(_) => "number",
            Token::Str(_) => "string",
            Token::Object => "object",
            Token::Array => "array",
        }
    }
}

/// Bytes that end a run of characters that stand for themselves: a quote, a backslash, or one that may not be there.
const ENDS_PLAIN_TEXT: [bool; 256] = {
    let mut table = [false; 256];
    let mut control = 0;
    while control < 0x20 {
        table[control] = true;
        control += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// A field as errors name it, whatever else is known of it.
pub(super) trait Named {
    /// Its name in JSON.
    fn name(&self) -> &'static str;
    /// What Go calls its type, where that has a name of its own; empty otherwise.
    fn go_type(&self) -> &'static str;
}

/// One step of the path from the document's root.
#[derive(Clone)]
enum Step<'a> {
    Field(&'static dyn Named),
    Name(&'static str),
    /// A struct whose members appear among those of the parent: errors name it, the document does not.
    Embedded(&'static str),
    Key(Cow<'a, str>),
    Index(usize),
}

/// A position in a JSON text.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    path: Vec<Step<'a>>,
    strict: bool,
    problems: Problems,
    /// The struct whose members are being read, for errors.
    pub(super) within: &'static str,
    pub(super) type_meta: TypeMeta,
}

impl<'a> Reader<'a> {
    /// Starts at the beginning of `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            path: Vec::new(),
            strict: false,
            problems: Vec::new(),
            within: "",
            type_meta: TypeMeta::default(),
        }
    }

    /// Collects unknown and duplicate names.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// What was found besides the value.
    #[must_use]
    pub fn into_decoded(self) -> Decoded {
        Decoded { type_meta: self.type_meta, problems: self.problems }
    }

    /// Checks that nothing but space follows.
    ///
    /// # Errors
    /// When something does.
    pub fn end(&mut self) -> Result<(), DecodeError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("after top-level value")),
        }
    }

    /// The next token.
    ///
    /// # Errors
    /// When there is none or the text is not JSON.
    pub fn token(&mut self) -> Result<Token<'a>, DecodeError> {
        let Some(byte) = self.peek() else { return Err(Self::cut_short()) };
        match byte {
            b'"' => self.string().map(Token::Str),
            b'{' | b'[' => {
                self.at += 1;
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(DecodeError("exceeded max depth".into()));
                }
                Ok(if byte == b'{' { Token::Object } else { Token::Array })
            }
            b'-' | b'0'..=b'9' => self.number().map(Token::Number),
            b't' => self.literal("true", "t").map(|()| Token::Bool(true)),
            b'f' => self.literal("false", "f").map(|()| Token::Bool(false)),
            b'n' => self.literal("null", "n").map(|()| Token::Null),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    /// Whether the next token is `null`; it is taken if so.
    pub(super) fn take_null(&mut self) -> Result<bool, DecodeError> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.literal("null", "n")?;
        Ok(true)
    }

    /// The next member's name inside an object, nothing at its end. `first` says whether none was read yet.
    ///
    /// # Errors
    /// When the text goes on in another way.
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Cow<'a, str>>, DecodeError> {
        match self.peek() {
            None => return Err(Self::cut_short()),
            Some(b'}') => {
                self.leave();
                return Ok(None);
            }
            Some(b',') if !*first => self.at += 1,
            Some(_) if !*first => return Err(self.unexpected("after object key:value pair")),
            Some(_) => {}
        }
        *first = false;
        match self.peek() {
            None => return Err(Self::cut_short()),
            Some(b'"') => {}
            Some(_) => return Err(self.unexpected("looking for beginning of object key string")),
        }
        let key = self.string()?;
        match self.peek() {
            None => Err(Self::cut_short()),
            Some(b':') => {
                self.at += 1;
                Ok(Some(key))
            }
            Some(_) => Err(self.unexpected("after object key")),
        }
    }

    /// Whether another entry follows inside an array.
    pub(super) fn entry(&mut self, first: &mut bool) -> Result<bool, DecodeError> {
        match self.peek() {
            None => Err(Self::cut_short()),
            Some(b']') => {
                self.leave();
                Ok(false)
            }
            Some(b',') if !*first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if !*first => Err(self.unexpected("after array element")),
            Some(_) => {
                *first = false;
                Ok(true)
            }
        }
    }

    fn leave(&mut self) {
        self.at += 1;
        self.depth -= 1;
    }

    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn literal(&mut self, word: &str, first: &str) -> Result<(), DecodeError> {
        for expected in word.bytes() {
            match self.text.as_bytes().get(self.at) {
                None => return Err(Self::cut_short()),
                Some(byte) if *byte == expected => self.at += 1,
                Some(_) => {
                    let wanted = char::from(expected);
                    return Err(self.unexpected(&format!("in literal {word} (expecting '{wanted}')")));
                }
            }
        }
        debug_assert!(word.starts_with(first), "the caller saw the first letter");
        Ok(())
    }

    fn number(&mut self) -> Result<&'a str, DecodeError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            None => return Err(Self::cut_short()),
            Some(_) => return Err(self.unexpected("in numeric literal")),
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    fn digits(&mut self) {
        while matches!(self.text.as_bytes().get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self, place: &str) -> Result<(), DecodeError> {
        match self.text.as_bytes().get(self.at) {
            None => Err(Self::cut_short()),
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            Some(_) => Err(self.unexpected(place)),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        self.at += 1;
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| ENDS_PLAIN_TEXT[usize::from(*byte)]) else {
            return Err(Self::cut_short());
        };
        self.at += length;
        match rest.get(length) {
            Some(b'"') => {
                self.at += 1;
                Ok(Cow::Borrowed(self.text.get(start..start + length).unwrap_or_default()))
            }
            Some(b'\\') => self.escaped_string(start).map(Cow::Owned),
            _ => Err(self.unexpected("in string literal")),
        }
    }

    fn escaped_string(&mut self, start: usize) -> Result<String, DecodeError> {
        let mut out = self.text.get(start..self.at).unwrap_or_default().to_owned();
        loop {
            let from = self.at;
            while !matches!(self.text.as_bytes().get(self.at), None | Some(b'"' | b'\\' | 0..0x20)) {
                self.at += 1;
            }
            out.push_str(self.text.get(from..self.at).unwrap_or_default());
            match self.text.as_bytes().get(self.at) {
                None => return Err(Self::cut_short()),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                Some(_) => return Err(self.unexpected("in string literal")),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), DecodeError> {
        let Some(byte) = self.text.as_bytes().get(self.at) else { return Err(Self::cut_short()) };
        let plain = match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode_escape(out);
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    /// Four hex digits, or two groups of them for a surrogate pair; a lone surrogate becomes U+FFFD.
    fn unicode_escape(&mut self, out: &mut String) -> Result<(), DecodeError> {
        let high = self.hex4()?;
        if (0xd800..0xdc00).contains(&high) && self.text.get(self.at..self.at + 2) == Some("\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(());
            }
            self.at = back;
        }
        out.push(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32, DecodeError> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(byte) = self.text.as_bytes().get(self.at) else { return Err(Self::cut_short()) };
            let Some(digit) = char::from(*byte).to_digit(16) else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    /// The text of the next value without the spaces between its tokens.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn read_raw(&mut self) -> Result<String, DecodeError> {
        self.peek();
        let start = self.at;
        self.leniently(Reader::skip_value)?;
        let text = self.text.get(start..self.at).unwrap_or_default();
        if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
            return Ok(without_spaces(text));
        }
        Ok(text.to_owned())
    }

    /// Passes over the next value.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn skip_value(&mut self) -> Result<(), DecodeError> {
        let mut first = true;
        match self.token()? {
            Token::Object => {
                while self.key(&mut first)?.is_some() {
                    self.skip_value()?;
                }
            }
            Token::Array => {
                while self.entry(&mut first)? {
                    self.skip_value()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The next value's text where it is a string, nothing where it is `null`.
    ///
    /// # Errors
    /// When it is anything else. What is wanted is then a string, whatever the text stands for.
    pub fn read_text(&mut self) -> Result<Option<Cow<'a, str>>, DecodeError> {
        match self.token()? {
            Token::Null => Ok(None),
            Token::Str(text) => Ok(Some(text)),
            other => Err(self.mismatch_text(other.kind(), "string")),
        }
    }

    /// Whether the next value is an object.
    pub fn is_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Whether the next value is an array.
    pub fn is_array(&mut self) -> bool {
        self.peek() == Some(b'[')
    }

    /// Reads with `read` without a report of unknown and duplicate names, as types with a decoder of their own do.
    ///
    /// # Errors
    /// What `read` says.
    pub fn leniently<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, DecodeError>) -> Result<T, DecodeError> {
        let outer = std::mem::replace(&mut self.strict, false);
        let value = read(self);
        self.strict = outer;
        value
    }

    pub(super) fn enter_field(&mut self, field: &'static dyn Named) {
        self.path.push(Step::Field(field));
    }

    pub(super) fn enter_name(&mut self, name: &'static str) {
        self.path.push(Step::Name(name));
    }

    pub(super) fn enter_embedded(&mut self, name: &'static str) {
        self.path.push(Step::Embedded(name));
    }

    pub(super) fn enter_key(&mut self, key: Cow<'a, str>) {
        self.path.push(Step::Key(key));
    }

    pub(super) fn enter_index(&mut self, index: usize) {
        self.path.push(Step::Index(index));
    }

    pub(super) fn step_out(&mut self) {
        self.path.pop();
    }

    pub(super) fn at_root(&self) -> bool {
        self.path.is_empty()
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    /// Notes an unknown or duplicate name at the present path.
    pub(super) fn report(&mut self, what: &str, name: &str) {
        if !self.strict || self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let path = self.path_text();
        let dot = if path.is_empty() { "" } else { "." };
        let problem = format!("{what} field \"{path}{dot}{name}\"");
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn path_text(&self) -> String {
        let mut out = String::new();
        for step in &self.path {
            let dot = if out.is_empty() { "" } else { "." };
            // Writing to a string cannot fail.
            let _ = match step {
                Step::Field(field) => write!(out, "{dot}{}", field.name()),
                Step::Name(name) => write!(out, "{dot}{name}"),
                Step::Embedded(_) => Ok(()),
                Step::Key(key) => write!(out, "{dot}{key}"),
                Step::Index(index) => write!(out, "[{index}]"),
            };
        }
        out
    }

    /// The error for a value of the wrong kind, where Go calls the type of the right one `wanted`.
    #[must_use]
    pub fn mismatch(&self, found: &str, wanted: &str) -> DecodeError {
        self.mismatch_text(found, self.wanted_name(wanted))
    }

    /// The error for a number that does not fit.
    #[must_use]
    pub fn mismatch_number(&self, text: &str, wanted: &str) -> DecodeError {
        self.mismatch_text(&format!("number {text}"), self.wanted_name(wanted))
    }

    /// What Go calls the type that is `wanted` here: its own name where the field's table has one, for lists and maps also
    /// that of what they hold.
    fn wanted_name<'w>(&self, wanted: &'w str) -> &'w str {
        let mut depth = 0;
        for step in self.path.iter().rev() {
            match step {
                Step::Key(_) | Step::Index(_) => depth += 1,
                Step::Field(field) => return held_name(field.go_type(), depth).unwrap_or(wanted),
                Step::Name(_) | Step::Embedded(_) => break,
            }
        }
        wanted
    }

    pub(super) fn mismatch_text(&self, found: &str, wanted: &str) -> DecodeError {
        let names: Vec<&str> = self
            .path
            .iter()
            .filter_map(|step| match step {
                Step::Field(field) => Some(field.name()),
                Step::Name(name) | Step::Embedded(name) => Some(*name),
                Step::Key(_) | Step::Index(_) => None,
            })
            .collect();
        DecodeError(if names.is_empty() {
            format!("json: cannot unmarshal {found} into Go value of type {wanted}")
        } else {
            let (within, path) = (self.within, names.join("."));
            format!("json: cannot unmarshal {found} into Go struct field {within}.{path} of type {wanted}")
        })
    }

    /// The error of a leaf that could not understand its text.
    #[must_use]
    pub fn leaf_error(&self, error: &dyn Display) -> DecodeError {
        DecodeError(error.to_string())
    }

    fn cut_short() -> DecodeError {
        DecodeError("unexpected end of JSON input".into())
    }

    fn unexpected(&self, place: &str) -> DecodeError {
        let found = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        DecodeError(format!("invalid character {} {place}", Quoted(found.unwrap_or(char::REPLACEMENT_CHARACTER))))
    }
}

/// The name of what a Go type holds `depth` lists or maps down, nothing where the name does not tell.
fn held_name(go_type: &str, depth: usize) -> Option<&str> {
    let mut held = go_type;
    for _ in 0..depth {
        held = held
            .strip_prefix("[]")
            .or_else(|| held.strip_prefix("map[").and_then(|rest| Some(rest.split_once(']')?.1)))?;
    }
    (!held.is_empty()).then_some(held)
}

/// A character as Go quotes it in syntax errors.
struct Quoted(char);

impl Display for Quoted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            '\'' => write!(out, "'\\''"),
            '"' => write!(out, "'\"'"),
            '\n' => write!(out, "'\\n'"),
            '\r' => write!(out, "'\\r'"),
            '\t' => write!(out, "'\\t'"),
            '\\' => write!(out, "'\\\\'"),
            other if (other as u32) < 0x20 => write!(out, "'\\x{:02x}'", other as u32),
            other => write!(out, "'{other}'"),
        }
    }
}

/// Valid JSON without the spaces outside its strings.
fn without_spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut inside, mut escaped) = (false, false);
    for symbol in text.chars() {
        if inside {
            out.push(symbol);
            match symbol {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => inside = false,
                _ => {}
            }
        } else if !symbol.is_ascii_whitespace() {
            inside = symbol == '"';
            out.push(symbol);
        }
    }
    out
}
