//! Texts that scripts match: how Go prints durations, pods and lists.

use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::core_v1::Pod;

/// A duration as Go prints it: `10s`, `1m20s`, `5m0s`.
pub fn go_duration(duration: Duration) -> String {
    GoDuration::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)).to_string()
}

/// `name_namespace(uid)`.
pub fn pod(pod: &Pod) -> String {
    let meta = &pod.metadata;
    format!("{}_{}({})", meta.name, meta.namespace, meta.uid)
}

/// `name_namespace`, which pairs static pods with their mirrors.
pub fn full_name(pod: &Pod) -> String {
    format!("{}_{}", pod.metadata.name, pod.metadata.namespace)
}

/// A list in Go's brackets: `[a b]`.
pub fn list(items: &[String]) -> String {
    format!("[{}]", items.join(" "))
}
