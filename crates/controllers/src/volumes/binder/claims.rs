//! What a claim wants next.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::constants::persistent_volume_claim_phase as phase;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use client::ObjectKey;
use component_helpers::pod_state;
use component_helpers::volumes::classes;
use component_helpers::volumes::matching::{Misfit, NodeScope, best_match, misfit, names_claim, offers_access_modes};
use component_helpers::volumes::names::{BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE};
use controller::{Cx, ReconcileError};

use super::giving::Given;
use super::{BY_CLAIM, Binder, FREE_BY_CLASS, key_of};
use crate::volumes::PODS_BY_CLAIM;
use crate::volumes::notice::Notice;

/// What is to be done for a claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// To be tied to this volume, or what is left of that.
    Bind(Arc<PersistentVolume>),
    /// To wait, and to be told why.
    Wait(Option<Notice>),
    /// To be said lost, and to be told why the first time.
    Lose(Notice),
    /// To get the default class.
    TakeClass(String),
    /// To have a volume made for it.
    Provision,
    /// To be told what nobody can mend but a user, and looked at again.
    Refuse(Notice, String),
}

/// What a claim without a volume sees around it.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The volume that fits best.
    pub(super) best: Option<Arc<PersistentVolume>>,
    /// Whether its class has it wait for a pod.
    pub(super) is_delayed: bool,
    /// The default class.
    pub(super) default_class: Option<String>,
    /// The pods that have it and are not placed yet.
    pub(super) unplaced_pods: Vec<String>,
}

/// For a claim that nobody has given a volume.
pub(super) fn plan_free(claim: &PersistentVolumeClaim, seen: Seen) -> Plan {
    if let Some(volume) = seen.best {
        return Plan::Bind(volume);
    }
    if let Some(class) = seen.default_class.filter(|_| !classes::names_class(claim)) {
        return Plan::TakeClass(class);
    }
    if seen.is_delayed && !claim.metadata.annotations.contains_key(SELECTED_NODE) {
        return Plan::Wait(Some(wait_for_pods(&seen.unplaced_pods)));
    }
    if !classes::class_of_claim(claim).is_empty() {
        return Plan::Provision;
    }
    let message = "no persistent volumes available for this claim and no storage class is set";
    Plan::Wait(Some(Notice::normal("FailedBinding", message)))
}

fn wait_for_pods(pods: &[String]) -> Notice {
    let message = match pods {
        [] => {
            let message = "waiting for first consumer to be created before binding";
            return Notice::normal("WaitForFirstConsumer", message);
        }
        [pod] => format!("waiting for pod {pod} to be scheduled"),
        pods => format!("waiting for pods {} to be scheduled", pods.join(",")),
    };
    Notice::normal("WaitForPodScheduled", message)
}

/// For a claim that names a volume, but is not known to have been bound.
pub(super) fn plan_chosen(claim: &PersistentVolumeClaim, volume: Option<Arc<PersistentVolume>>) -> Plan {
    let Some(volume) = volume else { return Plan::Wait(None) };
    let name = &volume.metadata.name;
    let Some(taker) = &volume.spec.claim_ref else {
        return match misfit(&volume, claim) {
            None => Plan::Bind(volume),
            Some(misfit) => {
                let message = format!("Cannot bind to requested volume \"{name}\": {}", why(misfit, name));
                Plan::Wait(Some(Notice::warning("VolumeMismatch", message)))
            }
        };
    };
    if names_claim(&volume, claim) {
        return Plan::Bind(volume);
    }
    let told = Notice::warning("FailedBinding", format!("volume \"{name}\" already bound to a different claim."));
    if !claim.metadata.annotations.contains_key(BOUND_BY_CONTROLLER) {
        return Plan::Wait(Some(told));
    }
    let (own, other) = (ObjectKey::of(&claim.metadata), key_of(taker));
    let error =
        format!("invalid binding of claim \"{own}\" to volume \"{name}\": volume already claimed by \"{other}\"");
    Plan::Refuse(told, error)
}

