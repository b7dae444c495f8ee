//! The kinds of rbac.authorization.k8s.io/v1.

mod cluster_role;
mod cluster_role_binding;
mod first_form;
mod role;
mod role_binding;
mod validation;

use api_machinery::value::Value;
use api_types::rbac_v1::{GROUP, RoleRef, Subject};

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<cluster_role_binding::ClusterRoleBindingRules>::new(),
    &Typed::<cluster_role::ClusterRoleRules>::new(),
    &Typed::<role_binding::RoleBindingRules>::new(),
    &Typed::<role::RoleRules>::new(),
];

/// Subjects that name no group get the usual one of their kind.
fn set_binding_defaults(role: &mut RoleRef, subjects: &mut [Subject]) {
    if role.api_group.is_empty() {
        role.api_group = GROUP.into();
    }
    for subject in subjects.iter_mut().filter(|subject| subject.api_group.is_empty()) {
        if matches!(subject.kind.as_str(), "User" | "Group") {
            subject.api_group = GROUP.into();
        }
    }
}

/// The role that a binding gives.
fn role(role: &RoleRef) -> Value {
    format!("{}/{}", role.kind, role.name).into()
}

/// The names of the subjects of a kind.
fn subjects_of(subjects: &[Subject], kind: &str) -> Value {
    let name = |subject: &Subject| match kind {
        "ServiceAccount" => format!("{}/{}", subject.namespace, subject.name),
        _ => subject.name.clone(),
    };
    let names: Vec<String> = subjects.iter().filter(|subject| subject.kind == kind).map(name).collect();
    names.join(", ").into()
}
