//! The list of the kubelet's metric families: each once, with its name, its text, its labels and its place.

use std::sync::Arc;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability};

use super::shown::Shown;

const fn beta(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Beta)
}

const fn claim(name: &'static str, help: &'static str) -> Desc {
    alpha(name, help).labels(&["namespace", "persistentvolumeclaim"])
}

const fn pod_resources(name: &'static str, help: &'static str) -> Desc {
    alpha(name, help).labels(&["server_api_version"])
}

const fn alpha(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Alpha)
}

/// What volumes are counted by that have labels (SELinux).
const MODE: &[&str] = &["access_mode"];
const MODE_AND_PLUGIN: &[&str] = &["access_mode", "volume_plugin"];

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

/// From a second to an hour, for pulls of images.
const PULL_BUCKETS: &[f64] = &[
    1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0,
    3600.0,
];
/// From a tenth of a second to ten minutes, for work on volumes.
const STORAGE_BUCKETS: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];
/// From a tenth of a second to forty, each one 1.53 times the one before, for work on claims.
const CLAIM_BUCKETS: &[f64] = &[
    0.1,
    0.1534127404634391,
    0.23535468936502524,
    0.36106407876409946,
    0.5539182980610752,
    0.849781240983936,
    1.303672689737678,
    1.9999999999999993,
    3.0682548092687805,
    4.7070937873005025,
    7.221281575281985,
    11.078365961221499,
    16.995624819678714,
    26.07345379475354,
    39.99999999999997,
];
/// From a minute to four years, for lives of certificates.
const LIFE_BUCKETS: &[f64] =
    &[60.0, 3600.0, 14_400.0, 86_400.0, 604_800.0, 2_592_000.0, 7_776_000.0, 15_552_000.0, 31_104_000.0, 124_416_000.0];
/// In milliseconds, from a hundredth of a second to ten minutes, for resizes.
const RESIZE_BUCKETS: &[f64] = &[
    10.0, 50.0, 100.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 30_000.0, 60_000.0, 120_000.0, 300_000.0,
    600_000.0,
];
/// In milliseconds, from a twentieth on.
const ADMISSION_BUCKETS: &[f64] =
    &[0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2];

const HTTP_LABELS: &[&str] = &["long_running", "method", "path", "server_type"];

