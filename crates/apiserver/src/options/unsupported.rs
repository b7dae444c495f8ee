//! Flags of upstream whose features this server does not have. At their defaults they mean what this server does; any
//! other value is refused, so that nobody believes in a feature that is not there.

use component_base::flags::{Errors, Flag, FlagSet, Options, Value};

const NOT_SUPPORTED: &str = "Not supported by this server: only the default is accepted.";

const fn text(name: &'static str, default: &'static str) -> Flag {
    Flag::string(name, default).help(NOT_SUPPORTED)
}

const fn list(name: &'static str, default: &'static str) -> Flag {
    Flag::string_slice(name, default).help(NOT_SUPPORTED)
}

pub(super) const EGRESS: FlagSet =
    FlagSet { title: "egress selector", flags: &[text("egress-selector-config-file", "")] };

pub(super) const ETCD: FlagSet = FlagSet { title: "etcd", flags: &[list("etcd-servers-overrides", "")] };

/// Refuses every value but the default. A text that is empty asks for nothing.
pub(super) fn refuse(options: &Options, errors: &mut Errors) {
    let unsupported = [ETCD, EGRESS];
    for flag in unsupported.iter().flat_map(|set| set.flags) {
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
