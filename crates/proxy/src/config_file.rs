//! The configuration as a file, for `--write-config-to`: upstream's defaults with what the flags say on top.

use api_machinery::value::{Value, ValueMap};
use api_types::proxy_config_v1alpha1::{API_VERSION, KubeProxyConfiguration};
use component_base::flags::{self, Options, Value as FlagValue};

use crate::options::FILE_PATHS;

const KIND: &str = "KubeProxyConfiguration";

/// The configuration that these flags stand for, as YAML.
///
/// # Errors
/// Never for flags of the proxy's own table.
pub(crate) fn written(options: &Options) -> Result<String, api_machinery::json::DecodeError> {
    Ok(api_machinery::yaml::to_yaml(&document(options)?))
}

/// The same, as `/configz` shows it.
///
/// # Errors
/// Never for flags of the proxy's own table.
pub(crate) fn shown(options: &Options) -> Result<Value, api_machinery::json::DecodeError> {
    Ok(ValueMap::from_iter([("kubeproxy.config.k8s.io".into(), document(options)?)]).into())
}

fn document(options: &Options) -> Result<Value, api_machinery::json::DecodeError> {
    let mut configuration = KubeProxyConfiguration::default();
    api_machinery::defaults::fill(&mut configuration);
    let text = api_machinery::json::encode_typed(KIND, API_VERSION, &configuration);
    let mut document = api_machinery::json::parse_value(&text)?;
    for (flag, value) in options.iter() {
        let Some((_, path)) = FILE_PATHS.iter().find(|(name, _)| *name == flag.name) else { continue };
        if let Some(value) = of_flag(value) {
            put(&mut document, path, value);
        }
    }
    put(&mut document, "hostnameOverride", options.string("hostname-override").into());
    Ok(document)
}

/// The value as the file has it; nothing for types that no setting has.
fn of_flag(value: &FlagValue) -> Option<Value> {
    Some(match value {
        FlagValue::Bool(on) => (*on).into(),
        FlagValue::Text(text) => text.as_str().into(),
        FlagValue::Int(number) => (*number).into(),
        FlagValue::Float(number) => Value::from(*number),
        FlagValue::Duration(nanoseconds) => flags::format_duration(*nanoseconds).into(),
        FlagValue::List(items) => items.iter().map(String::as_str).collect(),
        FlagValue::Ip(address) => address.map(|address| address.to_string()).unwrap_or_default().into(),
        FlagValue::Uint(_) | FlagValue::Ints(_) | FlagValue::Pairs(_) => return None,
    })
}

/// Puts a value at a path of member names.
fn put(document: &mut Value, path: &str, value: Value) {
    let mut at = document;
    for step in path.split('.') {
        if !at.is_object() {
            *at = ValueMap::new().into();
        }
        let Some(members) = at.as_object_mut() else { return };
        at = members.entry(step).or_insert(Value::Null);
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{FLAGS, Settings, prepare};

    #[test]
    fn what_is_written_is_read_again() {
        let given = [
            "--cluster-cidr=10.244.0.0/16",
            "--iptables-sync-period=45s",
            "--hostname-override=n",
            "--proxy-mode=nftables",
        ];
        let parse = |arguments: &[&str]| {
            let mut options = flags::parse(FLAGS, arguments.iter().map(|one| (*one).to_owned())).unwrap();
            prepare(&mut options).unwrap();
            options
        };
        let before = parse(&given);
        let text = written(&before).unwrap();
        let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let after = parse(&[&format!("--config={}", file.path().display())]);
        let settings = |options: &Options| Settings::from_options(options, "host").unwrap();
        assert_eq!(settings(&before), settings(&after), "{text}");
        let shown = shown(&after).unwrap();
        assert_eq!(shown["kubeproxy.config.k8s.io"]["nftables"]["syncPeriod"], "45s");
        assert!(text.contains("syncPeriod: 45s") && text.contains("kind: KubeProxyConfiguration"), "{text}");
    }
}
