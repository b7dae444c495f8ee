//! What is wrong with a configuration; texts and their order are upstream's.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names::qualified_name;
use api_types::credentialprovider_v1::{API_VERSION, API_VERSIONS};
use api_types::kubelet_config_v1::{
    CredentialProvider, CredentialProviderConfig, ServiceAccountTokenAttributes, cache_type,
};
use kinds::go_url::Url;

/// `tokens` is the gate `KubeletServiceAccountTokenForCredentialProviders`.
pub(super) fn check(config: &CredentialProviderConfig, tokens: bool) -> ErrorList {
    let (root, mut errors) = (Path::new("providers"), ErrorList::new());
    if config.providers.is_empty() {
        errors.push(root.required("at least 1 item in plugins is required"));
    }
    for provider in &config.providers {
        check_name(&root.child("name"), &provider.name, &mut errors);
        check_program(&root, provider, &mut errors);
        if let Some(attributes) = &provider.token_attributes {
            let at = root.child("tokenAttributes");
            if !tokens {
                errors.push(at.forbidden(
                    "tokenAttributes is not supported when KubeletServiceAccountTokenForCredentialProviders feature gate is \
                     disabled",
                ));
            }
            check_tokens(&at, attributes, &provider.api_version, &mut errors);
        }
    }
    errors
}

/// It becomes a part of a path.
fn check_name(at: &Path, name: &str, errors: &mut ErrorList) {
    if name.contains('/') {
        errors.push(at.invalid(name, "provider name cannot contain '/'"));
    }
    if name.contains(' ') {
        errors.push(at.invalid(name, "provider name cannot contain spaces"));
    }
    if name == "." || name == ".." {
        errors.push(at.invalid(name, format!("provider name cannot be '{name}'")));
    }
}

fn check_program(root: &Path, provider: &CredentialProvider, errors: &mut ErrorList) {
    let (version, images, duration) =
        (root.child("apiVersion"), root.child("matchImages"), root.child("defaultCacheDuration"));
    if provider.api_version.is_empty() {
        errors.push(version.required(""));
    } else if !API_VERSIONS.contains(&provider.api_version.as_str()) {
        errors.push(version.not_supported(&provider.api_version, &API_VERSIONS));
    }
    if provider.match_images.is_empty() {
        errors.push(images.required("at least 1 item in matchImages is required"));
    }
    for image in &provider.match_images {
        if let Err(why) = Url::parse(&format!("https://{image}")) {
            errors.push(images.invalid(image, format!("match image is invalid: {why}")));
        }
    }
    match provider.default_cache_duration {
        None => errors.push(duration.required("")),
        Some(own) if own.nanos() < 0 => {
            errors.push(duration.invalid(BadValue::named(&own.to_string()), "must be greater than or equal to 0"));
        }
        Some(_) => {}
    }
}

fn check_tokens(at: &Path, attributes: &ServiceAccountTokenAttributes, version: &str, errors: &mut ErrorList) {
    let (required, optional) =
        (&attributes.required_service_account_annotation_keys, &attributes.optional_service_account_annotation_keys);
    let at_required = at.child("requiredServiceAccountAnnotationKeys");
    if attributes.service_account_token_audience.is_empty() {
        errors.push(at.child("serviceAccountTokenAudience").required(""));
    }
    if attributes.require_service_account.is_none() {
        errors.push(at.child("requireServiceAccount").required(""));
    }
    if version != API_VERSION {
        errors.push(at.forbidden(format!("tokenAttributes is only supported for {API_VERSION} API version")));
    }
    if attributes.require_service_account == Some(false) && !required.is_empty() {
        errors.push(
            at_required
                .forbidden("requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set"),
        );
    }
    check_keys(&at_required, required, errors);
    check_keys(&at.child("optionalServiceAccountAnnotationKeys"), optional, errors);
    let optional: BTreeSet<&String> = optional.iter().collect();
    let both: BTreeSet<&String> = required.iter().filter(|key| optional.contains(key)).collect();
    if !both.is_empty() {
        let both = BadValue::list(&Vec::from_iter(both));
        errors.push(at.invalid(both, "annotation keys cannot be both required and optional"));
    }
    check_cache_type(&at.child("cacheType"), &attributes.cache_type, errors);
}

/// Keys of annotations may be in any letter case.
fn check_keys(at: &Path, keys: &[String], errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for key in keys {
        errors.push_invalid(at, key, qualified_name(&key.to_lowercase()));
        if !seen.insert(key) {
            errors.push(at.duplicate(key));
        }
    }
}

