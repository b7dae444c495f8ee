//! A file of policies, a JSON object in each line (`--authorization-policy-file`, mode ABAC). It is read once.
//! Concept: <https://kubernetes.io/docs/reference/access-authn-authz/abac/>

use std::path::Path;

use api_machinery::json;
use api_types::abac_v1beta1::{API_VERSION, Policy, PolicySpec};
use api_types::authentication_v1::UserInfo;
use api_types::rbac_v1::PolicyRule;
use async_trait::async_trait;
use component_base::config_file;

use crate::{Attributes, Authorizer, Outcome, RuleSet};

const KIND: &str = "Policy";
const READS: [&str; 3] = ["get", "list", "watch"];
const ANY: &str = "*";
const EVERYBODY: &str = "system:authenticated";

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

/// The policies of a file.
#[derive(Debug)]
pub struct Abac(Vec<PolicySpec>);

impl Abac {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or a line is no policy.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let text = config_file::read(path).map_err(|error| PolicyError(error.to_string()))?;
        let (mut policies, mut has_old) = (Vec::new(), false);
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim().starts_with('#') {
                continue;
            }
            let (policy, is_old) = read(line).map_err(|why| {
                let (path, line_number) = (path.display(), index + 1);
                PolicyError(format!("error reading policy file {path}, line {line_number}: {line}: {why}"))
            })?;
            policies.push(policy);
            has_old |= is_old;
        }
        if has_old {
            tracing::warn!(path = %path.display(), "Policy file contained unversioned rules");
        }
        Ok(Self(policies))
    }

    /// Decides about one request.
    #[must_use]
    pub fn decide(&self, attributes: &Attributes) -> Outcome {
        if self.0.iter().any(|policy| fits(policy, attributes)) {
            return Outcome::allow("");
        }
        Outcome::no_opinion("No policy matched.")
    }
}

/// The policy of a line, and whether it is one of the old ones that name no version.
fn read(line: &str) -> Result<(PolicySpec, bool), String> {
    let mut policy = Policy::default();
    let decoded = json::decode(line.as_bytes(), &mut policy).map_err(|error| error.to_string())?;
    if decoded.type_meta.api_version == API_VERSION && decoded.type_meta.kind == KIND {
        let mut spec = policy.spec;
        if spec.user == ANY || spec.group == ANY {
            (spec.user, spec.group) = (String::new(), EVERYBODY.to_owned());
        }
        return Ok((spec, false));
    }
    let mut old = PolicySpec::default();
    json::decode(line.as_bytes(), &mut old).map_err(|error| error.to_string())?;
    Ok((converted(&old), true))
}

/// What an old policy means: what it does not name is anything.
fn converted(old: &PolicySpec) -> PolicySpec {
    let is_anybody = (old.user.is_empty() && old.group.is_empty()) || old.user == ANY || old.group == ANY;
    let or_any = |text: &str| if text.is_empty() { ANY.to_owned() } else { text.to_owned() };
    let paths = if old.namespace.is_empty() && old.resource.is_empty() { ANY } else { "" };
    PolicySpec {
        user: if is_anybody { String::new() } else { old.user.clone() },
        group: if is_anybody { EVERYBODY.to_owned() } else { old.group.clone() },
        readonly: old.readonly,
        api_group: ANY.to_owned(),
        resource: or_any(&old.resource),
        namespace: or_any(&old.namespace),
        non_resource_path: paths.to_owned(),
    }
}

fn fits(policy: &PolicySpec, attributes: &Attributes) -> bool {
    let is_read = READS.contains(&attributes.verb.as_str());
    let same = |own: &str, asked: &str| own == ANY || own == asked;
    if !is_about(policy, &attributes.user) || (policy.readonly && !is_read) {
        return false;
    }
    if attributes.resource_request {
        return same(&policy.namespace, &attributes.namespace)
            && same(&policy.resource, &attributes.resource)
            && same(&policy.api_group, &attributes.group);
    }
    let path = policy.non_resource_path.as_str();
    path == attributes.path || path.strip_suffix(ANY).is_some_and(|start| attributes.path.starts_with(start))
}

fn is_about(policy: &PolicySpec, user: &UserInfo) -> bool {
    let named = !policy.user.is_empty() || !policy.group.is_empty();
    let user_fits = policy.user.is_empty() || policy.user == ANY || policy.user == user.username;
    let group_fits = policy.group.is_empty() || policy.group == ANY || user.groups.contains(&policy.group);
    named && user_fits && group_fits
}

