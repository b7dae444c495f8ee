//! From flags to a configuration, with everything that is wrong told at once.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use api_types::apiserver_config_v1::EgressSelectorConfiguration;
use component_base::Gates;
use component_base::debugging::Contention;
use component_base::flags::{Errors, Invalid, Options, Versions, check_uid_headers};
use component_base::metrics::MetricsOptions;
use component_base::serving::SecureServing;
use component_helpers::taints::Comparing;

use super::admission_config::PluginFiles;
use super::durations::not_negative;
use super::{admission_config, aggregation, audit, authentication, authorization, networking, runtime_config, storage};
use crate::config::{
    AdmissionConfig, CoordinationConfig, DebuggingConfig, KubeletConfig, OwnHost, PeerConfig, RequestConfig,
    ServerConfig, ShutdownConfig,
};

/// Reads the flags, by the features that are on.
///
/// # Errors
/// Every problem.
pub fn complete(options: &Options, gates: &Gates) -> Result<ServerConfig, Invalid> {
    let mut errors = Errors::new();
    check_uid_headers(options, gates, &mut errors);
    let mut serving = SecureServing::from_options(options, "apiserver", &mut errors);
    let newcomers = count(options, "max-unauthenticated-connections-per-address", &mut errors);
    serving.limits.newcomers = (newcomers > 0).then_some(newcomers);
    if serving.address.port() == 0 {
        errors.push("--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0");
    }
    let authorization = authorization::read(options, &mut errors);
    let service_accounts = authentication::service_accounts(options, &mut errors);
    let versions = Versions::from_options(options, &mut errors);
    let config = ServerConfig {
        storage: storage::read(options, &mut errors),
        disabled: runtime_config::disabled(options, versions.emulated, &mut errors),
        authentication: authentication::read(options, &authorization, &service_accounts.issuers, &mut errors),
        authorization,
        admission: admission(options, gates, &mut errors),
        service_accounts,
        kubelet: kubelet(options, &mut errors),
        services: networking::read(options, &mut errors),
        requests: requests(options, &mut errors),
        shutdown: shutdown(options, &mut errors),
        advertise_address: advertise_address(options, &mut errors),
        external_hostname: options.string("external-hostname").to_owned(),
        livez_grace: livez_grace(options, &mut errors),
        debugging: debugging(options),
        coordination: coordination(options, &mut errors),
        peers: peers(options, &mut errors),
        host: None,
        tracing: super::tracing::read(options, &mut errors),
        metrics: MetricsOptions::from_options(options, &mut errors),
        audit: audit::read(options, &mut errors),
        aggregation: aggregation::read(options, &mut errors),
        egress: egress(options, &mut errors),
        serving: Some(serving),
    };
    errors.into_result()?;
    Ok(config)
}

fn debugging(options: &Options) -> DebuggingConfig {
    let told = options.bool("contention-profiling");
    let socket = options.string("debug-socket-path");
    DebuggingConfig {
        profiling: options.bool("profiling"),
        contention: if told { Contention::Told } else { Contention::Untold },
        socket: (!socket.is_empty()).then(|| socket.into()),
        logs: options.bool("enable-logs-handler"),
    }
}

fn peers(options: &Options, errors: &mut Errors) -> PeerConfig {
    let [ca_file, ip, port] =
        ["peer-ca-file", "peer-advertise-ip", "peer-advertise-port"].map(|flag| options.string(flag));
    if !ip.is_empty() && ip.parse::<IpAddr>().is_err() {
        errors.push(format!("--peer-advertise-ip {ip:?} is not an IP address"));
    }
    if !port.is_empty() && port.parse::<u16>().is_err() {
        errors.push(format!("--peer-advertise-port {port:?} must be between 0 and 65535"));
    }
    PeerConfig {
        ca_file: (!ca_file.is_empty()).then(|| ca_file.into()),
        advertise_ip: ip.to_owned(),
        advertise_port: port.to_owned(),
    }
}

