//! The conditions of definitions.

use api_machinery::time::Time;
use api_types::apiextensions_v1::{CustomResourceDefinition, CustomResourceDefinitionCondition};

/// Whether a condition is true.
pub(super) fn is_true(definition: &CustomResourceDefinition, type_: &str) -> bool {
    definition.status.conditions.iter().any(|own| own.type_ == type_ && own.status == "True")
}

/// Takes a condition away.
pub(super) fn remove(definition: &mut CustomResourceDefinition, type_: &str) {
    definition.status.conditions.retain(|own| own.type_ != type_);
}

/// Sets a condition; the time changes with the status only.
pub(super) fn set(
    definition: &mut CustomResourceDefinition,
    (type_, is_true): (&str, bool),
    (reason, message): (&str, &str),
    now: Time,
) {
    let status = if is_true { "True" } else { "False" };
    let conditions = &mut definition.status.conditions;
    let mut next = CustomResourceDefinitionCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        last_transition_time: now,
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..CustomResourceDefinitionCondition::default()
    };
    match conditions.iter_mut().find(|own| own.type_ == type_) {
        Some(own) => {
            if own.status == next.status {
                next.last_transition_time = own.last_transition_time;
            }
            *own = next;
        }
        None => conditions.push(next),
    }
}
