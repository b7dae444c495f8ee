//! What writers of statuses are told, what is kept of what they leave out, and what is dropped.

use super::*;
use crate::core_v1::pod::PodRules;
use crate::rules::TypedRules as _;
use feature_gates::Gates;

/// A pod of one container with the status given.
fn pod(status: &str) -> Pod {
    let spec = r#"{"containers":[{"name":"c","image":"i","resources":{"requests":{"a.com/gpu":"1"}}}],"restartPolicy":"Never"}"#;
    let text = format!(r#"{{"metadata":{{"name":"p","namespace":"n"}},"spec":{spec},"status":{status}}}"#);
    let mut pod = Pod::default();
    api_machinery::json::decode(text.as_bytes(), &mut pod).expect("a pod");
    pod
}

fn texts(new: &str, old: &str) -> Vec<String> {
    validate(&pod(new), &pod(old), &Gates::default()).iter().map(ToString::to_string).collect()
}

#[test]
fn statuses() {
    let ended = r#"{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1}}}]}"#;
    for (new, old, expected) in [
        ("{}", "{}", vec![]),
        (
            r#"{"conditions":[{"type":"-","observedGeneration":-1}]}"#,
            "{}",
            vec![
                "status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer".to_owned(),
            ],
        ),
        (
            r#"{"containerStatuses":[{"name":"c","volumeMounts":[{"name":"v","volumeStatus":{"image":{}}}]}]}"#,
            "{}",
            vec![
                "status.containerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef: Required value: \
                 imageRef must not be empty"
                    .to_owned(),
            ],
        ),
        (
            r#"{"qosClass":"Burstable"}"#,
            r#"{"qosClass":"BestEffort"}"#,
            vec!["status.qosClass: Invalid value: \"Burstable\": field is immutable".to_owned()],
        ),
        (
            r#"{"containerStatuses":[{"name":"c","state":{"running":{}}}]}"#,
            ended,
            vec![
                "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
                    .to_owned(),
            ],
        ),
        (
            r#"{"resourceClaimStatuses":[{"name":"x"}]}"#,
            "{}",
            vec![
                "status.resourceClaimStatuses[0].name: Invalid value: \"x\": must match the name of an entry in \
                 `spec.resourceClaims`"
                    .to_owned(),
            ],
        ),
        (
            r#"{"podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}"#,
            "{}",
            vec![
                "status.podIPs: Invalid value: [{\"IP\":\"10.0.0.1\"},{\"IP\":\"10.0.0.2\"}]: may specify no more \
                 than one IP for each IP family"
                    .to_owned(),
            ],
        ),
        (
            r#"{"ephemeralContainerStatuses":[{"name":"e","allocatedResourcesStatus":[{"name":"a"}]}]}"#,
            "{}",
            vec![
                "status.ephemeralContainerStatuses[0].allocatedResourcesStatus: Forbidden: must not be specified in \
                 container status"
                    .to_owned(),
            ],
        ),
    ] {
        let mut found = texts(new, old);
        // A bad type has a long text of its own, which the tests of names have.
        found.retain(|text| !text.contains("conditions[0].Type"));
        assert_eq!(found, expected, "{new}");
    }
}

#[test]
fn claims_for_extended_resources() {
    let claim = "status.extendedResourceClaimStatus";
    for (new, old, expected) in [
        (
            r#"{"extendedResourceClaimStatus":{"requestMappings":[{"containerName":"c","resourceName":"a.com/gpu","requestName":"r"}],"resourceClaimName":"n"}}"#,
            "{}",
            vec![],
        ),
        (
            r#"{"extendedResourceClaimStatus":{"requestMappings":[],"resourceClaimName":""}}"#,
            "{}",
            vec![
                format!("{claim}.requestMappings: Required value: at least one request mapping is required"),
                format!("{claim}.resourceClaimName: Required value"),
            ],
        ),
        (
            r#"{"extendedResourceClaimStatus":{"requestMappings":[{"containerName":"d","resourceName":"a","requestName":"r"},{"containerName":"c","resourceName":"b.com/x","requestName":"r"}],"resourceClaimName":"n"}}"#,
            "{}",
            vec![
                format!(
                    "{claim}.requestMappings[0].containerName: Invalid value: \"d\": must match the name of an entry in \
                     spec.initContainers.name or spec.containers.name"
                ),
                format!(
                    "{claim}.requestMappings[1].resourceName: Invalid value: \"b.com/x\": must match the extended \
                     resource name of an entry in spec.initContainers.resources.requests or \
                     spec.containers.resources.requests"
                ),
            ],
        ),
    ] {
        assert_eq!(texts(new, old), expected, "{new}");
    }
}

#[test]
fn what_is_off_is_dropped_and_what_is_unsaid_is_kept() {
    let old = pod(
        r#"{"qosClass":"Burstable","observedGeneration":3,"conditions":[{"type":"Ready","observedGeneration":2}]}"#,
    );
    let mount = r#"{"name":"v","mountPath":"/v","volumeStatus":{"image":{"imageRef":"r"}}}"#;
    let mut new = pod(&format!(
        r#"{{"conditions":[{{"type":"Ready"}},{{"type":"Ready"}}],"nodeAllocatableResourceClaimStatuses":[{{}}],
            "containerStatuses":[{{"name":"c","volumeMounts":[{mount}]}}]}}"#
    ));
    keep_unsaid(&mut new.status, &old.status);
    crate::gated::drop_disabled(PodRules::GATED, &Gates::default(), &mut new, Some(&old));
    let status = &new.status;
    assert_eq!((status.qos_class.as_str(), status.observed_generation), ("Burstable", 3));
    assert_eq!(status.conditions.iter().map(|one| one.observed_generation).collect::<Vec<_>>(), [2, 0]);
    assert!(status.node_allocatable_resource_claim_statuses.is_empty());
    assert!(status.container_statuses[0].volume_mounts[0].volume_status.is_none());
}

#[test]
fn addresses_in_unusual_spellings() {
    let status = pod(r#"{"podIPs":[{"ip":"FD00::1"}],"hostIPs":[{"ip":"10.0.0.1"}]}"#).status;
    let expected = "status.podIPs[0].ip: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")";
    assert_eq!(warnings(&status), [expected]);
}
