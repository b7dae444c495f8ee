//! What a value was before: the old value at the same place, where places can be told.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde_json::Value;

/// A value and what was there before.
pub(crate) struct Correlated<'v> {
    value: &'v Value,
    old: &'v Value,
    equal: OnceCell<bool>,
}

impl<'v> Correlated<'v> {
    pub(crate) fn new(value: &'v Value, old: &'v Value) -> Self {
        Self { value, old, equal: OnceCell::new() }
    }

    /// Whether nothing changed; looked at once.
    pub(crate) fn is_unchanged(&self) -> bool {
        *self.equal.get_or_init(|| self.value == self.old)
    }
}

/// The items that a list had before, by their keys.
pub(crate) struct OldItems<'v, 'k> {
    keys: &'k [String],
    items: HashMap<String, &'v Value>,
}

impl<'v, 'k> OldItems<'v, 'k> {
    /// Of a list that is no map, items cannot be told apart.
    pub(crate) fn of(old: Option<&'v Value>, keys: &'k [String]) -> Self {
        let list = old.and_then(Value::as_array).filter(|_| !keys.is_empty());
        let mut items = HashMap::new();
        for item in list.into_iter().flatten() {
            items.entry(key(item, keys)).or_insert(item);
        }
        Self { keys, items }
    }

    pub(crate) fn get(&self, item: &Value) -> Option<&'v Value> {
        if self.items.is_empty() { None } else { self.items.get(&key(item, self.keys)).copied() }
    }
}

fn key(item: &Value, keys: &[String]) -> String {
    let mut text = String::new();
    for key in keys {
        let part = item.get(key).map(ToString::to_string).unwrap_or_default();
        text.push_str(&part);
        text.push('\n');
    }
    text
}
