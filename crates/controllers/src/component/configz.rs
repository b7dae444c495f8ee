//! What `/configz` shows.

use api_machinery::value::{Value, ValueMap};
use component_base::flags::Options;
use controller::process::Source::{Fixed, Flag, Item};
use controller::process::{GENERIC_CONFIG, Row, config_shown};

/// The configuration, every field of it.
pub(super) fn shown(options: &Options) -> Value {
    let rows: &[&[Row]] = &[GENERIC_CONFIG, WORKLOADS, CLUSTER, NODES, SIGNING, VOLUMES];
    config_shown(options, "kubecontrollermanager.config.k8s.io", "KubeControllerManagerConfiguration", rows)
}

const WORKLOADS: &[Row] = &[
    ("DaemonSetController/ConcurrentDaemonSetSyncs", Flag("concurrent-daemonset-syncs")),
    ("DeploymentController/ConcurrentDeploymentSyncs", Flag("concurrent-deployment-syncs")),
    ("StatefulSetController/ConcurrentStatefulSetSyncs", Flag("concurrent-statefulset-syncs")),
    ("JobController/ConcurrentJobSyncs", Flag("concurrent-job-syncs")),
    ("CronJobController/ConcurrentCronJobSyncs", Flag("concurrent-cron-job-syncs")),
    ("ReplicaSetController/ConcurrentRSSyncs", Flag("concurrent-replicaset-syncs")),
    ("ReplicationController/ConcurrentRCSyncs", Flag("concurrent-rc-syncs")),
    ("TTLAfterFinishedController/ConcurrentTTLSyncs", Flag("concurrent-ttl-after-finished-syncs")),
    ("PodGCController/TerminatedPodGCThreshold", Flag("terminated-pod-gc-threshold")),
    ("HPAController/ConcurrentHorizontalPodAutoscalerSyncs", Flag("concurrent-horizontal-pod-autoscaler-syncs")),
    ("HPAController/HorizontalPodAutoscalerSyncPeriod", Flag("horizontal-pod-autoscaler-sync-period")),
    (
        "HPAController/HorizontalPodAutoscalerDownscaleStabilizationWindow",
        Flag("horizontal-pod-autoscaler-downscale-stabilization"),
    ),
    ("HPAController/HorizontalPodAutoscalerTolerance", Flag("horizontal-pod-autoscaler-tolerance")),
    (
        "HPAController/HorizontalPodAutoscalerCPUInitializationPeriod",
        Flag("horizontal-pod-autoscaler-cpu-initialization-period"),
    ),
    (
        "HPAController/HorizontalPodAutoscalerInitialReadinessDelay",
        Flag("horizontal-pod-autoscaler-initial-readiness-delay"),
    ),
];

const CLUSTER: &[Row] = &[
    ("DeprecatedController", Fixed(|| ValueMap::new().into())),
    ("EndpointController/ConcurrentEndpointSyncs", Flag("concurrent-endpoint-syncs")),
    ("EndpointController/EndpointUpdatesBatchPeriod", Flag("endpoint-updates-batch-period")),
    ("EndpointSliceController/ConcurrentServiceEndpointSyncs", Flag("concurrent-service-endpoint-syncs")),
    ("EndpointSliceController/MaxEndpointsPerSlice", Flag("max-endpoints-per-slice")),
    ("EndpointSliceController/EndpointUpdatesBatchPeriod", Flag("endpointslice-updates-batch-period")),
    (
        "EndpointSliceMirroringController/MirroringConcurrentServiceEndpointSyncs",
        Flag("mirroring-concurrent-service-endpoint-syncs"),
    ),
    ("EndpointSliceMirroringController/MirroringMaxEndpointsPerSubset", Flag("mirroring-max-endpoints-per-subset")),
    (
        "EndpointSliceMirroringController/MirroringEndpointUpdatesBatchPeriod",
        Flag("mirroring-endpointslice-updates-batch-period"),
    ),
    ("GarbageCollectorController/EnableGarbageCollector", Flag("enable-garbage-collector")),
    ("GarbageCollectorController/ConcurrentGCSyncs", Flag("concurrent-gc-syncs")),
    ("GarbageCollectorController/GCIgnoredResources", Fixed(ignored)),
    ("LegacySATokenCleaner/CleanUpPeriod", Flag("legacy-service-account-token-clean-up-period")),
    ("NamespaceController/NamespaceSyncPeriod", Flag("namespace-sync-period")),
    ("NamespaceController/ConcurrentNamespaceSyncs", Flag("concurrent-namespace-syncs")),
    ("ResourceQuotaController/ResourceQuotaSyncPeriod", Flag("resource-quota-sync-period")),
    ("ResourceQuotaController/ConcurrentResourceQuotaSyncs", Flag("concurrent-resource-quota-syncs")),
    ("SAController/ServiceAccountKeyFile", Flag("service-account-private-key-file")),
    ("SAController/ConcurrentSATokenSyncs", Flag("concurrent-serviceaccount-token-syncs")),
    ("SAController/RootCAFile", Flag("root-ca-file")),
    (
        "ValidatingAdmissionPolicyStatusController/ConcurrentPolicySyncs",
        Flag("concurrent-validating-admission-policy-status-syncs"),
    ),
    ("DeviceTaintEvictionController/ConcurrentSyncs", Flag("concurrent-device-taint-eviction-syncs")),
    ("ResourceClaimController/ConcurrentSyncs", Flag("concurrent-resourceclaim-syncs")),
];

