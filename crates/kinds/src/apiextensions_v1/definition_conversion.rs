//! How objects of one version become objects of another.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::apiextensions_v1::constants::conversion_strategy_type;
use api_types::apiextensions_v1::{CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionSpec};

use crate::field_rules as rules;
use crate::webhook_client::{self, Service};

const ONLY_WEBHOOK: &str = "should not be set when strategy is not set to Webhook";

/// Checks how a definition converts, beside what it says now if there is something.
pub(super) fn check(
    spec: &CustomResourceDefinitionSpec,
    old: Option<&CustomResourceDefinition>,
    at: &Path,
    errors: &mut ErrorList,
) {
    let Some(conversion) = &spec.conversion else { return };
    let strategy = at.child("strategy");
    rules::choice(&strategy, &conversion.strategy, conversion_strategy_type::ALL, errors);
    let is_webhook = conversion.strategy == conversion_strategy_type::WEBHOOK;
    if spec.preserve_unknown_fields && is_webhook {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.push(strategy.invalid(BadValue::named(&conversion.strategy), detail));
    }
    let versions = at.child("conversionReviewVersions");
    let webhook = conversion.webhook.clone().unwrap_or_default();
    if is_webhook {
        check_client(conversion, old, &at.child("webhookClientConfig"), errors);
        let former = old.and_then(|old| old.spec.conversion.as_ref()?.webhook.as_ref());
        let had_unknown = former.is_some_and(|former| {
            !former.conversion_review_versions.is_empty()
                && !webhook_client::knows_a_review(&former.conversion_review_versions)
        });
        if webhook.conversion_review_versions.is_empty() {
            errors.push(versions.required(""));
        } else {
            let reviews = &webhook.conversion_review_versions;
            webhook_client::validate_review_versions(&versions, reviews, !had_unknown, errors);
        }
        return;
    }
    if webhook.client_config.is_some() {
        errors.push(at.child("webhookClientConfig").forbidden(ONLY_WEBHOOK));
    }
    if !webhook.conversion_review_versions.is_empty() {
        errors.push(versions.forbidden(ONLY_WEBHOOK));
    }
}

fn check_client(
    conversion: &CustomResourceConversion,
    old: Option<&CustomResourceDefinition>,
    at: &Path,
    errors: &mut ErrorList,
) {
    let Some(config) = conversion.webhook.as_ref().and_then(|webhook| webhook.client_config.as_ref()) else {
        errors.push(at.required("required when strategy is set to Webhook"));
        return;
    };
    match (&config.url, &config.service) {
        (Some(url), None) => webhook_client::validate_url(&at.child("url"), url, errors),
        (None, Some(own)) => {
            let (namespace, name, path) = (own.namespace.as_str(), own.name.as_str(), own.path.as_deref());
            let service = Service { namespace, name, path, port: own.port };
            webhook_client::validate_service(&at.child("service"), &service, errors);
        }
        _ => errors.push(at.required("exactly one of url or service is required")),
    }
    // A definition that is not in service yet stays out of it; one that is in service is not to go out.
    let is_served = old.is_some_and(|old| is_established(old) && has_readable_bundle(&old.spec));
    if is_served && let Err(error) = read_bundle(&config.ca_bundle) {
        let detail = format!("unable to load root certificates: {error}");
        errors.push(at.child("caBundle").invalid(BadValue::json("\"<CABundle>\""), detail));
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    definition.status.conditions.iter().any(|own| own.type_ == "Established" && own.status == "True")
}

fn read_bundle(bundle: &[u8]) -> Result<(), String> {
    if bundle.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    match pki::Certificate::all_from_pem(bundle) {
        Ok(found) if found.is_empty() => Err("unable to parse bytes as PEM block".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether the certificates that a definition trusts its webhook by can be read.
#[must_use]
pub fn has_readable_bundle(spec: &CustomResourceDefinitionSpec) -> bool {
    let webhook = spec
        .conversion
        .as_ref()
        .filter(|own| own.strategy == conversion_strategy_type::WEBHOOK)
        .and_then(|own| own.webhook.as_ref());
    webhook.and_then(|own| own.client_config.as_ref()).is_none_or(|config| read_bundle(&config.ca_bundle).is_ok())
}
