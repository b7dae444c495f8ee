//! What a pod needs done: claims made from its templates and told of in its status, and, once it has a node, set aside for it.

use std::sync::Arc;

use api_machinery::meta::{ObjectMeta, OwnerReference, PatchOptions};
use api_machinery::value::Value;
use api_types::core_v1::{Pod, PodResourceClaim};
use api_types::resource_v1::{
    ExactDeviceRequest, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimSpec, ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
};
use client::{ClientError, EventType, Patch};
use controller::{CONTROLLER_UID, Cx, ReconcileError, controller_ref};
use serde_json::json;

use super::naming::{Named, is_of, is_reserved, prefix};
use super::{CLAIM_NAME, Claims, FIELD_MANAGER};

/// Why a claim is not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeError {
    #[error("none of the supported fields are set")]
    Unknown,
    #[error("resource claim template {template:?}: resourceclaimtemplate.resource.k8s.io {template:?} not found")]
    NoTemplate { template: String },
    #[error("admin access is requested, but the feature is disabled")]
    AdminAccess,
    #[error("template includes a prioritized list of subrequests, but the feature is disabled")]
    PrioritizedList,
    #[error("create ResourceClaim : {0}")]
    Create(ClientError),
}

/// Which features templates may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    pub(super) admin_access: bool,
    pub(super) prioritized_list: bool,
}

pub(super) fn wants_admin_access(spec: &ResourceClaimSpec) -> bool {
    let wants = |own: &ExactDeviceRequest| own.admin_access == Some(true);
    spec.devices.requests.iter().any(|request| request.exactly.as_ref().is_some_and(wants))
}

impl Allowed {
    fn check(self, template: &ResourceClaimTemplateSpec) -> Result<(), MakeError> {
        if !self.admin_access && wants_admin_access(&template.spec) {
            return Err(MakeError::AdminAccess);
        }
        let has_list = template.spec.devices.requests.iter().any(|request| !request.first_available.is_empty());
        if has_list && !self.prioritized_list { Err(MakeError::PrioritizedList) } else { Ok(()) }
    }
}

/// The claim that a template makes for an entry of a pod.
fn made_of(template: &ResourceClaimTemplate, pod: &Pod, entry: &str) -> ResourceClaim {
    let mut annotations = template.spec.metadata.annotations.clone();
    annotations.insert(CLAIM_NAME.to_owned(), entry.to_owned());
    // The pod may be deleted in whatever order.
    let owner = OwnerReference { block_owner_deletion: None, ..controller_ref::<Pod>(&pod.metadata) };
    let metadata = ObjectMeta {
        generate_name: prefix(&pod.metadata.name, entry),
        namespace: pod.metadata.namespace.clone(),
        labels: template.spec.metadata.labels.clone(),
        annotations,
        owner_references: vec![owner],
        ..ObjectMeta::default()
    };
    ResourceClaim { metadata, spec: template.spec.spec.clone(), ..ResourceClaim::default() }
}

/// An intent to apply: all claims that were made for a pod, as far as they are known.
fn statuses(pod: &Pod, made: &[(String, String)]) -> Value {
    let is_new = |entry: &str| made.iter().any(|(own, _)| own == entry);
    let known = pod.status.resource_claim_statuses.iter().filter(|status| !is_new(&status.name));
    let mut all: Vec<Value> = known
        .map(|status| match &status.resource_claim_name {
            Some(claim) => json!({"name": status.name, "resourceClaimName": claim}),
            None => json!({"name": status.name}),
        })
        .collect();
    all.extend(made.iter().map(|(entry, claim)| json!({"name": entry, "resourceClaimName": claim})));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid},
        "status": {"resourceClaimStatuses": all},
    })
}

impl Claims {
    /// Whether a pod that is not going may need something done.
    pub(super) fn may_need_work(&self, pod: &Pod) -> bool {
        pod.metadata.deletion_timestamp.is_none()
            && pod.spec.resource_claims.iter().any(|entry| match Named::of(pod, entry) {
                Named::Unknown | Named::ToMake { .. } => true,
                Named::Nothing => false,
                Named::Claim { name, is_made } => match self.claims.find(&pod.metadata.namespace, name) {
                    None => is_made,
                    Some(claim) if is_made && !is_of(&claim, pod) => false,
                    Some(claim) => {
                        !pod.spec.node_name.is_empty() && claim.status.allocation.is_some() && !is_reserved(&claim, pod)
                    }
                },
            })
    }

