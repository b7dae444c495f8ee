//! Flags that stand for fields of the configuration file, written into the file's document.

use std::collections::BTreeMap;

use component_base::flags::{Options, Value as FlagValue, format_duration};
use serde_json::{Map, Value, json};

/// Flag, and the path of its field.
pub(super) const PATHS: &[(&str, &str)] = &[
    ("address", "address"),
    ("allowed-unsafe-sysctls", "allowedUnsafeSysctls"),
    ("anonymous-auth", "authentication.anonymous.enabled"),
    ("authentication-token-webhook", "authentication.webhook.enabled"),
    ("authentication-token-webhook-cache-ttl", "authentication.webhook.cacheTTL"),
    ("authorization-mode", "authorization.mode"),
    ("authorization-webhook-cache-authorized-ttl", "authorization.webhook.cacheAuthorizedTTL"),
    ("authorization-webhook-cache-unauthorized-ttl", "authorization.webhook.cacheUnauthorizedTTL"),
    ("cgroup-driver", "cgroupDriver"),
    ("cgroup-root", "cgroupRoot"),
    ("cgroups-per-qos", "cgroupsPerQOS"),
    ("client-ca-file", "authentication.x509.clientCAFile"),
    ("cluster-dns", "clusterDNS"),
    ("cluster-domain", "clusterDomain"),
    ("container-log-max-files", "containerLogMaxFiles"),
    ("container-log-max-size", "containerLogMaxSize"),
    ("container-runtime-endpoint", "containerRuntimeEndpoint"),
    ("contention-profiling", "enableContentionProfiling"),
    ("cpu-cfs-quota", "cpuCFSQuota"),
    ("cpu-cfs-quota-period", "cpuCFSQuotaPeriod"),
    ("cpu-manager-policy", "cpuManagerPolicy"),
    ("cpu-manager-policy-options", "cpuManagerPolicyOptions"),
    ("cpu-manager-reconcile-period", "cpuManagerReconcilePeriod"),
    ("enable-controller-attach-detach", "enableControllerAttachDetach"),
    ("enable-debugging-handlers", "enableDebuggingHandlers"),
    ("enable-server", "enableServer"),
    ("enforce-node-allocatable", "enforceNodeAllocatable"),
    ("event-burst", "eventBurst"),
    ("event-qps", "eventRecordQPS"),
    ("eviction-hard", "evictionHard"),
    ("eviction-max-pod-grace-period", "evictionMaxPodGracePeriod"),
    ("eviction-minimum-reclaim", "evictionMinimumReclaim"),
    ("eviction-pressure-transition-period", "evictionPressureTransitionPeriod"),
    ("eviction-soft", "evictionSoft"),
    ("eviction-soft-grace-period", "evictionSoftGracePeriod"),
    ("fail-cgroupv1", "failCgroupV1"),
    ("fail-swap-on", "failSwapOn"),
    ("file-check-frequency", "fileCheckFrequency"),
    ("hairpin-mode", "hairpinMode"),
    ("healthz-bind-address", "healthzBindAddress"),
    ("healthz-port", "healthzPort"),
    ("http-check-frequency", "httpCheckFrequency"),
    ("image-gc-high-threshold", "imageGCHighThresholdPercent"),
    ("image-gc-low-threshold", "imageGCLowThresholdPercent"),
    ("image-service-endpoint", "imageServiceEndpoint"),
    ("kernel-memcg-notification", "kernelMemcgNotification"),
    ("kube-api-burst", "kubeAPIBurst"),
    ("kube-api-content-type", "contentType"),
    ("kube-api-qps", "kubeAPIQPS"),
    ("kube-reserved", "kubeReserved"),
    ("kube-reserved-cgroup", "kubeReservedCgroup"),
    ("kubelet-cgroups", "kubeletCgroups"),
    ("local-storage-capacity-isolation", "localStorageCapacityIsolation"),
    ("make-iptables-util-chains", "makeIPTablesUtilChains"),
    ("manifest-url", "staticPodURL"),
    ("manifest-url-header", "staticPodURLHeader"),
    ("max-open-files", "maxOpenFiles"),
    ("max-pods", "maxPods"),
    ("memory-manager-policy", "memoryManagerPolicy"),
    ("minimum-image-ttl-duration", "imageMinimumGCAge"),
    ("node-status-max-images", "nodeStatusMaxImages"),
    ("node-status-update-frequency", "nodeStatusUpdateFrequency"),
    ("oom-score-adj", "oomScoreAdj"),
    ("pod-cidr", "podCIDR"),
    ("pod-manifest-path", "staticPodPath"),
    ("pod-max-pids", "podPidsLimit"),
    ("pods-per-core", "podsPerCore"),
    ("port", "port"),
    ("protect-kernel-defaults", "protectKernelDefaults"),
    ("provider-id", "providerID"),
    ("qos-reserved", "qosReserved"),
    ("read-only-port", "readOnlyPort"),
    ("register-node", "registerNode"),
    ("register-with-taints", "registerWithTaints"),
    ("registry-burst", "registryBurst"),
    ("registry-qps", "registryPullQPS"),
    ("reserved-cpus", "reservedSystemCPUs"),
    ("reserved-memory", "reservedMemory"),
    ("resolv-conf", "resolvConf"),
    ("rotate-certificates", "rotateCertificates"),
    ("rotate-server-certificates", "serverTLSBootstrap"),
    ("runonce", "runOnce"),
    ("runtime-request-timeout", "runtimeRequestTimeout"),
    ("seccomp-default", "seccompDefault"),
    ("serialize-image-pulls", "serializeImagePulls"),
    ("streaming-connection-idle-timeout", "streamingConnectionIdleTimeout"),
    ("sync-frequency", "syncFrequency"),
    ("system-cgroups", "systemCgroups"),
    ("system-reserved", "systemReserved"),
    ("system-reserved-cgroup", "systemReservedCgroup"),
    ("tls-cert-file", "tlsCertFile"),
    ("tls-cipher-suites", "tlsCipherSuites"),
    ("tls-min-version", "tlsMinVersion"),
    ("tls-private-key-file", "tlsPrivateKeyFile"),
    ("topology-manager-policy", "topologyManagerPolicy"),
    ("topology-manager-policy-options", "topologyManagerPolicyOptions"),
    ("topology-manager-scope", "topologyManagerScope"),
    ("volume-plugin-dir", "volumePluginDir"),
    ("volume-stats-agg-period", "volumeStatsAggPeriod"),
];

