//! What metrics propose, and what they propose together.

use std::time::Duration;

use api_machinery::object::from_value;
use api_machinery::value::Value;
use serde_json::json;

use super::proposals::{Failure, Proposal};
use super::readings::ReadError;
use super::tests::asking;
use super::*;
use crate::workloads::fixtures::stored;

fn samples(values: &[i64]) -> groups::Samples {
    let sample = |milli| groups::Sample { at: Time::from_unix_seconds(1), window: Duration::from_secs(1), milli };
    values.iter().enumerate().map(|(index, milli)| (format!("p{index}"), sample(*milli))).collect()
}

/// What a metric proposes for two pods out of what was read.
fn proposed(metric: Value, reading: Reading) -> Result<Proposal, Failure> {
    let pods = ["p0", "p1"].map(|name| Arc::new(asking(name)));
    let no_time = CpuRules { initialization: Duration::ZERO, readiness_delay: Duration::ZERO };
    let workload = Workload {
        namespace: "ns",
        wanted: 2,
        present: 2,
        pods: &pods,
        tolerance: Tolerance { up: 0.1, down: 0.1 },
        cpu: no_time,
        now: Time::from_unix_seconds(1000),
    };
    propose(&from_value(&metric).expect("a metric"), reading, &workload)
}

#[test]
fn metrics_propose_and_tell_what_they_are() {
    let mebibytes = |each: i64| Reading::Pods(Ok(samples(&[(each << 20) * 1000; 2])));
    let resource = |target: Value| json!({"type": "Resource", "resource": {"name": "memory", "target": target}});
    let container = |target: Value| json!({"type": "ContainerResource", "containerResource": {"name": "memory", "container": "c", "target": target}});
    let object = |target: Value| {
        json!({"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject":
            {"apiVersion": "v1", "kind": "Service", "name": "s"}, "target": target}})
    };
    let external = |target: Value| {
        let selector = json!({"matchLabels": {"q": "a"}});
        json!({"type": "External", "external": {"metric": {"name": "load", "selector": selector}, "target": target}})
    };
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"averageValue": "2"}}});
    let share = json!({"type": "Utilization", "averageUtilization": 50});
    let amount = json!({"type": "AverageValue", "averageValue": "25Mi"});
    let (each, whole) = (json!({"type": "AverageValue", "averageValue": "2"}), json!({"type": "Value", "value": "2"}));
    let selector =
        "&LabelSelector{MatchLabels:map[string]string{q: a,},MatchExpressions:[]LabelSelectorRequirement{},}";
    let load = format!("external metric load({selector})");
    let value = |milli| Reading::Value(Ok(milli));
    for (metric, reading, replicas, name, current) in [
        (
            resource(share.clone()),
            mebibytes(100),
            4,
            "memory resource utilization (percentage of request)",
            json!({"averageUtilization": 100, "averageValue": "100Mi"}),
        ),
        (resource(amount.clone()), mebibytes(100), 8, "memory resource", json!({"averageValue": "100Mi"})),
        (
            container(share),
            mebibytes(100),
            4,
            "memory container resource utilization (percentage of request)",
            json!({"averageUtilization": 100, "averageValue": "100Mi"}),
        ),
        (container(amount), mebibytes(100), 8, "memory resource", json!({"averageValue": "100Mi"})),
        (pods, Reading::Pods(Ok(samples(&[3000, 4000]))), 4, "pods metric hits", json!({"averageValue": "3500m"})),
        (object(whole.clone()), value(8000), 8, "Service metric hits", json!({"value": "8"})),
        (object(each.clone()), value(7000), 4, "external metric hits(nil)", json!({"averageValue": "3500m"})),
        (external(whole), value(8000), 8, &load, json!({"value": "8"})),
        (external(each), value(7000), 4, &load, json!({"averageValue": "3500m"})),
    ] {
        let proposal = proposed(metric.clone(), reading).unwrap();
        assert_eq!((proposal.replicas, proposal.name.as_str()), (replicas, name), "{metric}");
        let status = stored_status(&proposal.status);
        assert_eq!(status["type"], metric["type"]);
        let block = status.as_object().unwrap().values().find(|block| block.is_object()).unwrap();
        assert_eq!(block["current"], current, "{metric}");
    }
}

/// The status as it is written.
fn stored_status(status: &MetricStatus) -> Value {
    let status = HorizontalPodAutoscalerStatus { current_metrics: vec![status.clone()], ..Default::default() };
    stored(&HorizontalPodAutoscaler { status, ..Default::default() })["status"]["currentMetrics"][0].clone()
}

#[test]
fn metrics_that_cannot_be_told_why() {
    let empty = || Reading::Pods(Err(ReadError::Empty("resource")));
    let resource = |target: Value| json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
    let unset = "invalid resource metric source: neither an average utilization target nor an average value (usage) target \
                 was set";
    let fetch = "unable to get metrics for resource cpu: no metrics returned from resource metrics API";
    let external =
        json!({"type": "External", "external": {"metric": {"name": "load"}, "target": {"averageValue": "1"}}});
    for (metric, reading, reason, why, fault) in [
        (resource(json!({"averageUtilization": 5})), empty(), "FailedGetResourceMetric", format!("failed to get cpu utilization: {fetch}"), Fault::Internal),
        (resource(json!({"averageValue": "5"})), empty(), "FailedGetResourceMetric", format!("failed to get cpu usage: {fetch}"), Fault::Internal),
        (resource(json!({})), empty(), "FailedGetResourceMetric", unset.to_owned(), Fault::Spec),
        (
            resource(json!({"averageUtilization": 5})),
            Reading::Pods(Ok(samples(&[1, 1]))),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)".to_owned(),
            Fault::Internal,
        ),
        (
            external,
            Reading::Value(Err(ReadError::Empty("external"))),
            "FailedGetExternalMetric",
            "failed to get load external metric: unable to get external metric ns/load/nil: no metrics returned from external \
             metrics API"
                .to_owned(),
            Fault::Internal,
        ),
        (json!({"type": "Mood"}), Reading::Nothing, "InvalidMetricSourceType", "unknown metric source type \"Mood\"".to_owned(), Fault::Spec),
    ] {
        let failure = proposed(metric.clone(), reading).unwrap_err();
        assert_eq!((failure.reason, failure.why, failure.fault), (reason, why, fault), "{metric}");
    }
}

#[test]
fn the_largest_proposal_counts() {
    let good = |replicas, name: &str| Ok(Proposal { replicas, name: name.to_owned(), status: MetricStatus::default() });
    let bad = || proposed(json!({"type": "Mood"}), Reading::Nothing);
    let combined = combine(vec![good(3, "a"), good(5, "b"), good(4, "c")], 4).unwrap();
    assert_eq!((combined.replicas, combined.name.as_str(), combined.partly), (5, "b", None));
    assert!(combine(vec![good(3, "a"), bad()], 4).is_err(), "not down");
    let combined = combine(vec![bad(), good(4, "a"), bad()], 4).unwrap();
    assert_eq!((combined.replicas, combined.statuses.len()), (4, 3));
    let text = "invalid metrics (2 invalid out of 3), first error is: unknown metric source type \"Mood\"";
    assert_eq!(combined.partly.unwrap().error, text);
    assert!(combine(vec![bad()], 4).is_err());
}
