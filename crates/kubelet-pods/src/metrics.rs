//! The kubelet's own metrics: the families, and what is counted where it happens.
//!
//! What follows from the present state (how many pods run, and the like) is set when somebody asks: see
//! [`KubeletMetrics::show`].

#[cfg(test)]
mod facts_tests;
mod families;
mod resizes;
mod shown;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Metrics, MetricsOptions};
use kubelet_node::devices::DeviceCounts;
use kubelet_node::dra::DynamicResourcesObserver;
use kubelet_node::node::{StartObserver, StartPhase};
use kubelet_node::plugins::PluginCounts;
use kubelet_node::resources::KeptMemory;
use kubelet_node::topology::{ResourceCounts, Scope, Share, Source};
use node_api::cri::{CriError, Observer};
use node_api::csi::CsiObserver;
use node_api::dra::DraObserver;

use crate::node::FileSystem;
use crate::pod::status::Outlook;
use crate::volumes::ClaimRoom;
pub use families::KubeletMetrics;
pub use shown::Counts;

impl KubeletMetrics {
    /// Families that nobody sees, for engines in tests.
    #[must_use]
    pub fn unseen() -> Arc<Self> {
        let metrics = Metrics::new(MetricsOptions::default());
        Self::new(&metrics, &metrics)
    }

    /// A sandbox was made, or not.
    pub fn sandbox(&self, handler: &str, took: Duration, made: bool) {
        self.started_pods.with(&[]).inc();
        self.sandbox_duration.with(&[handler]).observe(took.as_secs_f64());
        if !made {
            self.started_pods_errors.with(&[]).inc();
            self.sandbox_errors.with(&[handler]).inc();
        }
    }

    /// The same sandbox is of a pod with users of its own.
    pub fn user_namespaced_sandbox(&self, made: bool) {
        self.user_namespaced_pods.with(&[]).inc();
        if !made {
            self.user_namespaced_pods_errors.with(&[]).inc();
        }
    }

    /// So many volumes of pods were found on the disk as a kubelet before left them.
    #[expect(clippy::cast_precision_loss, reason = "numbers of volumes are small")]
    pub fn reconstructed(&self, volumes: usize) {
        self.reconstructed_volumes.with(&[]).inc_by(volumes as f64);
    }

    /// A step of work on a volume was taken, or failed.
    pub fn storage_operation(&self, plugin: &str, operation: &str, done: bool, took: Duration) {
        let status = if done { "success" } else { "fail-unknown" };
        self.storage_operations.with(&["false", operation, status, plugin]).observe(took.as_secs_f64());
    }

    /// A container of this type was started, or failed for this reason.
    pub fn container(&self, kind: &str, failure: Option<&str>) {
        self.started_containers.with(&[kind]).inc();
        if let Some(reason) = failure {
            self.started_containers_errors.with(&[reason, kind]).inc();
        }
    }

    /// An image of this size was pulled.
    pub fn pulled(&self, bytes: u64, took: Duration) {
        self.image_pulls.with(&[size_label(bytes)]).observe(took.as_secs_f64());
    }

    /// A container wants an image by this policy: whether it is there, and whether it has to be pulled, where that is known.
    pub fn image_wanted(&self, policy: &str, present: Option<bool>, pulled: Option<bool>) {
        let known = |known: Option<bool>| match known {
            Some(true) => "true",
            Some(false) => "false",
            None => "unknown",
        };
        self.images_wanted.with(&[known(present), &policy.to_ascii_lowercase(), known(pulled)]).inc();
    }

    /// A container that mounts so many images was made, or not.
    pub fn image_volumes(&self, count: usize, made: bool) {
        let family = if made { &self.image_volumes_mounted } else { &self.image_volumes_failed };
        (0..count).for_each(|_| family.with(&[]).inc());
    }

    /// A pod runs so long after its object was made, of which this was spent on images and init containers.
    pub fn pod_runs(&self, total: Duration, spent: Duration) {
        self.pod_start_total.with(&[]).observe(total.as_secs_f64());
        self.pod_start_sli.with(&[]).observe(total.saturating_sub(spent).as_secs_f64());
    }

