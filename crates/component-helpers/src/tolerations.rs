//! Rules of tolerations.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::Toleration;
use api_types::core_v1::constants::{taint_effect, toleration_operator};

/// Checks a list of tolerations.
pub fn validate_tolerations(path: &Path, tolerations: &[Toleration], errors: &mut ErrorList) {
    for (index, toleration) in tolerations.iter().enumerate() {
        validate(&path.index(index), toleration, errors);
    }
}

fn validate(path: &Path, toleration: &Toleration, errors: &mut ErrorList) {
    let operator = || BadValue::named(&toleration.operator);
    let at = path.child("operator");
    if !toleration.key.is_empty() {
        errors.push_invalid(&path.child("key"), &toleration.key, names::qualified_name(&toleration.key));
    } else if toleration.operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(at.invalid(operator(), detail));
    }
    let effect = || BadValue::named(&toleration.effect);
    if toleration.toleration_seconds.is_some() && toleration.effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(path.child("effect").invalid(effect(), detail));
    }
    match toleration.operator.as_str() {
        "Equal" | "" => {
            let problems = names::label_value(&toleration.value);
            if !problems.is_empty() {
                errors.push(at.invalid(toleration.value.as_str(), problems.join(";")));
            }
        }
        "Exists" if !toleration.value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(at.invalid(toleration.value.as_str(), detail));
        }
        "Exists" => {}
        // Known, but behind a feature that is off; the list names them all the same.
        "Gt" | "Lt" => errors.push(at.not_supported_in_order(operator(), toleration_operator::ALL)),
        _ => {
            let known = [toleration_operator::EQUAL, toleration_operator::EXISTS];
            errors.push(at.not_supported_in_order(operator(), &known));
        }
    }
    if !toleration.effect.is_empty() && !taint_effect::ALL.contains(&toleration.effect.as_str()) {
        errors.push(path.child("effect").not_supported_in_order(effect(), taint_effect::ALL));
    }
}
