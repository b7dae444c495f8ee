//! Validation of pod specs and pod templates, in upstream's order and words. One file for each topic; this one has
//! the order of the rules and what they know of the object around them.

mod affinity;
mod annotations;
mod containers;
mod devices;
mod environment;
mod network;
mod platform;
mod probes;
mod projected;
mod resources;
mod security;
mod spread;
pub mod volume_sources;
mod volumes;
mod windows;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{preemption_policy, restart_policy};
use api_types::core_v1::{Pod, PodSpec, PodTemplateSpec};
use component_helpers::taints::Comparing;
use component_helpers::tolerations::compare_numbers;
use feature_gates::Gates;
use kinds_frame::addresses;
use kinds_frame::field_rules as rules;

pub use affinity::{NodeValues, node_selector};
pub use annotations::{
    APPARMOR, MIRROR, apparmor_of, validate_apparmor_update, validate_mirror_update, validate_pod_annotations,
};
pub(crate) use annotations::{SECCOMP_CONTAINER, SECCOMP_POD};
pub use component_helpers::resource_names::is_extended;
pub use component_helpers::tolerations::validate_tolerations;
pub use containers::validate_image_space;
pub use probes::port_or_name;
pub use resources::{amount, container_resource_name, is_overcommitable, standard_name, validate_overhead_amounts};
pub use volume_sources::validate_template_metadata;
pub use volumes::{ISCSI_NAME, fits_portal};

/// What a spec stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A pod: what runs as it is.
    Pod,
    /// A template: what some controller will make pods of.
    Template,
}

/// What the rules know of the object around the part they look at.
pub(crate) struct Around<'a> {
    form: Form,
    spec: &'a PodSpec,
    old: Option<&'a PodSpec>,
    /// The pod's name; empty in templates.
    name: &'a str,
    mirror: bool,
    gates: &'a Gates,
}

impl Around<'_> {
    fn is_pod(&self) -> bool {
        self.form == Form::Pod
    }

    fn is_windows(&self) -> bool {
        self.spec.os.as_ref().is_some_and(|os| os.name == "windows")
    }

    /// How tolerations may compare values: as those that are stored do, whatever is on.
    fn comparing(&self) -> Comparing {
        comparing(self.gates, self.old)
    }

    /// Whether the stored spec breaks a rule already, which is then not held against the new one.
    fn stored(&self, breaks: impl Fn(&PodSpec) -> bool) -> bool {
        self.old.is_some_and(breaks)
    }
}

/// How the tolerations of a spec may compare values, where `old` is the stored one.
#[must_use]
pub fn comparing(gates: &Gates, old: Option<&PodSpec>) -> Comparing {
    let is_stored = old.is_some_and(|old| compare_numbers(&old.tolerations));
    if is_stored { Comparing::Numbers } else { Comparing::by(gates) }
}

/// Checks the template of a workload, at the path of the template. `old` is the stored one on updates.
pub fn validate_template(
    path: &Path,
    template: &PodTemplateSpec,
    old: Option<&PodTemplateSpec>,
    gates: &Gates,
) -> ErrorList {
    let mut errors = names::labels(&path.child("labels"), &template.metadata.labels);
    let at = path.child("annotations");
    errors.extend(names::annotations(&at, &template.metadata.annotations));
    let stored = old.map(|old| (&old.metadata, &old.spec));
    validate_pod_annotations(&at, (&template.metadata, &template.spec), stored, gates, &mut errors);
    let around = Around {
        form: Form::Template,
        spec: &template.spec,
        old: old.map(|old| &old.spec),
        name: "",
        mirror: template.metadata.annotations.contains_key(MIRROR),
        gates,
    };
    let path = path.child("spec");
    validate_spec(&around, &path, &mut errors);
    annotations::validate_profiles_match(&path, &template.metadata.annotations, &template.spec, &mut errors);
    if !template.spec.ephemeral_containers.is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(path.child("ephemeralContainers").forbidden(detail));
    }
    errors
}

/// Checks the annotations and the spec of a pod, whichever way it is written. `old` is the stored one on updates.
pub fn validate_pod(pod: &Pod, old: Option<&Pod>, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = Path::new("metadata").child("annotations");
    let stored = old.map(|old| (&old.metadata, &old.spec));
    validate_pod_annotations(&at, (&pod.metadata, &pod.spec), stored, gates, &mut errors);
    let around = Around {
        form: Form::Pod,
        spec: &pod.spec,
        old: old.map(|old| &old.spec),
        name: &pod.metadata.name,
        mirror: pod.metadata.annotations.contains_key(MIRROR),
        gates,
    };
    let path = Path::new("spec");
    validate_spec(&around, &path, &mut errors);
    projected::validate_account_is_named(&path, &pod.spec, &mut errors);
    containers::validate_image_spaces(&path, &pod.spec, &mut errors);
    errors
}

