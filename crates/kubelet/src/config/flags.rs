//! The kubelet's flags: its own, those that stand for fields of the configuration file, and those that only old command
//! lines have.

use component_base::flags::{FEATURE_GATES, Flag, FlagSet};

const USE_CONFIG_FILE: &str = "This parameter should be set via the config file specified by the kubelet's --config flag. \
                               See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more \
                               information.";
const WILL_BE_REMOVED: &str = "will be removed in a future version";

/// Flags that are no fields of the configuration file.
pub(crate) const OWN: FlagSet = FlagSet {
    title: "kubelet",
    flags: &[
        Flag::string("bootstrap-kubeconfig", "").help("Kubeconfig for TLS bootstrap."),
        Flag::string("cert-dir", "/var/lib/kubelet/pki").help("Where self-signed certs are kept."),
        Flag::string("cloud-provider", "").help("Provider name or external."),
        Flag::string("config", "").help("Component config file path."),
        Flag::string("config-dir", "").help("Drop-in config directory."),
        Flag::bool("exit-on-lock-contention", "false").help("Quit when lock file taken."),
        Flag::bool("fail-cgroupv1", "true").help("Refuse to start on cgroup v1."),
        Flag::string("hostname-override", "").help("Node name to use."),
        Flag::duration("housekeeping-interval", "10s").help("CAdvisor container interval."),
        Flag::string("image-credential-provider-bin-dir", "").help("Credential plugin directory."),
        Flag::string("image-credential-provider-config", "").help("CredentialProviderConfig path."),
        Flag::string("kubeconfig", "").help("API server kubeconfig."),
        Flag::string("lock-file", "").help("[Alpha] Single-instance lock path."),
        Flag::duration("max-housekeeping-interval", "15s").help("CAdvisor longest interval."),
        Flag::string("node-ip", "").help("Node IP(s)."),
        Flag::map("node-labels", "").help("Labels set at registration."),
        Flag::string("provider-id", "").help("Cloud id of node."),
        Flag::string("root-dir", "/var/lib/kubelet").help("Kubelet state directory."),
        Flag::string("runtime-cgroups", "").help("Cgroup of runtime."),
        Flag::bool("seccomp-default", "false").help("RuntimeDefault seccomp by default."),
    ],
};

