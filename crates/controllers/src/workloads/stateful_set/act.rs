//! Carries a plan out: pods, claims and the events that tell of them.

use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, OwnerReference};
use api_types::apps_v1::StatefulSet;
use api_types::apps_v1::constants::stateful_set_update_strategy_type::ROLLING_UPDATE;
use api_types::core_v1::{PersistentVolumeClaim, Pod};
use client::{ClientError, EventType};
use component_helpers::volumes::names::SELECTED_NODE;
use controller::{Cx, ReconcileError, in_batches};

use super::history::History;
use super::plan::{Action, Plan, is_going};
use super::{CLAIMS, PODS, StatefulSetController, claims, identity, revisions};

impl StatefulSetController {
    /// Carries a plan out; the first failure ends it.
    pub(super) async fn act(
        &self,
        cx: &Cx,
        set: &StatefulSet,
        history: &History,
        plan: Plan,
    ) -> Result<(), ReconcileError> {
        let Plan { replicas, parallel, then, cut: _ } = plan;
        if parallel {
            let replicas = &replicas;
            let outcome = in_batches(replicas.len(), |number| async move {
                let Some(action) = replicas.get(number) else { return Ok(()) };
                self.carry_out(cx, set, history, action).await
            })
            .await;
            ReconcileError::join(outcome.errors)?;
        } else {
            for action in &replicas {
                self.carry_out(cx, set, history, action).await?;
            }
        }
        for action in &then {
            self.carry_out(cx, set, history, action).await?;
        }
        Ok(())
    }

    async fn carry_out(
        &self,
        cx: &Cx,
        set: &StatefulSet,
        history: &History,
        action: &Action,
    ) -> Result<(), ReconcileError> {
        match action {
            Action::Create(ordinal) => self.create(cx, set, history, *ordinal).await,
            Action::Provide(pod) => {
                if let Some(ordinal) = identity::ordinal_of(pod) {
                    self.provide(cx, set, ordinal, &pod.metadata.name).await?;
                    self.lead(cx, set, ordinal, pod).await?;
                }
                self.update_claims(cx, set, pod).await
            }
            Action::Mend(pod) => self.mend(cx, set, pod).await,
            Action::Bequeath(pod) => self.update_claims(cx, set, pod).await,
            Action::Delete(pod) => Ok(delete(cx, set, pod).await?),
        }
    }

    /// Creates the pod of an ordinal, unless claims of its predecessor are still to go.
    async fn create(&self, cx: &Cx, set: &StatefulSet, history: &History, ordinal: i32) -> Result<(), ReconcileError> {
        let name = identity::pod_name(set, ordinal);
        if claims::go_with_pods(set)
            && self.claims_of(set, ordinal).any(|it| claims::is_of_former(&it.metadata, &name, None))
        {
            return Ok(());
        }
        if let Err(error) = self.provide(cx, set, ordinal, &name).await {
            tell(cx, set, "Create", &name, Some(&error));
            return Err(error);
        }
        let revision = if keeps_current(set, ordinal) { &history.current } else { &history.update };
        let pod = identity::pod_for(set, &revisions::template(revision)?, &revision.metadata.name, ordinal);
        let made = cx.client.namespaced::<Pod>(&set.metadata.namespace).create(&pod).await;
        let (there, outcome) = match made {
            Ok(made) => {
                self.written.note(&set.metadata, PODS, &made.metadata.resource_version);
                (made, Ok(()))
            }
            Err(error) if error.is_already_exists() || error.is_namespace_terminating() => return Err(error.into()),
            // Its claims go with the set all the same.
            Err(error) => (pod, Err(ReconcileError::from(error))),
        };
        let outcome = self.update_claims(cx, set, &there).await.and(outcome);
        tell(cx, set, "Create", &name, outcome.as_ref().err().map(|error| error as &dyn std::fmt::Display));
        outcome
    }

