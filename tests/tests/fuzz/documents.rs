//! Changes to JSON documents within an input that leave them documents: values exchanged, members added, lists made long.

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Map, Value, json};

use crate::mutate::{Mutator, pick};

/// How many items one change makes of one, as a power of two.
const REPEATS: u32 = 12;

/// Changes a value somewhere in one of the documents; false where there is none.
pub(crate) fn change(rng: &mut StdRng, input: &mut Vec<u8>, mutator: &Mutator<'_>) -> bool {
    let found = documents(input);
    let Some((range, document)) = pick(rng, &found) else { return false };
    let mut document = document.clone();
    let mut at = rng.random_range(0..nodes(&document));
    if let Some(node) = node(&mut document, &mut at) {
        change_node(rng, node, mutator);
    }
    input.splice(range.clone(), document.to_string().into_bytes());
    true
}

/// The objects and lists of an input, with their places.
fn documents(input: &[u8]) -> Vec<(std::ops::Range<usize>, Value)> {
    let (mut found, mut at) = (Vec::new(), 0);
    // What does not parse is not looked at byte by byte: it may be long, and open many brackets.
    let mut tries = 16;
    while tries > 0
        && let Some(start) = input[at..].iter().position(|byte| matches!(byte, b'{' | b'[')).map(|start| at + start)
    {
        tries -= 1;
        let mut stream = serde_json::Deserializer::from_slice(&input[start..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                at = start + stream.byte_offset();
                found.push((start..at, value));
            }
            _ => at = start + 1,
        }
    }
    found
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        _ => 0,
    }
}

/// The value with this number, counted from the root down.
fn node<'v>(value: &'v mut Value, number: &mut usize) -> Option<&'v mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| node(item, number)),
        Value::Object(members) => members.values_mut().find_map(|member| node(member, number)),
        _ => None,
    }
}

fn change_node(rng: &mut StdRng, value: &mut Value, mutator: &Mutator<'_>) {
    match (rng.random_range(0..10_u8), &mut *value) {
        (0 | 1, _) => *value = special(rng, mutator),
        (2, _) => *value = elsewhere(rng, mutator).unwrap_or_default(),
        (3, _) => *value = Value::Array(vec![value.take()]),
        (4, _) => *value = json!({"a": value.take()}),
        (_, Value::Array(items)) => change_items(rng, items, mutator),
        (_, Value::Object(members)) => change_members(rng, members, mutator),
        (5 | 6, Value::String(text)) => *text = mutator.word(rng, 2),
        (_, Value::String(text)) => *text = changed_text(rng, text, mutator),
        (_, _) => *value = special(rng, mutator),
    }
}

fn change_items(rng: &mut StdRng, items: &mut Vec<Value>, mutator: &Mutator<'_>) {
    let at = rng.random_range(0..=items.len());
    match (rng.random_range(0..4_u8), items.get(at).cloned()) {
        (0, Some(_)) => drop(items.remove(at)),
        (1, Some(item)) => items.push(item),
        (2, Some(item)) => {
            let times = (1 << rng.random_range(0..=REPEATS)).min(mutator.longest / item.to_string().len().max(1));
            items.extend(std::iter::repeat_n(item, times));
        }
        _ => items.insert(at, elsewhere(rng, mutator).unwrap_or_default()),
    }
}

fn change_members(rng: &mut StdRng, members: &mut Map<String, Value>, mutator: &Mutator<'_>) {
    let names: Vec<String> = members.keys().cloned().collect();
    let own = pick(rng, &names).cloned().unwrap_or_default();
    match rng.random_range(0..5_u8) {
        0 => drop(members.remove(&own)),
        1 => {
            let value = members.remove(&own).unwrap_or_default();
            members.insert(changed_text(rng, &own, mutator), value);
        }
        2 => {
            let value = members.get(&own).cloned().unwrap_or_default();
            members.insert(format!("{own}{}", rng.random_range(0..10_u8)), value);
        }
        3 => {
            // The members of another object, whose names may mean something here.
            if let Some(Value::Object(others)) = elsewhere(rng, mutator) {
                members.extend(others);
            }
        }
        _ => drop(members.insert(own, elsewhere(rng, mutator).unwrap_or_default())),
    }
}

/// A value of another input.
fn elsewhere(rng: &mut StdRng, mutator: &Mutator<'_>) -> Option<Value> {
    let found = documents(mutator.other(rng));
    let (_, mut document) = pick(rng, &found)?.clone();
    let mut at = rng.random_range(0..nodes(&document));
    node(&mut document, &mut at).map(Value::take)
}

/// A text with a bit of another in it, or less of its own.
fn changed_text(rng: &mut StdRng, text: &str, mutator: &Mutator<'_>) -> String {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut end = || pick(rng, &ends).copied().unwrap_or_default();
    let (one, other) = (end(), end());
    let (start, end) = (one.min(other), one.max(other));
    match rng.random_range(0..3_u8) {
        0 => format!("{}{}", &text[..start], &text[end..]),
        1 => format!("{}{}{}", &text[..start], mutator.word(rng, 1), &text[end..]),
        _ => format!("{}{}", text, &text[start..end]),
    }
}

fn special(rng: &mut StdRng, mutator: &Mutator<'_>) -> Value {
    match rng.random_range(0..16_u8) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(false),
        3 => json!(0),
        4 => json!(-1),
        5 => json!(1),
        6 => json!(i64::MAX),
        7 => json!(i64::MIN),
        8 => json!(0.5),
        9 => json!(1e300),
        10 => json!(""),
        11 => json!({}),
        12 => json!([]),
        13 => json!("a".repeat(1 << rng.random_range(0..13_u32))),
        14 => json!(i64::from(i32::MAX) + 1),
        _ => json!(mutator.word(rng, 2)),
    }
}
