//! The flags of authorization.

use std::path::{Path, PathBuf};

use api_machinery::time::GoDuration;
use api_types::apiserver_config_v1::{AuthorizerConfiguration, WebhookConfiguration, WebhookConnectionInfo};
use authz::configuration::{self, KUBECONFIG_FILE, WEBHOOK};
use authz::webhook::ReviewVersion;
use component_base::config_file;
use component_base::flags::{Errors, Flag, FlagSet, Options};

use crate::config::AuthorizationConfig;

const MODE: &str = "authorization-mode";
const CONFIG: &str = "authorization-config";
const POLICY_FILE: &str = "authorization-policy-file";
const WEBHOOK_FILE: &str = "authorization-webhook-config-file";
const WEBHOOK_VERSION: &str = "authorization-webhook-version";
const AUTHORIZED_TTL: &str = "authorization-webhook-cache-authorized-ttl";
const UNAUTHORIZED_TTL: &str = "authorization-webhook-cache-unauthorized-ttl";
/// The name of the webhook that flags state, as upstream.
const WEBHOOK_NAME: &str = "default";
/// How long one question to it may take, as upstream.
const WEBHOOK_TIMEOUT_SECONDS: i64 = 30;

pub(super) const FLAGS: FlagSet = FlagSet {
    title: "authorization",
    flags: &[
        Flag::string(CONFIG, "").help(
            "File that says who decides about requests, in order: an AuthorizationConfiguration. It is followed while \
             the server runs. Not together with --authorization-mode or --authorization-webhook-*.",
        ),
        Flag::string_slice(MODE, "").help(
            "Ordered list of plug-ins to do authorization on secure port, comma separated: AlwaysAllow, AlwaysDeny, \
             ABAC, Webhook, RBAC, Node. Defaults to AlwaysAllow if --authorization-config is not used.",
        ),
        Flag::string(POLICY_FILE, "")
            .help("File with authorization policy, a JSON object in each line, used with --authorization-mode=ABAC."),
        Flag::duration(AUTHORIZED_TTL, "5m0s")
            .help("How long the webhook's answers are remembered that allow a request; 0 for not at all."),
        Flag::duration(UNAUTHORIZED_TTL, "30s")
            .help("How long the webhook's other answers are remembered; 0 for not at all."),
        Flag::string(WEBHOOK_FILE, "")
            .help("File in kubeconfig format that says where the webhook is, used with --authorization-mode=Webhook."),
        Flag::string(WEBHOOK_VERSION, "v1beta1")
            .help("The version of authorization.k8s.io SubjectAccessReview that the webhook is asked with."),
    ],
};

/// Reads the flags.
pub(super) fn read(options: &Options, errors: &mut Errors) -> AuthorizationConfig {
    let file = options.string(CONFIG);
    if !file.is_empty() {
        return of_file(file, options, errors);
    }
    let modes = modes(options, errors);
    let file_of = |flag: &str, mode: &str, errors: &mut Errors| {
        let (file, has_mode) = (options.string(flag), modes.iter().any(|own| own == mode));
        errors.check(file.is_empty() || has_mode, format!("cannot specify --{flag} without mode {mode}"));
        (!file.is_empty() && has_mode).then(|| PathBuf::from(file))
    };
    let policy_file = file_of(POLICY_FILE, "ABAC", errors);
    let webhook_file = file_of(WEBHOOK_FILE, WEBHOOK, errors);
    let has = |mode: &str| modes.iter().any(|own| own == mode);
    let is_there = policy_file.is_some() || !has("ABAC");
    errors.check(is_there, "authorization-mode ABAC's authorization policy file not passed");
    let is_there = webhook_file.is_some() || !has(WEBHOOK);
    errors.check(is_there, "authorization-mode Webhook's authorization config file not passed");
    let mut config = AuthorizationConfig::of_types(&modes);
    config.policy_file = policy_file;
    for authorizer in config.authorizers.authorizers.iter_mut().filter(|own| own.type_ == WEBHOOK) {
        *authorizer = webhook(webhook_file.as_deref(), options, errors);
    }
    config
}

fn of_file(file: &str, options: &Options, errors: &mut Errors) -> AuthorizationConfig {
    let others = [MODE, WEBHOOK_FILE, WEBHOOK_VERSION, AUTHORIZED_TTL, UNAUTHORIZED_TTL];
    let alone = !others.iter().any(|flag| options.is_set(flag));
    errors.check(
        alone,
        format!("--{CONFIG} can not be specified when --{MODE} or --authorization-webhook-* flags are defined"),
    );
    let mut config = AuthorizationConfig::of_types::<&str>(&[]);
    let text = config_file::read(Path::new(file)).map_err(|error| error.to_string());
    match text.and_then(|text| configuration::parse(&text, &[]).map_err(|error| error.to_string())) {
        Ok(authorizers) => config.authorizers = authorizers,
        Err(why) => errors.push(format!("failed to load AuthorizationConfiguration from file: {why}")),
    }
    let policy_file = options.string(POLICY_FILE);
    let has_abac = config.authorizers.authorizers.iter().any(|own| own.type_ == "ABAC");
    if has_abac && policy_file.is_empty() {
        errors.push("authorization-mode ABAC's authorization policy file not passed");
    }
    if !has_abac && !policy_file.is_empty() {
        errors.push(format!("cannot specify --{POLICY_FILE} without mode ABAC"));
    }
    config.file = Some(file.into());
    config.policy_file = (!policy_file.is_empty()).then(|| policy_file.into());
    config
}

