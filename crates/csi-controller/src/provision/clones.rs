//! Keeps claims whose volumes are being copied, and lets them go afterwards.

use api_types::core_v1::PersistentVolumeClaim;
use client::{Change, Informer, ObjectKey};
use controller::{Controller, Cx, Next, ReconcileError};

use super::source::Source;
use crate::finalizers;
use crate::names::CLONING;

/// The claims that a change may have to do with: itself, and the one that it is a copy of.
pub(super) fn origins(change: &Change<PersistentVolumeClaim>) -> Vec<ObjectKey> {
    let claim = change.object();
    let own = finalizers::has(&**claim, CLONING).then(|| change.key());
    let origin = match Source::of(claim) {
        Source::Claim(name) => Some(ObjectKey::new(claim.metadata.namespace.clone(), name)),
        _ => None,
    };
    own.into_iter().chain(origin).collect()
}

pub(super) struct Clones {
    pub(super) claims: Informer<PersistentVolumeClaim>,
}

#[async_trait::async_trait]
impl Controller for Clones {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(origin) = self.claims.get(key) else { return Ok(Next::Done) };
        let is_copied = |claim: &PersistentVolumeClaim| {
            claim.spec.volume_name.is_empty() && Source::of(claim) == Source::Claim(&key.name)
        };
        if !self.claims.in_namespace(&key.namespace).iter().any(|claim| is_copied(claim)) {
            finalizers::set(cx, &*origin, &[CLONING], false).await?;
        }
        Ok(Next::Done)
    }
}
