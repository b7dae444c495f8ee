//! The proxy as a process: finds its node, watches Services and EndpointSlices, keeps the rules of each family.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Node, ObjectReference};
use base::{TaskGroup, Tidy};
use client::{
    Client, ClientConfig, ClientCx, EventType, Informer, InformerOptions, Informers, RequestMetrics, Scope,
    SeriesEvent, SeriesRecorder,
};
use component_base::flags::{Errors, Options};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::BoxError;
use component_base::{Component, Known, Lifecycle, Part, notify};
use parking_lot::Mutex;
use sys::exec::LinuxExec;
use sys::net::{IpRoute, Network};
use tokio::sync::Notify;

use crate::backend::{Machine, NodePorts, RuleOptions};
use crate::endpoints::NodeTopology;
use crate::engine::{Engine, node_port_addresses};
use crate::health::Health;
use crate::health_ports::HealthPorts;
use crate::metrics::ProxyMetrics;
use crate::options::{self, Settings};
use crate::pages::Pages;
use crate::service::{ExternalIps, SERVES_EXTERNAL_IPS};
use crate::watched::Cluster;
use crate::worker::{self, Pace, Pending, Reports};
use crate::{Family, cleanup, config_file, config_watch, family, family_check};

/// How long to wait for the node to be known before going on without its addresses.
const NODE_DEADLINE: Duration = Duration::from_secs(30);
/// How long the event that tells why the process ends has to reach the API server.
const LAST_EVENT: Duration = Duration::from_secs(1);
/// How long to wait for the networks of the node's pods, where pod traffic is told by them.
const POD_NETWORKS_DEADLINE: Duration = Duration::from_secs(300);
const NODE_POLL: Duration = Duration::from_secs(1);
const ZONE: &str = "topology.kubernetes.io/zone";
/// Set to anything by whoever runs a distribution's kernel that has it all under an older number, as upstream.
const SKIP_KERNEL_CHECK: &str = "KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK";
const BEING_REMOVED: &str = "ToBeDeletedByClusterAutoscaler";

pub(crate) const NAME: &str = "kube-proxy";

const COMPONENT: Component = Component {
    name: NAME,
    about: "Steers traffic for Services to the pods behind them.",
    flags: options::FLAGS,
    gates: Known::switching(&[
        &[SERVES_EXTERNAL_IPS],
        component_base::zpages::GATES,
        client::features::GATES,
        component_base::logging::GATES,
        component_base::metrics::GATES,
    ])
    .of(Part::Proxy),
    prepare: config_file::prepare,
    drain: Duration::from_secs(5),
};

/// Runs the binary. `tidy` is called by threads before they sleep, as [`component_base::run`] says.
#[must_use]
pub fn main(tidy: Tidy) -> ExitCode {
    component_base::run(&COMPONENT, tidy, run)
}

/// Runs the proxy until it is asked to end.
///
/// # Errors
/// When the settings are wrong, the API server's address is not known, or there is no packet filter.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let proc = sys::proc::Proc::system();
    let settings = Settings::from_options(&options, &proc.hostname()?)?;
    let mut errors = Errors::new();
    let metrics = MetricsOptions::from_options(&options, &mut errors).obeying(lifecycle.gates());
    let (slis, metrics) = (Metrics::new(metrics.clone()), Metrics::of_process(metrics));
    errors.into_result()?;
    metrics.show_versions(lifecycle.versions());
    if options.bool("cleanup") {
        let cleaned = cleanup::everything(&machine(&proc)?).await;
        return cleaned.map_err(|error| format!("encountered an error while tearing down rules: {error}").into());
    }
    let target = options.string("write-config-to");
    if !target.is_empty() {
        std::fs::write(target, config_file::written(&options)?)?;
        tracing::info!(file = target, "Wrote configuration to file");
        return Ok(());
    }
    let client = client_of(&settings, &metrics, &lifecycle)?;
    let machine = machine(&proc)?;
    prepare(&settings, &machine, &proc).await?;
    if options.bool("init-only") {
        return Ok(());
    }
    let file = PathBuf::from(options.string("config"));
    let pages = Pages::new(&options, settings.mode.name(), (&metrics, slis), &lifecycle)?;
    tokio::select! {
        // Whatever it waits for: the API server may be gone.
        () = lifecycle.shutdown_requested() => Ok(()),
        ended = serve_services(settings, machine, &client, &pages, &lifecycle) => ended,
        () = config_watch::changed(&file) => Err("content of the proxy server's configuration file was updated".into()),
    }
}

