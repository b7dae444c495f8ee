//! AuthenticationConfiguration: reading the file, and its rules. What is checked is compiled, too, so that there is one
//! reading of it. Concept: <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-authentication-configuration>

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::quote::go_quote;
use api_types::apiserver_config_v1::{
    API_VERSIONS, AnonymousAuthConfig, AuthenticationConfiguration, Issuer, JWTAuthenticator, decode,
};
use component_base::config_file;
use component_base::tls::CaBundle;

use super::expressions::Environments;
use super::mappings;
use super::rules::Rules;

const KIND: &str = "AuthenticationConfiguration";
/// Issuers at most, as upstream.
const MAX_ISSUERS: usize = 64;
const MATCH_ANY: &str = "MatchAny";
/// Through which connections issuers are reached.
pub const EGRESS_TYPES: [&str; 2] = ["controlplane", "cluster"];

/// Why a configuration cannot be used: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigurationError(pub String);

/// What the rules of a configuration depend on beside the file.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The issuers of this cluster's service accounts, whose tokens nobody else makes.
    pub disallowed_issuers: Vec<String>,
    /// Whether the gate StructuredAuthenticationConfigurationEgressSelector is on.
    pub egress: bool,
}

/// The configuration that a text states. Its rules are not checked yet: see [`compile`].
///
/// # Errors
/// It is of another kind, or has members that nobody knows.
pub fn parse(text: &str) -> Result<AuthenticationConfiguration, ConfigurationError> {
    if text.is_empty() {
        return Err(ConfigurationError("empty config data".to_owned()));
    }
    let mut configuration = AuthenticationConfiguration::default();
    let value = config_file::parse(text).map_err(ConfigurationError)?;
    decode(value, KIND, &API_VERSIONS, &mut configuration).map_err(ConfigurationError)?;
    Ok(configuration)
}

/// Checks a configuration, and compiles what it says of each issuer's tokens; texts are upstream's.
///
/// # Errors
/// Everything that is wrong with it.
pub fn compile(
    configuration: &AuthenticationConfiguration,
    surroundings: &Surroundings,
) -> Result<Vec<Rules>, ErrorList> {
    let (root, mut errors) = (Path::new("jwt"), ErrorList::new());
    if let Some(anonymous) = &configuration.anonymous {
        check_anonymous(anonymous, &mut errors);
    }
    if configuration.jwt.len() > MAX_ISSUERS {
        errors.push(root.too_many(configuration.jwt.len(), MAX_ISSUERS));
        return Err(errors);
    }
    let environments = Environments::new();
    let (mut urls, mut discovery_urls, mut rules) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (index, authenticator) in configuration.jwt.iter().enumerate() {
        let at = root.index(index);
        rules.push(of_issuer(&at, authenticator, surroundings, &environments, &mut errors));
        let (issuer, at) = (&authenticator.issuer, at.child("issuer"));
        if !urls.insert(&issuer.url) {
            errors.push(at.child("url").duplicate(&issuer.url));
        }
        if let Some(url) = issuer.discovery_url.as_ref().filter(|url| !url.is_empty())
            && !discovery_urls.insert(url)
        {
            errors.push(at.child("discoveryURL").duplicate(url));
        }
    }
    errors.into_result().map(|()| rules)
}

fn check_anonymous(anonymous: &AnonymousAuthConfig, errors: &mut ErrorList) {
    if !anonymous.enabled && !anonymous.conditions.is_empty() {
        let paths =
            anonymous.conditions.iter().map(|own| format!("{{\"Path\":{}}}", BadValue::named(&own.path).text()));
        let shown = BadValue::json(format!("[{}]", paths.collect::<Vec<_>>().join(",")));
        let at = Path::new("anonymous").child("conditions");
        errors.push(at.invalid(shown, "enabled should be set to true when conditions are defined"));
    }
}

fn of_issuer(
    at: &Path,
    authenticator: &JWTAuthenticator,
    surroundings: &Surroundings,
    environments: &Environments,
    errors: &mut ErrorList,
) -> Rules {
    check_issuer(&at.child("issuer"), &authenticator.issuer, surroundings, errors);
    let mut rules = Rules::default();
    mappings::claim_rules(at, authenticator, environments, &mut rules, errors);
    mappings::claim_mappings(at, authenticator, environments, &mut rules, errors);
    mappings::user_rules(at, authenticator, environments, &mut rules, errors);
    rules
}

