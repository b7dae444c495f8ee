//! Equality and order. Numbers compare by their mathematical value in whatever type they are.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{List, Map, Object, Value};

/// The smallest and the first too large double of 64 bits with a sign.
const INT_RANGE: (f64, f64) = (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0);
const UINT_END: f64 = 18_446_744_073_709_551_616.0;

/// The integer that a double is, if it is one.
pub(crate) fn double_as_int(value: f64) -> Option<i64> {
    let fits = value.fract() == 0.0 && value >= INT_RANGE.0 && value < INT_RANGE.1;
    #[expect(clippy::cast_possible_truncation, reason = "it is in range")]
    fits.then_some(value as i64)
}

/// Beyond the range of integers a double is larger or smaller; within, upstream compares doubles.
#[expect(clippy::cast_precision_loss, reason = "as upstream compares")]
fn int_to_double(left: i64, right: f64) -> Option<Ordering> {
    match right {
        _ if right < INT_RANGE.0 => Some(Ordering::Greater),
        _ if right > INT_RANGE.1 => Some(Ordering::Less),
        _ => (left as f64).partial_cmp(&right),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as upstream compares")]
fn uint_to_double(left: u64, right: f64) -> Option<Ordering> {
    match right {
        _ if right < 0.0 => Some(Ordering::Greater),
        _ if right > UINT_END => Some(Ordering::Less),
        _ => (left as f64).partial_cmp(&right),
    }
}

fn int_to_uint(left: i64, right: u64) -> Ordering {
    u64::try_from(left).map_or(Ordering::Less, |left| left.cmp(&right))
}

/// The order of two numbers; nothing where one is no number, or not a number.
fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(int_to_uint(*a, *b)),
        (Value::Uint(a), Value::Int(b)) => Some(int_to_uint(*b, *a).reverse()),
        (Value::Int(a), Value::Double(b)) => int_to_double(*a, *b),
        (Value::Double(a), Value::Int(b)) => int_to_double(*b, *a).map(Ordering::reverse),
        (Value::Uint(a), Value::Double(b)) => uint_to_double(*a, *b),
        (Value::Double(a), Value::Uint(b)) => uint_to_double(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

impl Value<'_> {
    fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Uint(_) | Self::Double(_))
    }

    /// Whether two values are equal; of different types they are not, but for numbers.
    #[must_use]
    pub fn equals(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(a), Value::Bool(b)) => a == b,
            (Self::String(a), Value::String(b)) => a.as_str() == b.as_str(),
            (Self::Bytes(a), Value::Bytes(b)) => a.as_bytes() == b.as_bytes(),
            (Self::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Self::Duration(a), Value::Duration(b)) => a == b,
            (Self::List(a), Value::List(b)) => lists_equal(a, b),
            (Self::Map(a), Value::Map(b)) => maps_equal(a, b),
            (Self::Object(a), Value::Object(b)) => objects_equal(a, b),
            (Self::Optional(None), Value::Optional(None)) => true,
            (Self::Optional(Some(a)), Value::Optional(Some(b))) => a.equals(b),
            // Types are told apart by their names at run time.
            (Self::Type(a), Value::Type(b)) => a.name() == b.name(),
            (Self::Opaque(a), Value::Opaque(b)) => a.equals(&**b),
            _ => self.is_number() && numbers(self, other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values that have one: the outer option tells whether they do, the inner whether one of them is
    /// not a number.
    #[must_use]
    pub fn order(&self, other: &Value<'_>) -> Option<Option<Ordering>> {
        match (self, other) {
            (Self::Bool(a), Value::Bool(b)) => Some(Some(a.cmp(b))),
            (Self::String(a), Value::String(b)) => Some(Some(a.as_str().cmp(b.as_str()))),
            (Self::Bytes(a), Value::Bytes(b)) => Some(Some(a.as_bytes().cmp(b.as_bytes()))),
            (Self::Timestamp(a), Value::Timestamp(b)) => Some(Some(a.cmp(b))),
            (Self::Duration(a), Value::Duration(b)) => Some(Some(a.cmp(b))),
            (a, b) if a.is_number() && b.is_number() => Some(numbers(a, b)),
            _ => None,
        }
    }
}

fn lists_equal(left: &List<'_>, right: &List<'_>) -> bool {
    // Lists that are sets, or maps by keys, are equal in any order.
    for list in [left, right] {
        if let List::Declared(_, declared) = list
            && let Some(equal) = declared.lists_equal(left, right)
        {
            return equal;
        }
    }
    left.len() == right.len() && left.iter().zip(right.iter()).all(|(a, b)| a.equals(&b))
}

fn maps_equal(left: &Map<'_>, right: &Map<'_>) -> bool {
    let same = |(key, value): (Value<'_>, Value<'_>)| {
        right.get(&key).is_ok_and(|other| other.is_some_and(|other| value.equals(&other)))
    };
    left.len() == right.len() && left.iter().all(same)
}

fn objects_equal(left: &Object<'_>, right: &Object<'_>) -> bool {
    if let (Object::Declared(left, of), Object::Declared(right, _)) = (left, right) {
        return of.objects_equal(left, right);
    }
    let fields = left.fields();
    let same = |name: &crate::ast::Name| match (left.field(name), right.field(name)) {
        (Some(a), Some(b)) => a.equals(&b),
        _ => false,
    };
    left.type_name() == right.type_name() && fields.len() == right.fields().len() && fields.iter().all(same)
}

pub(super) fn keys_equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    left.equals(right)
}

/// The hash of a key; equal keys have equal ones. Nothing for what is no key.
pub(super) fn key_hash(key: &Value<'_>, hasher: &mut impl Hasher) -> Option<u64> {
    hash_key(key, hasher).then(|| hasher.finish())
}

/// Hashes what can be a key, and tells whether it is one.
pub(crate) fn hash_key(key: &Value<'_>, hasher: &mut impl Hasher) -> bool {
    match key {
        Value::Bool(value) => value.hash(hasher),
        Value::String(text) => text.as_str().hash(hasher),
        Value::Int(value) => i128::from(*value).hash(hasher),
        Value::Uint(value) => i128::from(*value).hash(hasher),
        #[expect(clippy::cast_possible_truncation, reason = "a key is a whole number; others equal none")]
        Value::Double(value) if value.fract() == 0.0 => (*value as i128).hash(hasher),
        _ => return false,
    }
    true
}
