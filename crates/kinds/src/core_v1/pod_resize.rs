//! Rules of changing the resources of a running pod.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::reflect::equal_structs;
use api_types::core_v1::{Container, Pod, ResourceList, ResourceRequirements};
use component_helpers::pod_state::is_sidecar;
use feature_gates::Gates;

use crate::gates::{POD_LEVEL_RESIZE, RESIZE_INIT_CONTAINERS};
use crate::pod_spec::validation as pod_spec;

const ONLY_COMPUTE: &str = "only cpu and memory resources are mutable";
/// Upstream's words, with the name of its own switch.
const NO_POD_LEVEL: &str = "resize of pods with pod-level resources is forbidden when \
                            InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";

/// Checks a pod whose resources are to replace those of `old`.
pub(super) fn validate(pod: &Pod, old: &Pod, gates: &Gates) -> ErrorList {
    let root = Path::new("");
    if old.metadata.annotations.contains_key(pod_spec::MIRROR) {
        return root.forbidden("static pods cannot be resized").into();
    }
    if pod.spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return root.forbidden("windows pods cannot be resized").into();
    }
    let mut errors = pod_spec::validate_pod(pod, Some(old), gates);
    let path = Path::new("spec");
    validate_class(&path, pod, old, &mut errors);
    let running = old.status.container_statuses.iter().find(|status| status.state.running.is_some());
    if running.is_some_and(|status| status.resources.is_none()) {
        errors.push(path.forbidden("Pod running on node without support for resize"));
    }
    if !gates.enabled(POD_LEVEL_RESIZE) {
        if pod.spec.resources.is_some() || old.spec.resources.is_some() {
            errors.push(root.forbidden(NO_POD_LEVEL));
            return errors;
        }
    } else {
        validate_pod_level(&path, pod, old, &mut errors);
    }
    if !old.status.node_allocatable_resource_claim_statuses.is_empty() {
        errors.push(path.forbidden("pods with node allocatable resource claims cannot be resized"));
    }
    if has_same_containers(&path, pod, old, &mut errors) {
        validate_containers(&path, pod, old, gates, &mut errors);
        if errors.is_empty() && !equal_structs(&put_back(pod, old).spec, &old.spec) {
            errors.push(path.forbidden(ONLY_COMPUTE));
        }
    }
    errors
}

fn validate_class(path: &Path, pod: &Pod, old: &Pod, errors: &mut ErrorList) {
    // The class is kept in the status, so it has to be worked out anew from the new spec alone.
    let mut fresh = pod.clone();
    fresh.status.qos_class.clear();
    if component_helpers::qos::class_of(&fresh) != old.status.qos_class {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(path.invalid(BadValue::named(&old.status.qos_class), detail));
    }
}

fn removed(new: &ResourceList, old: &ResourceList) -> bool {
    old.keys().any(|name| !new.contains_key(name))
}

fn validate_pod_level(path: &Path, pod: &Pod, old: &Pod, errors: &mut ErrorList) {
    let at = path.child("resources");
    let none = ResourceRequirements::default();
    let (stored, new) = match (&old.spec.resources, &pod.spec.resources) {
        (None, None) => return,
        (Some(_), None) => return errors.push(at.forbidden("pod-level resources cannot be removed")),
        (stored, Some(new)) => (stored.as_ref().unwrap_or(&none), new),
    };
    if removed(&new.requests, &stored.requests) {
        errors.push(at.child("requests").forbidden("pod-level resource requests cannot be removed"));
    }
    if removed(&new.limits, &stored.limits) {
        errors.push(at.child("limits").forbidden("pod-level resource limits cannot be removed"));
    }
    if !equal_structs(&without_compute(new, stored), stored) {
        errors.push(path.forbidden("only cpu and memory resources are mutable at pod-level"));
    }
}

