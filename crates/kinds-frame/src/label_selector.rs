//! Validation of label selectors, as pods, workloads, policies and claims hold them.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::LabelSelector;
use api_machinery::names;

/// How the values of expressions are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Every value must be a label value.
    Checked,
    /// The stored object has a bad one already, so they are not looked at.
    AsStored,
}

/// Appends what is wrong with a selector.
pub fn validate(path: &Path, selector: &LabelSelector, values: Values, errors: &mut ErrorList) {
    errors.extend(names::labels(&path.child("matchLabels"), &selector.match_labels));
    for (index, requirement) in selector.match_expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        match requirement.operator.as_str() {
            "In" | "NotIn" if requirement.values.is_empty() => {
                errors.push(path.child("values").required("must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if !requirement.values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(path.child("values").forbidden(detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(
                path.child("operator")
                    .invalid(api_machinery::field_path::BadValue::named(other), "not a valid selector operator"),
            ),
        }
        errors.push_invalid(&path.child("key"), &requirement.key, names::qualified_name(&requirement.key));
        if values == Values::Checked {
            for (at, value) in requirement.values.iter().enumerate() {
                errors.push_invalid(&path.child("values").index(at), value, names::label_value(value));
            }
        }
    }
}

/// Whether anything is wrong with a stored selector, so that rules are loosened for the object.
pub fn is_bad(selector: &LabelSelector) -> bool {
    let mut errors = ErrorList::new();
    validate(&Path::nil(), selector, Values::Checked, &mut errors);
    !errors.is_empty()
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::LabelSelectorRequirement;

    use super::*;

    #[test]
    fn operators_and_values_must_fit() {
        for (operator, values, expected) in [
            ("In", &["a"][..], ""),
            (
                "In",
                &[],
                "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
            ("In", &["-"], "s.matchExpressions[0].values[0]: Invalid value: \"-\""),
            ("Exists", &["a"], "s.matchExpressions[0].values: Forbidden"),
            ("Near", &[], "s.matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator"),
        ] {
            let requirement = LabelSelectorRequirement {
                key: "app".into(),
                operator: operator.into(),
                values: values.iter().map(ToString::to_string).collect(),
            };
            let selector = LabelSelector { match_expressions: vec![requirement], ..LabelSelector::default() };
            let mut errors = ErrorList::new();
            validate(&Path::new("s"), &selector, Values::Checked, &mut errors);
            let text = if errors.is_empty() { String::new() } else { errors.to_string() };
            assert!(text.starts_with(expected) && text.is_empty() == expected.is_empty(), "{operator}: {text}");
            assert_eq!(is_bad(&selector), !expected.is_empty());
        }
    }
}
