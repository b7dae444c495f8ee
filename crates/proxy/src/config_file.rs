//! The configuration as a file: read over what the flags say, and written for `--write-config-to`.

use std::path::Path;

use api_machinery::value::{Value, ValueMap};
use api_types::kubelet_config_v1beta1::LoggingConfiguration;
use api_types::proxy_config_v1alpha1::{API_VERSION, KubeProxyConfiguration};
use component_base::config_file;
use component_base::flags::{self, Invalid, Options, Value as FlagValue, ValueError};

use crate::options::FILE_PATHS;

const KIND: &str = "KubeProxyConfiguration";

/// Loads the configuration file, if one is named. It takes the place of the flags, also where it says nothing, but for those
/// that are no settings, the node's name and the log.
///
/// # Errors
/// When the file cannot be read or understood.
pub(crate) fn prepare(options: &mut Options) -> Result<(), Invalid> {
    let path = options.string("config").to_owned();
    if path.is_empty() {
        return Ok(());
    }
    let failed = |error: String| Invalid::one(format!("{path}: {error}"));
    let file = config_file::load(Path::new(&path)).map_err(Invalid::one)?;
    let version = file["apiVersion"].as_str().unwrap_or_default();
    if version != API_VERSION || file["kind"] != KIND {
        return Err(failed(format!("failed to decode: it is not a {KIND} of {API_VERSION}")));
    }
    let text = api_machinery::json::encode_value(&file);
    let decoded = api_machinery::object::from_json::<KubeProxyConfiguration>(text.as_bytes());
    let (configuration, decoded) = decoded.map_err(|error| failed(format!("failed to decode: {error}")))?;
    for problem in decoded.problems {
        options.warn(format!("Using lenient decoding as strict decoding failed: {problem}"));
    }
    replace_flags(options, configuration).map_err(|error| failed(error.to_string()))
}

