//! Nobody grants what they do not hold: the checks on writes of roles and bindings.

use std::collections::{BTreeMap, BTreeSet};

use api_types::rbac_v1::{PolicyRule, RoleRef};

use super::{Rbac, RoleSource, covers, is_cluster_admin};

use crate::{Attributes, Authorizer, Decision, aggregate, in_group};

/// The kinds that a binding may refer to.
const ROLE: &str = "Role";
const CLUSTER_ROLE: &str = "ClusterRole";

/// Why a write of a role or binding was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EscalationError {
    /// The caller would grant what it does not hold; the text lists it.
    #[error("{0}")]
    Forbidden(String),
    /// The role of this name that a binding refers to does not exist.
    #[error("{0:?} not found")]
    RoleNotFound(String),
    /// A binding of the cluster refers to a role of a namespace.
    #[error("Namespace parameter required.")]
    NoNamespace,
    /// A binding refers to something of this kind, which is none of roles.
    #[error("unsupported role reference kind: {0:?}")]
    UnknownKind(String),
}

/// What a write of a role or binding hands out.
#[derive(Debug, Clone, Copy)]
pub enum Granting<'a> {
    /// These rules.
    Rules(&'a [PolicyRule]),
    /// These, and those of other roles as they come and go: only who holds everything may have them gathered.
    Aggregated(&'a [PolicyRule]),
    /// The rules of a role.
    Role(&'a RoleRef),
}

/// Whether the caller of `write` may grant whatever it holds itself: it may `escalate` the role that it writes, or `bind`
/// the one that it refers to. A role is known by the name in the request's path, which has none where one is created.
pub async fn may_grant(authorizer: &dyn Authorizer, write: &Attributes, granting: Granting<'_>) -> bool {
    if in_group(&write.user, "system:masters") {
        return true;
    }
    let asked = |verb: &str| Attributes { verb: verb.into(), version: "*".into(), ..write.clone() };
    let asked = match granting {
        Granting::Rules(_) | Granting::Aggregated(_) => asked("escalate"),
        Granting::Role(role) => {
            let resource = match role.kind.as_str() {
                ROLE => "roles",
                CLUSTER_ROLE => "clusterroles",
                _ => return false,
            };
            let (group, name) = (role.api_group.clone(), role.name.clone());
            Attributes { group, resource: resource.into(), name, ..asked("bind") }
        }
    };
    authorizer.authorize(&asked).await.decision == Decision::Allow
}

/// Checks that the caller of `write` holds what it grants, in the namespace of the write; empty for the cluster.
///
/// # Errors
/// When it does not, or there is no such role.
pub fn holds<S: RoleSource>(rbac: &Rbac<S>, write: &Attributes, granting: Granting<'_>) -> Result<(), EscalationError> {
    let (owned, errors) = rbac.rules_of(&write.user, &write.namespace);
    let missing = match granting {
        Granting::Rules(rules) | Granting::Aggregated(rules) => covers(&owned, rules),
        Granting::Role(role) => covers(&owned, &referred(rbac, role, &write.namespace)?),
    };
    if !missing.is_empty() {
        return Err(EscalationError::Forbidden(refusal(write, &missing, errors)));
    }
    if matches!(granting, Granting::Aggregated(_)) && !is_cluster_admin(&owned) {
        let text = "must have cluster-admin privileges to use the aggregationRule";
        return Err(EscalationError::Forbidden(text.to_owned()));
    }
    Ok(())
}

/// The rules of the role that a binding refers to; of the cluster where there is no namespace.
fn referred<S: RoleSource>(
    rbac: &Rbac<S>,
    role: &RoleRef,
    namespace: &str,
) -> Result<Vec<PolicyRule>, EscalationError> {
    match role.kind.as_str() {
        ROLE if namespace.is_empty() => return Err(EscalationError::NoNamespace),
        ROLE | CLUSTER_ROLE => {}
        kind => return Err(EscalationError::UnknownKind(kind.to_owned())),
    }
    rbac.rules_of_reference(role, namespace).map_err(|_| EscalationError::RoleNotFound(role.name.clone()))
}

/// Tells what is missing, and which roles could not be found. These are told as of the resource that is written: upstream
/// reads them on behalf of that request.
fn refusal(write: &Attributes, missing: &[PolicyRule], errors: Vec<String>) -> String {
    let mut text = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        write.user.username,
        quoted(&write.user.groups),
        compact(missing).join("\n")
    );
    if !errors.is_empty() {
        text.push_str(&format!("; resolution errors: [{}]", aggregate(named_by(errors, &write.resource))));
    }
    text
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
