//! What local plugins look at in a pod. Pods of one workload have the same shape: their names differ, and the names of
//! their generated volumes, but neither matters to a node.

use std::fmt::Write as _;

use api_machinery::json;

use crate::pod_info::PodInfo;

/// A pod's shape as a text; equal texts mean that every local plugin gives equal answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct PodShape(String);

/// Between the parts, so that none runs into the next.
const END: char = '\u{1f}';

impl PodShape {
    /// The shape of a pod: the node it names, its node selector and affinity, tolerations, requests, host ports and
    /// images. Whoever makes a plugin local must see to it that all it reads is here.
    pub(crate) fn of(info: &PodInfo) -> Self {
        let spec = &info.pod.spec;
        let mut text = String::new();
        // Writing to a text cannot fail.
        let _ = write!(text, "{:?}{:?}", spec.node_name, spec.node_selector);
        let _ = write!(text, "{:?}{:?}{:?}", info.request, info.score_request, info.ports);
        for toleration in &spec.tolerations {
            text.push_str(&json::encode(toleration));
        }
        text.push(END);
        if let Some(affinity) = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref()) {
            text.push_str(&json::encode(affinity));
        }
        text.push(END);
        // Names are whatever somebody wrote; in quotes none runs into the next.
        for container in spec.init_containers.iter().chain(&spec.containers) {
            let _ = write!(text, "{:?}", container.image);
        }
        text.push(END);
        for image in spec.volumes.iter().filter_map(|volume| volume.volume_source.image.as_ref()) {
            let _ = write!(text, "{:?}", image.reference);
        }
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod_class::ClassTable;
    use crate::test_objects::{PodBuilder, pod};

    fn shape(builder: PodBuilder) -> PodShape {
        PodShape::of(&builder.info(&ClassTable::default()))
    }

    #[test]
    fn names_do_not_matter_and_what_nodes_care_for_does() {
        let plain = shape(pod("a"));
        assert_eq!(plain, shape(pod("b").label("app", "x").priority(7)));
        let mut image = pod("a");
        image.0.spec.containers[0].image = "other".into();
        let mut selective = pod("a");
        selective.0.spec.node_selector.insert("disk".into(), "ssd".into());
        let mut tolerant = pod("a");
        tolerant.0.spec.tolerations.push(Default::default());
        let mut affine = pod("a");
        affine.0.spec.affinity.get_or_insert_default().node_affinity = Some(Default::default());
        let asking = pod("a").request("cpu", "1");
        for (name, other) in [
            ("image", image),
            ("selector", selective),
            ("toleration", tolerant),
            ("affinity", affine),
            ("request", asking),
        ] {
            assert_ne!(plain, shape(other), "{name}");
        }
    }
}
