//! The authorizers of a server as a file states them (AuthorizationConfiguration), and the rules of that file.
//! Concept: <https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization>

use std::collections::BTreeSet;
use std::path::Path as FilePath;
use std::time::Duration;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::time::GoDuration;
use api_types::apiserver_config_v1::{
    API_VERSIONS, AuthorizationConfiguration, AuthorizerConfiguration, WebhookConfiguration, WebhookConnectionInfo,
    WebhookMatchCondition, decode,
};
use component_base::config_file;

use crate::webhook::{self, MAX_CONDITIONS, ReviewVersion};

const KIND: &str = "AuthorizationConfiguration";
/// The only authorizer that there may be several of.
pub const WEBHOOK: &str = "Webhook";
/// The authorizers that there are, in the order in which they are told.
pub const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", WEBHOOK];
/// What a failed question comes to.
pub const FAILURE_POLICIES: [&str; 2] = ["NoOpinion", "Deny"];
/// A webhook that is where the server itself is.
pub const IN_CLUSTER: &str = "InClusterConfig";
/// A webhook that a file names.
pub const KUBECONFIG_FILE: &str = "KubeConfigFile";
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a configuration cannot be used: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigurationError(pub String);

/// The configuration that a text states, with its defaults, checked. `required` are the types that it must have, beside
/// webhooks.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(text: &str, required: &[&str]) -> Result<AuthorizationConfiguration, ConfigurationError> {
    let mut configuration = AuthorizationConfiguration::default();
    let value = config_file::parse(text).map_err(ConfigurationError)?;
    decode(value, KIND, &API_VERSIONS, &mut configuration).map_err(ConfigurationError)?;
    validate(&configuration).into_result().map_err(|errors| ConfigurationError(errors.to_string()))?;
    let mut problems = wrong_names(&configuration);
    let is_there = |wanted: &&&str| configuration.authorizers.iter().any(|own| own.type_ == ***wanted);
    let missing: Vec<&str> = required.iter().filter(|wanted| !is_there(wanted)).copied().collect();
    if !missing.is_empty() {
        problems.push(format!("missing required types: [{}]", missing.join(" ")));
    }
    if problems.is_empty() { Ok(configuration) } else { Err(ConfigurationError(crate::aggregate(problems))) }
}

/// What is wrong with a configuration; texts are upstream's.
#[must_use]
pub fn validate(configuration: &AuthorizationConfiguration) -> ErrorList {
    let (root, mut errors) = (Path::new("authorizers"), ErrorList::new());
    if configuration.authorizers.is_empty() {
        errors.push(root.required("at least one authorization mode must be defined"));
    }
    let (mut types, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (index, authorizer) in configuration.authorizers.iter().enumerate() {
        let (at, own) = (root.index(index), authorizer.type_.as_str());
        if own.is_empty() {
            errors.push(at.child("type").required(""));
        } else if !TYPES.contains(&own) {
            errors.push(at.child("type").not_supported(own, &TYPES));
        } else if !types.insert(own) && own != WEBHOOK {
            errors.push(at.child("type").duplicate(own));
        } else {
            name(&at.child("name"), &authorizer.name, &mut names, &mut errors);
            settings(&at, authorizer, &mut errors);
        }
    }
    errors
}

fn name<'a>(at: &Path, name: &'a str, seen: &mut BTreeSet<&'a str>, errors: &mut ErrorList) {
    let problems = names::dns1123_subdomain(name);
    if name.is_empty() {
        errors.push(at.required(""));
    } else if seen.contains(name) {
        errors.push(at.duplicate(name));
    } else if !problems.is_empty() {
        errors.push(at.invalid(name, format!("authorizer name is invalid: {}", problems.join(", "))));
    }
    seen.insert(name);
}

fn settings(at: &Path, authorizer: &AuthorizerConfiguration, errors: &mut ErrorList) {
    match (authorizer.type_ == WEBHOOK, &authorizer.webhook) {
        (true, Some(webhook)) => of_webhook(at, webhook, errors),
        (true, None) => errors.push(at.child("webhook").required("required when type=Webhook")),
        (false, Some(_)) => {
            errors.push(at.child("webhook").invalid("non-null", "may only be specified when type=Webhook"));
        }
        (false, None) => {}
    }
}

fn of_webhook(at: &Path, webhook: &WebhookConfiguration, errors: &mut ErrorList) {
    let timeout = at.child("timeout");
    match webhook.timeout.nanos() {
        0 => errors.push(timeout.required("")),
        nanos if nanos < 0 || i128::from(nanos) > i128::try_from(MAX_TIMEOUT.as_nanos()).unwrap_or(0) => {
            errors.push(timeout.invalid(webhook.timeout.to_string(), "must be > 0s and <= 30s"));
        }
        _ => {}
    }
    ttl(&at.child("authorizedTTL"), webhook.authorized_ttl, errors);
    ttl(&at.child("unauthorizedTTL"), webhook.unauthorized_ttl, errors);
    let version = webhook.subject_access_review_version.as_str();
    one_of(&at.child("subjectAccessReviewVersion"), version, &ReviewVersion::NAMES, errors);
    let (version, path) = (
        webhook.match_condition_subject_access_review_version.as_str(),
        at.child("matchConditionSubjectAccessReviewVersion"),
    );
    if version.is_empty() && !webhook.match_conditions.is_empty() {
        errors.push(path.required("required if match conditions are specified"));
    } else if !matches!(version, "" | "v1") {
        errors.push(path.not_supported(version, &["v1"]));
    }
    one_of(&at.child("failurePolicy"), &webhook.failure_policy, &FAILURE_POLICIES, errors);
    connection(&at.child("connectionInfo"), &webhook.connection_info, errors);
    conditions(&at.child("matchConditions"), &webhook.match_conditions, errors);
}