fn coordination(options: &Options, errors: &mut Errors) -> CoordinationConfig {
    const LEASE: &str = "coordinated-leadership-lease-duration";
    const RENEW: &str = "coordinated-leadership-renew-deadline";
    const RETRY: &str = "coordinated-leadership-retry-period";
    for (longer, shorter) in [(LEASE, RENEW), (RENEW, RETRY)] {
        let is_longer = options.duration_ns(longer) > options.duration_ns(shorter);
        errors.check(is_longer, format!("--{longer} must be greater than --{shorter}"));
    }
    let [lease_duration, renew_deadline, retry_period] = [LEASE, RENEW, RETRY].map(|flag| options.duration(flag));
    CoordinationConfig { lease_duration, renew_deadline, retry_period }
}

fn egress(options: &Options, errors: &mut Errors) -> Option<EgressSelectorConfiguration> {
    let path = options.string("egress-selector-config-file");
    if path.is_empty() {
        return None;
    }
    egress::read(Path::new(path)).map_err(|error| errors.push(error.to_string())).ok()
}

/// The one duration whose text is worded otherwise.
fn livez_grace(options: &Options, errors: &mut Errors) -> Duration {
    errors.check(options.duration_ns("livez-grace-period") >= 0, "--livez-grace-period can not be a negative value");
    options.duration("livez-grace-period")
}

/// A count that must not be negative.
fn count(options: &Options, name: &str, errors: &mut Errors) -> usize {
    usize::try_from(options.int(name)).unwrap_or_else(|_| {
        errors.push(format!("--{name} can not be negative value"));
        0
    })
}

fn requests(options: &Options, errors: &mut Errors) -> RequestConfig {
    let directives = options.strings("strict-transport-security-directives").to_vec();
    let known = |directive: &String| {
        directive == "includeSubDomains" || directive == "preload" || directive.starts_with("max-age=")
    };
    errors.check(
        directives.iter().all(known),
        "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, \
         preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information",
    );
    let goaway_chance = options.float("goaway-chance");
    let possible = (0.0..=0.02).contains(&goaway_chance);
    errors.check(possible, "--goaway-chance can not be less than 0 or greater than 0.02");
    let minimum = count(options, "min-request-timeout", errors);
    let max_in_flight = count(options, "max-requests-inflight", errors);
    let max_mutating_in_flight = count(options, "max-mutating-requests-inflight", errors);
    let fairness = options.bool("enable-priority-and-fairness");
    errors.check(
        !fairness || max_in_flight + max_mutating_in_flight > 0,
        format!(
            "invalid configuration: MaxRequestsInFlight={max_in_flight} and \
             MaxMutatingRequestsInFlight={max_mutating_in_flight}; they must add up to something positive"
        ),
    );
    RequestConfig {
        timeout: not_negative(options, "request-timeout", errors),
        min_watch_timeout: Duration::from_secs(u64::try_from(minimum).unwrap_or(0)),
        max_in_flight,
        max_mutating_in_flight,
        fairness,
        goaway_chance,
        strict_transport_security: directives,
        cors_allowed_origins: origins(options, errors),
        allow_privileged: options.bool("allow-privileged"),
        session_bytes_per_second: session_bytes(options, errors),
    }
}

fn session_bytes(options: &Options, errors: &mut Errors) -> Option<NonZeroU64> {
    let bytes = u64::try_from(options.int("max-connection-bytes-per-sec"));
    errors.check(bytes.is_ok(), "--max-connection-bytes-per-sec can not be negative value");
    bytes.ok().and_then(NonZeroU64::new)
}

/// The sites whose pages may use the API.
fn origins(options: &Options, errors: &mut Errors) -> Vec<regex::Regex> {
    let mut patterns = Vec::new();
    for text in options.strings("cors-allowed-origins") {
        let starts = text.starts_with('^') || text.contains("//");
        if !starts || !(text.contains('$') || text.rsplit("//").next().is_some_and(|rest| rest.contains(':'))) {
            errors.push(format!(
                "--cors-allowed-origins has regular expression {text:?} that does not pin the start (^ or //) and the \
                 end ($ or :) of the host"
            ));
        }
        match regex::Regex::new(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => errors.push(format!("--cors-allowed-origins has an invalid regular expression: {error}")),
        }
    }
    patterns
}

