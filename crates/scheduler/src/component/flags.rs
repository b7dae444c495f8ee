//! The flags of kube-scheduler.

use component_base::flags::{FEATURE_GATES, Flag, FlagSet, GLOBAL, LOGS, METRICS, VERSIONS};
use component_base::serving::secure_serving_flags;
use controller::process::{TOLERANT_DELEGATION, leader_election_flags};

/// Every flag.
pub(super) const FLAGS: &[FlagSet] = &[
    MISC,
    FlagSet { title: "secure serving", flags: SERVING },
    TOLERANT_DELEGATION,
    FlagSet { title: "leader election", flags: LEADER_ELECTION },
    DEPRECATED,
    FlagSet { title: "feature gates", flags: &[FEATURE_GATES] },
    VERSIONS,
    METRICS,
    LOGS,
    GLOBAL,
];

const SERVING: &[Flag] = &secure_serving_flags("10259", "");
const LEADER_ELECTION: &[Flag] = &leader_election_flags("kube-scheduler");
const WITH_CONFIG: &str = "This flag is ignored when --config is given; use the configuration file.";

const MISC: FlagSet = FlagSet {
    title: "misc",
    flags: &[
        Flag::string("config", "").help("The path of the configuration file."),
        Flag::string("master", "").help("The address of the API server; overrides the kubeconfig's."),
        Flag::string("write-config-to", "").help("Writes the configuration to this file and exits."),
    ],
};

const DEPRECATED: FlagSet = FlagSet {
    title: "deprecated",
    flags: &[
        Flag::bool("contention-profiling", "true")
            .help("Lock contention is profiled with Go's tools only; no effect.")
            .deprecated(WITH_CONFIG),
        Flag::int32("kube-api-burst", "100")
            .help("Burst to use while talking with kubernetes apiserver.")
            .deprecated(WITH_CONFIG),
        Flag::string("kube-api-content-type", "application/vnd.kubernetes.protobuf")
            .help("Content type of requests sent to apiserver.")
            .deprecated(WITH_CONFIG),
        Flag::float("kube-api-qps", "50")
            .help("QPS to use while talking with kubernetes apiserver.")
            .deprecated(WITH_CONFIG),
        Flag::string("kubeconfig", "")
            .help("Path to the kubeconfig file with the API server's location and credentials.")
            .deprecated(WITH_CONFIG),
        Flag::duration("pod-max-in-unschedulable-pods-duration", "5m0s")
            .help("How long a pod may wait for an event before it is tried again.")
            .deprecated("This flag will be removed."),
        Flag::bool("profiling", "true").help("Serves /debug/flags/v.").deprecated(WITH_CONFIG),
    ],
};
