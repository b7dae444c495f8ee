//! Pod of core/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect;
use api_types::core_v1::Pod;

use super::{pod_create, pod_resize, pod_status, pod_update};
use crate::gated::Gated;
use crate::gates;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::{FieldIndex, Lifecycle};
use crate::pod_spec::{validation, warnings};
use crate::rules::TypedRules;
use crate::rules::{Endpoint, Grace, MetadataCheck, RuleContext};
use crate::strategy::Strategy;
use crate::table::Cell;
use api_machinery::value::Value;
use api_types::core_v1::PodCondition;
use api_types::core_v1::constants::pod_phase;
use api_types::core_v1::{PodSpec, ResourceList};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["po"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<Pod>("pods", "xPOwRZ+Yhw8=")),
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
    subresources: &[
        SubresourceInfo { name: "attach", kind: "PodAttachOptions", group: "", version: "", verbs: &["create", "get"] },
        SubresourceInfo { name: "binding", kind: "Binding", group: "", version: "", verbs: &["create"] },
        SubresourceInfo::part("ephemeralcontainers", "Pod"),
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
        SubresourceInfo::part("resize", "Pod"),
        SubresourceInfo::status("Pod"),
    ],
    ..ResourceInfo::of::<Pod>()
};

/// The rules of the kind.
pub(crate) struct PodRules;

/// Pods are found by their node: every kubelet asks for just its own.
const BY_NODE: FieldIndex = FieldIndex {
    field: "spec.nodeName",
    value: |object| object.downcast_ref::<Pod>().map(|pod| pod.spec.node_name.clone()).filter(|node| !node.is_empty()),
};