fn check_issuer(at: &Path, issuer: &Issuer, surroundings: &Surroundings, errors: &mut ErrorList) {
    let url = at.child("url");
    if issuer.url.is_empty() {
        errors.push(url.required(""));
    } else {
        let disallowed = &surroundings.disallowed_issuers;
        if disallowed.contains(&issuer.url) {
            let listed: BTreeSet<&str> = disallowed.iter().map(String::as_str).collect();
            let listed: Vec<&str> = listed.into_iter().collect();
            let problem = format!("URL must not overlap with disallowed issuers: [{}]", listed.join(" "));
            errors.push(url.invalid(&issuer.url, problem));
        }
        check_url(&url, &issuer.url, errors);
    }
    if let Some(discovery) = issuer.discovery_url.as_deref().filter(|own| !own.is_empty()) {
        let at = at.child("discoveryURL");
        if !issuer.url.is_empty() && issuer.url.trim_end_matches('/') == discovery.trim_end_matches('/') {
            errors.push(at.invalid(discovery, "discoveryURL must be different from URL"));
        }
        check_url(&at, discovery, errors);
    }
    check_audiences(at, issuer, errors);
    if !issuer.certificate_authority.is_empty()
        && let Err(error) = CaBundle::from_pem("certificateAuthority", issuer.certificate_authority.as_bytes())
    {
        errors.push(at.child("certificateAuthority").invalid("<omitted>", error.to_string()));
    }
    check_egress(&at.child("egressSelectorType"), &issuer.egress_selector_type, surroundings, errors);
}

fn check_egress(at: &Path, wanted: &str, surroundings: &Surroundings, errors: &mut ErrorList) {
    if wanted.is_empty() {
        return;
    }
    if !surroundings.egress {
        let gate = "StructuredAuthenticationConfigurationEgressSelector";
        let problem = format!("egress selector is not supported when {gate} feature gate is disabled");
        errors.push(at.invalid(BadValue::named(wanted), problem));
    } else if !EGRESS_TYPES.contains(&wanted) {
        errors.push(at.invalid(BadValue::named(wanted), "egress selector must be either controlplane or cluster"));
    }
}

fn check_url(at: &Path, url: &str, errors: &mut ErrorList) {
    let (base, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (base, query) = base.split_once('?').unwrap_or((base, ""));
    let (scheme, rest) = base.split_once("://").unwrap_or(("", base));
    if let Err(error) = base.parse::<http::Uri>() {
        errors.push(at.invalid(url, format!("parse {}: {error}", go_quote(url))));
        return;
    }
    let authority = rest.split('/').next().unwrap_or_default();
    for (wrong, problem) in [
        (!scheme.eq_ignore_ascii_case("https"), "URL scheme must be https"),
        (authority.contains('@'), "URL must not contain a username or password"),
        (!query.is_empty(), "URL must not contain a query"),
        (!fragment.is_empty(), "URL must not contain a fragment"),
    ] {
        if wrong {
            errors.push(at.invalid(url, problem));
        }
    }
}

fn check_audiences(at: &Path, issuer: &Issuer, errors: &mut ErrorList) {
    let (path, policy) = (at.child("audiences"), issuer.audience_match_policy.as_str());
    if issuer.audiences.is_empty() {
        errors.push(path.required(format!("at least one {path} is required")));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, audience) in issuer.audiences.iter().enumerate() {
        if audience.is_empty() {
            errors.push(path.index(index).required(""));
        }
        if !seen.insert(audience) {
            errors.push(path.index(index).duplicate(audience));
        }
    }
    let problem = match issuer.audiences.len() {
        1 if !policy.is_empty() && policy != MATCH_ANY => {
            "audienceMatchPolicy must be empty or MatchAny for single audience"
        }
        several if several > 1 && policy != MATCH_ANY => "audienceMatchPolicy must be MatchAny for multiple audiences",
        _ => return,
    };
    errors.push(at.child("audienceMatchPolicy").invalid(BadValue::named(policy), problem));
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;