fn ttl(at: &Path, ttl: GoDuration, errors: &mut ErrorList) {
    match ttl.nanos() {
        0 => errors.push(at.required("")),
        nanos if nanos < 0 => errors.push(at.invalid(ttl.to_string(), "must be > 0s")),
        _ => {}
    }
}

fn one_of(at: &Path, value: &str, allowed: &[&str], errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(at.required(""));
    } else if !allowed.contains(&value) {
        errors.push(at.not_supported(value, allowed));
    }
}

fn connection(at: &Path, info: &WebhookConnectionInfo, errors: &mut ErrorList) {
    let path = at.child("kubeConfigFile");
    let file = info.kube_config_file.as_deref();
    match info.type_.as_str() {
        IN_CLUSTER => {
            if let Some(file) = file {
                errors.push(path.invalid(file, "can only be set when type=KubeConfigFile"));
            }
        }
        KUBECONFIG_FILE => match file {
            None | Some("") => errors.push(path.required("")),
            Some(file) => {
                if let Some(problem) = wrong_file(FilePath::new(file)) {
                    errors.push(path.invalid(file, problem));
                }
            }
        },
        other => one_of(&at.child("type"), other, &[IN_CLUSTER, KUBECONFIG_FILE], errors),
    }
}

fn wrong_file(file: &FilePath) -> Option<String> {
    if !file.is_absolute() {
        return Some("must be an absolute path".to_owned());
    }
    match std::fs::metadata(file) {
        Err(error) => Some(format!("error loading file: {error}")),
        Ok(found) => (!found.is_file()).then(|| "must be a regular file".to_owned()),
    }
}

fn conditions(at: &Path, conditions: &[WebhookMatchCondition], errors: &mut ErrorList) {
    if conditions.len() > MAX_CONDITIONS {
        errors.push(at.too_many(conditions.len(), MAX_CONDITIONS));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let (path, expression) = (at.index(index).child("expression"), condition.expression.as_str());
        if expression.trim().is_empty() {
            errors.push(path.required(""));
        } else if !seen.insert(expression) {
            errors.push(path.duplicate(expression));
        } else if let Err(problem) = webhook::compile(expression) {
            errors.push(path.invalid(expression, problem));
        }
    }
}

/// Whatever is no webhook has the name of its type.
fn wrong_names(configuration: &AuthorizationConfiguration) -> Vec<String> {
    let named_by_type = configuration.authorizers.iter().filter(|own| own.type_ != WEBHOOK);
    let wrong = named_by_type.filter(|own| own.name != name_of_type(&own.type_));
    wrong
        .map(|own| {
            let AuthorizerConfiguration { type_, name, .. } = own;
            format!("expected name {} for authorizer {type_} instead of {name}", name_of_type(type_))
        })
        .collect()
}

