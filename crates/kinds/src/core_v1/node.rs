//! Node of core/v1: its names, and its rules.

use super::node_validation;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::value::Value;
use api_types::core_v1::{Node, NodeSpec, NodeSystemInfo};

use crate::address_warnings;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::pod_spec::defaults::round_up;
use crate::table::{self, Cell};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["no"],
    storage: Some(StorageInfo::of::<Node>("minions", "XwShjMxG9Fs=")),
    unconditional_update: true,
    field_selectors: &["spec.unschedulable"],
    subresources: &[
        SubresourceInfo {
            name: "proxy",
            kind: "NodeProxyOptions",
            group: "",
            version: "",
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        SubresourceInfo::status("Node"),
    ],
    ..ResourceInfo::of::<Node>()
};

/// The rules of the kind.
pub(crate) struct NodeRules;

impl TypedRules for NodeRules {
    type Object = Node;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Node>] = &[
        Cell::NAME,
        Cell::text("Status", |object, _| state(object).into()),
        Cell::text("Roles", |object, _| roles(object).into()),
        Cell::AGE,
        Cell::text("Version", |object, _| object.status.node_info.kubelet_version.clone().into()),
        Cell::wide("Internal-IP", |object, _| address(object, "InternalIP")),
        Cell::wide("External-IP", |object, _| address(object, "ExternalIP")),
        Cell::wide("OS-Image", |object, _| or_unknown(&object.status.node_info.os_image)),
        Cell::wide("Kernel-Version", |object, _| kernel(&object.status.node_info).into()),
        Cell::wide("Container-Runtime", |object, _| or_unknown(&object.status.node_info.container_runtime_version)),
    ];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut Node) {
        round_up([&mut object.status.capacity, &mut object.status.allocatable]);
        sync_ranges(&mut object.spec);
        if object.status.allocatable.is_empty() {
            object.status.allocatable.clone_from(&object.status.capacity);
        }
    }

    fn prepare_update(_: &RuleContext, endpoint: Endpoint, object: &mut Node, old: &Node) {
        // Unlike other kinds, a node may bring its status when it is created.
        match endpoint {
            Endpoint::Main => object.status = old.status.clone(),
            Endpoint::Status => object.spec = old.spec.clone(),
            Endpoint::Other(_) => {}
        }
        if old.spec.config_source.is_none() {
            object.spec.config_source = None;
        }
        if old.status.config.is_none() {
            object.status.config = None;
        }
    }

    fn prepare_create(_: &RuleContext, object: &mut Node) {
        object.spec.config_source = None;
        object.status.config = None;
    }

    fn validate(cx: &RuleContext, object: &Node) -> ErrorList {
        node_validation::validate(object, &cx.gates)
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &Node, old: &Node) -> ErrorList {
        node_validation::validate_update(endpoint, object, old, &cx.gates)
    }

    fn warnings(object: &Node, _: Option<&Node>) -> Vec<String> {
        let mut texts = Vec::new();
        if object.spec.config_source.is_some() {
            texts.push("spec.configSource: the feature is removed".to_owned());
        }
        if !object.spec.external_id.is_empty() {
            texts.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
        }
        texts.extend(address_warnings::of_cidrs(&Path::new("spec").child("podCIDRs"), &object.spec.pod_cidrs));
        texts
    }

    fn field(object: &Node, path: &str) -> Option<String> {
        Some(match path {
            "spec.unschedulable" => object.spec.unschedulable.to_string(),
            _ => return None,
        })
    }
}

fn address(node: &Node, type_: &str) -> Value {
    component_helpers::nodes::address(node, type_).unwrap_or("<none>").into()
}

fn or_unknown(text: &str) -> Value {
    table::or_else(text, "<unknown>").into()
}

fn kernel(info: &NodeSystemInfo) -> String {
    match (info.kernel_version.as_str(), info.architecture.as_str()) {
        ("", _) => "<unknown>".to_owned(),
        (version, "") => version.to_owned(),
        (version, architecture) => format!("{version} ({architecture})"),
    }
}

/// The first of the ranges is also the only one of older clients, whose word goes first.
fn sync_ranges(spec: &mut NodeSpec) {
    let first = spec.pod_cidrs.first().cloned().unwrap_or_default();
    if spec.pod_cidr.is_empty() {
        spec.pod_cidr = first;
    } else if spec.pod_cidr != first {
        spec.pod_cidrs = vec![spec.pod_cidr.clone()];
    }
}

fn state(node: &Node) -> String {
    let ready = component_helpers::conditions::find(&node.status.conditions, "Ready");
    let state = match ready.map(|ready| ready.status.as_str()) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    format!("{state}{}", if node.spec.unschedulable { ",SchedulingDisabled" } else { "" })
}

fn roles(node: &Node) -> String {
    let labels = &node.metadata.labels;
    let suffixes = labels.keys().filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"));
    let legacy = labels.get("kubernetes.io/role").map(String::as_str);
    let roles: std::collections::BTreeSet<&str> = suffixes.chain(legacy).filter(|role| !role.is_empty()).collect();
    table::or_none(table::joined(roles, ","))
}
