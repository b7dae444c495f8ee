//! The `x-kubernetes-*` keywords.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use serde_json::{Map, Value};

use super::super::{Structural, ValidationRule, field_path};
use super::{flag, text};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";
/// So much that is wrong with the keys of a list is told; no list has as many keys.
const MOST_WRONG_KEYS: usize = 16;
const MAP_TYPE: &str = "x-kubernetes-map-type";
const RULE_REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub(super) fn check(path: &Path, node: &Map<String, Value>, errors: &mut ErrorList) {
    if node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        errors.push(path.child("x-kubernetes-preserve-unknown-fields").invalid(false, "must be true or undefined"));
    }
    let map_type = text(node, MAP_TYPE);
    if !map_type.is_empty() {
        wants_type(path, node, "object", "must be object if x-kubernetes-map-type is specified", errors);
        if !["atomic", "granular"].contains(&map_type) {
            errors.push(path.child(MAP_TYPE).not_supported(map_type, &["atomic", "granular"]));
        }
    }
    check_list_type(path, node, errors);
    check_rules(path, node, errors);
}

fn wants_type(path: &Path, node: &Map<String, Value>, wanted: &str, detail: &str, errors: &mut ErrorList) {
    match text(node, "type") {
        "" => errors.push(path.child("type").required(detail)),
        kind if kind != wanted => errors.push(path.child("type").invalid(kind, detail)),
        _ => {}
    }
}

fn check_list_type(path: &Path, node: &Map<String, Value>, errors: &mut ErrorList) {
    let list_type = text(node, LIST_TYPE);
    let keys: Vec<&str> =
        node.get(LIST_KEYS).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if !list_type.is_empty() {
        wants_type(path, node, "array", "must be array if x-kubernetes-list-type is specified", errors);
        if !["atomic", "set", "map"].contains(&list_type) {
            errors.push(path.child(LIST_TYPE).not_supported_in_order(list_type, &["atomic", "set", "map"]));
        }
    }
    if !keys.is_empty() && list_type != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            "" => path.child(LIST_TYPE).required(detail),
            other => path.child(LIST_TYPE).invalid(other, detail),
        });
    }
    let items = node.get("items").and_then(Value::as_object);
    match (list_type, items) {
        ("set", Some(items)) => check_set_items(&path.child("items"), items, errors),
        ("map", _) => check_map_items(path, items, &keys, errors),
        _ => {}
    }
    if matches!(list_type, "set" | "map") && items.is_some_and(|items| flag(items, "nullable")) {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(path.child("items").child("nullable").forbidden(detail));
    }
}

fn check_set_items(path: &Path, items: &Map<String, Value>, errors: &mut ErrorList) {
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let name = match text(items, "type") {
        "array" if !matches!(text(items, LIST_TYPE), "" | "atomic") => LIST_TYPE,
        "object" if text(items, MAP_TYPE) != "atomic" => MAP_TYPE,
        _ => return,
    };
    let value = items.get(name).map_or(BadValue::null(), |_| BadValue::from(text(items, name)));
    errors.push(path.child(name).invalid(value, detail));
}

fn check_map_items(path: &Path, items: Option<&Map<String, Value>>, keys: &[&str], errors: &mut ErrorList) {
    if keys.is_empty() {
        errors.push(path.child(LIST_KEYS).required("must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = items else {
        errors.push(path.child("items").required("must have a schema if x-kubernetes-list-type is map"));
        return;
    };
    let detail = "must be object if parent array's x-kubernetes-list-type is map";
    match text(items, "type") {
        "object" => {}
        "" => errors.push(path.child("items").child("type").required(detail)),
        other => {
            errors.push(path.child("items").child("type").invalid(other, detail));
            return;
        }
    }
    let required = items.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
    let mut seen = BTreeSet::new();
    let before = errors.len();
    // Each wrong key is told with all of them: of a schema of nothing else must not come a text of its square.
    for key in keys {
        if errors.len() - before >= MOST_WRONG_KEYS {
            break;
        }
        let at_keys = path.child(LIST_KEYS);
        let property = items.get("properties").and_then(|properties| properties.get(*key)).and_then(Value::as_object);
        let at_property = path.child("items").child("properties").key(key);
        match property {
            None => errors.push(at_keys.invalid(BadValue::list(keys), "entries must all be names of item properties")),
            Some(property) => check_key_property(&at_property, property, required.contains(key), errors),
        }
        if !seen.insert(key) {
            errors.push(at_keys.invalid(BadValue::list(keys), "must not contain duplicate entries"));
        }
    }
}

fn check_key_property(path: &Path, property: &Map<String, Value>, is_required: bool, errors: &mut ErrorList) {
    let kind = text(property, "type");
    if matches!(kind, "array" | "object") {
        let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        errors.push(path.child("type").invalid(kind, detail));
    }
    if !is_required && property.get("default").is_none_or(Value::is_null) {
        let detail =
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        errors.push(path.child("default").required(detail));
    }
    if flag(property, "nullable") {
        let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        errors.push(path.child("nullable").forbidden(detail));
    }
}

/// The rules in the expression language; whether they compile is for the evaluator to say.
fn check_rules(path: &Path, node: &Map<String, Value>, errors: &mut ErrorList) {
    let rules = node.get("x-kubernetes-validations").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if rules.is_empty() {
        return;
    }
    let schema = Structural::of_node(&Value::Object(node.clone()));
    for (index, rule) in rules.iter().map(ValidationRule::read).enumerate() {
        let at = path.child("x-kubernetes-validations").index(index);
        check_rule(&at, &rule, errors);
        check_field_path(&at.child("fieldPath"), &rule.field_path, &schema, errors);
    }
}

fn has_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

fn check_rule(path: &Path, rule: &ValidationRule, errors: &mut ErrorList) {
    let (expression, message) = (rule.rule.trim(), rule.message.trim());
    let at = path.child("message");
    if expression.is_empty() {
        errors.push(path.child("rule").required("rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        errors.push(at.invalid(&rule.message, "must be non-empty if specified"));
    } else if has_break(message) {
        errors.push(at.invalid(&rule.message, "must not contain line breaks"));
    } else if has_break(expression) && message.is_empty() {
        errors.push(at.required("message must be specified if rule contains line breaks"));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        errors.push(path.child("messageExpression").required("messageExpression must be non-empty if specified"));
    }
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !RULE_REASONS.contains(reason)) {
        errors.push(path.child("reason").not_supported(reason, &RULE_REASONS));
    }
}

fn check_field_path(at: &Path, path: &str, schema: &Structural, errors: &mut ErrorList) {
    if path.is_empty() {
        return;
    }
    if path.trim().is_empty() {
        errors.push(at.invalid(path, "must be non-empty if specified"));
    } else if has_break(path) {
        errors.push(at.invalid(path, "must not contain line breaks"));
    } else if field_path(schema, path).is_none() {
        errors.push(at.invalid(path, "must be a valid path"));
    }
}
