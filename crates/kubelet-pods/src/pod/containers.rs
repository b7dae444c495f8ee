//! The containers of a pod in one shape, whatever list they stand in.

use std::borrow::Cow;

use api_types::core_v1::{Container, EphemeralContainer, Pod};
use component_helpers::pod_state::is_sidecar;

/// Which role a container plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container that runs beside the others from its turn on.
    Sidecar,
    Regular,
    Ephemeral,
}

/// A container with its role.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    pub role: Role,
    pub container: Cow<'a, Container>,
    /// The container whose processes an ephemeral one wants to see.
    pub target: &'a str,
}

impl Member<'_> {
    /// The field path that events about it carry.
    pub fn field_path(&self) -> String {
        field_path(self.role, &self.container.name)
    }
}

/// `spec.containers{name}` and the like.
pub(crate) fn field_path(role: Role, name: &str) -> String {
    match role {
        Role::Init | Role::Sidecar => format!("spec.initContainers{{{name}}}"),
        Role::Regular => format!("spec.containers{{{name}}}"),
        Role::Ephemeral => format!("spec.ephemeralContainers{{{name}}}"),
    }
}

/// Init containers and sidecars in order, then regular, then ephemeral ones.
pub(crate) fn members(pod: &Pod) -> impl Iterator<Item = Member<'_>> {
    let init = pod.spec.init_containers.iter().map(|container| Member {
        role: if is_sidecar(container) { Role::Sidecar } else { Role::Init },
        container: Cow::Borrowed(container),
        target: "",
    });
    let regular = pod.spec.containers.iter().map(|container| Member {
        role: Role::Regular,
        container: Cow::Borrowed(container),
        target: "",
    });
    let ephemeral = pod.spec.ephemeral_containers.iter().map(|ephemeral| Member {
        role: Role::Ephemeral,
        container: Cow::Owned(as_container(ephemeral)),
        target: &ephemeral.target_container_name,
    });
    init.chain(regular).chain(ephemeral)
}

/// A container by name.
pub(crate) fn member<'a>(pod: &'a Pod, name: &str) -> Option<Member<'a>> {
    members(pod).find(|member| member.container.name == name)
}

/// Regular containers and sidecars: those that probes watch and that make a pod ready.
pub(crate) fn long_running(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.init_containers.iter().filter(|container| is_sidecar(container)).chain(&pod.spec.containers)
}

/// An ephemeral container has the fields of a container in a struct of its own.
fn as_container(ephemeral: &EphemeralContainer) -> Container {
    let common = ephemeral.ephemeral_container_common.clone();
    Container {
        name: common.name,
        image: common.image,
        command: common.command,
        args: common.args,
        working_dir: common.working_dir,
        ports: common.ports,
        env_from: common.env_from,
        env: common.env,
        resources: common.resources,
        resize_policy: common.resize_policy,
        restart_policy: common.restart_policy,
        restart_policy_rules: common.restart_policy_rules,
        volume_mounts: common.volume_mounts,
        volume_devices: common.volume_devices,
        liveness_probe: common.liveness_probe,
        readiness_probe: common.readiness_probe,
        startup_probe: common.startup_probe,
        lifecycle: common.lifecycle,
        termination_message_path: common.termination_message_path,
        termination_message_policy: common.termination_message_policy,
        image_pull_policy: common.image_pull_policy,
        security_context: common.security_context,
        stdin: common.stdin,
        stdin_once: common.stdin_once,
        tty: common.tty,
    }
}
