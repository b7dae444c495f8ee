//! Which claims a pod means.

use api_types::core_v1::{Pod, PodResourceClaim};
use component_helpers::pod_state;

use super::holder::Holder;

/// The longest prefix that leaves room for what the server appends.
const MAX_PREFIX: usize = 57;

/// The claim that an entry of a pod stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::devices) enum Named<'p> {
    /// This one. One that was made for the pod must be the pod's own, or its group's.
    Claim { name: &'p str, is_made: bool },
    /// One that is to be made from this template.
    ToMake { template: &'p str },
    /// None: the template asks for nothing.
    Nothing,
    /// Nobody knows.
    Unknown,
}

impl<'p> Named<'p> {
    pub(in crate::devices) fn of(pod: &'p Pod, entry: &'p PodResourceClaim) -> Self {
        Holder::Pod(pod).named(entry.into())
    }
}

/// The names of all claims of a pod that are known, the one for extended resources among them.
pub(super) fn claims_of(pod: &Pod) -> Vec<&str> {
    let extended = pod.status.extended_resource_claim_status.as_ref().map(|status| status.resource_claim_name.as_str());
    Holder::Pod(pod).names().into_iter().chain(extended).collect()
}

/// The prefix of the name of a claim that is made for an entry of a pod, or of a group: both parts lose their share where it is too long.
pub(super) fn prefix(holder: &str, entry: &str) -> String {
    let whole = format!("{holder}-{entry}-");
    if whole.len() <= MAX_PREFIX {
        return whole;
    }
    // Names are ASCII.
    let share = |part: &str| part.get(..part.len() * MAX_PREFIX / whole.len()).unwrap_or(part).to_owned();
    format!("{}-{}", share(holder), share(entry))
}

/// Whether a pod has done with its claims: it has ended, or never began.
pub(super) fn is_done(pod: &Pod) -> bool {
    let never_began = pod.metadata.deletion_timestamp.is_some() && pod.spec.node_name.is_empty();
    pod_state::is_terminal(pod) || never_began
}

/// Whether a pod has anything to do with claims.
pub(super) fn has_claims(pod: &Pod) -> bool {
    !pod.spec.resource_claims.is_empty() || pod.status.extended_resource_claim_status.is_some()
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::PodResourceClaimStatus;

    use super::*;

    #[test]
    fn prefixes_leave_room() {
        let a = |count: usize| "a".repeat(count);
        for (pod, entry, expected) in [
            ("web-0".to_owned(), "gpu".to_owned(), "web-0-gpu-".to_owned()),
            (a(50), "b".repeat(20), format!("{}-{}", a(39), "b".repeat(15))),
            (a(63), "gpu".to_owned(), format!("{}-gp", a(52))),
            (a(51), "gpu".to_owned(), format!("{}-gpu-", a(51))),
        ] {
            assert_eq!(prefix(&pod, &entry), expected);
        }
    }

    #[test]
    fn entries_stand_for_claims() {
        let entry = |claim: Option<&str>, template: Option<&str>| PodResourceClaim {
            name: "e".into(),
            resource_claim_name: claim.map(str::to_owned),
            resource_claim_template_name: template.map(str::to_owned),
        };
        let mut pod = Pod::default();
        assert_eq!(Named::of(&pod, &entry(Some("c"), None)), Named::Claim { name: "c", is_made: false });
        assert_eq!(Named::of(&pod, &entry(None, Some("t"))), Named::ToMake { template: "t" });
        assert_eq!(Named::of(&pod, &entry(None, None)), Named::Unknown);
        let status = PodResourceClaimStatus { name: "e".into(), resource_claim_name: None };
        pod.status.resource_claim_statuses.push(status);
        assert_eq!(Named::of(&pod, &entry(None, Some("t"))), Named::Nothing);
        pod.status.resource_claim_statuses[0].resource_claim_name = Some("made".into());
        assert_eq!(Named::of(&pod, &entry(None, Some("t"))), Named::Claim { name: "made", is_made: true });
    }
}