/// The new resources with processor and memory as they were.
fn without_compute(new: &ResourceRequirements, old: &ResourceRequirements) -> ResourceRequirements {
    let mut kept = new.clone();
    for (list, stored) in [(&mut kept.requests, &old.requests), (&mut kept.limits, &old.limits)] {
        for name in ["cpu", "memory"] {
            list.remove(name);
            if let Some(quantity) = stored.get(name) {
                list.insert(name.into(), quantity.clone());
            }
        }
    }
    kept
}

fn has_same_containers(path: &Path, pod: &Pod, old: &Pod, errors: &mut ErrorList) -> bool {
    for (field, new, stored) in lists(pod, old) {
        let at = path.child(field);
        if new.len() != stored.len() {
            errors.push(at.forbidden(format!("{field} may not be added or removed on resize")));
            return false;
        }
        for (index, (new, stored)) in new.iter().zip(stored).enumerate() {
            if new.name != stored.name {
                let detail = format!("{field} may not be renamed or reordered on resize");
                errors.push(at.index(index).child("name").forbidden(detail));
                return false;
            }
        }
    }
    true
}

type Lists<'a> = [(&'static str, &'a [Container], &'a [Container]); 2];

fn lists<'a>(pod: &'a Pod, old: &'a Pod) -> Lists<'a> {
    [
        ("containers", &pod.spec.containers, &old.spec.containers),
        ("initContainers", &pod.spec.init_containers, &old.spec.init_containers),
    ]
}

fn validate_containers(path: &Path, pod: &Pod, old: &Pod, gates: &Gates, errors: &mut ErrorList) {
    for (field, new, stored) in lists(pod, old) {
        for (index, (new, stored)) in new.iter().zip(stored).enumerate() {
            let at = path.child(field).index(index);
            validate_removal(&at, new, stored, errors);
            if field != "containers" && !is_sidecar(stored) && !gates.enabled(RESIZE_INIT_CONTAINERS) {
                if !equal_structs(new, stored) {
                    errors.push(path.forbidden("resources for non-sidecar init containers are immutable"));
                }
                continue;
            }
            validate_container(path, &at, field == "containers", new, stored, errors);
        }
    }
}

fn validate_removal(path: &Path, new: &Container, stored: &Container, errors: &mut ErrorList) {
    let at = path.child("resources");
    if removed(&new.resources.requests, &stored.resources.requests) {
        errors.push(at.child("requests").forbidden("resource requests cannot be removed"));
    }
    if removed(&new.resources.limits, &stored.resources.limits) {
        errors.push(at.child("limits").forbidden("resource limits cannot be removed"));
    }
}

fn validate_container(
    spec: &Path,
    path: &Path,
    regular: bool,
    new: &Container,
    stored: &Container,
    errors: &mut ErrorList,
) {
    // Claims are compared with none at all, so that containers with claims are never resized.
    let mut comparable = stored.clone();
    comparable.resources.claims.clear();
    let mut kept = new.clone();
    kept.resources = without_compute(&new.resources, &stored.resources);
    let other = !equal_structs(&kept, &comparable);
    let changed = !equal_structs(new, stored);
    if regular {
        if other {
            errors.push(spec.forbidden(ONLY_COMPUTE));
        }
        return;
    }
    if other {
        errors.push(path.forbidden("only cpu and memory resources for init or sidecar containers are mutable"));
    }
    let restarts = new.resize_policy.iter().any(|policy| policy.restart_policy == "RestartContainer");
    if changed && !is_sidecar(stored) && restarts {
        let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
        errors.push(path.forbidden(detail));
    }
}

/// The new pod with everything that may change as it was.
fn put_back(pod: &Pod, old: &Pod) -> Pod {
    let mut kept = pod.clone();
    let pairs = kept.spec.containers.iter_mut().zip(&old.spec.containers);
    for (new, stored) in pairs.chain(kept.spec.init_containers.iter_mut().zip(&old.spec.init_containers)) {
        new.resources.clone_from(&stored.resources);
    }
    kept.spec.resources.clone_from(&old.spec.resources);
    kept
}