    /// The claims of an ordinal that are there.
    fn claims_of<'a>(
        &'a self,
        set: &'a StatefulSet,
        ordinal: i32,
    ) -> impl Iterator<Item = Arc<PersistentVolumeClaim>> + 'a {
        let wanted = identity::claims(set, ordinal).into_iter();
        wanted.filter_map(|claim| self.claims.find(&claim.metadata.namespace, &claim.metadata.name))
    }

    /// Creates the claims of an ordinal that are missing; all are tried.
    async fn provide(&self, cx: &Cx, set: &StatefulSet, ordinal: i32, pod: &str) -> Result<(), ReconcileError> {
        let mut errors = Vec::new();
        for claim in identity::claims(set, ordinal) {
            let name = &claim.metadata.name;
            if let Some(there) = self.claims.find(&claim.metadata.namespace, name) {
                if there.metadata.deletion_timestamp.is_some() {
                    errors.push(ReconcileError::failed(format!("pvc {name} is being deleted")));
                }
                continue;
            }
            let set_name = &set.metadata.name;
            let api = cx.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace);
            match api.create(&claim).await {
                Ok(made) => {
                    self.written.note(&set.metadata, CLAIMS, &made.metadata.resource_version);
                    let message = format!("create Claim {name} Pod {pod} in StatefulSet {set_name} success");
                    cx.events.event(set, EventType::Normal, "SuccessfulCreate", message);
                }
                Err(error) => {
                    if !error.is_already_exists() {
                        let message = format!(
                            "create Claim {name} for Pod {pod} in StatefulSet {set_name} failed error: {error}"
                        );
                        cx.events.event(set, EventType::Warning, "FailedCreate", message);
                    }
                    errors.push(ReconcileError::failed(format!("failed to create PVC {name}: {error}")));
                }
            }
        }
        ReconcileError::join(errors)
    }

    /// Says of the claims of a pod that has a node and no volumes that they are for that node. Whoever gave it the node has
    /// said so, unless that was of claims that have been replaced since: nobody else would say it of the new ones.
    async fn lead(&self, cx: &Cx, set: &StatefulSet, ordinal: i32, pod: &Pod) -> Result<(), ReconcileError> {
        let node = &pod.spec.node_name;
        for claim in self.claims_of(set, ordinal).filter(|claim| !node.is_empty() && claims::is_for_no_node(claim)) {
            let mut next = PersistentVolumeClaim::clone(&claim);
            next.metadata.annotations.insert(SELECTED_NODE.to_owned(), node.clone());
            cx.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace).update(&next).await?;
        }
        Ok(())
    }

    /// Whether a pod has its identity and its claims their owners.
    pub(super) fn is_in_order(&self, set: &StatefulSet, pod: &Pod) -> bool {
        let Some(ordinal) = identity::ordinal_of(pod) else { return true };
        let owned = |claim: Arc<PersistentVolumeClaim>| claims::judge(set, pod, ordinal, &claim.metadata).is_settled();
        identity::identity_matches(set, pod) && self.claims_of(set, ordinal).all(owned)
    }

    /// Gives the claims of a pod the owners that the policy wants.
    async fn update_claims(&self, cx: &Cx, set: &StatefulSet, pod: &Pod) -> Result<(), ReconcileError> {
        let Some(ordinal) = identity::ordinal_of(pod) else { return Ok(()) };
        for claim in self.claims_of(set, ordinal) {
            match claims::judge(set, pod, ordinal, &claim.metadata) {
                claims::OwnersUpdate::Fine => {}
                claims::OwnersUpdate::Write(owners) => self.own(cx, set, &claim, owners).await?,
                claims::OwnersUpdate::Conflict(owners) => {
                    let name = &claim.metadata.name;
                    let message = format!(
                        "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging \
                         controller, the retention policy is ignored for this claim"
                    );
                    cx.events.event(set, EventType::Warning, "ConflictingController", message);
                    if let Some(owners) = owners {
                        self.own(cx, set, &claim, owners).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn own(
        &self,
        cx: &Cx,
        set: &StatefulSet,
        claim: &PersistentVolumeClaim,
        owners: Vec<OwnerReference>,
    ) -> Result<(), ReconcileError> {
        let mut owned = claim.clone();
        owned.metadata.owner_references = owners;
        let api = cx.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace);
        let written = api.update(&owned).await.map_err(|error| {
            let name = &claim.metadata.name;
            ReconcileError::failed(format!("could not update claim {name} for delete policy ownerRefs: {error}"))
        })?;
        self.written.note(&set.metadata, CLAIMS, &written.metadata.resource_version);
        Ok(())
    }

    /// Puts labels, volumes and claims of a pod right.
    async fn mend(&self, cx: &Cx, set: &StatefulSet, pod: &Pod) -> Result<(), ReconcileError> {
        let claims = self.update_claims(cx, set, pod).await;
        if identity::identity_matches(set, pod) {
            let error = claims.as_ref().err().map(|error| error as &dyn std::fmt::Display);
            tell(cx, set, "Update", &pod.metadata.name, error);
            return claims;
        }
        let mut mended = pod.clone();
        if let Some(ordinal) = identity::ordinal_of(pod) {
            identity::update_identity(set, &mut mended, ordinal);
        }
        let outcome = cx.client.namespaced::<Pod>(&pod.metadata.namespace).update(&mended).await;
        tell(cx, set, "Update", &pod.metadata.name, outcome.as_ref().err().map(as_text));
        self.written.note(&set.metadata, PODS, &outcome?.metadata.resource_version);
        claims
    }
}

/// Whether a new pod of this ordinal is still made from the current revision.
fn keeps_current(set: &StatefulSet, ordinal: i32) -> bool {
    let strategy = &set.spec.update_strategy;
    let below = |number: i32| ordinal < identity::start(set).saturating_add(number);
    match &strategy.rolling_update {
        Some(rolling) => below(rolling.partition.unwrap_or(0)),
        None => strategy.type_ == ROLLING_UPDATE && below(set.status.current_replicas),
    }
}

async fn delete(cx: &Cx, set: &StatefulSet, pod: &Pod) -> Result<(), ClientError> {
    if is_going(pod) {
        return Ok(());
    }
    let pods = cx.client.namespaced::<Pod>(&pod.metadata.namespace);
    let outcome = pods.delete_this(&pod.metadata, DeleteOptions::default()).await.map(drop);
    tell(cx, set, "Delete", &pod.metadata.name, outcome.as_ref().err().map(as_text));
    outcome
}

fn as_text(error: &ClientError) -> &dyn std::fmt::Display {
    error
}

/// Tells how something that was done to a pod went.
fn tell(cx: &Cx, set: &StatefulSet, verb: &str, pod: &str, error: Option<&dyn std::fmt::Display>) {
    let name = &set.metadata.name;
    let (kind, outcome, reason) = match error {
        None => (EventType::Normal, "successful".to_owned(), format!("Successful{verb}")),
        Some(error) => (EventType::Warning, format!("failed error: {error}"), format!("Failed{verb}")),
    };
    let verb = verb.to_ascii_lowercase();
    cx.events.event(set, kind, &reason, format!("{verb} Pod {pod} in StatefulSet {name} {outcome}"));
}
