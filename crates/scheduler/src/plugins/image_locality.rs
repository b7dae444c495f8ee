//! `ImageLocality`: prefers nodes that have the pod's images, the larger the better.

use std::sync::Arc;

use api_types::core_v1::Pod;

use crate::framework::{
    BuildCx, CycleCx, CycleState, MAX_SCORE, Plugin, PluginError, PreScore, PreScored, Score, Status,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "ImageLocality";
const MIB: i64 = 1024 * 1024;
/// Smaller sums do not matter.
const MINIMUM: i64 = 23 * MIB;
/// Larger sums for each container do not matter.
const MAXIMUM_FOR_CONTAINER: i64 = 1000 * MIB;

struct ImageLocality;

/// The pod's images by full name, and how many nodes there are.
#[derive(Clone)]
struct Images {
    names: Vec<String>,
    nodes: i64,
}

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let plugin = Arc::new(ImageLocality);
    let points = Plugin::new(NAME).pre_score(plugin.clone()).score(plugin).wakes_on(Vec::new());
    Ok(points.signed_by(|pod| {
        let mut names: Vec<String> = images(&pod.pod).collect();
        names.sort();
        Some(format!("{names:?}"))
    }))
}

/// A name without tag or digest means the tag `latest`.
fn full_name(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains(':') { image.to_owned() } else { format!("{image}:latest") }
}

/// The images of a pod by full name.
fn images(pod: &Pod) -> impl Iterator<Item = String> {
    let spec = &pod.spec;
    let containers = spec.init_containers.iter().chain(&spec.containers).map(|container| &container.image);
    let volumes = spec.volumes.iter().filter_map(|volume| Some(&volume.volume_source.image.as_ref()?.reference));
    containers.chain(volumes).map(|image| full_name(image))
}

impl PreScore for ImageLocality {
    fn pre_score(
        &self,
        cx: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        let names = images(&pod.pod).collect();
        state.put(Images { names, nodes: i64::try_from(cx.snapshot.len()).unwrap_or(i64::MAX) });
        Ok(PreScored::Ready)
    }
}

impl Score for ImageLocality {
    fn score(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let Some(images) = state.get::<Images>() else { return Ok(0) };
        let spread = |name: &String| {
            let image = node.images.get(name)?;
            let having = i128::try_from(image.nodes).unwrap_or(0);
            i64::try_from(i128::from(image.size) * having / i128::from(images.nodes.max(1))).ok()
        };
        let sum = images.names.iter().filter_map(spread).fold(0_i64, i64::saturating_add);
        let containers = pod.pod.spec.containers.len() + pod.pod.spec.init_containers.len();
        let maximum = MAXIMUM_FOR_CONTAINER * i64::try_from(containers).unwrap_or(1).max(1);
        Ok(MAX_SCORE * (sum.clamp(MINIMUM, maximum) - MINIMUM) / (maximum - MINIMUM))
    }

    fn is_local(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        for (image, expected) in [
            ("nginx", "nginx:latest"),
            ("nginx:1", "nginx:1"),
            ("host:5000/nginx", "host:5000/nginx:latest"),
            ("a/b@sha256:00", "a/b@sha256:00"),
        ] {
            assert_eq!(full_name(image), expected);
        }
    }
}