/// The name of an authorizer that there is one of.
#[must_use]
pub fn name_of_type(type_: &str) -> String {
    type_.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(authorizers: &str) -> String {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: {authorizers}"
        );
        parse(&text, &[]).map_or_else(|error| error.to_string(), |_| String::new())
    }

    /// A webhook's settings with some of them changed.
    fn webhook(changes: &str) -> String {
        let settings = [
            "timeout: 3s",
            "subjectAccessReviewVersion: v1",
            "failurePolicy: Deny",
            "connectionInfo: {type: InClusterConfig}",
        ];
        let is_changed = |own: &&str| !changes.contains(own.split(':').next().unwrap_or_default());
        let kept: Vec<&str> =
            settings.into_iter().filter(is_changed).chain([changes]).filter(|own| !own.is_empty()).collect();
        format!("[{{type: Webhook, name: w, webhook: {{{}}}}}]", kept.join(", "))
    }

    #[test]
    fn every_version_is_read_and_defaults_are_upstreams() {
        let facts = test_facts::facts("config/AuthorizationConfiguration.json");
        for version in API_VERSIONS {
            let text = format!("apiVersion: {version}\nkind: {KIND}\nauthorizers: {}", webhook(""));
            let read = parse(&text, &[]).expect(version);
            let own = read.authorizers[0].webhook.clone().expect("settings");
            let defaults = &facts["fieldDefaults"]["WebhookConfiguration"];
            assert_eq!(own.authorized_ttl.to_string(), defaults["authorizedTTL"]);
            assert_eq!(own.unauthorized_ttl.to_string(), defaults["unauthorizedTTL"]);
            assert_eq!(own.cache_authorized_requests, defaults["cacheAuthorizedRequests"].as_bool());
            assert_eq!(own.cache_unauthorized_requests, defaults["cacheUnauthorizedRequests"].as_bool());
        }
        for (text, expected) in [
            ("", "Object 'Kind' is missing"),
            (
                "kind: AuthorizationConfiguration",
                "no kind \"AuthorizationConfiguration\" is registered for version \"\"",
            ),
            ("apiVersion: apiserver.config.k8s.io/v1\nkind: X", "no kind \"X\" is registered"),
            (
                "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorisers: []",
                "strict decoding error: unknown field \"authorisers\"",
            ),
        ] {
            let error = parse(text, &[]).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn lists_have_upstreams_rules() {
        for (authorizers, expected) in [
            ("[]", "authorizers: Required value: at least one authorization mode must be defined"),
            ("[{name: a}]", "authorizers[0].type: Required value"),
            (
                "[{type: Foo, name: foo}]",
                "authorizers[0].type: Unsupported value: \"Foo\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"",
            ),
            ("[{type: RBAC, name: rbac}, {type: RBAC, name: r}]", "authorizers[1].type: Duplicate value: \"RBAC\""),
            ("[{type: RBAC}]", "authorizers[0].name: Required value"),
            ("[{type: RBAC, name: x}]", "expected name rbac for authorizer RBAC instead of x"),
            (
                "[{type: RBAC, name: rbac, webhook: {}}]",
                "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
            ),
            ("[{type: Webhook, name: w}]", "authorizers[0].webhook: Required value: required when type=Webhook"),
            ("[{type: Webhook, name: W!}]", "authorizers[0].name: Invalid value: \"W!\": authorizer name is invalid: "),
            ("[{type: Webhook, name: w}, {type: Webhook, name: w}]", "authorizers[1].name: Duplicate value: \"w\""),
        ] {
            let problems = problems(authorizers);
            assert!(problems.contains(expected), "{authorizers}: {problems}");
        }
        assert_eq!(problems("[{type: Node, name: node}, {type: RBAC, name: rbac}]"), "");
        let text = format!("apiVersion: {}\nkind: {KIND}\nauthorizers: [{{type: RBAC, name: rbac}}]", API_VERSIONS[0]);
        let error = parse(&text, &["Node", "RBAC"]).expect_err("Node must stay").to_string();
        assert_eq!(error, "missing required types: [Node]");
    }

    #[test]
    fn webhooks_have_upstreams_rules() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let kubeconfig = |path: &str| format!("connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {path:?}}}");
        let long: Vec<String> = (0..65).map(|index| format!("{{expression: 'x{index}'}}")).collect();
        for (changes, expected) in [
            ("timeout: 0s", "authorizers[0].timeout: Required value"),
            ("timeout: 31s", "authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s"),
            ("timeout: -1s", "must be > 0s and <= 30s"),
            ("authorizedTTL: -1s", "authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s"),
            ("unauthorizedTTL: -1s", "authorizers[0].unauthorizedTTL: Invalid value: \"-1s\": must be > 0s"),
            ("subjectAccessReviewVersion: ''", "authorizers[0].subjectAccessReviewVersion: Required value"),
            ("subjectAccessReviewVersion: v2", "Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\""),
            ("failurePolicy: ''", "authorizers[0].failurePolicy: Required value"),
            ("failurePolicy: Allow", "Unsupported value: \"Allow\": supported values: \"Deny\", \"NoOpinion\""),
            ("connectionInfo: {}", "authorizers[0].connectionInfo.type: Required value"),
            (
                "connectionInfo: {type: InClusterConfig, kubeConfigFile: /x}",
                "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/x\": can only be set when type=KubeConfigFile",
            ),
            ("connectionInfo: {type: KubeConfigFile}", "authorizers[0].connectionInfo.kubeConfigFile: Required value"),
            (&kubeconfig("x"), "must be an absolute path"),
            (&kubeconfig("/nowhere"), "error loading file: "),
            (&kubeconfig("/"), "must be a regular file"),
            (&kubeconfig(&file.path().display().to_string()), ""),
            (
                "matchConditions: [{expression: 'true'}]",
                "matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
            ),
            (
                "matchConditionSubjectAccessReviewVersion: v2",
                "authorizers[0].matchConditionSubjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\"",
            ),
            (
                "matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: 'request.nothing'}]",
                "matchConditions[0].expression: Invalid value: \"request.nothing\": compilation failed: ERROR: <input>:1:8: ",
            ),
            ("matchConditions: [{expression: ' '}]", "matchConditions[0].expression: Required value"),
            (
                &format!("matchConditions: [{}]", long.join(", ")),
                "authorizers[0].matchConditions: Too many: 65: must have at most 64 items",
            ),
        ] {
            let problems = problems(&webhook(changes));
            let fits = if expected.is_empty() { problems.is_empty() } else { problems.contains(expected) };
            assert!(fits, "{changes}: {problems}");
        }
    }
}
