//! Volumes that are to grow: says who will do that. All growing is done by drivers' resizers, which write the claim's
//! status; of claims whose volume's plugin has left the tree the resizer is named.
//!
//! Deliberately not here: FlexVolume, the one plugin that upstream's kube-controller-manager grows itself.

use std::sync::Arc;

use api_machinery::value::Value;
use api_types::core_v1::constants::persistent_volume_claim_phase as phase;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use client::{Change, Informer, ObjectKey, Patch};
use component_helpers::volumes::matching::storage;
use component_helpers::volumes::names::{PRE_RESIZE_CAPACITY, STORAGE_RESIZER, migrated_driver};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::notice::Notice;
use super::plugins;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "persistentvolume-expander-controller",
    aliases: &["persistentvolume-expander"],
    gates: &[],
    identity: "expand-controller",
    event_component: "volume_expand",
    disabled_by_default: false,
    build,
};

const WORKERS: usize = 10;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("volume_expand");
    let grown = |change: &Change<PersistentVolumeClaim>| is_of_interest(change).then(|| change.key());
    let claims = build.watch::<PersistentVolumeClaim>().enqueue_keys(&queue, grown).informer();
    let volumes = build.watch::<PersistentVolume>().informer();
    build.run(&queue, WORKERS, Arc::new(Expander { claims, volumes }));
    Ok(())
}

/// Whether a bound claim came, went, asks for more or has more.
fn is_of_interest(change: &Change<PersistentVolumeClaim>) -> bool {
    let claim = change.object();
    let sizes = |claim: &PersistentVolumeClaim| {
        (storage(&claim.spec.resources.requests).clone(), storage(&claim.status.capacity).clone())
    };
    let has_grown = change.old().is_none_or(|old| {
        let ((asked_before, had_before), (asked, has)) = (sizes(old), sizes(claim));
        asked > asked_before || has > had_before
    });
    claim.status.phase == phase::BOUND && has_grown
}

/// What is to be done for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    /// It has what it asks for.
    Nothing,
    /// Its driver's resizer looks after it by itself.
    External,
    /// The resizer of the driver that took over from this plugin has to be told.
    Migrated { plugin: &'static str, driver: &'static str },
}

