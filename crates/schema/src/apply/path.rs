//! Steps into an object, how they sort, and how they print.

use std::cmp::Ordering;
use std::fmt;

use api_machinery::json;
use serde_json::{Number, Value};
use smol_str::SmolStr;

/// One step: a field or map key, a keyed item, an item of a set, or a list index.
#[derive(Clone, Debug)]
pub enum Element {
    /// A field or map key.
    Field(SmolStr),
    /// An item of a keyed list: its key members, sorted by name.
    Key(Vec<(SmolStr, Value)>),
    /// An item of a set.
    Value(Value),
    /// An item by position.
    Index(usize),
}

/// Steps from the root.
pub type FieldPath = Vec<Element>;

impl Element {
    /// The field or map key `name`.
    pub fn field(name: &str) -> Self {
        Self::Field(SmolStr::new(name))
    }

    /// The field `name` of a struct.
    pub fn declared(name: &'static str) -> Self {
        Self::Field(SmolStr::new_static(name))
    }

    /// The item with these key members.
    pub fn key<N: AsRef<str>>(members: impl IntoIterator<Item = (N, Value)>) -> Self {
        let members = members.into_iter().map(|(name, value)| (SmolStr::new(name), settled(value)));
        let mut members: Vec<(SmolStr, Value)> = members.collect();
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        members.dedup_by(|(one, _), (other, _)| one == other);
        Self::Key(members)
    }

    /// The item of a set with this value.
    pub fn value(value: Value) -> Self {
        Self::Value(settled(value))
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_members(a.iter().map(named), b.iter().map(named)),
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

/// A value as it is once it was written and read: floats without a fraction are integers then, and zero has no sign.
fn settled(value: Value) -> Value {
    match &value {
        Value::Number(number) if number.is_f64() => json::parse_value(&json::encode_value(&value)).unwrap_or(value),
        _ => value,
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Integers and floats by their value. Upstream makes floats of both, so that large ones are the same as some that are not the
/// same as each other; what is sorted needs an order.
fn compare_numbers(one: &Number, other: &Number) -> Ordering {
    // Zero has no sign then.
    let float = |number: &Number| number.as_f64().unwrap_or_default() + 0.0;
    let by_float = || float(one).total_cmp(&float(other));
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(integer), None) => by_float().then_with(|| integer.cmp(&whole(float(other)))),
        (None, Some(integer)) => by_float().then_with(|| whole(float(one)).cmp(&integer)),
        (None, None) => by_float(),
    }
}

/// A float that is as large as some integer: it is whole then, or the integer is small and the same.
#[expect(
    clippy::cast_possible_truncation,
    reason = "what is too large is the largest, which is larger than any number"
)]
fn whole(float: f64) -> i128 {
    float as i128
}

/// The order of values: numbers, texts, booleans, lists, maps, null.
pub fn compare_values(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let by_items = a.iter().zip(b).map(|(a, b)| compare_values(a, b)).find(|order| order.is_ne());
            by_items.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_members(a.iter().map(of_map), b.iter().map(of_map)),
        _ => rank(one).cmp(&rank(other)),
    }
}

fn named((name, value): &(SmolStr, Value)) -> (&str, &Value) {
    (name.as_str(), value)
}

fn of_map<'v>((name, value): (&'v String, &'v Value)) -> (&'v str, &'v Value) {
    (name.as_str(), value)
}

/// Member by member, names before values.
fn compare_members<'v>(
    one: impl ExactSizeIterator<Item = (&'v str, &'v Value)>,
    other: impl ExactSizeIterator<Item = (&'v str, &'v Value)>,
) -> Ordering {
    let by_length = one.len().cmp(&other.len());
    let mut by_members =
        one.zip(other).map(|((name_a, a), (name_b, b))| name_a.cmp(name_b).then_with(|| compare_values(a, b)));
    by_members.find(|order| order.is_ne()).unwrap_or(by_length)
}

/// Whether two values mean the same: numbers by value, maps in any order.
pub fn same_value(one: &Value, other: &Value) -> bool {
    compare_values(one, other).is_eq()
}

/// As conflicts print it: `.spec`, `[name="a"]`, `[="x"]`, `[3]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(members) => {
                let members: Vec<String> = members.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", members.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A whole path as text.
pub fn print_path(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorting may panic where this is not so.
    #[test]
    fn numbers_have_an_order() {
        let texts = [
            "-1e300",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-0.0",
            "0",
            "0.0",
            "0.5",
            "1",
            "9007199254740992",
            "9007199254740992.0",
            "9007199254740993",
            "9007199254740994.0",
            "9223372036854775807",
            "9223372036854775808",
            "9223372036854775808.0",
            "9223372036854775809",
            "18446744073709551615",
            "18446744073709551616.0",
            "1e300",
        ];
        let numbers = texts.map(|text| serde_json::from_str::<Value>(text).unwrap());
        for a in &numbers {
            for b in &numbers {
                assert_eq!(compare_values(a, b), compare_values(b, a).reverse(), "{a} {b}");
                for c in &numbers {
                    let (ab, bc, ac) = (compare_values(a, b), compare_values(b, c), compare_values(a, c));
                    assert!(ab.is_gt() || bc.is_gt() || ac == ab.then(bc), "{a} {b} {c}");
                }
            }
        }
        assert!(numbers.is_sorted_by(|one, next| compare_values(one, next).is_le()));
    }
}
