//! The table of flags, by upstream's sections.

use component_base::flags::{FEATURE_GATES, Flag, FlagSet, GLOBAL, LOGS, METRICS, VERSIONS};
use component_base::serving::secure_serving_flags;

use super::{audit, authorization, oidc, tracing};

/// All flags.
pub(super) const ALL: &[FlagSet] = &[
    GENERIC,
    VERSIONS,
    ETCD,
    SECURE_SERVING,
    audit::FLAGS,
    FEATURES,
    AUTHENTICATION,
    oidc::FLAGS,
    authorization::FLAGS,
    API_ENABLEMENT,
    EGRESS,
    ADMISSION,
    METRICS,
    LOGS,
    tracing::FLAGS,
    MISC,
    GLOBAL,
];

const EGRESS: FlagSet = FlagSet {
    title: "egress selector",
    flags: &[Flag::string("egress-selector-config-file", "")
        .help("File that says through which proxies the server connects to what: an EgressSelectorConfiguration.")],
};

const GENERIC: FlagSet = FlagSet {
    title: "generic",
    flags: &[
        Flag::ip("advertise-address", "").help(
            "The IP address on which to advertise the apiserver to members of the cluster. It must be reachable by the \
             rest of the cluster. If blank, --bind-address is used; if that is unspecified, the host's default \
             interface.",
        ),
        Flag::string_slice("cors-allowed-origins", "").help(
            "List of allowed origins for CORS, comma separated. Each is a regular expression that must pin the start \
             (^ or //) and the end ($ or :) of the host. If empty, CORS is not enabled.",
        ),
        Flag::bool("emulation-forward-compatible", "false").help(
            "With --emulated-version: the more stable versions of what is served, alpha aside, are served though they came \
             after the emulated release.",
        ),
        Flag::bool("runtime-config-emulation-forward-compatible", "false").help(
            "With --emulated-version: what --runtime-config asks for by its name is served though it came after the \
             emulated release.",
        ),
        Flag::string("external-hostname", "")
            .help("The hostname to use when generating externalized URLs for this master."),
        FEATURE_GATES,
        Flag::float("goaway-chance", "0").help(
            "To prevent HTTP/2 clients from getting stuck on a single apiserver, close their connections at random \
             with this probability, at most 0.02.",
        ),
        Flag::duration("livez-grace-period", "0s").help(
            "The longest that the server may take to start. Until it is over, /livez counts unfinished start-up work as \
             done.",
        ),
        Flag::int("max-unauthenticated-connections-per-address", "1000").help(
            "How many connections one address (of IPv6, one /64 network) may have open before a client has \
             authenticated on them; more are closed at once. Zero for no limit.",
        ),
        Flag::int("max-mutating-requests-inflight", "200")
            .help("How many requests that change something run at a time; more are rejected. Zero for no limit."),
        Flag::int("max-requests-inflight", "400")
            .help("How many requests that change nothing run at a time; more are rejected. Zero for no limit."),
        Flag::int("min-request-timeout", "1800").help(
            "The minimum number of seconds that a watch is kept open; each gets a random time between this and twice \
             as much.",
        ),
        Flag::duration("request-timeout", "1m0s").help(
            "How long a request may take before it is timed out. Watches are bounded by --min-request-timeout instead.",
        ),
        Flag::duration("shutdown-delay-duration", "0s").help(
            "Time to delay the termination. Until it is over the server keeps serving normally, but /readyz fails.",
        ),
        Flag::bool("shutdown-send-retry-after", "false").help(
            "If true the server keeps listening until all requests in flight are drained, and answers new ones with 429 \
             and Retry-After.",
        ),
        Flag::duration("shutdown-watch-termination-grace-period", "0s")
            .help("How long watches may go on after the server has begun to end."),
        Flag::duration("storage-initialization-timeout", "1m0s")
            .help("The longest to wait for the caches to fill before declaring the server ready."),
        Flag::string_slice("strict-transport-security-directives", "").help(
            "Directives for the HSTS header, comma separated. Allowed: max-age=expireTime, includeSubDomains, preload.",
        ),
    ],
};

