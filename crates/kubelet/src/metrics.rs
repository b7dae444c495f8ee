//! The kubelet's own metrics: the families, and what is counted where it happens.
//!
//! What follows from the present state (how many pods run, and the like) is set when somebody asks: see
//! [`KubeletMetrics::show`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, MetricsOptions, Stability};
use node_api::cri::{CriError, Observer};

const fn alpha(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Alpha)
}

/// From half a second to an hour, for starts of pods.
const START_BUCKETS: &[f64] = &[
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0,
    600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
];
const SYNC_BUCKETS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
const OPERATION_BUCKETS: &[f64] = &[
    0.005,
    0.0125,
    0.03125,
    0.078125,
    0.1953125,
    0.48828125,
    1.220703125,
    3.0517578125,
    7.62939453125,
    19.073486328125,
    47.6837158203125,
    119.20928955078125,
    298.0232238769531,
    745.0580596923828,
];

const NODE_NAME: Desc = alpha("kubelet_node_name", "The node's name; always 1.").labels(&["node"]);
const CGROUP_VERSION: Desc = alpha("kubelet_cgroup_version", "The version of control groups on the machine.");
const RUNNING_PODS: Desc = alpha("kubelet_running_pods", "Pods with a ready sandbox.");
const RUNNING_CONTAINERS: Desc =
    alpha("kubelet_running_containers", "Containers by state.").labels(&["container_state"]);
const DESIRED_PODS: Desc = alpha("kubelet_desired_pods", "Pods that the node is asked to run.").labels(&["static"]);
const ACTIVE_PODS: Desc = alpha("kubelet_active_pods", "Pods that take up the node's resources.").labels(&["static"]);
const MIRROR_PODS: Desc = alpha("kubelet_mirror_pods", "Mirror pods of the node.");
const WORKING_PODS: Desc = alpha("kubelet_working_pods", "Pods that are worked on, by where they are in their life.")
    .labels(&["config", "lifecycle", "static"]);
const EPHEMERAL: Desc = alpha("kubelet_managed_ephemeral_containers", "Ephemeral containers of the node's pods.");
const PENDING_RESIZES: Desc = alpha("kubelet_pod_pending_resizes", "Resizes that wait.").labels(&["reason"]);
const RESIZES: Desc = alpha("kubelet_pod_in_progress_resizes", "Resizes that are being put into effect.");
const PLEG_LAST_SEEN: Desc =
    alpha("kubelet_pleg_last_seen_seconds", "When the runtime was last listed in full, in seconds since 1970.");
const PLEG_DURATION: Desc = alpha("kubelet_pleg_relist_duration_seconds", "How long listing the runtime takes.");
const PLEG_INTERVAL: Desc = alpha("kubelet_pleg_relist_interval_seconds", "Time between two listings of the runtime.");
const PLEG_DISCARDED: Desc = alpha("kubelet_pleg_discard_events", "Events that nobody could take.");
const STARTED_PODS: Desc = alpha("kubelet_started_pods_total", "Sandboxes that were made.");
const STARTED_PODS_ERRORS: Desc = alpha("kubelet_started_pods_errors_total", "Sandboxes that could not be made.");
const SANDBOX_DURATION: Desc =
    alpha("kubelet_run_podsandbox_duration_seconds", "How long making a sandbox takes.").labels(&["runtime_handler"]);
const SANDBOX_ERRORS: Desc =
    alpha("kubelet_run_podsandbox_errors_total", "Sandboxes that could not be made.").labels(&["runtime_handler"]);
const STARTED_CONTAINERS: Desc =
    alpha("kubelet_started_containers_total", "Containers that were to be started.").labels(&["container_type"]);
const STARTED_CONTAINERS_ERRORS: Desc =
    alpha("kubelet_started_containers_errors_total", "Containers that could not be started.")
        .labels(&["code", "container_type"]);
