//! AlwaysPullImages: images are pulled for every pod, so that only who may pull an image can use what is on the node.

use std::collections::BTreeSet;

use api_machinery::field_path::{FieldError, Path};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::{Pod, PodSpec};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "AlwaysPullImages",
    enabled_by_default: false,
    passes: Passes::Both,
    reads: &[],
    configuration: None,
    build: |_| Box::new(AlwaysPullImages),
};

const ALWAYS: &str = "Always";

struct AlwaysPullImages;

#[async_trait]
impl Plugin for AlwaysPullImages {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is("", "pods") && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    async fn mutate(
        &self,
        _: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        if !has_new_images(pod, old) {
            return Ok(());
        }
        let spec = &mut pod.spec;
        for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
            ALWAYS.clone_into(&mut container.image_pull_policy);
        }
        for container in &mut spec.ephemeral_containers {
            ALWAYS.clone_into(&mut container.ephemeral_container_common.image_pull_policy);
        }
        for image in spec.volumes.iter_mut().filter_map(|volume| volume.volume_source.image.as_mut()) {
            ALWAYS.clone_into(&mut image.pull_policy);
        }
        Ok(())
    }

    async fn validate(
        &self,
        _: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_ref::<Pod>()) else { return Ok(()) };
        if !has_new_images(pod, old) {
            return Ok(());
        }
        let errors: Vec<String> =
            other_policies(&pod.spec).iter().map(|error| attributes.forbidden(error).message).collect();
        // Upstream hands the list on as it is, which is no refusal of a client but an error of the server.
        match errors.as_slice() {
            [] => Ok(()),
            [only] => Err(ApiError::unclassified(only.clone())),
            all => Err(ApiError::unclassified(format!("[{}]", all.join(", ")))),
        }
    }
}

/// Whether a pod has an image that it did not have before.
fn has_new_images(pod: &Pod, old: Option<&dyn Object>) -> bool {
    let Some(old) = old.and_then(|old| old.downcast_ref::<Pod>()) else { return true };
    let before: BTreeSet<&str> = images(&old.spec).collect();
    images(&pod.spec).any(|image| !before.contains(image))
}

fn images(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let ephemeral = spec.ephemeral_containers.iter().map(|own| own.ephemeral_container_common.image.as_str());
    let others = spec.init_containers.iter().chain(&spec.containers);
    others.map(|container| container.image.as_str()).chain(ephemeral)
}

/// Every policy that is not `Always`.
fn other_policies(spec: &PodSpec) -> Vec<FieldError> {
    let path = Path::new("spec");
    let of_containers = [("initContainers", &spec.init_containers), ("containers", &spec.containers)];
    let listed = of_containers.into_iter().flat_map(|(list, containers)| {
        containers.iter().enumerate().map(move |(index, container)| (list, index, &container.image_pull_policy))
    });
    let ephemeral = spec.ephemeral_containers.iter().enumerate();
    let ephemeral =
        ephemeral.map(|(index, own)| ("ephemeralContainers", index, &own.ephemeral_container_common.image_pull_policy));
    let containers = listed
        .chain(ephemeral)
        .map(|(list, index, policy)| (path.child(list).index(index).child("imagePullPolicy"), policy));
    let volumes = spec.volumes.iter().enumerate().filter_map(|(index, volume)| {
        let image = volume.volume_source.image.as_ref()?;
        Some((path.child("volumes").index(index).child("image").child("pullPolicy"), &image.pull_policy))
    });
    let wrong = containers.chain(volumes).filter(|(_, policy)| *policy != ALWAYS);
    wrong.map(|(path, policy)| path.not_supported(policy.as_str(), &[ALWAYS])).collect()
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{Container, ImageVolumeSource, Volume};

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn pod(policy: &str) -> Pod {
        let mut pod = Pod::default();
        let container = Container { image: "i".into(), image_pull_policy: policy.into(), ..Container::default() };
        pod.spec.containers = vec![container.clone()];
        pod.spec.init_containers = vec![container];
        let mut volume = Volume::default();
        volume.volume_source.image =
            Some(Box::new(ImageVolumeSource { pull_policy: policy.into(), ..ImageVolumeSource::default() }));
        pod.spec.volumes = vec![volume];
        pod
    }

    #[tokio::test]
    async fn all_images_are_pulled() {
        let fixture = Fixture::default();
        let mut pod = pod("Never");
        let error = fixture.validate(&ENTRY, &create("", "pods"), &pod).await.unwrap_err();
        let text = "pods \"x\" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"";
        assert!(error.code == 500 && error.message.contains(text), "{error:?}");
        assert!(error.message.contains("spec.volumes[0].image.pullPolicy"), "{error:?}");
        for _ in 0..2 {
            fixture.mutate(&ENTRY, &create("", "pods"), &mut pod).await.unwrap();
            fixture.validate(&ENTRY, &create("", "pods"), &pod).await.unwrap();
        }
    }

    #[tokio::test]
    async fn updates_without_new_images_pass() {
        let fixture = Fixture::default();
        let update = Attributes { operation: Operation::Update, ..create("", "pods") };
        let (old, mut new) = (pod("Never"), pod("Never"));
        fixture.validate_update(&ENTRY, &update, &new, &old).await.unwrap();
        new.spec.containers[0].image = "other".into();
        assert!(fixture.validate_update(&ENTRY, &update, &new, &old).await.is_err());
    }
}
