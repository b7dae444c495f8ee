//! What a server is told: the flags, read and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use api_types::apiserver_config_v1::{
    AnonymousAuthConfig, AuthorizationConfiguration, AuthorizerConfiguration, EgressSelectorConfiguration,
    JWTAuthenticator,
};
use authn::ProxyHeaders;
use component_base::debugging::Contention;
use component_base::metrics::MetricsOptions;
use component_base::serving::SecureServing;
use storage::EtcdOptions;
use tracing_otlp::TracingSettings;

use crate::server_id;

/// A resource that the server is built with: its group, version and plural name.
pub type BuiltInResource = (&'static str, &'static str, &'static str);

/// Everything about a server but the process it runs in.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// HTTPS; nothing for a server that is only called in its own process.
    pub serving: Option<SecureServing>,
    /// Where objects are kept.
    pub storage: StorageConfig,
    /// Who requests are from.
    pub authentication: AuthenticationConfig,
    /// What they may do.
    pub authorization: AuthorizationConfig,
    /// What writes must pass.
    pub admission: AdmissionConfig,
    /// Service account tokens.
    pub service_accounts: ServiceAccountConfig,
    /// How kubelets are reached.
    pub kubelet: KubeletConfig,
    /// Services and their addresses.
    pub services: ServicesConfig,
    /// `--runtime-config`: the resources that are not served, by group, version and plural name.
    pub disabled: BTreeSet<BuiltInResource>,
    /// Limits of requests.
    pub requests: RequestConfig,
    /// The end of the server.
    pub shutdown: ShutdownConfig,
    /// `--advertise-address`: how the cluster reaches the server.
    pub advertise_address: IpAddr,
    /// `--external-hostname`, for addresses given to the outside.
    pub external_hostname: String,
    /// `--livez-grace-period`.
    pub livez_grace: Duration,
    /// What it tells those who look for a fault in it.
    pub debugging: DebuggingConfig,
    /// `--tracing-config-file`: where traces go.
    pub tracing: Option<TracingSettings>,
    /// `--peer-*`: other servers of the cluster.
    pub peers: PeerConfig,
    /// What the host is called; what the kernel says where there is none. For several servers on one host.
    pub host: Option<String>,
    /// `--coordinated-leadership-*`.
    pub coordination: CoordinationConfig,
    /// What is measured.
    pub metrics: MetricsOptions,
    /// `--audit-*`: what is told of requests, and where; nothing where nobody wants to know.
    pub audit: Option<AuditConfig>,
    /// Other API servers behind this one.
    pub aggregation: AggregationConfig,
    /// `--egress-selector-config-file`: through whom the server connects to what; nothing for directly.
    pub egress: Option<EgressSelectorConfiguration>,
}

impl ServerConfig {
    /// A server for tests and for clusters in one process: in memory, without a listener, RBAC, and whoever has one of
    /// the static tokens.
    #[must_use]
    pub fn in_memory(static_tokens: Vec<StaticToken>) -> Self {
        // Of a documentation network: endpoints may not be loopback addresses.
        let address = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
        Self {
            serving: None,
            storage: StorageConfig::in_memory(),
            disabled: BTreeSet::new(),
            authentication: AuthenticationConfig {
                anonymous: AnonymousAuthConfig { enabled: true, conditions: Vec::new() },
                static_tokens,
                ..AuthenticationConfig::default()
            },
            authorization: AuthorizationConfig::of_types(&["Node", "RBAC"]),
            admission: AdmissionConfig::default(),
            service_accounts: ServiceAccountConfig { lookup: true, ..ServiceAccountConfig::default() },
            kubelet: KubeletConfig {
                certificate_authority: None,
                client_certificate: None,
                client_key: None,
                timeout: Duration::from_secs(5),
                preferred_address_types: ["InternalIP", "ExternalIP", "Hostname"].map(str::to_owned).into(),
                port: 10_250,
                own_host: OwnHost::AnyPort,
            },
            services: ServicesConfig {
                cluster_ip_ranges: vec![(IpAddr::V4(std::net::Ipv4Addr::new(10, 96, 0, 0)), 12)],
                node_ports: (30_000, 32_767),
                kubernetes_node_port: 0,
                reconciler: EndpointReconciler::Lease,
                apiserver_count: 1,
            },
            requests: RequestConfig {
                timeout: Duration::from_secs(60),
                min_watch_timeout: Duration::from_secs(1800),
                max_in_flight: 400,
                max_mutating_in_flight: 200,
                fairness: true,
                goaway_chance: 0.0,
                strict_transport_security: Vec::new(),
                cors_allowed_origins: Vec::new(),
                allow_privileged: true,
                session_bytes_per_second: None,
            },
            shutdown: ShutdownConfig::default(),
            advertise_address: address,
            external_hostname: String::new(),
            livez_grace: Duration::ZERO,
            debugging: DebuggingConfig { profiling: true, ..DebuggingConfig::default() },
            tracing: None,
            peers: PeerConfig::default(),
            host: None,
            coordination: CoordinationConfig::default(),
            metrics: MetricsOptions::default(),
            audit: None,
            aggregation: AggregationConfig::default(),
            egress: None,
        }
    }
}

