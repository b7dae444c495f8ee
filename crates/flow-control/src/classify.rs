//! Which schema a request falls under, and to which of its flows it belongs.

use std::sync::Arc;

use api_types::flowcontrol_v1::constants::{flow_distinguisher_method_type as method, subject_kind};
use api_types::flowcontrol_v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, ServiceAccountSubject, Subject,
};

use crate::level::Level;
use crate::shuffle::flow_hash;

const ANY: &str = "*";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// What a request asks for, and who asks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The user's groups.
    pub groups: &'a [String],
    /// The verb of the API, or the method in lower case.
    pub verb: &'a str,
    /// The path, for requests that are not for a resource.
    pub path: &'a str,
    /// The resource, for those that are.
    pub resource: Option<AskedResource<'a>>,
}

/// The resource that a request asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskedResource<'a> {
    /// Its API group.
    pub group: &'a str,
    /// Its plural name.
    pub resource: &'a str,
    /// Its subresource; usually empty.
    pub subresource: &'a str,
    /// The namespace; empty for cluster scope and for all namespaces.
    pub namespace: &'a str,
}

/// The flow of a request.
#[derive(Debug)]
pub struct Flow<'a, T> {
    /// The place of the schema in the table.
    pub index: usize,
    /// The schema that matches.
    pub schema: &'a Arc<Schema<T>>,
    /// What tells it from others of the schema.
    pub distinguisher: &'a str,
}

impl<T> Flow<'_, T> {
    /// What the flow hashes to; zero where nobody looks at it.
    #[must_use]
    pub fn hash(&self) -> u64 {
        if self.schema.shuffles { flow_hash(&self.schema.name, self.distinguisher) } else { 0 }
    }
}

/// A schema whose level is there.
#[derive(Debug)]
pub struct Schema<T> {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid; empty where nobody has written the object yet.
    pub uid: String,
    /// The level of its requests.
    pub level: Arc<Level<T>>,
    /// The uid of the level's object; empty where nobody has written it yet.
    pub level_uid: String,
    /// Whether the level has several queues.
    pub(crate) shuffles: bool,
    pub(crate) object: Arc<FlowSchema>,
}

impl<T> Schema<T> {
    fn matches(&self, asked: &Asked<'_>) -> bool {
        self.object.spec.rules.iter().any(|rule| rule_matches(rule, asked))
    }

    /// What tells the flow of a request from others of the schema.
    #[must_use]
    pub fn distinguisher<'a>(&self, asked: &Asked<'a>) -> &'a str {
        match self.object.spec.distinguisher_method.as_ref().map(|own| own.type_.as_str()) {
            Some(method::BY_USER) => asked.user,
            Some(method::BY_NAMESPACE) => asked.resource.map_or("", |resource| resource.namespace),
            _ => "",
        }
    }
}

/// All schemas, in the order in which they are tried.
#[derive(Debug)]
pub struct Table<T> {
    pub(crate) schemas: Vec<Arc<Schema<T>>>,
}

impl<T> Table<T> {
    /// The flow of a request; nothing only where the table is empty. What matches no schema is of the last one.
    #[must_use]
    pub fn classify<'a>(&'a self, asked: &Asked<'a>) -> Option<Flow<'a, T>> {
        let matching = self.schemas.iter().position(|schema| schema.matches(asked));
        let catch_all = || self.schemas.iter().position(|schema| crate::is_catch_all(&schema.name));
        let index = matching.or_else(catch_all)?;
        let schema = self.schemas.get(index)?;
        Some(Flow { index, schema, distinguisher: schema.distinguisher(asked) })
    }

    /// The schemas, in the order in which they are tried.
    #[must_use]
    pub fn schemas(&self) -> &[Arc<Schema<T>>] {
        &self.schemas
    }
}

fn rule_matches(rule: &PolicyRulesWithSubjects, asked: &Asked<'_>) -> bool {
    rule.subjects.iter().any(|subject| subject_matches(subject, asked))
        && match &asked.resource {
            Some(resource) => rule.resource_rules.iter().any(|rule| resource_matches(rule, asked.verb, resource)),
            None => rule.non_resource_rules.iter().any(|rule| path_matches(rule, asked)),
        }
}

fn subject_matches(subject: &Subject, asked: &Asked<'_>) -> bool {
    match subject.kind.as_str() {
        subject_kind::USER => subject.user.as_ref().is_some_and(|user| user.name == ANY || user.name == asked.user),
        subject_kind::GROUP => {
            subject.group.as_ref().is_some_and(|group| group.name == ANY || asked.groups.contains(&group.name))
        }
        subject_kind::SERVICE_ACCOUNT => {
            subject.service_account.as_ref().is_some_and(|account| is_account(account, asked.user))
        }
        _ => false,
    }
}