fn why(misfit: Misfit, volume: &str) -> String {
    match misfit {
        Misfit::Deleting => format!("the volume is marked for deletion \"{volume}\""),
        Misfit::TooSmall => "requested PV is too small".to_owned(),
        Misfit::Class => "storageClassName does not match".to_owned(),
        Misfit::AttributesClass => "volumeAttributesClassName does not match".to_owned(),
        Misfit::VolumeMode => "incompatible volumeMode".to_owned(),
        Misfit::AccessModes => "incompatible accessMode".to_owned(),
    }
}

/// For a claim that was bound once.
pub(super) fn plan_bound(claim: &PersistentVolumeClaim, volume: Option<Arc<PersistentVolume>>) -> Plan {
    let lost = |what: &str| {
        Plan::Lose(Notice::warning("ClaimLost", format!("Bound claim has lost {what}. Data on the volume is lost!")))
    };
    if claim.spec.volume_name.is_empty() {
        return lost("reference to PersistentVolume");
    }
    let Some(volume) = volume else { return lost("its PersistentVolume") };
    match &volume.spec.claim_ref {
        Some(taker) if taker.uid != claim.metadata.uid => {
            let message = "Two claims are bound to the same volume, this one is bound incorrectly";
            Plan::Lose(Notice::warning("ClaimMisbound", message))
        }
        _ => Plan::Bind(volume),
    }
}

impl Binder {
    pub(super) async fn sync_claim(&self, cx: &Cx, claim: Arc<PersistentVolumeClaim>) -> Result<(), ReconcileError> {
        let claim = self.mark_migrated_claim(cx, claim).await?;
        let (plan, _given) = self.plan_alone(&claim)?;
        match plan {
            Plan::Bind(volume) => {
                let bound = self.bind(cx, &claim, volume).await;
                self.metrics.ended(&ObjectKey::of(&claim.metadata), bound.is_ok());
                bound
            }
            Plan::Wait(notice) => {
                if let Some(notice) = notice {
                    notice.tell(cx, &*claim);
                }
                self.set_claim_status(cx, claim, phase::PENDING, None).await.map(drop)
            }
            Plan::Lose(_) if claim.status.phase == phase::LOST => Ok(()),
            Plan::Lose(notice) => {
                let claim = self.set_claim_status(cx, claim, phase::LOST, None).await?;
                notice.tell(cx, &*claim);
                Ok(())
            }
            Plan::TakeClass(class) => self.take_class(cx, &claim, class).await,
            Plan::Provision => self.provision(cx, claim).await,
            Plan::Refuse(notice, error) => {
                notice.tell(cx, &*claim);
                Err(ReconcileError::failed(error))
            }
        }
    }

    /// A plan that no other worker has for the same free volume, for as long as what comes with it is held.
    fn plan_alone(&self, claim: &PersistentVolumeClaim) -> Result<(Plan, Option<Given<'_>>), ReconcileError> {
        loop {
            let plan = self.plan_claim(claim)?;
            let Plan::Bind(volume) = &plan else { return Ok((plan, None)) };
            if volume.spec.claim_ref.is_some() || !claim.spec.volume_name.is_empty() {
                return Ok((plan, None));
            }
            // Where another one was quicker, there is another volume, or none.
            if let Some(given) = self.giving.begin(&volume.metadata.name) {
                return Ok((plan, Some(given)));
            }
        }
    }

    fn plan_claim(&self, claim: &PersistentVolumeClaim) -> Result<Plan, ReconcileError> {
        let name = &claim.spec.volume_name;
        let volume = (!name.is_empty()).then(|| self.volumes.get(&ObjectKey::cluster(name))).flatten();
        if claim.metadata.annotations.contains_key(BIND_COMPLETED) {
            return Ok(plan_bound(claim, volume));
        }
        if !name.is_empty() {
            return Ok(plan_chosen(claim, volume));
        }
        Ok(plan_free(claim, self.look_around(claim)?))
    }