    /// Sets what there is of claims; those that were shown before and are no more go.
    pub fn show_claims(&self, rooms: &[ClaimRoom], shown: &mut BTreeSet<(String, String)>) {
        let families = |room: FileSystem| {
            [
                (&self.claim_capacity, room.capacity),
                (&self.claim_available, room.available),
                (&self.claim_used, room.capacity.saturating_sub(room.available)),
                (&self.claim_inodes, room.inodes),
                (&self.claim_inodes_free, room.inodes_free),
                (&self.claim_inodes_used, room.inodes.saturating_sub(room.inodes_free)),
            ]
        };
        let before = std::mem::take(shown);
        for room in rooms {
            for (family, value) in families(room.room) {
                #[expect(clippy::cast_precision_loss, reason = "metrics are floating point numbers")]
                family.with(&[&room.namespace, &room.claim]).set(value as f64);
            }
            if let Some(condition) = &room.condition {
                let value = if condition.is_abnormal { 1.0 } else { 0.0 };
                self.claim_abnormal.with(&[&room.namespace, &room.claim]).set(value);
            }
            shown.insert((room.namespace.clone(), room.claim.clone()));
        }
        for (namespace, claim) in before.difference(shown) {
            families(FileSystem::default()).iter().for_each(|(family, _)| family.remove(&[namespace, claim]));
            self.claim_abnormal.remove(&[namespace, claim]);
        }
    }

    /// How much memory is kept for guaranteed and for burstable pods (KEP-2570).
    #[expect(clippy::cast_precision_loss, reason = "metrics are floating point numbers")]
    pub fn kept_memory(&self, kept: KeptMemory) {
        self.memory_kept.with(&[]).set(kept.min_bytes as f64);
        self.memory_protected.with(&[]).set(kept.low_bytes as f64);
    }

    /// A pod was refused.
    pub fn refused(&self, reason: &str) {
        self.rejections.with(&[rejection(reason)]).inc();
    }

    /// A probe was run; durations of failed ones tell little and are left out.
    pub fn probed(&self, of: &Probed<'_>, result: &str, took: Duration) {
        let Probed { namespace, pod, uid, container, kind } = of;
        self.probes.with(&[container, namespace, pod, uid, kind, result]).inc();
        if result != "failed" {
            self.probe_duration.with(&[container, namespace, pod, kind]).observe(took.as_secs_f64());
        }
    }

    /// The series of a probe that is no more.
    pub fn forget_probe(&self, of: &Probed<'_>) {
        let Probed { namespace, pod, uid, container, kind } = of;
        for result in ["successful", "failed", "unknown"] {
            self.probes.remove(&[container, namespace, pod, uid, kind, result]);
        }
        self.probe_duration.remove(&[container, namespace, pod, kind]);
    }

    /// Sets what follows from the present state.
    pub fn show(&self, present: &Present) {
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
        for outlook in [Outlook::Deferred, Outlook::Infeasible] {
            let count = present.pending_resizes.get(outlook.name()).copied().unwrap_or_default();
            self.pending_resizes.with(&[&outlook.name().to_ascii_lowercase()]).set(number(count));
        }
        self.resizes.with(&[]).set(number(present.resizes));
    }
}

impl PluginCounts for KubeletMetrics {
    fn count(&self, socket: &str, state: &'static str, there: bool) {
        match there {
            true => self.plugins.with(&[socket, state]).set(1.0),
            false => self.plugins.remove(&[socket, state]),
        }
    }
}

impl DeviceCounts for KubeletMetrics {
    fn registered(&self, resource: &str) {
        self.device_registrations.with(&[resource]).inc();
    }

    fn allocated(&self, resource: &str, took: Duration) {
        self.device_allocations.with(&[resource]).observe(took.as_secs_f64());
    }
}

impl ResourceCounts for KubeletMetrics {
    fn admitted(&self, admitted: bool, took: Duration) {
        self.topology_requests.with(&[]).inc();
        self.topology_duration.with(&[]).observe(took.as_secs_f64() * 1000.0);
        if !admitted {
            self.topology_errors.with(&[]).inc();
        }
    }

    fn pinned_cpus(&self, given: bool) {
        self.cpu_pins.with(&[]).inc();
        if !given {
            self.cpu_pin_errors.with(&[]).inc();
        }
    }

