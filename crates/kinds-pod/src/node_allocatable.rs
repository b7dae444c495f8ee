//! What claims give a pod of a node's own resources, beside devices (KEP-5517).

use api_machinery::field_path::{ErrorList, Path};
use api_types::core_v1::Pod;
use api_types::core_v1::constants::resource_name::{CPU, EPHEMERAL_STORAGE, MEMORY};

/// What is wrong with a name that [`is_allocatable`] does not know.
pub const NOT_ALLOCATABLE: &str = "must be a node allocatable resource name";

/// Whether a node has so much of a resource itself that pods are given of it.
#[must_use]
pub fn is_allocatable(name: &str) -> bool {
    [CPU, MEMORY, EPHEMERAL_STORAGE].contains(&name) || name.starts_with("hugepages-")
}

/// Checks what a pod's status says of its claims, each of which the pod must have.
pub fn validate_claims(path: &Path, pod: &Pod, errors: &mut ErrorList) {
    let (spec, status) = (&pod.spec, &pod.status);
    let named = spec.resource_claims.iter().filter_map(|claim| claim.resource_claim_name.as_deref());
    let made = status.resource_claim_statuses.iter().filter_map(|claim| claim.resource_claim_name.as_deref());
    let extended = status.extended_resource_claim_status.iter().map(|claim| claim.resource_claim_name.as_str());
    let known: Vec<&str> = named.chain(made).chain(extended).collect();
    for (index, claim) in status.node_allocatable_resource_claim_statuses.iter().enumerate() {
        let at = path.index(index);
        let (name, named) = (claim.resource_claim_name.as_str(), at.child("resourceClaimName"));
        if name.is_empty() {
            errors.push(named.required("must not be empty"));
        } else if !known.contains(&name) {
            errors.push(named.invalid(name, "no mapping found in pod reference"));
        }
        let (containers, resources) = (at.child("containers"), at.child("resources"));
        for (field, is_empty) in
            [(containers, claim.containers.is_empty()), (resources.clone(), claim.resources.is_empty())]
        {
            if is_empty {
                errors.push(field.required("must not be empty"));
            }
        }
        for (name, amount) in &claim.resources {
            let at = resources.key(name);
            if !is_allocatable(name) {
                errors.push(at.invalid(name.as_str(), NOT_ALLOCATABLE));
            }
            if amount.sign() < 0 {
                errors.push(at.invalid(amount.to_string(), "must be non-negative"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::json;

    use super::*;

    #[test]
    fn what_claims_give_belongs_to_claims_of_the_pod() {
        let check = |statuses: &str| {
            let mut pod = Pod::default();
            let body = format!(
                r#"{{"spec":{{"resourceClaims":[{{"name":"own","resourceClaimName":"named"}},{{"name":"t"}}]}},
                    "status":{{"resourceClaimStatuses":[{{"name":"t","resourceClaimName":"made"}}],
                        "extendedResourceClaimStatus":{{"requestMappings":[],"resourceClaimName":"extended"}},
                        "nodeAllocatableResourceClaimStatuses":{statuses}}}}}"#
            );
            json::decode(body.as_bytes(), &mut pod).expect("a pod");
            let mut errors = ErrorList::new();
            validate_claims(&Path::new("s"), &pod, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let one = |name: &str, resources: &str| {
            format!(r#"[{{"resourceClaimName":"{name}","containers":["c"],"resources":{resources}}}]"#)
        };
        for (statuses, expected) in [
            (one("named", r#"{"cpu":"1","hugepages-2Mi":"0"}"#), vec![]),
            (one("made", r#"{"memory":"1Gi"}"#), vec![]),
            (one("extended", r#"{"ephemeral-storage":"1Gi"}"#), vec![]),
            (
                one("t", r#"{"cpu":"1"}"#),
                vec!["s[0].resourceClaimName: Invalid value: \"t\": no mapping found in pod reference"],
            ),
            (
                r#"[{"resourceClaimName":"","resources":{}}]"#.to_owned(),
                vec![
                    "s[0].resourceClaimName: Required value: must not be empty",
                    "s[0].containers: Required value: must not be empty",
                    "s[0].resources: Required value: must not be empty",
                ],
            ),
            (
                one("named", r#"{"a.com/gpu":"-1"}"#),
                vec![
                    "s[0].resources[a.com/gpu]: Invalid value: \"a.com/gpu\": must be a node allocatable resource name",
                    "s[0].resources[a.com/gpu]: Invalid value: \"-1\": must be non-negative",
                ],
            ),
        ] {
            assert_eq!(check(&statuses), expected, "{statuses}");
        }
    }
}
