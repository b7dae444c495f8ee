//! Tests of the emptying of namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::gvk::GroupVersion;
use api_machinery::time::Time;
use api_types::core_v1::{ConfigMap, Namespace, Pod};
use bytes::Bytes;
use client::{Transport, TransportError};
use component_base::serving::{Body, full};

use super::content::{Report, grace_estimate, undiscovered};
use super::*;
use crate::Settings;
use crate::workloads::fixtures::{Running, WithDiscovery, at, meta, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

/// A namespace on its way out, which stays: the fake server has no other reason to keep it.
pub(super) fn going() -> Namespace {
    let mut namespace = Namespace::default();
    (namespace.metadata.name, namespace.metadata.uid) = ("ns".into(), "u".into());
    namespace.spec.finalizers.push(FINALIZER.into());
    namespace.metadata.finalizers.push("example.com/kept".into());
    namespace.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1));
    namespace
}

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

/// Takes deletions, and deletes nothing.
struct Keeping(Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for Keeping {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        if request.method() != http::Method::DELETE {
            return self.0.send(request).await;
        }
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#;
        let mut response = http::Response::new(full(status.to_owned()));
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn server(&self) -> &str {
        self.0.server()
    }
}

#[tokio::test(start_paused = true)]
async fn what_stays_without_a_reason_is_told_of() {
    for (kind, told, remaining) in [
        (
            "pods",
            "unexpected items still remain in namespace: ns for gvr: /v1, Resource=pods",
            "All content successfully removed",
        ),
        (
            "configmaps",
            "unexpected items still remain in namespace: ns for gvr: /v1, Resource=configmaps",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
    ] {
        let running = Running::start_over(KNOWN, Settings::default(), |server| {
            Arc::new(Keeping(Arc::new(WithDiscovery(server.transport()))))
        });
        if kind == "pods" {
            running.put("v1/pods", &pod("Running", 0));
        } else {
            running.put("v1/configmaps", &ConfigMap { metadata: meta("c"), ..ConfigMap::default() });
        }
        running.put("v1/namespaces", &going());
        run_until_idle().await;
        run_until_idle().await;
        let live: Namespace = running.client.all().get("ns").await.unwrap();
        let message = |type_: &str| {
            let found = component_helpers::conditions::find(&live.status.conditions, type_);
            found.map(|found| found.message.clone()).unwrap_or_default()
        };
        let told = format!("Failed to delete all resource types, 1 remaining: {told}");
        assert_eq!(message("NamespaceDeletionContentFailure"), told, "{kind}");
        assert_eq!(message("NamespaceContentRemaining"), remaining, "{kind}");
    }
}

#[test]
fn groups_that_cannot_be_discovered_are_told_of_in_order() {
    let failed = |group: &'static str, why: &str| (GroupVersion::new(group, "v1"), why.to_owned());
    let failing = [failed("metrics.k8s.io", "stale GroupVersion discovery: metrics.k8s.io/v1"), failed("a.io", "no")];
    for (failing, expected) in [
        (&[][..], None),
        (
            &failing,
            Some(
                "Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: \
                 a.io/v1: no, metrics.k8s.io/v1: stale GroupVersion discovery: metrics.k8s.io/v1",
            ),
        ),
    ] {
        assert_eq!(undiscovered(failing).as_deref(), expected);
    }
}
