//! What volumes, claims, nodes, ranges and quotas are told, by what is wrong with them.

use api_machinery::field_path::ErrorList;
use api_machinery::reflect::Reflect;
use api_types::core_v1::{LimitRange, Node, PersistentVolume, PersistentVolumeClaim, ResourceQuotaSpec};

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
        texts(&super::volume_validation::validate_update(&new, &old)),
        [
            "spec.capacity: Required value",
            "spec.capacity: Unsupported value: {}: supported values: \"storage\"",
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

#[test]
fn nodes() {
    let text = r#"{"apiVersion":"v1","kind":"Node","spec":{"podCIDRs":["10.0.0.0/24"],"taints":[{"key":"a","effect":"NoSchedule"}]}}"#;
    let old: Node = read(text);
    let mut new = old.clone();
    new.spec.pod_cidrs = vec!["10.0.1.0/24".into()];
    new.spec.taints[0].effect = "Never".into();
    assert_eq!(
        texts(&super::node_validation::validate_update(&new, &old)),
        [
            "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \
             \"PreferNoSchedule\", \"NoExecute\"",
            "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
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
}
