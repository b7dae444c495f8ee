//! When pods have to leave the devices that they use, and for which taints.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::Pod;
use api_types::resource_v1::constants::device_taint_effect::NO_EXECUTE;
use api_types::resource_v1::{
    DeviceRequestAllocationResult, DeviceTaint, DeviceToleration, ResourceClaim, ResourceClaimConsumerReference,
    ResourceSlice,
};
use api_types::resource_v1alpha3::DeviceTaintRule;
use client::{Informer, ObjectKey};
use component_helpers::group_claims::{Whose, is_group};
use component_helpers::resource_claims::selects;

use crate::devices::resource_claim::groups::BY_GROUP;
use crate::devices::resource_claim::naming::Named;

/// Index of slices, and of claims by the devices that they have: `{driver}/{pool}`.
pub(super) const BY_POOL: &str = "device-pools";

/// A rule by its name and its uid.
pub(super) type RuleId = (String, String);

pub(super) fn id_of(rule: &DeviceTaintRule) -> RuleId {
    (rule.metadata.name.clone(), rule.metadata.uid.clone())
}

/// When somebody has to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Time,
    /// The rules among the reasons.
    pub(super) rules: BTreeSet<RuleId>,
}

impl Due {
    /// By the first of several reasons, and for all of them.
    fn of_all(dues: impl Iterator<Item = Self>) -> Option<Self> {
        dues.reduce(|mut one, other| {
            one.at = one.at.min(other.at);
            one.rules.extend(other.rules);
            one
        })
    }
}

/// Whether a toleration is of a taint.
fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let is_key = toleration.key.is_empty() || toleration.key == taint.key;
    let is_value = match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    };
    toleration.effect == NO_EXECUTE && is_key && is_value
}

/// When a taint drives away who has these tolerations; never where one of them bears it for good.
pub(super) fn leaves_at(taint: &DeviceTaint, tolerations: &[DeviceToleration]) -> Option<Time> {
    let added = taint.time_added.unwrap_or_default();
    let fitting: Vec<_> = tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
    if fitting.iter().any(|toleration| toleration.toleration_seconds.is_none()) {
        return None;
    }
    let shortest = fitting.iter().filter_map(|toleration| toleration.toleration_seconds).min().unwrap_or(0);
    Some(added + Duration::from_secs(u64::try_from(shortest).unwrap_or(0)))
}

/// The slices of a pool that count: those of its newest generation.
pub(super) fn newest(slices: &[Arc<ResourceSlice>]) -> impl Iterator<Item = &ResourceSlice> {
    let generation = slices.iter().map(|slice| slice.spec.pool.generation).max();
    slices.iter().map(AsRef::as_ref).filter(move |slice| Some(slice.spec.pool.generation) == generation)
}

/// The taints of a device that drive pods away.
pub(super) fn taints<'a>(slices: &'a [Arc<ResourceSlice>], device: &str) -> Vec<&'a DeviceTaint> {
    let devices = newest(slices).flat_map(|slice| &slice.spec.devices).filter(|own| own.name == device);
    devices.flat_map(|own| &own.taints).filter(|taint| taint.effect == NO_EXECUTE).collect()
}

/// The devices that a claim has.
pub(super) fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results)
}

/// Whether a rule is about a device that was allocated. One that selects by nothing is about none.
pub(super) fn is_about(rule: &DeviceTaintRule, result: &DeviceRequestAllocationResult) -> bool {
    let selector = rule.spec.device_selector.as_ref();
    selector.is_some_and(|own| selects(own, &result.driver, &result.pool, &result.device))
}

/// What decides who has to leave.
#[derive(Clone)]
pub(super) struct World {
    pub(super) slices: Informer<ResourceSlice>,
    pub(super) claims: Informer<ResourceClaim>,
    pub(super) pods: Informer<Pod>,
    pub(super) whose: Whose,
    /// None where no rules count.
    pub(super) rules: Option<Informer<DeviceTaintRule>>,
}

impl World {
    /// When a pod is to go: by the first of its devices that drives it away.
    pub(super) fn due(&self, pod: &Pod) -> Option<Due> {
        let rules = self.rules.iter().flat_map(Informer::list);
        let rules: Vec<_> = rules.filter(|rule| rule.spec.taint.effect == NO_EXECUTE).collect();
        Due::of_all(
            self.claims_of(pod).filter_map(|claim| {
                Due::of_all(results(&claim).filter_map(|result| self.due_of_device(result, &rules)))
            }),
        )
    }

    fn due_of_device(&self, result: &DeviceRequestAllocationResult, rules: &[Arc<DeviceTaintRule>]) -> Option<Due> {
        let by_rules = rules.iter().filter(|rule| is_about(rule, result)).filter_map(|rule| {
            Some(Due { at: leaves_at(&rule.spec.taint, &result.tolerations)?, rules: [id_of(rule)].into() })
        });
        let slices = self.slices.by_index(BY_POOL, &format!("{}/{}", result.driver, result.pool));
        let by_slices = taints(&slices, &result.device)
            .into_iter()
            .filter_map(|taint| Some(Due { at: leaves_at(taint, &result.tolerations)?, rules: BTreeSet::new() }));
        Due::of_all(by_rules.chain(by_slices))
    }

    /// The pods that a claim is set aside for, those of a group among them.
    pub(super) fn consumers(&self, claim: &ResourceClaim) -> Vec<ObjectKey> {
        let namespace = &claim.metadata.namespace;
        let pods_of = |own: &ResourceClaimConsumerReference| match self.whose {
            Whose::OwnOrGroups if is_group(own) => {
                let members = self.pods.by_index(BY_GROUP, &format!("{namespace}/{}", own.name));
                members.iter().map(|pod| ObjectKey::new(namespace.clone(), pod.metadata.name.clone())).collect()
            }
            _ if own.api_group.is_empty() && own.resource == "pods" => {
                vec![ObjectKey::new(namespace.clone(), own.name.clone())]
            }
            _ => Vec::new(),
        };
        claim.status.reserved_for.iter().flat_map(pods_of).collect()
    }

    /// The claims that a pod on a node uses.
    pub(super) fn claims_of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = Arc<ResourceClaim>> + 'a {
        let is_placed = !pod.spec.node_name.is_empty();
        pod.spec.resource_claims.iter().filter(move |_| is_placed).filter_map(|entry| {
            let Named::Claim { name, is_made } = Named::of(pod, entry) else { return None };
            let claim = self.claims.find(&pod.metadata.namespace, name)?;
            (self.whose.is_reserved_for(&claim, pod) && (!is_made || self.whose.is_made_for(&claim, pod)))
                .then_some(claim)
        })
    }
}
