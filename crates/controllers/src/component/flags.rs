//! The flags of kube-controller-manager, by concern. Flags of controllers that are not part of this build are known
//! by name, so that setting one is refused with the reason.

use component_base::flags::{Errors, Flag, FlagSet, GLOBAL, LOGS, METRICS, Options, VERSIONS};
use component_base::serving::secure_serving_flags;
use controller::process::{CLIENT, DELEGATION, GENERIC, leader_election_flags};

const SERVING: [Flag; 13] = secure_serving_flags("10257", "");
const LEADER: [Flag; 7] = leader_election_flags("kube-controller-manager");

/// All flags.
pub(super) const FLAGS: &[FlagSet] = &[
    GLOBAL,
    LOGS,
    METRICS,
    CLIENT,
    DELEGATION,
    FlagSet { title: "secure serving", flags: &SERVING },
    FlagSet { title: "leader election", flags: &LEADER },
    GENERIC,
    VERSIONS,
    MANAGER,
    CONTROLLERS,
    AUTOSCALING,
    NODES,
    CERTIFICATES,
    VOLUMES,
    WITHOUT_EFFECT,
    UNSUPPORTED,
];

const MANAGER: FlagSet = FlagSet {
    title: "manager",
    flags: &[
        Flag::duration("controller-shutdown-timeout", "10s")
            .help("How long to wait for the controllers at the end; zero waits without limit."),
        Flag::string("root-ca-file", "")
            .help("CA bundle for the ConfigMap kube-root-ca.crt of each namespace; by default the kubeconfig's."),
        Flag::string("service-account-private-key-file", "")
            .help("Private key (RSA or ECDSA) that signs the tokens in Secrets; without it they are not filled."),
        Flag::bool("use-service-account-credentials", "false")
            .help("If true, each controller uses a service account of its own in kube-system."),
    ],
};

const CONTROLLERS: FlagSet = FlagSet {
    title: "controllers",
    flags: &[
        Flag::int32("concurrent-cron-job-syncs", "5").help("How many cron jobs are synced at a time."),
        Flag::int32("concurrent-daemonset-syncs", "2").help("How many daemon sets are synced at a time."),
        Flag::int32("concurrent-deployment-syncs", "5").help("How many deployments are synced at a time."),
        Flag::int32("concurrent-device-taint-eviction-syncs", "8")
            .help("How many pods with tainted devices are looked at at a time."),
        Flag::int32("concurrent-endpoint-syncs", "5").help("How many endpoints are synced at a time."),
        Flag::int32("concurrent-gc-syncs", "20").help("How many objects are checked for owners at a time."),
        Flag::int32("concurrent-job-syncs", "5").help("How many jobs are synced at a time."),
        Flag::int32("concurrent-namespace-syncs", "10").help("How many namespaces are emptied at a time."),
        Flag::int32("concurrent-rc-syncs", "5").help("How many replication controllers are synced at a time."),
        Flag::int32("concurrent-replicaset-syncs", "5").help("How many replica sets are synced at a time."),
        Flag::int32("concurrent-resourceclaim-syncs", "50")
            .help("How many claims and their pods are synced at a time."),
        Flag::int32("concurrent-resource-quota-syncs", "5").help("How many quotas are counted at a time."),
        Flag::int32("concurrent-service-endpoint-syncs", "5")
            .help("How many services' endpoint slices are synced at a time (1 to 50)."),
        Flag::int32("concurrent-serviceaccount-token-syncs", "5").help("How many token Secrets are filled at a time."),
        Flag::int32("concurrent-statefulset-syncs", "5").help("How many stateful sets are synced at a time."),
        Flag::int32("concurrent-ttl-after-finished-syncs", "5").help("How many finished jobs are handled at a time."),
        Flag::int32("concurrent-validating-admission-policy-status-syncs", "5")
            .help("How many admission policies are checked at a time."),
        Flag::bool("enable-garbage-collector", "true")
            .help("Run the garbage collector; must agree with the API server's flag."),
        Flag::duration("endpoint-updates-batch-period", "0s").help("How long to gather pod changes for Endpoints."),
        Flag::duration("endpointslice-updates-batch-period", "0s").help("How long to gather pod changes for slices."),
        Flag::duration("legacy-service-account-token-clean-up-period", "8760h0m0s")
            .help("How long automatic token Secrets must have been unused before they are marked, and then deleted."),
        Flag::int32("max-endpoints-per-slice", "100").help("The most endpoints of one slice (1 to 1000)."),
        Flag::int32("mirroring-concurrent-service-endpoint-syncs", "5")
            .help("How many Endpoints are mirrored into slices at a time."),
        Flag::duration("mirroring-endpointslice-updates-batch-period", "0s")
            .help("How long to gather changes of mirrored slices."),
        Flag::int32("mirroring-max-endpoints-per-subset", "1000")
            .help("The most addresses of a subset of Endpoints that are mirrored."),
        Flag::duration("namespace-sync-period", "5m0s").help("How often all namespaces are looked at again."),
        Flag::duration("resource-quota-sync-period", "5m0s").help("How often all quotas are counted anew."),
        Flag::int32("terminated-pod-gc-threshold", "12500")
            .help("How many ended pods may stay before the oldest are deleted; 0 or less for any number."),
    ],
};

