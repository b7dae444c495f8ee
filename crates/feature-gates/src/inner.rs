//! Gates whose two sides nobody can tell apart on the nodes that this build runs on: no binary has a part in them, so all
//! take either value.

use crate::feature::Feature;

/// By name.
pub(crate) const INNER: &[Feature] = &[
    // Which of upstream's threads serves a request.
    Feature::named("APIServingWithRoutine"),
    // How upstream's informers queue what they have heard.
    Feature::named("AtomicFIFO"),
    // How upstream's clients keep connections that can be used again.
    Feature::named("ClientsAllowTLSCacheGC"),
    // How routes of a cloud are brought in order: no cloud that this build knows has routes, and without them upstream's
    // controller of routes does not start.
    Feature::named("CloudControllerManagerWatchBasedRoutesReconciliation"),
    // How many threads decode what the store tells of.
    Feature::named("ConcurrentWatchObjectDecode"),
    // How upstream's programs hand loggers on.
    Feature::named("ContextualLogging"),
    // Which of upstream's two validations counts where both have the same rule.
    Feature::named("DeclarativeValidationBeta"),
    Feature::named("DeclarativeValidationTakeover"),
    // How upstream's informers queue what they have heard, and keep its version.
    Feature::named("InOrderInformersBatchProcess"),
    Feature::named("InformerResourceVersion"),
    // How upstream's cache finds the pods of a namespace.
    Feature::named("StorageNamespaceIndex"),
    // How upstream's informers hold their lock.
    Feature::named("UnlockWhileProcessingFIFO"),
    // Nodes of Windows.
    Feature::named("WinDSR"),
    Feature::named("WinOverlay"),
    Feature::named("WindowsCPUAndMemoryAffinity"),
    Feature::named("WindowsGracefulNodeShutdown"),
    Feature::named("WindowsHostNetwork"),
];