fn client_of(settings: &Settings, metrics: &Metrics, lifecycle: &Lifecycle) -> Result<Client, BoxError> {
    let found = if settings.kubeconfig.is_empty() && settings.master.is_empty() {
        tracing::info!("Neither kubeconfig file nor master URL was specified, falling back to in-cluster config");
        ClientConfig::in_cluster()?
    } else {
        ClientConfig::load(&settings.kubeconfig, &settings.master)?
    };
    let mut config = found.with_component("kube-proxy").with_rate(settings.rate.0, settings.rate.1);
    config.content = settings.content;
    let cx = ClientCx::of(lifecycle, lifecycle.tasks().clone()).with_metrics(RequestMetrics::new(metrics));
    Ok(Client::new(config, cx)?)
}

fn machine(proc: &sys::proc::Proc) -> std::io::Result<Machine> {
    let exec = Arc::new(LinuxExec);
    let skips = std::env::var_os(SKIP_KERNEL_CHECK).is_some_and(|value| !value.is_empty());
    let kernel = if skips { None } else { Some(proc.kernel_version()?) };
    Ok(Machine { network: Arc::new(IpRoute::new(exec.clone(), None)), exec, kernel })
}

/// Does all that needs privileges but for the rules.
async fn prepare(settings: &Settings, machine: &Machine, proc: &sys::proc::Proc) -> Result<(), BoxError> {
    if let Err(error) = proc.set_oom_score_adj(std::process::id(), settings.oom_score_adj) {
        tracing::warn!(error = %error, "could not set the OOM score");
    }
    settings.mode.check(machine).await?;
    for problem in cleanup::all_but(Some(settings.mode), machine).await {
        tracing::warn!(problem, "rules of another mode stay");
    }
    let tracked = settings.conntrack.apply(proc);
    tracked.map_err(|error| format!("could not set conntrack parameters from kube-proxy configuration: {error}"))?;
    Ok(())
}

/// Keeps the rules of all Services.
async fn serve_services(
    mut settings: Settings,
    machine: Machine,
    client: &Client,
    pages: &Arc<Pages>,
    lifecycle: &Lifecycle,
) -> Result<(), BoxError> {
    let events = SeriesRecorder::new(client, "kube-proxy", &settings.node);
    let health = Health::new(lifecycle.clock().clone(), settings.sync_period.saturating_mul(2));
    // Nothing is known of the node yet.
    health.set_eligible(false);
    let own = ProxyMetrics::new(pages.metrics());
    if let Err(failure) = pages.serve(&settings, &health, &own, lifecycle) {
        events.event(about_node(&settings.node, EventType::Warning, failure.reason(), failure.to_string()));
        tokio::time::sleep(LAST_EVENT).await;
        return Err(failure.into());
    }
    let options = InformerOptions { resync: Some(settings.config_sync_period), ..InformerOptions::default() };
    let informers = Informers::new(client, options);
    let cluster = Arc::new(Cluster::new(&informers));
    let nodes = informers.scoped::<Node>(&Scope::object("", &settings.node));
    informers.start();
    watch_eligibility(&nodes, &health);
    let node = wait_for_node(&nodes, &settings.node).await;
    let moved = Arc::new(Notify::new());
    if settings.local_by_node {
        let networks = wait_for_pod_networks(&nodes, &settings.node).await?;
        settings.local_detectors = options::detectors_of(networks.iter().map(String::as_str))?;
        watch_pod_networks(&nodes, networks, &moved);
    }

    let families = family::families(primary_family(&settings, node.as_deref()), has_v6())?;
    family_check::check(&settings, &families)?;
    let addresses = node_addresses(&settings, node.as_deref());
    let zone = node.as_ref().and_then(|node| node.metadata.labels.get(ZONE).cloned()).unwrap_or_default();
    let topology = NodeTopology { name: settings.node.clone(), zone };
    let reports = Reports { health, metrics: own, clock: lifecycle.clock().clone() };
    let tasks = lifecycle.tasks().clone();
    let external_ips = ExternalIps::of(lifecycle.gates());
    let cx = FamilyCx { settings, external_ips, machine, cluster, nodes, topology, events, reports, tasks };
    cx.events.event(about_node(&cx.settings.node, EventType::Normal, "Starting", String::new()));
    for family in families {
        cx.start(family, &addresses).await;
    }
    notify::ready();
    moved.notified().await;
    // Everything that is told from pod traffic would be wrong; a new process finds out anew.
    Err("the node's podCIDRs changed".into())
}

