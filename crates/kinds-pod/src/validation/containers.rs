//! Rules of containers: regular, init and ephemeral ones.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{
    container_restart_policy, container_restart_rule_action, container_restart_rule_on_exit_codes_operator, protocol,
    pull_policy, resource_resize_restart_policy, termination_message_policy,
};
use api_types::core_v1::{Container, ContainerPort, ContainerRestartRule, EphemeralContainer, PodSpec};
use feature_gates::shared::RESTART_ALL_CONTAINERS;
use kinds_frame::field_rules as rules;
use kinds_frame::pod_containers::as_container;

use super::volumes::Volumes;
use super::{Around, devices, environment, nothing, probes, resources, security};

const SPACES: &str = "must not have leading or trailing whitespace";
const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
/// The most restart rules of one container.
const MAX_RESTART_RULES: usize = 20;
/// The most exit codes of one restart rule.
const MAX_EXIT_CODES: usize = 255;

/// Whether a container keeps running beside those after it.
pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

pub(super) fn validate_all(around: &Around<'_>, volumes: &Volumes<'_>, path: &Path, errors: &mut ErrorList) {
    let at = path.child("containers");
    if around.spec.containers.is_empty() {
        errors.push(at.required(""));
    }
    let mut seen = BTreeSet::new();
    for (index, container) in around.spec.containers.iter().enumerate() {
        let at = at.index(index);
        validate_common(around, volumes, container, &at, errors);
        if !seen.insert(container.name.as_str()) {
            errors.push(at.child("name").duplicate(container.name.as_str()));
        }
        let grace = around.spec.termination_grace_period_seconds;
        probes::validate_lifecycle(around, container.lifecycle.as_deref(), grace, &at.child("lifecycle"), errors);
        probes::validate_all(container, &at, errors);
        validate_restart(around, container, &at, errors);
    }
    validate_host_ports(&at, &around.spec.containers, errors);
    validate_init(around, volumes, &path.child("initContainers"), errors);
    validate_ephemeral(around, volumes, &path.child("ephemeralContainers"), errors);
}

/// What holds for containers of every list.
fn validate_common(
    around: &Around<'_>,
    volumes: &Volumes<'_>,
    container: &Container,
    path: &Path,
    errors: &mut ErrorList,
) {
    rules::named(&path.child("name"), &container.name, names::dns1123_label, errors);
    rules::required(&path.child("image"), &container.image, errors);
    let at = path.child("terminationMessagePolicy");
    rules::choice_in_order(&at, &container.termination_message_policy, termination_message_policy::ALL, errors);
    validate_ports(&path.child("ports"), &container.ports, errors);
    environment::validate(around, container, path, errors);
    devices::validate_mounts(volumes, container, path, errors);
    rules::choice(&path.child("imagePullPolicy"), &container.image_pull_policy, pull_policy::ALL, errors);
    resources::validate_container(around, &container.resources, &path.child("resources"), errors);
    validate_resize_policy(&around.spec.restart_policy, container, &path.child("resizePolicy"), errors);
    security::validate_container(around.spec, container, &path.child("securityContext"), errors);
}

fn validate_ports(path: &Path, ports: &[ContainerPort], errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        if !port.name.is_empty() {
            let problems = names::port_name(&port.name);
            let good = problems.is_empty();
            errors.push_invalid(&path.child("name"), &port.name, problems);
            if good && !seen.insert(port.name.as_str()) {
                errors.push(path.child("name").duplicate(port.name.as_str()));
            }
        }
        match port.container_port {
            0 => errors.push(path.child("containerPort").required("")),
            number => rules::port(&path.child("containerPort"), number, errors),
        }
        if port.host_port != 0 {
            rules::port(&path.child("hostPort"), port.host_port, errors);
        }
        rules::choice(&path.child("protocol"), &port.protocol, protocol::ALL, errors);
    }
}

/// No two containers of the list may want the same port of the host.
fn validate_host_ports(path: &Path, containers: &[Container], errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (at, port) in container.ports.iter().enumerate().filter(|(_, port)| port.host_port != 0) {
            let key = format!("{}/{}/{}", port.protocol, port.host_ip, port.host_port);
            if !seen.insert(key.clone()) {
                errors.push(path.index(index).child("ports").index(at).child("hostPort").duplicate(key));
            }
        }
    }
}

