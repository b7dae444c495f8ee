//! YAML in and out, by way of JSON values, with the semantics of the library that upstream uses.
//!
//! Reading yields a [`serde_json::Value`], which the JSON codec then decodes: a field's type decides nothing about how
//! a scalar is read, exactly as upstream. The parser is `serde-saphyr`, hidden here so that it can be exchanged; the
//! table of cases in the tests pins what it has to do. Every dimension of the input has a bound.
//! Deliberately not here: YAML of typed objects (convert through JSON), schema checks.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Options, Spanned};

mod json_text;
mod writer;

pub use writer::to_yaml;

/// Deepest nesting of collections; custom resource definitions need more than the parser's default of 64.
const MAX_DEPTH: usize = 128;
/// Most collections and scalars: what a body of the greatest accepted size (3 MiB) can hold.
const MAX_NODES: usize = 1_000_000;
/// Most parser events, two for each collection.
const MAX_EVENTS: usize = 2_500_000;
/// Most events that aliases may repeat: a small text must not grow without bound.
const MAX_ALIAS_EVENTS: usize = 100_000;
/// Enough for [`MAX_DEPTH`] in a debug build, several times over.
const DEEP_STACK_BYTES: usize = 16 * 1024 * 1024;
/// Columns of indentation, and brackets, that cannot nest deep enough to trouble an ordinary stack.
const SHALLOW_STEPS: usize = 20;
/// Most duplicate keys reported for one text.
const MAX_DUPLICATES: usize = 100;
/// Floats below this are written without an exponent, as Go prints them: what has no fraction is an integer then.
const MAX_PLAIN_FLOAT: f64 = 1e21;

/// A text that is not YAML, or exceeds a bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error converting YAML to JSON: yaml: {}{message}", Self::place(*line))]
pub struct YamlError {
    /// The line it was noticed in, from 1; 0 when unknown.
    pub line: u64,
    /// What is wrong.
    pub message: String,
}

impl YamlError {
    fn place(line: u64) -> String {
        if line == 0 { String::new() } else { format!("line {line}: ") }
    }

    fn at(error: &serde_saphyr::Error, lines_before: u64) -> Self {
        let line = error.location().map_or(0, |location| location.line() + lines_before);
        let text = error.without_snippet().to_string();
        // The parser appends its own idea of the place; the line is told apart already.
        let message = text.lines().next().unwrap_or_default();
        let message = message.rfind(" at line ").and_then(|at| message.get(..at)).unwrap_or(message);
        Self { line, message: message.to_owned() }
    }
}

/// A document, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The content; null for an empty text.
    pub value: Value,
    /// One text per repeated key, such as `line 3: key "a" already set in map`; the last value of a key won.
    pub duplicates: Vec<String>,
}

/// Reads the first document of a text.
pub fn parse(text: &str) -> Result<Document, YamlError> {
    if let Some(value) = json_text::read(text) {
        return Ok(Document { value, duplicates: Vec::new() });
    }
    parse_yaml(text)
}

fn parse_yaml(text: &str) -> Result<Document, YamlError> {
    let Some((lines_before, first)) = numbered_documents(text).find(|(_, document)| has_content(document)) else {
        return Ok(Document::default());
    };
    if may_nest_deeply(first) { parse_with_room(first, lines_before) } else { parse_document(first, lines_before) }
}

fn parse_document(text: &str, lines_before: u64) -> Result<Document, YamlError> {
    let node: Node =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| YamlError::at(&error, lines_before))?;
    if let Some(line) = node.line_of_bad_key() {
        return Err(YamlError { line: line + lines_before, message: "invalid map key".to_owned() });
    }
    let mut duplicates = Vec::new();
    let value = node.into_value(lines_before, &mut duplicates);
    Ok(Document { value, duplicates })
}

/// The parser recurses with large frames (some 20 KiB each in debug builds), so a text at the depth limit overflows
/// the 2 MiB stack of an ordinary thread. Such texts get a stack of their own.
fn parse_with_room(text: &str, lines_before: u64) -> Result<Document, YamlError> {
    let failed = |message: &str| YamlError { line: 0, message: message.to_owned() };
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("yaml".into())
            .stack_size(DEEP_STACK_BYTES)
            .spawn_scoped(scope, || parse_document(text, lines_before))
            .map_err(|error| failed(&error.to_string()))?
            .join()
            .unwrap_or_else(|_| Err(failed("the parser failed")))
    })
}