/// Checks what holds only while a pod is created.
pub fn validate_pod_create(pod: &Pod, gates: &Gates) -> ErrorList {
    let mut errors = validate_pod(pod, None, gates);
    let path = Path::new("spec");
    if !pod.spec.ephemeral_containers.is_empty() {
        errors.push(path.child("ephemeralContainers").forbidden("cannot be set on create"));
    }
    if !pod.spec.node_name.is_empty() && !pod.spec.scheduling_gates.is_empty() {
        errors.push(path.child("nodeName").forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    annotations::validate_profiles_match(&path, &pod.metadata.annotations, &pod.spec, &mut errors);
    errors
}

fn validate_spec(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    if spec.termination_grace_period_seconds.is_none() {
        errors.push(path.child("terminationGracePeriodSeconds").required(""));
    }
    let volumes = volumes::validate(around, path, errors);
    devices::validate_resource_claims(around, path, errors);
    containers::validate_all(around, &volumes, path, errors);
    resources::validate_pod_level(around, &path.child("resources"), errors);
    network::validate_host_ports_match(around, path, errors);
    rules::choice_in_order(&path.child("restartPolicy"), &spec.restart_policy, restart_policy::ALL, errors);
    network::validate_dns_policy(spec, path, errors);
    errors.extend(names::labels(&path.child("nodeSelector"), &spec.node_selector));
    security::validate_pod(around, path, errors);
    affinity::validate(around, path, errors);
    network::validate_dns_config(around, &path.child("dnsConfig"), errors);
    validate_gates(spec, path, errors);
    spread::validate(around, &path.child("topologySpreadConstraints"), errors);
    windows::validate_host_process(spec, path, errors);
    platform::validate_user_namespace(around, path, errors);
    network::validate_hostname_override(spec, path, errors);
    validate_names(around, path, errors);
    resources::validate_overhead(around, &path.child("overhead"), errors);
    platform::validate_os(spec, path, errors);
    platform::validate_scheduling_group(spec, path, errors);
    environment::validate_file_volumes(spec, path, errors);
}

fn validate_gates(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    for (index, gate) in spec.readiness_gates.iter().enumerate() {
        let at = path.child("readinessGates").index(index).child("conditionType");
        errors.push_invalid(&at, &gate.condition_type, names::qualified_name(&gate.condition_type));
    }
    let mut seen = BTreeSet::new();
    for (index, gate) in spec.scheduling_gates.iter().enumerate() {
        let at = path.child("schedulingGates").index(index);
        errors.push_invalid(&at, &gate.name, names::qualified_name(&gate.name));
        if !seen.insert(gate.name.as_str()) {
            errors.push(at.duplicate(gate.name.as_str()));
        }
    }
}

/// The rules between `hostnameOverride` and `overhead`, in their order.
fn validate_names(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    let subdomain: rules::NameRule = names::dns1123_subdomain;
    rules::named_if_set(&path.child("serviceAccountName"), &spec.service_account_name, subdomain, errors);
    rules::named_if_set(&path.child("nodeName"), &spec.node_name, subdomain, errors);
    if let Some(seconds) = spec.active_deadline_seconds
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        errors.push(path.child("activeDeadlineSeconds").invalid(seconds, names::range_detail(1, i32::MAX)));
    }
    rules::named_if_set(&path.child("hostname"), &spec.hostname, names::dns1123_label, errors);
    rules::named_if_set(&path.child("subdomain"), &spec.subdomain, names::dns1123_label, errors);
    validate_tolerations(&path.child("tolerations"), &spec.tolerations, around.comparing(), errors);
    for (index, alias) in spec.host_aliases.iter().enumerate() {
        let at = path.child("hostAliases").index(index);
        errors.push_invalid(&at.child("ip"), &alias.ip, addresses::ip(around.gates, &alias.ip));
        for (index, name) in alias.hostnames.iter().enumerate() {
            errors.push_invalid(&at.child("hostnames").index(index), name, subdomain(name));
        }
    }
    rules::named_if_set(&path.child("priorityClassName"), &spec.priority_class_name, subdomain, errors);
    if let Some(class) = &spec.runtime_class_name {
        errors.push_invalid(&path.child("runtimeClassName"), class, subdomain(class));
    }
    if let Some(policy) = &spec.preemption_policy {
        rules::choice_in_order(&path.child("preemptionPolicy"), policy, preemption_policy::ALL, errors);
    }
}

/// An empty text as the bad value of rules that have none to show.
fn nothing() -> BadValue {
    BadValue::from("")
}
