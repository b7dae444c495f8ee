//! What volumes, claims, nodes, ranges and quotas are told, by what is wrong with them.

use api_machinery::field_path::ErrorList;
use api_machinery::reflect::Reflect;
use api_types::core_v1::{
    Endpoints, LimitRange, Node, PersistentVolume, PersistentVolumeClaim, ReplicationController, ResourceQuotaSpec,
    Service,
};

use feature_gates::Gates;

use crate::rules::{Endpoint, RuleContext, TypedRules};

fn read<T: Default + Reflect>(text: &str) -> T {
    let mut object = T::default();
    api_machinery::json::decode(text.as_bytes(), &mut object).expect("an object");
    object
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(|error| error.to_string().lines().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn volumes() {
    let good = r#"{"apiVersion":"v1","kind":"PersistentVolume","spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/d"}}}"#;
    let old: PersistentVolume = read(good);
    assert_eq!(texts(&super::volume_validation::validate(&old)), Vec::<String>::new());
    let mut new = old.clone();
    new.spec.persistent_volume_source.host_path = None;
    new.spec.capacity.clear();
    assert_eq!(
        texts(&super::volume_validation::validate_update(&new, &old, &Gates::default())),
        [
            "spec.capacity: Required value",
            "spec.capacity: Unsupported value: null: supported values: \"storage\"",
            "spec: Required value: must specify a volume type",
            "spec.capacity: Required value",
            "spec.capacity: Unsupported value: null: supported values: \"storage\"",
            "spec: Required value: must specify a volume type",
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation",
        ]
    );
}

#[test]
fn claims() {
    let good = r#"{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#;
    let mut old: PersistentVolumeClaim = read(good);
    let mut new = old.clone();
    new.spec.volume_name = "v".into();
    assert_eq!(texts(&super::claim_validation::validate_update(&new, &old)), Vec::<String>::new());
    new.spec.resources.requests.clear();
    assert_eq!(texts(&super::claim_validation::validate(&new)), ["spec.resources[storage]: Required value"]);
    old.spec.volume_name = "v".into();
    let mut other = old.clone();
    other.spec.volume_name = "w".into();
    let expected = "spec: Forbidden: spec is immutable after creation except resources.requests and \
                    volumeAttributesClassName for bound claims";
    assert_eq!(texts(&super::claim_validation::validate_update(&other, &old)), [expected]);
}

fn volume(extra: &str, annotation: &str) -> PersistentVolume {
    let (key, value) = annotation.split_once('=').unwrap_or_default();
    let annotations = if key.is_empty() { String::new() } else { format!(r#""{key}":"{value}""#) };
    read(&format!(
        r#"{{"metadata":{{"annotations":{{{annotations}}}}},"spec":{{"accessModes":["ReadWriteOnce"],"capacity":{{"storage":"1Gi"}},{extra}}}}}"#
    ))
}

#[test]
fn volumes_of_each_kind() {
    const OPTIONS: &str = "volume.beta.kubernetes.io/mount-options=ro";
    for (extra, annotation, expected) in [
        (r#""nfs":{"server":"s","path":"/p"}"#, OPTIONS, &[][..]),
        (
            r#""hostPath":{"path":"/p"}"#,
            OPTIONS,
            &[
                "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options \
               for this volume type",
            ],
        ),
        (
            r#""glusterfs":{"endpoints":"e","path":"p","endpointsNamespace":""}"#,
            "",
            &["spec.glusterfs.endpointsNamespace: Invalid value: \"\": if the endpointnamespace is set, it must be a \
               valid namespace name"],
        ),
        (r#""local":{"path":"/p"}"#, "", &["spec.nodeAffinity: Required value: Local volume requires node affinity"]),
        (
            r#""hostPath":{"path":"//."},"persistentVolumeReclaimPolicy":"Recycle""#,
            "",
            &["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
        ),
        (r#""hostPath":{"path":"."},"persistentVolumeReclaimPolicy":"Recycle""#, "", &[]),
        (
            r#""hostPath":{"path":"/p"},"volumeAttributesClassName":"c""#,
            "",
            &["spec.csi: Required value: has to be specified when using volumeAttributesClassName"],
        ),
        (
            r#""hostPath":{"path":"/p"},"nfs":{"server":"s","path":"/p"}"#,
            "",
            &["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
    ] {
        assert_eq!(texts(&super::volume_validation::validate(&volume(extra, annotation))), expected, "{extra}");
    }
}

#[test]
fn what_may_change_of_a_volume() {
    let affinity = |key: &str, value: &str| {
        let term = format!(r#"{{"key":"{key}","operator":"In","values":["{value}"]}}"#);
        let terms = format!(r#"[{{"matchExpressions":[{term}]}}]"#);
        volume(
            &format!(r#""hostPath":{{"path":"/p"}},"nodeAffinity":{{"required":{{"nodeSelectorTerms":{terms}}}}}"#),
            "",
        )
    };
    let fixed = "nodeAffinity: Invalid value: {\"Required\"";
    for (old, new, expected) in [
        (affinity("beta.kubernetes.io/os", "a"), affinity("kubernetes.io/os", "a"), None),
        (affinity("kubernetes.io/os", "a"), affinity("beta.kubernetes.io/os", "a"), Some(fixed)),
        (affinity("beta.kubernetes.io/os", "a"), affinity("kubernetes.io/os", "b"), Some(fixed)),
        // A value that is no label's is not held against a volume that has one.
        (affinity("beta.kubernetes.io/os", "-"), affinity("kubernetes.io/os", "-"), None),
        (volume(r#""hostPath":{"path":"/p"}"#, ""), affinity("a", "b"), None),
    ] {
        let found = texts(&super::volume_validation::validate_update(&new, &old, &Gates::default()));
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        assert!(found.iter().zip(expected).all(|(text, expected)| text.starts_with(expected)), "{found:?}");
        let on = Gates::default().with(crate::gates::MUTABLE_NODE_AFFINITY, true);
        assert_eq!(texts(&super::volume_validation::validate_update(&new, &old, &on)), Vec::<String>::new());
    }
}

#[test]
fn volumes_of_old() {
    for (extra, annotation, expected) in [
        (
            r#""rbd":{"monitors":["m"],"image":"i"}"#,
            "volume.beta.kubernetes.io/storage-class=c",
            &[
                "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \
                 \"storageClassName\" attribute instead",
                "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
            ][..],
        ),
        (
            r#""persistentVolumeReclaimPolicy":"Recycle","nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"beta.kubernetes.io/arch","operator":"Exists"}]}]}}"#,
            "",
            &[
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
                 approach is to use dynamic provisioning.",
                "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is \
                 deprecated since v1.14; use \"kubernetes.io/arch\" instead",
            ],
        ),
    ] {
        assert_eq!(super::volume_warnings::of(&volume(extra, annotation)), expected, "{extra}");
    }
}

fn claim(class: &str, annotation: &str, storage: &str) -> PersistentVolumeClaim {
    let class = if class.is_empty() { String::new() } else { format!(r#","storageClassName":"{class}""#) };
    let annotations = match annotation {
        "" => String::new(),
        class => format!(r#""volume.beta.kubernetes.io/storage-class":"{class}""#),
    };
    read(&format!(
        r#"{{"metadata":{{"annotations":{{{annotations}}}}},"spec":{{"accessModes":["ReadWriteOnce"],"resources":{{"requests":{{"storage":"{storage}"}}}}{class}}}}}"#
    ))
}

#[test]
fn classes_of_claims() {
    const FIXED: &str = "metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value";
    const SPEC: &str = "spec: Forbidden: spec is immutable";
    for (old, new, expected) in [
        (("", ""), ("c", ""), &[][..]),
        (("", "c"), ("c", ""), &[]),
        (("", "c"), ("c", "c"), &[]),
        (("", "c"), ("d", "c"), &[SPEC]),
        (("", "c"), ("", ""), &[FIXED]),
        (("c", ""), ("d", ""), &[SPEC]),
        (("c", ""), ("c", "c"), &[FIXED]),
    ] {
        let (old, new) = (claim(old.0, old.1, "1Gi"), claim(new.0, new.1, "1Gi"));
        let found = texts(&super::claim_validation::validate_update(&new, &old));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(text, start)| text.starts_with(start)), "{found:?}");
    }
    assert_eq!(
        super::claim_validation::warnings(&claim("", "c", "1500m")),
        [
            "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \
             \"storageClassName\" attribute instead",
            "spec.resources.requests[storage]: fractional byte value \"1500m\" is invalid, must be an integer",
        ]
    );
}

#[test]
fn bound_claims_grow() {
    let bound = |storage: &str| {
        let mut claim = claim("c", "", storage);
        claim.status = read(r#"{"phase":"Bound","capacity":{"storage":"2Gi"}}"#);
        claim
    };
    let less = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity";
    for (old, new, expected) in [
        (bound("1Gi"), bound("3Gi"), &[][..]),
        (bound("3Gi"), bound("2Gi"), &[less]),
        // A growth that was asked for and not had yet may be taken back in part.
        (bound("4Gi"), bound("3Gi"), &[]),
    ] {
        assert_eq!(texts(&super::claim_validation::validate_update(&new, &old)), expected);
    }
    let found = texts(&super::claim_validation::validate_update(&claim("c", "", "2Gi"), &claim("c", "", "1Gi")));
    assert!(found.len() == 1 && found[0].starts_with("spec: Forbidden: spec is immutable"), "{found:?}");
}

#[test]
fn controllers() {
    let controller = |selector: &str, annotation: &str, name: &str| -> ReplicationController {
        let mut controller: ReplicationController = read(&format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"replicas":1,"selector":{{"app":"{selector}"}}}}}}"#
        ));
        if !annotation.is_empty() {
            controller.metadata.annotations.insert(format!("non-convertible.kubernetes.io/{annotation}"), "why".into());
        }
        controller
    };
    type Rules = super::replication_controller::ReplicationControllerRules;
    let cx = RuleContext::default();
    const TEMPLATE: &str = "spec.template: Required value";
    for (old, new, expected) in [
        (controller("a", "", "n"), controller("b", "", "n"), &[TEMPLATE][..]),
        (
            controller("a", "spec.selector", "n"),
            controller("b", "spec.selector", "n"),
            &[TEMPLATE, "spec.selector: Invalid value: {\"app\":\"b\"}: cannot update non-convertible selector"],
        ),
        (
            controller("a", "spec.other", "n"),
            controller("a", "", "n"),
            &[TEMPLATE, "spec.other: Not found: \"why\": unknown non-convertible field"],
        ),
    ] {
        assert_eq!(texts(&Rules::validate_update(&cx, Endpoint::Main, &new, &old)), expected);
    }
    let warned = Rules::warnings(&controller("a", "", "a.b"), None);
    assert!(warned.len() == 1 && warned[0].starts_with("metadata.name: this is used in Pod names"), "{warned:?}");
    assert!(Rules::validate_name(&"a".repeat(254), false)[0].ends_with("253 bytes"));
}

#[test]
fn addresses_in_unusual_spellings() {
    const IP: &str = "non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"";
    let mut endpoints: Endpoints =
        read(r#"{"subsets":[{"addresses":[{"ip":"010.0.0.1"}],"notReadyAddresses":[{"ip":"010.0.0.1"}]}]}"#);
    assert_eq!(
        super::endpoints::EndpointsRules::warnings(&endpoints, None),
        [format!("subsets[0].addresses[0].ip: {IP}"), format!("subsets[0].notReadyAddresses[0].ip: {IP}")]
    );
    let (key, value) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");
    endpoints.metadata.labels.insert(key.into(), value.into());
    assert_eq!(super::endpoints::EndpointsRules::warnings(&endpoints, None), Vec::<String>::new());

    let service: Service = read(
        r#"{"spec":{"type":"LoadBalancer","clusterIP":"010.0.0.1","clusterIPs":["010.0.0.1"],"loadBalancerIP":"010.0.0.1",
            "loadBalancerSourceRanges":["10.0.0.1/8"]},"status":{"loadBalancer":{"ingress":[{"ip":"010.0.0.1"}]}}}"#,
    );
    assert_eq!(
        super::service_warnings::of(&service),
        [
            format!("spec.clusterIPs[0]: {IP}"),
            format!("spec.loadBalancerIP: {IP}"),
            "spec.loadBalancerSourceRanges[0]: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \
             \"10.0.0.0/8\" or \"10.0.0.1/32\"?)"
                .to_owned(),
        ]
    );
    assert_eq!(super::service_warnings::of_status(&service), [format!("status.loadBalancer.ingress[0]: {IP}")]);
}

#[test]
fn features_that_nodes_declare() {
    let node = |features: &str| -> Node { read(&format!(r#"{{"status":{{"declaredFeatures":[{features}]}}}}"#)) };
    for (features, expected) in [
        (r#""A","A/b","Guarded""#, &[][..]),
        (r#""B","A""#, &["status.declaredFeatures[1]: Invalid value: \"A\": list must be sorted alphabetically"]),
        (r#""A","A""#, &["status.declaredFeatures[1]: Duplicate value: \"A\""]),
        (
            r#""a""#,
            &["status.declaredFeatures[0]: Invalid value: \"a\": invalid feature name \"a\": must start with an \
               UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or \
               MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"],
        ),
    ] {
        assert_eq!(
            texts(&super::node_validation::validate(&node(features), &Gates::default())),
            expected,
            "{features}"
        );
    }
}

#[test]
fn nodes() {
    let text = r#"{"apiVersion":"v1","kind":"Node","spec":{"podCIDRs":["10.0.0.0/24"],"taints":[{"key":"a","effect":"NoSchedule"}]}}"#;
    let old: Node = read(text);
    let mut new = old.clone();
    new.spec.pod_cidrs = vec!["10.0.1.0/24".into()];
    new.spec.taints[0].effect = "Never".into();
    assert_eq!(
        texts(&super::node_validation::validate_update(Endpoint::Status, &new, &old, &Gates::default())),
        [
            "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
            "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \
             \"PreferNoSchedule\", \"NoExecute\"",
        ]
    );
}

#[test]
fn ranges_and_quotas() {
    let text = r#"{"apiVersion":"v1","kind":"LimitRange","spec":{"limits":[{"type":"Container","min":{"cpu":"2"},"max":{"cpu":"1"}}]}}"#;
    let range: LimitRange = read(text);
    let expected = "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1";
    assert_eq!(texts(&super::limit_range_validation::validate(&range)), [expected]);

    let quota: ResourceQuotaSpec = read(r#"{"hard":{"pods":"1500m","count/jobs.batch":"1"},"scopes":["Odd"]}"#);
    let mut errors = ErrorList::new();
    crate::quota_rules::quota(&api_machinery::field_path::Path::new("spec"), &quota, &mut errors);
    assert_eq!(
        texts(&errors),
        [
            "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
            "spec.scopes: Invalid value: [\"Odd\"]: unsupported scope",
        ]
    );
    let many = ResourceQuotaSpec { scopes: vec!["x".repeat(1000); 1000], ..ResourceQuotaSpec::default() };
    let mut errors = ErrorList::new();
    crate::quota_rules::quota(&api_machinery::field_path::Path::new("spec"), &many, &mut errors);
    assert_eq!(errors.len(), 2, "each shows a megabyte");
}