/// What the garbage collector does not look at.
fn ignored() -> Value {
    let one = |group: &str| {
        let fields = [("Group", group), ("Resource", "events")];
        Value::from(fields.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect::<ValueMap<_, _>>())
    };
    ["", "events.k8s.io"].map(one).into_iter().collect()
}

const NODES: &[Row] = &[
    ("NodeIPAMController/ServiceCIDR", Item("service-cluster-ip-range", 0)),
    ("NodeIPAMController/SecondaryServiceCIDR", Item("service-cluster-ip-range", 1)),
    ("NodeIPAMController/NodeCIDRMaskSize", Flag("node-cidr-mask-size")),
    ("NodeIPAMController/NodeCIDRMaskSizeIPv4", Flag("node-cidr-mask-size-ipv4")),
    ("NodeIPAMController/NodeCIDRMaskSizeIPv6", Flag("node-cidr-mask-size-ipv6")),
    ("NodeLifecycleController/NodeEvictionRate", Flag("node-eviction-rate")),
    ("NodeLifecycleController/SecondaryNodeEvictionRate", Flag("secondary-node-eviction-rate")),
    ("NodeLifecycleController/NodeStartupGracePeriod", Flag("node-startup-grace-period")),
    ("NodeLifecycleController/NodeMonitorGracePeriod", Flag("node-monitor-grace-period")),
    ("NodeLifecycleController/PodEvictionTimeout", Fixed(|| "5m0s".into())),
    ("NodeLifecycleController/LargeClusterSizeThreshold", Flag("large-cluster-size-threshold")),
    ("NodeLifecycleController/UnhealthyZoneThreshold", Flag("unhealthy-zone-threshold")),
];

const SIGNING: &[Row] = &[
    ("CSRSigningController/ClusterSigningCertFile", Flag("cluster-signing-cert-file")),
    ("CSRSigningController/ClusterSigningKeyFile", Flag("cluster-signing-key-file")),
    ("CSRSigningController/ClusterSigningDuration", Flag("cluster-signing-duration")),
    (
        "CSRSigningController/KubeletServingSignerConfiguration/CertFile",
        Flag("cluster-signing-kubelet-serving-cert-file"),
    ),
    (
        "CSRSigningController/KubeletServingSignerConfiguration/KeyFile",
        Flag("cluster-signing-kubelet-serving-key-file"),
    ),
    (
        "CSRSigningController/KubeletClientSignerConfiguration/CertFile",
        Flag("cluster-signing-kubelet-client-cert-file"),
    ),
    ("CSRSigningController/KubeletClientSignerConfiguration/KeyFile", Flag("cluster-signing-kubelet-client-key-file")),
    (
        "CSRSigningController/KubeAPIServerClientSignerConfiguration/CertFile",
        Flag("cluster-signing-kube-apiserver-client-cert-file"),
    ),
    (
        "CSRSigningController/KubeAPIServerClientSignerConfiguration/KeyFile",
        Flag("cluster-signing-kube-apiserver-client-key-file"),
    ),
    (
        "CSRSigningController/LegacyUnknownSignerConfiguration/CertFile",
        Flag("cluster-signing-legacy-unknown-cert-file"),
    ),
    ("CSRSigningController/LegacyUnknownSignerConfiguration/KeyFile", Flag("cluster-signing-legacy-unknown-key-file")),
];

