//! Keeps attributes classes that volumes or claims name from going: a finalizer is taken away once nobody needs them.

use std::sync::Arc;

use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::storage_v1::VolumeAttributesClass;
use client::{Change, Informer, ObjectKey};
use component_base::Feature;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::storage_protection::{Plan, plan, unless_gone};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "volumeattributesclass-protection-controller",
    aliases: &[],
    gates: &[Feature::named("VolumeAttributesClass")],
    identity: "volumeattributesclass-protection-controller",
    event_component: "volumeattributesclass-protection-controller",
    disabled_by_default: false,
    build,
};

const FINALIZER: &str = "kubernetes.io/vac-protection";
/// Index of volumes and claims by the classes that they name.
const BY_CLASS: &str = "attributes-classes";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("vacprotection");
    let wanting = |change: &Change<VolumeAttributesClass>| {
        let needed = !change.is_deleted() && plan(&change.object().metadata, FINALIZER) != Plan::Nothing;
        needed.then(|| change.key())
    };
    let classes = build.watch::<VolumeAttributesClass>().enqueue_keys(&queue, wanting).informer();
    let of_volume = |change: &Change<PersistentVolume>| released(change, classes_of_volume);
    let volumes = build.watch::<PersistentVolume>().index(BY_CLASS, classes_of_volume);
    let volumes = volumes.enqueue_keys(&queue, of_volume).informer();
    let of_claim = |change: &Change<PersistentVolumeClaim>| released(change, classes_of_claim);
    let claims = build.watch::<PersistentVolumeClaim>().index(BY_CLASS, classes_of_claim);
    let claims = claims.enqueue_keys(&queue, of_claim).informer();
    build.run(&queue, 1, Arc::new(Protection { classes, volumes, claims }));
    Ok(())
}

/// The classes that an object named before a change and does not name after it.
fn released<T>(change: &Change<T>, named: fn(&T) -> Vec<String>) -> Vec<ObjectKey> {
    let (before, after) = match change {
        Change::Added { .. } => return Vec::new(),
        Change::Updated { old, new } => (named(old), named(new)),
        Change::Deleted { object, .. } => (named(object), Vec::new()),
    };
    let dropped = before.into_iter().filter(|class| !after.contains(class));
    dropped.map(|class| ObjectKey::new(String::new(), class)).collect()
}

fn classes_of_volume(volume: &PersistentVolume) -> Vec<String> {
    present([volume.spec.volume_attributes_class_name.as_deref()])
}

/// What a claim asks for, what its volume has, and what the volume is being changed to.
fn classes_of_claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    let (spec, status) = (&claim.spec, &claim.status);
    let target = status.modify_volume_status.as_ref().map(|modify| modify.target_volume_attributes_class_name.as_str());
    let current = status.current_volume_attributes_class_name.as_deref();
    present([spec.volume_attributes_class_name.as_deref(), current, target])
}

fn present<const N: usize>(names: [Option<&str>; N]) -> Vec<String> {
    let mut names: Vec<String> =
        names.into_iter().flatten().filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

struct Protection {
    classes: Informer<VolumeAttributesClass>,
    volumes: Informer<PersistentVolume>,
    claims: Informer<PersistentVolumeClaim>,
}

impl Protection {
    fn is_used(&self, class: &str) -> bool {
        !self.volumes.by_index(BY_CLASS, class).is_empty() || !self.claims.by_index(BY_CLASS, class).is_empty()
    }
}

#[async_trait::async_trait]
impl Controller for Protection {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(class) = self.classes.get(key) else { return Ok(Next::Done) };
        let mut next = VolumeAttributesClass::clone(&class);
        match plan(&class.metadata, FINALIZER) {
            Plan::Nothing => return Ok(Next::Done),
            Plan::Remove if self.is_used(&key.name) => return Ok(Next::Done),
            Plan::Remove => next.metadata.finalizers.retain(|own| own != FINALIZER),
            Plan::Add => next.metadata.finalizers.push(FINALIZER.to_owned()),
        }
        unless_gone(cx.client.all::<VolumeAttributesClass>().update(&next).await)
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ModifyVolumeStatus;

    use super::*;

    fn claim(asked: Option<&str>, current: Option<&str>, target: Option<&str>) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        claim.spec.volume_attributes_class_name = asked.map(str::to_owned);
        claim.status.current_volume_attributes_class_name = current.map(str::to_owned);
        claim.status.modify_volume_status = target.map(|target| ModifyVolumeStatus {
            target_volume_attributes_class_name: target.to_owned(),
            ..ModifyVolumeStatus::default()
        });
        claim
    }

    #[test]
    fn a_class_is_looked_at_again_once_somebody_does_not_name_it_any_more() {
        let (all, one) = (claim(Some("a"), Some("b"), Some("c")), claim(Some("c"), Some("c"), None));
        let updated = |old: &PersistentVolumeClaim, new: &PersistentVolumeClaim| Change::Updated {
            old: Arc::new(old.clone()),
            new: Arc::new(new.clone()),
        };
        let cases = [
            (Change::Added { object: Arc::new(all.clone()), initial: false }, vec![]),
            (updated(&all, &one), vec!["a", "b"]),
            (updated(&one, &all), vec![]),
            (Change::Deleted { object: Arc::new(one.clone()), stale: false }, vec!["c"]),
            (Change::Deleted { object: Arc::new(claim(None, Some(""), None)), stale: false }, vec![]),
        ];
        for (change, expected) in cases {
            let keys = released(&change, classes_of_claim);
            assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), expected, "{change:?}");
        }
    }
}
