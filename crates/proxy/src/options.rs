//! The proxy's flags, its configuration file, and the settings that both end in.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use client::ContentType;
use component_base::flags::{self, Errors, Flag, FlagSet, Invalid, Options};

use crate::Family;
use crate::backend::{self, LocalDetector, Mode};
use crate::conntrack::ConntrackSettings;
use crate::validation;

/// Flags with the place of the same setting in the configuration file; empty for none.
pub(crate) const FILE_PATHS: &[(&str, &str)] = &[
    ("bind-address", "bindAddress"),
    ("bind-address-hard-fail", "bindAddressHardFail"),
    ("cluster-cidr", "clusterCIDR"),
    ("config-sync-period", "configSyncPeriod"),
    ("conntrack-max-per-core", "conntrack.maxPerCore"),
    ("conntrack-min", "conntrack.min"),
    ("conntrack-tcp-be-liberal", "conntrack.tcpBeLiberal"),
    ("conntrack-tcp-timeout-close-wait", "conntrack.tcpCloseWaitTimeout"),
    ("conntrack-tcp-timeout-established", "conntrack.tcpEstablishedTimeout"),
    ("conntrack-udp-timeout", "conntrack.udpTimeout"),
    ("conntrack-udp-timeout-stream", "conntrack.udpStreamTimeout"),
    ("detect-local-mode", "detectLocalMode"),
    ("healthz-bind-address", "healthzBindAddress"),
    ("kube-api-burst", "clientConnection.burst"),
    ("kube-api-content-type", "clientConnection.contentType"),
    ("kube-api-qps", "clientConnection.qps"),
    ("kubeconfig", "clientConnection.kubeconfig"),
    ("metrics-bind-address", "metricsBindAddress"),
    ("nodeport-addresses", "nodePortAddresses"),
    ("oom-score-adj", "oomScoreAdj"),
    ("pod-bridge-interface", "detectLocal.bridgeInterface"),
    ("pod-interface-name-prefix", "detectLocal.interfaceNamePrefix"),
    ("proxy-mode", "mode"),
    ("masquerade-all", "nftables.masqueradeAll"),
    ("iptables-masquerade-bit", "nftables.masqueradeBit"),
    ("iptables-min-sync-period", "nftables.minSyncPeriod"),
    ("iptables-sync-period", "nftables.syncPeriod"),
    ("profiling", "enableProfiling"),
    ("show-hidden-metrics-for-version", "showHiddenMetricsForVersion"),
];

