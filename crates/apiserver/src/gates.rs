//! The feature gates whose two sides the server has. Code asks them where it acts (`docs/adr/0006-gates.md`).

pub(crate) use component_base::shared_gates::{
    API_SERVER_IDENTITY, CBOR, CLEAR_NOMINATION, COORDINATED_ELECTION as COORDINATED, CREDENTIAL_TOKENS,
    DECLARED_FEATURES as NODE_DECLARED_FEATURES, DEVICE_TAINT_RULES, DEVICES, EXTEND_WEBSOCKETS, POOL_STATUS,
    REMOTE_UID, SPLIT_LOG_STREAMS, SUBJECT_UID, TOPOLOGY_LABELS, WORKLOAD_WITH_JOB,
};
use component_base::{Feature, Known, Part};

/// Large answers are compressed for clients that take it.
pub(crate) const COMPRESS: Feature = Feature::named("APIResponseCompression");
/// Who acts as somebody else may be allowed only a part of what the other may do.
pub(crate) const CONSTRAINED_IMPERSONATION: Feature = Feature::named("ConstrainedImpersonation");
/// Who tells which devices a claim has needs a right to it, and drivers one for their own.
pub(crate) const CLAIM_RIGHTS: Feature = Feature::named("DRAResourceClaimGranularStatusAuthorization");
/// Caches are compared with the store from time to time.
pub(crate) const DETECT_INCONSISTENCY: Feature = Feature::named("DetectCacheInconsistency");
/// An issuer of tokens may be reached by one of the server's ways to others.
pub(crate) const ISSUER_EGRESS: Feature = Feature::named("StructuredAuthenticationConfigurationEgressSelector");
/// The keys of issuers of tokens are told of in metrics.
pub(crate) const JWKS_METRICS: Feature = Feature::named("StructuredAuthenticationConfigurationJWKSMetrics");
/// Plug-ins of the deprecated version may keep the keys of what is stored.
pub(crate) const KMS_V1: Feature = Feature::named("KMSv1");
/// Policies may change what is written.
pub(crate) const MUTATING_POLICIES: Feature = Feature::named("MutatingAdmissionPolicy");

/// Discovery tells by a hash in which version the objects of a resource are stored.
pub(crate) const STORAGE_VERSION_HASH: Feature = Feature::named("StorageVersionHash");
/// Descriptions say which values a text may have.
pub(crate) const OPENAPI_ENUMS: Feature = Feature::named("OpenAPIEnums");
/// Whoever asks for a token and names a uid means the account of that uid.
pub(crate) const TOKEN_REQUEST_UID: Feature = Feature::named("TokenRequestServiceAccountUIDValidation");
/// A node gets tokens only for the audiences that its pods ask for.
pub(crate) const NODE_AUDIENCES: Feature = Feature::named("ServiceAccountNodeAudienceRestriction");
/// A node may ask for a certificate of a kubelet with any name.
pub(crate) const INSECURE_KUBELET_REQUESTS: Feature = Feature::named("AllowInsecureKubeletCertificateSigningRequests");

/// Webhooks and policies may stand in files of the server.
pub(crate) const MANIFESTS: Feature = kinds::gates::MANIFEST_BASED_ADMISSION;

/// What only other servers of the cluster serve is asked of them.
pub(crate) const PEERS: Feature = Feature::named("UnknownVersionInteroperabilityProxy");

/// Clients may ask for a part of a collection by the hashes of its objects.
pub(crate) const SHARDS: Feature = Feature::named("ShardedListAndWatch");

/// Whoever opens a session with a pod has to be allowed to create it, whatever the method of the request.
pub(crate) const SESSIONS_ARE_CREATED: Feature = Feature::named("AuthorizePodWebsocketUpgradeCreatePermission");
/// Commands over WebSockets are translated here, where node agents do not do it themselves (KEP-4006).
pub(crate) const TRANSLATED_COMMANDS: Feature = Feature::named("TranslateStreamCloseWebsocketRequests");
/// Forwarded ports are taken out of their tunnel here, where node agents do not do it themselves (KEP-4006).
pub(crate) const TUNNELLED_PORTS: Feature = Feature::named("PortForwardWebsockets");
/// Lists are taken to be as much work as they weigh, and not as they are long.
pub(crate) const LIST_SIZES: Feature = Feature::named("SizeBasedListCostEstimate");
/// The server is not ready before its caches are filled.
pub(crate) const STORAGE_READINESS: Feature = Feature::named("WatchCacheInitializationPostStartHook");
/// Connections of HTTP/2 end after a request of somebody who is not known.
pub(crate) const UNKNOWN_GO_AWAY: Feature = Feature::named("UnauthenticatedHTTP2DOSMitigation");

/// All of them.
pub(crate) const KNOWN: Known = Known::switching(&[
    &[
        COORDINATED,
        MANIFESTS,
        PEERS,
        registry::DISABLE_DUAL_WRITE,
        registry::LIST_FROM_SNAPSHOT,
        registry::UNSAFE_DELETION,
        registry::WATCH_LIST,
        API_SERVER_IDENTITY,
        CLEAR_NOMINATION,
        CREDENTIAL_TOKENS,
        EXTEND_WEBSOCKETS,
        LIST_SIZES,
        POOL_STATUS,
        SESSIONS_ARE_CREATED,
        STORAGE_READINESS,
        TRANSLATED_COMMANDS,
        TUNNELLED_PORTS,
        UNKNOWN_GO_AWAY,
        kinds::gates::COMPARING_TOLERATIONS,
        kinds::gates::HOST_NETWORK_USERS,
        kinds::gates::SELINUX_MOUNT,
        kinds::gates::POD_DELETION_COST,
        kinds::gates::RELAXED_SERVICE_NAMES,
        kinds::gates::RESIZE_INIT_CONTAINERS,
        kinds::gates::RESTART_ALL_CONTAINERS,
        kinds::gates::SERVICE_CIDR_STATUS,
        kinds::gates::SPREAD_SELECTORS_BY_LABEL_KEYS,
        kinds::gates::STRICT_ADDRESSES,
        kinds::gates::SUSPENDED_JOB_PLACING,
        kinds::gates::SUSPENDED_JOB_RESOURCES,
        INSECURE_KUBELET_REQUESTS,
        NODE_AUDIENCES,
        OPENAPI_ENUMS,
        SPLIT_LOG_STREAMS,
        STORAGE_VERSION_HASH,
        TOKEN_REQUEST_UID,
        TOPOLOGY_LABELS,
        kinds::gates::MUTABLE_NODE_AFFINITY,
        kinds::gates::SCALE_TO_ZERO,
        COMPRESS,
        SUBJECT_UID,
        CBOR,
        CLAIM_RIGHTS,
        CONSTRAINED_IMPERSONATION,
        DETECT_INCONSISTENCY,
        DEVICES,
        DEVICE_TAINT_RULES,
        ISSUER_EGRESS,
        JWKS_METRICS,
        KMS_V1,
        MUTATING_POLICIES,
        REMOTE_UID,
        SHARDS,
        NODE_DECLARED_FEATURES,
        WORKLOAD_WITH_JOB,
    ],
    kinds::gates::SWITCHED,
    client::features::GATES,
    component_base::logging::GATES,
    component_base::metrics::GATES,
    component_base::zpages::GATES,
])
.of(Part::ApiServer);
