//! KubeProxyConfiguration and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::time::GoDuration;
use api_machinery::value::Value;

/// How a component reaches the API server.
#[api]
pub struct ClientConnectionConfiguration {
    /// Path of a kubeconfig.
    #[field(0, always)]
    pub kubeconfig: String,
    /// Accept header; empty for the default.
    #[field(0, always)]
    pub accept_content_types: String,
    /// Media type of requests.
    #[field(0, always, fill = "\"application/vnd.kubernetes.protobuf\"")]
    pub content_type: String,
    /// Requests a second.
    #[field(0, always, fill = "5")]
    pub qps: f64,
    /// Requests at once above the rate.
    #[field(0, always, fill = "10")]
    pub burst: i32,
}

/// Part of the configuration of kube-proxy.
#[api]
pub struct KubeProxyIPTablesConfiguration {
    /// Bit of the packet mark for traffic that is masqueraded, 0 to 31.
    #[field(0, always, fill = "14")]
    pub masquerade_bit: Option<i32>,
    /// Masquerade all traffic to cluster addresses.
    #[field(0, always)]
    pub masquerade_all: bool,
    /// Serve node ports on loopback addresses.
    #[field(0, always, fill = "true")]
    pub localhost_node_ports: Option<bool>,
    /// Longest time between two looks at the rules.
    #[field(0, always, fill = "\"30s\"")]
    pub sync_period: GoDuration,
    /// Shortest time between two rule changes.
    #[field(0, always, fill = "\"1s\"")]
    pub min_sync_period: GoDuration,
}

/// Part of the configuration of kube-proxy.
#[api]
pub struct KubeProxyIPVSConfiguration {
    /// Longest time between two looks at the rules.
    #[field(0, always, fill = "\"30s\"")]
    pub sync_period: GoDuration,
    /// Shortest time between two rule changes.
    #[field(0, always)]
    pub min_sync_period: GoDuration,
    /// Scheduler of ipvs.
    #[field(0, always)]
    pub scheduler: String,
    /// Networks that ipvs cleanup leaves alone.
    #[field(0, name = "excludeCIDRs", always)]
    pub exclude_cidrs: Vec<String>,
    /// Do not answer ARP for addresses of other interfaces.
    #[field(0, name = "strictARP", always)]
    pub strict_arp: bool,
    /// Timeout of idle ipvs TCP sessions; 0 leaves the system value.
    #[field(0, always)]
    pub tcp_timeout: GoDuration,
    /// Timeout of ipvs TCP sessions after a FIN; 0 leaves the system value.
    #[field(0, always)]
    pub tcp_fin_timeout: GoDuration,
    /// Timeout of idle UDP; 0 leaves the system value.
    #[field(0, always)]
    pub udp_timeout: GoDuration,
}

/// Part of the configuration of kube-proxy.
#[api]
pub struct KubeProxyNFTablesConfiguration {
    /// Bit of the packet mark for traffic that is masqueraded, 0 to 31.
    #[field(0, always, fill = "14")]
    pub masquerade_bit: Option<i32>,
    /// Masquerade all traffic to cluster addresses.
    #[field(0, always)]
    pub masquerade_all: bool,
    /// Longest time between two looks at the rules.
    #[field(0, always, fill = "\"30s\"")]
    pub sync_period: GoDuration,
    /// Shortest time between two rule changes.
    #[field(0, always, fill = "\"1s\"")]
    pub min_sync_period: GoDuration,
}

/// Part of the configuration of kube-proxy.
#[api]
pub struct KubeProxyConntrackConfiguration {
    /// Tracked connections for each CPU core; 0 leaves the system value.
    #[field(0, always, fill = "32768")]
    pub max_per_core: Option<i32>,
    /// Fewest tracked connections, whatever the cores.
    #[field(0, always, fill = "131072")]
    pub min: Option<i32>,
    /// Timeout of idle TCP connections.
    #[field(0, always, fill = "\"24h0m0s\"")]
    pub tcp_established_timeout: Option<GoDuration>,
    /// Timeout of TCP connections that one side closed.
    #[field(0, always, fill = "\"1h0m0s\"")]
    pub tcp_close_wait_timeout: Option<GoDuration>,
    /// Track TCP packets outside the window.
    #[field(0, always)]
    pub tcp_be_liberal: bool,
    /// Timeout of idle UDP; 0 leaves the system value.
    #[field(0, always)]
    pub udp_timeout: GoDuration,
    /// Timeout of UDP streams; 0 leaves the system value.
    #[field(0, always)]
    pub udp_stream_timeout: GoDuration,
}