const CONTAINERS_PER_POD: Desc =
    alpha("kubelet_containers_per_pod_count", "Containers of each pod.").buckets(&[1.0, 2.0, 4.0, 8.0, 16.0]);
const POD_START: Desc =
    alpha("kubelet_pod_start_duration_seconds", "From the first sight of a pod to its running.").buckets(START_BUCKETS);
const WORKER_DURATION: Desc =
    alpha("kubelet_pod_worker_duration_seconds", "How long one sync of a pod takes.").labels(&["operation_type"]);
const WORKER_START: Desc =
    alpha("kubelet_pod_worker_start_duration_seconds", "From the first sight of a pod to its first sync.");
const STATUS_SYNC: Desc =
    alpha("kubelet_pod_status_sync_duration_seconds", "From a change of a pod's status to its arrival in the API.")
        .buckets(SYNC_BUCKETS);
const REJECTIONS: Desc = alpha("kubelet_admission_rejections_total", "Pods that the node refused.").labels(&["reason"]);
const RESTARTED: Desc =
    alpha("kubelet_restarted_pods_total", "Pods that began anew under their old uid.").labels(&["static"]);
const ORPHANED: Desc =
    alpha("kubelet_orphaned_runtime_pods_total", "Pods that only the runtime knew, and that were ended.");
const EVICTIONS: Desc = alpha("kubelet_evictions", "Pods that were evicted.").labels(&["eviction_signal"]);
const STATS_AGE: Desc = alpha("kubelet_eviction_stats_age_seconds", "Age of the figures that an eviction went by.")
    .labels(&["eviction_signal"]);
const PREEMPTIONS: Desc =
    alpha("kubelet_preemptions", "Pods that made way for critical ones.").labels(&["preemption_signal"]);
const IMAGES_COLLECTED: Desc =
    alpha("kubelet_image_garbage_collected_total", "Images that were removed.").labels(&["reason"]);
const OPERATIONS: Desc = alpha("kubelet_runtime_operations_total", "Calls of the runtime.").labels(&["operation_type"]);
const OPERATION_ERRORS: Desc =
    alpha("kubelet_runtime_operations_errors_total", "Calls of the runtime that failed.").labels(&["operation_type"]);
const OPERATION_DURATION: Desc =
    alpha("kubelet_runtime_operations_duration_seconds", "How long calls of the runtime take.")
        .labels(&["operation_type"])
        .buckets(OPERATION_BUCKETS);
const CGROUP_DURATION: Desc =
    alpha("kubelet_cgroup_manager_duration_seconds", "How long changes of control groups take.")
        .labels(&["operation_type"]);
const HTTP_REQUESTS: Desc = alpha("kubelet_http_requests_total", "Requests to the kubelet's API.").labels(HTTP_LABELS);
const HTTP_DURATION: Desc =
    alpha("kubelet_http_requests_duration_seconds", "How long requests take to be answered.").labels(HTTP_LABELS);
const HTTP_INFLIGHT: Desc =
    alpha("kubelet_http_inflight_requests", "Requests that are being answered.").labels(HTTP_LABELS);
const HTTP_LABELS: &[&str] = &["long_running", "method", "path", "server_type"];
const HTTP_FALLBACKS: Desc =
    alpha("kubelet_lifecycle_handler_http_fallbacks_total", "HTTPS hooks that were answered over HTTP.");
const SLEEPS_CUT: Desc = alpha("kubelet_sleep_action_terminated_early_total", "Sleeping hooks that were cut off.");
const PROBES: Desc = Desc::new("prober_probe_total", "Probes by their outcome.", Stability::Beta).labels(&[
    "container",
    "namespace",
    "pod",
    "pod_uid",
    "probe_type",
    "result",
]);
const PROBE_DURATION: Desc = alpha("prober_probe_duration_seconds", "How long probes take.").labels(&[
    "container",
    "namespace",
    "pod",
    "probe_type",
]);

