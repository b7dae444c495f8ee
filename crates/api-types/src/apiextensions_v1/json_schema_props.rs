//! JSONSchemaProps and what it is made of. A definition has hundreds, and the versions of it that are known at the same
//! time differ in anything but their schemas: they share them, down to each property. What few schemas set takes a word.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::reflect::Rare;

use super::constants::field_value_error_reason;
use super::{JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, JSONSchemaPropsOrStringArray};

/// A JSON schema, following draft 4 with extensions.
#[api]
pub struct JSONSchemaProps {
    /// Identifier of the schema. Not allowed in custom resources.
    #[field(1)]
    pub id: Rare<String>,
    /// Address of the schema dialect.
    #[field(2, name = "$schema", go = "v1.JSONSchemaURL")]
    pub schema: Rare<String>,
    /// Reference to another schema. Not allowed in custom resources.
    #[field(3, name = "$ref")]
    pub ref_: Rare<Option<String>>,
    /// Text that explains the value.
    #[field(4)]
    pub description: String,
    /// JSON type: object, array, string, integer, number or boolean.
    #[field(5)]
    pub type_: String,
    /// Format of the value, such as date-time or int64. Unknown ones are ignored.
    #[field(6)]
    pub format: Rare<String>,
    /// Short title of the value.
    #[field(7)]
    pub title: Rare<String>,
    /// Value used when the field is absent.
    #[field(8)]
    pub default: Rare<Option<RawJson>>,
    /// Largest number allowed.
    #[field(9)]
    pub maximum: Rare<Option<f64>>,
    /// Whether maximum itself is excluded.
    #[field(10)]
    pub exclusive_maximum: bool,
    /// Smallest number allowed.
    #[field(11)]
    pub minimum: Rare<Option<f64>>,
    /// Whether minimum itself is excluded.
    #[field(12)]
    pub exclusive_minimum: bool,
    /// Longest text allowed, in characters.
    #[field(13)]
    pub max_length: Rare<Option<i64>>,
    /// Shortest text allowed, in characters.
    #[field(14)]
    pub min_length: Rare<Option<i64>>,
    /// Regular expression that text must match.
    #[field(15)]
    pub pattern: Rare<String>,
    /// Most array items allowed.
    #[field(16)]
    pub max_items: Rare<Option<i64>>,
    /// Fewest array items allowed.
    #[field(17)]
    pub min_items: Rare<Option<i64>>,
    /// Whether array items must differ. Must not be true.
    #[field(18)]
    pub unique_items: bool,
    /// Number that the value must be a multiple of.
    #[field(19)]
    pub multiple_of: Rare<Option<f64>>,
    /// Values that are allowed.
    #[field(20)]
    pub enum_: Rare<Vec<RawJson>>,
    /// Most object properties allowed.
    #[field(21)]
    pub max_properties: Rare<Option<i64>>,
    /// Fewest object properties allowed.
    #[field(22)]
    pub min_properties: Rare<Option<i64>>,
    /// Properties that must be present.
    #[field(23)]
    pub required: Rare<Vec<String>>,
    /// Schema of the array items.
    #[field(24)]
    pub items: Rare<Option<JSONSchemaPropsOrArray>>,
    /// Schemas that must all match.
    #[field(25)]
    pub all_of: Rare<Vec<JSONSchemaProps>>,
    /// Schemas of which exactly one must match.
    #[field(26)]
    pub one_of: Rare<Vec<JSONSchemaProps>>,
    /// Schemas of which at least one must match.
    #[field(27)]
    pub any_of: Rare<Vec<JSONSchemaProps>>,
    /// Schema that must not match.
    #[field(28)]
    pub not: Option<Arc<JSONSchemaProps>>,
    /// Schemas of named properties.
    #[field(29)]
    pub properties: Rare<BTreeMap<String, Arc<JSONSchemaProps>>>,
    /// Schema of other properties, or whether they are allowed. Excludes properties.
    #[field(30)]
    pub additional_properties: Rare<Option<JSONSchemaPropsOrBool>>,
    /// Schemas of properties whose names match patterns. Not allowed in custom resources.
    #[field(31)]
    pub pattern_properties: Rare<BTreeMap<String, Arc<JSONSchemaProps>>>,
    /// Requirements triggered by present properties. Not allowed in custom resources.
    #[field(32, go = "v1.JSONSchemaDependencies")]
    pub dependencies: Rare<BTreeMap<String, JSONSchemaPropsOrStringArray>>,
    /// Schema of further array items. Not allowed in custom resources.
    #[field(33)]
    pub additional_items: Rare<Option<JSONSchemaPropsOrBool>>,
    /// Named schemas for reuse. Not allowed in custom resources.
    #[field(34, go = "v1.JSONSchemaDefinitions")]
    pub definitions: Rare<BTreeMap<String, Arc<JSONSchemaProps>>>,
    /// Further documentation elsewhere.
    #[field(35)]
    pub external_docs: Rare<Option<ExternalDocumentation>>,
    /// Sample value.
    #[field(36)]
    pub example: Rare<Option<RawJson>>,
    /// Whether null is allowed. Default is false.
    #[field(37)]
    pub nullable: bool,
    /// Keeps fields that the schema does not name.
    #[field(38, name = "x-kubernetes-preserve-unknown-fields")]
    pub x_kubernetes_preserve_unknown_fields: Option<bool>,
    /// Whether the value is a complete API object.
    #[field(39, name = "x-kubernetes-embedded-resource")]
    pub x_kubernetes_embedded_resource: bool,
    /// Whether the value is an integer or text.
    #[field(40, name = "x-kubernetes-int-or-string")]
    pub x_kubernetes_int_or_string: bool,
    /// Properties that identify items of a list of type map.
    #[field(41, name = "x-kubernetes-list-map-keys")]
    pub x_kubernetes_list_map_keys: Rare<Vec<String>>,
    /// How lists merge: atomic (default), set or map.
    #[field(42, name = "x-kubernetes-list-type")]
    pub x_kubernetes_list_type: Rare<Option<String>>,
    /// How objects merge: granular (default) or atomic.
    #[field(43, name = "x-kubernetes-map-type")]
    pub x_kubernetes_map_type: Rare<Option<String>>,
    /// Rules in the CEL language that must hold.
    #[field(44, name = "x-kubernetes-validations", merge_key = "rule", go = "v1.ValidationRules")]
    pub x_kubernetes_validations: Rare<Vec<ValidationRule>>,
}