/// The proxy's own flags.
pub const FLAGS: &[FlagSet] = &[
    flags::GLOBAL,
    flags::LOGS,
    flags::METRICS,
    FlagSet {
        title: "kube-proxy",
        flags: &[
            Flag::string("config", "").help("The path to the configuration file."),
            flags::FEATURE_GATES,
            Flag::string("kubeconfig", "").help("Path to a kubeconfig that says how to reach the API server."),
            Flag::string("master", "").help("The address of the API server (overrides that in the kubeconfig)."),
            Flag::float("kube-api-qps", "5").help("Requests a second to the API server."),
            Flag::int32("kube-api-burst", "10").help("Requests at once above that rate."),
            Flag::string("kube-api-content-type", "application/vnd.kubernetes.protobuf")
                .help("Content type of requests to the API server."),
            Flag::string("hostname-override", "").help("The name of this node, where it is not the host name."),
            Flag::ip("bind-address", "0.0.0.0").help("The node's primary address; unspecified means found out."),
            Flag::bool("bind-address-hard-fail", "false")
                .help("End when an address for health or metrics is taken, instead of trying again."),
            Flag::string("healthz-bind-address", "0.0.0.0:10256").help("Address and port of the health endpoint."),
            Flag::string("metrics-bind-address", "127.0.0.1:10249").help("Address and port of the metrics endpoint."),
            Flag::int32("oom-score-adj", "-999").help("The OOM score adjustment of the process, -1000 to 1000."),
            Flag::duration("config-sync-period", "15m0s").help("How often everything is read again."),
            Flag::string("proxy-mode", "")
                .value_name("ProxyMode")
                .help("How traffic is steered: nftables, or blank for the best there is, which is nftables."),
            Flag::int32("iptables-masquerade-bit", "14").help("The bit of the packet mark for masquerading, 0 to 31."),
            Flag::bool("masquerade-all", "false").help("Masquerade all traffic to cluster addresses."),
            Flag::duration("iptables-sync-period", "30s").help("The longest time until a failed sync is tried again."),
            Flag::duration("iptables-min-sync-period", "1s").help("The shortest time between two syncs."),
            Flag::string("cluster-cidr", "").help("The networks of the pods, one for each family."),
            Flag::string("detect-local-mode", "").value_name("LocalMode").help(
                "How pod traffic is told from other traffic: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix.",
            ),
            Flag::string("pod-bridge-interface", "").help("The bridge for --detect-local-mode=BridgeInterface."),
            Flag::string("pod-interface-name-prefix", "")
                .help("The prefix for --detect-local-mode=InterfaceNamePrefix."),
            Flag::bool("init-only", "false")
                .help("Do what needs privileges, such as the limits of connection tracking, and end."),
            Flag::bool("cleanup", "false").help("Take away all rules of this and other proxy modes, and end."),
            Flag::int32("conntrack-max-per-core", "32768")
                .help("Connections to track for each processor; 0 leaves the kernel's limit."),
            Flag::int32("conntrack-min", "131072")
                .help("Connections to track at least, unless the kernel's limit stays."),
            Flag::duration("conntrack-tcp-timeout-established", "24h0m0s")
                .help("How long idle TCP connections are tracked; 0 leaves the kernel's setting."),
            Flag::duration("conntrack-tcp-timeout-close-wait", "1h0m0s")
                .help("How long half-closed TCP connections are tracked; 0 leaves the kernel's setting."),
            Flag::bool("conntrack-tcp-be-liberal", "false").help("Do not drop TCP packets outside of the window."),
            Flag::duration("conntrack-udp-timeout", "0s")
                .help("How long unanswered UDP traffic is tracked; 0 leaves the kernel's setting."),
            Flag::duration("conntrack-udp-timeout-stream", "0s")
                .help("How long answered UDP traffic is tracked; 0 leaves the kernel's setting."),
            Flag::bool("profiling", "false").help("Serve /debug/pprof and /debug/flags/v at the metrics endpoint."),
            Flag::string_slice("nodeport-addresses", "")
                .help("Networks of the node's addresses that take NodePort traffic, or \"primary\"."),
            Flag::string("write-config-to", "")
                .help("Write the configuration with its defaults to this file, and end."),
        ],
    },
    WITHOUT_EFFECT,
    PORTS,
];

/// What only other modes of proxying look at, and what has no effect upstream either.
const WITHOUT_EFFECT: FlagSet = FlagSet {
    title: "without effect",
    flags: &[
        Flag::string("boot-id-file", "/proc/sys/kernel/random/boot_id").hidden(),
        Flag::bool("iptables-localhost-nodeports", "true").help("Only of effect in iptables mode."),
        Flag::string_slice("ipvs-exclude-cidrs", "").help("Only of effect in IPVS mode."),
        Flag::duration("ipvs-min-sync-period", "1s").help("Only of effect in IPVS mode."),
        Flag::string("ipvs-scheduler", "").help("Only of effect in IPVS mode."),
        Flag::bool("ipvs-strict-arp", "false").help("Only of effect in IPVS mode."),
        Flag::duration("ipvs-sync-period", "30s").help("Only of effect in IPVS mode."),
        Flag::duration("ipvs-tcp-timeout", "0s").help("Only of effect in IPVS mode."),
        Flag::duration("ipvs-tcpfin-timeout", "0s").help("Only of effect in IPVS mode."),
        Flag::duration("ipvs-udp-timeout", "0s").help("Only of effect in IPVS mode."),
        Flag::string("machine-id-file", "/etc/machine-id,/var/lib/dbus/machine-id").hidden(),
    ],
};

/// Ports are part of the bind addresses; these are for addresses that name none, and 0 is for not serving there.
const PORTS: FlagSet = FlagSet {
    title: "deprecated",
    flags: &[
        Flag::int32("healthz-port", "10256")
            .help("The port of the health endpoint where its address names none; 0 turns it off.")
            .deprecated("Use --healthz-bind-address instead."),
        Flag::int32("metrics-port", "10249")
            .help("The port of the metrics endpoint where its address names none; 0 turns it off.")
            .deprecated("Use --metrics-bind-address instead."),
    ],
};

