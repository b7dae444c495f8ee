//! Which binaries of a cluster have a part in which feature. A cluster is often given its gates as a whole, to all of its
//! binaries: where a feature has no part, its gate means nothing and takes any value.
//!
//! Listed are the features that some binary of this build switches; what upstream's binary has a part in and this build's has
//! not is listed all the same, so that it is refused there.

use crate::feature::Feature;
use crate::inner::INNER;

/// A binary of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// kubelet.
    Kubelet,
    /// kube-proxy.
    Proxy,
    /// cloud-controller-manager.
    Cloud,
}

use Part::{ApiServer as A, Cloud as C, ControllerManager as M, Kubelet as K, Proxy as P, Scheduler as S};

/// By name.
const PARTS: &[(Feature, &[Part])] = &[
    (Feature::named("APIResponseCompression"), &[A]),
    (Feature::named("APIServerIdentity"), &[A, M]),
    (Feature::named("AllowDNSOnlyNodeCSR"), &[K]),
    (Feature::named("AllowInsecureKubeletCertificateSigningRequests"), &[A]),
    (Feature::named("AllowParsingUserUIDFromCertAuth"), &[A, M, S, K, C]),
    (Feature::named("AllowServiceExternalIPs"), &[P]),
    (Feature::named("AllowUnsafeMalformedObjectDeletion"), &[A]),
    (Feature::named("AuthorizePodWebsocketUpgradeCreatePermission"), &[A]),
    (Feature::named("CBORServingAndStorage"), &[A]),
    (Feature::named("CPUManagerPolicyAlphaOptions"), &[K]),
    (Feature::named("CPUManagerPolicyBetaOptions"), &[K]),
    (Feature::named("CRDObservedGenerationTracking"), &[A]),
    (Feature::named("CRIListStreaming"), &[K]),
    (Feature::named("CSIVolumeHealth"), &[K]),
    (Feature::named("ChangeContainerStatusOnKubeletRestart"), &[K]),
    (Feature::named("ClearingNominatedNodeNameAfterBinding"), &[A]),
    (Feature::named("ClientsAllowCARotation"), &[A, M, S, K, P, C]),
    (Feature::named("ClientsAllowCBOR"), &[A, M, S, K, P, C]),
    (Feature::named("ClientsPreferCBOR"), &[A, M, S, K, P, C]),
    (Feature::named("CloudControllerManagerWebhook"), &[C]),
    (Feature::named("ClusterTrustBundle"), &[A, M]),
    (Feature::named("ClusterTrustBundleProjection"), &[A, K]),
    (Feature::named("ComponentFlagz"), &[A, M, S, K, P, C]),
    (Feature::named("ComponentStatusz"), &[A, M, S, K, P, C]),
    (Feature::named("ConstrainedImpersonation"), &[A]),
    (Feature::named("ContainerCheckpoint"), &[K]),
    (Feature::named("ContainerRestartRules"), &[A, K]),
    (Feature::named("ContainerStopSignals"), &[A, K]),
    (Feature::named("ControllerManagerReleaseLeaderElectionLockOnExit"), &[M, C]),
    (Feature::named("CoordinatedLeaderElection"), &[A, M, S]),
    (Feature::named("CrossNamespaceVolumeDataSource"), &[A]),
    (Feature::named("CustomCPUCFSQuotaPeriod"), &[K]),
    (Feature::named("DRAAdminAccess"), &[A, M, S]),
    (Feature::named("DRAConsumableCapacity"), &[A, S]),
    (Feature::named("DRADeviceBindingConditions"), &[A, S]),
    (Feature::named("DRADeviceTaintRules"), &[A, M, S]),
    (Feature::named("DRADeviceTaints"), &[A, M, S]),
    (Feature::named("DRAExtendedResource"), &[A, M, S, K]),
    (Feature::named("DRAListTypeAttributes"), &[A, S]),
    (Feature::named("DRANodeAllocatableResources"), &[A, S, K]),
    (Feature::named("DRAPartitionableDevices"), &[A, S]),
    (Feature::named("DRAPrioritizedList"), &[A, M, S]),
    (Feature::named("DRAResourceClaimDeviceStatus"), &[A, S]),
    (Feature::named("DRAResourceClaimGranularStatusAuthorization"), &[A]),
    (Feature::named("DRAResourcePoolStatus"), &[A, M]),
    (Feature::named("DRASchedulerFilterTimeout"), &[S]),
    (Feature::named("DRAWorkloadResourceClaims"), &[A, M, S, K]),
    (Feature::named("DeploymentReplicaSetTerminatingReplicas"), &[A, M]),
    (Feature::named("DetectCacheInconsistency"), &[A]),
    (Feature::named("DisableAllocatorDualWrite"), &[A]),
    (Feature::named("DisableCPUQuotaWithExclusiveCPUs"), &[K]),
    (Feature::named("DynamicResourceAllocation"), &[A, M, S, K]),
    (Feature::named("EnvFiles"), &[A, K]),
    (Feature::named("EventedPLEG"), &[K]),
    (Feature::named("ExtendWebSocketsToKubelet"), &[A, K]),
    (Feature::named("GangScheduling"), &[S]),
    (Feature::named("GenericWorkload"), &[A, M, S]),
    (Feature::named("GracefulNodeShutdown"), &[K]),
    (Feature::named("GracefulNodeShutdownBasedOnPodPriority"), &[K]),
    (Feature::named("HPAConfigurableTolerance"), &[A, M]),
    (Feature::named("HPAScaleToZero"), &[A, M]),
    (Feature::named("HostnameOverride"), &[A, K]),
    (Feature::named("ImageVolumeWithDigest"), &[A, K]),
    (Feature::named("InPlacePodLevelResourcesVerticalScaling"), &[A, S, K]),
    (Feature::named("InPlacePodVerticalScalingExclusiveCPUs"), &[K]),
    (Feature::named("InPlacePodVerticalScalingExclusiveMemory"), &[K]),
    (Feature::named("InPlacePodVerticalScalingInitContainers"), &[A, K]),
    (Feature::named("KMSv1"), &[A]),
    (Feature::named("KubeletCrashLoopBackOffMax"), &[K]),
    (Feature::named("KubeletEnsureSecretPulledImages"), &[K]),
    (Feature::named("KubeletInUserNamespace"), &[K]),
    (Feature::named("KubeletPodResourcesListUseActivePods"), &[K]),
    (Feature::named("KubeletRegistrationGetOnExistsOnly"), &[K]),
    (Feature::named("KubeletSeparateDiskGC"), &[K]),
    (Feature::named("KubeletServiceAccountTokenForCredentialProviders"), &[A, K]),
    (Feature::named("ListFromCacheSnapshot"), &[A]),
    (Feature::named("LocalStorageCapacityIsolationFSQuotaMonitoring"), &[K]),
    (Feature::named("LoggingAlphaOptions"), &[A, M, S, K, P, C]),
    (Feature::named("LoggingBetaOptions"), &[A, M, S, K, P, C]),
    (Feature::named("ManifestBasedAdmissionControlConfig"), &[A]),
    (Feature::named("MatchLabelKeysInPodTopologySpread"), &[A, S]),
    (Feature::named("MatchLabelKeysInPodTopologySpreadSelectorMerge"), &[A]),
    (Feature::named("MaxUnavailableStatefulSet"), &[A, M]),
    (Feature::named("MemoryQoS"), &[K]),
    (Feature::named("MutablePVNodeAffinity"), &[A]),
    (Feature::named("MutablePodResourcesForSuspendedJobs"), &[A]),
    (Feature::named("MutableSchedulingDirectivesForSuspendedJobs"), &[A, M]),
    (Feature::named("MutatingAdmissionPolicy"), &[A]),
    (Feature::named("NativeHistograms"), &[A, M, S, K, P, C]),
    (Feature::named("NodeDeclaredFeatures"), &[A, S, K]),
    (Feature::named("NominatedNodeNameForExpectation"), &[S]),
    (Feature::named("OpenAPIEnums"), &[A]),
    (Feature::named("OpportunisticBatching"), &[S]),
    (Feature::named("PLEGOnDemandRelist"), &[K]),
    (Feature::named("PersistentVolumeClaimUnusedSinceTime"), &[M]),
    (Feature::named("PodAndContainerStatsFromCRI"), &[K]),
    (Feature::named("PodCertificateRequest"), &[A, M, K]),
    (Feature::named("PodDeletionCost"), &[A, M]),
    (Feature::named("PodLevelResourceManagers"), &[K]),
    (Feature::named("PodLevelResources"), &[A, M, S, K]),
    (Feature::named("PodLogsQuerySplitStreams"), &[A, K]),
    (Feature::named("PodReadyToStartContainersCondition"), &[K]),
    (Feature::named("PodTopologyLabelsAdmission"), &[A]),
    (Feature::named("PodsAPI"), &[K]),
    (Feature::named("PortForwardWebsockets"), &[A]),
    (Feature::named("PreventStaticPodAPIReferences"), &[K]),
    (Feature::named("QOSReserved"), &[K]),
    (Feature::named("ReduceDefaultCrashLoopBackOffDecay"), &[K]),
    (Feature::named("RelaxedServiceNameValidation"), &[A]),
    (Feature::named("ReloadKubeletClientCAFile"), &[K]),
    (Feature::named("ReloadKubeletServerCertificateFile"), &[K]),
    (Feature::named("RemoteRequestHeaderUID"), &[A, M, S, C]),
    (Feature::named("ResourceHealthStatus"), &[A, K]),
    (Feature::named("ResourceHealthStatusMessage"), &[A, K]),
    (Feature::named("RestartAllContainersOnContainerExits"), &[A, K]),
    (Feature::named("RotateKubeletServerCertificate"), &[K]),
    (Feature::named("RuntimeClassInImageCriApi"), &[K]),
    (Feature::named("SELinuxChangePolicy"), &[A, M, K]),
    (Feature::named("SELinuxMount"), &[A, K]),
    (Feature::named("SchedulerAsyncAPICalls"), &[S]),
    (Feature::named("SchedulerAsyncPreemption"), &[S]),
    (Feature::named("SchedulerPopFromBackoffQ"), &[S]),
    (Feature::named("ServiceAccountNodeAudienceRestriction"), &[A]),
    (Feature::named("ServiceCIDRStatusFieldWiping"), &[A]),
    (Feature::named("ShardedListAndWatch"), &[A]),
    (Feature::named("SizeBasedListCostEstimate"), &[A]),
    (Feature::named("StaleControllerConsistencyDaemonSet"), &[M]),
    (Feature::named("StaleControllerConsistencyJob"), &[M]),
    (Feature::named("StaleControllerConsistencyReplicaSet"), &[M]),
    (Feature::named("StaleControllerConsistencyStatefulSet"), &[M]),
    (Feature::named("StatefulSetSemanticRevisionComparison"), &[M]),
    (Feature::named("StorageCapacityScoring"), &[S]),
    (Feature::named("StorageVersionAPI"), &[A, M]),
    (Feature::named("StorageVersionHash"), &[A]),
    (Feature::named("StorageVersionMigrator"), &[A, M]),
    (Feature::named("StrictIPCIDRValidation"), &[A]),
    (Feature::named("StructuredAuthenticationConfigurationEgressSelector"), &[A]),
    (Feature::named("StructuredAuthenticationConfigurationJWKSMetrics"), &[A]),
    (Feature::named("TaintTolerationComparisonOperators"), &[A, M, S, K]),
    (Feature::named("TokenRequestServiceAccountUIDValidation"), &[A]),
    (Feature::named("TopologyAwareWorkloadScheduling"), &[A, S]),
    (Feature::named("TopologyManagerPolicyAlphaOptions"), &[K]),
    (Feature::named("TopologyManagerPolicyBetaOptions"), &[K]),
    (Feature::named("TranslateStreamCloseWebsocketRequests"), &[A]),
    (Feature::named("UnauthenticatedHTTP2DOSMitigation"), &[A]),
    (Feature::named("UnknownVersionInteroperabilityProxy"), &[A]),
    (Feature::named("UserNamespacesHostNetworkSupport"), &[A, K]),
    (Feature::named("VolumeLimitScaling"), &[A, S]),
    (Feature::named("WatchCacheInitializationPostStartHook"), &[A]),
    (Feature::named("WatchList"), &[A]),
    (Feature::named("WatchListClient"), &[A, M, S, K, P, C]),
    (Feature::named("WorkloadAwarePreemption"), &[A, S]),
    (Feature::named("WorkloadWithJob"), &[A, M]),
];

/// The binaries with a part in a feature; none where that is not known.
pub(crate) fn of(feature: Feature) -> Option<&'static [Part]> {
    let listed = PARTS.iter().find(|(own, _)| *own == feature).map(|(_, parts)| *parts);
    listed.or_else(|| INNER.contains(&feature).then_some(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_listed_once_by_name() {
        let names: Vec<&str> = PARTS.iter().map(|(feature, _)| feature.name()).collect();
        assert!(names.is_sorted_by(|one, other| one < other), "{names:?}");
        assert!(INNER.is_sorted_by(|one, other| one < other));
        let both: Vec<_> = INNER.iter().filter(|own| names.contains(&own.name())).collect();
        assert!(both.is_empty(), "some binary has a part in them: {both:?}");
    }
}
