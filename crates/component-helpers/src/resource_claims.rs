//! Which claims for dynamic resources a pod means, and whether it may use them.

use api_types::core_v1::{Pod, PodResourceClaim};
use api_types::resource_v1::ResourceClaim;
use api_types::resource_v1::constants::{EXTENDED_RESOURCE_CLAIM, EXTENDED_RESOURCE_CLAIM_ANNOTATION};
use api_types::resource_v1alpha3::DeviceTaintSelector;

use crate::group_claims::Whose;

/// Whether a rule's selector selects a device. What it does not state does not matter.
#[must_use]
pub fn selects(selector: &DeviceTaintSelector, driver: &str, pool: &str, device: &str) -> bool {
    let parts = [(&selector.driver, driver), (&selector.pool, pool), (&selector.device, device)];
    parts.iter().all(|(wanted, own)| wanted.as_deref().is_none_or(|wanted| wanted == *own))
}

/// Why it is not known which claim an entry of a pod means; upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimNameError {
    /// The claim is made from a template, and has not been.
    #[error("pod \"{0}\": ResourceClaim not created yet")]
    NotCreated(String),
    /// The entry names neither a claim nor a template.
    #[error("pod \"{pod}\", spec.resourceClaim {claim:?}: none of the supported fields are set")]
    Unsupported {
        /// Namespace and name.
        pod: String,
        /// The entry's name.
        claim: String,
    },
}

/// A claim that was made for one pod is another's; upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ResourceClaim {namespace}/{claim} was not created for Pod {namespace}/{pod} ({})", not_owner(.group.as_deref()))]
pub struct NotOwner {
    /// Of both.
    pub namespace: String,
    /// The claim's name.
    pub claim: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's group, whose claim it might be as well.
    pub group: Option<String>,
}

fn not_owner(group: Option<&str>) -> String {
    match group {
        None => "Pod is not owner".to_owned(),
        Some(group) => format!("neither Pod nor PodGroup {group} is the owner"),
    }
}

/// The claim that an entry of a pod means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedClaim<'p> {
    /// The name of the object.
    pub name: &'p str,
    /// It was made from a template, and must be the pod's own.
    pub is_made: bool,
}

/// The claim that an entry of a pod means; none where its template asks for nothing.
///
/// # Errors
/// It is not known which.
pub fn of_entry<'p>(pod: &'p Pod, entry: &'p PodResourceClaim) -> Result<Option<NamedClaim<'p>>, ClaimNameError> {
    let full_name = || format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
    if let Some(name) = &entry.resource_claim_name {
        return Ok(Some(NamedClaim { name, is_made: false }));
    }
    if entry.resource_claim_template_name.is_none() {
        return Err(ClaimNameError::Unsupported { pod: full_name(), claim: entry.name.clone() });
    }
    let made = pod.status.resource_claim_statuses.iter().find(|status| status.name == entry.name);
    let made = made.ok_or_else(|| ClaimNameError::NotCreated(full_name()))?;
    Ok(made.resource_claim_name.as_deref().map(|name| NamedClaim { name, is_made: true }))
}

/// A claim that was made for a pod must be that pod's, or its group's where groups share claims.
///
/// # Errors
/// It is not.
pub fn check_owner(claim: &ResourceClaim, pod: &Pod, whose: Whose) -> Result<(), NotOwner> {
    if whose.is_made_for(claim, pod) {
        return Ok(());
    }
    let (namespace, claim) = (pod.metadata.namespace.clone(), claim.metadata.name.clone());
    let group = whose.group_of(pod).map(str::to_owned);
    Err(NotOwner { namespace, claim, pod: pod.metadata.name.clone(), group })
}

/// Whether a claim is reserved for a pod, or a group, of this uid.
#[must_use]
pub fn is_reserved_for(claim: &ResourceClaim, uid: &str) -> bool {
    claim.status.reserved_for.iter().any(|consumer| consumer.uid == uid)
}

/// Whether the scheduler made a claim for the extended resources of a pod (KEP-5004), as it says itself.
#[must_use]
pub fn is_for_extended_resources(claim: &ResourceClaim) -> bool {
    claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM_ANNOTATION).is_some_and(|own| own == EXTENDED_RESOURCE_CLAIM)
}

/// The containers of a pod that have an extended resource from the claim that the scheduler made, instead of from what the
/// node lists.
pub fn served_by_claim<'p>(pod: &'p Pod, resource: &str) -> impl Iterator<Item = &'p str> {
    let mappings = pod.status.extended_resource_claim_status.iter().flat_map(|status| &status.request_mappings);
    mappings.filter(move |own| own.resource_name == resource).map(|own| own.container_name.as_str())
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{PodResourceClaimStatus, PodSchedulingGroup};

    use super::*;

    #[test]
    fn whose_a_claim_is_not() {
        let (mut pod, mut claim) = (Pod::default(), ResourceClaim::default());
        (pod.metadata.namespace, pod.metadata.name) = ("ns".into(), "web".into());
        claim.metadata.name = "c".into();
        let told = |pod: &Pod, whose| check_owner(&claim, pod, whose).unwrap_err().to_string();
        let own = "ResourceClaim ns/c was not created for Pod ns/web (Pod is not owner)";
        assert_eq!(told(&pod, Whose::OwnOrGroups), own);
        pod.spec.scheduling_group = Some(PodSchedulingGroup { pod_group_name: Some("g".into()) });
        assert_eq!(told(&pod, Whose::Own), own);
        let any = "ResourceClaim ns/c was not created for Pod ns/web (neither Pod nor PodGroup g is the owner)";
        assert_eq!(told(&pod, Whose::OwnOrGroups), any);
    }

    #[test]
    fn entries_mean_claims() {
        let entry = |claim: Option<&str>, template: Option<&str>| PodResourceClaim {
            name: "e".into(),
            resource_claim_name: claim.map(str::to_owned),
            resource_claim_template_name: template.map(str::to_owned),
        };
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("ns".into(), "web".into());
        let told = |pod: &Pod, entry: &PodResourceClaim| {
            of_entry(pod, entry)
                .map(|claim| claim.map(|claim| (claim.name.to_owned(), claim.is_made)))
                .map_err(|error| error.to_string())
        };
        assert_eq!(told(&pod, &entry(Some("c"), None)), Ok(Some(("c".into(), false))));
        assert_eq!(
            told(&pod, &entry(None, Some("t"))),
            Err("pod \"ns/web\": ResourceClaim not created yet".to_owned())
        );
        assert_eq!(
            told(&pod, &entry(None, None)),
            Err("pod \"ns/web\", spec.resourceClaim \"e\": none of the supported fields are set".to_owned())
        );
        pod.status.resource_claim_statuses =
            vec![PodResourceClaimStatus { name: "e".into(), resource_claim_name: None }];
        assert_eq!(told(&pod, &entry(None, Some("t"))), Ok(None));
        pod.status.resource_claim_statuses[0].resource_claim_name = Some("made".into());
        assert_eq!(told(&pod, &entry(None, Some("t"))), Ok(Some(("made".into(), true))));
    }
}
