//! Who a binding is for.

use api_types::rbac_v1::Subject;

use crate::User;

/// Whether the subject of a binding in `namespace` (empty for the cluster) is the caller.
#[must_use]
pub fn matches(subject: &Subject, user: &User, namespace: &str) -> bool {
    match subject.kind.as_str() {
        "User" => user.name == subject.name,
        "Group" => user.in_group(&subject.name),
        "ServiceAccount" => {
            let home = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
            let rest = user.name.strip_prefix("system:serviceaccount:");
            !home.is_empty() && rest.and_then(|rest| rest.split_once(':')) == Some((home, subject.name.as_str()))
        }
        _ => false,
    }
}

/// The subject as reasons name it.
#[must_use]
pub fn describe(subject: &Subject, namespace: &str) -> String {
    if subject.kind != "ServiceAccount" {
        return format!("{} {:?}", subject.kind, subject.name);
    }
    let home = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
    format!("ServiceAccount {:?}", format!("{}/{home}", subject.name))
}
