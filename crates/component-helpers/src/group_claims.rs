//! Claims that the pods of a group share (KEP-5729): an entry of a pod that equals one of its group's stands for the group's
//! claim, which is made for the group, and set aside for it.

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{Pod, PodResourceClaim};
use api_types::resource_v1::{ResourceClaim, ResourceClaimConsumerReference};
use api_types::scheduling_v1alpha2::{GROUP, PodGroup};

use crate::owners::{controller_of, is_controlled_by};

const RESOURCE: &str = "podgroups";

/// Whose claims a pod may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Its own.
    Own,
    /// Its group's, too (gate `DRAWorkloadResourceClaims`).
    OwnOrGroups,
}

impl Whose {
    /// The group whose claims a pod may use.
    #[must_use]
    pub fn group_of(self, pod: &Pod) -> Option<&str> {
        match self {
            Self::Own => None,
            Self::OwnOrGroups => group_of(pod),
        }
    }

    /// Whether a claim was made for a pod. A group is known by its name: not everybody knows more of it.
    #[must_use]
    pub fn is_made_for(self, claim: &ResourceClaim, pod: &Pod) -> bool {
        let is_of_group = |group: &str| {
            controller_of(&claim.metadata).is_some_and(|owner| {
                let api_group = owner.api_version.split_once('/').map(|(group, _)| group);
                api_group == Some(GROUP) && owner.kind == "PodGroup" && owner.name == group
            })
        };
        let is_of_pod = is_controlled_by(&claim.metadata, &pod.metadata.uid);
        claim.metadata.namespace == pod.metadata.namespace && (is_of_pod || self.group_of(pod).is_some_and(is_of_group))
    }

    /// Whether a claim is set aside for a pod.
    #[must_use]
    pub fn is_reserved_for(self, claim: &ResourceClaim, pod: &Pod) -> bool {
        let group = self.group_of(pod);
        claim.status.reserved_for.iter().any(|consumer| {
            consumer.uid == pod.metadata.uid || (is_group(consumer) && group == Some(consumer.name.as_str()))
        })
    }
}

/// The group of a pod.
#[must_use]
pub fn group_of(pod: &Pod) -> Option<&str> {
    pod.spec.scheduling_group.as_ref()?.pod_group_name.as_deref()
}

/// Whether an entry of a pod stands for the claim of its group.
#[must_use]
pub fn is_shared(entry: &PodResourceClaim, group: &PodGroup) -> bool {
    group.spec.resource_claims.iter().any(|own| {
        own.name == entry.name
            && own.resource_claim_name == entry.resource_claim_name
            && own.resource_claim_template_name == entry.resource_claim_template_name
    })
}

/// Whether a claim is set aside for a group.
#[must_use]
pub fn is_group(consumer: &ResourceClaimConsumerReference) -> bool {
    consumer.api_group == GROUP && consumer.resource == RESOURCE
}

/// Whom the claim of an entry of a pod is set aside for: the pod, or its group where they share it.
#[must_use]
pub fn consumer(pod: &Pod, entry: &PodResourceClaim, group: Option<&PodGroup>) -> ResourceClaimConsumerReference {
    match group.filter(|group| is_shared(entry, group)) {
        Some(group) => reference(GROUP, RESOURCE, &group.metadata),
        None => pod_alone(pod),
    }
}

/// A pod as whom a claim is set aside for.
#[must_use]
pub fn pod_alone(pod: &Pod) -> ResourceClaimConsumerReference {
    reference("", "pods", &pod.metadata)
}