fn shutdown(options: &Options, errors: &mut Errors) -> ShutdownConfig {
    ShutdownConfig {
        delay: not_negative(options, "shutdown-delay-duration", errors),
        send_retry_after: options.bool("shutdown-send-retry-after"),
        watch_grace: not_negative(options, "shutdown-watch-termination-grace-period", errors),
    }
}

fn admission(options: &Options, gates: &Gates, errors: &mut Errors) -> AdmissionConfig {
    let selection = selection(options, errors);
    for problem in selection.problems() {
        errors.push(problem);
    }
    let file = options.string("admission-control-config-file");
    let files = if file.is_empty() { Ok(PluginFiles::default()) } else { admission_config::read(file) };
    let files = files.unwrap_or_else(|problem| {
        errors.push(problem);
        PluginFiles::default()
    });
    let configured =
        admission::Configurations::read(&selection, &files.plugins, Comparing::by(gates)).unwrap_or_else(|problems| {
            problems.into_iter().for_each(|problem| errors.push(problem));
            admission::Configurations::default()
        });
    let settings = admission::Settings {
        configured,
        not_ready_toleration_seconds: options.int("default-not-ready-toleration-seconds"),
        unreachable_toleration_seconds: options.int("default-unreachable-toleration-seconds"),
        ..admission::Settings::default()
    };
    AdmissionConfig { selection, settings, webhook_kubeconfigs: files.webhooks, manifests: files.manifests }
}

/// Which plugins run. The old flag names them all, and goes with neither of the new ones.
fn selection(options: &Options, errors: &mut Errors) -> admission::Selection {
    let [only, enabled, disabled] = ["admission-control", "enable-admission-plugins", "disable-admission-plugins"]
        .map(|flag| options.strings(flag));
    if only.is_empty() {
        return admission::Selection { enabled: enabled.to_vec(), disabled: disabled.to_vec() };
    }
    errors.check(
        enabled.is_empty() && disabled.is_empty(),
        "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
    );
    let is_known = |name: &&String| admission::ALL.iter().any(|plugin| plugin.name == **name);
    for name in only.iter().filter(|name| !is_known(name)) {
        errors.push(format!("admission-control plugin {name:?} is unknown"));
    }
    let others = admission::ALL.iter().map(|plugin| plugin.name).filter(|name| !only.iter().any(|own| own == name));
    admission::Selection {
        enabled: only.iter().filter(is_known).cloned().collect(),
        disabled: others.map(str::to_owned).collect(),
    }
}

fn kubelet(options: &Options, errors: &mut Errors) -> KubeletConfig {
    let path = |name: &str| Some(options.string(name)).filter(|path| !path.is_empty()).map(Into::into);
    let port = u16::try_from(options.uint("kubelet-port")).unwrap_or_else(|_| {
        errors.push("--kubelet-port must be between 0 and 65535");
        0
    });
    KubeletConfig {
        certificate_authority: path("kubelet-certificate-authority"),
        client_certificate: path("kubelet-client-certificate"),
        client_key: path("kubelet-client-key"),
        timeout: options.duration("kubelet-timeout"),
        preferred_address_types: options.strings("kubelet-preferred-address-types").to_vec(),
        port,
        own_host: OwnHost::KubeletPort,
    }
}

/// The address by which the cluster reaches the server.
fn advertise_address(options: &Options, errors: &mut Errors) -> IpAddr {
    let given = options.ip("advertise-address").or_else(|| options.ip("bind-address"));
    match given.filter(|address| !address.is_unspecified()) {
        Some(address) => address,
        None => default_route_address().unwrap_or_else(|error| {
            errors.push(format!(
                "Unable to find suitable network address.error='{error}'. Try to set the AdvertiseAddress directly or \
                 provide a valid BindAddress to fix this."
            ));
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        }),
    }
}

/// The address that packets to the outside come from. Connecting a datagram socket sends nothing.
fn default_route_address() -> std::io::Result<IpAddr> {
    const OUTSIDE: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(OUTSIDE)?;
    Ok(socket.local_addr()?.ip())
}