/// Why a file cannot take the place of flags.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("failed to decode: {0}")]
    Decode(#[from] api_machinery::json::DecodeError),
    #[error(transparent)]
    Value(#[from] ValueError),
}

/// What differs from the defaults is somebody's wish; zeros of fields without pointers are none.
fn replace_flags(options: &mut Options, configuration: KubeProxyConfiguration) -> Result<(), FileError> {
    let (wanted, defaults) = (filled(configuration.clone())?, filled(KubeProxyConfiguration::default())?);
    for (flag, path) in FILE_PATHS {
        let at = |document| path.split('.').try_fold(document, Value::get).cloned();
        let wish = at(&wanted).filter(|wish| at(&defaults).as_ref() != Some(wish));
        options.replace_from_file(flag, wish.as_ref().and_then(as_flag).as_deref())?;
    }
    let gates: Vec<String> = configuration.feature_gates.iter().map(|(name, on)| format!("{name}={on}")).collect();
    options.replace_from_file("feature-gates", (!gates.is_empty()).then(|| gates.join(",")).as_deref())?;
    if !configuration.hostname_override.is_empty() {
        options.set_from_file("hostname-override", &configuration.hostname_override)?;
    }
    set_log(options, &configuration.logging)
}

/// The log's flags win over the file, each by itself; what both say of verbosity by file counts, the flag's first.
fn set_log(options: &mut Options, logging: &Value) -> Result<(), FileError> {
    if logging.is_null() {
        return Ok(());
    }
    let mut log: LoggingConfiguration = api_machinery::object::from_value(logging)?;
    api_machinery::defaults::fill(&mut log);
    let modules: Vec<String> =
        log.vmodule.iter().map(|item| format!("{}={}", item.file_pattern, item.verbosity)).collect();
    let flush = match log.flush_frequency.value() {
        Value::String(text) => text,
        value => value.as_i64().filter(|nanos| *nanos != 0).map(flags::format_duration).unwrap_or_default(),
    };
    let (text, json) = (&log.options.text, &log.options.json);
    let settings = [
        ("logging-format", log.format.clone()),
        ("v", log.verbosity.to_string()),
        ("log-flush-frequency", flush),
        ("log-text-split-stream", text.split_stream.to_string()),
        ("log-text-info-buffer-size", text.info_buffer_size.clone()),
        ("log-json-split-stream", json.split_stream.to_string()),
        ("log-json-info-buffer-size", json.info_buffer_size.clone()),
    ];
    for (flag, value) in settings.iter().filter(|(_, value)| !value.is_empty()) {
        options.set_from_file(flag, value)?;
    }
    Ok(options.join_from_file("vmodule", &modules.join(","))?)
}

/// A value of the file as a flag would have it; nothing for what is empty.
fn as_flag(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

/// A configuration with its defaults, as a document.
fn filled(mut configuration: KubeProxyConfiguration) -> Result<Value, api_machinery::json::DecodeError> {
    api_machinery::defaults::fill(&mut configuration);
    api_machinery::json::parse_value(&api_machinery::json::encode_typed(KIND, API_VERSION, &configuration))
}

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
    let mut document = filled(KubeProxyConfiguration::default())?;
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
    use crate::options::{FLAGS, Settings};

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

    /// The options of a command line with a file of these lines.
    fn with_file(lines: &str, arguments: &[&str]) -> Options {
        let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
        std::fs::write(file.path(), format!("{head}{lines}")).unwrap();
        let config = format!("--config={}", file.path().display());
        let all = std::iter::once(config).chain(arguments.iter().map(|one| (*one).to_owned()));
        let mut options = flags::parse(FLAGS, all).unwrap();
        prepare(&mut options).unwrap();
        options
    }

    #[test]
    fn zeros_of_a_file_stand_for_defaults_unless_they_say_something() {
        // As kubeadm writes it: whatever it was not told is there nevertheless.
        let file = "bindAddress: 0.0.0.0\nbindAddressHardFail: false\nclientConnection:\n  acceptContentTypes: ''\n  \
                    burst: 0\n  contentType: ''\n  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf\n  qps: 0\n\
                    clusterCIDR: 10.244.0.0/16\nconfigSyncPeriod: 0s\nconntrack:\n  maxPerCore: null\n  min: null\n  \
                    tcpBeLiberal: false\n  tcpCloseWaitTimeout: null\n  tcpEstablishedTimeout: null\n  udpStreamTimeout: 0s\n  \
                    udpTimeout: 0s\ndetectLocal:\n  bridgeInterface: ''\n  interfaceNamePrefix: ''\ndetectLocalMode: ''\n\
                    enableProfiling: false\nhealthzBindAddress: ''\nhostnameOverride: ''\niptables:\n  localhostNodePorts: \
                    null\n  masqueradeAll: false\n  masqueradeBit: null\n  minSyncPeriod: 0s\n  syncPeriod: 0s\nipvs:\n  \
                    excludeCIDRs: null\n  minSyncPeriod: 0s\n  scheduler: ''\n  strictARP: false\n  syncPeriod: 0s\n  \
                    tcpFinTimeout: 0s\n  tcpTimeout: 0s\n  udpTimeout: 0s\nlogging:\n  flushFrequency: 0\n  options:\n    json:\n      \
                    infoBufferSize: '0'\n    text:\n      infoBufferSize: '0'\n  verbosity: 0\nmetricsBindAddress: ''\nmode: ''\n\
                    nftables:\n  masqueradeAll: false\n  masqueradeBit: null\n  minSyncPeriod: 0s\n  syncPeriod: 0s\n\
                    nodePortAddresses: null\noomScoreAdj: null\nportRange: ''\nshowHiddenMetricsForVersion: ''\nwinkernel:\n  \
                    enableDSR: false\n  forwardHealthCheckVip: false\n  networkName: ''\n  rootHnsEndpointName: ''\n  sourceVip: ''\n";
        let options = with_file(file, &[]);
        let settings = Settings::from_options(&options, "host").unwrap();
        let expected = ["--kubeconfig=/var/lib/kube-proxy/kubeconfig.conf", "--cluster-cidr=10.244.0.0/16"];
        let by_flags = flags::parse(FLAGS, expected.map(str::to_owned)).unwrap();
        assert_eq!(settings, Settings::from_options(&by_flags, "host").unwrap());
        let said = with_file("nftables:\n  masqueradeBit: 0\nconntrack:\n  maxPerCore: 0\noomScoreAdj: 0\n", &[]);
        let said = Settings::from_options(&said, "host").unwrap();
        assert_eq!((said.mark, said.conntrack.max_per_core, said.oom_score_adj), (1, 0, 0), "these zeros are values");
    }

    #[test]
    fn a_file_replaces_flags_but_for_the_nodes_name_and_the_log() {
        let file = "clusterCIDR: 10.244.0.0/16\nhostnameOverride: from-file\nshowHiddenMetricsForVersion: '1.35'\n\
                    featureGates:\n  AllAlpha: false\nlogging:\n  format: json\n  verbosity: 4\n  vmodule:\n  - \
                    filePattern: b\n    verbosity: 2\nconntrack:\n  min: 7\n";
        let given = [
            "--cluster-cidr=10.0.0.0/8",
            "--oom-score-adj=5",
            "--feature-gates=AllBeta=false",
            "--hostname-override=given",
            "--master=https://given",
            "--logging-format=text",
            "--vmodule=a=1",
        ];
        let options = with_file(file, &given);
        for (flag, expected) in [
            ("cluster-cidr", "10.244.0.0/16"),
            ("oom-score-adj", "-999"),
            ("feature-gates", "AllAlpha=false"),
            ("show-hidden-metrics-for-version", "1.35"),
            ("conntrack-min", "7"),
            ("hostname-override", "given"),
            ("master", "https://given"),
            ("logging-format", "text"),
            ("v", "4"),
            ("vmodule", "a=1,b=2"),
        ] {
            let shown = options.iter().find(|(own, _)| own.name == flag).map(|(_, value)| value.to_string());
            assert_eq!(shown.as_deref(), Some(expected), "--{flag}");
        }
        let ignored = |flag: &str| options.warnings().iter().any(|warning| warning.contains(flag));
        assert!(ignored("--cluster-cidr") && ignored("--oom-score-adj") && ignored("--feature-gates"));
        assert!(!ignored("--hostname-override") && !ignored("--logging-format") && !ignored("--master"));
        assert!(
            options.is_set("conntrack-min") && !options.is_set("oom-score-adj"),
            "only what the file asks for is asked for"
        );
        let unknown = with_file("nonsense: true\n", &[]);
        let told = "Using lenient decoding as strict decoding failed: unknown field \"nonsense\"";
        assert_eq!(unknown.warnings(), [told]);
    }
}
