//! What upstream keeps of a manifest's text and a typed pod does not: the texts of quantities, and lists and maps that are
//! there and empty.

use api_machinery::value::{Value, ValueMap};

type Object = ValueMap<String, Value>;

/// Quantities that stand in their struct by value: written always, though a manifest may say nothing.
const BY_VALUE: &str = "divisor";

/// A pod with its defaults, told with what its manifest said.
pub(super) fn merged(mut pod: Object, manifest: &Value) -> Object {
    if let Some(manifest) = manifest.as_object() {
        overlay(&mut pod, manifest);
        default_requests(&mut pod, manifest);
    }
    pod
}

fn overlay(typed: &mut Object, written: &Object) {
    if !written.contains_key(BY_VALUE) {
        typed.remove(BY_VALUE);
    }
    for (name, own) in written {
        match typed.get_mut(name) {
            Some(known) => merge(known, own),
            None if is_empty(own) => {
                typed.insert(name.clone(), own.clone());
            }
            None => {}
        }
    }
}

fn merge(typed: &mut Value, written: &Value) {
    match (typed, written) {
        (Value::Object(typed), Value::Object(written)) => overlay(typed, written),
        (Value::Array(typed), Value::Array(written)) => {
            typed.iter_mut().zip(written).for_each(|(typed, written)| merge(typed, written));
        }
        (typed @ Value::Null, written) if is_empty(written) => *typed = written.clone(),
        // Defaults stand for texts that are empty.
        (Value::String(typed), Value::String(written)) if !written.is_empty() => typed.clone_from(written),
        (Value::String(typed), Value::Number(written)) => *typed = written.to_string(),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Object::is_empty)
}

/// Requests that were taken from limits have the text of those.
fn default_requests(pod: &mut Object, manifest: &Object) {
    for list in ["containers", "initContainers"] {
        let at = format!("/{list}");
        let Some(typed) = pod.get_mut("spec").and_then(|spec| spec.pointer_mut(&at)).and_then(Value::as_array_mut)
        else {
            continue;
        };
        for (index, container) in typed.iter_mut().enumerate() {
            let at = format!("/{list}/{index}/resources/requests");
            let stated = manifest.get("spec").and_then(|spec| spec.pointer(&at)).and_then(Value::as_object);
            if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
                take_limits(resources, stated);
            }
        }
    }
}

fn take_limits(resources: &mut Object, stated: Option<&Object>) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = resources.entry("requests").or_insert_with(|| Value::Object(Object::new()));
    let Some(requests) = requests.as_object_mut() else { return };
    for (name, limit) in limits {
        if !stated.is_some_and(|stated| stated.contains_key(&name)) {
            requests.insert(name, limit);
        }
    }
}
