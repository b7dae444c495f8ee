//! Flags of upstream whose features this server does not have. At their defaults they mean what this server does; any
//! other value is refused, so that nobody believes in a feature that is not there.

use component_base::flags::{Errors, Flag, FlagSet, Options, Value};

const NOT_SUPPORTED: &str = "Not supported by this server: only the default is accepted.";

const fn off(name: &'static str) -> Flag {
    Flag::bool(name, "false").help(NOT_SUPPORTED)
}

const fn text(name: &'static str, default: &'static str) -> Flag {
    Flag::string(name, default).help(NOT_SUPPORTED)
}

const fn list(name: &'static str, default: &'static str) -> Flag {
    Flag::string_slice(name, default).help(NOT_SUPPORTED)
}

/// Tuning of audit that does nothing without a backend; the backends themselves are refused.
pub(super) const AUDITING: FlagSet = FlagSet {
    title: "auditing",
    flags: &[text("audit-log-path", ""), text("audit-policy-file", ""), text("audit-webhook-config-file", "")],
};

pub(super) const GENERIC: FlagSet = FlagSet {
    title: "generic",
    flags: &[
        list("emulated-version", ""),
        off("emulation-forward-compatible"),
        list("min-compatibility-version", ""),
        off("runtime-config-emulation-forward-compatible"),
        text("tracing-config-file", ""),
        text("egress-selector-config-file", ""),
    ],
};

pub(super) const ETCD: FlagSet = FlagSet {
    title: "etcd",
    flags: &[
        text("encryption-provider-config", ""),
        off("encryption-provider-config-automatic-reload"),
        list("etcd-servers-overrides", ""),
        Flag::bool("watch-cache", "true").help(NOT_SUPPORTED),
        Flag::int("default-watch-cache-size", "100")
            .help("Has no effect: caches find their size themselves.")
            .deprecated("watch caches are sized automatically and this flag will be removed in a future version"),
        Flag::duration("etcd-count-metric-poll-period", "1m0s").help(NOT_SUPPORTED),
        Flag::duration("etcd-db-metric-poll-interval", "30s").help(NOT_SUPPORTED),
    ],
};

pub(super) const AUTHENTICATION: FlagSet = FlagSet {
    title: "authentication",
    flags: &[
        text("authentication-config", ""),
        text("authentication-token-webhook-config-file", ""),
        text("oidc-ca-file", ""),
        text("oidc-client-id", ""),
        text("oidc-issuer-url", ""),
        text("oidc-groups-claim", ""),
        text("oidc-groups-prefix", ""),
        text("oidc-username-claim", "sub"),
        text("oidc-username-prefix", ""),
        list("oidc-signing-algs", "RS256"),
        Flag::map("oidc-required-claim", "").help(NOT_SUPPORTED),
        Flag::bool("service-account-lookup", "true").help(NOT_SUPPORTED),
        text("service-account-signing-endpoint", ""),
    ],
};

pub(super) const AUTHORIZATION: FlagSet = FlagSet {
    title: "authorization",
    flags: &[
        text("authorization-config", ""),
        text("authorization-policy-file", ""),
        text("authorization-webhook-config-file", ""),
    ],
};

pub(super) const MISC: FlagSet = FlagSet {
    title: "misc",
    flags: &[
        Flag::bool("aggregator-reject-forwarding-redirect", "true").help(NOT_SUPPORTED),
        off("contention-profiling"),
        text("debug-socket-path", ""),
        off("enable-aggregator-routing"),
        off("enable-logs-handler"),
        Flag::int("max-connection-bytes-per-sec", "0").help(NOT_SUPPORTED),
        text("peer-advertise-ip", ""),
        text("peer-advertise-port", ""),
        text("peer-ca-file", ""),
    ],
};

/// Refuses every value but the default.
pub(super) fn refuse(options: &Options, errors: &mut Errors) {
    let unsupported = [AUDITING, GENERIC, ETCD, AUTHENTICATION, AUTHORIZATION, MISC];
    for flag in unsupported.iter().flat_map(|set| set.flags).filter(|flag| flag.deprecated.is_none()) {
        if options.is_set(flag.name) && !is_default(options, flag) {
            errors.push(format!("--{} is not supported by this server; leave it at its default", flag.name));
        }
    }
    for (name, value) in options.pairs("feature-gates") {
        let stage = name.rsplit(':').next().unwrap_or(name);
        if matches!(stage, "AllAlpha" | "AllBeta") && (stage == "AllAlpha") == (value == "true") {
            errors.push(format!("--feature-gates {name}={value} is not supported by this server"));
        }
    }
    if options.bool("enable-priority-and-fairness") {
        errors.push("--enable-priority-and-fairness=true is not supported by this server; requests are bounded by --max-requests-inflight and --max-mutating-requests-inflight");
    }
}

fn is_default(options: &Options, flag: &Flag) -> bool {
    options.iter().find(|(own, _)| own.name == flag.name).is_none_or(|(_, value)| value_text(value) == flag.default)
}

/// A value as the table would write it.
fn value_text(value: &Value) -> String {
    match value {
        Value::List(items) => items.join(","),
        Value::Pairs(pairs) => pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// What users should know of flags that are accepted without effect.
pub(super) fn notes(options: &Options) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if !options.string("proxy-client-cert-file").is_empty() {
        notes.push("--proxy-client-cert-file has no effect: this server has no extension API servers");
    }
    notes
}