fn reference(api_group: &str, resource: &str, own: &ObjectMeta) -> ResourceClaimConsumerReference {
    let (api_group, resource) = (api_group.to_owned(), resource.to_owned());
    ResourceClaimConsumerReference { api_group, resource, name: own.name.clone(), uid: own.uid.clone() }
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::OwnerReference;
    use api_types::core_v1::PodSchedulingGroup;
    use api_types::scheduling_v1alpha2::PodGroupResourceClaim;

    use super::*;

    fn pod(group: Option<&str>) -> Pod {
        let mut pod = Pod::default();
        (pod.metadata.name, pod.metadata.uid) = ("p".into(), "uid-p".into());
        pod.spec.scheduling_group = group.map(|name| PodSchedulingGroup { pod_group_name: Some(name.into()) });
        pod
    }

    #[test]
    fn claims_are_of_the_pod_or_of_its_group() {
        // What the owner is, and whether its claim is the pod's where groups share none, and where they do.
        for ((api_version, kind, name, uid), own, or_groups) in [
            (("v1", "Pod", "p", "uid-p"), true, true),
            (("v1", "Pod", "p", "uid-before"), false, false),
            (("scheduling.k8s.io/v1alpha2", "PodGroup", "g", "uid-g"), false, true),
            (("scheduling.k8s.io/v1beta1", "PodGroup", "g", "uid-g"), false, true),
            (("scheduling.k8s.io/v1alpha2", "PodGroup", "h", "uid-h"), false, false),
            (("scheduling.example.com/v1", "PodGroup", "g", "uid-g"), false, false),
            (("scheduling.k8s.io/v1alpha2", "Workload", "g", "uid-g"), false, false),
        ] {
            let mut claim = ResourceClaim::default();
            claim.metadata.owner_references.push(OwnerReference {
                api_version: api_version.into(),
                kind: kind.into(),
                name: name.into(),
                uid: uid.into(),
                controller: Some(true),
                block_owner_deletion: None,
            });
            let pod = pod(Some("g"));
            assert_eq!(Whose::Own.is_made_for(&claim, &pod), own, "{kind} {name}");
            assert_eq!(Whose::OwnOrGroups.is_made_for(&claim, &pod), or_groups, "{kind} {name}");
            let mut elsewhere = pod.clone();
            elsewhere.metadata.namespace = "elsewhere".into();
            assert!(!Whose::OwnOrGroups.is_made_for(&claim, &elsewhere));
        }
    }

    #[test]
    fn claims_are_set_aside_for_the_pod_or_for_its_group() {
        let consumer = |api_group: &str, resource: &str, name: &str, uid: &str| ResourceClaimConsumerReference {
            api_group: api_group.into(),
            resource: resource.into(),
            name: name.into(),
            uid: uid.into(),
        };
        for (group, consumer, own, or_groups) in [
            (None, consumer("", "pods", "p", "uid-p"), true, true),
            (None, consumer("", "pods", "p", "uid-before"), false, false),
            (Some("g"), consumer(GROUP, RESOURCE, "g", "uid-g"), false, true),
            (Some("h"), consumer(GROUP, RESOURCE, "g", "uid-g"), false, false),
            (None, consumer(GROUP, RESOURCE, "g", "uid-g"), false, false),
            (Some("g"), consumer("", "pods", "g", "uid-g"), false, false),
        ] {
            let (mut claim, pod) = (ResourceClaim::default(), pod(group));
            claim.status.reserved_for.push(consumer.clone());
            assert_eq!(Whose::Own.is_reserved_for(&claim, &pod), own, "{group:?} {consumer:?}");
            assert_eq!(Whose::OwnOrGroups.is_reserved_for(&claim, &pod), or_groups, "{group:?} {consumer:?}");
        }
    }

    #[test]
    fn entries_that_equal_the_groups_are_shared() {
        let mut group = PodGroup::default();
        (group.metadata.name, group.metadata.uid) = ("g".into(), "uid-g".into());
        for (name, claim, template) in [("a", Some("c"), None), ("b", None, Some("t"))] {
            group.spec.resource_claims.push(PodGroupResourceClaim {
                name: name.into(),
                resource_claim_name: claim.map(str::to_owned),
                resource_claim_template_name: template.map(str::to_owned),
            });
        }
        for ((name, claim, template), expected) in [
            (("a", Some("c"), None), "podgroups"),
            (("b", None, Some("t")), "podgroups"),
            (("a", Some("d"), None), "pods"),
            (("b", None, Some("c")), "pods"),
            (("other", None, Some("t")), "pods"),
        ] {
            let entry = PodResourceClaim {
                name: name.into(),
                resource_claim_name: claim.map(str::to_owned),
                resource_claim_template_name: template.map(str::to_owned),
            };
            assert_eq!(consumer(&pod(Some("g")), &entry, Some(&group)).resource, expected, "{name} {claim:?}");
            assert_eq!(consumer(&pod(Some("g")), &entry, None).uid, "uid-p");
        }
    }
}
