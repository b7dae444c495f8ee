//! Who a binding is for.

use api_types::rbac_v1::Subject;

use api_types::authentication_v1::UserInfo;

use crate::in_group;

/// Whether the subject of a binding in `namespace` (empty for the cluster) is the caller.
#[must_use]
pub fn matches(subject: &Subject, user: &UserInfo, namespace: &str) -> bool {
    match subject.kind.as_str() {
        "User" => user.username == subject.name,
        "Group" => in_group(user, &subject.name),
        "ServiceAccount" => {
            let home = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
            let rest = user.username.strip_prefix("system:serviceaccount:");
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
