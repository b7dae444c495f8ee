//! What quotas let through, from tables.

use api_machinery::quantity::Quantity;
use api_types::core_v1::{ConfigMap, Container, ResourceList, Service, ServicePort};
use api_types::resource_v1::constants::{EXTENDED_RESOURCE_CLAIM, EXTENDED_RESOURCE_CLAIM_ANNOTATION};
use api_types::resource_v1::{DeviceRequest, ExactDeviceRequest};
use component_helpers::owners::controller_reference;

use super::*;
use crate::plugins::testing::{Fixture, create};

fn amounts(text: &str) -> ResourceList {
    let pair = |pair: &str| {
        let (name, amount) = pair.split_once('=').unwrap();
        (name.to_owned(), Quantity::parse(amount).unwrap())
    };
    text.split_whitespace().map(pair).collect()
}

fn quota(hard: &str, used: &str) -> Quota {
    let mut quota = Quota::default();
    quota.metadata.namespace = "ns".into();
    quota.metadata.name = "q".into();
    quota.status.hard = amounts(hard);
    quota.status.used = amounts(used);
    quota
}

fn pod(requests: &str) -> Pod {
    let mut container = Container { name: "main".into(), ..Container::default() };
    container.resources.requests = amounts(requests);
    let mut pod = Pod::default();
    pod.spec.containers.push(container);
    pod
}

fn attributes(resource: &str) -> Attributes {
    Attributes { namespace: "ns".into(), ..create("", resource) }
}

fn fixture(quotas: &[Quota]) -> Fixture {
    Fixture::default().with(quotas.to_vec())
}

fn used(fixture: &Fixture) -> Vec<String> {
    let shown = |quota: &Quota| {
        let pairs: Vec<_> = quota.status.used.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        pairs.join(" ")
    };
    fixture.charged.lock().iter().map(shown).collect()
}

