//! The flags of the server, by upstream's names, and what they say.

use std::time::Duration;

use client::{CertSource, ClientConfig, ConfigError, Trust};
use component_base::Gates;
use component_base::flags::{Errors, FEATURE_GATES, Flag, FlagSet, GLOBAL, LOGS, METRICS, Options, VERSIONS};
use component_base::metrics::MetricsOptions;
use component_base::serving::{SecureServing, secure_serving_flags};
use controller::process::{AccessOptions, DELEGATION};

use crate::addresses::Addressing;

/// The name of the process.
pub(crate) const NAME: &str = "metrics-server";
const SERVING: [Flag; 13] = secure_serving_flags("443", "apiserver.local.config/certificates");
/// Kubelets have nothing new more often than this.
const SHORTEST_RESOLUTION: Duration = Duration::from_secs(10);

/// All flags.
pub(crate) const FLAGS: &[FlagSet] = &[
    GLOBAL,
    LOGS,
    METRICS,
    DELEGATION,
    FlagSet { title: "secure serving", flags: &SERVING },
    VERSIONS,
    FlagSet { title: "features", flags: &[FEATURE_GATES] },
    KUBELET,
    OWN,
];

const OWN: FlagSet = FlagSet {
    title: "metrics server",
    flags: &[
        Flag::string("kubeconfig", "").help(
            "Path to the kubeconfig file with the API server's location and credentials; by default a pod's own.",
        ),
        Flag::duration("metric-resolution", "1m0s").help("How often kubelets are asked; at least 10 s."),
        Flag::string("node-selector", "").help("Label selector of the nodes whose kubelets are asked; empty for all."),
    ],
};

const KUBELET: FlagSet = FlagSet {
    title: "kubelet client",
    flags: &[
        Flag::string("kubelet-certificate-authority", "")
            .help("CA bundle of kubelets' serving certificates; by default that of the API server."),
        Flag::string("kubelet-client-certificate", "").help("Client certificate for kubelets."),
        Flag::string("kubelet-client-key", "").help("Key of the client certificate for kubelets."),
        Flag::bool("kubelet-insecure-tls", "false")
            .help("Do not verify the CA of serving certificates that kubelets present. For testing."),
        Flag::int("kubelet-port", "10250").help("The port of kubelets."),
        Flag::string_slice("kubelet-preferred-address-types", "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP")
            .help("Types of node addresses, the most wanted first."),
        Flag::duration("kubelet-request-timeout", "10s").help("How long a kubelet may take to answer."),
        Flag::bool("kubelet-use-node-status-port", "false")
            .help("Use the port in the node's status, which takes precedence over --kubelet-port."),
    ],
};

/// What the flags say.
#[derive(Debug)]
pub(crate) struct Config {
    /// How the API server is reached.
    pub(crate) api: ClientConfig,
    /// How kubelets are reached, but for where they are.
    pub(crate) kubelets: ClientConfig,
    pub(crate) addressing: Addressing,
    pub(crate) timeout: Duration,
    pub(crate) resolution: Duration,
    pub(crate) node_selector: String,
    pub(crate) serving: SecureServing,
    pub(crate) access: AccessOptions,
    pub(crate) metrics: MetricsOptions,
}

impl Config {
    /// Reads the flags, adding what is wrong with them to `errors`.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub(crate) fn from_options(options: &Options, gates: &Gates, errors: &mut Errors) -> Result<Self, ConfigError> {
        let api = ClientConfig::load(options.string("kubeconfig"), "")?.with_component(NAME).with_rate(200.0, 400);
        let (resolution, timeout) =
            (options.duration("metric-resolution"), options.duration("kubelet-request-timeout"));
        errors.check(
            resolution >= SHORTEST_RESOLUTION,
            format!("metric-resolution should be a time duration at least 10s, but value {resolution:?} provided"),
        );
        errors.check(
            resolution > timeout,
            format!(
                "metric-resolution should be larger than kubelet-request-timeout, but metric-resolution value \
                 {resolution:?} kubelet-request-timeout value {timeout:?} provided"
            ),
        );
        let selector = options.string("node-selector");
        errors.ok(api_machinery::labels::Selector::parse(selector));
        Ok(Self {
            kubelets: kubelets(&api, options, errors),
            api,
            addressing: addressing(options, errors),
            timeout,
            resolution,
            node_selector: selector.to_owned(),
            serving: SecureServing::from_options(options, "apiserver", errors),
            access: AccessOptions::from_options(options, gates, errors),
            metrics: MetricsOptions::from_options(options, errors),
        })
    }
}

fn addressing(options: &Options, errors: &mut Errors) -> Addressing {
    let port = options.int("kubelet-port");
    Addressing {
        preferred: options.strings("kubelet-preferred-address-types").to_vec(),
        port: u16::try_from(port).unwrap_or_else(|_| {
            errors.push(format!("--kubelet-port {port} is not a port"));
            0
        }),
        uses_status_port: options.bool("kubelet-use-node-status-port"),
    }
}

fn kubelets(api: &ClientConfig, options: &Options, errors: &mut Errors) -> ClientConfig {
    let (ca, is_insecure) = (options.string("kubelet-certificate-authority"), options.bool("kubelet-insecure-tls"));
    errors.check(
        !is_insecure || ca.is_empty(),
        "cannot use both --kubelet-certificate-authority and --kubelet-insecure-tls",
    );
    let mut config = ClientConfig { server_name: String::new(), connect_to: None, ..api.clone() };
    if is_insecure {
        config.trust = Trust::Insecure;
    } else if !ca.is_empty() {
        config.trust = Trust::File(ca.into());
    }
    let (cert, key) = (options.string("kubelet-client-certificate"), options.string("kubelet-client-key"));
    errors.check(
        cert.is_empty() == key.is_empty(),
        "need both --kubelet-client-key and --kubelet-client-certificate, or none of them",
    );
    if !cert.is_empty() {
        config.identity = CertSource::Files { cert: cert.into(), key: key.into() };
    }
    config
}