fn validate_resize_policy(pod_restart: &str, container: &Container, path: &Path, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, policy) in container.resize_policy.iter().enumerate() {
        if !seen.insert(policy.resource_name.as_str()) {
            errors.push(path.index(index).duplicate(BadValue::named(&policy.resource_name)));
        }
        rules::choice(path, &policy.resource_name, &["cpu", "memory"], errors);
        rules::choice(path, &policy.restart_policy, resource_resize_restart_policy::ALL, errors);
        if pod_restart == "Never" && policy.restart_policy != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(path.invalid(BadValue::named(&policy.restart_policy), detail));
        }
    }
}

fn validate_restart(around: &Around<'_>, container: &Container, path: &Path, errors: &mut ErrorList) {
    let at = path.child("restartPolicy");
    match &container.restart_policy {
        Some(policy) => rules::one_of(&at, policy, container_restart_policy::ALL, errors),
        None if !container.restart_policy_rules.is_empty() => {
            errors.push(at.required("must specify restartPolicy when restart rules are used"));
        }
        None => {}
    }
    let at = path.child("restartPolicyRules");
    let count = container.restart_policy_rules.len();
    if count > MAX_RESTART_RULES {
        errors.push(at.too_many(count, MAX_RESTART_RULES));
    }
    for (index, rule) in container.restart_policy_rules.iter().enumerate() {
        validate_restart_rule(around, rule, &at.index(index), errors);
    }
}

/// Whether the end of a container may restart all of the pod.
fn may_restart_all(around: &Around<'_>) -> bool {
    around.gates.enabled(RESTART_ALL_CONTAINERS) || around.stored(restarts_all)
}

fn restarts_all(spec: &PodSpec) -> bool {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let mut rules = containers.flat_map(|container| &container.restart_policy_rules);
    rules.any(|rule| rule.action == container_restart_rule_action::RESTART_ALL_CONTAINERS)
}

/// A container that runs beside others restarts anyway; rules only make sense where they restart all.
fn refuse_rules_of_sidecar(around: &Around<'_>, container: &Container, path: &Path, errors: &mut ErrorList) {
    if is_sidecar(container) && !container.restart_policy_rules.is_empty() && !may_restart_all(around) {
        let detail = "restartPolicyRules are not allowed for init containers with restart policy Always";
        errors.push(path.child("restartPolicyRules").forbidden(detail));
    }
}

fn validate_restart_rule(around: &Around<'_>, rule: &ContainerRestartRule, path: &Path, errors: &mut ErrorList) {
    let only_itself = [container_restart_rule_action::RESTART];
    let actions = if may_restart_all(around) { container_restart_rule_action::ALL } else { &only_itself };
    rules::one_of(&path.child("action"), &rule.action, actions, errors);
    let path = path.child("exitCodes");
    let Some(codes) = &rule.exit_codes else {
        errors.push(path.required("must be specified"));
        return;
    };
    rules::one_of(&path.child("operator"), &codes.operator, container_restart_rule_on_exit_codes_operator::ALL, errors);
    if codes.values.len() > MAX_EXIT_CODES {
        errors.push(path.child("values").too_many(codes.values.len(), MAX_EXIT_CODES));
    }
}

fn validate_init(around: &Around<'_>, volumes: &Volumes<'_>, path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    let mut seen: BTreeSet<&str> = spec.containers.iter().map(|container| container.name.as_str()).collect();
    for (index, container) in spec.init_containers.iter().enumerate() {
        let at = path.index(index);
        validate_common(around, volumes, container, &at, errors);
        validate_restart(around, container, &at, errors);
        refuse_rules_of_sidecar(around, container, &at, errors);
        if !container.name.is_empty() && !seen.insert(container.name.as_str()) {
            errors.push(at.child("name").duplicate(container.name.as_str()));
        }
        // Upstream checks the ports of each alone and names the first, whichever it is.
        validate_host_ports(path, std::slice::from_ref(container), errors);
        if is_sidecar(container) {
            let grace = spec.termination_grace_period_seconds;
            probes::validate_lifecycle(around, container.lifecycle.as_deref(), grace, &at.child("lifecycle"), errors);
            probes::validate_all(container, &at, errors);
        } else {
            refuse_probes(container, &at, errors);
            refuse_restarting_resize(around, container, &at, errors);
        }
    }
}

