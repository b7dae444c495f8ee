//! Keeps volumes that are bound, and claims that pods use, from going: a finalizer is taken away once nobody needs them.

use std::sync::Arc;

use api_machinery::meta::{ListOptions, ObjectMeta};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use client::{Change, Informer, ObjectKey};
use component_base::Feature;
use component_helpers::pod_state;
use component_helpers::volumes::of_pods;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::unused_claims::{self, UNUSED_SINCE};
use super::{PODS_BY_CLAIM, keys_of_claims};

/// The gate that the protection of claims asks.
pub(crate) const GATES: &[Feature] = &[UNUSED_SINCE];

pub(crate) const CLAIMS: Descriptor = Descriptor {
    name: "persistentvolumeclaim-protection-controller",
    aliases: &["pvc-protection"],
    gates: &[],
    identity: "pvc-protection-controller",
    event_component: "pvc-protection-controller",
    disabled_by_default: false,
    build: build_claims,
};

pub(crate) const VOLUMES: Descriptor = Descriptor {
    name: "persistentvolume-protection-controller",
    aliases: &["pv-protection"],
    gates: &[],
    identity: "pv-protection-controller",
    event_component: "pv-protection-controller",
    disabled_by_default: false,
    build: build_volumes,
};

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// What an object's finalizer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    Nothing,
    Add,
    /// If nothing uses the object.
    Remove,
}

pub(crate) fn plan(meta: &ObjectMeta, finalizer: &str) -> Plan {
    let protected = meta.finalizers.iter().any(|own| own == finalizer);
    match (meta.deletion_timestamp.is_some(), protected) {
        (true, true) => Plan::Remove,
        (false, false) => Plan::Add,
        _ => Plan::Nothing,
    }
}

fn build_claims(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("pvcprotection");
    let tells_unused = build.gates().enabled(UNUSED_SINCE);
    let wanting = move |change: &Change<PersistentVolumeClaim>| {
        let has_work = |meta| tells_unused || plan(meta, CLAIM_FINALIZER) != Plan::Nothing;
        (!change.is_deleted() && has_work(&change.object().metadata)).then(|| change.key())
    };
    let claims = build.watch::<PersistentVolumeClaim>().enqueue_keys(&queue, wanting).informer();
    let released = move |change: &Change<Pod>| {
        let pod = change.object();
        if change.is_deleted() || frees(pod) || tells_unused { claims_of(pod) } else { Vec::new() }
    };
    let pods = build.watch::<Pod>().index(PODS_BY_CLAIM, keys_of_claims).enqueue_keys(&queue, released).informer();
    build.run(&queue, 1, Arc::new(Claims { claims, pods, tells_unused }));
    Ok(())
}

/// The claims that a pod names, or has made for it.
fn claims_of(pod: &Pod) -> Vec<ObjectKey> {
    let namespace = &pod.metadata.namespace;
    of_pods::claim_names(pod).map(|name| ObjectKey::new(namespace.clone(), name)).collect()
}

/// Whether a change of the pod can be what lets its claims go: nothing of it runs, or nobody has ever run it.
fn frees(pod: &Pod) -> bool {
    pod_state::is_terminated(pod) || pod.spec.node_name.is_empty()
}

/// Whether a pod keeps the claim: it has been given to a node, and not yet let go.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    if pod.spec.node_name.is_empty() {
        return false;
    }
    let over = pod.metadata.deletion_timestamp.is_some() && pod.metadata.deletion_grace_period_seconds == Some(0);
    let name = &claim.metadata.name;
    pod.spec.volumes.iter().any(|volume| {
        let has_it = of_pods::claim_name(pod, volume).is_some_and(|own| own == *name);
        has_it && (volume.volume_source.ephemeral.is_none() || (!over && of_pods::check_owner(pod, claim).is_ok()))
    })
}

struct Claims {
    claims: Informer<PersistentVolumeClaim>,
    pods: Informer<Pod>,
    /// Whether claims tell since when nobody has used them.
    tells_unused: bool,
}

impl Claims {
    /// Writes whether pods name a claim that is to stay as it is, if that has changed.
    async fn tell(&self, cx: &Cx, key: &ObjectKey, claim: &PersistentVolumeClaim) -> Result<Next, ReconcileError> {
        if !self.tells_unused || claim.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let pods = self.pods.by_index(PODS_BY_CLAIM, &key.to_string());
        let Some(next) = unused_claims::told(claim, &pods, cx.clock.wall().into()) else { return Ok(Next::Done) };
        unless_gone(cx.client.namespaced::<PersistentVolumeClaim>(&key.namespace).update_status(&next).await)
    }