/// Part of the configuration of kube-proxy.
#[api]
pub struct KubeProxyWinkernelConfiguration {
    /// Network of the Windows backend.
    #[field(0, always)]
    pub network_name: String,
    /// Source address of the Windows backend.
    #[field(0, always)]
    pub source_vip: String,
    /// Direct server return on Windows.
    #[field(0, name = "enableDSR", always)]
    pub enable_dsr: bool,
    /// Root endpoint on Windows.
    #[field(0, always)]
    pub root_hns_endpoint_name: String,
    /// Forward health checks on Windows.
    #[field(0, always)]
    pub forward_health_check_vip: bool,
}

/// Part of the configuration of kube-proxy.
#[api]
pub struct DetectLocalConfiguration {
    /// Bridge whose traffic is local.
    #[field(0, always)]
    pub bridge_interface: String,
    /// Prefix of interfaces whose traffic is local.
    #[field(0, always)]
    pub interface_name_prefix: String,
}

/// Configuration of kube-proxy.
#[api(group = "kubeproxy.config.k8s.io", version = "v1alpha1", kind = "KubeProxyConfiguration")]
pub struct KubeProxyConfiguration {
    /// Feature gates by name.
    #[field(0)]
    pub feature_gates: BTreeMap<String, bool>,
    /// How to reach the API server.
    #[field(0, always)]
    pub client_connection: ClientConnectionConfiguration,
    /// Log settings.
    #[field(0)]
    pub logging: Value,
    /// Name of this node instead of its host name.
    #[field(0, always)]
    pub hostname_override: String,
    /// Address of this node; unspecified means found by the proxy.
    #[field(0, always, fill = "\"0.0.0.0\"")]
    pub bind_address: String,
    /// Address and port of the health endpoint.
    #[field(0, always, fill = "\"0.0.0.0:10256\"")]
    pub healthz_bind_address: String,
    /// Address and port of the metrics endpoint.
    #[field(0, always, fill = "\"127.0.0.1:10249\"")]
    pub metrics_bind_address: String,
    /// Ports that cannot be bound are fatal.
    #[field(0, always)]
    pub bind_address_hard_fail: bool,
    /// Serve profiles on the metrics port.
    #[field(0, always)]
    pub enable_profiling: bool,
    /// Show metrics hidden in this earlier version.
    #[field(0, always)]
    pub show_hidden_metrics_for_version: String,
    /// Backend: iptables, nftables or ipvs.
    #[field(0, always)]
    pub mode: String,
    /// Settings of the iptables backend.
    #[field(0, always)]
    pub iptables: KubeProxyIPTablesConfiguration,
    /// Settings of the ipvs backend.
    #[field(0, always)]
    pub ipvs: KubeProxyIPVSConfiguration,
    /// Settings of the nftables backend.
    #[field(0, always)]
    pub nftables: KubeProxyNFTablesConfiguration,
    /// Settings of the Windows backend.
    #[field(0, always)]
    pub winkernel: KubeProxyWinkernelConfiguration,
    /// How pod traffic is told from other traffic.
    #[field(0, always)]
    pub detect_local_mode: String,
    /// Settings of some ways to tell pod traffic.
    #[field(0, always)]
    pub detect_local: DetectLocalConfiguration,
    /// Networks of the pods, one for each family.
    #[field(0, name = "clusterCIDR", always)]
    pub cluster_cidr: String,
    /// Networks of addresses that take node port traffic, or primary.
    #[field(0, always)]
    pub node_port_addresses: Vec<String>,
    /// OOM score adjustment of the proxy, -1000 to 1000.
    #[field(0, always, fill = "-999")]
    pub oom_score_adj: Option<i32>,
    /// Connection tracking limits.
    #[field(0, always)]
    pub conntrack: KubeProxyConntrackConfiguration,
    /// Time between resyncs from the API server.
    #[field(0, always, fill = "\"15m0s\"")]
    pub config_sync_period: GoDuration,
    /// Unused.
    #[field(0, always)]
    pub port_range: String,
    /// Run as a Windows service.
    #[field(0)]
    pub windows_run_as_service: bool,
}