/// What the proxy runs with.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How traffic is steered.
    pub mode: &'static dyn Mode,
    /// Path of a kubeconfig; may be empty.
    pub kubeconfig: String,
    /// URL of the API server; may be empty.
    pub master: String,
    /// Requests a second, and at once.
    pub rate: (f64, u32),
    /// This node's name.
    pub node: String,
    /// The node's address as configured, if it is.
    pub bind_address: Option<IpAddr>,
    /// Where health is served; nothing for nowhere.
    pub healthz: Option<SocketAddr>,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Whether an address that is taken ends the process.
    pub hard_bind: bool,
    /// What requests are encoded as.
    pub content: ContentType,
    /// The OOM score adjustment.
    pub oom_score_adj: i32,
    /// The packet mark.
    pub mark: u32,
    /// Masquerade all traffic to cluster addresses.
    pub masquerade_all: bool,
    /// The longest time until a failed sync is tried again.
    pub sync_period: Duration,
    /// The shortest time between two syncs.
    pub min_sync_period: Duration,
    /// How often everything is read again.
    pub config_sync_period: Duration,
    /// What tells traffic of this node's pods from other traffic, by family.
    pub local_detectors: Vec<(Family, LocalDetector)>,
    /// Whether that is still to be taken from the node.
    pub local_by_node: bool,
    /// Networks of node addresses; `primary` for the node's own.
    pub node_port_addresses: Vec<String>,
    /// What the kernel is told about tracking connections.
    pub conntrack: ConntrackSettings,
}

impl Settings {
    /// The settings that the flags say; `host` is the machine's name.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn from_options(options: &Options, host: &str) -> Result<Self, Invalid> {
        let mut errors = Errors::new();
        let mode = options.string("proxy-mode");
        let mode = errors.ok(backend::mode(mode).ok_or_else(|| {
            let names: Vec<&str> = backend::MODES.iter().map(|mode| mode.name()).collect();
            format!("proxy mode {mode:?} is not there: use {}, or leave it blank", names.join(" or "))
        }));
        let (bit, score) = (options.int("iptables-masquerade-bit"), options.int("oom-score-adj"));
        let name = match options.string("hostname-override").trim() {
            "" => host.trim().to_lowercase(),
            name => name.to_lowercase(),
        };
        errors.check(!name.is_empty(), "empty hostname is invalid");
        let local_detectors = local_detectors(options);
        let (healthz, metrics) = (
            address_like(options, ["healthz-bind-address", "healthz-port"], Ipv6Addr::UNSPECIFIED, &mut errors),
            address_like(options, ["metrics-bind-address", "metrics-port"], Ipv6Addr::LOCALHOST, &mut errors),
        );
        let node_port_addresses = match options.strings("nodeport-addresses") {
            [] => vec!["primary".to_owned()],
            given => given.to_vec(),
        };
        let conntrack = ConntrackSettings::from_options(options);
        let content = content_type(options, &mut errors);
        validation::check(options, &mut errors);
        errors.into_result()?;
        Ok(Self {
            mode: mode.unwrap_or(backend::MODES[0]),
            conntrack,
            kubeconfig: options.string("kubeconfig").into(),
            master: options.string("master").into(),
            rate: (options.float("kube-api-qps"), u32::try_from(options.int("kube-api-burst")).unwrap_or(0)),
            node: name,
            bind_address: options.ip("bind-address").filter(|address| !address.is_unspecified()),
            healthz,
            metrics,
            hard_bind: options.bool("bind-address-hard-fail"),
            content,
            oom_score_adj: i32::try_from(score).unwrap_or(0),
            mark: 1_u32.checked_shl(u32::try_from(bit).unwrap_or(0)).unwrap_or(0),
            masquerade_all: options.bool("masquerade-all"),
            sync_period: options.duration("iptables-sync-period"),
            min_sync_period: options.duration("iptables-min-sync-period"),
            config_sync_period: options.duration("config-sync-period"),
            local_detectors,
            local_by_node: options.string("detect-local-mode") == "NodeCIDR",
            node_port_addresses,
        })
    }

    /// The networks of a family at whose addresses NodePorts answer; none where that is not said by networks.
    #[must_use]
    pub fn node_port_networks(&self, family: Family) -> Vec<String> {
        self.node_port_addresses.iter().filter(|text| Family::of_text(text) == Some(family)).cloned().collect()
    }

    /// The networks of pods, where these tell traffic of pods from other traffic.
    pub(crate) fn local_networks(&self) -> impl Iterator<Item = (Family, &str)> {
        self.local_detectors.iter().filter_map(|(family, detector)| match detector {
            LocalDetector::Network(network) => Some((*family, network.as_str())),
            _ => None,
        })
    }

    /// What tells traffic of this node's pods in a family from other traffic.
    #[must_use]
    pub fn local_detector(&self, family: Family) -> Option<LocalDetector> {
        self.local_detectors.iter().find(|(of, _)| *of == family).map(|(_, detector)| detector.clone())
    }
}