impl ServerConfig {
    /// What the host is called.
    pub(crate) fn host_name(&self) -> String {
        self.host.clone().unwrap_or_else(|| server_id::host().unwrap_or_default())
    }
}

/// What a server tells those who look for a fault in it.
#[derive(Debug, Clone, Default)]
pub struct DebuggingConfig {
    /// `--profiling`: whether there are debug handlers, and metrics can be reset.
    pub profiling: bool,
    /// `--contention-profiling`.
    pub contention: Contention,
    /// `--debug-socket-path`.
    pub socket: Option<PathBuf>,
    /// `--enable-logs-handler`.
    pub logs: bool,
}

/// Other API servers of the cluster, which may be of another release.
#[derive(Debug, Clone, Default)]
pub struct PeerConfig {
    /// `--peer-ca-file`: who vouches for them; nothing is passed on to them without it.
    pub ca_file: Option<PathBuf>,
    /// `--peer-advertise-ip`; empty for the advertised address.
    pub advertise_ip: String,
    /// `--peer-advertise-port`; empty for the port that is listened on.
    pub advertise_port: String,
}

impl PeerConfig {
    /// Where others reach this server, where both flags say so.
    #[must_use]
    pub fn advertised(&self) -> Option<(String, u16)> {
        let port = self.advertise_port.parse().ok()?;
        (!self.advertise_ip.is_empty()).then(|| (self.advertise_ip.clone(), port))
    }

    /// The first flag that is used.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        let used = [
            ("peer-ca-file", self.ca_file.is_some()),
            ("peer-advertise-ip", !self.advertise_ip.is_empty()),
            ("peer-advertise-port", !self.advertise_port.is_empty()),
        ];
        used.into_iter().find(|(_, is_used)| *is_used).map(|(flag, _)| flag)
    }
}

/// How the servers agree on the one that decides who leads.
#[derive(Debug, Clone)]
pub struct CoordinationConfig {
    /// `--coordinated-leadership-lease-duration`.
    pub lease_duration: Duration,
    /// `--coordinated-leadership-renew-deadline`.
    pub renew_deadline: Duration,
    /// `--coordinated-leadership-retry-period`.
    pub retry_period: Duration,
}

impl Default for CoordinationConfig {
    fn default() -> Self {
        let [lease_duration, renew_deadline, retry_period] = [15, 10, 2].map(Duration::from_secs);
        Self { lease_duration, renew_deadline, retry_period }
    }
}

/// Other API servers behind this one.
#[derive(Debug, Clone, Default)]
pub struct AggregationConfig {
    /// `--proxy-client-cert-file`, `--proxy-client-key-file`: by what they know this one.
    pub client_pair: Option<(PathBuf, PathBuf)>,
    /// `--enable-aggregator-routing`.
    pub routing: AggregationRouting,
    /// `--aggregator-reject-forwarding-redirect`.
    pub redirects: Redirects,
}

/// Where the server behind a Service is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AggregationRouting {
    /// At the address of the Service.
    #[default]
    ClusterIp,
    /// At one of its endpoints.
    Endpoints,
}

/// What becomes of another server's redirects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Clients do not see them.
    #[default]
    Rejected,
    /// Clients get them as they are.
    Passed,
}

/// The audit log.
#[derive(Debug, Clone)]
pub struct AuditConfig {
    /// `--audit-policy-file`.
    pub policy: PathBuf,
    /// The file that events are written to, if one is.
    pub log: Option<AuditLogConfig>,
    /// The service that events are sent to, if they are.
    pub webhook: Option<AuditWebhookConfig>,
}

