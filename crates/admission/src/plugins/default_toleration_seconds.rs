//! DefaultTolerationSeconds: pods stay five minutes on a node that is not ready or unreachable, unless they say
//! otherwise.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::{Pod, Toleration};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry, Settings};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "DefaultTolerationSeconds",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[],
    configuration: None,
    build: |settings| Box::new(DefaultTolerationSeconds(settings.clone())),
};

struct DefaultTolerationSeconds(Settings);

#[async_trait]
impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is("", "pods") && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    async fn mutate(
        &self,
        _: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        let tolerations = &mut pod.spec.tolerations;
        tolerate(tolerations, "node.kubernetes.io/not-ready", self.0.not_ready_toleration_seconds);
        tolerate(tolerations, "node.kubernetes.io/unreachable", self.0.unreachable_toleration_seconds);
        Ok(())
    }
}

fn tolerate(tolerations: &mut Vec<Toleration>, key: &str, seconds: i64) {
    let covers = |toleration: &Toleration| {
        (toleration.key.is_empty() || toleration.key == key) && matches!(toleration.effect.as_str(), "" | "NoExecute")
    };
    if !tolerations.iter().any(covers) {
        tolerations.push(Toleration {
            key: key.into(),
            operator: "Exists".into(),
            effect: "NoExecute".into(),
            toleration_seconds: Some(seconds),
            ..Toleration::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn both_are_added_once() {
        let fixture = Fixture::default();
        let mut pod = Pod::default();
        pod.spec.tolerations.push(Toleration { key: "node.kubernetes.io/unreachable".into(), ..Toleration::default() });
        for _ in 0..2 {
            fixture.mutate(&ENTRY, &create("", "pods"), &mut pod).await.unwrap();
        }
        let keys: Vec<&str> = pod.spec.tolerations.iter().map(|toleration| toleration.key.as_str()).collect();
        assert_eq!(keys, ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"]);
    }
}