impl TypedRules for PodRules {
    type Object = Pod;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Pod>] = super::pod_table::COLUMNS;
    const LIFECYCLE: Lifecycle = Lifecycle { indexes: &[BY_NODE], ..Lifecycle::RETURNS_DELETED };
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const GATED: &'static [Gated<Pod>] = &[
        Gated {
            features: &[gates::EXTENDED_RESOURCE],
            used: |pod| pod.status.extended_resource_claim_status.is_some(),
            drop: |pod| pod.status.extended_resource_claim_status = None,
        },
        Gated {
            features: &[gates::NODE_ALLOCATABLE],
            used: |pod| !pod.status.node_allocatable_resource_claim_statuses.is_empty(),
            drop: |pod| pod.status.node_allocatable_resource_claim_statuses.clear(),
        },
        Gated {
            features: &[gates::IMAGE_VOLUME_DIGESTS],
            used: |pod| pod_status::has_image_volumes(&pod.status),
            drop: |pod| pod_status::drop_image_volumes(&mut pod.status),
        },
        Gated {
            features: &[gates::POD_LEVEL_RESIZE],
            used: |pod| pod.status.resources.is_some() || !pod.status.allocated_resources.is_empty(),
            drop: |pod| (pod.status.resources, pod.status.allocated_resources) = (None, ResourceList::new()),
        },
        Gated {
            features: &[gates::RESOURCE_HEALTH],
            used: |pod| pod_status::tells_health(&pod.status),
            drop: |pod| pod_status::drop_health(&mut pod.status),
        },
        Gated {
            features: &[gates::RESOURCE_HEALTH_MESSAGE],
            used: |pod| pod_status::has_health_messages(&pod.status),
            drop: |pod| pod_status::drop_health_messages(&mut pod.status),
        },
    ];

    fn reset_fields(subresource: &str) -> &'static [&'static str] {
        match subresource {
            "" => &["status"],
            "status" => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
            _ => &[],
        }
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut Pod) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec);
        crate::pod_spec::defaults::set_pod_defaults(object);
    }

    fn prepare_create(cx: &RuleContext, object: &mut Pod) {
        crate::pod_spec::disabled::drop_fields(&mut object.spec, None, &cx.gates);
        // Admission has named the account since.
        crate::pod_spec::defaults::sync_account(&mut object.spec);
        object.status.phase = pod_phase::PENDING.into();
        object.status.qos_class = component_helpers::qos::class_of(object).into();
        if !object.spec.scheduling_gates.is_empty() {
            object.status.conditions.push(PodCondition {
                type_: "PodScheduled".into(),
                status: "False".into(),
                reason: "SchedulingGated".into(),
                message: "Scheduling is blocked due to non-empty scheduling gates".into(),
                last_transition_time: cx.now,
                ..PodCondition::default()
            });
        }
        pod_create::merge_label_keys(object, &cx.gates);
        pod_create::sync_apparmor(object);
    }

    fn validate(cx: &RuleContext, object: &Pod) -> ErrorList {
        validation::validate_pod_create(object, &cx.gates)
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut Pod, old: &Pod) {
        match endpoint {
            Endpoint::Status => {
                object.metadata.owner_references.clone_from(&old.metadata.owner_references);
                object.metadata.deletion_timestamp = old.metadata.deletion_timestamp;
                pod_status::keep_unsaid(&mut object.status, &old.status);
                return;
            }
            Endpoint::Other("ephemeralcontainers") => pod_update::prepare_ephemeral(object, old),
            Endpoint::Other("resize") => pod_update::prepare_resize(object, old, &cx.gates),
            Endpoint::Main | Endpoint::Other(_) => {}
        }
        crate::pod_spec::disabled::drop_fields(&mut object.spec, Some(&old.spec), &cx.gates);
        // Counted anew, as what was restored above is no change.
        let changed = reflect::differs_in(object, old, "spec");
        object.metadata.generation = old.metadata.generation + i64::from(changed);
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &Pod, old: &Pod) -> ErrorList {
        let gates = &cx.gates;
        match endpoint {
            Endpoint::Status => pod_status::validate(object, old, gates),
            Endpoint::Other("ephemeralcontainers") => pod_update::validate_ephemeral(object, old, gates),
            Endpoint::Other("resize") => pod_resize::validate(object, old, gates),
            Endpoint::Main | Endpoint::Other(_) => pod_update::validate(object, old, gates),
        }
    }

    fn warnings(object: &Pod, old: Option<&Pod>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let problems = names::dns1123_label(&object.metadata.name);
        let mut texts = Vec::new();
        if !problems.is_empty() {
            texts.push(format!(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS \
                 label is recommended: [{}]",
                problems.join(" ")
            ));
        }
        texts.extend(warnings::of_pod(&object.metadata, &object.spec));
        texts
    }

    fn status_warnings(object: &Pod) -> Vec<String> {
        pod_status::warnings(&object.status)
    }

    fn grace(object: &Pod, asked_seconds: Option<i64>) -> Grace {
        let own = object.spec.termination_grace_period_seconds;
        let seconds = asked_seconds.or(own).unwrap_or(0);
        let unbound = object.spec.node_name.is_empty();
        match seconds {
            _ if unbound || component_helpers::pod_state::is_terminal(object) => Grace::Seconds(0),
            negative if negative < 0 => Grace::Seconds(1),
            seconds => Grace::Seconds(seconds),
        }
    }

    fn row_conditions(object: &Pod) -> Vec<Value> {
        super::pod_table::row_conditions(object)
    }

    fn pods(object: &Pod) -> Option<(Path, &PodSpec)> {
        Some((Path::new("spec"), &object.spec))
    }

    fn field(object: &Pod, path: &str) -> Option<String> {
        Some(match path {
            "spec.nodeName" => object.spec.node_name.clone(),
            "spec.host" => object.spec.node_name.clone(),
            "spec.restartPolicy" => object.spec.restart_policy.clone(),
            "spec.schedulerName" => object.spec.scheduler_name.clone(),
            "spec.serviceAccountName" => object.spec.service_account_name.clone(),
            "spec.hostNetwork" => object.spec.host_network.to_string(),
            "status.phase" => object.status.phase.clone(),
            "status.podIP" => object.status.pod_ip.clone(),
            "status.podIPs" => String::new(),
            "status.nominatedNodeName" => object.status.nominated_node_name.clone(),
            _ => return None,
        })
    }
}