/// The families.
pub struct KubeletMetrics {
    pub(crate) node_name: Gauges,
    pub(crate) cgroup_version: Gauges,
    running_pods: Gauges,
    running_containers: Gauges,
    desired_pods: Gauges,
    active_pods: Gauges,
    mirror_pods: Gauges,
    working_pods: Gauges,
    ephemeral: Gauges,
    pending_resizes: Gauges,
    resizes: Gauges,
    pub(crate) pleg_last_seen: Gauges,
    pub(crate) pleg_duration: Histograms,
    pub(crate) pleg_interval: Histograms,
    pub(crate) pleg_discarded: Counters,
    started_pods: Counters,
    started_pods_errors: Counters,
    sandbox_duration: Histograms,
    sandbox_errors: Counters,
    started_containers: Counters,
    started_containers_errors: Counters,
    pub(crate) containers_per_pod: Histograms,
    pub(crate) pod_start: Histograms,
    pub(crate) worker_duration: Histograms,
    pub(crate) worker_start: Histograms,
    pub(crate) status_sync: Histograms,
    rejections: Counters,
    pub(crate) restarted: Counters,
    pub(crate) orphaned: Counters,
    pub(crate) evictions: Counters,
    pub(crate) stats_age: Histograms,
    pub(crate) preemptions: Counters,
    pub(crate) images_collected: Counters,
    operations: Counters,
    operation_errors: Counters,
    operation_duration: Histograms,
    pub(crate) cgroup_duration: Histograms,
    pub(crate) http_requests: Counters,
    pub(crate) http_duration: Histograms,
    pub(crate) http_inflight: Gauges,
    pub(crate) http_fallbacks: Counters,
    pub(crate) sleeps_cut: Counters,
    probes: Counters,
    probe_duration: Histograms,
}

impl KubeletMetrics {
    /// The families in a registry, and those of probes in another, which is served apart.
    #[must_use]
    pub fn new(metrics: &Metrics, of_probes: &Metrics) -> Arc<Self> {
        Arc::new(Self {
            node_name: metrics.gauges(&NODE_NAME),
            cgroup_version: metrics.gauges(&CGROUP_VERSION),
            running_pods: metrics.gauges(&RUNNING_PODS),
            running_containers: metrics.gauges(&RUNNING_CONTAINERS),
            desired_pods: metrics.gauges(&DESIRED_PODS),
            active_pods: metrics.gauges(&ACTIVE_PODS),
            mirror_pods: metrics.gauges(&MIRROR_PODS),
            working_pods: metrics.gauges(&WORKING_PODS),
            ephemeral: metrics.gauges(&EPHEMERAL),
            pending_resizes: metrics.gauges(&PENDING_RESIZES),
            resizes: metrics.gauges(&RESIZES),
            pleg_last_seen: metrics.gauges(&PLEG_LAST_SEEN),
            pleg_duration: metrics.histograms(&PLEG_DURATION),
            pleg_interval: metrics.histograms(&PLEG_INTERVAL),
            pleg_discarded: metrics.counters(&PLEG_DISCARDED),
            started_pods: metrics.counters(&STARTED_PODS),
            started_pods_errors: metrics.counters(&STARTED_PODS_ERRORS),
            sandbox_duration: metrics.histograms(&SANDBOX_DURATION),
            sandbox_errors: metrics.counters(&SANDBOX_ERRORS),
            started_containers: metrics.counters(&STARTED_CONTAINERS),
            started_containers_errors: metrics.counters(&STARTED_CONTAINERS_ERRORS),
            containers_per_pod: metrics.histograms(&CONTAINERS_PER_POD),
            pod_start: metrics.histograms(&POD_START),
            worker_duration: metrics.histograms(&WORKER_DURATION),
            worker_start: metrics.histograms(&WORKER_START),
            status_sync: metrics.histograms(&STATUS_SYNC),
            rejections: metrics.counters(&REJECTIONS),
            restarted: metrics.counters(&RESTARTED),
            orphaned: metrics.counters(&ORPHANED),
            evictions: metrics.counters(&EVICTIONS),
            stats_age: metrics.histograms(&STATS_AGE),
            preemptions: metrics.counters(&PREEMPTIONS),
            images_collected: metrics.counters(&IMAGES_COLLECTED),
            operations: metrics.counters(&OPERATIONS),
            operation_errors: metrics.counters(&OPERATION_ERRORS),
            operation_duration: metrics.histograms(&OPERATION_DURATION),
            cgroup_duration: metrics.histograms(&CGROUP_DURATION),
            http_requests: metrics.counters(&HTTP_REQUESTS),
            http_duration: metrics.histograms(&HTTP_DURATION),
            http_inflight: metrics.gauges(&HTTP_INFLIGHT),
            http_fallbacks: metrics.counters(&HTTP_FALLBACKS),
            sleeps_cut: metrics.counters(&SLEEPS_CUT),
            probes: of_probes.counters(&PROBES),
            probe_duration: of_probes.histograms(&PROBE_DURATION),
        })
    }

