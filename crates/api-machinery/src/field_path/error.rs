//! One validation error, and lists of them.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::Path;
use crate::intstr::IntOrString;
use crate::quantity::Quantity;
use crate::quote::go_quote;
use crate::time::{MicroTime, Time};

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A value is missing.
    Required,
    /// The field must not be set here.
    Forbidden,
    /// The value breaks a rule.
    Invalid,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value is not one of those known.
    NotSupported,
    /// What the value names does not exist.
    NotFound,
    /// The value occurs twice.
    Duplicate,
    /// The value is too long.
    TooLong,
    /// The value is too short.
    TooShort,
    /// The list has too many items.
    TooMany,
    /// The list has too few items.
    TooFew,
    /// The check itself failed.
    InternalError,
}

impl ErrorKind {
    /// The `reason` of a status cause.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::NotFound => "FieldValueNotFound",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::InternalError => "InternalError",
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Forbidden => "Forbidden",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::NotFound => "Not found",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::InternalError => "Internal error",
        }
    }
}

/// A refused value, as it is printed: plain texts quoted as Go does, numbers bare, everything else compact JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue(String);

impl BadValue {
    /// A value given as compact JSON, map keys sorted: structs, lists, maps.
    pub fn json(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A value of a named string type (`"TCP"`), which prints as JSON, so `<`, `>` and `&` are escaped.
    pub fn named(text: &str) -> Self {
        let json = serde_json::Value::from(text).to_string();
        let escaped = json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
        Self(escaped.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
    }

    /// The value as it is printed.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// An absent pointer.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// A map of texts. One without entries was left out, which prints as `null`.
    pub fn texts(map: &BTreeMap<String, String>) -> Self {
        if map.is_empty() {
            return Self::null();
        }
        let entries = map.iter().map(|(key, value)| format!("{}:{}", Self::named(key).0, Self::named(value).0));
        Self(format!("{{{}}}", entries.collect::<Vec<_>>().join(",")))
    }

    /// A list of texts.
    pub fn list<T: AsRef<str>>(items: &[T]) -> Self {
        let items: Vec<String> = items.iter().map(|item| Self::named(item.as_ref()).0).collect();
        Self(format!("[{}]", items.join(",")))
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self(go_quote(text))
    }
}

impl From<&String> for BadValue {
    fn from(text: &String) -> Self {
        Self(go_quote(text))
    }
}

impl From<String> for BadValue {
    fn from(text: String) -> Self {
        Self(go_quote(&text))
    }
}

impl From<&Quantity> for BadValue {
    fn from(quantity: &Quantity) -> Self {
        Self::named(&quantity.to_string())
    }
}

impl From<&IntOrString> for BadValue {
    fn from(value: &IntOrString) -> Self {
        match value {
            IntOrString::Int(number) => (*number).into(),
            IntOrString::Str(text) => Self::named(text),
        }
    }
}

impl From<Time> for BadValue {
    fn from(time: Time) -> Self {
        if time.is_zero() { Self::null() } else { Self::named(&time.to_string()) }
    }
}

impl From<MicroTime> for BadValue {
    fn from(time: MicroTime) -> Self {
        if time.is_zero() { Self::null() } else { Self::named(&time.to_string()) }
    }
}

impl<T: Into<BadValue>> From<Option<T>> for BadValue {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::null, Into::into)
    }
}

macro_rules! plain_values {
    ($($plain:ty),*) => {$(
        impl From<$plain> for BadValue {
            fn from(value: $plain) -> Self {
                Self(value.to_string())
            }
        }
    )*};
}

plain_values!(i32, i64, u16, u32, u64, usize, f64, bool);

/// One error at one field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {}", self.body())]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// The path, as text.
    pub field: String,
    /// The value, where this kind of error prints it.
    pub value: Option<BadValue>,
    /// The rest of the sentence; may be empty.
    pub detail: String,
}

impl FieldError {
    /// The text without the path: what `causes[].message` holds.
    pub fn body(&self) -> String {
        let mut body = String::from(self.kind.prefix());
        for part in [self.value.as_ref().map_or("", |value| &value.0), &self.detail] {
            if !part.is_empty() {
                body.push_str(": ");
                body.push_str(part);
            }
        }
        body
    }

    /// The error as a status cause.
    pub fn cause(&self) -> Cause {
        Cause { reason: self.kind.reason().into(), message: self.body(), field: self.field.clone() }
    }
}

/// One entry of a status's `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable kind, such as `FieldValueInvalid`.
    pub reason: String,
    /// Text for people, without the path.
    pub message: String,
    /// The path; may be empty.
    pub field: String,
}

/// Constructors, one for each kind; all take the rest of the sentence last.
impl Path {
    fn error(&self, kind: ErrorKind, value: Option<BadValue>, detail: impl Into<String>) -> FieldError {
        FieldError { kind, field: self.to_string(), value, detail: detail.into() }
    }

    /// A value is missing.
    pub fn required(&self, detail: impl Into<String>) -> FieldError {
        self.error(ErrorKind::Required, None, detail)
    }

