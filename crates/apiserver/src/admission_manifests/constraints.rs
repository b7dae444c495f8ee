//! What objects of files may not need: Services, parameters and policies that only the API has.

use std::collections::BTreeMap;

use api_machinery::object::Object;
use api_machinery::value::Value;
use kinds::admissionregistration_v1::STATIC_SUFFIX;

use super::objects::{ManifestError, Stated};

/// What an object needs that files do not have.
#[derive(Debug, thiserror::Error)]
pub(super) enum Constraint {
    /// A webhook is behind a Service.
    #[error("clientConfig.service is not supported for static manifests; use clientConfig.url instead")]
    Service,
    /// A webhook is nowhere.
    #[error("clientConfig.url is required for static manifests")]
    Url,
    /// A policy has parameters.
    #[error("spec.paramKind is not supported for static manifests")]
    ParamKind,
    /// A binding names parameters.
    #[error("spec.paramRef is not supported for static manifests")]
    ParamRef,
    /// A binding is of a policy of the API.
    #[error("spec.policyName {0:?} must end with \"{STATIC_SUFFIX}\"")]
    Policy(String),
    /// A binding is of a policy that no file states.
    #[error("spec.policyName {0:?} is not the name of a policy in the same directory")]
    UnknownPolicy(String),
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The policy that a binding is of; nothing for other kinds.
fn policy_of(value: &Value) -> Option<&str> {
    value.get("spec")?.get("policyName")?.as_str()
}

/// What is wrong with an object by itself, and what of it.
pub(super) fn check(object: &dyn Object) -> Result<(), (String, Constraint)> {
    let (value, name) = (object.to_value(), &object.meta().name);
    let has = |part: &Value, name: &str| part.get(name).is_some_and(|own| !own.is_null());
    for webhook in value.get("webhooks").and_then(Value::as_array).into_iter().flatten() {
        let about = || format!("webhook {:?} in {name:?}", text(webhook, "name"));
        let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
        if has(client, "service") {
            return Err((about(), Constraint::Service));
        }
        if text(client, "url").is_empty() {
            return Err((about(), Constraint::Url));
        }
    }
    let spec = value.get("spec").unwrap_or(&Value::Null);
    let constraint = if has(spec, "paramKind") {
        Constraint::ParamKind
    } else if has(spec, "paramRef") {
        Constraint::ParamRef
    } else {
        match policy_of(&value).filter(|policy| !policy.ends_with(STATIC_SUFFIX)) {
            Some(policy) => Constraint::Policy(policy.to_owned()),
            None => return Ok(()),
        }
    };
    Err((format!("{} {name:?}", object.kind()), constraint))
}

/// Whether the policies of all bindings are there.
pub(super) fn check_bindings(all: &BTreeMap<(String, String), Stated>) -> Result<(), ManifestError> {
    for ((kind, name), stated) in all {
        let value = stated.object.to_value();
        let Some(policy) = policy_of(&value) else { continue };
        let bound = kind.strip_suffix("Binding").unwrap_or(kind);
        if !all.contains_key(&(bound.to_owned(), policy.to_owned())) {
            let (file, about) = (stated.file.clone(), format!("{kind} {name:?}"));
            return Err(ManifestError::Constraint { file, about, why: Constraint::UnknownPolicy(policy.to_owned()) });
        }
    }
    Ok(())
}