/// `--audit-log-*`.
#[derive(Debug, Clone)]
pub struct AuditLogConfig {
    /// `--audit-log-path`; `-` for the standard output.
    pub path: PathBuf,
    /// `--audit-log-format`.
    pub format: audit::Format,
    /// `--audit-log-maxsize`, `--audit-log-maxage`, `--audit-log-maxbackup`, `--audit-log-compress`.
    pub rotation: audit::Rotation,
    /// `--audit-log-mode`, `--audit-log-batch-*`, `--audit-log-truncate-*`.
    pub delivery: audit::Delivery,
}

/// `--audit-webhook-*`.
#[derive(Debug, Clone)]
pub struct AuditWebhookConfig {
    /// `--audit-webhook-config-file`.
    pub kubeconfig: PathBuf,
    /// `--audit-webhook-initial-backoff`.
    pub first_delay: Duration,
    /// `--audit-webhook-mode`, `--audit-webhook-batch-*`, `--audit-webhook-truncate-*`.
    pub delivery: audit::Delivery,
}

impl StorageConfig {
    fn in_memory() -> Self {
        Self {
            backend: BackendConfig::Memory,
            prefix: "/registry".to_owned(),
            media: registry::StorageMedia::Protobuf,
            event_ttl: Duration::from_secs(3600),
            lease_reuse: Duration::from_secs(60),
            garbage_collector: true,
            delete_collection_workers: 1,
            uncached: registry::uncached_by_default(),
            count_interval: Duration::from_secs(60),
            size_interval: Duration::from_secs(30),
            compaction_interval: Duration::from_secs(300),
            initialization_timeout: Duration::from_secs(60),
            health_timeout: Duration::from_secs(2),
            ready_timeout: Duration::from_secs(2),
            elsewhere: Vec::new(),
            encryption: None,
        }
    }
}

/// Where objects are kept.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// The store.
    pub backend: BackendConfig,
    /// `--etcd-prefix`.
    pub prefix: String,
    /// `--storage-media-type`.
    pub media: registry::StorageMedia,
    /// `--event-ttl`.
    pub event_ttl: Duration,
    /// `--lease-reuse-duration-seconds`.
    pub lease_reuse: Duration,
    /// `--enable-garbage-collector`.
    pub garbage_collector: bool,
    /// `--delete-collection-workers`.
    pub delete_collection_workers: usize,
    /// Resources without a watch cache.
    pub uncached: BTreeSet<String>,
    /// `--etcd-count-metric-poll-period`; zero for never.
    pub count_interval: Duration,
    /// `--etcd-db-metric-poll-interval`; zero for never.
    pub size_interval: Duration,
    /// `--etcd-compaction-interval`; zero for never.
    pub compaction_interval: Duration,
    /// `--storage-initialization-timeout`.
    pub initialization_timeout: Duration,
    /// `--etcd-healthcheck-timeout`.
    pub health_timeout: Duration,
    /// `--etcd-readycheck-timeout`.
    pub ready_timeout: Duration,
    /// Resources that are kept in another etcd (`--etcd-servers-overrides`).
    pub elsewhere: Vec<(GroupResource, EtcdOptions)>,
    /// How values lie in the store; nothing for as they are.
    pub encryption: Option<EncryptionFile>,
}

/// An `EncryptionConfiguration`.
#[derive(Debug, Clone)]
pub struct EncryptionFile {
    /// `--encryption-provider-config`.
    pub path: PathBuf,
    /// `--encryption-provider-config-automatic-reload`.
    pub follows: bool,
}

/// Which store.
#[derive(Debug, Clone)]
pub enum BackendConfig {
    /// etcd (`--etcd-servers`).
    Etcd(Box<EtcdOptions>),
    /// A store within the process, in this directory.
    Embedded(PathBuf),
    /// Memory, for tests.
    Memory,
}

/// Who requests are from.
#[derive(Debug, Clone, Default)]
pub struct AuthenticationConfig {
    /// What requests without credentials may ask for: `--anonymous-auth`, or what `--authentication-config` says.
    pub anonymous: AnonymousAuthConfig,
    /// What the file says of it; a changed file must say the same.
    pub anonymous_of_file: Option<AnonymousAuthConfig>,
    /// Whose tokens are accepted beside the server's own.
    pub jwt: JwtConfig,
    /// `--client-ca-file`.
    pub client_ca_file: Option<PathBuf>,
    /// `--token-auth-file`.
    pub token_file: Option<PathBuf>,
    /// `--enable-bootstrap-token-auth`.
    pub bootstrap_tokens: bool,
    /// `--requestheader-*`.
    pub front_proxy: Option<FrontProxyConfig>,
    /// `--authentication-token-webhook-*`.
    pub token_webhook: Option<TokenWebhookConfig>,
    /// Tokens that are known beforehand, for tests and for a cluster in one process: token, user, uid, groups.
    pub static_tokens: Vec<StaticToken>,
}

