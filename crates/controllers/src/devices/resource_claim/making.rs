//! Claims that are made from templates.

use std::sync::Arc;

use api_machinery::meta::{ObjectMeta, PatchOptions};
use api_types::resource_v1::{
    ExactDeviceRequest, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate, ResourceClaimTemplateSpec,
};
use client::{ClientError, Patch};
use controller::{CONTROLLER_UID, Cx};

use super::holder::{Entry, Holder};
use super::naming::{Named, prefix};
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

/// The claim that a template makes for an entry.
fn made_of(template: &ResourceClaimTemplate, holder: Holder<'_>, entry: &str) -> ResourceClaim {
    let mut annotations = template.spec.metadata.annotations.clone();
    annotations.insert(CLAIM_NAME.to_owned(), entry.to_owned());
    let metadata = ObjectMeta {
        generate_name: prefix(&holder.metadata().name, entry),
        namespace: holder.metadata().namespace.clone(),
        labels: template.spec.metadata.labels.clone(),
        annotations,
        owner_references: vec![holder.owner()],
        ..ObjectMeta::default()
    };
    ResourceClaim { metadata, spec: template.spec.spec.clone(), ..ResourceClaim::default() }
}

impl Claims {
    /// Makes the claim of an entry where it is to be made. The name is told where the status does not.
    pub(super) async fn ensure(
        &self,
        cx: &Cx,
        holder: Holder<'_>,
        entry: Entry<'_>,
    ) -> Result<Option<String>, MakeError> {
        let own = holder.metadata();
        match holder.named(entry) {
            Named::Unknown => return Err(MakeError::Unknown),
            Named::Nothing | Named::Claim { is_made: false, .. } => return Ok(None),
            Named::Claim { name, .. } => {
                let known = self.claims.find(&own.namespace, name);
                if known.is_some_and(|claim| self.has_made(&claim, holder)) {
                    return Ok(None);
                }
            }
            Named::ToMake { .. } => {}
        }
        if let Some(claim) = self.made_for(holder, entry.name) {
            return Ok(Some(claim.metadata.name.clone()));
        }
        let template = entry.template.unwrap_or_default();
        let Some(template) = self.templates.find(&own.namespace, template) else {
            return Err(MakeError::NoTemplate { template: template.to_owned() });
        };
        self.allowed.check(&template.spec)?;
        let claim = made_of(&template, holder, entry.name);
        let has_admin_access = if wants_admin_access(&claim.spec) { "true" } else { "false" };
        let outcome = cx.client.namespaced::<ResourceClaim>(&own.namespace).create(&claim).await;
        let status = if outcome.is_ok() { "success" } else { "failure" };
        self.creates.with(&[status, has_admin_access]).inc();
        let claim = outcome.map_err(MakeError::Create)?;
        let name = claim.metadata.name.clone();
        self.made.lock().note(&own.uid, entry.name, claim, cx.clock.monotonic());
        Ok(Some(name))
    }

    /// Whether a claim may be the one that was made for somebody; a pod may have its group's.
    pub(super) fn has_made(&self, claim: &ResourceClaim, holder: Holder<'_>) -> bool {
        match holder {
            Holder::Pod(pod) => self.whose.is_made_for(claim, pod),
            Holder::Group(_) => holder.has_made(claim),
        }
    }

    /// A claim that was made before for an entry, whether the status tells of it or not. Where answers were lost there may be
    /// several: always the same one is meant, as the scheduler may have set devices aside for it already.
    pub(super) fn made_for(&self, holder: Holder<'_>, entry: &str) -> Option<Arc<ResourceClaim>> {
        let uid = &holder.metadata().uid;
        if let Some(made) = self.made.lock().find(uid, entry) {
            return Some(made);
        }
        let is_for = |claim: &Arc<ResourceClaim>| {
            holder.has_made(claim) && claim.metadata.annotations.get(CLAIM_NAME).is_some_and(|own| own == entry)
        };
        let by_use = |claim: &Arc<ResourceClaim>| {
            let is_reserved = claim.status.reserved_for.iter().any(|consumer| consumer.uid == *uid);
            (!is_reserved, claim.status.allocation.is_none(), claim.metadata.name.clone())
        };
        let cached = self.claims.by_index(CONTROLLER_UID, uid);
        cached.into_iter().filter(is_for).min_by_key(by_use)
    }
}

/// How the claims are told of in a status.
pub(super) fn telling(holder: Holder<'_>, made: &[(String, String)]) -> (Patch, PatchOptions) {
    let options = PatchOptions { field_manager: FIELD_MANAGER.into(), force: Some(true), ..PatchOptions::default() };
    (Patch::Apply(holder.statuses(made)), options)
}
