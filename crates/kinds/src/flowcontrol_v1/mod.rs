//! The kinds of flowcontrol.apiserver.k8s.io/v1.

mod flow_schema;
mod policy_rules;
mod priority_level_configuration;
#[cfg(test)]
mod tests;

use api_machinery::field_path::{ErrorList, Path};

use crate::field_rules;
use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<flow_schema::FlowSchemaRules>::new(),
    &Typed::<priority_level_configuration::PriorityLevelConfigurationRules>::new(),
];

/// Checks that conditions have types, and each its own.
fn validate_conditions<'a>(types: impl Iterator<Item = &'a str>, errors: &mut ErrorList) {
    let path = Path::new("status").child("conditions");
    let mut seen = std::collections::BTreeSet::new();
    for (index, type_) in types.enumerate() {
        let at = path.index(index).child("type");
        if !seen.insert(type_) {
            errors.push(at.duplicate(type_));
        }
        field_rules::required(&at, type_, errors);
    }
}