/// The recycling of volumes cannot be set here: it is shown as it is by default.
const VOLUMES: &[Row] = &[
    ("AttachDetachController/DisableAttachDetachReconcilerSync", Flag("disable-attach-detach-reconcile-sync")),
    ("AttachDetachController/ReconcilerSyncLoopPeriod", Flag("attach-detach-reconcile-sync-period")),
    ("AttachDetachController/disableForceDetachOnTimeout", Flag("disable-force-detach-on-timeout")),
    ("EphemeralVolumeController/ConcurrentEphemeralVolumeSyncs", Flag("concurrent-ephemeralvolume-syncs")),
    ("PersistentVolumeBinderController/PVClaimBinderSyncPeriod", Flag("pvclaimbinder-sync-period")),
    (
        "PersistentVolumeBinderController/VolumeConfiguration/EnableHostPathProvisioning",
        Flag("enable-hostpath-provisioner"),
    ),
    (
        "PersistentVolumeBinderController/VolumeConfiguration/EnableDynamicProvisioning",
        Flag("enable-dynamic-provisioning"),
    ),
    ("PersistentVolumeBinderController/VolumeConfiguration/FlexVolumePluginDir", Flag("flex-volume-plugin-dir")),
    ("PersistentVolumeBinderController/VolumeConfiguration/PersistentVolumeRecyclerConfiguration", Fixed(recycling)),
];

fn recycling() -> Value {
    let numbers = [
        ("MaximumRetry", 3),
        ("MinimumTimeoutNFS", 300),
        ("IncrementTimeoutNFS", 30),
        ("MinimumTimeoutHostPath", 60),
        ("IncrementTimeoutHostPath", 30),
    ];
    let texts = ["PodTemplateFilePathNFS", "PodTemplateFilePathHostPath"].map(|key| (key, Value::from("")));
    let numbers = numbers.map(|(key, value)| (key, Value::from(value)));
    numbers.into_iter().chain(texts).map(|(key, value)| (key.to_owned(), value)).collect::<ValueMap<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::component::flags::FLAGS;

    fn shown_with(arguments: &[&str]) -> Value {
        let options = component_base::flags::parse(FLAGS, arguments.iter().map(|one| (*one).to_owned())).unwrap();
        shown(&options)["kubecontrollermanager.config.k8s.io"].clone()
    }

    #[test]
    fn every_field_of_upstream_is_shown_with_its_default() {
        let facts = test_facts::facts("config/KubeControllerManagerConfiguration.json");
        let mut expected = facts["defaults"].clone();
        // What the version leaves open flags have defaults for.
        for (pointer, default) in [
            ("/Generic/Debugging", json!({"enableProfiling": true, "enableContentionProfiling": false})),
            ("/Generic/LeaderElection/resourceName", json!("kube-controller-manager")),
            ("/Generic/LeaderElection/resourceNamespace", json!("kube-system")),
            ("/KubeCloudShared/CIDRAllocatorType", json!("RangeAllocator")),
            (
                "/GarbageCollectorController/GCIgnoredResources",
                json!([{"Group": "", "Resource": "events"}, {"Group": "events.k8s.io", "Resource": "events"}]),
            ),
            ("/NodeLifecycleController/NodeEvictionRate", json!(0.1)),
            ("/NodeLifecycleController/SecondaryNodeEvictionRate", json!(0.01)),
            ("/NodeLifecycleController/LargeClusterSizeThreshold", json!(50)),
            ("/NodeLifecycleController/UnhealthyZoneThreshold", json!(0.55)),
        ] {
            *expected.pointer_mut(pointer).unwrap() = default;
        }
        expected["apiVersion"] = json!("kubecontrollermanager.config.k8s.io/v1alpha1");
        expected["kind"] = json!("KubeControllerManagerConfiguration");
        assert_eq!(shown_with(&[]), expected);
    }

    #[test]
    fn flags_show() {
        let shown = shown_with(&[
            "--controllers=*,-ttl",
            "--service-cluster-ip-range=10.0.0.0/16,fd00::/108",
            "--kube-api-qps=7.5",
            "--namespace-sync-period=90s",
            "--concurrent-gc-syncs=3",
        ]);
        for (pointer, expected) in [
            ("/Generic/Controllers", json!(["*", "-ttl"])),
            ("/NodeIPAMController/ServiceCIDR", json!("10.0.0.0/16")),
            ("/NodeIPAMController/SecondaryServiceCIDR", json!("fd00::/108")),
            ("/Generic/ClientConnection/qps", json!(7.5)),
            ("/NamespaceController/NamespaceSyncPeriod", json!("1m30s")),
            ("/GarbageCollectorController/ConcurrentGCSyncs", json!(3)),
        ] {
            assert_eq!(shown.pointer(pointer), Some(&expected), "{pointer}");
        }
    }
}