const ETCD: FlagSet = FlagSet {
    title: "etcd",
    flags: &[
        Flag::string("embedded-storage-dir", "/var/lib/kube-apiserver").help(
            "The directory of the store within the process, which is used when there are no --etcd-servers. One process \
             at a time may use it.",
        ),
        Flag::int("delete-collection-workers", "1")
            .help("How many objects of a collection are deleted at a time, to speed up namespace cleanup."),
        Flag::bool("enable-garbage-collector", "true")
            .help("Whether the garbage collector runs. Must be in sync with kube-controller-manager's flag."),
        Flag::string("encryption-provider-config", "").help(
            "File that says which resources are encrypted in the store, and how: an EncryptionConfiguration. Without it \
             everything is stored as it is.",
        ),
        Flag::bool("encryption-provider-config-automatic-reload", "false").help(
            "Whether a change of the --encryption-provider-config file is taken while the server runs, once a minute.",
        ),
        Flag::string("etcd-cafile", "").help("SSL Certificate Authority file used to secure etcd communication."),
        Flag::string("etcd-certfile", "").help("SSL certification file used to secure etcd communication."),
        Flag::duration("etcd-compaction-interval", "5m0s")
            .help("The interval of compaction requests. If 0, the server requests none."),
        Flag::duration("etcd-healthcheck-timeout", "2s").help("The timeout to use when checking etcd health."),
        Flag::string("etcd-keyfile", "").help("SSL key file used to secure etcd communication."),
        Flag::string("etcd-prefix", "/registry").help("The prefix to prepend to all resource paths in etcd."),
        Flag::duration("etcd-readycheck-timeout", "2s").help("The timeout to use when checking etcd readiness."),
        Flag::string_slice("etcd-servers", "")
            .help("List of etcd servers to connect with (scheme://ip:port), comma separated."),
        Flag::string_slice("etcd-servers-overrides", "").help(
            "Per-group-resource etcd servers overrides, comma separated. The individual override format: \
             group/resource#servers, where servers are URLs, semicolon separated. Note that this applies only to resources \
             compiled into this server binary.",
        ),
        Flag::int("lease-reuse-duration-seconds", "60")
            .help("The time in seconds that each lease is reused. A lower value avoids many objects on one lease."),
        Flag::string("storage-backend", "").help("The storage backend for persistence. Options: 'etcd3' (default)."),
        Flag::string("storage-media-type", "application/vnd.kubernetes.protobuf").help(
            "The media type to use to store objects of built-in kinds: application/json or \
             application/vnd.kubernetes.protobuf.",
        ),
        Flag::int("default-watch-cache-size", "100")
            .help("Has no effect: caches find their size themselves.")
            .deprecated("watch caches are sized automatically and this flag will be removed in a future version"),
        Flag::duration("etcd-count-metric-poll-period", "1m0s").help(
            "How often the objects of each resource are counted in the store. 0 disables the metric collection.",
        ),
        Flag::duration("etcd-db-metric-poll-interval", "30s")
            .help("How often the size of the store is looked at. 0 disables the metric collection."),
        Flag::bool("watch-cache", "true")
            .help("Whether reads are answered out of caches. Kinds that admission looks at have one in either case."),
        Flag::string_slice("watch-cache-sizes", "").help(
            "Watch cache settings for some resources, comma separated, as resource[.group]#size. Size 0 turns the cache \
             off, except for kinds that admission looks at; any other is chosen by the server itself.",
        ),
    ],
};

const SECURE_SERVING: FlagSet =
    FlagSet { title: "secure serving", flags: &secure_serving_flags("6443", "/var/run/kubernetes") };

