//! Whom claims are made for: a pod, or a group of pods that share them (KEP-5729).

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::value::Value;
use api_types::core_v1::{Pod, PodResourceClaim};
use api_types::resource_v1::ResourceClaim;
use api_types::scheduling_v1alpha2::{PodGroup, PodGroupResourceClaim};
use client::EventType;
use controller::{Cx, ReconcileError, controller_ref, is_controlled_by};
use serde_json::json;

use super::making::MakeError;
use super::naming::Named;

/// A pod or a group.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder<'h> {
    Pod(&'h Pod),
    Group(&'h PodGroup),
}

/// A claim that one of them wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'h> {
    pub(super) name: &'h str,
    pub(super) claim: Option<&'h str>,
    pub(super) template: Option<&'h str>,
}

impl<'h> From<&'h PodResourceClaim> for Entry<'h> {
    fn from(own: &'h PodResourceClaim) -> Self {
        let (claim, template) = (own.resource_claim_name.as_deref(), own.resource_claim_template_name.as_deref());
        Self { name: &own.name, claim, template }
    }
}

impl<'h> From<&'h PodGroupResourceClaim> for Entry<'h> {
    fn from(own: &'h PodGroupResourceClaim) -> Self {
        let (claim, template) = (own.resource_claim_name.as_deref(), own.resource_claim_template_name.as_deref());
        Self { name: &own.name, claim, template }
    }
}

impl<'h> Holder<'h> {
    pub(super) fn metadata(self) -> &'h ObjectMeta {
        match self {
            Self::Pod(pod) => &pod.metadata,
            Self::Group(group) => &group.metadata,
        }
    }

    pub(super) fn entries(self) -> Vec<Entry<'h>> {
        match self {
            Self::Pod(pod) => pod.spec.resource_claims.iter().map(Entry::from).collect(),
            Self::Group(group) => group.spec.resource_claims.iter().map(Entry::from).collect(),
        }
    }

    /// What the status tells: the claim of each entry, or that it needs none.
    fn told(self) -> Vec<(&'h str, Option<&'h str>)> {
        match self {
            Self::Pod(pod) => {
                let told = pod.status.resource_claim_statuses.iter();
                told.map(|own| (own.name.as_str(), own.resource_claim_name.as_deref())).collect()
            }
            Self::Group(group) => {
                let told = group.status.resource_claim_statuses.iter();
                told.map(|own| (own.name.as_str(), own.resource_claim_name.as_deref())).collect()
            }
        }
    }

    /// The claim that an entry stands for.
    pub(super) fn named(self, entry: Entry<'h>) -> Named<'h> {
        if let Some(name) = entry.claim {
            return Named::Claim { name, is_made: false };
        }
        let Some(template) = entry.template else { return Named::Unknown };
        match self.told().into_iter().find(|(name, _)| *name == entry.name) {
            None => Named::ToMake { template },
            Some((_, None)) => Named::Nothing,
            Some((_, Some(name))) => Named::Claim { name, is_made: true },
        }
    }

    /// The names of the claims that are known.
    pub(super) fn names(self) -> Vec<&'h str> {
        let name = |entry| match self.named(entry) {
            Named::Claim { name, .. } => Some(name),
            _ => None,
        };
        self.entries().into_iter().filter_map(name).collect()
    }

    /// Whether a claim was made for it.
    pub(super) fn has_made(self, claim: &ResourceClaim) -> bool {
        let own = self.metadata();
        claim.metadata.namespace == own.namespace && is_controlled_by(&claim.metadata, own)
    }

    /// The owner of what is made for it, which may be deleted in whatever order.
    pub(super) fn owner(self) -> OwnerReference {
        let owner = match self {
            Self::Pod(pod) => controller_ref::<Pod>(&pod.metadata),
            Self::Group(group) => controller_ref::<PodGroup>(&group.metadata),
        };
        OwnerReference { block_owner_deletion: None, ..owner }
    }

    /// Tells of a claim that could not be made.
    pub(super) fn not_made(self, cx: &Cx, entry: &str, error: &MakeError) -> ReconcileError {
        const REASON: &str = "FailedResourceClaimCreation";
        let message = |kind: &str| format!("{kind}ResourceClaim {entry}: {error}");
        match self {
            Self::Pod(pod) => cx.events.event(pod, EventType::Warning, REASON, message("Pod")),
            Self::Group(group) => cx.events.event(group, EventType::Warning, REASON, message("PodGroup")),
        }
        ReconcileError::failed(error.to_string())
    }

    /// An intent to apply to the status: all claims, as far as they are known, those among them that were made just now.
    pub(super) fn statuses(self, made: &[(String, String)]) -> Value {
        let is_new = |entry: &str| made.iter().any(|(own, _)| own == entry);
        let known = self.told().into_iter().filter(|(entry, _)| !is_new(entry));
        let mut all: Vec<Value> = known
            .map(|(entry, claim)| match claim {
                Some(claim) => json!({"name": entry, "resourceClaimName": claim}),
                None => json!({"name": entry}),
            })
            .collect();
        all.extend(made.iter().map(|(entry, claim)| json!({"name": entry, "resourceClaimName": claim})));
        let (own, owner) = (self.metadata(), self.owner());
        json!({
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "metadata": {"name": own.name, "namespace": own.namespace, "uid": own.uid},
            "status": {"resourceClaimStatuses": all},
        })
    }
}