const AUTOSCALING: FlagSet = FlagSet {
    title: "horizontal pod autoscaling",
    flags: &[
        Flag::int32("concurrent-horizontal-pod-autoscaler-syncs", "5")
            .help("How many autoscalers are looked at at a time."),
        Flag::duration("horizontal-pod-autoscaler-cpu-initialization-period", "5m0s")
            .help("How long after its start the processor time of a pod may be skipped."),
        Flag::duration("horizontal-pod-autoscaler-downscale-stabilization", "5m0s")
            .help("How far back autoscalers look, so as not to go below what was recommended lately."),
        Flag::duration("horizontal-pod-autoscaler-initial-readiness-delay", "30s")
            .help("How long after its start a pod that gets unready counts as one that never was ready."),
        Flag::duration("horizontal-pod-autoscaler-sync-period", "15s").help("How often autoscalers are looked at."),
        Flag::float("horizontal-pod-autoscaler-tolerance", "0.1")
            .help("The smallest change of the ratio of what is used to what should be for which autoscalers scale."),
    ],
};

const NODES: FlagSet = FlagSet {
    title: "nodes",
    flags: &[
        Flag::bool("allocate-node-cidrs", "false").help("Give each node a range of pod addresses of --cluster-cidr."),
        Flag::string("cidr-allocator-type", "RangeAllocator")
            .help("How ranges are chosen. Only RangeAllocator is there."),
        Flag::string("cluster-cidr", "").help("The pod addresses of the cluster, at most one range of each family."),
        Flag::int32("large-cluster-size-threshold", "50")
            .help("From more nodes than this in a zone on, --secondary-node-eviction-rate is used, else zero."),
        Flag::int32("node-cidr-mask-size", "0").help("Mask size of a node's range; 24 for IPv4, 64 for IPv6."),
        Flag::int32("node-cidr-mask-size-ipv4", "0").help("Mask size of a node's IPv4 range, for dual stack."),
        Flag::int32("node-cidr-mask-size-ipv6", "0").help("Mask size of a node's IPv6 range, for dual stack."),
        Flag::float("node-eviction-rate", "0.1").help("Nodes per second whose pods are evicted in a healthy zone."),
        Flag::duration("node-monitor-grace-period", "50s")
            .help("How long a node may be silent before it counts as unhealthy."),
        Flag::duration("node-monitor-period", "5s").help("How often the nodes' health is looked at."),
        Flag::duration("node-startup-grace-period", "1m0s")
            .help("How long a starting node may be silent before it counts as unhealthy."),
        Flag::float("secondary-node-eviction-rate", "0.01")
            .help("Nodes per second whose pods are evicted in an unhealthy zone."),
        Flag::string("service-cluster-ip-range", "").help("The services' addresses, left out of the nodes' ranges."),
        Flag::float("unhealthy-zone-threshold", "0.55")
            .help("The share of nodes not ready (at least 3) from which a zone is unhealthy."),
    ],
};