/// The networks of the node's pods, once it has them.
async fn wait_for_pod_networks(nodes: &Informer<Node>, name: &str) -> Result<Vec<String>, BoxError> {
    let found = tokio::time::timeout(POD_NETWORKS_DEADLINE, async {
        loop {
            let networks = nodes.find("", name).map(|node| node.spec.pod_cidrs.clone()).unwrap_or_default();
            if !networks.is_empty() {
                return networks;
            }
            tokio::time::sleep(NODE_POLL).await;
        }
    });
    found.await.map_err(|_| match nodes.find("", name) {
        Some(_) => format!("timeout waiting for PodCIDR allocation on node {name:?}").into(),
        None => format!("timeout waiting for node {name:?} to exist").into(),
    })
}

fn watch_pod_networks(nodes: &Informer<Node>, networks: Vec<String>, moved: &Arc<Notify>) {
    let moved = Arc::clone(moved);
    nodes.subscribe(move |change| {
        if !change.is_deleted() && change.object().spec.pod_cidrs != networks {
            moved.notify_one();
        }
    });
}

/// What the loops of all families share.
struct FamilyCx {
    settings: Settings,
    external_ips: ExternalIps,
    machine: Machine,
    cluster: Arc<Cluster>,
    nodes: Informer<Node>,
    topology: NodeTopology,
    events: SeriesRecorder,
    reports: Reports,
    tasks: TaskGroup,
}

impl FamilyCx {
    /// Starts the loop of a family.
    async fn start(&self, family: Family, addresses: &[IpAddr]) {
        let settings = &self.settings;
        let rules = rule_options(settings, family, addresses, self.machine.network.as_ref()).await;
        let ports = HealthPorts::new(
            health_addresses(&rules),
            Arc::clone(&self.reports.health),
            self.tasks.clone(),
            &settings.node,
            Some(self.events.clone()),
        );
        let (backend, network) = (settings.mode.backend(&self.machine), Arc::clone(&self.machine.network));
        let engine = Engine::new(rules, self.topology.clone(), backend, network)
            .with_node_port_networks(settings.node_port_networks(family))
            .with_external_ips(self.external_ips);
        let pending = Arc::new(Pending::default());
        self.cluster.subscribe(family, &pending, &self.reports);
        watch_zone(&self.nodes, self.topology.zone.clone(), &pending);
        let (source, reports) = (Arc::clone(&self.cluster), self.reports.clone());
        let pace = Pace { min: settings.min_sync_period, retry: settings.sync_period };
        let (stop, synced) = (self.tasks.token(), Arc::clone(&self.cluster));
        self.tasks.spawn_cancellable("sync", async move {
            // Rules made from half of the Services would refuse traffic for the other half.
            synced.wait_synced().await;
            worker::run(engine, ports, source, pending, reports, pace, stop).await;
        });
    }
}

/// Where load balancers ask about Services: at the addresses that take node port traffic.
fn health_addresses(rules: &RuleOptions) -> Vec<IpAddr> {
    match &rules.node_ports {
        NodePorts::All => vec![rules.family.unspecified()],
        NodePorts::Addresses(addresses) => addresses.iter().copied().collect(),
    }
}

/// Whether the machine has IPv6.
fn has_v6() -> bool {
    let exists = std::path::Path::new("/proc/net/if_inet6").exists();
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    exists && disabled.is_ok_and(|text| text.trim() != "1")
}