fn check_cache_type(at: &Path, own: &str, errors: &mut ErrorList) {
    if own.is_empty() {
        let known = cache_type::ALL.join(", ");
        errors.push(at.required(format!(
            "cacheType is required to be set when tokenAttributes is specified. Supported values are: {known}"
        )));
    } else if !cache_type::ALL.contains(&own) {
        errors.push(at.not_supported(BadValue::named(own), cache_type::ALL));
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::time::GoDuration;

    use super::*;

    fn good() -> CredentialProvider {
        CredentialProvider {
            name: "p".into(),
            match_images: vec!["*.example.com:5000/a".into()],
            default_cache_duration: Some(GoDuration::from_secs(60)),
            api_version: API_VERSION.into(),
            ..CredentialProvider::default()
        }
    }

    fn problems(provider: CredentialProvider) -> String {
        let config = CredentialProviderConfig { providers: vec![provider] };
        check(&config, true).into_result().map_or_else(|errors| errors.to_string(), |()| String::new())
    }

    #[test]
    fn programs_have_upstreams_rules() {
        let none = check(&CredentialProviderConfig::default(), true).to_string();
        assert_eq!(none, "providers: Required value: at least 1 item in plugins is required");
        type Change = fn(&mut CredentialProvider);
        let cases: &[(Change, &str)] = &[
            (|_| {}, ""),
            (
                |own| own.name = "a/b".into(),
                r#"providers.name: Invalid value: "a/b": provider name cannot contain '/'"#,
            ),
            (
                |own| own.name = "a b".into(),
                r#"providers.name: Invalid value: "a b": provider name cannot contain spaces"#,
            ),
            (|own| own.name = ".".into(), r#"providers.name: Invalid value: ".": provider name cannot be '.'"#),
            (|own| own.name = "..".into(), r#"providers.name: Invalid value: "..": provider name cannot be '..'"#),
            (|own| own.api_version.clear(), "providers.apiVersion: Required value"),
            (
                |own| own.api_version = "v7".into(),
                "providers.apiVersion: Unsupported value: \"v7\": supported values: \
                 \"credentialprovider.kubelet.k8s.io/v1\", \"credentialprovider.kubelet.k8s.io/v1alpha1\", \
                 \"credentialprovider.kubelet.k8s.io/v1beta1\"",
            ),
            (
                |own| own.match_images.clear(),
                "providers.matchImages: Required value: at least 1 item in matchImages is required",
            ),
            (
                |own| own.match_images.push("a.io:x".into()),
                "providers.matchImages: Invalid value: \"a.io:x\": match image is invalid: parse \"https://a.io:x\": \
                 invalid port \":x\" after host",
            ),
            (|own| own.default_cache_duration = None, "providers.defaultCacheDuration: Required value"),
            (
                |own| own.default_cache_duration = Some(GoDuration::from_secs(-60)),
                "providers.defaultCacheDuration: Invalid value: \"-1m0s\": must be greater than or equal to 0",
            ),
            (|own| own.default_cache_duration = Some(GoDuration::default()), ""),
            (
                |own| (own.api_version, own.default_cache_duration) = (String::new(), None),
                "[providers.apiVersion: Required value, providers.defaultCacheDuration: Required value]",
            ),
        ];
        for (change, expected) in cases {
            let mut provider = good();
            change(&mut provider);
            assert_eq!(problems(provider.clone()), *expected, "{provider:?}");
        }
    }

    #[test]
    fn tokens_have_upstreams_rules() {
        type Change = fn(&mut ServiceAccountTokenAttributes);
        let cases: &[(Change, &str)] = &[
            (|_| {}, ""),
            (|own| own.service_account_token_audience.clear(), ".serviceAccountTokenAudience: Required value"),
            (|own| own.require_service_account = None, ".requireServiceAccount: Required value"),
            (
                |own| own.require_service_account = Some(false),
                ".requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when \
                 requiredServiceAccountAnnotationKeys is set",
            ),
            (
                |own| own.required_service_account_annotation_keys.push("a.io/Role".into()),
                ".requiredServiceAccountAnnotationKeys: Duplicate value: \"a.io/Role\"",
            ),
            (
                |own| own.optional_service_account_annotation_keys.push("/x".into()),
                ".optionalServiceAccountAnnotationKeys: Invalid value: \"/x\": prefix part must be non-empty",
            ),
            (
                |own| own.optional_service_account_annotation_keys.push("a.io/Role".into()),
                ": Invalid value: [\"a.io/Role\"]: annotation keys cannot be both required and optional",
            ),
            (
                |own| own.cache_type.clear(),
                ".cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. \
                 Supported values are: ServiceAccount, Token",
            ),
            (
                |own| own.cache_type = "Pod".into(),
                ".cacheType: Unsupported value: \"Pod\": supported values: \"ServiceAccount\", \"Token\"",
            ),
        ];
        for (change, expected) in cases {
            let mut attributes = ServiceAccountTokenAttributes {
                service_account_token_audience: "reg".into(),
                cache_type: cache_type::TOKEN.into(),
                require_service_account: Some(true),
                required_service_account_annotation_keys: vec!["a.io/Role".into()],
                ..ServiceAccountTokenAttributes::default()
            };
            change(&mut attributes);
            let told = problems(CredentialProvider { token_attributes: Some(attributes), ..good() });
            let expected =
                if expected.is_empty() { String::new() } else { format!("providers.tokenAttributes{expected}") };
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn tokens_are_for_those_who_can_take_them() {
        let attributes = ServiceAccountTokenAttributes {
            service_account_token_audience: "reg".into(),
            cache_type: cache_type::TOKEN.into(),
            require_service_account: Some(true),
            ..ServiceAccountTokenAttributes::default()
        };
        let older =
            CredentialProvider { api_version: API_VERSIONS[1].into(), token_attributes: Some(attributes), ..good() };
        let expected = "providers.tokenAttributes: Forbidden: tokenAttributes is only supported for \
                        credentialprovider.kubelet.k8s.io/v1 API version";
        assert_eq!(problems(older.clone()), expected);
        let off = check(&CredentialProviderConfig { providers: vec![older] }, false).to_string();
        assert!(off.contains("feature gate is disabled") && off.contains(expected), "{off}");
    }
}