/// Flags that stand for fields of the configuration file.
pub(crate) const FIELDS: FlagSet = FlagSet {
    title: "kubelet",
    flags: &[
        FEATURE_GATES,
        Flag::ip("address", "0.0.0.0").help("Kubelet listen IP.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string_slice("allowed-unsafe-sysctls", "").help("Unsafe sysctl allow-list.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("anonymous-auth", "true").help("Accept unauthenticated requests as anonymous.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("authentication-token-webhook", "false").help("Use TokenReview for bearer tokens.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("authentication-token-webhook-cache-ttl", "2m0s").help("Cache lifetime of token reviews.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("authorization-mode", "AlwaysAllow").help("Ordered authorizer list (kubelet: one mode). Possible values: AlwaysAllow, Webhook.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("authorization-webhook-cache-authorized-ttl", "5m0s").help("Cache lifetime of allow answers.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("authorization-webhook-cache-unauthorized-ttl", "30s").help("Cache lifetime of deny answers.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("cgroup-driver", "cgroupfs").help("Cgroup manager. Possible values: cgroupfs, systemd.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("cgroup-root", "").help("Parent cgroup of pods.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("cgroups-per-qos", "true").help("Build QoS cgroup tree.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("client-ca-file", "").help("CA bundle for client certificates.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string_slice("cluster-dns", "").help("DNS server IPs for pods.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("cluster-domain", "").help("Pod search domain.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("container-log-max-files", "5").help("[Beta] Log files per container.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("container-log-max-size", "10Mi").help("[Beta] Rotate container log at.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("container-runtime-endpoint", "unix:///run/containerd/containerd.sock").help("CRI runtime socket.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("contention-profiling", "false").help("Block profiling with profiling on.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("cpu-cfs-quota", "true").help("Enforce CPU limits by CFS.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("cpu-cfs-quota-period", "100ms").help("CFS period.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("cpu-manager-policy", "none").help("CPU manager policy. Possible values: none, static.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map("cpu-manager-policy-options", "").help("CPU manager policy options.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("cpu-manager-reconcile-period", "10s").help("[Alpha] CPU manager reconcile interval.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("enable-controller-attach-detach", "true").help("Attach/detach done by controller.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("enable-debugging-handlers", "true").help("Serve exec, logs and such.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string_slice("enforce-node-allocatable", "pods").help("Levels of allocatable enforcement. Possible values: none, pods, system-reserved, system-reserved-compressible, kube-reserved, kube-reserved-compressible.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("event-burst", "100").help("Event burst.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("event-qps", "50").help("Event rate.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map_with("eviction-hard", '<', "").help("Hard eviction thresholds.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("eviction-max-pod-grace-period", "0").help("Grace cap on soft eviction.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map("eviction-minimum-reclaim", "").help("Amount to reclaim on eviction.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("eviction-pressure-transition-period", "5m0s").help("Wait before leaving pressure.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map_with("eviction-soft", '<', "").help("Soft eviction thresholds.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map("eviction-soft-grace-period", "").help("Soft threshold hold times.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("fail-swap-on", "true").help("Refuse to start with swap.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("file-check-frequency", "20s").help("Static pod rescan interval.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("hairpin-mode", "promiscuous-bridge").help("Hairpin NAT mode. Possible values: promiscuous-bridge, hairpin-veth, none.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::ip("healthz-bind-address", "127.0.0.1").help("Health listen address.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("healthz-port", "10248").help("Health port.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("http-check-frequency", "20s").help("Manifest URL poll interval.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("image-gc-high-threshold", "85").help("Disk percent that starts image GC.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("image-gc-low-threshold", "80").help("Disk percent image GC aims at.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("image-service-endpoint", "").help("CRI image socket.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("kernel-memcg-notification", "false").help("Kernel memcg threshold events.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("kube-api-burst", "100").help("Client burst.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("kube-api-content-type", "application/vnd.kubernetes.protobuf").help("Client request encoding.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("kube-api-qps", "50").help("Client QPS.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map("kube-reserved", "").help("Resources held for Kubernetes daemons.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("kube-reserved-cgroup", "").help("Cgroup of Kubernetes daemons.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("kubelet-cgroups", "").help("Cgroup kubelet moves into.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("local-storage-capacity-isolation", "true").help("Track ephemeral storage.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("make-iptables-util-chains", "true").help("Keep iptables helper chains.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("manifest-url", "").help("URL of static pods. The server of an https URL is verified against the system's roots; a private CA is added to them, or named by SSL_CERT_FILE or SSL_CERT_DIR.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string_array("manifest-url-header", "").help("Headers for manifest URL.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int("max-open-files", "1000000").help("Kubelet file limit.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("max-pods", "110").help("Pods allowed on node.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("memory-manager-policy", "None").help("Memory manager policy. Possible values: None, Static.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("minimum-image-ttl-duration", "2m0s").help("Unused image age before GC.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("node-status-max-images", "50").help("Images listed in status.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("node-status-update-frequency", "10s").help("Node status refresh interval.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("oom-score-adj", "-999").help("Own OOM score adjustment.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("pod-cidr", "").help("Pod CIDR, standalone only.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("pod-manifest-path", "").help("Static pod directory.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int("pod-max-pids", "-1").help("Process cap per pod.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("pods-per-core", "0").help("Pod cap per core.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("port", "10250").help("Kubelet HTTPS port.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("protect-kernel-defaults", "false").help("Fail on differing kernel tunables.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map("qos-reserved", "").help("[Alpha] Share reserved per QoS.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("read-only-port", "10255").help("Unauthenticated port, 0 off.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("register-node", "true").help("Register Node object.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string_slice("register-with-taints", "").help("Taints set at registration.").value_name("[]v1.Taint").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("registry-burst", "10").help("Image pull burst.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::int32("registry-qps", "5").help("Image pull rate.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("reserved-cpus", "").help("CPUs kept from pods.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string_array("reserved-memory", "").help("Memory kept per NUMA node.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("resolv-conf", "/etc/resolv.conf").help("Resolver file for pods.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("rotate-certificates", "false").help("Renew client certificate.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("rotate-server-certificates", "false").help("Request serving certificate.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("runonce", "false").help("Run static pods then exit.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("runtime-request-timeout", "2m0s").help("CRI call limit.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::bool("serialize-image-pulls", "true").help("One pull at a time.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("streaming-connection-idle-timeout", "4h0m0s").help("Idle exec/attach cut-off.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("sync-frequency", "1m0s").help("Pod resync interval.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("system-cgroups", "").help("Cgroup for stray processes.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map("system-reserved", "").help("Resources held for system.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("system-reserved-cgroup", "").help("Cgroup of system daemons.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("tls-cert-file", "").help("Serving certificate.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string_slice("tls-cipher-suites", "").help("Allowed cipher suite names.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("tls-min-version", "").help("Lowest TLS version. Possible values: VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("tls-private-key-file", "").help("Serving key.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("topology-manager-policy", "none").help("NUMA alignment policy. Possible values: none, best-effort, restricted, single-numa-node.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::map("topology-manager-policy-options", "").help("NUMA policy options.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("topology-manager-scope", "container").help("Alignment scope. Possible values: container, pod.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("volume-plugin-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/").help("FlexVolume directory.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::duration("volume-stats-agg-period", "1m0s").help("Volume usage interval.").deprecated(USE_CONFIG_FILE).shown(),
    ],
};

/// Flags of what an upstream kubelet had built in (cAdvisor); they are accepted at their defaults only.
pub(crate) const OLD: FlagSet = FlagSet {
    title: "kubelet",
    flags: &[
        Flag::int("application-metrics-count-limit", "100")
            .help("App metrics kept per container.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("boot-id-file", "/proc/sys/kernel/random/boot_id")
            .help("Files searched for boot id.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("container-hints", "/etc/cadvisor/container_hints.json")
            .help("CAdvisor hints file.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("containerd", "/run/containerd/containerd.sock")
            .help("Containerd socket for cAdvisor.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("containerd-namespace", "k8s.io")
            .help("Containerd namespace for cAdvisor.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::bool("enable-load-reader", "false").help("CAdvisor load reader.").deprecated(WILL_BE_REMOVED).shown(),
        Flag::bool("enable-server", "true").help("Run kubelet HTTP server.").deprecated(USE_CONFIG_FILE).shown(),
        Flag::string("event-storage-age-limit", "default=0")
            .help("CAdvisor event age cap.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("event-storage-event-limit", "default=0")
            .help("CAdvisor event count cap.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::bool("experimental-allocatable-ignore-eviction", "false")
            .help("Leave eviction out of allocatable.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("experimental-mounter-path", "")
            .help("[Experimental] Alternate mount binary.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::duration("global-housekeeping-interval", "1m0s")
            .help("CAdvisor global interval.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::bool("log-cadvisor-usage", "false").help("Log cAdvisor own usage.").deprecated(WILL_BE_REMOVED).shown(),
        Flag::string("machine-id-file", "/etc/machine-id,/var/lib/dbus/machine-id")
            .help("Files searched for machine id.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::int32("maximum-dead-containers", "-1")
            .help("Dead containers kept, total.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::int32("maximum-dead-containers-per-container", "1")
            .help("Dead instances kept each.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::duration("minimum-container-ttl-duration", "0s")
            .help("Dead container age before GC.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::duration("storage-driver-buffer-duration", "1m0s")
            .help("CAdvisor write buffer.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("storage-driver-db", "cadvisor").help("CAdvisor database.").deprecated(WILL_BE_REMOVED).shown(),
        Flag::string("storage-driver-host", "localhost:8086")
            .help("CAdvisor database host.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("storage-driver-password", "root")
            .help("CAdvisor database password.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::bool("storage-driver-secure", "false")
            .help("CAdvisor secure connection.")
            .deprecated(WILL_BE_REMOVED)
            .shown(),
        Flag::string("storage-driver-table", "stats").help("CAdvisor table.").deprecated(WILL_BE_REMOVED).shown(),
        Flag::string("storage-driver-user", "root").help("CAdvisor database user.").deprecated(WILL_BE_REMOVED).shown(),
    ],
};