/// A cheap upper bound: nesting comes from indentation, from brackets, and from aliases of nested values.
fn may_nest_deeply(text: &str) -> bool {
    let brackets = || text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).take(SHALLOW_STEPS + 1).count();
    let margin = |line: &str| line.bytes().take_while(|byte| b" \t-?:".contains(byte)).count();
    (text.contains('&') && text.contains('*'))
        || brackets() > SHALLOW_STEPS
        || text.lines().any(|line| margin(line) > SHALLOW_STEPS)
}

/// The documents of a text, cut at lines that hold only `---` and perhaps a comment. Empty ones are skipped.
pub fn documents(text: &str) -> impl Iterator<Item = &str> {
    numbered_documents(text).map(|(_, document)| document).filter(|document| has_content(document))
}

/// Every document with the number of lines before it.
fn numbered_documents(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut rest = Some(text);
    let mut lines_before = 0;
    std::iter::from_fn(move || {
        let current = rest.take()?;
        let first_line = lines_before;
        let mut end = 0;
        for line in current.split_inclusive('\n') {
            lines_before += 1;
            if is_separator(line) {
                rest = current.get(end + line.len()..);
                break;
            }
            end += line.len();
        }
        Some((first_line, current.get(..end).unwrap_or_default()))
    })
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|after| {
        let trimmed = after.trim();
        trimmed.is_empty() || (trimmed.starts_with('#') && after.starts_with([' ', '\t']))
    })
}

fn has_content(document: &str) -> bool {
    document.lines().any(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#') && !line.starts_with('%')
    })
}

fn options() -> Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        ignore_binary_tag_for_string: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: MAX_EVENTS,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_ALIAS_EVENTS,
        },
    }
}

/// The tree as parsed, keys repeated and with their lines.
enum Node {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(Spanned<Node>, Node)>),
}

impl Node {
    fn into_value(self, lines_before: u64, duplicates: &mut Vec<String>) -> Value {
        match self {
            Self::Scalar(value) => value,
            Self::List(items) => items.into_iter().map(|item| item.into_value(lines_before, duplicates)).collect(),
            Self::Map(entries) => {
                let mut map = Map::new();
                for (key, node) in entries {
                    let value = node.into_value(lines_before, duplicates);
                    let (name, shown) = key.value.into_key();
                    if map.contains_key(&name) && duplicates.len() < MAX_DUPLICATES {
                        let line = key.referenced.line() + lines_before;
                        duplicates.push(format!("line {line}: key {shown} already set in map"));
                    }
                    map.insert(name, value);
                }
                Value::Object(map)
            }
        }
    }

    /// The line of the first key that is no scalar.
    fn line_of_bad_key(&self) -> Option<u64> {
        match self {
            Self::Scalar(_) => None,
            Self::List(items) => items.iter().find_map(Self::line_of_bad_key),
            Self::Map(entries) => entries.iter().find_map(|(key, node)| match key.value {
                Self::Scalar(_) => node.line_of_bad_key(),
                _ => Some(key.referenced.line()),
            }),
        }
    }

    /// A key as JSON has it, and as errors show it: what is no text without quotes is read as what it is (`y` is true).
    fn into_key(self) -> (String, String) {
        match self {
            Self::Scalar(Value::String(text)) => {
                let shown = crate::quote::go_quote(&text);
                (text, shown)
            }
            Self::Scalar(other) => (other.to_string(), other.to_string()),
            // Refused before.
            Self::List(_) | Self::Map(_) => (String::new(), String::new()),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        let printed = (value.abs() < MAX_PLAIN_FLOAT).then(|| value.to_string());
        let number = match printed.and_then(|text| text.parse::<i64>().ok()) {
            Some(integer) => integer.into(),
            None => Number::from_f64(value).ok_or_else(|| E::custom("floats must be finite"))?,
        };
        Ok(Node::Scalar(number.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<Node>>()? {
            map.push((key, entries.next_value()?));
            if map.len() > MAX_NODES {
                return Err(A::Error::custom("too many keys"));
            }
        }
        Ok(Node::Map(map))
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
