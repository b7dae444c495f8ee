//! What pods are told of their volumes.

use std::sync::Arc;

use api_types::core_v1::Pod;

use crate::volumes::notice::Notice;

const FAILED: &str = "FailedAttachVolume";

pub(super) fn attached(volume: &str) -> Notice {
    // The space at the end is upstream's.
    Notice::normal("SuccessfulAttachVolume", format!("AttachVolume.Attach succeeded for volume \"{volume}\" "))
}

pub(super) fn failed(volume: &str, error: &str) -> Notice {
    Notice::warning(FAILED, format!("AttachVolume.Attach failed for volume \"{volume}\" : {error}"))
}

/// For a pod whose volume is on other nodes, where these pods use it. Names of pods in other namespaces are nobody's
/// business.
pub(super) fn multi_attach(volume: &str, pod: &Pod, users: &[Arc<Pod>]) -> Notice {
    let namespace = &pod.metadata.namespace;
    let near = users.iter().filter(|user| user.metadata.namespace == *namespace);
    let near: Vec<&str> = near.map(|user| user.metadata.name.as_str()).collect();
    let far = users.len() - near.len();
    let elsewhere = format!("{far} pod(s) in different namespaces");
    let text = match (near.is_empty(), far) {
        (true, 0) => "Volume is already exclusively attached to one node and can't be attached to another".to_owned(),
        (true, _) => format!("Volume is already used by {elsewhere}"),
        (false, 0) => format!("Volume is already used by pod(s) {}", near.join(", ")),
        (false, _) => format!("Volume is already used by pod(s) {} and {elsewhere}", near.join(", ")),
    };
    Notice::warning(FAILED, format!("Multi-Attach error for volume \"{volume}\" {text}"))
}