/// What traffic from these networks looks like, at most one of each family.
///
/// # Errors
/// When one is none, or there are two of a family.
pub(crate) fn detectors_of<'a>(
    networks: impl Iterator<Item = &'a str>,
) -> Result<Vec<(Family, LocalDetector)>, Invalid> {
    let (mut found, mut errors) = (Vec::<(Family, LocalDetector)>::new(), Errors::new());
    for cidr in networks {
        match Family::of_text(cidr).filter(|_| validation::is_network(cidr)) {
            Some(family) if found.iter().all(|(of, _)| *of != family) => {
                found.push((family, LocalDetector::Network(cidr.to_owned())));
            }
            Some(_) => errors.push(format_args!("cluster-cidr: more than one network of the family of {cidr}")),
            None => errors.push(format_args!(
                "cluster-cidr: Invalid value: {cidr:?}: must be a valid CIDR block (e.g. 10.100.0.0/16 or \
                 fde4:8dba:82e1::/48)"
            )),
        }
    }
    errors.into_result().map(|()| found)
}

/// An address to listen at, with a port where it names none; nothing where it is blank.
fn address(text: &str, port: u16) -> Option<SocketAddr> {
    let bare = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, port));
    bare.or_else(|_| text.parse::<SocketAddr>()).ok()
}

