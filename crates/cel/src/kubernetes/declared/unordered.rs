//! Lists that are sets, or maps by keys: equal in any order, and joined without repeats.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use crate::value::{List, Value, compare};

/// How the elements of a list are told apart.
#[derive(Clone, Copy)]
pub(super) enum Identity<'a> {
    /// By what they are.
    Value,
    /// By these members.
    Keys(&'a [String]),
}

impl Identity<'_> {
    fn same(self, left: &Value<'_>, right: &Value<'_>) -> bool {
        match self {
            Self::Value => left.equals(right),
            Self::Keys(keys) => keys.iter().all(|key| match (left.select(key), right.select(key)) {
                (Ok(left), Ok(right)) => left.equals(&right),
                (left, right) => left.is_err() && right.is_err(),
            }),
        }
    }

    fn hash(self, value: &Value<'_>, state: &RandomState) -> u64 {
        match self {
            Self::Value => hash_value(value, state),
            Self::Keys(keys) => keys.iter().fold(0, |hash: u64, key| {
                let part = value.select(key).map_or(0, |part| hash_value(&part, state));
                hash.rotate_left(1).wrapping_add(part)
            }),
        }
    }
}

/// Equal values have equal hashes, so that of what is within, the order does not count.
fn hash_value(value: &Value<'_>, state: &RandomState) -> u64 {
    let entry = |key: u64, value: &Value<'_>| key.rotate_left(1).wrapping_add(hash_value(value, state));
    match value {
        Value::List(list) => list.iter().fold(1, |sum: u64, item| sum.wrapping_add(hash_value(&item, state))),
        Value::Map(map) => {
            map.iter().fold(2, |sum: u64, (key, value)| sum.wrapping_add(entry(hash_value(&key, state), &value)))
        }
        Value::Object(object) => object.fields().iter().fold(3, |sum: u64, name| {
            let value = object.field(name).unwrap_or(Value::Null);
            sum.wrapping_add(entry(state.hash_one(name), &value))
        }),
        scalar => {
            let mut hasher = state.build_hasher();
            compare::hash_key(scalar, &mut hasher);
            hasher.finish()
        }
    }
}

/// Elements by their identity, found without looking at each.
struct Index<'l, 'v> {
    identity: Identity<'l>,
    hasher: RandomState,
    places: HashMap<u64, Vec<usize>>,
    items: Vec<Value<'v>>,
}

impl<'l, 'v> Index<'l, 'v> {
    fn of(identity: Identity<'l>, list: &List<'v>) -> Self {
        let mut index = Self { identity, hasher: RandomState::new(), places: HashMap::new(), items: Vec::new() };
        for item in list.iter() {
            index.push(item);
        }
        index
    }

    fn hash(&self, item: &Value<'_>) -> u64 {
        self.identity.hash(item, &self.hasher)
    }

    fn push(&mut self, item: Value<'v>) {
        let hash = self.hash(&item);
        self.places.entry(hash).or_default().push(self.items.len());
        self.items.push(item);
    }

    fn place(&self, item: &Value<'_>) -> Option<usize> {
        let places = self.places.get(&self.hash(item))?;
        places.iter().copied().find(|at| self.items.get(*at).is_some_and(|other| self.identity.same(other, item)))
    }
}

pub(super) fn equal(identity: Identity<'_>, left: &List<'_>, right: &List<'_>) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let among = |index: &Index<'_, '_>, item: &Value<'_>| {
        index.place(item).and_then(|at| index.items.get(at)).is_some_and(|other| other.equals(item))
    };
    let (left, right) = (Index::of(identity, left), Index::of(identity, right));
    left.items.iter().all(|item| among(&right, item)) && right.items.iter().all(|item| among(&left, item))
}

/// The left list with what only the right one has behind it; of what both have by keys, the right one's stands.
pub(super) fn merged<'v>(identity: Identity<'_>, left: &List<'v>, right: &List<'v>) -> Vec<Value<'v>> {
    let mut index = Index::of(identity, left);
    for item in right.iter() {
        match index.place(&item) {
            Some(at) => {
                if let Some(place) = index.items.get_mut(at) {
                    *place = item;
                }
            }
            None => index.push(item),
        }
    }
    index.items
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use crate::kubernetes::declared::{Declared, DeclaredKind, ListOrder};

    #[test]
    fn order_and_repeats_do_not_count() {
        let list = |order: ListOrder| {
            let item = Arc::new(Declared::new(DeclaredKind::Dyn));
            Declared::new(DeclaredKind::List { item, order })
        };
        let set = list(ListOrder::Set);
        let map = list(ListOrder::Map(vec!["k".into()]));
        for (of, left, right, equal, sum) in [
            (&set, json!([1, 2]), json!([2, 1]), true, 2),
            (&set, json!([1, 2]), json!([2, 3]), false, 3),
            (&set, json!([1]), json!([1.0]), true, 1),
            (&set, json!([[1], [2]]), json!([[2], [1]]), true, 2),
            (&map, json!([{"k": 1, "v": 1}, {"k": 2}]), json!([{"k": 2}, {"k": 1, "v": 1}]), true, 2),
            (&map, json!([{"k": 1, "v": 1}]), json!([{"k": 1, "v": 2}]), false, 1),
            (&map, json!([{"v": 1}]), json!([{"v": 1}]), true, 1),
        ] {
            let (a, b) = (of.value(&left), of.value(&right));
            assert_eq!(a.equals(&b), equal, "{left} {right}");
            let (crate::Value::List(a), crate::Value::List(b)) = (a, b) else { panic!("lists") };
            assert_eq!(of.lists_merged(&a, &b).unwrap().len(), sum, "{left} {right}");
        }
    }
}
