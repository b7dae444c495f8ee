//! LimitPodHardAntiAffinityTopology: pods may keep others off their node, but not off anything larger.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::Pod;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "LimitPodHardAntiAffinityTopology",
    enabled_by_default: false,
    passes: Passes::Validating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(HardAntiAffinityTopology),
};

const HOSTNAME: &str = "kubernetes.io/hostname";

struct HardAntiAffinityTopology;

#[async_trait]
impl Plugin for HardAntiAffinityTopology {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is("", "pods") && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    async fn validate(
        &self,
        _: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_ref::<Pod>()) else { return Ok(()) };
        let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let terms = affinity.map(|own| own.required_during_scheduling_ignored_during_execution.as_slice());
        let wide = terms.unwrap_or_default().iter().find(|term| term.topology_key != HOSTNAME);
        match wide {
            None => Ok(()),
            Some(term) => Err(attributes.forbidden(format_args!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {} but only key {HOSTNAME} is \
                 allowed",
                term.topology_key
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{Affinity, PodAffinityTerm, PodAntiAffinity};

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn only_nodes_are_kept_apart() {
        let fixture = Fixture::default();
        for (key, passes) in [(HOSTNAME, true), ("topology.kubernetes.io/zone", false)] {
            let term = PodAffinityTerm { topology_key: key.into(), ..PodAffinityTerm::default() };
            let apart = PodAntiAffinity {
                required_during_scheduling_ignored_during_execution: vec![term],
                ..PodAntiAffinity::default()
            };
            let mut pod = Pod::default();
            pod.spec.affinity = Some(Affinity { pod_anti_affinity: Some(apart), ..Affinity::default() });
            let outcome = fixture.validate(&ENTRY, &create("", "pods"), &pod).await;
            assert_eq!(outcome.is_ok(), passes, "{key}: {outcome:?}");
        }
    }
}
