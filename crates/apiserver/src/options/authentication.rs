//! The flags of authentication.

use std::path::PathBuf;
use std::time::Duration;

use api_types::apiserver_config_v1::AnonymousAuthConfig;
use authn::{ProxyHeaders, TokenReviewVersion};
use component_base::flags::{Errors, Options};

use super::durations::not_negative;
use super::oidc;
use crate::config::{
    AuthenticationConfig, AuthorizationConfig, FrontProxyConfig, ServiceAccountConfig, TokenWebhookConfig,
};

const HOUR: Duration = Duration::from_secs(3600);
const MAX_EXPIRATION: Duration = Duration::from_secs(1 << 32);

fn path(options: &Options, name: &str) -> Option<PathBuf> {
    Some(options.string(name)).filter(|path| !path.is_empty()).map(PathBuf::from)
}

pub(super) fn read(
    options: &Options,
    authorization: &AuthorizationConfig,
    own_issuers: &[String],
    errors: &mut Errors,
) -> AuthenticationConfig {
    let allows_all = authorization.authorizers.authorizers.iter().any(|own| own.type_ == "AlwaysAllow");
    let (jwt, anonymous_of_file) = oidc::read(options, own_issuers, errors);
    let config = AuthenticationConfig {
        anonymous: anonymous_of_file.clone().unwrap_or_else(|| AnonymousAuthConfig {
            // Anonymous users who may do everything are not what anybody wants.
            enabled: options.bool("anonymous-auth") && !allows_all,
            conditions: Vec::new(),
        }),
        anonymous_of_file,
        jwt,
        client_ca_file: path(options, "client-ca-file"),
        token_file: path(options, "token-auth-file"),
        bootstrap_tokens: options.bool("enable-bootstrap-token-auth"),
        front_proxy: front_proxy(options),
        token_webhook: token_webhook(options, errors),
        static_tokens: Vec::new(),
    };
    if let (Some(proxy), Some(clients)) = (&config.front_proxy, &config.client_ca_file)
        && proxy.allowed_names.is_empty()
        && bundles_overlap(proxy, clients)
    {
        errors.push(
            "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; \
             --requestheader-allowed-names must be specified to ensure regular client certificates cannot set \
             authenticating proxy headers for arbitrary users",
        );
    }
    config
}

fn token_webhook(options: &Options, errors: &mut Errors) -> Option<TokenWebhookConfig> {
    let file = path(options, "authentication-token-webhook-config-file")?;
    let name = options.string("authentication-token-webhook-version");
    let version = TokenReviewVersion::find(name).unwrap_or_else(|| {
        let supported = "supported versions are \"v1\", \"v1beta1\"";
        errors.push(format!("unsupported webhook authenticator version {name:?}, {supported}"));
        TokenReviewVersion::V1
    });
    let ttl = not_negative(options, "authentication-token-webhook-cache-ttl", errors);
    Some(TokenWebhookConfig { file, version, ttl })
}

fn bundles_overlap(proxy: &FrontProxyConfig, clients: &std::path::Path) -> bool {
    // Files that cannot be read are reported when they are used.
    match (pki::CaBundle::load(&proxy.client_ca_file), pki::CaBundle::load(clients)) {
        (Ok(one), Ok(other)) => one.overlaps(&other),
        _ => false,
    }
}

fn front_proxy(options: &Options) -> Option<FrontProxyConfig> {
    let list = |name: &str| options.strings(name).to_vec();
    Some(FrontProxyConfig {
        client_ca_file: path(options, "requestheader-client-ca-file")?,
        allowed_names: list("requestheader-allowed-names"),
        headers: ProxyHeaders {
            username: list("requestheader-username-headers"),
            uid: list("requestheader-uid-headers"),
            groups: list("requestheader-group-headers"),
            extra_prefixes: list("requestheader-extra-headers-prefix"),
        },
    })
}

/// Issuers are told apart by their names.
fn check_issuers(issuers: &[String], errors: &mut Errors) {
    for (index, issuer) in issuers.iter().enumerate() {
        if issuer.is_empty() {
            errors.push("service-account-issuer should not be an empty string");
        } else if issuers.iter().take(index).any(|former| former == issuer) {
            errors.push(format!("service-account-issuer {issuer:?} is already specified"));
        }
    }
}

pub(super) fn service_accounts(options: &Options, errors: &mut Errors) -> ServiceAccountConfig {
    let issuers = options.strings("service-account-issuer").to_vec();
    let signing_key_file = path(options, "service-account-signing-key-file");
    let signing_endpoint = Some(options.string("service-account-signing-endpoint").to_owned());
    let signing_endpoint = signing_endpoint.filter(|socket| !socket.is_empty());
    let audiences = options.strings("api-audiences").to_vec();
    match (signing_key_file.is_some() || signing_endpoint.is_some(), !issuers.is_empty(), !audiences.is_empty()) {
        (true, true, _) => {}
        (false, false, false) => {
            errors.push("--service-account-signing-key-file and --service-account-issuer are required flags");
        }
        _ => errors.push(
            "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together",
        ),
    }
    errors.check(!issuers.is_empty(), "service-account-issuer is a required flag");
    let is_elsewhere = signing_endpoint.is_some();
    for (flag, is_named) in [
        ("service-account-signing-key-file", signing_key_file.is_some()),
        ("service-account-key-file", !options.strings("service-account-key-file").is_empty()),
    ] {
        let other = "service-account-signing-endpoint";
        errors.check(
            !(is_elsewhere && is_named),
            format!("{flag} and {other} are mutually exclusive and cannot be set at the same time"),
        );
    }
    check_issuers(&issuers, errors);
    let maximum = options.duration("service-account-max-token-expiration");
    if !maximum.is_zero() && !(HOUR..=MAX_EXPIRATION).contains(&maximum) {
        errors.push("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds");
    }
    let jwks_uri = options.string("service-account-jwks-uri").to_owned();
    if !jwks_uri.is_empty() && !jwks_uri.starts_with("https://") {
        errors.push(format!("service-account-jwks-uri requires https scheme, parsed as: {jwks_uri}"));
    }
    let mut key_files: Vec<PathBuf> = options.strings("service-account-key-file").iter().map(PathBuf::from).collect();
    if key_files.is_empty() && signing_key_file.is_none() && !is_elsewhere {
        key_files.extend(path(options, "tls-private-key-file"));
    }
    ServiceAccountConfig {
        api_audiences: if audiences.is_empty() { issuers.clone() } else { audiences },
        issuers,
        key_files,
        signing_key_file,
        signing_endpoint,
        jwks_uri,
        max_expiration: (!maximum.is_zero()).then_some(maximum),
        extend_expiration: options.bool("service-account-extend-token-expiration"),
        lookup: options.bool("service-account-lookup"),
    }
}
