//! What `/configz` shows of a controller manager. There is no file of this kind: each field is the value of a flag, or what
//! upstream's is where nothing here can set it.

use api_machinery::value::{Value, ValueMap};
use component_base::flags::{Options, Value as FlagValue, format_duration};

/// Where the value of a field comes from.
#[derive(Clone, Copy)]
pub enum Source {
    /// The flag of this name.
    Flag(&'static str),
    /// One item of the flag of this name, which is a list with commas; empty where there are fewer.
    Item(&'static str, usize),
    /// Always the same.
    Fixed(fn() -> Value),
}

/// A field, by its path with slashes, and its value.
pub type Row = (&'static str, Source);

use Source::{Fixed, Flag};

/// The fields that all controller managers have.
pub const GENERIC_CONFIG: &[Row] = &[
    ("Generic/Port", Fixed(|| 0.into())),
    ("Generic/Address", Fixed(|| "0.0.0.0".into())),
    ("Generic/MinResyncPeriod", Flag("min-resync-period")),
    ("Generic/ClientConnection/kubeconfig", Flag("kubeconfig")),
    ("Generic/ClientConnection/acceptContentTypes", Fixed(|| "".into())),
    ("Generic/ClientConnection/contentType", Flag("kube-api-content-type")),
    ("Generic/ClientConnection/qps", Flag("kube-api-qps")),
    ("Generic/ClientConnection/burst", Flag("kube-api-burst")),
    ("Generic/ControllerStartInterval", Flag("controller-start-interval")),
    ("Generic/LeaderElection/leaderElect", Flag("leader-elect")),
    ("Generic/LeaderElection/leaseDuration", Flag("leader-elect-lease-duration")),
    ("Generic/LeaderElection/renewDeadline", Flag("leader-elect-renew-deadline")),
    ("Generic/LeaderElection/retryPeriod", Flag("leader-elect-retry-period")),
    ("Generic/LeaderElection/resourceLock", Flag("leader-elect-resource-lock")),
    ("Generic/LeaderElection/resourceName", Flag("leader-elect-resource-name")),
    ("Generic/LeaderElection/resourceNamespace", Flag("leader-elect-resource-namespace")),
    ("Generic/Controllers", Flag("controllers")),
    ("Generic/Debugging/enableProfiling", Flag("profiling")),
    ("Generic/Debugging/enableContentionProfiling", Flag("contention-profiling")),
    ("Generic/LeaderMigrationEnabled", Flag("enable-leader-migration")),
    ("Generic/LeaderMigration/leaderName", Fixed(|| "".into())),
    ("Generic/LeaderMigration/resourceLock", Fixed(|| "".into())),
    ("Generic/LeaderMigration/controllerLeaders", Fixed(|| Value::Null)),
    ("KubeCloudShared/CloudProvider/Name", Flag("cloud-provider")),
    ("KubeCloudShared/CloudProvider/CloudConfigFile", Flag("cloud-config")),
    ("KubeCloudShared/ExternalCloudVolumePlugin", Flag("external-cloud-volume-plugin")),
    ("KubeCloudShared/UseServiceAccountCredentials", Flag("use-service-account-credentials")),
    ("KubeCloudShared/AllowUntaggedCloud", Flag("allow-untagged-cloud")),
    ("KubeCloudShared/RouteReconciliationPeriod", Flag("route-reconciliation-period")),
    ("KubeCloudShared/NodeMonitorPeriod", Flag("node-monitor-period")),
    ("KubeCloudShared/ClusterName", Flag("cluster-name")),
    ("KubeCloudShared/ClusterCIDR", Flag("cluster-cidr")),
    ("KubeCloudShared/AllocateNodeCIDRs", Flag("allocate-node-cidrs")),
    ("KubeCloudShared/CIDRAllocatorType", Flag("cidr-allocator-type")),
    ("KubeCloudShared/ConfigureCloudRoutes", Flag("configure-cloud-routes")),
    ("KubeCloudShared/NodeSyncPeriod", Flag("node-sync-period")),
    ("ServiceController/ConcurrentServiceSyncs", Flag("concurrent-service-syncs")),
];

/// The document: under the name of the group, the configuration of a kind in its version `v1alpha1`.
#[must_use]
pub fn config_shown(options: &Options, group: &str, kind: &str, rows: &[&[Row]]) -> Value {
    let mut config = ValueMap::new();
    config.insert("apiVersion".into(), format!("{group}/v1alpha1").into());
    config.insert("kind".into(), kind.into());
    for (path, source) in rows.iter().copied().flatten() {
        put(&mut config, path, value(options, *source));
    }
    let mut document = ValueMap::new();
    document.insert(group.into(), config.into());
    document.into()
}

fn put(config: &mut ValueMap<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('/') else {
        config.insert(path.to_owned(), value);
        return;
    };
    let part = config.entry(first).or_insert_with(|| ValueMap::new().into());
    if let Value::Object(part) = part {
        put(part, rest, value);
    }
}

fn value(options: &Options, source: Source) -> Value {
    match source {
        Source::Fixed(value) => value(),
        Source::Item(name, place) => options.string(name).split(',').nth(place).unwrap_or_default().into(),
        Source::Flag(name) => match options.iter().find(|(flag, _)| flag.name == name) {
            Some((_, value)) => json(value),
            None => Value::Null,
        },
    }
}

/// The value of a flag as its field has it; a list without items is null, as Go's is.
fn json(value: &FlagValue) -> Value {
    match value {
        FlagValue::Bool(value) => (*value).into(),
        FlagValue::Text(value) => value.as_str().into(),
        FlagValue::Int(value) => (*value).into(),
        FlagValue::Uint(value) => (*value).into(),
        FlagValue::Float(value) if value.fract() == 0.0 && value.abs() < 1e9 => {
            #[expect(clippy::cast_possible_truncation, reason = "it is a whole number, and not a large one")]
            let whole = *value as i64;
            whole.into()
        }
        FlagValue::Float(value) => (*value).into(),
        FlagValue::Duration(nanoseconds) => format_duration(*nanoseconds).into(),
        FlagValue::List(items) if items.is_empty() => Value::Null,
        FlagValue::List(items) => items.iter().map(String::as_str).collect(),
        FlagValue::Ints(items) => items.iter().copied().collect(),
        FlagValue::Ip(address) => address.map_or_else(String::new, |address| address.to_string()).into(),
        FlagValue::Pairs(pairs) => pairs
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect::<ValueMap<_, _>>()
            .into(),
    }
}