/// A kind of metric, made from its description.
trait Family {
    fn of(metrics: &Metrics, description: &'static Desc) -> Self;
}

impl Family for Counters {
    fn of(metrics: &Metrics, description: &'static Desc) -> Self {
        metrics.counters(description)
    }
}

impl Family for Gauges {
    fn of(metrics: &Metrics, description: &'static Desc) -> Self {
        metrics.gauges(description)
    }
}

impl Family for Histograms {
    fn of(metrics: &Metrics, description: &'static Desc) -> Self {
        metrics.histograms(description)
    }
}

/// Makes the struct and its constructor from the list.
macro_rules! families {
    (
        own { $($own:ident: $own_kind:ty = $own_text:expr;)* }
        probes { $($probe:ident: $probe_kind:ty = $probe_text:expr;)* }
    ) => {
        /// The families.
        pub struct KubeletMetrics {
            $(pub $own: $own_kind,)*
            $(pub $probe: $probe_kind,)*
            /// Series that go with what they are about.
            pub(super) shown: Shown,
        }

        impl KubeletMetrics {
            /// The families in a registry, and those of probes in another, which is served apart.
            #[must_use]
            pub fn new(own: &Metrics, probes: &Metrics) -> Arc<Self> {
                Arc::new(Self {
                    $($own: {
                        const DESCRIPTION: Desc = $own_text;
                        Family::of(own, &DESCRIPTION)
                    },)*
                    $($probe: {
                        const DESCRIPTION: Desc = $probe_text;
                        Family::of(probes, &DESCRIPTION)
                    },)*
                    shown: Shown::default(),
                })
            }
        }
    };
}

families! {
    own {
        node_name: Gauges = alpha("kubelet_node_name", "The node's name; always 1.").labels(&["node"]);
        cgroup_version: Gauges = alpha("kubelet_cgroup_version", "The version of control groups on the machine.");
        running_pods: Gauges = alpha("kubelet_running_pods", "Pods with a ready sandbox.");
        running_containers: Gauges =
            alpha("kubelet_running_containers", "Containers by state.").labels(&["container_state"]);
        desired_pods: Gauges = alpha("kubelet_desired_pods", "Pods that the node is asked to run.").labels(&["static"]);
        active_pods: Gauges =
            alpha("kubelet_active_pods", "Pods that take up the node's resources.").labels(&["static"]);
        mirror_pods: Gauges = alpha("kubelet_mirror_pods", "Mirror pods of the node.");
        working_pods: Gauges =
            alpha("kubelet_working_pods", "Pods that are worked on, by where they are in their life.")
                .labels(&["config", "lifecycle", "static"]);
        ephemeral: Gauges = alpha("kubelet_managed_ephemeral_containers", "Ephemeral containers of the node's pods.");
        pending_resizes: Gauges = alpha("kubelet_pod_pending_resizes", "Resizes that wait.").labels(&["reason"]);
        infeasible_resizes: Counters =
            alpha("kubelet_pod_infeasible_resizes_total", "Resizes that can never be.").labels(&["reason_detail"]);
        resizes: Gauges = alpha("kubelet_pod_in_progress_resizes", "Resizes that are being put into effect.");
        requested_resizes: Counters = alpha(
            "kubelet_container_requested_resizes_total",
            "Changes of resources that were asked for, each of each container.",
        )
        .labels(&["operation", "requirement", "resource"]);
        deferred_resizes: Counters = alpha(
            "kubelet_pod_deferred_accepted_resizes_total",
            "Resizes that were accepted after they had to wait, by what had them looked at again.",
        )
        .labels(&["retry_trigger"]);
        resize_duration: Histograms =
            alpha("kubelet_pod_resize_duration_milliseconds", "How long putting a resize into effect takes.")
                .labels(&["success"])
                .buckets(RESIZE_BUCKETS);
        pleg_last_seen: Gauges =
            alpha("kubelet_pleg_last_seen_seconds", "When the runtime was last listed in full, in seconds since 1970.");
        pleg_duration: Histograms =
            alpha("kubelet_pleg_relist_duration_seconds", "How long listing the runtime takes.");
        pleg_interval: Histograms =
            alpha("kubelet_pleg_relist_interval_seconds", "Time between two listings of the runtime.");
        pleg_connections: Counters =
            alpha("kubelet_evented_pleg_connection_success_count", "How often the runtime began to tell its events.");
        pleg_connection_errors: Counters =
            alpha("kubelet_evented_pleg_connection_error_count", "How often the runtime's events could not be had.");
        pleg_latency: Histograms = alpha(
            "kubelet_evented_pleg_connection_latency_seconds",
            "From an event in the runtime to its arrival here.",
        );
        pleg_discarded: Counters = alpha("kubelet_pleg_discard_events", "Events that nobody could take.");
        started_pods: Counters = alpha("kubelet_started_pods_total", "Sandboxes that were made.");
        started_pods_errors: Counters = alpha("kubelet_started_pods_errors_total", "Sandboxes that could not be made.");
        user_namespaced_pods: Counters = alpha(
            "kubelet_started_user_namespaced_pods_total",
            "Sandboxes with users of their own that were made.",
        );
        user_namespaced_pods_errors: Counters = alpha(
            "kubelet_started_user_namespaced_pods_errors_total",
            "Sandboxes with users of their own that could not be made.",
        );
        sandbox_duration: Histograms =
            alpha("kubelet_run_podsandbox_duration_seconds", "How long making a sandbox takes.")
                .labels(&["runtime_handler"]);
        sandbox_errors: Counters = alpha("kubelet_run_podsandbox_errors_total", "Sandboxes that could not be made.")
            .labels(&["runtime_handler"]);
        started_containers: Counters = alpha("kubelet_started_containers_total", "Containers that were to be started.")
            .labels(&["container_type"]);
        started_containers_errors: Counters =
            alpha("kubelet_started_containers_errors_total", "Containers that could not be started.")
                .labels(&["code", "container_type"]);
        containers_per_pod: Histograms =
            alpha("kubelet_containers_per_pod_count", "Containers of each pod.").buckets(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        pod_start: Histograms =
            alpha("kubelet_pod_start_duration_seconds", "From the first sight of a pod to its running.")
                .buckets(START_BUCKETS);
        pod_start_total: Histograms = alpha(
            "kubelet_pod_start_total_duration_seconds",
            "From the making of a pod's object to its running, pulls of images and init containers included.",
        )
        .buckets(START_BUCKETS);
        pod_start_sli: Histograms = alpha(
            "kubelet_pod_start_sli_duration_seconds",
            "From the making of a pod's object to its running, pulls of images and init containers left out.",
        )
        .buckets(START_BUCKETS);
        image_pulls: Histograms = alpha("kubelet_image_pull_duration_seconds", "How long pulling an image takes.")
            .labels(&["image_size_in_bytes"])
            .buckets(PULL_BUCKETS);
        image_volumes: Counters =
            beta("kubelet_image_volume_requested_total", "Images that were to be mounted as volumes.");
        image_volumes_mounted: Counters =
            beta("kubelet_image_volume_mounted_succeed_total", "Images that were mounted as volumes.");
        image_volumes_failed: Counters =
            beta("kubelet_image_volume_mounted_errors_total", "Images that could not be mounted as volumes.");
        images_wanted: Counters = alpha(
            "kubelet_image_manager_ensure_image_requests_total",
            "Times that containers wanted images, by what had to be done for them.",
        )
        .labels(&["present_locally", "pull_policy", "pull_required"]);
        pull_checks: Counters = alpha(
            "kubelet_imagemanager_image_mustpull_checks_total",
            "Times that it was checked whether a pod may use an image that is there, by what came of it.",
        )
        .labels(&["result"]);
        pull_intents: Gauges =
            alpha("kubelet_imagemanager_ondisk_pullintents", "Pulls of images that are noted on disk as begun.");
        pull_records: Gauges =
            alpha("kubelet_imagemanager_ondisk_pulledrecords", "Images that are noted on disk as pulled.");
        pull_intents_in_memory: Gauges = alpha(
            "kubelet_imagemanager_inmemory_pullintents_usage_percent",
            "How full the copy in memory of what is noted of begun pulls is; there is none.",
        );
        pull_records_in_memory: Gauges = alpha(
            "kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
            "How full the copy in memory of what is noted of pulled images is; there is none.",
        );
        credential_config: Gauges = alpha(
            "kubelet_credential_provider_config_info",
            "The hash of the configuration of credential providers; always 1.",
        )
        .labels(&["hash"]);
        credential_duration: Histograms =
            alpha("kubelet_credential_provider_plugin_duration", "How long credential providers take.")
                .labels(&["plugin_name"]);
        credential_errors: Counters =
            alpha("kubelet_credential_provider_plugin_errors_total", "Times that credential providers failed.")
                .labels(&["plugin_name"]);
        pod_label_errors: Gauges = alpha(
            "volume_manager_selinux_pod_context_mismatch_errors_total",
            "Volumes that a pod cannot have because its containers want several labels of them.",
        )
        .labels(MODE);
        pod_label_warnings: Gauges = alpha(
            "volume_manager_selinux_pod_context_mismatch_warnings_total",
            "The same of volumes that are not mounted with labels, where that is no hindrance.",
        )
        .labels(MODE);
        volume_label_errors: Gauges = alpha(
            "volume_manager_selinux_volume_context_mismatch_errors_total",
            "Volumes that a pod cannot have because they are there with another label.",
        )
        .labels(MODE_AND_PLUGIN);
        volume_label_warnings: Gauges = alpha(
            "volume_manager_selinux_volume_context_mismatch_warnings_total",
            "The same of volumes that are not mounted with labels, where that is no hindrance.",
        )
        .labels(MODE_AND_PLUGIN);
        labelled_volumes: Gauges = alpha(
            "volume_manager_selinux_volumes_admitted_total",
            "Volumes that pods have with a label of their own.",
        )
        .labels(MODE_AND_PLUGIN);
        client_certificate_left: Gauges = alpha(
            "kubelet_certificate_manager_client_ttl_seconds",
            "Seconds until the client certificate expires; infinite where none is kept.",
        );
        client_certificate_errors: Counters = alpha(
            "kubelet_certificate_manager_client_expiration_renew_errors",
            "Attempts to renew the client certificate that failed.",
        );
        serving_certificate_left: Gauges = alpha(
            "kubelet_certificate_manager_server_ttl_seconds",
            "Seconds until the serving certificate expires; infinite where none is kept.",
        );
        serving_certificate_life: Histograms = alpha(
            "kubelet_certificate_manager_server_rotation_seconds",
            "How long serving certificates lived before they were replaced.",
        )
        .buckets(LIFE_BUCKETS);
        serving_certificate_errors: Counters = alpha(
            "kubelet_server_expiration_renew_errors",
            "Attempts to renew the serving certificate that failed.",
        );
        losing_support: Gauges = alpha(
            "kubelet_cri_losing_support",
            "The version from which on the runtime is too old; 1 where there is one.",
        )
        .labels(&["version"]);
        claim_capacity: Gauges = claim("kubelet_volume_stats_capacity_bytes", "The size of a claim's file system.");
        claim_available: Gauges = claim("kubelet_volume_stats_available_bytes", "What is free of a claim's file system.");
        claim_used: Gauges = claim("kubelet_volume_stats_used_bytes", "What is used of a claim's file system.");
        claim_inodes: Gauges = claim("kubelet_volume_stats_inodes", "The inodes of a claim's file system.");
        claim_inodes_free: Gauges =
            claim("kubelet_volume_stats_inodes_free", "The free inodes of a claim's file system.");
        claim_abnormal: Gauges = claim(
            "kubelet_volume_stats_health_status_abnormal",
            "Whether a claim's volume is not well, by the word of its driver.",
        );
        claim_inodes_used: Gauges =
            claim("kubelet_volume_stats_inodes_used", "The used inodes of a claim's file system.");
        volumes: Gauges =
            alpha("volume_manager_total_volumes", "Volumes of pods, those that are wanted and those that there are.")
                .labels(&["plugin_name", "state"]);
        storage_operations: Histograms =
            alpha("storage_operation_duration_seconds", "How long work on volumes takes.")
                .labels(&["migrated", "operation_name", "status", "volume_plugin"])
                .buckets(STORAGE_BUCKETS);
        volume_measuring: Histograms = alpha(
            "kubelet_volume_metric_collection_duration_seconds",
            "How long finding out what a volume holds takes, by how it is found out.",
        )
        .labels(&["metric_source"]);
        reconstructed_volumes: Counters =
            alpha("reconstruct_volume_operations_total", "Volumes of an earlier kubelet that were found on disk.");
        unreconstructed_volumes: Counters = alpha(
            "reconstruct_volume_operations_errors_total",
            "Volumes of an earlier kubelet of which nothing could be found out.",
        );
        force_cleaned_volumes: Counters = alpha(
            "force_cleaned_failed_volume_operations_total",
            "Volumes that were cleaned up although nothing could be found out of them.",
        );
        force_cleaned_volumes_errors: Counters =
            alpha("force_cleaned_failed_volume_operation_errors_total", "Such volumes that could not be cleaned up.");
        pod_certificates: Gauges = alpha(
            "kubelet_podcertificate_states",
            "Sources of projected volumes that are certificates of pods, by signer and by how they are.",
        )
        .labels(&["signer_name", "state"]);
        log_bytes: Gauges =
            alpha("kubelet_container_log_filesystem_used_bytes", "What the logs of a container take up on the disk.")
                .labels(&["container", "namespace", "pod", "uid"]);
        provider: Gauges =
            alpha("kubelet_metrics_provider", "Who tells what pods use; always 1.").labels(&["provider"]);
        start_before: Gauges = alpha(
            "kubelet_node_startup_pre_kubelet_duration_seconds",
            "From the start of the machine to that of the kubelet.",
        );
        start_before_registration: Gauges = alpha(
            "kubelet_node_startup_pre_registration_duration_seconds",
            "From the start of the kubelet to its first attempt to register the node.",
        );
        start_registration: Gauges = alpha(
            "kubelet_node_startup_registration_duration_seconds",
            "From the first attempt to register the node to its registration.",
        );
        start_after_registration: Gauges = alpha(
            "kubelet_node_startup_post_registration_duration_seconds",
            "From the registration of the node to its being ready.",
        );
        start: Gauges = alpha(
            "kubelet_node_startup_duration_seconds",
            "From the start of the machine to the node's being ready for the first time.",
        );
        plugins: Gauges = alpha("plugin_manager_total_plugins", "Plugins by what is wanted and what there is.")
            .labels(&["socket_path", "state"]);
        csi_operations: Histograms = alpha("csi_operations_seconds", "How long calls of drivers of volumes take.")
            .labels(&["driver_name", "grpc_status_code", "method_name", "migrated"])
            .buckets(STORAGE_BUCKETS);
        device_registrations: Counters =
            alpha("kubelet_device_plugin_registration_total", "Registrations of device plugins.")
                .labels(&["resource_name"]);
        device_allocations: Histograms = alpha(
            "kubelet_device_plugin_alloc_duration_seconds",
            "How long device plugins take to say what a container needs.",
        )
        .labels(&["resource_name"]);
        dra_operations: Histograms =
            alpha("dra_operations_duration_seconds", "How long preparing the claims of a pod, or undoing it, takes.")
                .labels(&["is_error", "operation_name"])
                .buckets(CLAIM_BUCKETS);
        dra_calls: Histograms =
            alpha("dra_grpc_operations_duration_seconds", "How long calls of drivers of dynamic resources take.")
                .labels(&["driver_name", "grpc_status_code", "method_name"])
                .buckets(CLAIM_BUCKETS);
        claims_in_use: Gauges = alpha(
            "dra_resource_claims_in_use",
            "Claims that pods of the node use, by driver; <any> for those of all drivers together, each counted once.",
        )
        .labels(&["driver_name"]);
        topology_requests: Counters = alpha(
            "kubelet_topology_manager_admission_requests_total",
            "Pods whose devices, processors and memory were asked for.",
        );
        topology_errors: Counters = alpha(
            "kubelet_topology_manager_admission_errors_total",
            "Pods that could not have their devices, processors and memory.",
        );
        topology_duration: Histograms = alpha(
            "kubelet_topology_manager_admission_duration_ms",
            "How long giving a pod its devices, processors and memory takes.",
        )
        .buckets(ADMISSION_BUCKETS);
        aligned: Counters = alpha(
            "kubelet_container_aligned_compute_resources_count",
            "Containers and pods whose resources are aligned.",
        )
        .labels(&["boundary", "scope"]);
        not_aligned: Counters = alpha(
            "kubelet_container_aligned_compute_resources_failure_count",
            "Containers and pods whose resources could not be aligned.",
        )
        .labels(&["boundary", "scope"]);
        cpu_pins: Counters = alpha(
            "kubelet_cpu_manager_pinning_requests_total",
            "Containers that were to have processors for themselves.",
        );
        cpu_pin_errors: Counters = alpha(
            "kubelet_cpu_manager_pinning_errors_total",
            "Containers that could not have processors for themselves.",
        );
        shared_cpus: Gauges = alpha(
            "kubelet_cpu_manager_shared_pool_size_millicores",
            "Thousandths of processors that all containers share.",
        );
        exclusive_cpus: Gauges = alpha(
            "kubelet_cpu_manager_exclusive_cpu_allocation_count",
            "Processors that containers have for themselves.",
        );
        node_cpus: Gauges = alpha(
            "kubelet_cpu_manager_allocation_per_numa",
            "Processors of each node of memory that containers have for themselves.",
        )
        .labels(&["numa_node"]);
        memory_pins: Counters = alpha(
            "kubelet_memory_manager_pinning_requests_total",
            "Containers whose memory was to be bound to nodes.",
        );
        memory_pin_errors: Counters = alpha(
            "kubelet_memory_manager_pinning_errors_total",
            "Containers whose memory could not be bound to nodes.",
        );
        resources_given: Counters = alpha(
            "resource_manager_allocations_total",
            "Processors and memory that containers were given, of the node's or of their pod's.",
        )
        .labels(&["resource_name", "source"]);
        resources_not_given: Counters = alpha(
            "resource_manager_allocation_errors_total",
            "Containers and pods that could not have processors or memory.",
        )
        .labels(&["resource_name", "source"]);
        resource_shares: Counters = alpha(
            "resource_manager_container_assignments",
            "Containers that were given processors or memory, by whether they have them for themselves.",
        )
        .labels(&["assignment_type", "resource_name"]);
        memory_kept: Gauges = alpha(
            "kubelet_memory_qos_node_memory_min_bytes",
            "Memory that is kept for guaranteed pods (memory.min), in bytes.",
        );
        memory_protected: Gauges = alpha(
            "kubelet_memory_qos_node_memory_low_bytes",
            "Memory that is kept for burstable pods while there is other memory to reclaim (memory.low), in bytes.",
        );
        pod_resources: Counters =
            pod_resources("kubelet_pod_resources_endpoint_requests_total", "Requests to the pod resources API.");
        pod_resources_list: Counters =
            pod_resources("kubelet_pod_resources_endpoint_requests_list", "Requests for all pods' resources.");
        pod_resources_get: Counters =
            pod_resources("kubelet_pod_resources_endpoint_requests_get", "Requests for one pod's resources.");
        pod_resources_allocatable: Counters = pod_resources(
            "kubelet_pod_resources_endpoint_requests_get_allocatable",
            "Requests for what may be given away.",
        );
        pod_resources_list_errors: Counters =
            pod_resources("kubelet_pod_resources_endpoint_errors_list", "Requests for all pods' resources that failed.");
        pod_resources_get_errors: Counters =
            pod_resources("kubelet_pod_resources_endpoint_errors_get", "Requests for one pod's resources that failed.");
        pod_resources_allocatable_errors: Counters = pod_resources(
            "kubelet_pod_resources_endpoint_errors_get_allocatable",
            "Requests for what may be given away that failed.",
        );
        shutdown_started: Gauges = alpha(
            "kubelet_graceful_shutdown_start_time_seconds",
            "When the last shutdown of the node began, in seconds since 1970.",
        );
        shutdown_ended: Gauges = alpha(
            "kubelet_graceful_shutdown_end_time_seconds",
            "When all pods had ended for the last shutdown of the node, in seconds since 1970.",
        );
        pod_watch_dropped: Counters = alpha(
            "kubelet_pod_watch_events_dropped_total",
            "How often somebody who follows the pods fell too far behind.",
        );
        worker_duration: Histograms = alpha("kubelet_pod_worker_duration_seconds", "How long one sync of a pod takes.")
            .labels(&["operation_type"]);
        worker_start: Histograms =
            alpha("kubelet_pod_worker_start_duration_seconds", "From the first sight of a pod to its first sync.");
        status_sync: Histograms =
            alpha("kubelet_pod_status_sync_duration_seconds", "From a change of a pod's status to its arrival in the API.")
                .buckets(SYNC_BUCKETS);
        rejections: Counters =
            alpha("kubelet_admission_rejections_total", "Pods that the node refused.").labels(&["reason"]);
        restarted: Counters =
            alpha("kubelet_restarted_pods_total", "Pods that began anew under their old uid.").labels(&["static"]);
        orphaned: Counters =
            alpha("kubelet_orphaned_runtime_pods_total", "Pods that only the runtime knew, and that were ended.");
        evictions: Counters = alpha("kubelet_evictions", "Pods that were evicted.").labels(&["eviction_signal"]);
        stats_age: Histograms =
            alpha("kubelet_eviction_stats_age_seconds", "Age of the figures that an eviction went by.")
                .labels(&["eviction_signal"]);
        preemptions: Counters =
            alpha("kubelet_preemptions", "Pods that made way for critical ones.").labels(&["preemption_signal"]);
        images_collected: Counters =
            alpha("kubelet_image_garbage_collected_total", "Images that were removed.").labels(&["reason"]);
        operations: Counters =
            alpha("kubelet_runtime_operations_total", "Calls of the runtime.").labels(&["operation_type"]);
        operation_errors: Counters =
            alpha("kubelet_runtime_operations_errors_total", "Calls of the runtime that failed.")
                .labels(&["operation_type"]);
        operation_duration: Histograms =
            alpha("kubelet_runtime_operations_duration_seconds", "How long calls of the runtime take.")
                .labels(&["operation_type"])
                .buckets(OPERATION_BUCKETS);
        cgroup_duration: Histograms =
            alpha("kubelet_cgroup_manager_duration_seconds", "How long changes of control groups take.")
                .labels(&["operation_type"]);
        http_requests: Counters =
            alpha("kubelet_http_requests_total", "Requests to the kubelet's API.").labels(HTTP_LABELS);
        http_duration: Histograms =
            alpha("kubelet_http_requests_duration_seconds", "How long requests take to be answered.")
                .labels(HTTP_LABELS);
        http_inflight: Gauges =
            alpha("kubelet_http_inflight_requests", "Requests that are being answered.").labels(HTTP_LABELS);
        http_fallbacks: Counters =
            alpha("kubelet_lifecycle_handler_http_fallbacks_total", "HTTPS hooks that were answered over HTTP.");
        orphans_cleaned: Gauges = alpha(
            "kubelet_orphan_pod_cleaned_volumes",
            "Pods that nobody knows whose volumes were taken away at the last look, or were to be.",
        );
        orphans_left: Gauges = alpha(
            "kubelet_orphan_pod_cleaned_volumes_errors",
            "Pods that nobody knows whose volumes could not be taken away at the last look.",
        );
        websocket_sessions: Counters =
            alpha("kubelet_websocket_streaming_requests_total", "Sessions over a WebSocket that the kubelet translates.")
                .labels(&["subresource"]);
        sleeps_cut: Counters =
            alpha("kubelet_sleep_action_terminated_early_total", "Sleeping hooks that were cut off.");
    }
    probes {
        probes: Counters = Desc::new("prober_probe_total", "Probes by their outcome.", Stability::Beta)
            .labels(&["container", "namespace", "pod", "pod_uid", "probe_type", "result"]);
        probe_duration: Histograms = alpha("prober_probe_duration_seconds", "How long probes take.")
            .labels(&["container", "namespace", "pod", "probe_type"]);
    }
}
