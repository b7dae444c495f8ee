//! What is filled in and what is refused, from tables.

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Container, LimitRangeItem, ResourceList};

use super::*;
use crate::plugins::testing::{Fixture, create};

fn amounts(text: &str) -> ResourceList {
    let pair = |pair: &str| {
        let (name, amount) = pair.split_once('=').unwrap();
        (name.to_owned(), Quantity::parse(amount).unwrap())
    };
    text.split_whitespace().map(pair).collect()
}

fn pod(requests: &str, limits: &str) -> Pod {
    let mut container = Container { name: "main".into(), ..Container::default() };
    container.resources.requests = amounts(requests);
    container.resources.limits = amounts(limits);
    let mut pod = Pod::default();
    pod.spec.containers.push(container);
    pod
}

fn fixture(item: LimitRangeItem) -> Fixture {
    let mut range = LimitRange::default();
    range.metadata.namespace = "ns".into();
    range.spec.limits.push(item);
    Fixture::default().with(vec![range])
}

fn attributes(resource: &str) -> Attributes {
    Attributes { namespace: "ns".into(), ..create("", resource) }
}

fn container() -> LimitRangeItem {
    LimitRangeItem { type_: "Container".into(), ..LimitRangeItem::default() }
}

#[tokio::test]
async fn missing_amounts_are_filled_in() {
    let item = LimitRangeItem {
        default: amounts("cpu=500m memory=1Gi"),
        default_request: amounts("cpu=100m memory=200Mi"),
        ..container()
    };
    let (fixture, mut pod) = (fixture(item), pod("cpu=300m", "cpu=300m"));
    for _ in 0..2 {
        fixture.mutate(&ENTRY, &attributes("pods"), &mut pod).await.unwrap();
        let resources = &pod.spec.containers[0].resources;
        assert_eq!(
            (&resources.requests, &resources.limits),
            (&amounts("cpu=300m memory=200Mi"), &amounts("cpu=300m memory=1Gi"))
        );
        assert_eq!(
            pod.metadata.annotations["kubernetes.io/limit-ranger"],
            "LimitRanger plugin set: memory request for container main; memory limit for container main"
        );
    }
    let mut elsewhere = super::tests::pod("", "");
    let other = Attributes { namespace: "other".into(), ..create("", "pods") };
    fixture.mutate(&ENTRY, &other, &mut elsewhere).await.unwrap();
    assert!(elsewhere.spec.containers[0].resources.requests.is_empty());
}

#[tokio::test]
async fn bounds_of_pods() {
    let minimum = || LimitRangeItem { min: amounts("cpu=50m"), ..container() };
    let maximum = || LimitRangeItem { max: amounts("cpu=500m"), ..container() };
    let ratio = || LimitRangeItem { max_limit_request_ratio: amounts("cpu=2"), ..container() };
    let whole = || LimitRangeItem { type_: "Pod".into(), ..maximum() };
    for (item, requests, limits, expected) in [
        (minimum(), "cpu=50m", "", None),
        (minimum(), "", "", Some("minimum cpu usage per Container is 50m.  No request is specified")),
        (minimum(), "cpu=10m", "", Some("minimum cpu usage per Container is 50m, but request is 10m")),
        (minimum(), "cpu=50m", "cpu=40m", Some("minimum cpu usage per Container is 50m, but limit is 40m")),
        (maximum(), "cpu=1", "", Some("maximum cpu usage per Container is 500m.  No limit is specified")),
        (maximum(), "", "cpu=1", Some("maximum cpu usage per Container is 500m, but limit is 1")),
        (maximum(), "cpu=600m", "cpu=500m", Some("maximum cpu usage per Container is 500m, but request is 600m")),
        (ratio(), "cpu=1", "cpu=2", None),
        (ratio(), "", "cpu=2", Some("is 2, but no request is specified or request is 0")),
        (ratio(), "cpu=1", "", Some("is 2, but no limit is specified or limit is 0")),
        (
            ratio(),
            "cpu=1",
            "cpu=3",
            Some("cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"),
        ),
        (whole(), "cpu=1", "cpu=1", Some("maximum cpu usage per Pod is 500m, but limit is 1")),
    ] {
        let outcome = fixture(item).validate(&ENTRY, &attributes("pods"), &pod(requests, limits)).await;
        match (outcome, expected) {
            (Ok(()), None) => {}
            (Err(error), Some(text)) => {
                assert_eq!(error.code, 403);
                assert!(error.message.ends_with(text), "{}", error.message);
            }
            (outcome, _) => panic!("{requests} {limits}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn bounds_of_claims() {
    let item = LimitRangeItem {
        type_: "PersistentVolumeClaim".into(),
        min: amounts("storage=1Gi"),
        max: amounts("storage=2Gi"),
        ..LimitRangeItem::default()
    };
    let mut claim = PersistentVolumeClaim::default();
    for (asked, expected) in [
        ("storage=1Gi", None),
        ("storage=3Gi", Some("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi")),
        ("", Some("[minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified, maximum")),
    ] {
        claim.spec.resources.requests = amounts(asked);
        let outcome = fixture(item.clone()).validate(&ENTRY, &attributes("persistentvolumeclaims"), &claim).await;
        match (outcome, expected) {
            (Ok(()), None) => {}
            (Err(error), Some(text)) => assert!(error.message.contains(text), "{}", error.message),
            (outcome, _) => panic!("{asked}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn ranges_are_looked_up_once_for_a_request() {
    let (fixture, mut pod, attributes) = (fixture(container()), pod("", ""), attributes("pods"));
    fixture.mutate(&ENTRY, &attributes, &mut pod).await.unwrap();
    fixture.validate(&ENTRY, &attributes, &pod).await.unwrap();
    assert_eq!(fixture.asked(), 1);
    fixture.validate(&ENTRY, &super::tests::attributes("pods"), &pod).await.unwrap();
    assert_eq!(fixture.asked(), 2, "another request");
}