/// Issuers of tokens elsewhere: `--oidc-*`, or `--authentication-config`.
#[derive(Debug, Clone, Default)]
pub struct JwtConfig {
    /// The issuers, as the flags or the file state them at the start.
    pub issuers: Vec<JWTAuthenticator>,
    /// How their tokens may be signed.
    pub algorithms: Vec<authn::jwt::Algorithm>,
    /// The file, which is followed.
    pub file: Option<PathBuf>,
}

/// Somebody elsewhere who knows tokens.
#[derive(Debug, Clone)]
pub struct TokenWebhookConfig {
    /// `--authentication-token-webhook-config-file`.
    pub file: PathBuf,
    /// `--authentication-token-webhook-version`.
    pub version: authn::TokenReviewVersion,
    /// `--authentication-token-webhook-cache-ttl`.
    pub ttl: Duration,
}

/// A token and whose it is.
#[derive(Debug, Clone)]
pub struct StaticToken {
    /// The token.
    pub token: String,
    /// The user's name.
    pub user: String,
    /// The user's uid.
    pub uid: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

/// A proxy that authenticates for the server.
#[derive(Debug, Clone)]
pub struct FrontProxyConfig {
    /// `--requestheader-client-ca-file`.
    pub client_ca_file: PathBuf,
    /// `--requestheader-allowed-names`.
    pub allowed_names: Vec<String>,
    /// The headers.
    pub headers: ProxyHeaders,
}

/// What requests may do.
#[derive(Debug, Clone)]
pub struct AuthorizationConfig {
    /// Who decides, in order, as the flags say; where there is a file, as that says.
    pub authorizers: AuthorizationConfiguration,
    /// `--authorization-config`, which is followed.
    pub file: Option<PathBuf>,
    /// `--authorization-policy-file`.
    pub policy_file: Option<PathBuf>,
}

impl AuthorizationConfig {
    /// These types of authorizers, which need no settings.
    #[must_use]
    pub fn of_types<T: AsRef<str>>(types: &[T]) -> Self {
        let authorizer = |type_: &T| AuthorizerConfiguration {
            type_: type_.as_ref().to_owned(),
            name: authz::configuration::name_of_type(type_.as_ref()),
            webhook: None,
        };
        let authorizers = AuthorizationConfiguration { authorizers: types.iter().map(authorizer).collect() };
        Self { authorizers, file: None, policy_file: None }
    }
}

/// What writes must pass.
#[derive(Debug, Clone, Default)]
pub struct AdmissionConfig {
    /// Which plugins.
    pub selection: admission::Selection,
    /// Their flags.
    pub settings: admission::Settings,
    /// Who the server is to webhooks.
    pub webhook_kubeconfigs: WebhookKubeconfigs,
    /// Directories of files that state webhooks and policies, by the plugins that take them.
    pub manifests: BTreeMap<&'static str, PathBuf>,
}

/// `kubeConfigFile` of the two plugins that ask webhooks: `users` by hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookKubeconfigs {
    /// Of `MutatingAdmissionWebhook`.
    pub mutating: Option<PathBuf>,
    /// Of `ValidatingAdmissionWebhook`.
    pub validating: Option<PathBuf>,
}

/// Service account tokens.
#[derive(Debug, Clone, Default)]
pub struct ServiceAccountConfig {
    /// `--service-account-issuer`: the first signs, all are accepted.
    pub issuers: Vec<String>,
    /// `--api-audiences`, or the issuers.
    pub api_audiences: Vec<String>,
    /// `--service-account-key-file`.
    pub key_files: Vec<PathBuf>,
    /// `--service-account-signing-key-file`.
    pub signing_key_file: Option<PathBuf>,
    /// `--service-account-signing-endpoint`: the socket of somebody else who signs.
    pub signing_endpoint: Option<String>,
    /// `--service-account-jwks-uri`.
    pub jwks_uri: String,
    /// `--service-account-max-token-expiration`.
    pub max_expiration: Option<Duration>,
    /// `--service-account-extend-token-expiration`.
    pub extend_expiration: bool,
    /// `--service-account-lookup`: tokens of Secrets are good only while those and their accounts are there.
    pub lookup: bool,
}

