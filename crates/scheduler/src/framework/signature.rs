//! Signatures of pods: two pods with the same one get the same answers of all plugins of a profile, as long as the cluster
//! stays as it is (KEP-5598).

use std::fmt::Write as _;
use std::sync::Arc;

use api_machinery::json;

use crate::pod_info::PodInfo;

/// What the answers of a plugin to a pod depend on besides the cluster; none where that cannot be told.
pub type Sign = Arc<dyn Fn(&PodInfo) -> Option<String> + Send + Sync>;

/// A pod's signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature(String);

impl Signature {
    /// What all plugins say of a pod together; none where one of them has no word for it, or there are none.
    pub(super) fn of(signs: &[Sign], pod: &PodInfo) -> Option<Self> {
        if signs.is_empty() {
            return None;
        }
        let mut text = String::new();
        for sign in signs {
            // In quotes, no part runs into the next. Writing to a text cannot fail.
            let _ = write!(text, "{:?}", sign(pod)?);
        }
        Some(Self(text))
    }
}

/// The tolerations of a pod, in whatever order they stand.
pub(crate) fn by_tolerations(pod: &PodInfo) -> Option<String> {
    Some(sorted(pod.pod.spec.tolerations.iter().map(|toleration| json::encode(toleration))))
}

/// What a pod asks for.
pub(crate) fn by_resources(pod: &PodInfo) -> Option<String> {
    Some(format!("{:?}{:?}", pod.request, pod.score_request))
}

/// The volumes of a pod, but for those that every node has. What they name is of the pod's namespace.
pub(crate) fn by_volumes(pod: &PodInfo) -> Option<String> {
    let volumes = pod.pod.spec.volumes.iter().map(|volume| &volume.volume_source);
    let others = volumes.filter(|source| source.config_map.is_none() && source.secret.is_none());
    Some(format!("{:?}{}", pod.pod.metadata.namespace, sorted(others.map(|source| json::encode(source)))))
}

fn sorted(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    parts.sort();
    format!("{parts:?}")
}