const AUTHENTICATION: FlagSet = FlagSet {
    title: "authentication",
    flags: &[
        Flag::bool("anonymous-auth", "true")
            .help("Lets requests without credentials in, as user system:anonymous in group system:unauthenticated."),
        Flag::string_slice("api-audiences", "").help(
            "Identifiers of the API. Service account tokens must be good for at least one of them. Defaults to the \
             issuers.",
        ),
        Flag::duration("authentication-token-webhook-cache-ttl", "2m0s")
            .help("How long the webhook's answers about tokens are remembered; 0 for not at all."),
        Flag::string("authentication-token-webhook-config-file", "").help(
            "File in kubeconfig format that says where the webhook for token authentication is. Tokens that nobody else \
             knows are put to it.",
        ),
        Flag::string("authentication-token-webhook-version", "v1beta1")
            .help("The version of authentication.k8s.io TokenReview that the webhook is asked with."),
        Flag::string("client-ca-file", "").help(
            "If set, any request presenting a client certificate signed by one of the authorities in the file is \
             authenticated with the identity of the CommonName of the client certificate.",
        ),
        Flag::bool("enable-bootstrap-token-auth", "false").help(
            "Allows secrets of type 'bootstrap.kubernetes.io/token' in the 'kube-system' namespace to be used for TLS \
             bootstrapping authentication.",
        ),
        Flag::string_slice("requestheader-allowed-names", "").help(
            "Client certificate common names that may provide usernames in headers. If empty, any client certificate \
             of --requestheader-client-ca-file will do.",
        ),
        Flag::string("requestheader-client-ca-file", "").help(
            "Root certificate bundle to verify client certificates with before usernames in headers are trusted. \
             WARNING: generally do not depend on authorization being already done for incoming requests.",
        ),
        Flag::string_slice("requestheader-extra-headers-prefix", "")
            .help("Prefixes of request headers with extra data of the user. X-Remote-Extra- is suggested."),
        Flag::string_slice("requestheader-group-headers", "")
            .help("Request headers with the user's groups. X-Remote-Group is suggested."),
        Flag::string_slice("requestheader-uid-headers", "")
            .help("Request headers with the user's uid. X-Remote-Uid is suggested."),
        Flag::string_slice("requestheader-username-headers", "")
            .help("Request headers with the user's name. X-Remote-User is common."),
        Flag::bool("service-account-extend-token-expiration", "true").help(
            "Turns on projected service account expiration extension: tokens of the usual lifetime live a year, with \
             a warning once the wished time is over.",
        ),
        Flag::string_array("service-account-issuer", "").help(
            "Identifier of the service account token issuer. May be given several times: the first signs, all are \
             accepted.",
        ),
        Flag::string("service-account-jwks-uri", "")
            .help("Overrides the URI of the JSON Web Key Set in the discovery document."),
        Flag::string_array("service-account-key-file", "").help(
            "File with PEM-encoded x509 RSA or ECDSA private or public keys, used to verify ServiceAccount tokens. May \
             be given several times.",
        ),
        Flag::bool("service-account-lookup", "true").help(
            "If true, tokens that live in Secrets are good only while their Secret and their account are there.",
        ),
        Flag::duration("service-account-max-token-expiration", "0s")
            .help("The maximum validity duration of a token created by the service account token issuer."),
        Flag::string("token-auth-file", "")
            .help("If set, the file that will be used to secure the secure port via token authentication."),
    ],
};

const ADMISSION: FlagSet = FlagSet {
    title: "admission",
    flags: &[
        Flag::int("default-not-ready-toleration-seconds", "300").help(
            "The tolerationSeconds of the toleration for notReady:NoExecute that is added by default to every pod that \
             does not already have such a toleration.",
        ),
        Flag::int("default-unreachable-toleration-seconds", "300").help(
            "The tolerationSeconds of the toleration for unreachable:NoExecute that is added by default to every pod \
             that does not already have such a toleration.",
        ),
        Flag::string("admission-control-config-file", "")
            .help("File with configuration of admission plugins: an AdmissionConfiguration. PodSecurity reads it."),
        Flag::string_slice("admission-control", "")
            .help(
                "Admission is divided into two phases. In the first phase, only mutating admission plugins run. In the \
                 second phase, only validating admission plugins run. These plugins run, and no others.",
            )
            .deprecated(
                "Use --enable-admission-plugins or --disable-admission-plugins instead. Will be removed in a future \
                 version.",
            ),
        Flag::string_slice("disable-admission-plugins", "")
            .help("Admission plugins that should be disabled although they are in the default enabled plugins list."),
        Flag::string_slice("enable-admission-plugins", "")
            .help("Admission plugins that should be enabled in addition to default enabled ones."),
    ],
};

const API_ENABLEMENT: FlagSet = FlagSet {
    title: "API enablement",
    flags: &[Flag::map_bare_keys("runtime-config", "").help(
        "Which versions and resources of the API are served, as key=value pairs: api/all, api/ga, api/beta, \
             api/alpha, group/version (v1 for core) or group/version/resource, each true or false.",
    )],
};

