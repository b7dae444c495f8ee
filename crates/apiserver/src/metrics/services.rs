//! What is counted of addresses and ports of Services, with upstream's names.

use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Counters, DEFAULT_BUCKETS, Desc, Gauges, Histograms, Metrics, Sample, Stability, Value};
use registry::{AllocationRecorder, Cidr, NetworkUse, Registry, RepairReport, Scope};

const TAKEN_ADDRESSES: Desc = Desc::new(
    "kube_apiserver_clusterip_allocator_allocated_ips",
    "Addresses of a network of Services that are taken.",
    Stability::Alpha,
)
.labels(&["cidr"]);
const FREE_ADDRESSES: Desc = Desc::new(
    "kube_apiserver_clusterip_allocator_available_ips",
    "Addresses of a network of Services that are free.",
    Stability::Alpha,
)
.labels(&["cidr"]);
const ADDRESSES: Desc = Desc::new(
    "kube_apiserver_clusterip_allocator_allocation_total",
    "Addresses that were given to Services, by who chose them.",
    Stability::Alpha,
)
.labels(&["cidr", "scope"]);
const ADDRESS_ERRORS: Desc = Desc::new(
    "kube_apiserver_clusterip_allocator_allocation_errors_total",
    "Addresses that could not be given to Services, by who chose them.",
    Stability::Alpha,
)
.labels(&["cidr", "scope"]);
const ADDRESS_SECONDS: Desc = Desc::new(
    "kube_apiserver_clusterip_allocator_allocation_duration_seconds",
    "How long it took to give an address to a Service.",
    Stability::Alpha,
)
.labels(&["cidr"])
.buckets(DEFAULT_BUCKETS);
const TAKEN_PORTS: Desc =
    Desc::new("kube_apiserver_nodeport_allocator_allocated_ports", "Node ports that are taken.", Stability::Alpha);
const FREE_PORTS: Desc =
    Desc::new("kube_apiserver_nodeport_allocator_available_ports", "Node ports that are free.", Stability::Alpha);
const PORTS: Desc = Desc::new(
    "kube_apiserver_nodeport_allocator_allocation_total",
    "Node ports that were given to Services, by who chose them.",
    Stability::Alpha,
)
.labels(&["scope"]);
const PORT_ERRORS: Desc = Desc::new(
    "kube_apiserver_nodeport_allocator_allocation_errors_total",
    "Node ports that could not be given to Services, by who chose them.",
    Stability::Alpha,
)
.labels(&["scope"]);
const WRONG_ADDRESSES: Desc = Desc::new(
    "apiserver_clusterip_repair_ip_errors_total",
    "Addresses about which Services and the allocator disagreed, by what was wrong.",
    Stability::Alpha,
)
.labels(&["type"]);
const FAILED_ADDRESSES: Desc = Desc::new(
    "apiserver_clusterip_repair_reconcile_errors_total",
    "Looks at the addresses of Services that failed.",
    Stability::Alpha,
);
const WRONG_PORTS: Desc = Desc::new(
    "apiserver_nodeport_repair_port_errors_total",
    "Node ports about which Services and the allocator disagreed, by what was wrong.",
    Stability::Alpha,
)
.labels(&["type"]);
const FAILED_PORTS: Desc = Desc::new(
    "apiserver_nodeport_repair_reconcile_errors_total",
    "Looks at the node ports of Services that failed.",
    Stability::Alpha,
);
/// The type of error that a port without an owner counts as once it is given back.
const LEAK: &str = "leak";

/// The families of what is given out.
pub(crate) struct AllocationMetrics {
    addresses: Counters,
    address_errors: Counters,
    address_seconds: Histograms,
    taken_ports: Gauges,
    free_ports: Gauges,
    ports: Counters,
    port_errors: Counters,
}

impl AllocationMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            addresses: metrics.counters(&ADDRESSES),
            address_errors: metrics.counters(&ADDRESS_ERRORS),
            address_seconds: metrics.histograms(&ADDRESS_SECONDS),
            taken_ports: metrics.gauges(&TAKEN_PORTS),
            free_ports: metrics.gauges(&FREE_PORTS),
            ports: metrics.counters(&PORTS),
            port_errors: metrics.counters(&PORT_ERRORS),
        }
    }
}

impl AllocationRecorder for AllocationMetrics {
    fn address(&self, network: Cidr, scope: Scope, succeeded: bool, took: Duration) {
        let (network, family) = (network.to_string(), if succeeded { &self.addresses } else { &self.address_errors });
        family.with(&[&network, scope.as_str()]).inc();
        self.address_seconds.with(&[&network]).observe(took.as_secs_f64());
    }

    fn port(&self, scope: Scope, succeeded: bool) {
        let family = if succeeded { &self.ports } else { &self.port_errors };
        family.with(&[scope.as_str()]).inc();
    }

    fn ports(&self, taken: u32, free: u32) {
        self.taken_ports.with(&[]).set(taken.into());
        self.free_ports.with(&[]).set(free.into());
    }
}

/// Adds the families that tell how much of each network is in use.
pub(crate) fn show_networks(metrics: &Metrics, registry: &Arc<Registry>) {
    let count = |desc: &'static Desc, of: fn(&NetworkUse) -> u64| {
        let registry = Arc::downgrade(registry);
        let sample = move |own: NetworkUse| -> Sample {
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            let value = of(&own) as f64;
            (vec![own.network.to_string()], Value::Gauge(value))
        };
        let used = move || registry.upgrade().map(|registry| registry.networks_used()).unwrap_or_default();
        metrics.computed_gauges(desc, Box::new(move || used().into_iter().map(sample).collect()));
    };
    count(&TAKEN_ADDRESSES, |own| own.taken);
    count(&FREE_ADDRESSES, |own| own.free);
}

/// The families of what was found wrong.
#[derive(Clone)]
pub(crate) struct RepairMetrics {
    wrong_addresses: Counters,
    failed_addresses: Counters,
    wrong_ports: Counters,
    failed_ports: Counters,
}

impl RepairMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            wrong_addresses: metrics.counters(&WRONG_ADDRESSES),
            failed_addresses: metrics.counters(&FAILED_ADDRESSES),
            wrong_ports: metrics.counters(&WRONG_PORTS),
            failed_ports: metrics.counters(&FAILED_PORTS),
        }
    }

    pub(crate) fn addresses(&self, report: &RepairReport) {
        for finding in &report.findings {
            self.wrong_addresses.with(&[finding.reason.error_type()]).inc();
        }
    }

    pub(crate) fn addresses_failed(&self) {
        self.failed_addresses.with(&[]).inc();
    }

    pub(crate) fn ports(&self, report: &RepairReport) {
        for finding in &report.findings {
            self.wrong_ports.with(&[finding.reason.error_type()]).inc();
        }
        for _ in 0..report.freed {
            self.wrong_ports.with(&[LEAK]).inc();
        }
    }

    pub(crate) fn ports_failed(&self) {
        self.failed_ports.with(&[]).inc();
    }
}
