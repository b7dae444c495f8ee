//! Validation of the conditions of webhooks and policies, their expressions included.

use std::collections::BTreeSet;

use admission_cel::Scope;
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::admissionregistration_v1::MatchCondition;

use super::expressions::{self, Stored};
use crate::field_rules;

/// As many conditions may stand beside each other.
const MAX_CONDITIONS: usize = 64;

/// Checks conditions: how many, that each says something, and that each has a name of its own.
pub(super) fn validate(
    path: &Path,
    conditions: &[MatchCondition],
    scope: Scope,
    stored: &Stored<'_>,
    errors: &mut ErrorList,
) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(path.too_many(conditions.len(), MAX_CONDITIONS));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let at = path.child("expression");
        if field_rules::required(&at, condition.expression.trim(), errors) {
            expressions::condition(&at, condition, scope, stored, errors);
        }
        let at = path.child("name");
        field_rules::named(&at, &condition.name, names::qualified_name, errors);
        if !condition.name.is_empty() && !seen.insert(condition.name.as_str()) {
            errors.push(at.duplicate(condition.name.as_str()));
        }
    }
}