/// Points to further documentation.
#[api]
pub struct ExternalDocumentation {
    /// Text about the documentation.
    #[field(1)]
    pub description: String,
    /// Address of the documentation.
    #[field(2)]
    pub url: String,
}

/// A validation rule written in CEL.
#[api]
pub struct ValidationRule {
    /// CEL expression that must be true. The variable self is the value.
    #[field(1, always, required)]
    pub rule: String,
    /// Text shown when the rule fails. Needed for rules with line breaks.
    #[field(2)]
    pub message: String,
    /// CEL expression that builds the failure text. Preferred over message.
    #[field(3)]
    pub message_expression: String,
    /// Error reason: FieldValueInvalid (default), FieldValueForbidden, FieldValueRequired or FieldValueDuplicate.
    #[field(4, go = "v1.FieldValueErrorReason", values = field_value_error_reason::ALL)]
    pub reason: Option<String>,
    /// Path of the child field to blame, such as .foo.bar.
    #[field(5)]
    pub field_path: String,
    /// Evaluates rules on creation too, with oldSelf as an optional value.
    #[field(6)]
    pub optional_old_self: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_takes_little_more_than_a_word_for_each_keyword() {
        assert!(size_of::<JSONSchemaProps>() <= 45 * size_of::<usize>(), "{}", size_of::<JSONSchemaProps>());
    }
}
