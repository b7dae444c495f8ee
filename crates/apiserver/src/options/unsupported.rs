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

const fn time(name: &'static str, default: &'static str) -> Flag {
    Flag::duration(name, default).help(NOT_SUPPORTED)
}

pub(super) const ADMISSION: FlagSet = FlagSet {
    title: "admission",
    flags: &[list("admission-control", "").deprecated(
        "Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future version.",
    )],
};

pub(super) const TRACES: FlagSet = FlagSet { title: "traces", flags: &[text("tracing-config-file", "")] };

pub(super) const EGRESS: FlagSet =
    FlagSet { title: "egress selector", flags: &[text("egress-selector-config-file", "")] };

pub(super) const FEATURES: FlagSet =
    FlagSet { title: "features", flags: &[off("contention-profiling"), text("debug-socket-path", "")] };

pub(super) const GENERIC: FlagSet = FlagSet {
    title: "generic",
    flags: &[off("emulation-forward-compatible"), off("runtime-config-emulation-forward-compatible")],
};

pub(super) const ETCD: FlagSet = FlagSet {
    title: "etcd",
    flags: &[
        list("etcd-servers-overrides", ""),
        Flag::bool("watch-cache", "true").help(NOT_SUPPORTED),
        Flag::int("default-watch-cache-size", "100")
            .help("Has no effect: caches find their size themselves.")
            .deprecated("watch caches are sized automatically and this flag will be removed in a future version"),
        Flag::duration("etcd-count-metric-poll-period", "1m0s").help(NOT_SUPPORTED),
        Flag::duration("etcd-db-metric-poll-interval", "30s").help(NOT_SUPPORTED),
    ],
};

pub(super) const MISC: FlagSet = FlagSet {
    title: "misc",
    flags: &[
        time("coordinated-leadership-lease-duration", "15s"),
        time("coordinated-leadership-renew-deadline", "10s"),
        time("coordinated-leadership-retry-period", "2s"),
        off("enable-logs-handler").deprecated("This flag will be removed in v1.19"),
        Flag::uint("kubelet-read-only-port", "10255")
            .help("Has no effect.")
            .deprecated("kubelet-read-only-port is deprecated and will be removed."),
        Flag::int("max-connection-bytes-per-sec", "0").help(NOT_SUPPORTED),
        text("peer-advertise-ip", ""),
        text("peer-advertise-port", ""),
        text("peer-ca-file", ""),
    ],
};

/// Flags that do nothing upstream either: any value is accepted.
const IDLE: [&str; 2] = ["default-watch-cache-size", "kubelet-read-only-port"];

/// Refuses every value but the default. A text that is empty asks for nothing.
pub(super) fn refuse(options: &Options, errors: &mut Errors) {
    let unsupported = [GENERIC, ETCD, ADMISSION, TRACES, EGRESS, FEATURES, MISC];
    for flag in unsupported.iter().flat_map(|set| set.flags).filter(|flag| !IDLE.contains(&flag.name)) {
        if options.is_set(flag.name) && !is_default(options, flag) {
            errors.push(format!("--{} is not supported by this server; leave it at its default", flag.name));
        }
    }
}

fn is_default(options: &Options, flag: &Flag) -> bool {
    options
        .iter()
        .find(|(own, _)| own.name == flag.name)
        .is_none_or(|(_, value)| value_text(value) == flag.default || *value == Value::Text(String::new()))
}

/// A value as the table would write it.
fn value_text(value: &Value) -> String {
    match value {
        Value::List(items) => items.join(","),
        Value::Pairs(pairs) => pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