const MISC: FlagSet = FlagSet {
    title: "misc",
    flags: &[
        Flag::bool("aggregator-reject-forwarding-redirect", "true").help(
            "Whether redirects of extension API servers are kept from clients, which would follow them with their \
             credentials.",
        ),
        Flag::int("apiserver-count", "1")
            .help("The number of apiservers running in the cluster, must be a positive number.")
            .deprecated("apiserver-count is deprecated and will be removed in a future version."),
        Flag::duration("coordinated-leadership-lease-duration", "15s").help(
            "With the gate CoordinatedLeaderElection: for how long the server that decides about leaders is respected \
             without renewing.",
        ),
        Flag::duration("coordinated-leadership-renew-deadline", "10s")
            .help("How long that server tries to renew before it stops deciding."),
        Flag::duration("coordinated-leadership-retry-period", "2s").help("How often servers try to become the one."),
        Flag::bool("enable-aggregator-routing", "false").help(
            "Whether extension API servers are reached at the endpoints of their Service instead of its cluster IP.",
        ),
        Flag::bool("enable-logs-handler", "false")
            .help("If true, install a /logs handler for the apiserver logs.")
            .deprecated("This flag will be removed in v1.19"),
        Flag::string("endpoint-reconciler-type", "lease")
            .help("Use an endpoint reconciler (master-count, lease, none)."),
        Flag::duration("event-ttl", "1h0m0s").help("Amount of time to retain events."),
        Flag::uint("kubelet-read-only-port", "10255")
            .help("Has no effect.")
            .deprecated("kubelet-read-only-port is deprecated and will be removed."),
        Flag::int("max-connection-bytes-per-sec", "0").help(
            "If non-zero, each session with a container (exec, attach, port-forward) gets this many bytes a second in each \
             direction.",
        ),
        Flag::string("kubelet-certificate-authority", "").help("Path to a cert file for the certificate authority."),
        Flag::string("kubelet-client-certificate", "").help("Path to a client cert file for TLS."),
        Flag::string("kubelet-client-key", "").help("Path to a client key file for TLS."),
        Flag::uint("kubelet-port", "10250")
            .help("Kubelet port, for nodes that do not say.")
            .deprecated("kubelet-port is deprecated and will be removed."),
        Flag::string_slice("kubelet-preferred-address-types", "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP")
            .help("List of the preferred NodeAddressTypes to use for kubelet connections."),
        Flag::duration("kubelet-timeout", "5s").help("Timeout for kubelet operations."),
        Flag::int("kubernetes-service-node-port", "0")
            .help("If non-zero, the Kubernetes service will be of type NodePort, using this as the value of the port."),
        Flag::string("peer-advertise-ip", "").help(
            "The IP by which other API servers of the cluster reach this one; with --peer-advertise-port, else the \
             advertised address is used.",
        ),
        Flag::string("peer-advertise-port", "")
            .help("The port by which other API servers of the cluster reach this one; with --peer-advertise-ip."),
        Flag::string("peer-ca-file", "").help(
            "File with the authorities of other API servers of the cluster. With it, requests that only they can answer \
             are passed on to them.",
        ),
        Flag::string("proxy-client-cert-file", "")
            .help("Client certificate by which the identity of the aggregator is proved to extension API servers."),
        Flag::string("proxy-client-key-file", "")
            .help("Private key of the certificate by which the identity of the aggregator is proved."),
        Flag::string("service-account-signing-endpoint", "").help(
            "Socket of whoever signs the tokens of service accounts instead of this server: a path, or @ and an abstract \
             name. Not together with --service-account-signing-key-file and --service-account-key-file.",
        ),
        Flag::string("service-account-signing-key-file", "")
            .help("Path to the file that contains the current private key of the service account token issuer."),
        Flag::string("service-cluster-ip-range", "").help(
            "A CIDR notation IP range from which to assign service cluster IPs, or two of different families, comma \
             separated.",
        ),
        Flag::string("service-node-port-range", "30000-32767")
            .value_name("portRange")
            .help("A port range to reserve for services with NodePort visibility, both ends inclusive."),
        Flag::bool("allow-privileged", "false").help("If true, allow privileged containers."),
    ],
};

const FEATURES: FlagSet = FlagSet {
    title: "features",
    flags: &[
        Flag::bool("enable-priority-and-fairness", "true").help(
            "If true, replace the max-in-flight handler with an enhanced one that queues and dispatches with priority \
             and fairness.",
        ),
        Flag::bool("profiling", "true").help("Enable profiling via web interface, and resetting of metrics."),
        Flag::bool("contention-profiling", "false")
            .help("With --profiling: /debug/pprof/block and /debug/pprof/mutex tell where threads wait."),
        Flag::string("debug-socket-path", "")
            .help("A Unix socket on which the debug handlers are served, without any check, to whoever may open it."),
    ],
};
