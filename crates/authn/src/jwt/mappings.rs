//! The rules of what a configuration says of claims and users, compiled as they are checked.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::apiserver_config_v1::{ClaimOrExpression, ExtraMapping, JWTAuthenticator, PrefixedClaimOrExpression};
use cel::Program;

use super::expressions::{Environments, reads_claim};
use super::rules::{Condition, Mapping, Rules};

const BOTH: &str = "claim and expression can't both be set";
const EMAIL_VERIFIED: &str = "email_verified";

/// The program of an expression, unless something is wrong with it.
fn compiled(at: &Path, source: &str, made: Result<Program, String>, errors: &mut ErrorList) -> Option<Program> {
    made.map_err(|problem| errors.push(at.invalid(source, problem))).ok()
}

/// `claimValidationRules`.
pub(super) fn claim_rules(
    at: &Path,
    authenticator: &JWTAuthenticator,
    environments: &Environments,
    rules: &mut Rules,
    errors: &mut ErrorList,
) {
    let (mut claims, mut expressions) = (BTreeSet::new(), BTreeSet::new());
    for (index, rule) in authenticator.claim_validation_rules.iter().enumerate() {
        let at = at.child("claimValidationRules").index(index);
        match (rule.claim.is_empty(), rule.expression.is_empty()) {
            (false, false) => errors.push(at.invalid(&rule.claim, BOTH)),
            (true, true) => errors.push(at.required("claim or expression is required")),
            (false, true) => {
                if !rule.message.is_empty() {
                    errors.push(at.child("message").invalid(&rule.message, "may not be specified when claim is set"));
                }
                if !claims.insert(&rule.claim) {
                    errors.push(at.child("claim").duplicate(&rule.claim));
                }
                rules.required_claims.insert(rule.claim.clone(), rule.required_value.clone());
            }
            (true, false) => {
                if !rule.required_value.is_empty() {
                    let problem = "may not be specified when expression is set";
                    errors.push(at.child("requiredValue").invalid(&rule.required_value, problem));
                }
                let at = at.child("expression");
                if !expressions.insert(&rule.expression) {
                    errors.push(at.duplicate(&rule.expression));
                    continue;
                }
                let made = environments.claims_condition(&rule.expression);
                if let Some(program) = compiled(&at, &rule.expression, made, errors) {
                    rules.claim_conditions.push(Condition { program, message: rule.message.clone() });
                }
            }
        }
    }
}

/// `claimMappings`.
pub(super) fn claim_mappings(
    at: &Path,
    authenticator: &JWTAuthenticator,
    environments: &Environments,
    rules: &mut Rules,
    errors: &mut ErrorList,
) {
    let (at, mappings) = (at.child("claimMappings"), &authenticator.claim_mappings);
    let username = at.child("username");
    if mappings.username.claim.is_empty() && mappings.username.expression.is_empty() {
        errors.push(username.required("claim or expression is required"));
    }
    rules.username = prefixed(&username, &mappings.username, environments, errors);
    rules.groups = prefixed(&at.child("groups"), &mappings.groups, environments, errors);
    rules.uid = plain(&at.child("uid"), &mappings.uid, environments, errors);
    let mut keys = BTreeSet::new();
    for (index, mapping) in mappings.extra.iter().enumerate() {
        let at = at.child("extra").index(index);
        check_key(&at.child("key"), mapping, errors);
        if !keys.insert(&mapping.key) {
            errors.push(at.child("key").duplicate(&mapping.key));
            continue;
        }
        let (at, source) = (at.child("valueExpression"), &mapping.value_expression);
        if source.is_empty() {
            errors.push(at.required(""));
        } else if let Some(program) = compiled(&at, source, environments.mapping(source), errors) {
            rules.extra.push((mapping.key.clone(), program));
        }
    }
    check_email(&username.child("expression"), rules, errors);
}

/// Whoever takes an address for a name has to look at whether it is verified.
fn check_email(at: &Path, rules: &Rules, errors: &mut ErrorList) {
    let Mapping::Expression(username) = &rules.username else { return };
    let extra = rules.extra.iter().map(|(_, program)| program);
    let conditions = rules.claim_conditions.iter().map(|own| &own.program);
    let mut programs = std::iter::once(username).chain(extra).chain(conditions);
    if reads_claim(username, "email") && !programs.any(|program| reads_claim(program, EMAIL_VERIFIED)) {
        errors.push(at.invalid(
            username.source(),
            "claims.email_verified must be used in claimMappings.username.expression or \
             claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
             claimMappings.username.expression",
        ));
    }
}

fn prefixed(
    at: &Path,
    own: &PrefixedClaimOrExpression,
    environments: &Environments,
    errors: &mut ErrorList,
) -> Mapping {
    let prefix = at.child("prefix");
    match (own.claim.is_empty(), own.expression.is_empty(), &own.prefix) {
        (true, false, Some(set)) => {
            errors.push(prefix.invalid(set, "may not be specified when expression is set"));
        }
        (false, true, None) => {
            let problem = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
            errors.push(prefix.required(problem));
        }
        _ => {}
    }
    let (claim, expression) = (own.claim.clone(), own.expression.clone());
    let mapping = plain(at, &ClaimOrExpression { claim, expression }, environments, errors);
    match mapping {
        Mapping::Claim { name, .. } => Mapping::Claim { name, prefix: own.prefix.clone().unwrap_or_default() },
        other => other,
    }
}

fn plain(at: &Path, own: &ClaimOrExpression, environments: &Environments, errors: &mut ErrorList) -> Mapping {
    match (own.claim.is_empty(), own.expression.is_empty()) {
        (true, true) => Mapping::None,
        (false, false) => {
            errors.push(at.invalid("", BOTH));
            Mapping::None
        }
        (false, true) => Mapping::Claim { name: own.claim.clone(), prefix: String::new() },
        (true, false) => {
            let source = &own.expression;
            compiled(&at.child("expression"), source, environments.mapping(source), errors)
                .map_or(Mapping::None, Mapping::Expression)
        }
    }
}

fn check_key(at: &Path, mapping: &ExtraMapping, errors: &mut ErrorList) {
    let key = mapping.key.as_str();
    errors.extend(names::domain_prefixed_path(at, key));
    if key != key.to_lowercase() {
        errors.push(at.invalid(key, "must be lowercase"));
    }
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_reserved = |own: &str| domain == own || domain.strip_suffix(own).is_some_and(|rest| rest.ends_with('.'));
    if ["kubernetes.io", "k8s.io"].into_iter().any(is_reserved) {
        let problem = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
        errors.push(at.invalid(key, problem));
    }
}

/// `userValidationRules`.
pub(super) fn user_rules(
    at: &Path,
    authenticator: &JWTAuthenticator,
    environments: &Environments,
    rules: &mut Rules,
    errors: &mut ErrorList,
) {
    let mut seen = BTreeSet::new();
    for (index, rule) in authenticator.user_validation_rules.iter().enumerate() {
        let (at, source) = (at.child("userValidationRules").index(index).child("expression"), &rule.expression);
        if source.is_empty() {
            errors.push(at.required(""));
        } else if !seen.insert(source) {
            errors.push(at.duplicate(source));
        } else if let Some(program) = compiled(&at, source, environments.user_condition(source), errors) {
            rules.user_conditions.push(Condition { program, message: rule.message.clone() });
        }
    }
}
