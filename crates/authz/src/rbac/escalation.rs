//! Nobody grants what they do not hold: the checks on writes of roles and bindings.

use std::collections::{BTreeMap, BTreeSet};

use api_types::rbac_v1::{PolicyRule, RoleRef};

use super::{Rbac, RoleSource, covers};
use api_types::authentication_v1::UserInfo;

use crate::{Attributes, Authorizer, Decision, aggregate, in_group};

/// Why a write of a role or binding was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EscalationError {
    /// The caller would grant what it does not hold; the text lists it.
    #[error("{0}")]
    Forbidden(String),
    /// The role that a binding refers to does not exist.
    #[error("{0} {1:?} not found")]
    RoleNotFound(&'static str, String),
}

/// Checks that `user` may write a role with these rules: it may `escalate` the role, or holds them all.
///
/// # Errors
/// When it may not.
pub async fn check_rules<S: RoleSource>(
    rbac: &Rbac<S>,
    authorizer: &dyn Authorizer,
    escalate: &Attributes,
    rules: &[PolicyRule],
) -> Result<(), EscalationError> {
    if may_escalate(authorizer, escalate).await {
        return Ok(());
    }
    holds_all(rbac, escalate, rules)
}

/// Checks that `user` may write a binding to `role`: it may `bind` the role, or holds all its rules. `binding` are the
/// attributes of the write.
///
/// # Errors
/// When it may not, or there is no such role.
pub async fn check_binding<S: RoleSource>(
    rbac: &Rbac<S>,
    authorizer: &dyn Authorizer,
    binding: &Attributes,
    role: &RoleRef,
) -> Result<(), EscalationError> {
    let bind = Attributes {
        verb: "bind".into(),
        resource: if role.kind == "Role" { "roles".into() } else { "clusterroles".into() },
        name: role.name.clone(),
        ..binding.clone()
    };
    if is_superuser(&binding.user) || authorizer.authorize(&bind).await.decision == Decision::Allow {
        return Ok(());
    }
    let resource = if role.kind == "Role" { "roles" } else { "clusterroles" };
    let missing = |_| EscalationError::RoleNotFound(resource, role.name.clone());
    let rules = rbac.rules_of_reference(role, &binding.namespace).map_err(missing)?;
    holds_all(rbac, binding, &rules)
}

/// Whether the caller may write any rules into the role that `write` is about, whatever it holds itself.
pub async fn may_escalate(authorizer: &dyn Authorizer, write: &Attributes) -> bool {
    let escalate = Attributes { verb: "escalate".into(), ..write.clone() };
    is_superuser(&write.user) || authorizer.authorize(&escalate).await.decision == Decision::Allow
}

fn is_superuser(user: &UserInfo) -> bool {
    in_group(user, "system:masters")
}

/// Checks that the user of a write holds all these rules in its namespace, empty for the cluster. Roles that are missing
/// are told as of the resource that is written: upstream reads them on behalf of that request.
///
/// # Errors
/// When it does not; the text lists what is missing.
pub fn holds_all<S: RoleSource>(
    rbac: &Rbac<S>,
    write: &Attributes,
    rules: &[PolicyRule],
) -> Result<(), EscalationError> {
    let user = &write.user;
    let (owned, errors) = rbac.rules_of(user, &write.namespace);
    let missing = covers(&owned, rules);
    if missing.is_empty() {
        return Ok(());
    }
    let mut text = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.username,
        quoted(&user.groups),
        compact(&missing).join("\n")
    );
    if !errors.is_empty() {
        text.push_str(&format!("; resolution errors: [{}]", aggregate(named_by(errors, &write.resource))));
    }
    Err(EscalationError::Forbidden(text))
}

/// Errors about roles that are missing, with the resource of a request.
fn named_by(errors: Vec<String>, resource: &str) -> Vec<String> {
    let named = |error: String| match error.split_once('.') {
        Some(("role" | "clusterrole", rest)) => format!("{resource}.{rest}"),
        _ => error,
    };
    errors.into_iter().map(named).collect()
}

/// The rules as sorted lines, those about one resource that differ only in the verb in one.
fn compact(missing: &[PolicyRule]) -> Vec<String> {
    let mut lines = BTreeSet::new();
    let mut of_resources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in missing {
        if !rule.non_resource_urls.is_empty() {
            let (urls, verbs) = (quoted(&rule.non_resource_urls), quoted(&rule.verbs));
            lines.insert(format!("{{NonResourceURLs:{urls}, Verbs:{verbs}}}"));
            continue;
        }
        let mut key = format!("{{APIGroups:{}, Resources:{}", quoted(&rule.api_groups), quoted(&rule.resources));
        if !rule.resource_names.is_empty() {
            key.push_str(&format!(", ResourceNames:{}", quoted(&rule.resource_names)));
        }
        let verbs = of_resources.entry(key).or_default();
        for verb in &rule.verbs {
            if !verbs.contains(verb) {
                verbs.push(verb.clone());
            }
        }
    }
    lines.extend(of_resources.into_iter().map(|(key, verbs)| format!("{key}, Verbs:{}}}", quoted(&verbs))));
    lines.into_iter().collect()
}

/// A list as Go's `%q` writes it.
fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|item| format!("{item:?}")).collect();
    format!("[{}]", items.join(" "))
}
