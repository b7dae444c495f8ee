//! Tests of the emptying of namespaces.

use std::collections::BTreeMap;

use api_machinery::time::Time;
use api_types::core_v1::{ConfigMap, Namespace, Pod};

use super::content::{Report, grace_estimate};
use super::*;
use crate::workloads::fixtures::{Running, at, meta, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

fn pod(phase: &str, grace: i64) -> Pod {
    let mut pod = Pod { metadata: meta("p"), ..Pod::default() };
    pod.status.phase = phase.into();
    pod.spec.termination_grace_period_seconds = Some(grace);
    pod
}

#[test]
fn the_estimate_is_the_longest_grace_that_is_left() {
    for (name, pods, seconds, expected) in [
        ("no pods", vec![], 0, 0),
        ("one", vec![pod("Running", 30)], 10, 30),
        ("two", vec![pod("Running", 30), pod("Pending", 60)], 40, 60),
        ("time is over", vec![pod("Running", 30)], 30, 0),
        ("ended pods do not count", vec![pod("Succeeded", 30), pod("Failed", 60)], 0, 0),
    ] {
        assert_eq!(grace_estimate(&pods, at(100), at(100 + seconds)), expected, "{name}");
    }
}

#[test]
fn conditions_tell_what_is_in_the_way() {
    let mut conditions = Vec::new();
    let report = Report {
        remaining: BTreeMap::from([("configmaps.".to_owned(), 2)]),
        finalizers: BTreeMap::from([("example.com/x".to_owned(), 1)]),
        errors: vec!["a".to_owned(), "b".to_owned()],
        ..Report::default()
    };
    assert!(conditions::set(&mut conditions, &report, at(1)));
    assert!(!conditions::set(&mut conditions, &report, at(2)), "nothing new");
    let shown: Vec<(&str, &str)> = conditions.iter().map(|one| (one.status.as_str(), one.message.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("False", "All resources successfully discovered"),
            ("False", "All legacy kube types successfully parsed"),
            ("True", "Failed to delete all resource types, 2 remaining: a, b"),
            ("True", "Some resources are remaining: configmaps. has 2 resource instances"),
            ("True", "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_left_alone_until_it_is_deleted() {
    let running = Running::start(KNOWN);
    let mut namespace = Namespace::default();
    namespace.metadata.name = "ns".into();
    namespace.metadata.uid = "u".into();
    namespace.spec.finalizers.push(FINALIZER.into());
    running.put("v1/namespaces", &namespace);
    running.put("v1/configmaps", &ConfigMap { metadata: meta("c"), ..ConfigMap::default() });
    run_until_idle().await;
    run_until_idle().await;
    assert_eq!(running.count("v1/configmaps"), 1);
    assert_eq!(running.requests("PUT", "namespaces"), 0);
    namespace.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1));
    running.put("v1/namespaces", &namespace);
    run_until_idle().await;
    run_until_idle().await;
    assert!(running.requests("PUT", "namespaces/ns/status") > 0, "the phase is written");
}
