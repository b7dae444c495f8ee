//! Each gate of the kinds on both sides: what becomes of the fields that are behind it.

use api_machinery::json;
use feature_gates::{Feature, Gates};
use kinds::gates;
use kinds::rules::{Endpoint, RuleContext, Rules};

use super::{context, kind, read};

/// A kind, what all of these bring together, a word that only the field has, and an object with it.
type Row = (&'static str, &'static [Feature], &'static str, &'static str);

const CLAIMS: &str = "resource.k8s.io/resourceclaims";
const TEMPLATES: &str = "resource.k8s.io/resourceclaimtemplates";
const GROUPS: &str = "scheduling.k8s.io/v1alpha2/podgroups";
const WORKLOADS: &str = "scheduling.k8s.io/v1alpha2/workloads";
const SLICES: &str = "resource.k8s.io/resourceslices";

const ROWS: &[Row] = &[
    (
        "pods",
        &[gates::POD_LEVEL_RESOURCES],
        "1907m",
        r#"{"spec":{"resources":{"requests":{"cpu":"1907m"}},"containers":[{"name":"c"}]}}"#,
    ),
    (
        "apps/deployments",
        &[gates::POD_LEVEL_RESOURCES],
        "1907m",
        r#"{"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"1907m"}}}}}}"#,
    ),
    ("pods", &[gates::POD_LEVEL_RESIZE], "1907m", r#"{"status":{"resources":{"requests":{"cpu":"1907m"}}}}"#),
    ("pods", &[gates::POD_LEVEL_RESIZE], "1907m", r#"{"status":{"allocatedResources":{"cpu":"1907m"}}}"#),
    (
        "pods",
        &[gates::RESOURCE_HEALTH],
        "allocatedResourcesStatus",
        r#"{"status":{"containerStatuses":[{"name":"c","allocatedResourcesStatus":[{"name":"a.b/c","resources":[
            {"resourceID":"d","health":"Healthy"}]}]}]}}"#,
    ),
    (
        "pods",
        &[gates::RESOURCE_HEALTH_MESSAGE],
        "hot",
        r#"{"status":{"containerStatuses":[{"name":"c","allocatedResourcesStatus":[{"name":"a.b/c","resources":[
            {"resourceID":"d","health":"Unhealthy","message":"hot"}]}]}]}}"#,
    ),
    ("pods", &[gates::GENERIC_WORKLOAD], "schedulingGroup", r#"{"spec":{"schedulingGroup":{"podGroupName":"g"}}}"#),
    (
        "pods",
        &[gates::CLUSTER_TRUST_BUNDLE_PROJECTION],
        "clusterTrustBundle",
        r#"{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{"name":"b","path":"p"}}]}}]}}"#,
    ),
    (
        "pods",
        &[gates::POD_CERTIFICATE_REQUEST],
        "podCertificate",
        r#"{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"podCertificate":{"signerName":"a.b/c"}}]}}]}}"#,
    ),
    (
        "podtemplates",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}"#,
    ),
    (
        "replicationcontrollers",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}"#,
    ),
    (
        "apps/daemonsets",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}"#,
    ),
    (
        "apps/deployments",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}"#,
    ),
    (
        "apps/replicasets",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}"#,
    ),
    (
        "apps/statefulsets",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}"#,
    ),
    (
        "batch/jobs",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}"#,
    ),
    (
        "batch/cronjobs",
        &[gates::GENERIC_WORKLOAD],
        "schedulingGroup",
        r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"schedulingGroup":{"podGroupName":"g"}}}}}}}"#,
    ),
    (
        "apps/statefulsets",
        &[gates::STATEFUL_SET_MAX_UNAVAILABLE],
        "maxUnavailable",
        r#"{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}}}"#,
    ),
    (
        "autoscaling/v2/horizontalpodautoscalers",
        &[gates::SCALING_TOLERANCE],
        "tolerance",
        r#"{"spec":{"behavior":{"scaleUp":{"tolerance":"1"},"scaleDown":{"tolerance":"2"}}}}"#,
    ),
    (
        "storage.k8s.io/csidrivers",
        &[gates::VOLUME_LIMIT_SCALING],
        "preventPodSchedulingIfMissing",
        r#"{"spec":{"preventPodSchedulingIfMissing":true}}"#,
    ),
    (
        CLAIMS,
        &[gates::ADMIN_ACCESS],
        "adminAccess",
        r#"{"spec":{"devices":{"requests":[{"exactly":{"adminAccess":true}}]}}}"#,
    ),
    (
        CLAIMS,
        &[gates::PRIORITIZED_LIST],
        "firstAvailable",
        r#"{"spec":{"devices":{"requests":[{"firstAvailable":[{"name":"a"}]}]}}}"#,
    ),
    (
        CLAIMS,
        &[gates::DEVICE_TAINTS],
        "tolerations",
        r#"{"spec":{"devices":{"requests":[{"exactly":{"tolerations":[{"key":"a"}]}}]}}}"#,
    ),
    (
        CLAIMS,
        &[gates::DEVICE_TAINTS],
        "tolerations",
        r#"{"spec":{"devices":{"requests":[{"firstAvailable":[{"tolerations":[{"key":"a"}]}]}]}}}"#,
    ),
    (
        CLAIMS,
        &[gates::CONSUMABLE_CAPACITY],
        "capacity",
        r#"{"spec":{"devices":{"requests":[{"exactly":{"capacity":{"requests":{"a":"1"}}}}]}}}"#,
    ),
    (
        CLAIMS,
        &[gates::CONSUMABLE_CAPACITY],
        "distinctAttribute",
        r#"{"spec":{"devices":{"constraints":[{"distinctAttribute":"a/b"}]}}}"#,
    ),
    (
        CLAIMS,
        &[gates::ADMIN_ACCESS],
        "adminAccess",
        r#"{"status":{"allocation":{"devices":{"results":[{"adminAccess":true}]}}}}"#,
    ),
    (
        CLAIMS,
        &[gates::CONSUMABLE_CAPACITY],
        "shareID",
        r#"{"status":{"allocation":{"devices":{"results":[{"shareID":"a"}]}}}}"#,
    ),
    (
        CLAIMS,
        &[gates::BINDING_CONDITIONS, gates::DEVICE_STATUS],
        "bindingConditions",
        r#"{"status":{"allocation":{"devices":{"results":[{"bindingConditions":["a"]}]}}}}"#,
    ),
    (
        CLAIMS,
        &[gates::DEVICE_STATUS],
        "networkData",
        r#"{"status":{"devices":[{"networkData":{"interfaceName":"a"}}]}}"#,
    ),
    (
        TEMPLATES,
        &[gates::ADMIN_ACCESS],
        "adminAccess",
        r#"{"spec":{"spec":{"devices":{"requests":[{"exactly":{"adminAccess":true}}]}}}}"#,
    ),
    (
        TEMPLATES,
        &[gates::PRIORITIZED_LIST],
        "firstAvailable",
        r#"{"spec":{"spec":{"devices":{"requests":[{"firstAvailable":[{"name":"a"}]}]}}}}"#,
    ),
    (
        TEMPLATES,
        &[gates::DEVICE_TAINTS],
        "tolerations",
        r#"{"spec":{"spec":{"devices":{"requests":[{"exactly":{"tolerations":[{"key":"a"}]}}]}}}}"#,
    ),
    (
        TEMPLATES,
        &[gates::CONSUMABLE_CAPACITY],
        "distinctAttribute",
        r#"{"spec":{"spec":{"devices":{"constraints":[{"distinctAttribute":"a/b"}]}}}}"#,
    ),
    (
        "resource.k8s.io/deviceclasses",
        &[gates::EXTENDED_RESOURCE],
        "extendedResourceName",
        r#"{"spec":{"extendedResourceName":"a.b/c"}}"#,
    ),
    (
        "pods",
        &[gates::EXTENDED_RESOURCE],
        "extendedResourceClaimStatus",
        r#"{"spec":{"containers":[]},"status":{"extendedResourceClaimStatus":{"resourceClaimName":"a"}}}"#,
    ),
    (
        "pods",
        &[gates::NODE_ALLOCATABLE],
        "nodeAllocatableResourceClaimStatuses",
        r#"{"spec":{"containers":[]},"status":{"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"a"}]}}"#,
    ),
    (
        "pods",
        &[gates::IMAGE_VOLUME_DIGESTS],
        "imageRef",
        r#"{"spec":{"containers":[]},"status":{"containerStatuses":[{"name":"c","volumeMounts":[{"name":"v",
            "volumeStatus":{"image":{"imageRef":"r"}}}]}]}}"#,
    ),
    (
        "persistentvolumeclaims",
        &[gates::CROSS_NAMESPACE_SOURCE],
        "dataSourceRef",
        r#"{"spec":{"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"a","namespace":"b"}}}"#,
    ),
    (
        "pods",
        &[gates::CONTAINER_RESTART_RULES],
        "restartPolicyRules",
        r#"{"spec":{"containers":[{"name":"c","restartPolicy":"Never","restartPolicyRules":[{"action":"Restart"}]}]}}"#,
    ),
    (
        "pods",
        &[gates::ENV_FILES],
        "fileKeyRef",
        r#"{"spec":{"containers":[{"name":"c","env":[{"name":"e","valueFrom":{"fileKeyRef":{"key":"k"}}}]}]}}"#,
    ),
    ("pods", &[gates::HOSTNAME_OVERRIDE], "hostnameOverride", r#"{"spec":{"hostnameOverride":"h"}}"#),
    (
        "pods",
        &[gates::SPREAD_BY_LABEL_KEYS],
        "matchLabelKeys",
        r#"{"spec":{"topologySpreadConstraints":[{"topologyKey":"k","matchLabelKeys":["a"]}]}}"#,
    ),
    (
        "apps/deployments",
        &[gates::TERMINATING_REPLICAS],
        "terminatingReplicas",
        r#"{"status":{"terminatingReplicas":1}}"#,
    ),
    (
        "apps/replicasets",
        &[gates::TERMINATING_REPLICAS],
        "terminatingReplicas",
        r#"{"status":{"terminatingReplicas":1}}"#,
    ),
    (
        "apiextensions.k8s.io/customresourcedefinitions",
        &[gates::DEFINITION_GENERATIONS],
        "observedGeneration",
        r#"{"status":{"observedGeneration":1,"conditions":[{"type":"Established","observedGeneration":1}]}}"#,
    ),
    (
        GROUPS,
        &[gates::TOPOLOGY_AWARE_GROUPS],
        "topology",
        r#"{"spec":{"schedulingConstraints":{"topology":[{"key":"a"}]}}}"#,
    ),
    (GROUPS, &[gates::GROUP_CLAIMS], "resourceClaims", r#"{"spec":{"resourceClaims":[{"name":"a"}]}}"#),
    (GROUPS, &[gates::GROUP_PREEMPTION], "priorityClassName", r#"{"spec":{"priorityClassName":"a"}}"#),
    (GROUPS, &[gates::GROUP_PREEMPTION], "\"priority\"", r#"{"spec":{"priority":1}}"#),
    (
        WORKLOADS,
        &[gates::TOPOLOGY_AWARE_GROUPS],
        "topology",
        r#"{"spec":{"podGroupTemplates":[{"schedulingConstraints":{"topology":[{"key":"a"}]}}]}}"#,
    ),
    (
        WORKLOADS,
        &[gates::GROUP_CLAIMS],
        "resourceClaims",
        r#"{"spec":{"podGroupTemplates":[{"resourceClaims":[{"name":"a"}]}]}}"#,
    ),
    (WORKLOADS, &[gates::GROUP_PREEMPTION], "priority", r#"{"spec":{"podGroupTemplates":[{"priority":1}]}}"#),
    (SLICES, &[gates::DEVICE_TAINTS], "taints", r#"{"spec":{"devices":[{"taints":[{"key":"a"}]}]}}"#),
    (SLICES, &[gates::PARTITIONABLE_DEVICES], "sharedCounters", r#"{"spec":{"sharedCounters":[{"name":"a"}]}}"#),
    (
        SLICES,
        &[gates::PARTITIONABLE_DEVICES],
        "consumesCounters",
        r#"{"spec":{"devices":[{"consumesCounters":[{"counterSet":"a"}]}]}}"#,
    ),
    (
        SLICES,
        &[gates::CONSUMABLE_CAPACITY],
        "requestPolicy",
        r#"{"spec":{"devices":[{"capacity":{"a":{"value":"1","requestPolicy":{}}}}]}}"#,
    ),
    (
        SLICES,
        &[gates::BINDING_CONDITIONS, gates::DEVICE_STATUS],
        "bindsToNode",
        r#"{"spec":{"devices":[{"bindsToNode":true}]}}"#,
    ),
    (SLICES, &[gates::LIST_ATTRIBUTES], "ints", r#"{"spec":{"devices":[{"attributes":{"a":{"ints":[1]}}}]}}"#),
    (
        SLICES,
        &[gates::NODE_ALLOCATABLE],
        "capacityKey",
        r#"{"spec":{"devices":[{"nodeAllocatableResourceMappings":{"cpu":{"capacityKey":"a"}}}]}}"#,
    ),
];

/// A kind by `group/resource`, or by `group/version/resource` where it is not of version 1.
fn named(name: &str) -> &'static dyn Rules {
    let mut parts = name.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(group), Some(version), Some(resource)) => kinds::find(group, version, resource).expect(name),
        _ => kind(name),
    }
}

/// As some of the fields stand within others.
fn all_on() -> Gates {
    gates::SWITCHED.iter().fold(Gates::default(), |gates, feature| gates.with(*feature, true))
}

fn written(rules: &dyn Rules, gates: &Gates, text: &str, old: Option<&str>, endpoint: Endpoint) -> String {
    let cx = RuleContext { gates: gates.clone(), ..context() };
    let mut object = read(rules, text);
    match old {
        Some(old) => rules.prepare_update(&cx, endpoint, &mut *object, &*read(rules, old)),
        None => rules.prepare_create(&cx, &mut *object),
    }
    json::encode(object.as_reflect())
}

#[test]
fn fields_go_while_a_feature_is_off_unless_they_are_stored() {
    for (name, features, word, text) in ROWS {
        let rules = named(name);
        let on = all_on();
        // A status is wiped when its object is created.
        let in_status = text.contains("\"status\"");
        let endpoint = if in_status { Endpoint::Status } else { Endpoint::Main };
        let has = |gates: &Gates, old| written(rules, gates, text, old, endpoint).contains(word);
        assert!(has(&on, Some("{}")), "{name} {word}: updated, on");
        assert!(in_status || has(&on, None), "{name} {word}: created, on");
        for feature in *features {
            let off = on.with(*feature, false);
            assert!(!has(&off, Some("{}")), "{name} {word}: updated without {}", feature.name());
            assert!(!has(&off, None), "{name} {word}: created without {}", feature.name());
            assert!(has(&off, Some(*text)), "{name} {word}: stored before {} was off", feature.name());
        }
    }
}

#[test]
fn each_gate_of_a_field_has_a_row() {
    let seen: Vec<Feature> = ROWS.iter().flat_map(|row| row.1).copied().collect();
    for feature in kinds::all().flat_map(Rules::gates) {
        assert!(seen.contains(&feature), "{}", feature.name());
    }
}