const CERTIFICATES: FlagSet = FlagSet {
    title: "certificate signing",
    flags: &[
        Flag::string("cluster-signing-cert-file", "").help("CA certificate of all signers."),
        Flag::duration("cluster-signing-duration", "8760h0m0s").help("The longest life of a signed certificate."),
        Flag::string("cluster-signing-key-file", "").help("CA key of all signers."),
        Flag::string("cluster-signing-kube-apiserver-client-cert-file", "")
            .help("CA certificate of the signer kubernetes.io/kube-apiserver-client."),
        Flag::string("cluster-signing-kube-apiserver-client-key-file", "")
            .help("CA key of the signer kubernetes.io/kube-apiserver-client."),
        Flag::string("cluster-signing-kubelet-client-cert-file", "")
            .help("CA certificate of the signer kubernetes.io/kube-apiserver-client-kubelet."),
        Flag::string("cluster-signing-kubelet-client-key-file", "")
            .help("CA key of the signer kubernetes.io/kube-apiserver-client-kubelet."),
        Flag::string("cluster-signing-kubelet-serving-cert-file", "")
            .help("CA certificate of the signer kubernetes.io/kubelet-serving."),
        Flag::string("cluster-signing-kubelet-serving-key-file", "")
            .help("CA key of the signer kubernetes.io/kubelet-serving."),
        Flag::string("cluster-signing-legacy-unknown-cert-file", "")
            .help("CA certificate of the signer kubernetes.io/legacy-unknown."),
        Flag::string("cluster-signing-legacy-unknown-key-file", "")
            .help("CA key of the signer kubernetes.io/legacy-unknown."),
    ],
};

const VOLUMES: FlagSet = FlagSet {
    title: "volumes",
    flags: &[
        Flag::duration("attach-detach-reconcile-sync-period", "1m0s")
            .help("How often it is checked that attached volumes still are; at least 1s."),
        Flag::int32("concurrent-ephemeralvolume-syncs", "5")
            .help("How many pods get claims for ephemeral volumes at a time."),
        Flag::bool("disable-attach-detach-reconcile-sync", "false")
            .help("Do not check that attached volumes still are. Pods may then wait for volumes that are gone."),
        Flag::bool("disable-force-detach-on-timeout", "false")
            .help("Never take volumes from a node that is not healthy before it has unmounted them, but for a taint."),
        Flag::bool("enable-dynamic-provisioning", "true")
            .help("Have volumes made on demand by their classes' drivers."),
        Flag::duration("pvclaimbinder-sync-period", "15s")
            .help("How often all volumes and claims are looked at again."),
    ],
};

/// Without effect upstream too.
pub(super) const WITHOUT_EFFECT: FlagSet = FlagSet {
    title: "without effect",
    flags: &[
        Flag::bool("allow-untagged-cloud", "false").deprecated("This flag has no effect."),
        Flag::string("cloud-config", "").hidden(),
        Flag::string("cloud-provider", "").help("Empty or \"external\"."),
        Flag::string("cluster-name", "kubernetes").help("The name of the cluster; only clouds use it."),
        Flag::int32("concurrent-service-syncs", "1").hidden(),
        Flag::bool("configure-cloud-routes", "true").hidden(),
        Flag::string("external-cloud-volume-plugin", "").hidden(),
        Flag::duration("node-sync-period", "0s").deprecated("This flag has no effect."),
        Flag::duration("route-reconciliation-period", "10s").hidden(),
    ],
};

/// Of what is not part of this build, most of them of absent controllers.
const UNSUPPORTED: FlagSet = FlagSet {
    title: "unsupported",
    flags: &[
        Flag::bool("contention-profiling", "false").hidden(),
        Flag::bool("enable-hostpath-provisioner", "false").hidden(),
        Flag::string("flex-volume-plugin-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/").hidden(),
        Flag::int32("pv-recycler-increment-timeout-nfs", "30").hidden(),
        Flag::int32("pv-recycler-minimum-timeout-hostpath", "60").hidden(),
        Flag::int32("pv-recycler-minimum-timeout-nfs", "300").hidden(),
        Flag::string("pv-recycler-pod-template-filepath-hostpath", "").hidden(),
        Flag::string("pv-recycler-pod-template-filepath-nfs", "").hidden(),
        Flag::int32("pv-recycler-timeout-increment-hostpath", "30").hidden(),
        Flag::bool("enable-leader-migration", "false").hidden(),
        Flag::string("leader-migration-config", "").hidden(),
    ],
};

/// Refuses the flags that ask for what is not there.
pub(super) fn refuse_unsupported(options: &Options, errors: &mut Errors) {
    for flag in UNSUPPORTED.flags {
        errors.check(!options.is_set(flag.name), format!("--{}: not supported by this build", flag.name));
    }
    let provider = options.string("cloud-provider");
    errors.check(
        matches!(provider, "" | "external"),
        format!(
            "cloud provider {provider:?} was specified, but built-in cloud providers are disabled. Please set \
             --cloud-provider=external and migrate to an external cloud provider"
        ),
    );
}
