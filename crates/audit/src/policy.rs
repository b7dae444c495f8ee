//! `--audit-policy-file`: how much is told of which requests. The first rule that fits decides.

use std::path::Path;
use std::sync::Arc;

use api_machinery::json;
use api_types::audit_v1::{self, GroupResources, PolicyRule};
use api_types::authentication_v1::UserInfo;
use component_base::config_file;

use crate::event::{Stage, Target};

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

/// Why a policy cannot be used; the text names the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

/// How much is told of a request, the least first. The policy's `None` is no level: nothing is told then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Who, what and what came of it.
    Metadata,
    /// And the object that was sent.
    Request,
    /// And the object that was answered.
    RequestResponse,
}

impl Level {
    /// As policies and events name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Metadata => "Metadata",
            Self::Request => "Request",
            Self::RequestResponse => "RequestResponse",
        }
    }

    fn find(name: &str) -> Option<Self> {
        [Self::Metadata, Self::Request, Self::RequestResponse].into_iter().find(|level| level.name() == name)
    }
}

/// Rules that were checked.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Vec<PolicyRule>,
    /// What each rule comes to; nothing for level `None`.
    configs: Vec<Option<Arc<RequestAuditConfig>>>,
}

/// A request, as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Who sent it, whoever it acts for.
    pub user: &'a UserInfo,
    /// What it is about.
    pub target: &'a Target,
}

impl Policy {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or says something that means nothing.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let failed = |why: &dyn std::fmt::Display| PolicyError(format!("loading audit policy file: {path:?}: {why}"));
        let value = config_file::load(path).map_err(|error| failed(&error))?;
        Self::read(&value.to_string()).map_err(|error| failed(&error))
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn read(text: &str) -> Result<Self, PolicyError> {
        let mut policy = audit_v1::Policy::default();
        let decoded = json::decode(text.as_bytes(), &mut policy).map_err(|error| PolicyError(error.to_string()))?;
        let named = (decoded.type_meta.api_version.as_str(), decoded.type_meta.kind.as_str());
        if named != (API_VERSION, KIND) {
            return Err(PolicyError(format!("no kind {:?} is registered for version {:?}", named.1, named.0)));
        }
        // Upstream reads such a file all the same.
        for problem in decoded.problems {
            tracing::warn!(problem, "The audit policy has a field that nobody reads");
        }
        let mut problems = Vec::new();
        if policy.rules.is_empty() {
            problems.push("loaded illegal policy with 0 rules".to_owned());
        }
        problems.extend(stages("omitStages", &policy.omit_stages));
        problems.extend(policy.rules.iter().enumerate().flat_map(|(index, rule)| faults(index, rule)));
        if problems.is_empty() { Ok(Self::checked(policy)) } else { Err(PolicyError(problems.join("; "))) }
    }

    fn checked(policy: audit_v1::Policy) -> Self {
        let config = |rule: &PolicyRule| {
            let omitted = policy.omit_stages.iter().chain(&rule.omit_stages);
            Some(Arc::new(RequestAuditConfig {
                level: Level::find(&rule.level)?,
                omitted: omitted.filter_map(|name| Stage::find(name)).collect(),
                omits_managed_fields: rule.omit_managed_fields.unwrap_or(policy.omit_managed_fields),
            }))
        };
        Self { configs: policy.rules.iter().map(config).collect(), rules: policy.rules }
    }

    /// What is to be told of a request; nothing where nothing is.
    pub(crate) fn evaluate(&self, asked: Asked<'_>) -> Option<Arc<RequestAuditConfig>> {
        let (_, config) = self.rules.iter().zip(&self.configs).find(|(rule, _)| fits(rule, asked))?;
        config.clone()
    }
}

/// How a request is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestAuditConfig {
    pub(crate) level: Level,
    pub(crate) omitted: Vec<Stage>,
    /// Whether objects are told without their record of managers.
    pub(crate) omits_managed_fields: bool,
}

fn faults(index: usize, rule: &PolicyRule) -> Vec<String> {
    let at = |field: &str| format!("rules[{index}].{field}");
    let mut faults = stages(&at("omitStages"), &rule.omit_stages);
    match rule.level.as_str() {
        "None" => {}
        "" => faults.push(format!("{}: Required value", at("level"))),
        known if Level::find(known).is_some() => {}
        other => faults.push(format!(
            "{}: Unsupported value: {other:?}: supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"",
            at("level")
        )),
    }
    let about_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
    if about_resources && !rule.non_resource_urls.is_empty() {
        faults.push(format!(
            "{}: rules cannot apply to both regular resources and non-resource URLs",
            at("nonResourceURLs")
        ));
    }
    for (place, url) in rule.non_resource_urls.iter().enumerate().filter(|(_, url)| *url != "*") {
        let at = at(&format!("nonResourceURLs[{place}]"));
        if !url.starts_with('/') {
            faults.push(format!("{at}: non-resource URL rules must begin with a '/' character"));
        }
        if url.strip_suffix('*').unwrap_or(url).contains('*') {
            faults.push(format!("{at}: non-resource URL wildcards '*' must be the final character of the rule"));
        }
    }
    for (place, group) in rule.resources.iter().enumerate() {
        if group.resources.is_empty() && !group.resource_names.is_empty() {
            let at = at(&format!("resources[{place}].resourceNames"));
            faults.push(format!("{at}: using resourceNames requires at least one resource"));
        }
    }
    faults
}

fn stages(at: &str, names: &[String]) -> Vec<String> {
    let unknown = names.iter().enumerate().filter(|(_, name)| Stage::find(name).is_none());
    unknown.map(|(index, name)| format!("{at}[{index}]: allowed stages are RequestReceived, ResponseStarted, ResponseComplete and Panic, not {name:?}")).collect()
}

fn fits(rule: &PolicyRule, asked: Asked<'_>) -> bool {
    let (user, target) = (asked.user, asked.target);
    let among = |list: &[String], own: &str| list.is_empty() || list.iter().any(|one| one == own);
    if !among(&rule.users, &user.username) || !among(&rule.verbs, &target.verb) {
        return false;
    }
    if !rule.user_groups.is_empty() && !user.groups.iter().any(|own| rule.user_groups.contains(own)) {
        return false;
    }
    if !rule.namespaces.is_empty() || !rule.resources.is_empty() {
        return target.is_resource
            && among(&rule.namespaces, &target.namespace)
            && (rule.resources.is_empty() || rule.resources.iter().any(|group| has(group, target)));
    }
    rule.non_resource_urls.is_empty()
        || (!target.is_resource && rule.non_resource_urls.iter().any(|url| covers(url, &target.path)))
}

fn covers(url: &str, path: &str) -> bool {
    url.strip_suffix('*').map_or(url == path, |start| path.starts_with(start))
}

fn has(group: &GroupResources, target: &Target) -> bool {
    if group.group != "*" && group.group != target.group {
        return false;
    }
    let named = || group.resource_names.is_empty() || group.resource_names.contains(&target.name);
    group.resources.is_empty() || (group.resources.iter().any(|own| is(own, target)) && named())
}

/// Whether an entry of a rule means the resource: `pods` is not `pods/log`.
fn is(own: &str, target: &Target) -> bool {
    let (resource, part) = own.split_once('/').unwrap_or((own, ""));
    if own == "*" {
        return true;
    }
    (resource == "*" || resource == target.resource)
        && (part == target.subresource || (part == "*" && own.contains('/')))
}
