//! Rules of tolerations.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::Toleration;
use api_types::core_v1::constants::{taint_effect, toleration_operator};

use crate::integers;
use crate::taints::Comparing;

/// Whether any of them compares numbers (KEP-5471).
#[must_use]
pub fn compare_numbers(tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| matches!(toleration.operator.as_str(), "Lt" | "Gt"))
}

/// Checks a list of tolerations. What is stored may go on with numbers, whatever is on: that is for the caller to tell.
pub fn validate_tolerations(path: &Path, tolerations: &[Toleration], comparing: Comparing, errors: &mut ErrorList) {
    for (index, toleration) in tolerations.iter().enumerate() {
        validate(&path.index(index), toleration, comparing, errors);
    }
}

fn validate(path: &Path, toleration: &Toleration, comparing: Comparing, errors: &mut ErrorList) {
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
        "Gt" | "Lt" if comparing == Comparing::Numbers => {
            validate_number(&path.child("value"), &toleration.value, errors);
        }
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

/// What is compared is an integer in its plain form, and fits.
fn validate_number(path: &Path, value: &str, errors: &mut ErrorList) {
    errors.push_invalid(path, value, names::decimal_integer(value));
    if let Err(why) = integers::parse(value) {
        errors.push(path.invalid(value, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_where_that_is_on() {
        let check = |comparing, value: &str| {
            let own =
                Toleration { key: "k".into(), operator: "Gt".into(), value: value.into(), ..Toleration::default() };
            let mut errors = ErrorList::new();
            validate_tolerations(&Path::new("t"), &[own], comparing, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let refused =
            "t[0].operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\", \"Lt\", \"Gt\"";
        assert_eq!(check(Comparing::Texts, "950"), [refused]);
        let plain = |value: &str| {
            format!("t[0].value: Invalid value: {value:?}: must be a valid decimal integer in canonical form")
        };
        let parsed = |value: &str, why: &str| {
            format!("t[0].value: Invalid value: {value:?}: strconv.ParseInt: parsing {value:?}: {why}")
        };
        for (value, expected) in [
            ("950", vec![]),
            ("-5", vec![]),
            ("0950", vec![plain("0950")]),
            ("", vec!["t[0].value: Invalid value: \"\": must be non-empty".to_owned(), parsed("", "invalid syntax")]),
            ("9.5", vec![plain("9.5"), parsed("9.5", "invalid syntax")]),
            ("9223372036854775808", vec![parsed("9223372036854775808", "value out of range")]),
        ] {
            assert_eq!(check(Comparing::Numbers, value), expected, "{value:?}");
        }
    }
}