/// Why a flag cannot stand in the configuration, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FlagError {
    #[error("invalid taint spec: {0}")]
    Taint(String),
    #[error("invalid taint effect: {0}, unsupported taint effect")]
    TaintEffect(String),
    #[error("malformed pair, expect string:string")]
    Header,
    #[error("the format is incorrect, it should be <numa-node-id>:<memory-type>=<memory-size>: {0}")]
    ReservedMemory(String),
}

/// Writes the flags that the user gave into the document.
pub(super) fn apply(options: &Options, document: &mut Map<String, Value>) -> Result<(), FlagError> {
    let given: BTreeMap<&str, &FlagValue> = options.iter().map(|(flag, value)| (flag.name, value)).collect();
    for (flag, path) in PATHS.iter().filter(|(flag, _)| options.is_set(flag)) {
        let Some(value) = given.get(flag) else { continue };
        let value = match *flag {
            "register-with-taints" => taints(options.strings(flag))?,
            "manifest-url-header" => headers(options.strings(flag))?,
            "reserved-memory" => reserved_memory(options.strings(flag))?,
            _ => json_of(value),
        };
        put(document, path, value);
    }
    Ok(())
}

fn json_of(value: &FlagValue) -> Value {
    match value {
        FlagValue::Bool(value) => json!(value),
        FlagValue::Text(value) => json!(value),
        FlagValue::Int(value) => json!(value),
        FlagValue::Uint(value) => json!(value),
        FlagValue::Float(value) => json!(value),
        FlagValue::Duration(value) => json!(format_duration(*value)),
        FlagValue::List(values) => json!(values),
        FlagValue::Ints(values) => json!(values),
        FlagValue::Ip(value) => json!(value.map(|ip| ip.to_string()).unwrap_or_default()),
        FlagValue::Pairs(pairs) => {
            Value::Object(pairs.iter().map(|(key, value)| (key.clone(), json!(value))).collect())
        }
    }
}

/// Sets a member, making the objects on the way.
pub(super) fn put(document: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(document.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            let inner = document.entry(first).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Some(inner) = inner.as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// `key=value:effect` or `key:effect`.
fn taints(texts: &[String]) -> Result<Value, FlagError> {
    let parse = |text: &String| {
        let (name, effect) = text.rsplit_once(':').ok_or_else(|| FlagError::Taint(text.clone()))?;
        let (key, value) = name.split_once('=').unwrap_or((name, ""));
        if !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            return Err(FlagError::TaintEffect(effect.to_owned()));
        }
        Ok(json!({"key": key, "value": value, "effect": effect}))
    };
    texts.iter().map(parse).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// `node:kind=amount,kind=amount`, several of them with semicolons between.
fn reserved_memory(texts: &[String]) -> Result<Value, FlagError> {
    let parse = |text: &str| {
        let wrong = || FlagError::ReservedMemory(text.to_owned());
        let (node, limits) = text.split_once(':').ok_or_else(wrong)?;
        let node = node.trim().parse::<u32>().map_err(|_| wrong())?;
        let pair = |text: &str| {
            let (kind, amount) = text.split_once('=').ok_or_else(wrong)?;
            Ok((kind.trim().to_owned(), json!(amount.trim())))
        };
        let limits = limits.split(',').map(pair).collect::<Result<Map<_, _>, FlagError>>()?;
        Ok(json!({"numaNode": node, "limits": limits}))
    };
    let all = texts.iter().flat_map(|text| text.split(';')).map(str::trim).filter(|text| !text.is_empty());
    all.map(parse).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// `name:value`, comma separated; a name may be there several times.
fn headers(texts: &[String]) -> Result<Value, FlagError> {
    let mut headers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pair in texts.iter().flat_map(|text| text.split(',')).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once(':').ok_or(FlagError::Header)?;
        headers.entry(name.trim()).or_default().push(value.trim());
    }
    Ok(json!(headers))
}
