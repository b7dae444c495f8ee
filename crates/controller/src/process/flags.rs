//! The flags that the managers of controllers share: client connection, leader election, delegated access, controllers.

use component_base::flags::{FEATURE_GATES, Flag, FlagSet};

/// How the API server is reached.
pub const CLIENT: FlagSet = FlagSet {
    title: "client connection",
    flags: &[
        Flag::int32("kube-api-burst", "30").help("Burst to use while talking with kubernetes apiserver."),
        Flag::string("kube-api-content-type", "application/vnd.kubernetes.protobuf")
            .help("Content type of requests sent to apiserver."),
        Flag::float("kube-api-qps", "20").help("QPS to use while talking with kubernetes apiserver."),
        Flag::string("kubeconfig", "")
            .help("Path to the kubeconfig file with the API server's location and credentials."),
        Flag::string("master", "").help("The address of the API server; overrides the kubeconfig's."),
    ],
};

/// Who may use the component's own endpoint.
pub const DELEGATION: FlagSet = FlagSet { title: DELEGATION_TITLE, flags: &delegation_flags("false") };
/// The same, of components that start without what API servers say of certificates.
pub const TOLERANT_DELEGATION: FlagSet = FlagSet { title: DELEGATION_TITLE, flags: &delegation_flags("true") };
const DELEGATION_TITLE: &str = "delegated authentication and authorization";

/// The flags of [`DELEGATION`], and whether a failed look-up is tolerated by default.
const fn delegation_flags(tolerates: &'static str) -> [Flag; 15] {
    [
        Flag::string("authentication-kubeconfig", "").help(
            "kubeconfig for TokenReviews and for looking up whose certificates are accepted. Without it the pod's own account \
             is used; out of a cluster tokens are not accepted, and nothing is looked up.",
        ),
        Flag::bool("authentication-skip-lookup", "false").help(
            "If true, whose certificates are accepted is not looked up in the cluster: only --client-ca-file and the \
             --requestheader flags say so.",
        ),
        Flag::duration("authentication-token-webhook-cache-ttl", "10s").help("How long token reviews are remembered."),
        Flag::bool("authentication-tolerate-lookup-failure", tolerates).help(
            "If true, the component starts though whose certificates are accepted could not be looked up; until it can be, \
             such requests are anonymous.",
        ),
        Flag::string_slice("authorization-always-allow-paths", "/healthz,/readyz,/livez")
            .help("Paths that need no authorization. A trailing * stands for everything below."),
        Flag::string("authorization-kubeconfig", "").help(
            "kubeconfig for SubjectAccessReviews. Without it the pod's own account is used; out of a cluster only \
             system:masters and the paths above pass.",
        ),
        Flag::duration("authorization-webhook-cache-authorized-ttl", "10s").help("How long to remember an allowance."),
        Flag::duration("authorization-webhook-cache-unauthorized-ttl", "10s").help("How long to remember a refusal."),
        Flag::string("client-ca-file", "")
            .help("CA bundle of client certificates; without it, what API servers of the cluster accept."),
        Flag::string_slice("requestheader-allowed-names", "").help("Common names of front proxies; empty for any."),
        Flag::string("requestheader-client-ca-file", "")
            .help("CA bundle of front proxies; without it, what API servers of the cluster say of theirs."),
        Flag::string_slice("requestheader-extra-headers-prefix", "x-remote-extra-")
            .help("Prefixes of headers with further facts about the user."),
        Flag::string_slice("requestheader-group-headers", "x-remote-group").help("Headers with the user's groups."),
        Flag::string_slice("requestheader-uid-headers", "").help("Headers with the user's uid."),
        Flag::string_slice("requestheader-username-headers", "x-remote-user").help("Headers with the user's name."),
    ]
}

/// Which controllers run, and how.
pub const GENERIC: FlagSet = FlagSet {
    title: "generic",
    flags: &[
        Flag::duration("controller-start-interval", "0s").help("Interval between the starts of two controllers."),
        Flag::string_slice("controllers", "*")
            .help("The controllers to run: '*' stands for all that are on by default, 'foo' turns one on, '-foo' off."),
        FEATURE_GATES,
        Flag::duration("min-resync-period", "12h0m0s")
            .help("The resync period of the informers is random between this and twice this."),
        Flag::bool("profiling", "true").help("Serve /debug/flags/v, which changes the log's verbosity."),
    ],
};

/// The leader election flags, with the name of the component's Lease.
#[must_use]
pub const fn leader_election_flags(lease: &'static str) -> [Flag; 7] {
    [
        Flag::bool("leader-elect", "true").help("Work only while this instance is the elected leader."),
        Flag::duration("leader-elect-lease-duration", "15s")
            .help("For how long candidates respect a leader that does not renew."),
        Flag::duration("leader-elect-renew-deadline", "10s")
            .help("How long the leader tries to renew before it stops leading."),
        Flag::string("leader-elect-resource-lock", "leases")
            .help("The kind of the lock. Only \"leases\" is supported."),
        Flag::string("leader-elect-resource-name", lease).help("The name of the lock."),
        Flag::string("leader-elect-resource-namespace", "kube-system").help("The namespace of the lock."),
        Flag::duration("leader-elect-retry-period", "2s").help("How long to wait between two tries."),
    ]
}