    fn look_around(&self, claim: &PersistentVolumeClaim) -> Result<Seen, ReconcileError> {
        let class = self.classes.find("", classes::class_of_claim(claim));
        let is_delayed = class.map(|class| classes::waits_for_consumer(&class)).transpose();
        let is_delayed = is_delayed.map_err(|error| ReconcileError::failed(error.to_string()))?.unwrap_or_default();
        let best = self.best_volume(claim, is_delayed)?;
        if best.is_some() {
            return Ok(Seen { best, ..Seen::default() });
        }
        let of_cluster = || classes::default_class(self.classes.list()).map(|class| class.metadata.name.clone());
        let default_class = if classes::names_class(claim) { None } else { of_cluster() };
        let unplaced_pods = if is_delayed { self.unplaced_pods(claim) } else { Vec::new() };
        Ok(Seen { best, is_delayed, default_class, unplaced_pods })
    }

    fn unplaced_pods(&self, claim: &PersistentVolumeClaim) -> Vec<String> {
        let pods = self.pods.by_index(PODS_BY_CLAIM, &ObjectKey::of(&claim.metadata).to_string());
        let waiting = pods.iter().filter(|pod| pod.spec.node_name.is_empty() && !pod_state::is_terminated(pod));
        waiting.map(|pod| pod.metadata.name.clone()).collect()
    }

    /// The best volume for a claim. Volumes with fewer access modes are tried first, all with the same ones together.
    fn best_volume(
        &self,
        claim: &PersistentVolumeClaim,
        is_delayed: bool,
    ) -> Result<Option<Arc<PersistentVolume>>, ReconcileError> {
        let all = self.volumes.informer();
        let mut seen = all.by_index(BY_CLAIM, &ObjectKey::of(&claim.metadata).to_string());
        if !is_delayed {
            seen.extend(all.by_index(FREE_BY_CLASS, classes::class_of_claim(claim)));
        }
        seen.retain(|volume| !self.giving.has(&volume.metadata.name));
        let candidates = seen.iter().map(|volume| self.volumes.of(volume));
        choose(claim, candidates.collect(), if is_delayed { NodeScope::Undecided } else { NodeScope::Anywhere })
    }

    async fn take_class(&self, cx: &Cx, claim: &PersistentVolumeClaim, class: String) -> Result<(), ReconcileError> {
        let mut next = claim.clone();
        next.spec.storage_class_name = Some(class);
        let written = self.write_claim(cx, &next).await;
        self.metrics.class_given(written.is_ok());
        let key = ObjectKey::of(&claim.metadata);
        match written {
            Ok(_) => Ok(()),
            Err(error) if error.is_conflict() => Err(error),
            Err(error) => {
                Err(ReconcileError::failed(format!("can't update PersistentVolumeClaim[\"{key}\"]: {error}")))
            }
        }
    }
}

/// The best of these volumes for a claim.
pub(super) fn choose(
    claim: &PersistentVolumeClaim,
    candidates: Vec<Arc<PersistentVolume>>,
    place: NodeScope<'_>,
) -> Result<Option<Arc<PersistentVolume>>, ReconcileError> {
    let mut by_modes: BTreeMap<(usize, Vec<String>), Vec<Arc<PersistentVolume>>> = BTreeMap::new();
    for volume in candidates.into_iter().filter(|volume| offers_access_modes(volume, claim)) {
        let mut modes = volume.spec.access_modes.clone();
        modes.sort_unstable();
        modes.dedup();
        by_modes.entry((modes.len(), modes)).or_default().push(volume);
    }
    for volumes in by_modes.values() {
        let best = best_match(claim, volumes, place, |_| false).map_err(|error| {
            ReconcileError::failed(format!(
                "error finding PV for claim \"{}\": {error}",
                ObjectKey::of(&claim.metadata)
            ))
        })?;
        if best.is_some() {
            return Ok(best.cloned());
        }
    }
    Ok(None)
}