    /// Families that nobody sees, for engines in tests.
    #[must_use]
    pub fn unseen() -> Arc<Self> {
        let metrics = Metrics::new(MetricsOptions::default());
        Self::new(&metrics, &metrics)
    }

    /// A sandbox was made, or not.
    pub(crate) fn sandbox(&self, handler: &str, took: Duration, made: bool) {
        self.started_pods.with(&[]).inc();
        self.sandbox_duration.with(&[handler]).observe(took.as_secs_f64());
        if !made {
            self.started_pods_errors.with(&[]).inc();
            self.sandbox_errors.with(&[handler]).inc();
        }
    }

    /// A container of this type was started, or failed for this reason.
    pub(crate) fn container(&self, kind: &str, failure: Option<&str>) {
        self.started_containers.with(&[kind]).inc();
        if let Some(reason) = failure {
            self.started_containers_errors.with(&[reason, kind]).inc();
        }
    }

    /// A pod was refused.
    pub(crate) fn refused(&self, reason: &str) {
        self.rejections.with(&[rejection(reason)]).inc();
    }

    /// A probe was run; durations of failed ones tell little and are left out.
    pub(crate) fn probed(&self, of: &Probed<'_>, result: &str, took: Duration) {
        let Probed { namespace, pod, uid, container, kind } = of;
        self.probes.with(&[container, namespace, pod, uid, kind, result]).inc();
        if result != "failed" {
            self.probe_duration.with(&[container, namespace, pod, kind]).observe(took.as_secs_f64());
        }
    }

    /// The series of a probe that is no more.
    pub(crate) fn forget_probe(&self, of: &Probed<'_>) {
        let Probed { namespace, pod, uid, container, kind } = of;
        for result in ["successful", "failed", "unknown"] {
            self.probes.remove(&[container, namespace, pod, uid, kind, result]);
        }
        self.probe_duration.remove(&[container, namespace, pod, kind]);
    }

    /// Sets what follows from the present state.
    pub(crate) fn show(&self, present: &Present) {
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.running_pods.with(&[]).set(number(present.running_pods));
        for state in ["created", "exited", "running", "unknown"] {
            let count = present.containers.get(state).copied().unwrap_or_default();
            self.running_containers.with(&[state]).set(number(count));
        }
        for (index, is_static) in [(0, "false"), (1, "true")] {
            let of = |counts: [usize; 2]| number(counts.get(index).copied().unwrap_or_default());
            self.desired_pods.with(&[is_static]).set(of(present.desired));
            self.active_pods.with(&[is_static]).set(of(present.active));
        }
        self.mirror_pods.with(&[]).set(number(present.mirrors));
        for config in ["desired", "orphan", "runtime_only"] {
            for lifecycle in ["sync", "terminating", "terminated"] {
                for is_static in ["false", "true"] {
                    let count = present.working.get(&(config, lifecycle, is_static)).copied().unwrap_or_default();
                    self.working_pods.with(&[config, lifecycle, is_static]).set(number(count));
                }
            }
        }
        self.ephemeral.with(&[]).set(number(present.ephemeral));
        self.pending_resizes.with(&["deferred"]).set(number(present.pending_resizes));
        self.resizes.with(&[]).set(number(present.resizes));
    }
}