/// How kubelets are reached.
#[derive(Debug, Clone)]
pub struct KubeletConfig {
    /// `--kubelet-certificate-authority`; without it their certificates are not checked.
    pub certificate_authority: Option<PathBuf>,
    /// `--kubelet-client-certificate`.
    pub client_certificate: Option<PathBuf>,
    /// `--kubelet-client-key`.
    pub client_key: Option<PathBuf>,
    /// `--kubelet-timeout`.
    pub timeout: Duration,
    /// `--kubelet-preferred-address-types`.
    pub preferred_address_types: Vec<String>,
    /// `--kubelet-port`, for nodes that do not say.
    pub port: u16,
    /// What a node may have this host dial on itself.
    pub own_host: OwnHost,
}

/// How far the server goes with a node whose address is the server's own host (loopback). Whoever writes a node could
/// otherwise have the server show its certificate to whatever else listens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnHost {
    /// Sessions and logs, at [`KubeletConfig::port`]; no proxied requests.
    KubeletPort,
    /// Everything, for tests that have kubelets on ports of their own.
    AnyPort,
}

/// Services and their addresses.
#[derive(Debug, Clone)]
pub struct ServicesConfig {
    /// `--service-cluster-ip-range`, one or two.
    pub cluster_ip_ranges: Vec<(IpAddr, u8)>,
    /// `--service-node-port-range`: first and last.
    pub node_ports: (u16, u16),
    /// `--kubernetes-service-node-port`; 0 for none.
    pub kubernetes_node_port: u16,
    /// `--endpoint-reconciler-type`.
    pub reconciler: EndpointReconciler,
    /// `--apiserver-count`.
    pub apiserver_count: usize,
}

impl ServicesConfig {
    /// The first address of the first range: that of the Service `kubernetes`.
    #[must_use]
    pub fn first_address(&self) -> Option<IpAddr> {
        let (network, _) = self.cluster_ip_ranges.first()?;
        Some(match network {
            IpAddr::V4(address) => IpAddr::V4(address.to_bits().checked_add(1)?.into()),
            IpAddr::V6(address) => IpAddr::V6(address.to_bits().checked_add(1)?.into()),
        })
    }

    pub(crate) fn registry_options(&self) -> registry::ServiceOptions {
        let ranges = self.cluster_ip_ranges.iter();
        registry::ServiceOptions {
            cluster_ip_ranges: ranges.filter_map(|(network, bits)| format!("{network}/{bits}").parse().ok()).collect(),
            node_ports: self.node_ports.0..=self.node_ports.1,
        }
    }
}

/// Who keeps the endpoints of the Service `kubernetes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointReconciler {
    /// Each server for as long as it renews a lease.
    Lease,
    /// As many as there are servers.
    MasterCount,
    /// Nobody.
    None,
}

/// Limits of requests.
#[derive(Debug, Clone)]
pub struct RequestConfig {
    /// `--request-timeout`.
    pub timeout: Duration,
    /// `--min-request-timeout`.
    pub min_watch_timeout: Duration,
    /// `--max-requests-inflight`; 0 for no limit.
    pub max_in_flight: usize,
    /// `--max-mutating-requests-inflight`; 0 for no limit.
    pub max_mutating_in_flight: usize,
    /// `--enable-priority-and-fairness`: the two are seats that priority levels share.
    pub fairness: bool,
    /// `--goaway-chance`.
    pub goaway_chance: f64,
    /// `--strict-transport-security-directives`.
    pub strict_transport_security: Vec<String>,
    /// `--cors-allowed-origins`.
    pub cors_allowed_origins: Vec<regex::Regex>,
    /// `--allow-privileged`.
    pub allow_privileged: bool,
    /// `--max-connection-bytes-per-sec`: what a session with a container gets in each direction; nothing for no bound.
    pub session_bytes_per_second: Option<NonZeroU64>,
}

/// The end of the server.
#[derive(Debug, Clone, Default)]
pub struct ShutdownConfig {
    /// `--shutdown-delay-duration`.
    pub delay: Duration,
    /// `--shutdown-send-retry-after`.
    pub send_retry_after: bool,
    /// `--shutdown-watch-termination-grace-period`.
    pub watch_grace: Duration,
}

/// A server's configuration, shared.
pub type SharedConfig = Arc<ServerConfig>;
