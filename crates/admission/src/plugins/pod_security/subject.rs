//! A pod as checks look at it, and how they name what they find.

use std::collections::BTreeSet;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{ContainerPort, Lifecycle, PodSecurityContext, PodSpec, Probe, SecurityContext};

use super::Violation;

/// A container of any sort.
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    pub(super) ports: &'a [ContainerPort],
    pub(super) security: Option<&'a SecurityContext>,
    pub(super) probes: [Option<&'a Probe>; 3],
    pub(super) lifecycle: Option<&'a Lifecycle>,
}

/// A pod, as of a version of the standards.
pub(super) struct Subject<'a> {
    pub(super) metadata: &'a ObjectMeta,
    pub(super) spec: &'a PodSpec,
    pub(super) minor: u32,
    /// Init containers, ordinary ones, ephemeral ones.
    pub(super) containers: Vec<Container<'a>>,
}

macro_rules! container {
    ($own:expr) => {
        Container {
            name: &$own.name,
            ports: &$own.ports,
            security: $own.security_context.as_ref(),
            probes: [$own.liveness_probe.as_deref(), $own.readiness_probe.as_deref(), $own.startup_probe.as_deref()],
            lifecycle: $own.lifecycle.as_deref(),
        }
    };
}

impl<'a> Subject<'a> {
    pub(super) fn new(metadata: &'a ObjectMeta, spec: &'a PodSpec, minor: u32) -> Self {
        let plain = spec.init_containers.iter().chain(&spec.containers).map(|own| container!(own));
        let ephemeral = spec.ephemeral_containers.iter().map(|own| container!(own.ephemeral_container_common));
        Self { metadata, spec, minor, containers: plain.chain(ephemeral).collect() }
    }

    /// The security context of the pod.
    pub(super) fn security(&self) -> Option<&'a PodSecurityContext> {
        self.spec.security_context.as_ref()
    }

    /// Whether the pod says that it runs on Windows, and the version lets that count.
    pub(super) fn is_windows(&self) -> bool {
        self.minor >= 25 && self.spec.os.as_ref().is_some_and(|os| os.name == "windows")
    }

    /// Whether the pod has users of its own, and the version lets that count.
    pub(super) fn has_own_users(&self) -> bool {
        self.minor >= 35 && self.spec.host_users == Some(false)
    }

    /// The names of the containers of which something holds.
    pub(super) fn names(&self, holds: impl Fn(&Container<'a>) -> bool) -> Vec<&'a str> {
        self.containers.iter().filter(|own| holds(own)).map(|own| own.name).collect()
    }
}

pub(super) fn violation(reason: impl Into<String>, detail: impl Into<String>) -> Violation {
    Violation { reason: reason.into(), detail: detail.into() }
}

/// One or more.
pub(super) fn plural<'a>(count: usize, one: &'a str, more: &'a str) -> &'a str {
    if count == 1 { one } else { more }
}

/// `"a", "b"`.
pub(super) fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    names.iter().map(|name| format!("{:?}", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// A set of values, quoted and sorted.
pub(super) fn values(values: &BTreeSet<String>) -> String {
    quoted(&values.iter().collect::<Vec<_>>())
}

/// `container "a"` or `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names))
}

/// Who set something: the pod, containers, or both.
pub(super) fn setters(pod: bool, names: &[&str]) -> String {
    match (pod, names.is_empty()) {
        (true, true) => "pod".to_owned(),
        (true, false) => format!("pod and {}", containers(names)),
        (false, _) => containers(names),
    }
}