/// Whose probe.
pub(crate) struct Probed<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) pod: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) container: &'a str,
    pub(crate) kind: &'a str,
}

/// What there is at this moment.
#[derive(Debug, Default)]
pub(crate) struct Present {
    pub(crate) running_pods: usize,
    /// Containers by state.
    pub(crate) containers: BTreeMap<&'static str, usize>,
    /// Pods of the API, and static ones.
    pub(crate) desired: [usize; 2],
    pub(crate) active: [usize; 2],
    pub(crate) mirrors: usize,
    /// By configuration, stage and whether static.
    pub(crate) working: BTreeMap<(&'static str, &'static str, &'static str), usize>,
    pub(crate) ephemeral: usize,
    pub(crate) pending_resizes: usize,
    pub(crate) resizes: usize,
}

impl Observer for KubeletMetrics {
    fn observe(&self, operation: &'static str, elapsed: Duration, outcome: Result<(), &CriError>) {
        self.operations.with(&[operation]).inc();
        self.operation_duration.with(&[operation]).observe(elapsed.as_secs_f64());
        if outcome.is_err() {
            self.operation_errors.with(&[operation]).inc();
        }
    }
}

/// The reasons that are counted as they are.
const REJECTION_REASONS: [&str; 18] = [
    "AppArmor",
    "Evicted",
    "InvalidNodeInfo",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "NodeShutdown",
    "OutOfcpu",
    "OutOfmemory",
    "OutOfephemeral-storage",
    "OutOfpods",
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "SMTAlignmentError",
    "SysctlForbidden",
    "TaintToleration",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
];

fn rejection(reason: &str) -> &str {
    match reason {
        reason if REJECTION_REASONS.contains(&reason) => reason,
        reason if reason.starts_with("OutOf") => "OutOfExtendedResources",
        _ => "Other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_is_counted_under_upstreams_names() {
        let (metrics, probes) = (Metrics::new(MetricsOptions::default()), Metrics::new(MetricsOptions::default()));
        let own = KubeletMetrics::new(&metrics, &probes);
        own.sandbox("runc", Duration::from_secs(1), false);
        own.container("init_container", Some("ErrImagePull"));
        own.refused("OutOfexample.com/gpu");
        own.refused("OutOfcpu");
        own.observe(
            "exec_sync",
            Duration::from_millis(3),
            Err(&CriError::rpc("exec_sync", node_api::cri::Code::Unknown, "no")),
        );
        let present = Present { running_pods: 3, desired: [2, 1], ..Present::default() };
        own.show(&present);
        let text = metrics.text();
        for line in [
            "kubelet_started_pods_errors_total 1",
            "kubelet_run_podsandbox_errors_total{runtime_handler=\"runc\"} 1",
            "kubelet_started_containers_errors_total{code=\"ErrImagePull\",container_type=\"init_container\"} 1",
            "kubelet_admission_rejections_total{reason=\"OutOfExtendedResources\"} 1",
            "kubelet_admission_rejections_total{reason=\"OutOfcpu\"} 1",
            "kubelet_runtime_operations_errors_total{operation_type=\"exec_sync\"} 1",
            "kubelet_running_pods 3",
            "kubelet_desired_pods{static=\"true\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let of = Probed { namespace: "ns", pod: "web", uid: "u", container: "main", kind: "Liveness" };
        own.probed(&of, "successful", Duration::from_millis(2));
        assert!(probes.text().contains("pod_uid=\"u\",probe_type=\"Liveness\",result=\"successful\"} 1"));
        own.forget_probe(&of);
        assert!(!probes.text().contains("pod_uid"), "series go with their probe");
    }
}
