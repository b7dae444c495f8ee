//! Rules of the annotations of nodes that once stood for fields.

use std::collections::BTreeMap;

use api_machinery::field_path::{ErrorList, Path};
use api_types::core_v1::Taint;
use serde_json::Value;

use super::node_validation::validate_taints;
use crate::go_json;

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Checks what the annotations of a node say.
pub(super) fn validate(annotations: &BTreeMap<String, String>, errors: &mut ErrorList) {
    let path = Path::new("metadata").child("annotations");
    if let Some(text) = annotations.get(TAINTS).filter(|text| !text.is_empty()) {
        match taints(text) {
            Ok(taints) => validate_taints(&path.child(TAINTS), &taints, errors),
            Err(problem) => errors.push(path.invalid(TAINTS, problem)),
        }
    }
    let Some(text) = annotations.get(AVOID_PODS).filter(|text| !text.is_empty()) else { return };
    match go_json::value(text) {
        Err(problem) => errors.push(path.child("AvoidPods").invalid(AVOID_PODS, problem)),
        Ok(avoided) => validate_avoided(&path.child(AVOID_PODS), &avoided, errors),
    }
}

fn taints(text: &str) -> Result<Vec<Taint>, String> {
    let items = go_json::list(text, "core.Taint")?;
    let taint = |value: &Value| {
        let mut taint = Taint::default();
        let read = api_machinery::value::from_value(value, &mut taint);
        read.map(|_| taint).map_err(|problem| problem.to_string())
    };
    items.iter().map(taint).collect()
}

/// Pods are avoided by their controller.
fn validate_avoided(path: &Path, avoided: &Value, errors: &mut ErrorList) {
    let entries = avoided.get("preferAvoidPods").and_then(Value::as_array);
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let path = path.index(index).child("PodSignature");
        let controller = entry.get("podSignature").and_then(|signature| signature.get("podController"));
        let Some(controller) = controller.filter(|controller| !controller.is_null()) else {
            errors.push(path.required(""));
            continue;
        };
        if controller.get("controller").and_then(Value::as_bool) != Some(true) {
            let at = path.child("PodController").child("Controller");
            errors.push(at.invalid(false, "must point to a controller"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_that_stand_for_fields() {
        for (key, text, expected) in [
            (TAINTS, r#"[{"key":"a","effect":"NoSchedule"}]"#, &[][..]),
            (
                TAINTS,
                r#"[{"key":"a"}]"#,
                &["metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Required value"],
            ),
            (AVOID_PODS, r#"{"preferAvoidPods":[{"podSignature":{"podController":{"controller":true}}}]}"#, &[]),
            (
                AVOID_PODS,
                r#"{"preferAvoidPods":[{},{"podSignature":{"podController":{}}}]}"#,
                &[
                    "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value",
                    "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[1].PodSignature.PodController.\
                     Controller: Invalid value: false: must point to a controller",
                ],
            ),
        ] {
            let mut errors = ErrorList::new();
            validate(&BTreeMap::from([(key.to_owned(), text.to_owned())]), &mut errors);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{text}");
        }
        let mut errors = ErrorList::new();
        validate(&BTreeMap::from([(AVOID_PODS.to_owned(), "{".to_owned())]), &mut errors);
        let expected = "metadata.annotations.AvoidPods: Invalid value: \"scheduler.alpha.kubernetes.io/preferAvoidPods\": \
                        unexpected end of JSON input";
        assert_eq!(errors.to_string(), expected);
    }
}