    /// The field must not be set.
    pub fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        self.error(ErrorKind::Forbidden, None, detail)
    }

    /// The value breaks a rule.
    pub fn invalid(&self, value: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        self.error(ErrorKind::Invalid, Some(value.into()), detail)
    }

    /// A value that is wrong, and not shown.
    pub fn invalid_unshown(&self, detail: impl Into<String>) -> FieldError {
        self.error(ErrorKind::Invalid, None, detail)
    }

    /// The value has the wrong type.
    pub fn type_invalid(&self, value: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        self.error(ErrorKind::TypeInvalid, Some(value.into()), detail)
    }

    /// The value is none of `supported`, which are printed in byte order.
    pub fn not_supported<T: AsRef<str>>(&self, value: impl Into<BadValue>, supported: &[T]) -> FieldError {
        let mut sorted: Vec<&str> = supported.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        self.not_supported_in_order(value, &sorted)
    }

    /// The value is none of `supported`, which are printed as given.
    pub fn not_supported_in_order<T: AsRef<str>>(&self, value: impl Into<BadValue>, supported: &[T]) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|item| go_quote(item.as_ref())).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        self.error(ErrorKind::NotSupported, Some(value.into()), detail)
    }

    /// What the value names does not exist.
    pub fn not_found(&self, value: impl Into<BadValue>) -> FieldError {
        self.error(ErrorKind::NotFound, Some(value.into()), "")
    }

    /// The value occurs twice.
    pub fn duplicate(&self, value: impl Into<BadValue>) -> FieldError {
        self.error(ErrorKind::Duplicate, Some(value.into()), "")
    }

    /// More than `limit_bytes` bytes of UTF-8.
    pub fn too_long(&self, limit_bytes: usize) -> FieldError {
        self.error(
            ErrorKind::TooLong,
            None,
            format!("may not be more than {} {}", limit_bytes, count(limit_bytes, "byte")),
        )
    }

    /// More than `limit` characters, as declarative rules say it.
    pub fn too_long_characters(&self, limit: usize) -> FieldError {
        self.error(ErrorKind::TooLong, None, format!("may not be more than {} {}", limit, count(limit, "character")))
    }

    /// Fewer than `minimum` characters.
    pub fn too_short(&self, minimum: usize) -> FieldError {
        self.error(ErrorKind::TooShort, None, format!("must be at least {} {}", minimum, count(minimum, "character")))
    }

    /// `actual` items where at most `limit` are allowed.
    pub fn too_many(&self, actual: usize, limit: usize) -> FieldError {
        let detail = format!("must have at most {} {}", limit, count(limit, "item"));
        self.error(ErrorKind::TooMany, Some(actual.into()), detail)
    }

    /// `actual` items where at least `minimum` are needed.
    pub fn too_few(&self, actual: usize, minimum: usize) -> FieldError {
        let detail = format!("must have at least {} {}", minimum, count(minimum, "item"));
        self.error(ErrorKind::TooFew, Some(actual.into()), detail)
    }

    /// The check itself failed.
    pub fn internal(&self, error: impl fmt::Display) -> FieldError {
        self.error(ErrorKind::InternalError, None, error.to_string())
    }
}

fn count(number: usize, singular: &str) -> String {
    if number == 1 { singular.to_owned() } else { format!("{singular}s") }
}

/// Texts of more bytes than this are not added to: rules that compare items, or that print a whole list for each of its
/// items, would make an answer of gigabytes of one request.
const MOST_BYTES: usize = 1 << 20;

/// Errors in the order the rules ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorList {
    errors: Vec<FieldError>,
    /// How long their texts are, roughly.
    bytes: usize,
}

impl ErrorList {
    /// An empty list.
    pub const fn new() -> Self {
        Self { errors: Vec::new(), bytes: 0 }
    }

    /// Appends one error, unless the list is full.
    pub fn push(&mut self, error: FieldError) {
        if self.is_full() {
            return;
        }
        let value = error.value.as_ref().map_or(0, |value| value.text().len());
        self.bytes += error.field.len() + value + error.detail.len();
        self.errors.push(error);
    }

    /// Whether no more errors are taken, so that a rule that may find very many of them can end.
    pub fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Appends an `Invalid` error with the same value for each detail that a named value rule returned.
    pub fn push_invalid(&mut self, path: &Path, value: &str, details: Vec<String>) {
        self.extend(details.into_iter().map(|detail| path.invalid(value, detail)));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.errors.len()
    }

    /// The errors in order.
    pub fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.errors.iter()
    }

    /// `Err` with the list unless it is empty.
    pub fn into_result(self) -> Result<(), Self> {
        if self.errors.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Status causes, one for each error, repeats included.
    pub fn causes(&self) -> Vec<Cause> {
        self.errors.iter().map(FieldError::cause).collect()
    }
}

impl std::error::Error for ErrorList {}

/// One error prints bare, several as `[a, b]`; texts that repeat are printed once.
impl fmt::Display for ErrorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = HashSet::new();
        let texts = self.errors.iter().map(ToString::to_string).filter(|text| seen.insert(text.clone()));
        let texts: Vec<String> = texts.collect();
        match texts.as_slice() {
            [only] => f.write_str(only),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl Extend<FieldError> for ErrorList {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl FromIterator<FieldError> for ErrorList {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Self {
        let mut list = Self::new();
        list.extend(errors);
        list
    }
}

impl IntoIterator for ErrorList {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a ErrorList {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.iter()
    }
}

impl From<FieldError> for ErrorList {
    fn from(error: FieldError) -> Self {
        Self::from_iter([error])
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
