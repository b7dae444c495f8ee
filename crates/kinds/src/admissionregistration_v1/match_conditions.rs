//! Validation of the conditions of webhooks and policies.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::admissionregistration_v1::MatchCondition;

use crate::field_rules;

/// As many conditions may stand beside each other.
const MAX_CONDITIONS: usize = 64;

/// Checks conditions: how many, that each says something, and that each has a name of its own.
pub(super) fn validate(path: &Path, conditions: &[MatchCondition], errors: &mut ErrorList) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(path.too_many(conditions.len(), MAX_CONDITIONS));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        field_rules::required(&path.child("expression"), condition.expression.trim(), errors);
        let at = path.child("name");
        field_rules::named(&at, &condition.name, names::qualified_name, errors);
        if !condition.name.is_empty() && !seen.insert(condition.name.as_str()) {
            errors.push(at.duplicate(condition.name.as_str()));
        }
    }
}
