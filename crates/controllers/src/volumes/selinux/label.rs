//! The SELinux label with which a pod's containers see a volume.

use api_types::core_v1::{Container, Pod, SELinuxOptions};

use crate::volumes::notice::Notice;

/// A label whose parts are all open: none.
const NONE: &str = ":::";

/// `user:role:type:level`, as far as a pod says; empty for none.
pub(super) fn text(options: Option<&SELinuxOptions>) -> String {
    let Some(SELinuxOptions { user, role, type_, level }) = options else { return String::new() };
    let label = format!("{user}:{role}:{type_}:{level}");
    if label == NONE { String::new() } else { label }
}

/// The label of a volume of a pod; nothing where no container mounts it.
///
/// # Errors
/// The warning where two containers would mount it with different ones.
pub(super) fn of_volume(pod: &Pod, volume: &str) -> Option<Result<String, Notice>> {
    let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.se_linux_options.as_ref());
    let own = |container: &Container| {
        let context = container.security_context.as_ref().and_then(|context| context.se_linux_options.as_ref());
        text(context.or(of_pod))
    };
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let users = containers.filter(|container| container.volume_mounts.iter().any(|mount| mount.name == volume));
    let labels: Vec<String> = users.map(own).collect();
    let first = labels.iter().find(|label| !label.is_empty());
    if labels.iter().any(|label| first.is_some_and(|first| first != label && !label.is_empty())) {
        let message = format!("Volume \"{volume}\" is mounted twice with different SELinux labels inside this pod");
        return Some(Err(Notice::warning("MultipleSELinuxLabels", message)));
    }
    (!labels.is_empty()).then(|| Ok(first.cloned().unwrap_or_default()))
}

/// Whether two labels cannot both be a volume's. A part but the level that one leaves open is the other's.
pub(super) fn conflict(one: &str, other: &str) -> bool {
    let parts = |label: &str| {
        let mut parts = label.splitn(4, ':').map(str::to_owned);
        std::array::from_fn::<String, 4, _>(|_| parts.next().unwrap_or_default())
    };
    let (one, other) = (parts(one), parts(other));
    one[3] != other[3]
        || one.iter().zip(&other).take(3).any(|(one, other)| one != other && !one.is_empty() && !other.is_empty())
}