/// The family of the node's own address: as configured, or else as the node has it.
fn primary_family(settings: &Settings, node: Option<&Node>) -> Family {
    let own = settings.bind_address.or_else(|| node.and_then(|node| raw_addresses(node).first().copied()));
    own.map_or(Family::V4, Family::of)
}

async fn wait_for_node(nodes: &Informer<Node>, name: &str) -> Option<Arc<Node>> {
    nodes.wait_synced().await;
    let found = tokio::time::timeout(NODE_DEADLINE, async {
        loop {
            if let Some(node) = nodes.find("", name).filter(|node| !raw_addresses(node).is_empty()) {
                return node;
            }
            tokio::time::sleep(NODE_POLL).await;
        }
    });
    let found = found.await.ok();
    if found.is_none() {
        tracing::error!(node = name, "the node is not known; going on without its addresses");
    }
    found
}

fn watch_eligibility(nodes: &Informer<Node>, health: &Arc<Health>) {
    let health = Arc::clone(health);
    nodes.subscribe(move |change| {
        let node = change.object();
        let leaving = node.spec.taints.iter().any(|taint| taint.key == BEING_REMOVED);
        health.set_eligible(!change.is_deleted() && node.metadata.deletion_timestamp.is_none() && !leaving);
    });
}

/// A cloud may say only later where the node is, and it decides which endpoints are near.
fn watch_zone(nodes: &Informer<Node>, known: String, pending: &Arc<Pending>) {
    let (pending, known) = (Arc::clone(pending), Mutex::new(known));
    nodes.subscribe(move |change| {
        let zone = change.object().metadata.labels.get(ZONE).cloned().unwrap_or_default();
        let mut known = known.lock();
        if !change.is_deleted() && *known != zone {
            pending.moved(&zone);
            *known = zone;
        }
    });
}

/// What people see in the node's events.
fn about_node(node: &str, kind: EventType, reason: &str, note: String) -> SeriesEvent {
    SeriesEvent {
        regarding: ObjectReference { kind: "Node".into(), name: node.to_owned(), ..ObjectReference::default() },
        related: None,
        kind,
        reason: reason.to_owned(),
        action: "StartKubeProxy".to_owned(),
        note,
    }
}

/// The node's internal addresses, then its external ones.
fn raw_addresses(node: &Node) -> Vec<IpAddr> {
    let of = |type_: &'static str| node.status.addresses.iter().filter(move |address| address.type_ == type_);
    of("InternalIP").chain(of("ExternalIP")).filter_map(|address| address.address.parse().ok()).collect()
}

/// One address for each family, the configured one first.
fn node_addresses(settings: &Settings, node: Option<&Node>) -> Vec<IpAddr> {
    let mut all: Vec<IpAddr> = settings.bind_address.into_iter().collect();
    all.extend(node.map(raw_addresses).unwrap_or_default());
    let first = |family| all.iter().copied().find(|address| Family::of(*address) == family);
    [Family::V4, Family::V6].into_iter().filter_map(first).collect()
}

async fn rule_options(settings: &Settings, family: Family, addresses: &[IpAddr], network: &dyn Network) -> RuleOptions {
    let node_ip = addresses.iter().copied().find(|address| Family::of(*address) == family);
    let networks = settings.node_port_networks(family);
    let node_ports = if settings.node_port_addresses.iter().any(|text| text == "primary") {
        NodePorts::Addresses(node_ip.filter(|address| !address.is_loopback()).into_iter().collect())
    } else if networks.is_empty() || networks.iter().any(|network| network.ends_with("/0")) {
        NodePorts::All
    } else {
        NodePorts::Addresses(node_port_addresses(&networks, network).await)
    };
    RuleOptions {
        family,
        mark: settings.mark,
        masquerade_all: settings.masquerade_all,
        local_detector: settings.local_detector(family),
        node_ports,
        node_ip,
        service_cidrs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_have_both_sides_and_can_be_switched() {
        assert_eq!((COMPONENT.gates.out_of_reach(), COMPONENT.gates.untold()), (vec![], vec![]));
        assert_eq!(COMPONENT.gates.one_sided(), [""; 0]);
    }
}