    pub(super) async fn sync_pod(&self, cx: &Cx, pod: &Pod) -> Result<(), ReconcileError> {
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let mut made = Vec::new();
        for entry in &pod.spec.resource_claims {
            match self.ensure(cx, pod, entry).await {
                Ok(Some(claim)) => made.push((entry.name.clone(), claim)),
                Ok(None) => {}
                Err(error) => {
                    let message = format!("PodResourceClaim {}: {error}", entry.name);
                    cx.events.event(pod, EventType::Warning, "FailedResourceClaimCreation", message);
                    return Err(ReconcileError::failed(error.to_string()));
                }
            }
        }
        if !made.is_empty() {
            let options =
                PatchOptions { field_manager: FIELD_MANAGER.into(), force: Some(true), ..PatchOptions::default() };
            let patch = Patch::Apply(statuses(pod, &made));
            let pods = cx.client.namespaced::<Pod>(&pod.metadata.namespace);
            pods.patch_subresource(&pod.metadata.name, "status", &patch, &options).await?;
        }
        if pod.spec.node_name.is_empty() { Ok(()) } else { self.reserve_all(cx, pod, &made).await }
    }

    /// Makes the claim of an entry where it is to be made. The name is told where the pod's status does not.
    async fn ensure(&self, cx: &Cx, pod: &Pod, entry: &PodResourceClaim) -> Result<Option<String>, MakeError> {
        match Named::of(pod, entry) {
            Named::Unknown => return Err(MakeError::Unknown),
            Named::Nothing | Named::Claim { is_made: false, .. } => return Ok(None),
            Named::Claim { name, .. } => {
                let known = self.claims.find(&pod.metadata.namespace, name);
                if known.is_some_and(|claim| is_of(&claim, pod)) {
                    return Ok(None);
                }
            }
            Named::ToMake { .. } => {}
        }
        if let Some(claim) = self.made_for(pod, &entry.name) {
            return Ok(Some(claim.metadata.name.clone()));
        }
        let template = entry.resource_claim_template_name.as_deref().unwrap_or_default();
        let Some(template) = self.templates.find(&pod.metadata.namespace, template) else {
            return Err(MakeError::NoTemplate { template: template.to_owned() });
        };
        self.allowed.check(&template.spec)?;
        let claim = made_of(&template, pod, &entry.name);
        let has_admin_access = if wants_admin_access(&claim.spec) { "true" } else { "false" };
        let outcome = cx.client.namespaced::<ResourceClaim>(&pod.metadata.namespace).create(&claim).await;
        let status = if outcome.is_ok() { "success" } else { "failure" };
        self.creates.with(&[status, has_admin_access]).inc();
        let claim = outcome.map_err(MakeError::Create)?;
        let name = claim.metadata.name.clone();
        self.made.lock().note(&pod.metadata.uid, &entry.name, claim, cx.clock.monotonic());
        Ok(Some(name))
    }

    /// A claim that was made before for an entry of a pod, whether the pod's status tells of it or not. Where answers were
    /// lost there may be several: always the same one is meant, as the scheduler may have set devices aside for it already.
    fn made_for(&self, pod: &Pod, entry: &str) -> Option<Arc<ResourceClaim>> {
        if let Some(made) = self.made.lock().find(&pod.metadata.uid, entry) {
            return Some(made);
        }
        let is_for = |claim: &Arc<ResourceClaim>| {
            is_of(claim, pod) && claim.metadata.annotations.get(CLAIM_NAME).is_some_and(|own| own == entry)
        };
        let by_use = |claim: &Arc<ResourceClaim>| {
            (!is_reserved(claim, pod), claim.status.allocation.is_none(), claim.metadata.name.clone())
        };
        let cached = self.claims.by_index(CONTROLLER_UID, &pod.metadata.uid);
        cached.into_iter().filter(is_for).min_by_key(by_use)
    }

    /// Sets the claims of a pod that has a node aside for it: whoever gave it the node did not.
    async fn reserve_all(&self, cx: &Cx, pod: &Pod, made: &[(String, String)]) -> Result<(), ReconcileError> {
        for entry in &pod.spec.resource_claims {
            let new = made.iter().find(|(own, _)| *own == entry.name).map(|(_, claim)| (claim.as_str(), true));
            let (name, is_made) = match (new, Named::of(pod, entry)) {
                (Some(new), _) => new,
                (None, Named::Claim { name, is_made }) => (name, is_made),
                _ => continue,
            };
            let Some(claim) = self.claims.find(&pod.metadata.namespace, name) else { return Ok(()) };
            if is_made && !is_of(&claim, pod) {
                let text = format!("ResourceClaim {name:?} was not created for pod {:?}", pod.metadata.name);
                return Err(ReconcileError::failed(text));
            }
            if claim.status.allocation.is_none() || is_reserved(&claim, pod) {
                continue;
            }
            let mut next = ResourceClaim::clone(&claim);
            next.status.reserved_for.push(ResourceClaimConsumerReference {
                resource: "pods".into(),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
                ..ResourceClaimConsumerReference::default()
            });
            cx.client.namespaced::<ResourceClaim>(&pod.metadata.namespace).update_status(&next).await?;
        }
        Ok(())
    }
}
