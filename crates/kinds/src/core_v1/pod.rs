//! Pod of core/v1: its names, and its rules.

use api_types::core_v1::Pod;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Pod",
    resource: "pods",
    singular: "pod",
    short_names: &["po"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "pods", group: "", version: "v1", hash: "xPOwRZ+Yhw8=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[
        "spec.host",
        "spec.hostNetwork",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.nominatedNodeName",
        "status.phase",
        "status.podIP",
        "status.podIPs",
    ],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Ready", type_: "string", format: "", priority: 0 },
        Column { name: "Status", type_: "string", format: "", priority: 0 },
        Column { name: "Restarts", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "IP", type_: "string", format: "", priority: 1 },
        Column { name: "Node", type_: "string", format: "", priority: 1 },
        Column { name: "Nominated Node", type_: "string", format: "", priority: 1 },
        Column { name: "Readiness Gates", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[
        SubresourceInfo { name: "attach", kind: "PodAttachOptions", group: "", version: "", verbs: &["create", "get"] },
        SubresourceInfo { name: "binding", kind: "Binding", group: "", version: "", verbs: &["create"] },
        SubresourceInfo {
            name: "ephemeralcontainers",
            kind: "Pod",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
        SubresourceInfo { name: "eviction", kind: "Eviction", group: "policy", version: "v1", verbs: &["create"] },
        SubresourceInfo { name: "exec", kind: "PodExecOptions", group: "", version: "", verbs: &["create", "get"] },
        SubresourceInfo { name: "log", kind: "Pod", group: "", version: "", verbs: &["get"] },
        SubresourceInfo {
            name: "portforward",
            kind: "PodPortForwardOptions",
            group: "",
            version: "",
            verbs: &["create", "get"],
        },
        SubresourceInfo {
            name: "proxy",
            kind: "PodProxyOptions",
            group: "",
            version: "",
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        SubresourceInfo { name: "resize", kind: "Pod", group: "", version: "", verbs: &["get", "patch", "update"] },
        SubresourceInfo { name: "status", kind: "Pod", group: "", version: "", verbs: &["get", "patch", "update"] },
    ],
};

/// The rules of the kind.
pub(crate) struct PodRules;

impl TypedRules for PodRules {
    type Object = Pod;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