    async fn is_used(&self, cx: &Cx, claim: &PersistentVolumeClaim) -> Result<bool, ReconcileError> {
        let key = ObjectKey::of(&claim.metadata);
        if self.pods.by_index(PODS_BY_CLAIM, &key.to_string()).iter().any(|pod| uses(pod, claim)) {
            return Ok(true);
        }
        // The cache may not have heard of a pod that was just made.
        let live = cx.client.namespaced::<Pod>(&key.namespace).list_all(&ListOptions::default()).await?;
        Ok(live.items.iter().any(|pod| uses(pod, claim)))
    }
}

#[async_trait::async_trait]
impl Controller for Claims {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(claim) = self.claims.get(key) else { return Ok(Next::Done) };
        let mut next = PersistentVolumeClaim::clone(&claim);
        match plan(&claim.metadata, CLAIM_FINALIZER) {
            Plan::Nothing => return self.tell(cx, key, &claim).await,
            Plan::Remove if self.is_used(cx, &claim).await? => return Ok(Next::Done),
            Plan::Remove => next.metadata.finalizers.retain(|own| own != CLAIM_FINALIZER),
            Plan::Add => next.metadata.finalizers.push(CLAIM_FINALIZER.to_owned()),
        }
        unless_gone(cx.client.namespaced::<PersistentVolumeClaim>(&key.namespace).update(&next).await)
    }
}

fn build_volumes(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("pvprotection");
    let wanting = |change: &Change<PersistentVolume>| {
        let needed = !change.is_deleted() && plan(&change.object().metadata, VOLUME_FINALIZER) != Plan::Nothing;
        needed.then(|| change.key())
    };
    let volumes = build.watch::<PersistentVolume>().enqueue_keys(&queue, wanting).informer();
    build.run(&queue, 1, Arc::new(Volumes { volumes }));
    Ok(())
}

struct Volumes {
    volumes: Informer<PersistentVolume>,
}

#[async_trait::async_trait]
impl Controller for Volumes {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(volume) = self.volumes.get(key) else { return Ok(Next::Done) };
        let mut next = PersistentVolume::clone(&volume);
        match plan(&volume.metadata, VOLUME_FINALIZER) {
            Plan::Nothing => return Ok(Next::Done),
            Plan::Remove if volume.status.phase == "Bound" => return Ok(Next::Done),
            Plan::Remove => next.metadata.finalizers.retain(|own| own != VOLUME_FINALIZER),
            Plan::Add => next.metadata.finalizers.push(VOLUME_FINALIZER.to_owned()),
        }
        unless_gone(cx.client.all::<PersistentVolume>().update(&next).await)
    }
}

/// An object that is gone needs nothing more.
pub(crate) fn unless_gone<T>(written: Result<T, client::ClientError>) -> Result<Next, ReconcileError> {
    match written {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(Next::Done),
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{PersistentVolumeClaimVolumeSource, Volume};

    use super::*;

    #[test]
    fn finalizers_come_and_go() {
        for (deleting, finalizers, expected) in [
            (false, vec![], Plan::Add),
            (false, vec!["f"], Plan::Nothing),
            (true, vec!["f"], Plan::Remove),
            (true, vec!["other"], Plan::Nothing),
        ] {
            let meta = ObjectMeta {
                finalizers: finalizers.iter().map(|own| (*own).to_owned()).collect(),
                deletion_timestamp: deleting.then(|| api_machinery::time::Time::from_unix_seconds(1)),
                ..ObjectMeta::default()
            };
            assert_eq!(plan(&meta, "f"), expected, "{deleting} {finalizers:?}");
        }
    }

    #[test]
    fn claims_are_looked_at_once_nothing_of_a_pod_runs() {
        let on_node = |phase: &str, deleting: bool| {
            let mut pod = Pod::default();
            (pod.spec.node_name, pod.status.phase) = ("n".into(), phase.into());
            pod.metadata.deletion_timestamp = deleting.then(|| api_machinery::time::Time::from_unix_seconds(1));
            pod
        };
        for (pod, expected) in [
            (Pod::default(), true),
            (on_node("Running", false), false),
            (on_node("Succeeded", false), true),
            (on_node("Running", true), true),
        ] {
            assert_eq!(frees(&pod), expected, "{} {:?}", pod.status.phase, pod.metadata.deletion_timestamp);
        }
    }

    #[test]
    fn a_pod_on_a_node_uses_its_claims() {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = "data".into();
        let mut pod = Pod::default();
        let source = PersistentVolumeClaimVolumeSource { claim_name: "data".into(), ..Default::default() };
        let mut volume = Volume::default();
        volume.volume_source.persistent_volume_claim = Some(source);
        pod.spec.volumes.push(volume);
        assert!(!uses(&pod, &claim), "nobody runs it");
        pod.spec.node_name = "n".into();
        assert!(uses(&pod, &claim));
        pod.status.phase = "Succeeded".into();
        assert!(uses(&pod, &claim), "also when it has ended, until it is deleted");
        claim.metadata.name = "other".into();
        assert!(!uses(&pod, &claim));
    }
}
