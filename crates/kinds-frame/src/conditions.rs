//! Rules of the conditions that newer kinds have, each with a reason and a time.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::meta::Condition;
use api_machinery::names;

use crate::field_rules as rules;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON_MAX_BYTES: usize = 1024;
const MESSAGE_MAX_BYTES: usize = 32_768;

/// Checks a list of conditions.
pub fn validate(path: &Path, conditions: &[Condition], errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = path.index(index);
        if !seen.insert(condition.type_.as_str()) {
            errors.push(at.child("type").duplicate(condition.type_.as_str()));
        }
        validate_one(&at, condition, errors);
    }
}

fn validate_one(path: &Path, condition: &Condition, errors: &mut ErrorList) {
    errors.push_invalid(&path.child("type"), &condition.type_, names::qualified_name(&condition.type_));
    if !STATUSES.contains(&condition.status.as_str()) {
        errors.push(path.child("status").not_supported(BadValue::named(&condition.status), &STATUSES));
    }
    if condition.observed_generation < 0 {
        let at = path.child("observedGeneration");
        errors.push(at.invalid(condition.observed_generation, "must be greater than or equal to zero"));
    }
    if condition.last_transition_time.is_zero() {
        errors.push(path.child("lastTransitionTime").required(""));
    }
    let at = path.child("reason");
    if rules::required(&at, &condition.reason, errors) {
        errors.push_invalid(&at, &condition.reason, names::condition_reason(&condition.reason));
        if condition.reason.len() > REASON_MAX_BYTES {
            errors.push(at.too_long(REASON_MAX_BYTES));
        }
    }
    if condition.message.len() > MESSAGE_MAX_BYTES {
        errors.push(path.child("message").too_long(MESSAGE_MAX_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;

    use super::*;

    #[test]
    fn conditions_say_what_why_and_since_when() {
        let good = Condition {
            type_: "Ready".into(),
            status: "True".into(),
            reason: "AllWell".into(),
            last_transition_time: Time::from_unix_seconds(1),
            ..Condition::default()
        };
        let bad = Condition { status: "Maybe".into(), observed_generation: -1, reason: "a b".into(), ..good.clone() };
        let mut errors = ErrorList::new();
        validate(
            &Path::new("c"),
            &[good.clone(), bad, Condition { type_: "Other".into(), ..Condition::default() }],
            &mut errors,
        );
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let expected = [
            "c[1].type: Duplicate value: \"Ready\"",
            "c[1].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"",
            "c[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
            "c[1].reason: Invalid value: \"a b\": a condition reason must start with",
            "c[2].status: Unsupported value: \"\": supported values: \"False\", \"True\", \"Unknown\"",
            "c[2].lastTransitionTime: Required value",
            "c[2].reason: Required value",
        ];
        assert_eq!(texts.len(), expected.len(), "{texts:?}");
        for (text, expected) in texts.iter().zip(expected) {
            assert!(text.starts_with(expected), "{text}");
        }
    }
}