/// An address to listen at; where it was not asked for, one of the family of the node's own address if that was. The port is for
/// one that names none; where there is no configuration file, 0 stands for not serving there.
fn address_like(
    options: &Options,
    [flag, port]: [&'static str; 2],
    v6: Ipv6Addr,
    errors: &mut Errors,
) -> Option<SocketAddr> {
    let default_of =
        |name: &str| FLAGS.iter().flat_map(|set| set.flags).find(|own| own.name == name).map(|own| own.default);
    let port = if options.string("config").is_empty() {
        u16::try_from(options.int(port)).map_err(|_| format!("--{port}: must be a valid port"))
    } else {
        Ok(default_of(port).and_then(|port| port.parse().ok()).unwrap_or(0))
    };
    let port = errors.ok(port).filter(|port| *port != 0)?;
    let is_v6 = options.ip("bind-address").is_some_and(|address| address.is_ipv6());
    let address_of_default = default_of(flag).and_then(|text| text.parse::<SocketAddr>().ok());
    match address_of_default.filter(|_| is_v6 && default_of(flag) == Some(options.string(flag))) {
        Some(own) => Some(SocketAddr::new(v6.into(), own.port())),
        None => address(options.string(flag), port),
    }
}

fn content_type(options: &Options, errors: &mut Errors) -> ContentType {
    match options.string("kube-api-content-type") {
        "application/vnd.kubernetes.protobuf" => ContentType::Protobuf,
        "application/json" | "" => ContentType::Json,
        other => {
            errors.push(format_args!("--kube-api-content-type: unsupported content type {other:?}"));
            ContentType::Protobuf
        }
    }
}

fn local_detectors(options: &Options) -> Vec<(Family, LocalDetector)> {
    let both = |detector: LocalDetector| vec![(Family::V4, detector.clone()), (Family::V6, detector)];
    let name = |flag| options.string(flag).to_owned();
    match options.string("detect-local-mode") {
        "" | "ClusterCIDR" => {
            let given = options.string("cluster-cidr").split(',').map(str::trim).filter(|cidr| !cidr.is_empty());
            detectors_of(given).unwrap_or_default()
        }
        "NodeCIDR" => Vec::new(),
        "BridgeInterface" => both(LocalDetector::Interface(name("pod-bridge-interface"))),
        "InterfaceNamePrefix" => both(LocalDetector::InterfacePrefix(name("pod-interface-name-prefix"))),
        // Refused by [`validation::check`].
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::value::Value;

    use super::*;
    use crate::config_file::prepare;

    fn parsed(arguments: &[&str]) -> Result<Settings, Invalid> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        let mut options = flags::parse(FLAGS, arguments)?;
        prepare(&mut options)?;
        Settings::from_options(&options, "Host-1")
    }

    #[test]
    fn the_table_of_flags_is_sound() {
        let problems = flags::check_table(FLAGS).into_iter().filter(|problem| !problem.ends_with("has no help"));
        assert_eq!(problems.collect::<Vec<_>>(), [] as [String; 0]);
        for (flag, _) in FILE_PATHS {
            assert!(FLAGS.iter().any(|set| set.flags.iter().any(|own| own.name == *flag)), "{flag}");
        }
    }

    #[test]
    fn flags_are_upstreams() {
        let document = test_facts::facts("flags/kube-proxy.json");
        let own: Vec<&Flag> = FLAGS.iter().flat_map(|set| set.flags).collect();
        for facts in document["flags"].as_array().unwrap() {
            // Both ways to write a name are the same.
            let name = facts["flag"].as_str().unwrap().replace('_', "-");
            let flag = own.iter().find(|flag| flag.name == name).unwrap_or_else(|| panic!("--{name} is missing"));
            let expected = match &facts["default"] {
                Value::String(text) if text == "[]" => String::new(),
                Value::String(text) => text.clone(),
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
                other => other.to_string(),
            };
            assert_eq!(flag.default, expected, "--{name}");
        }
    }

    #[test]
    fn defaults_are_upstreams() {
        let settings = parsed(&[]).unwrap();
        assert_eq!((settings.node.as_str(), settings.mark), ("host-1", 0x4000));
        assert_eq!(settings.node_port_addresses, ["primary"]);
        assert_eq!(settings.healthz, "0.0.0.0:10256".parse().ok());
    }

    #[test]
    fn addresses_to_listen_at_may_lack_a_port_and_follow_the_nodes_own() {
        for (arguments, healthz, metrics) in [
            (&["--bind-address=fd00::4"][..], "[::]:10256", "[::1]:10249"),
            (&["--bind-address=10.0.0.4"], "0.0.0.0:10256", "127.0.0.1:10249"),
            (&["--healthz-bind-address=fd00::4", "--metrics-bind-address=[::1]:1"], "[fd00::4]:10256", "[::1]:1"),
            (&["--bind-address=fd00::4", "--healthz-bind-address=10.0.0.4"], "10.0.0.4:10256", "[::1]:10249"),
            (&["--healthz-port=1", "--metrics-port=0"], "0.0.0.0:10256", ""),
            (&["--healthz-bind-address=10.0.0.4", "--healthz-port=1"], "10.0.0.4:1", "127.0.0.1:10249"),
            (&["--bind-address=fd00::4", "--healthz-port=0", "--metrics-port=1"], "", "[::1]:10249"),
        ] {
            let settings = parsed(arguments).unwrap();
            let expected = (healthz.parse().ok(), metrics.parse().ok());
            assert_eq!((settings.healthz, settings.metrics), expected, "{arguments:?}");
        }
    }

    #[test]
    fn a_file_is_read_and_the_name_on_the_command_line_wins() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n\
                    clusterCIDR: 10.244.0.0/16\nhostnameOverride: from-file\nnftables:\n  masqueradeBit: 4\n";
        std::fs::write(file.path(), text).unwrap();
        let config = format!("--config={}", file.path().display());
        let settings = parsed(&[&config]).unwrap();
        assert_eq!((settings.node.as_str(), settings.mark), ("from-file", 16));
        assert_eq!(settings.local_detector(Family::V4), Some(LocalDetector::Network("10.244.0.0/16".into())));
        assert_eq!(parsed(&[&config, "--hostname-override=given"]).unwrap().node, "given");
    }

    #[test]
    fn pod_networks_may_come_from_the_node() {
        let settings = parsed(&["--detect-local-mode=NodeCIDR", "--cluster-cidr=10.244.0.0/16"]).unwrap();
        assert!(settings.local_by_node && settings.local_detectors.is_empty());
        let sources = detectors_of(["10.244.1.0/24", "fd00:1::/64"].into_iter()).unwrap();
        let network = |text: &str| LocalDetector::Network(text.into());
        assert_eq!(sources, [(Family::V4, network("10.244.1.0/24")), (Family::V6, network("fd00:1::/64"))]);
        assert!(detectors_of(["10.244.1.0/24", "10.244.2.0/24"].into_iter()).is_err());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (argument, part) in [
            ("--proxy-mode=ipvs", "proxy mode \"ipvs\" is not there: use nftables, or leave it blank"),
            ("--cluster-cidr=10.0.0.0", "valid CIDR"),
            ("--cluster-cidr=10.0.0.0/33", "valid CIDR"),
            ("--nodeport-addresses=everywhere", "must be a valid CIDR"),
            ("--detect-local-mode=Guess", "DetectLocalMode"),
            ("--iptables-masquerade-bit=40", "[0, 31]"),
            ("--healthz-bind-address=here", "must be IP:port"),
            ("--config=/does/not/exist", "/does/not/exist"),
            ("--kube-api-content-type=text/plain", "unsupported content type"),
        ] {
            let error = parsed(&[argument]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