#[async_trait]
impl Authorizer for Abac {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        self.decide(attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        let mut set = RuleSet::default();
        for policy in self.0.iter().filter(|policy| is_about(policy, user)) {
            let verbs: Vec<String> =
                if policy.readonly { READS.map(str::to_owned).to_vec() } else { vec![ANY.to_owned()] };
            if !policy.resource.is_empty() && (policy.namespace == ANY || policy.namespace == namespace) {
                let (api_groups, resources) = (vec![policy.api_group.clone()], vec![policy.resource.clone()]);
                set.rules.push(PolicyRule { verbs: verbs.clone(), api_groups, resources, ..PolicyRule::default() });
            }
            if !policy.non_resource_path.is_empty() {
                let non_resource_urls = vec![policy.non_resource_path.clone()];
                set.rules.push(PolicyRule { verbs, non_resource_urls, ..PolicyRule::default() });
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decision;

    const POLICIES: &str = r##"# who may do what
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"dev","resource":"pods","readonly":true}}

{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"ops","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"carol","group":"web","namespace":"*","resource":"*","apiGroup":"apps"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","nonResourcePath":"/version*","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"namespace":"*","resource":"*","apiGroup":"*"}}
{"user":"old","resource":"nodes"}
"##;

    fn load(text: &str) -> Result<Abac, PolicyError> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("it is written");
        Abac::load(file.path())
    }

    fn user(line: &str) -> UserInfo {
        let mut words = line.split('/');
        let username = words.next().unwrap_or_default().to_owned();
        UserInfo { username, groups: words.map(str::to_owned).collect(), ..UserInfo::default() }
    }

    #[test]
    fn the_first_policy_that_fits_allows() {
        let abac = load(POLICIES).expect("policies");
        for (who, verb, place, allowed) in [
            ("bob", "get", "dev//pods", true),
            ("bob", "create", "dev//pods", false),
            ("bob", "get", "prod//pods", false),
            ("bob", "get", "dev/apps/pods", false),
            ("eve/ops", "delete", "prod/apps/deployments", true),
            ("carol/web", "update", "x/apps/deployments", true),
            ("carol", "update", "x/apps/deployments", false),
            ("dave/web", "update", "x/apps/deployments", false),
            ("old", "create", "any/storage.k8s.io/nodes", true),
            ("nobody", "get", "dev//pods", false),
        ] {
            let parts: Vec<&str> = place.split('/').collect();
            let attributes = Attributes {
                user: user(who).into(),
                verb: verb.into(),
                resource_request: true,
                namespace: parts[0].into(),
                group: parts[1].into(),
                resource: parts[2].into(),
                ..Attributes::default()
            };
            let outcome = abac.decide(&attributes);
            assert_eq!(outcome.decision == Decision::Allow, allowed, "{who} {verb} {place}");
            assert!(allowed || outcome.reason == "No policy matched.");
        }
    }

    #[test]
    fn paths_are_apart_from_resources() {
        let abac = load(POLICIES).expect("policies");
        for (who, verb, path, allowed) in [
            ("eve/ops", "post", "/logs", true),
            ("zoe/system:authenticated", "get", "/version/x", true),
            ("zoe/system:authenticated", "post", "/version", false),
            ("zoe", "get", "/version", false),
            ("old", "get", "/version", false),
        ] {
            let attributes =
                Attributes { user: user(who).into(), verb: verb.into(), path: path.into(), ..Attributes::default() };
            assert_eq!(abac.decide(&attributes).decision == Decision::Allow, allowed, "{who} {verb} {path}");
        }
    }

    #[test]
    fn rules_can_be_listed() {
        let abac = load(POLICIES).expect("policies");
        let set = abac.rules_for(&user("bob"), "dev");
        assert_eq!((set.rules.len(), set.incomplete), (1, false));
        assert_eq!((set.rules[0].verbs.len(), set.rules[0].resources[0].as_str()), (3, "pods"));
        assert_eq!(abac.rules_for(&user("bob"), "prod").rules.len(), 0);
        assert_eq!(abac.rules_for(&user("eve/ops"), "x").rules.len(), 2);
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = load("# fine\n{\"user\": 1}\n").expect_err("a mistake").to_string();
        assert!(error.contains(", line 2: {\"user\": 1}: "), "{error}");
        assert!(Abac::load(Path::new("/nowhere")).is_err());
    }
}
