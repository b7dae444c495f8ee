//! JSON is YAML, and what most clients send as such. Where both mean the same, the reader of JSON takes a tenth of the time.

use serde_json::Value;

use crate::json;

/// Nesting, names and numbers of values up to here are within YAML's bounds.
const MAX_DEPTH: usize = 64;
const MAX_NAME_BYTES: usize = 1000;
const MAX_VALUES: usize = 100_000;

/// The object that a text is, if it is JSON that YAML reads in the same way: plain ASCII, whole numbers, nothing said twice.
pub(super) fn read(text: &str) -> Option<Value> {
    // YAML has other rules for escaped characters, and forbids some that JSON allows.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    if !text.starts_with('{') || !text.bytes().all(is_plain) || text.contains("\\u") {
        return None;
    }
    let (value, problems) = json::parse_value_strict(text).ok()?;
    let mut left = MAX_VALUES;
    (problems.is_empty() && is_the_same(&value, MAX_DEPTH, &mut left)).then_some(value)
}

fn is_the_same(value: &Value, depth: usize, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.is_i64(),
        _ if depth == 0 => false,
        Value::Array(items) => items.iter().all(|item| is_the_same(item, depth - 1, left)),
        // A name of that form merges what it names.
        Value::Object(map) => map
            .iter()
            .all(|(name, member)| name != "<<" && name.len() <= MAX_NAME_BYTES && is_the_same(member, depth - 1, left)),
    }
}