/// # Errors
/// When claim and volume do not belong together.
fn plan(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<Plan, ReconcileError> {
    let is_ours = volume
        .spec
        .claim_ref
        .as_ref()
        .is_some_and(|named| named.namespace == claim.metadata.namespace && named.uid == claim.metadata.uid);
    if !is_ours {
        let key = ObjectKey::of(&claim.metadata);
        return Err(ReconcileError::failed(format!("persistent Volume is not bound to PVC being updated : {key}")));
    }
    let is_growing = volume.metadata.annotations.contains_key(PRE_RESIZE_CAPACITY);
    if storage(&claim.spec.resources.requests) <= storage(&claim.status.capacity) && !is_growing {
        return Ok(Plan::Nothing);
    }
    let plugin = plugins::migrated_plugin_of(&volume.spec.persistent_volume_source);
    let migrated = plugin.and_then(|plugin| Some(Plan::Migrated { plugin, driver: migrated_driver(plugin)? }));
    Ok(migrated.unwrap_or(Plan::External))
}

struct Expander {
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
}

impl Expander {
    async fn name_resizer(&self, cx: &Cx, claim: &PersistentVolumeClaim, driver: &str) -> Result<(), ReconcileError> {
        let meta = &claim.metadata;
        if meta.annotations.get(STORAGE_RESIZER).is_some_and(|own| own == driver) {
            return Ok(());
        }
        let mut body = Value::Object(Default::default());
        body["metadata"]["resourceVersion"] = meta.resource_version.clone().into();
        body["metadata"]["annotations"][STORAGE_RESIZER] = driver.into();
        let api = cx.client.namespaced::<PersistentVolumeClaim>(&meta.namespace);
        api.patch_status(&meta.name, &Patch::Strategic(body)).await?;
        Ok(())
    }
}

#[async_trait::async_trait]
impl Controller for Expander {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(claim) = self.claims.get(key) else { return Ok(Next::Done) };
        let name = &claim.spec.volume_name;
        // Each claim that is bound comes here, and most of them have what they ask for: nobody need be asked about those.
        let seen = self.volumes.find("", name);
        if seen.is_some_and(|volume| plan(&claim, &volume).is_ok_and(|plan| plan == Plan::Nothing)) {
            return Ok(Next::Done);
        }
        let volume = cx.client.all::<PersistentVolume>().get(name).await;
        let volume = volume.map_err(|error| ReconcileError::failed(format!("failed to get PV \"{name}\": {error}")))?;
        match plan(&claim, &volume)? {
            Plan::Nothing => {}
            Plan::External => {
                let message = "waiting for an external controller to expand this PVC";
                Notice::normal("ExternalExpanding", message).tell(cx, &*claim);
            }
            Plan::Migrated { plugin, driver } => {
                let message =
                    format!("CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc");
                Notice::normal("ExternalExpanding", message).tell(cx, &*claim);
                self.name_resizer(cx, &claim, driver).await?;
            }
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{AWSElasticBlockStoreVolumeSource, CSIPersistentVolumeSource, ObjectReference};

    use super::*;
    use crate::workloads::fixtures::{Running, meta, run_until_idle};

    const CLAIMS_AT: &str = "v1/persistentvolumeclaims";

    fn claim(asked: &str, has: &str) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim { metadata: meta("c"), ..PersistentVolumeClaim::default() };
        claim.spec.volume_name = "v".into();
        claim.spec.resources.requests.insert("storage".into(), asked.parse().unwrap());
        claim.status.capacity.insert("storage".into(), has.parse().unwrap());
        claim.status.phase = "Bound".into();
        claim
    }

    fn volume(uid: &str) -> PersistentVolume {
        let mut volume = PersistentVolume { metadata: meta("v"), ..PersistentVolume::default() };
        volume.metadata.namespace.clear();
        let named = ObjectReference { namespace: "ns".into(), name: "c".into(), uid: uid.into(), ..Default::default() };
        volume.spec.claim_ref = Some(named);
        volume.spec.persistent_volume_source.csi = Some(CSIPersistentVolumeSource::default());
        volume
    }

    /// A volume that a plugin in the tree once made.
    fn old() -> PersistentVolume {
        let mut old = volume("c-uid");
        old.spec.persistent_volume_source.csi = None;
        old.spec.persistent_volume_source.aws_elastic_block_store = Some(AWSElasticBlockStoreVolumeSource::default());
        old
    }

    #[test]
    fn plans() {
        let mut growing = volume("c-uid");
        growing.metadata.annotations.insert(PRE_RESIZE_CAPACITY.into(), "1Gi".into());
        let migrated = Plan::Migrated { plugin: "kubernetes.io/aws-ebs", driver: "ebs.csi.aws.com" };
        for (name, claim, volume, expected) in [
            ("as asked", claim("1Gi", "1Gi"), volume("c-uid"), Plan::Nothing),
            ("more", claim("1Gi", "2Gi"), volume("c-uid"), Plan::Nothing),
            ("grows", claim("2Gi", "1Gi"), volume("c-uid"), Plan::External),
            ("is growing", claim("1Gi", "1Gi"), growing, Plan::External),
            ("migrated", claim("2Gi", "1Gi"), old(), migrated),
        ] {
            assert_eq!(plan(&claim, &volume).unwrap(), expected, "{name}");
        }
        let error = plan(&claim("2Gi", "1Gi"), &volume("other")).unwrap_err();
        assert_eq!(error.to_string(), "persistent Volume is not bound to PVC being updated : ns/c");
    }

    #[test]
    fn only_growth_is_looked_at() {
        let mut waiting = claim("2Gi", "1Gi");
        waiting.status.phase = "Pending".into();
        let (small, asks, has) = (claim("1Gi", "1Gi"), claim("2Gi", "1Gi"), claim("2Gi", "2Gi"));
        let updated = |old: &PersistentVolumeClaim, new: &PersistentVolumeClaim| Change::Updated {
            old: Arc::new(old.clone()),
            new: Arc::new(new.clone()),
        };
        for (name, change, expected) in [
            ("added", Change::Added { object: Arc::new(small.clone()), initial: true }, true),
            ("not bound", Change::Added { object: Arc::new(waiting.clone()), initial: true }, false),
            ("asks for more", updated(&small, &asks), true),
            ("has more", updated(&asks, &has), true),
            ("nothing new", updated(&asks, &asks), false),
            ("shrinks", updated(&asks, &small), false),
        ] {
            assert_eq!(is_of_interest(&change), expected, "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn resizers_are_waited_for_and_named() {
        let run = Running::start(&[DESCRIPTOR]);
        run.put("v1/persistentvolumes", &old());
        run.put(CLAIMS_AT, &claim("1Gi", "1Gi"));
        run_until_idle().await;
        assert_eq!(run.count("v1/events"), 0);
        assert_eq!(run.requests("GET", "/persistentvolumes/v"), 0, "nothing is asked about what does not grow");
        run.put(CLAIMS_AT, &claim("2Gi", "1Gi"));
        run_until_idle().await;
        let event = run.server.objects("v1/events").remove(0);
        let message = "CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand the pvc";
        assert_eq!((&event["reason"], &event["message"]), (&"ExternalExpanding".into(), &message.into()));
        assert_eq!(run.server.objects(CLAIMS_AT)[0]["metadata"]["annotations"][STORAGE_RESIZER], "ebs.csi.aws.com");
        assert_eq!(run.requests("GET", "/persistentvolumes/v"), 1);
        assert_eq!(run.requests("PATCH", "/persistentvolumeclaims/c/status"), 1);
        run.assert_steady().await;
    }
}