    fn pinned_memory(&self, given: bool) {
        self.memory_pins.with(&[]).inc();
        if !given {
            self.memory_pin_errors.with(&[]).inc();
        }
    }

    fn aligned(&self, scope: Scope, boundary: &'static str, aligned: bool) {
        let family = if aligned { &self.aligned } else { &self.not_aligned };
        family.with(&[boundary, scope.name()]).inc();
    }

    fn given(&self, resource: &'static str, share: Share, pieces: u32) {
        self.resources_given.with(&[resource, share.source().name()]).inc_by(f64::from(pieces));
        self.resource_shares.with(&[share.name(), resource]).inc();
    }

    fn not_given(&self, resource: &'static str, from: Source) {
        self.resources_not_given.with(&[resource, from.name()]).inc();
    }

    fn processors(&self, shared: usize, exclusive: usize, by_node: &BTreeMap<u32, usize>) {
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.shared_cpus.with(&[]).set(number(shared) * 1000.0);
        self.exclusive_cpus.with(&[]).set(number(exclusive));
        for (node, count) in by_node {
            self.node_cpus.with(&[&node.to_string()]).set(number(*count));
        }
    }
}

impl CsiObserver for KubeletMetrics {
    fn called(&self, driver: &str, method: &'static str, code: &'static str, elapsed: Duration) {
        self.csi_operations.with(&[driver, code, method, "false"]).observe(elapsed.as_secs_f64());
    }
}

impl DraObserver for KubeletMetrics {
    fn called(&self, driver: &str, method: &'static str, code: &'static str, elapsed: Duration) {
        self.dra_calls.with(&[driver, code, method]).observe(elapsed.as_secs_f64());
    }
}

impl DynamicResourcesObserver for KubeletMetrics {
    fn operated(&self, operation: &'static str, failed: bool, took: Duration) {
        let failed = if failed { "true" } else { "false" };
        self.dra_operations.with(&[failed, operation]).observe(took.as_secs_f64());
    }

    fn in_use(&self, driver: &str, claims: Option<usize>) {
        match claims {
            Some(claims) => {
                self.claims_in_use.with(&[driver]).set(f64::from(u32::try_from(claims).unwrap_or(u32::MAX)))
            }
            None => self.claims_in_use.remove(&[driver]),
        }
    }
}

impl StartObserver for KubeletMetrics {
    fn took(&self, phase: StartPhase, time: Duration) {
        let family = match phase {
            StartPhase::BeforeKubelet => &self.start_before,
            StartPhase::BeforeRegistration => &self.start_before_registration,
            StartPhase::Registration => &self.start_registration,
            StartPhase::AfterRegistration => &self.start_after_registration,
            StartPhase::Whole => &self.start,
        };
        family.with(&[]).set(time.as_secs_f64());
    }
}

/// Whose probe.
pub struct Probed<'a> {
    pub namespace: &'a str,
    pub pod: &'a str,
    pub uid: &'a str,
    pub container: &'a str,
    pub kind: &'a str,
}

/// What there is at this moment.
#[derive(Debug, Default)]
pub struct Present {
    pub running_pods: usize,
    /// Containers by state.
    pub containers: BTreeMap<&'static str, usize>,
    /// Pods of the API, and static ones.
    pub desired: [usize; 2],
    pub active: [usize; 2],
    pub mirrors: usize,
    /// By configuration, stage and whether static.
    pub working: BTreeMap<(&'static str, &'static str, &'static str), usize>,
    pub ephemeral: usize,
    /// Resizes that wait, by the reason of their condition.
    pub pending_resizes: BTreeMap<&'static str, usize>,
    pub resizes: usize,
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
const REJECTION_REASONS: [&str; 19] = [
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
    "VolumeAttachmentLimitExceeded",
];

/// Sizes of images and what stands for those above them.
const SIZES: [(u64, &str); 12] = [
    (0, "0-10MB"),
    (10 << 20, "10MB-100MB"),
    (100 << 20, "100MB-500MB"),
    (500 << 20, "500MB-1GB"),
    (1 << 30, "1GB-5GB"),
    (5 << 30, "5GB-10GB"),
    (10 << 30, "10GB-20GB"),
    (20 << 30, "20GB-30GB"),
    (30 << 30, "30GB-40GB"),
    (40 << 30, "40GB-60GB"),
    (60 << 30, "60GB-100GB"),
    (100 << 30, "GT100GB"),
];

fn size_label(bytes: u64) -> &'static str {
    SIZES.iter().rev().find(|(above, _)| bytes > *above).map_or("N/A", |(_, label)| label)
}

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
    use crate::volumes::VolumeCondition;

