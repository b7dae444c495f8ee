//! Holds a policy's expressions against the types that it is about.

use admission_cel::{Composition, KnownType, Origin, Scope};
use api_machinery::gvk::GroupVersionKind;
use api_types::admissionregistration_v1::{ExpressionWarning, ValidatingAdmissionPolicySpec};

/// What does not fit: one warning for each expression, with a part for each kind that it does not fit.
pub(super) fn warnings(
    spec: &ValidatingAdmissionPolicySpec,
    kinds: &[(GroupVersionKind, KnownType)],
    params: Option<&KnownType>,
) -> Vec<ExpressionWarning> {
    let scope = Scope { params: spec.param_kind.is_some(), authorizer: true, patches: false };
    let typed = |(kind, object): &(GroupVersionKind, KnownType)| {
        let mut composition = Composition::typed(scope, Origin::Stored, object, params);
        for variable in &spec.variables {
            // One that does not fit says so where it is used.
            composition.add(&variable.name, &variable.expression).ok();
        }
        (format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind), composition)
    };
    let typed: Vec<(String, Composition)> = kinds.iter().map(typed).collect();
    let check = |field_ref: String, expression: &str| {
        let of_kind = |(kind, composition): &(String, Composition)| {
            composition.issues(expression).map(|issues| format!("{kind}: {issues}\n"))
        };
        let told: Vec<String> = typed.iter().filter_map(of_kind).collect();
        (!told.is_empty()).then(|| ExpressionWarning { field_ref, warning: told.join("\n") })
    };
    let mut found = Vec::new();
    for (index, validation) in spec.validations.iter().enumerate() {
        let place = |field: &str| format!("spec.validations[{index}].{field}");
        found.extend(check(place("expression"), &validation.expression));
        if !validation.message_expression.is_empty() {
            found.extend(check(place("messageExpression"), &validation.message_expression));
        }
    }
    found
}