fn is_account(account: &ServiceAccountSubject, user: &str) -> bool {
    let place = user.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
    place.is_some_and(|(namespace, name)| {
        namespace == account.namespace && (account.name == ANY || account.name == name)
    })
}

/// Whether a list has a value, or stands for all. Among others the star is nothing but itself.
fn has(list: &[String], value: &str) -> bool {
    stands_for_all(list) || list.iter().any(|own| own == value)
}

fn stands_for_all(list: &[String]) -> bool {
    matches!(list, [only] if only == ANY)
}

fn resource_matches(rule: &ResourcePolicyRule, verb: &str, asked: &AskedResource<'_>) -> bool {
    let has_resource = stands_for_all(&rule.resources)
        || rule.resources.iter().any(|own| match own.split_once('/') {
            None => asked.subresource.is_empty() && own == asked.resource,
            Some((resource, subresource)) => resource == asked.resource && subresource == asked.subresource,
        });
    let has_scope =
        if asked.namespace.is_empty() { rule.cluster_scope } else { has(&rule.namespaces, asked.namespace) };
    has_resource && has_scope && has(&rule.verbs, verb) && has(&rule.api_groups, asked.group)
}

fn path_matches(rule: &NonResourcePolicyRule, asked: &Asked<'_>) -> bool {
    has(&rule.verbs, asked.verb) && rule.non_resource_urls.iter().any(|own| is_below(own, asked.path))
}

/// Whether a path is what an entry says, or is below it.
fn is_below(entry: &str, path: &str) -> bool {
    let prefix = entry.strip_suffix('*').unwrap_or(entry);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    entry == ANY || entry == path || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_what_is_below_them() {
        for (entry, path, expected) in [
            ("*", "/x", true),
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/ping", true),
            ("/healthz", "/healthzy", false),
            ("/foo/*", "/foo/bar", true),
            ("/foo*", "/foo/bar", true),
            ("/foo*", "/foobar", false),
            ("/foo/*", "/foo", false),
        ] {
            assert_eq!(is_below(entry, path), expected, "{entry} {path}");
        }
    }

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    }

    #[test]
    fn resources_match_by_all_parts() {
        let rule = |verbs: &[&str], resources: &[&str], cluster_scope, namespaces: &[&str]| ResourcePolicyRule {
            verbs: texts(verbs),
            api_groups: texts(&["apps"]),
            resources: texts(resources),
            cluster_scope,
            namespaces: texts(namespaces),
        };
        let asked =
            |resource, subresource, namespace| AskedResource { group: "apps", resource, subresource, namespace };
        let all: &[&str] = &["*"];
        for (name, rule, asked, expected) in [
            ("by name", rule(&["get"], &["deployments"], false, &["n"]), asked("deployments", "", "n"), true),
            ("another verb", rule(&["list"], &["deployments"], false, &["n"]), asked("deployments", "", "n"), false),
            ("a star among others", rule(&["*", "list"], all, true, all), asked("deployments", "", "n"), false),
            ("a subresource", rule(all, &["deployments"], true, all), asked("deployments", "scale", "n"), false),
            ("by its subresource", rule(all, &["a/scale"], true, all), asked("a", "scale", "n"), true),
            ("any subresource", rule(all, all, true, all), asked("deployments", "scale", "n"), true),
            ("no namespace", rule(all, all, false, all), asked("deployments", "", ""), false),
            ("cluster scope", rule(all, all, true, &[]), asked("deployments", "", ""), true),
            ("cluster scope only", rule(all, all, true, &[]), asked("deployments", "", "n"), false),
        ] {
            assert_eq!(resource_matches(&rule, "get", &asked), expected, "{name}");
        }
        let core = AskedResource { group: "", resource: "pods", subresource: "", namespace: "n" };
        assert!(!resource_matches(&rule(all, all, true, all), "get", &core), "another group");
    }

    #[test]
    fn accounts_match_by_namespace() {
        for (namespace, name, user, expected) in [
            ("n", "a", "system:serviceaccount:n:a", true),
            ("n", "*", "system:serviceaccount:n:b", true),
            ("n", "*", "system:serviceaccount:n2:b", false),
            ("n", "a", "n:a", false),
        ] {
            let account = ServiceAccountSubject { namespace: namespace.into(), name: name.into() };
            assert_eq!(is_account(&account, user), expected, "{namespace}/{name} {user}");
        }
    }
}
