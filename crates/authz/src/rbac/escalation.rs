//! Nobody grants what they do not hold: the checks on writes of roles and bindings.

use std::collections::{BTreeMap, BTreeSet};

use api_types::rbac_v1::{PolicyRule, RoleRef};

use super::{Rbac, RoleSource, covers, is_cluster_admin};

use crate::{Attributes, Authorizer, Decision, aggregate, in_group};

/// Why a write of a role or binding was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EscalationError {
    /// The caller would grant what it does not hold; the text lists it.
    #[error("{0}")]
    Forbidden(String),
    /// The role of this name that a binding refers to does not exist.
    #[error("{0:?} not found")]
    RoleNotFound(String),
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
/// the one that it refers to.
pub async fn may_grant(authorizer: &dyn Authorizer, write: &Attributes, granting: Granting<'_>) -> bool {
    let asked = match granting {
        Granting::Rules(_) | Granting::Aggregated(_) => Attributes { verb: "escalate".into(), ..write.clone() },
        Granting::Role(role) => Attributes {
            verb: "bind".into(),
            resource: if role.kind == "Role" { "roles".into() } else { "clusterroles".into() },
            name: role.name.clone(),
            ..write.clone()
        },
    };
    in_group(&write.user, "system:masters") || authorizer.authorize(&asked).await.decision == Decision::Allow
}

/// Checks that the caller of `write` holds what it grants, in the namespace of the write; empty for the cluster.
///
/// # Errors
/// When it does not, or there is no such role.
pub fn holds<S: RoleSource>(rbac: &Rbac<S>, write: &Attributes, granting: Granting<'_>) -> Result<(), EscalationError> {
    let (owned, errors) = rbac.rules_of(&write.user, &write.namespace);
    let missing = match granting {
        Granting::Aggregated(_) if !is_cluster_admin(&owned) => {
            let text = "must have cluster-admin privileges to use the aggregationRule";
            return Err(EscalationError::Forbidden(text.to_owned()));
        }
        Granting::Rules(rules) | Granting::Aggregated(rules) => covers(&owned, rules),
        Granting::Role(role) => {
            let referred = rbac.rules_of_reference(role, &write.namespace);
            covers(&owned, &referred.map_err(|_| EscalationError::RoleNotFound(role.name.clone()))?)
        }
    };
    if missing.is_empty() { Ok(()) } else { Err(EscalationError::Forbidden(refusal(write, &missing, errors))) }
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