/// The modes by name; `AlwaysAllow` where there are none.
fn modes(options: &Options, errors: &mut Errors) -> Vec<String> {
    let all = options.strings(MODE);
    for mode in all.iter().filter(|mode| !configuration::TYPES.contains(&mode.as_str())) {
        errors.push(format!("authorization-mode {mode:?} is not a valid mode"));
    }
    if all.iter().enumerate().any(|(index, mode)| all.iter().take(index).any(|former| former == mode)) {
        let all: Vec<String> = all.iter().map(|mode| format!("{mode:?}")).collect();
        errors.push(format!("{MODE} [{}] has mode specified more than once", all.join(" ")));
    }
    if all.is_empty() {
        errors.check(!options.is_set(MODE), "at least one authorization-mode must be passed");
        return vec!["AlwaysAllow".to_owned()];
    }
    all.to_vec()
}

/// The webhook that flags state.
fn webhook(file: Option<&Path>, options: &Options, errors: &mut Errors) -> AuthorizerConfiguration {
    let version = options.string(WEBHOOK_VERSION);
    if ReviewVersion::find(version).is_none() {
        let supported = "supported versions are \"v1\", \"v1beta1\"";
        errors.push(format!("unsupported webhook authorizer version {version:?}, {supported}"));
    }
    let ttl = |flag: &str| GoDuration::from_nanos(options.duration_ns(flag));
    let settings = WebhookConfiguration {
        authorized_ttl: ttl(AUTHORIZED_TTL),
        unauthorized_ttl: ttl(UNAUTHORIZED_TTL),
        timeout: GoDuration::from_secs(WEBHOOK_TIMEOUT_SECONDS),
        subject_access_review_version: version.to_owned(),
        failure_policy: "NoOpinion".to_owned(),
        connection_info: WebhookConnectionInfo {
            type_: KUBECONFIG_FILE.to_owned(),
            kube_config_file: file.map(|file| file.display().to_string()),
        },
        ..WebhookConfiguration::default()
    };
    AuthorizerConfiguration { type_: WEBHOOK.to_owned(), name: WEBHOOK_NAME.to_owned(), webhook: Some(settings) }
}

#[cfg(test)]
mod tests {
    use component_base::flags::parse;

    use super::*;

    fn read_line(line: &str) -> Result<AuthorizationConfig, String> {
        let options = parse(&[FLAGS], line.split_whitespace().map(str::to_owned)).expect("flags");
        let mut errors = Errors::new();
        let config = read(&options, &mut errors);
        errors.into_result().map(|()| config).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_make_a_configuration() {
        let line = "--authorization-mode=Node,Webhook,ABAC --authorization-webhook-config-file=/w \
            --authorization-policy-file=/p --authorization-webhook-version=v1 \
            --authorization-webhook-cache-authorized-ttl=0s";
        let config = read_line(line).expect("flags");
        let names: Vec<_> = config.authorizers.authorizers.iter().map(|own| own.name.as_str()).collect();
        assert_eq!(names, ["node", "default", "abac"]);
        let webhook = config.authorizers.authorizers[1].webhook.clone().expect("settings");
        assert_eq!(webhook.subject_access_review_version, "v1");
        assert_eq!((webhook.authorized_ttl.nanos(), webhook.unauthorized_ttl.to_string().as_str()), (0, "30s"));
        assert_eq!(webhook.connection_info.kube_config_file.as_deref(), Some("/w"));
        assert_eq!(config.policy_file.as_deref(), Some(Path::new("/p")));
        assert_eq!(read_line("").expect("nothing").authorizers.authorizers[0].type_, "AlwaysAllow");
    }

    #[test]
    fn mistakes_are_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let of_file = format!("--authorization-config={}", file.path().display());
        for (line, expected) in [
            ("--authorization-mode=Foo", "authorization-mode \"Foo\" is not a valid mode"),
            ("--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"),
            ("--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed"),
            ("--authorization-policy-file=/x", "cannot specify --authorization-policy-file without mode ABAC"),
            (
                "--authorization-webhook-config-file=/x",
                "cannot specify --authorization-webhook-config-file without mode Webhook",
            ),
            (
                "--authorization-mode=Webhook --authorization-webhook-config-file=/x --authorization-webhook-version=v2",
                "unsupported webhook authorizer version \"v2\"",
            ),
            (of_file.as_str(), "failed to load AuthorizationConfiguration from file: Object 'Kind' is missing"),
            (
                &format!("{of_file} --authorization-mode=RBAC"),
                "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
            ),
        ] {
            let error = read_line(line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