#[tokio::test]
async fn creates_are_booked_or_refused() {
    for (name, hard, before, object, expected) in [
        ("room", "pods=2 cpu=1", "pods=1 cpu=500m", pod("cpu=500m"), Ok(vec!["cpu=1 pods=2"])),
        ("nothing of it", "services=1", "services=0", pod(""), Ok(vec![])),
        (
            "full",
            "pods=9 cpu=1",
            "pods=1 cpu=600m",
            pod("cpu=500m"),
            Err("exceeded quota: q, requested: cpu=500m, used: cpu=600m, limited: cpu=1"),
        ),
        ("unstated", "memory=1Gi", "memory=0", pod("cpu=1"), Err("failed quota: q: must specify memory for: main")),
        ("unknown", "pods=1", "", pod(""), Err("status unknown for quota: q, resources: pods")),
        (
            "one of some unknown",
            "pods=1 cpu=1 services=1",
            "pods=0",
            pod("cpu=1"),
            Err("status unknown for quota: q, resources: cpu,pods"),
        ),
    ] {
        let fixture = fixture(&[quota(hard, before)]);
        let outcome = fixture.validate(&ENTRY, &attributes("pods"), &object).await;
        match (outcome, expected) {
            (Ok(()), Ok(expected)) => assert_eq!(used(&fixture), expected, "{name}"),
            (Err(error), Err(text)) => {
                assert_eq!(error.code, 403, "{name}");
                assert!(error.message.ends_with(text), "{name}: {}", error.message);
                assert!(used(&fixture).is_empty(), "{name}");
            }
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_full_of_one_thing_takes_another() {
    let fixture = fixture(&[quota("configmaps=1 secrets=1", "configmaps=5 secrets=0")]);
    fixture.validate(&ENTRY, &attributes("secrets"), &ConfigMap::default()).await.unwrap();
    assert_eq!(used(&fixture), ["configmaps=5 secrets=1"]);
    fixture.validate(&ENTRY, &attributes("configmaps"), &ConfigMap::default()).await.unwrap_err();
}

#[tokio::test]
async fn what_is_limited_needs_a_quota() {
    let limit = |contains: &[&str], class: Option<&str>| {
        let scopes: Vec<_> = class
            .map(|class| serde_json::json!({"scopeName": "PriorityClass", "operator": "In", "values": [class]}))
            .into_iter()
            .collect();
        serde_json::json!({"resource": "pods", "matchContains": contains, "matchScopes": scopes})
    };
    let of_class = |own: Quota, class: &str| {
        let mut quota = own;
        quota.spec.scope_selector = Some(api_types::core_v1::ScopeSelector {
            match_expressions: vec![api_types::core_v1::ScopedResourceSelectorRequirement {
                scope_name: "PriorityClass".into(),
                operator: "In".into(),
                values: vec![class.into()],
            }],
        });
        quota
    };
    let mut high = pod("cpu=1");
    high.spec.priority_class_name = "high".into();
    let names = Err((403, "insufficient quota to consume: cpu,requests.cpu"));
    let scopes = Err((500, "insufficient quota to match these scopes: [{PriorityClass In [high]}]"));
    for (name, limited, quotas, object, expected) in [
        ("nothing asked", limit(&["cpu"], None), vec![], pod("memory=1"), Ok(())),
        ("no quota", limit(&["cpu"], None), vec![], pod("cpu=1"), names),
        ("another's", limit(&["cpu"], None), vec![quota("pods=1", "pods=0")], pod("cpu=1"), names),
        (
            "covered",
            limit(&["cpu"], None),
            vec![quota("cpu=1 requests.cpu=1", "cpu=0 requests.cpu=0")],
            pod("cpu=1"),
            Ok(()),
        ),
        ("other class", limit(&[], Some("high")), vec![], pod("cpu=1"), Ok(())),
        ("no quota of the class", limit(&[], Some("high")), vec![quota("pods=1", "pods=0")], high.clone(), scopes),
        (
            "the class's",
            limit(&[], Some("high")),
            vec![of_class(quota("pods=1", "pods=0"), "high")],
            high.clone(),
            Ok(()),
        ),
    ] {
        let value = serde_json::json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
            "limitedResources": [limited],
        });
        let mut settings = crate::Settings::default();
        settings.configured.put((ENTRY.configuration.unwrap())(crate::Stated::by_default(&value)).unwrap());
        let plugin = (ENTRY.build)(&settings);
        let outcome = plugin.validate(&fixture(&quotas).context(), &attributes("pods"), Some(&object), None).await;
        let outcome = outcome.map_err(|error| (error.code, error.message));
        match (&outcome, expected) {
            (Err((code, message)), Err((expected, text))) => {
                assert!(*code == expected && message.ends_with(text), "{name}: {message}");
            }
            _ => assert_eq!(outcome.is_ok(), expected.is_ok(), "{name}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_dry_run_is_checked_and_not_booked() {
    let fixture = fixture(&[quota("pods=1", "pods=0")]);
    let attributes = Attributes { dry_run: true, ..attributes("pods") };
    fixture.validate(&ENTRY, &attributes, &pod("")).await.unwrap();
    assert!(used(&fixture).is_empty());
}

#[tokio::test]
async fn updates_are_charged_for_what_they_add() {
    let fixture = fixture(&[quota("services=1 services.nodeports=3", "services=1 services.nodeports=1")]);
    let update = Attributes { operation: Operation::Update, ..attributes("services") };
    let mut old = Service::default();
    old.metadata.resource_version = "1".into();
    old.spec.type_ = "NodePort".into();
    old.spec.ports = vec![ServicePort::default()];
    let mut new = old.clone();
    new.spec.ports = vec![ServicePort::default(); 3];
    fixture.validate_update(&ENTRY, &update, &new, &old).await.unwrap();
    assert_eq!(used(&fixture), ["services=1 services.nodeports=3"]);
    new.spec.ports = vec![ServicePort::default(); 4];
    let error = fixture.validate_update(&ENTRY, &update, &new, &old).await.unwrap_err();
    assert!(error.message.contains("requested: services.nodeports=3, used: services.nodeports=1"), "{}", error.message);
    fixture.validate_update(&ENTRY, &update, &old, &new).await.unwrap();
    assert_eq!(used(&fixture).len(), 1, "what gets less is the controller's to count");
    old.metadata.resource_version.clear();
    let whole = fixture.validate_update(&ENTRY, &update, &new, &old).await.unwrap_err();
    assert!(
        whole.message.contains("services.nodeports=4"),
        "an update that creates has nothing before: {}",
        whole.message
    );
}

#[tokio::test]
async fn whatever_is_written_of_a_claims_status_is_looked_at() {
    let mut old = PersistentVolumeClaim::default();
    old.metadata.resource_version = "1".into();
    let mut new = old.clone();
    new.status.current_volume_attributes_class_name = Some("gold".into());
    let status = Attributes {
        operation: Operation::Update,
        subresource: "status".into(),
        ..attributes("persistentvolumeclaims")
    };
    let mut scoped = quota("persistentvolumeclaims=0", "persistentvolumeclaims=0");
    scoped.spec.scopes = vec!["VolumeAttributesClass".into()];
    let of_class = fixture(&[scoped]);
    of_class.validate_update(&ENTRY, &status, &new, &old).await.unwrap();
    assert_eq!(used(&of_class), ["persistentvolumeclaims=1"], "as it comes into the scope, whatever there is room for");
    let unknown = fixture(&[quota("persistentvolumeclaims=1", "")]);
    let error = unknown.validate_update(&ENTRY, &status, &old, &old).await.unwrap_err();
    assert!(
        error.message.ends_with("status unknown for quota: q, resources: persistentvolumeclaims"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn what_a_pod_asks_for_as_a_whole_is_charged_where_it_counts() {
    let mut old = pod("cpu=500m");
    old.spec.resources.get_or_insert_default().requests = amounts("cpu=2");
    old.metadata.resource_version = "1".into();
    let mut new = old.clone();
    new.spec.active_deadline_seconds = Some(60);
    let update = Attributes { operation: Operation::Update, ..attributes("pods") };
    for (pod_level_resources, expected) in [(true, "cpu=2"), (false, "cpu=500m")] {
        let mut quota = quota("cpu=4", "cpu=0");
        quota.spec.scopes = vec!["Terminating".into()];
        let fixture = fixture(&[quota]);
        let plugin = (ENTRY.build)(&crate::Settings { pod_level_resources, ..crate::Settings::default() });
        plugin.validate(&fixture.context(), &update, Some(&new), Some(&old)).await.unwrap();
        assert_eq!(used(&fixture), [expected], "{pod_level_resources}");
    }
}

#[tokio::test]
async fn pods_are_charged_when_they_come_into_a_scope() {
    let scoped = |scope: &str| {
        let mut quota = quota("pods=1", "pods=0");
        quota.spec.scopes = vec![scope.into()];
        quota
    };
    let (mut without, mut with) = (pod(""), pod(""));
    without.metadata.resource_version = "1".into();
    with.metadata.resource_version = "1".into();
    with.spec.active_deadline_seconds = Some(60);
    let update = Attributes { operation: Operation::Update, ..attributes("pods") };
    for (scope, new, old, expected) in [
        ("Terminating", &with, &without, &["pods=1"][..]),
        ("Terminating", &without, &with, &[]),
        ("Terminating", &with, &with, &[]),
        ("NotTerminating", &without, &with, &["pods=1"]),
        ("NotTerminating", &with, &without, &[]),
    ] {
        let fixture = fixture(&[scoped(scope)]);
        fixture.validate_update(&ENTRY, &update, new, old).await.unwrap();
        assert_eq!(used(&fixture), expected, "{scope}");
    }
    let mut full = scoped("Terminating");
    full.status.used = amounts("pods=1");
    let error = fixture(&[full]).validate_update(&ENTRY, &update, &with, &without).await.unwrap_err();
    assert!(error.message.contains("exceeded quota: q, requested: pods=1, used: pods=1"), "{}", error.message);
}

/// A claim for so many devices of the class `gpu`.
fn claim(count: i64) -> ResourceClaim {
    let exactly = ExactDeviceRequest {
        device_class_name: "gpu".into(),
        allocation_mode: "ExactCount".into(),
        count,
        ..ExactDeviceRequest::default()
    };
    let mut claim = ResourceClaim::default();
    (claim.metadata.namespace, claim.metadata.name) = ("ns".into(), "c".into());
    claim.spec.devices.requests = vec![DeviceRequest { exactly: Some(exactly), ..DeviceRequest::default() }];
    claim
}

/// That class, which names `example.com/gpu`, and a pod that has been charged for one of these.
fn with_devices(quota: Quota) -> (Fixture, Pod) {
    let mut class = DeviceClass::default();
    class.metadata.name = "gpu".into();
    class.spec.extended_resource_name = Some("example.com/gpu".into());
    let mut pod = pod("example.com/gpu=1");
    (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) = ("ns".into(), "p".into(), "u".into());
    (fixture(&[quota]).with(vec![class]).with(vec![pod.clone()]), pod)
}

fn of_claims() -> Attributes {
    Attributes { namespace: "ns".into(), ..create("resource.k8s.io", "resourceclaims") }
}

#[tokio::test]
async fn claims_for_devices_are_charged_by_every_name_of_theirs() {
    const HARD: &str = "count/resourceclaims.resource.k8s.io=2 gpu.deviceclass.resource.k8s.io/devices=4 \
        requests.deviceclass.resource.kubernetes.io/gpu=4 requests.example.com/gpu=4";
    const USED: &str = "count/resourceclaims.resource.k8s.io=0 gpu.deviceclass.resource.k8s.io/devices=0 \
        requests.deviceclass.resource.kubernetes.io/gpu=1 requests.example.com/gpu=3";
    let (fixture, pod) = with_devices(quota(HARD, USED));
    fixture.validate(&ENTRY, &of_claims(), &claim(1)).await.unwrap();
    let expected = "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=1 \
        requests.deviceclass.resource.kubernetes.io/gpu=2 requests.example.com/gpu=4";
    assert_eq!(used(&fixture), [expected]);
    let error = fixture.validate(&ENTRY, &of_claims(), &claim(2)).await.unwrap_err();
    let text = "exceeded quota: q, requested: requests.example.com/gpu=2, used: requests.example.com/gpu=3, limited: \
        requests.example.com/gpu=4";
    assert!(error.code == 403 && error.message.ends_with(text), "{}", error.message);
    // Of two devices the pod was charged for one.
    let mut made = claim(2);
    made.metadata.annotations.insert(EXTENDED_RESOURCE_CLAIM_ANNOTATION.into(), EXTENDED_RESOURCE_CLAIM.into());
    made.metadata.owner_references = vec![controller_reference(&pod)];
    fixture.validate(&ENTRY, &of_claims(), &made).await.unwrap();
    assert!(used(&fixture)[1].ends_with("kubernetes.io/gpu=3 requests.example.com/gpu=4"), "{:?}", used(&fixture));
    made.metadata.owner_references[0].uid = "of one before it".into();
    fixture.validate(&ENTRY, &of_claims(), &made).await.unwrap_err();

    let settings = crate::Settings { extended_resources: false, ..crate::Settings::default() };
    let plugin = (ENTRY.build)(&settings);
    plugin.validate(&fixture.context(), &of_claims(), Some(&claim(2)), None).await.unwrap();
    let expected = "devices=2 requests.deviceclass.resource.kubernetes.io/gpu=1 requests.example.com/gpu=3";
    assert!(used(&fixture)[2].ends_with(expected), "off: {:?}", used(&fixture));
}

#[tokio::test]
async fn what_is_written_of_a_claim_later_is_charged_for_nothing() {
    let hard = "gpu.deviceclass.resource.k8s.io/devices=1 requests.example.com/gpu=1";
    let full = quota(hard, "gpu.deviceclass.resource.k8s.io/devices=5 requests.example.com/gpu=5");
    let mut old = claim(2);
    old.metadata.resource_version = "1".into();
    let mut new = old.clone();
    new.metadata.labels.insert("a".into(), "b".into());
    let update = Attributes { operation: Operation::Update, ..of_claims() };
    let (fixture, _) = with_devices(full.clone());
    fixture.validate_update(&ENTRY, &update, &new, &old).await.unwrap();
    let status = Attributes { subresource: "status".into(), ..update };
    fixture.validate_update(&ENTRY, &status, &claim(9), &old).await.unwrap();
    assert!(used(&fixture).is_empty());
    let deletion = Attributes { operation: Operation::Delete, ..of_claims() };
    assert!(!(ENTRY.build)(&crate::Settings::default()).handles(&deletion), "what gets less is the controller's");
    // No scope chooses claims for devices.
    let mut scoped = full;
    scoped.spec.scopes = vec!["NotTerminating".into()];
    with_devices(scoped).0.validate(&ENTRY, &of_claims(), &claim(1)).await.unwrap();
}
