//! JSON patch (RFC 6902) with the leniencies of the library that upstream uses.
//!
//! Clients never see why an operation failed (they get one generic 422), but logs do, in upstream's words.

use api_machinery::value::{Value, json_type};

mod pointer;

use pointer::{Slot, parent_of};

/// Most operations in one patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// Most bytes that `copy` operations of one patch may add.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    /// The body is not a list of operations: a bad request.
    #[error("{0}")]
    Decode(String),
    /// Too many operations: the request is too large.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation does not apply: unprocessable.
    #[error("{0}")]
    Operation(String),
    /// An operation tests for what is not so: unprocessable.
    #[error("{0}")]
    Test(String),
    /// Copies add too much: unprocessable.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit {MAX_COPY_BYTES}"
    )]
    CopyTooLarge(usize),
}

/// One operation, as sent.
#[derive(Clone, Debug, Default, PartialEq)]
struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    /// Null when absent.
    value: Value,
}

/// A patch, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Operation>,
    /// Members that no operation has, such as `unknown field "[0].foo"`: warnings, or errors when strict.
    pub unknown_fields: Vec<String>,
}

impl JsonPatch {
    /// Reads the body of a request.
    pub fn parse(patch: &Value) -> Result<Self, JsonPatchError> {
        let Value::Array(items) = patch else {
            return Err(JsonPatchError::Decode(format!(
                "json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
                json_type(patch)
            )));
        };
        if items.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations(items.len()));
        }
        let mut read = Self::default();
        for (index, item) in items.iter().enumerate() {
            let Value::Object(members) = item else {
                return Err(JsonPatchError::Decode(format!(
                    "json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp",
                    json_type(item)
                )));
            };
            let text = |name: &str| members.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
            read.operations.push(Operation {
                op: text("op").unwrap_or_else(|| "unknown".into()),
                path: text("path"),
                from: text("from"),
                value: members.get("value").cloned().unwrap_or_default(),
            });
            let unknown = members.keys().filter(|name| !["op", "path", "from", "value"].contains(&name.as_str()));
            read.unknown_fields.extend(unknown.map(|name| format!("unknown field \"[{index}].{name}\"")));
        }
        Ok(read)
    }

    /// Applies all operations in order, or none.
    pub fn apply(&self, mut document: Value) -> Result<Value, JsonPatchError> {
        let mut copied = 0;
        for operation in &self.operations {
            operation.apply(&mut document, &mut copied)?;
        }
        Ok(document)
    }
}

fn failed(text: impl Into<String>) -> JsonPatchError {
    JsonPatchError::Operation(text.into())
}

impl Operation {
    fn apply(&self, document: &mut Value, copied: &mut usize) -> Result<(), JsonPatchError> {
        let missing = |member: &str| failed(format!("operation missing {member} field: missing value"));
        let path = || self.path.as_deref().ok_or_else(|| missing("path"));
        let from = || self.from.as_deref().ok_or_else(|| missing("from"));
        match self.op.as_str() {
            "add" => add(document, path()?, self.value.clone(), "add"),
            "remove" => remove(document, path()?, "remove").map(drop),
            "replace" => self.replace(document, path()?),
            "test" => self.test(document, path()?),
            "move" => {
                let value = remove(document, from()?, "move")?;
                add(document, path()?, value, "move")
            }
            "copy" => {
                let value = lookup(document, from()?, "copy")?;
                *copied += value.to_string().len();
                if *copied > MAX_COPY_BYTES {
                    return Err(JsonPatchError::CopyTooLarge(*copied));
                }
                add(document, path()?, value, "copy")
            }
            other => Err(failed(format!("Unexpected kind: {other}"))),
        }
    }

    fn replace(&self, document: &mut Value, path: &str) -> Result<(), JsonPatchError> {
        if path.is_empty() {
            *document = self.value.clone();
            return Ok(());
        }
        let (parent, key) = parent_of(document, path).ok_or_else(|| missing_path("replace", path))?;
        match parent {
            // A missing key is added: upstream's library checks only the parent.
            Slot::Map(map) => {
                map.insert(key, self.value.clone());
            }
            Slot::List(list) => {
                let missing =
                    || failed(format!("replace operation does not apply: doc is missing key: {path}: missing value"));
                let index = position(&key, list.len()).map_err(|_| missing())?;
                let slot = list.get_mut(index).ok_or_else(missing)?;
                *slot = self.value.clone();
            }
        }
        Ok(())
    }

    fn test(&self, document: &mut Value, path: &str) -> Result<(), JsonPatchError> {
        let found = if path.is_empty() { document.clone() } else { lookup(document, path, "test")? };
        if same(&found, &self.value) {
            Ok(())
        } else {
            Err(JsonPatchError::Test(format!("testing value {path} failed: test failed")))
        }
    }
}

fn add(document: &mut Value, path: &str, value: Value, operation: &str) -> Result<(), JsonPatchError> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let (parent, key) = parent_of(document, path).ok_or_else(|| missing_path(operation, path))?;
    let at_path = |error: String| failed(format!("error in {operation} for path: '{path}': {error}"));
    match parent {
        Slot::Map(map) => {
            map.insert(key, value);
        }
        Slot::List(list) => {
            let index = if key == "-" { list.len() } else { position(&key, list.len() + 1).map_err(at_path)? };
            list.insert(index, value);
        }
    }
    Ok(())
}

/// Numbers are equal by value, whatever their spelling.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => one == other,
    }
}

fn missing_path(operation: &str, path: &str) -> JsonPatchError {
    failed(format!("{operation} operation does not apply: doc is missing path: \"{path}\": missing value"))
}

/// The value at a path; an absent key of an existing map is null.
fn lookup(document: &mut Value, path: &str, operation: &str) -> Result<Value, JsonPatchError> {
    if path.is_empty() {
        return Ok(document.clone());
    }
    let (parent, key) = parent_of(document, path).ok_or_else(|| missing_path(operation, path))?;
    match parent {
        Slot::Map(map) => Ok(map.get(&key).cloned().unwrap_or_default()),
        Slot::List(list) => {
            let at_path = |error: String| failed(format!("error in {operation} for path: '{path}': {error}"));
            let index = position(&key, list.len()).map_err(at_path)?;
            Ok(list.get(index).cloned().unwrap_or_default())
        }
    }
}

fn remove(document: &mut Value, path: &str, operation: &str) -> Result<Value, JsonPatchError> {
    let (parent, key) = parent_of(document, path).ok_or_else(|| missing_path(operation, path))?;
    let at_path = |error: String| failed(format!("error in {operation} for path: '{path}': {error}"));
    match parent {
        Slot::Map(map) => {
            map.remove(&key).ok_or_else(|| at_path(format!("Unable to remove nonexistent key: {key}: missing value")))
        }
        Slot::List(list) => {
            let index = position(&key, list.len()).map_err(at_path)?;
            Ok(list.remove(index))
        }
    }
}

/// The place that an array index names, below `limit`; negative ones count back from `limit`.
fn position(key: &str, limit: usize) -> Result<usize, String> {
    let index: i64 = key.parse().map_err(|_| format!("value was not a proper array index: '{key}'"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let from_start = if index < 0 { index + limit } else { index };
    if !(0..limit).contains(&from_start) {
        return Err(format!("Unable to access invalid index: {index}: invalid index referenced"));
    }
    usize::try_from(from_start).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
