//! The value rules of one schema node, unpacked once so that every write only has to look.

use serde_json::Value;

use super::Structural;
use super::pattern::Pattern;

/// What a value must be like, beyond its type.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Members that must be there.
    pub required: Vec<String>,
    /// The values that are allowed; empty allows all.
    pub allowed: Vec<Value>,
    /// `format`.
    pub format: String,
    /// `pattern`.
    pub pattern: Option<Pattern>,
    /// Smallest number, and whether it is excluded.
    pub minimum: Option<(f64, bool)>,
    /// Largest number, and whether it is excluded.
    pub maximum: Option<(f64, bool)>,
    /// What numbers must be a multiple of.
    pub multiple_of: Option<f64>,
    /// Fewest characters.
    pub min_length: Option<u64>,
    /// Most characters.
    pub max_length: Option<u64>,
    /// Fewest items.
    pub min_items: Option<u64>,
    /// Most items.
    pub max_items: Option<u64>,
    /// Fewest members.
    pub min_properties: Option<u64>,
    /// Most members.
    pub max_properties: Option<u64>,
    /// Whether members that are not declared are forbidden.
    pub closed: bool,
    /// All of these must hold.
    pub all_of: Vec<Structural>,
    /// One of these must hold.
    pub any_of: Vec<Structural>,
    /// Exactly one of these must hold.
    pub one_of: Vec<Structural>,
    /// This must not hold.
    pub not: Option<Box<Structural>>,
}

impl Rules {
    pub(super) fn read(schema: &Value, below: impl Fn(&Value) -> Option<Structural>) -> Self {
        let number = |name: &str| schema.get(name).and_then(Value::as_f64);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
        let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
        let nodes = |name: &str| list(name).filter_map(&below).collect();
        let pattern = text("pattern");
        Self {
            required: list("required").filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            allowed: list("enum").cloned().collect(),
            format: text("format").to_owned(),
            pattern: Some(pattern).filter(|pattern| !pattern.is_empty()).map(Pattern::new),
            minimum: number("minimum").map(|bound| (bound, flag("exclusiveMinimum"))),
            maximum: number("maximum").map(|bound| (bound, flag("exclusiveMaximum"))),
            multiple_of: number("multipleOf").filter(|step| *step > 0.0),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            closed: schema.get("additionalProperties") == Some(&Value::Bool(false)),
            all_of: nodes("allOf"),
            any_of: nodes("anyOf"),
            one_of: nodes("oneOf"),
            not: schema.get("not").and_then(&below).map(Box::new),
        }
    }
}