    #[test]
    fn memory_that_is_kept_is_told() {
        let metrics = Metrics::new(MetricsOptions::default());
        let own = KubeletMetrics::new(&metrics, &metrics);
        own.kept_memory(KeptMemory { min_bytes: 5, low_bytes: 7 });
        let text = metrics.text();
        for line in ["kubelet_memory_qos_node_memory_min_bytes 5\n", "kubelet_memory_qos_node_memory_low_bytes 7\n"] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn volumes_users_and_the_start_are_told() {
        let metrics = Metrics::new(MetricsOptions::default());
        let own = KubeletMetrics::new(&metrics, &metrics);
        own.storage_operation("kubernetes.io/secret", "volume_mount", false, Duration::from_secs(1));
        own.user_namespaced_sandbox(false);
        own.took(StartPhase::Registration, Duration::from_secs(4));
        own.show(&Present { pending_resizes: [("Infeasible", 2)].into(), ..Present::default() });
        let text = metrics.text();
        for line in [
            "kubelet_pod_pending_resizes{reason=\"deferred\"} 0",
            "kubelet_pod_pending_resizes{reason=\"infeasible\"} 2",
            "storage_operation_duration_seconds_sum{migrated=\"false\",operation_name=\"volume_mount\",status=\"fail-unknown\",volume_plugin=\"kubernetes.io/secret\"} 1",
            "kubelet_started_user_namespaced_pods_errors_total 1",
            "kubelet_node_startup_registration_duration_seconds 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

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
        own.pulled(15 << 20, Duration::from_secs(20));
        own.pulled(0, Duration::from_secs(1));
        own.pod_runs(Duration::from_secs(9), Duration::from_secs(7));
        own.image_volumes(2, false);
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
            "kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes=\"10MB-100MB\",le=\"20\"} 1",
            "kubelet_image_pull_duration_seconds_sum{image_size_in_bytes=\"N/A\"} 1",
            "kubelet_pod_start_total_duration_seconds_sum 9",
            "kubelet_pod_start_sli_duration_seconds_sum 2",
            "kubelet_image_volume_mounted_errors_total 2",
            "kubelet_desired_pods{static=\"true\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let room = FileSystem { capacity: 100, available: 30, inodes: 10, inodes_free: 4 };
        let rooms = ["data", "logs"].map(|claim| ClaimRoom {
            uid: "u".into(),
            volume: "v".into(),
            namespace: "ns".into(),
            claim: claim.into(),
            room,
            condition: (claim == "data").then(|| VolumeCondition { is_abnormal: true, message: "bad".into() }),
        });
        let mut shown = BTreeSet::new();
        own.show_claims(&rooms, &mut shown);
        let line = |family: &str, claim: &str, value: u64| {
            format!("kubelet_volume_stats_{family}{{namespace=\"ns\",persistentvolumeclaim=\"{claim}\"}} {value}\n")
        };
        let text = metrics.text();
        for (family, value) in [
            ("capacity_bytes", 100),
            ("available_bytes", 30),
            ("used_bytes", 70),
            ("inodes_used", 6),
            ("health_status_abnormal", 1),
        ] {
            assert!(text.contains(&line(family, "data", value)), "{family}\n{text}");
        }
        assert!(!text.contains(&line("health_status_abnormal", "logs", 0)), "nobody says anything of it");
        own.show_claims(&rooms[1..], &mut shown);
        let text = metrics.text();
        assert!(!text.contains("\"data\"") && text.contains(&line("inodes_free", "logs", 4)), "{text}");
        let of = Probed { namespace: "ns", pod: "web", uid: "u", container: "main", kind: "Liveness" };
        own.probed(&of, "successful", Duration::from_millis(2));
        assert!(probes.text().contains("pod_uid=\"u\",probe_type=\"Liveness\",result=\"successful\"} 1"));
        own.forget_probe(&of);
        assert!(!probes.text().contains("pod_uid"), "series go with their probe");
    }
}