fn refuse_probes(container: &Container, path: &Path, errors: &mut ErrorList) {
    let set = [
        ("lifecycle", container.lifecycle.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
    ];
    for (field, _) in set.iter().filter(|(_, set)| *set) {
        errors.push(path.child(*field).forbidden(ONLY_SIDECARS));
    }
}

fn restarts_on_resize(container: &Container) -> bool {
    container.resize_policy.iter().any(|policy| policy.restart_policy == "RestartContainer")
}

fn refuse_restarting_resize(around: &Around<'_>, container: &Container, path: &Path, errors: &mut ErrorList) {
    let has_one = |spec: &PodSpec| {
        spec.init_containers.iter().any(|container| !is_sidecar(container) && restarts_on_resize(container))
    };
    if around.stored(has_one) {
        return;
    }
    for (index, policy) in container.resize_policy.iter().enumerate() {
        if policy.restart_policy == "RestartContainer" {
            let at = path.child("resizePolicy").index(index).child("restartPolicy");
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(at.invalid(BadValue::named(&policy.restart_policy), detail));
        }
    }
}

fn validate_ephemeral(around: &Around<'_>, volumes: &Volumes<'_>, path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    let others: BTreeSet<&str> =
        spec.containers.iter().chain(&spec.init_containers).map(|container| container.name.as_str()).collect();
    let mut seen = others.clone();
    for (index, ephemeral) in spec.ephemeral_containers.iter().enumerate() {
        let at = path.index(index);
        let common = &ephemeral.ephemeral_container_common;
        let container = as_container(common);
        validate_common(around, volumes, &container, &at, errors);
        if !common.name.is_empty() && !seen.insert(common.name.as_str()) {
            errors.push(at.child("name").duplicate(common.name.as_str()));
        }
        let target = ephemeral.target_container_name.as_str();
        if !target.is_empty() && !others.contains(target) {
            errors.push(at.child("targetContainerName").not_found(target));
        }
        refuse_for_ephemeral(ephemeral, &at, errors);
    }
}

fn refuse_for_ephemeral(ephemeral: &EphemeralContainer, path: &Path, errors: &mut ErrorList) {
    let common = &ephemeral.ephemeral_container_common;
    let set = [
        ("ports", !common.ports.is_empty()),
        ("resources", common.resources != Default::default()),
        ("resizePolicy", !common.resize_policy.is_empty()),
        ("restartPolicy", common.restart_policy.is_some()),
        ("restartPolicyRules", !common.restart_policy_rules.is_empty()),
        ("livenessProbe", common.liveness_probe.is_some()),
        ("readinessProbe", common.readiness_probe.is_some()),
        ("startupProbe", common.startup_probe.is_some()),
        ("lifecycle", common.lifecycle.is_some()),
    ];
    for (field, _) in set.iter().filter(|(_, set)| *set) {
        errors.push(path.child(*field).forbidden(NOT_EPHEMERAL));
    }
    for (index, mount) in common.volume_mounts.iter().enumerate() {
        let path = path.child("volumeMounts").index(index);
        for (field, value) in [("subPath", &mount.sub_path), ("subPathExpr", &mount.sub_path_expr)] {
            if !value.is_empty() {
                errors.push(path.child(field).forbidden(NOT_EPHEMERAL));
            }
        }
    }
}

/// Images of pods may not start or end in white space; those of templates may, as they are pods only later.
pub(super) fn validate_image_spaces(path: &Path, spec: &PodSpec, errors: &mut ErrorList) {
    let lists = [("containers", &spec.containers), ("initContainers", &spec.init_containers)];
    for (name, containers) in lists {
        for (index, container) in containers.iter().enumerate() {
            validate_image_space(&path.child(name).index(index).child("image"), &container.image, errors);
        }
    }
    for (index, container) in spec.ephemeral_containers.iter().enumerate() {
        let at = path.child("ephemeralContainers").index(index).child("image");
        validate_image_space(&at, &container.ephemeral_container_common.image, errors);
    }
}

/// One image, without spaces around it.
pub fn validate_image_space(path: &Path, image: &str, errors: &mut ErrorList) {
    if image.trim() != image {
        errors.push(path.invalid(image, SPACES));
    }
}

/// `envFrom` and the like print an empty text where several members are set.
pub(super) fn several(path: &Path, errors: &mut ErrorList) {
    errors.push(path.invalid(nothing(), "may not have more than one field specified at a time"));
}
