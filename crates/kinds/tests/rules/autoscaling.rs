//! Autoscalers: their rules, and the way between their two forms.

use api_machinery::json;
use api_machinery::object::Object;
use kinds::rules::Endpoint;
use kinds::versions::VersionConversion;

use super::{check_created, check_updated, context, read, updated};

const SCALERS: &str = "autoscaling/horizontalpodautoscalers";

/// An autoscaler of a deployment with more in its spec.
fn scaler(more: &str) -> String {
    format!(r#"{{"spec":{{"scaleTargetRef":{{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}},{more}}}}}"#)
}

#[test]
fn bounds_and_targets() {
    let row = |more: &str| scaler(more);
    check_created(
        SCALERS,
        &[
            (&row(r#""maxReplicas":3"#), &[]),
            (
                &row(r#""minReplicas":2,"maxReplicas":1"#),
                &["spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`"],
            ),
            (
                &row(r#""minReplicas":0,"maxReplicas":1"#),
                &[
                    "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                    "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling \
                     to zero replicas",
                ],
            ),
            (
                r#"{"spec":{"scaleTargetRef":{"apiVersion":"v1","kind":"Pod","name":"d"},"maxReplicas":3}}"#,
                &["spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group"],
            ),
            (
                r#"{"spec":{"scaleTargetRef":{"apiVersion":"v1","kind":"ReplicationController","name":"d"},
                    "maxReplicas":3}}"#,
                &[],
            ),
        ],
    );
    let of_pods = r#"{"spec":{"scaleTargetRef":{"apiVersion":"v1","kind":"Pod","name":"NAME"},"maxReplicas":3}}"#;
    let (stored, other) = (of_pods.replace("NAME", "d"), of_pods.replace("NAME", "e"));
    // A version that is stored already is not looked at again, whatever object it names.
    check_updated(SCALERS, &[(&stored, &other, &[])]);
    let old = scaler(r#""maxReplicas":3"#);
    let new = old.replacen('{', r#"{"status":{"currentReplicas":-1,"desiredReplicas":-2},"#, 1);
    let negative =
        |field: &str, value: i32| format!("status.{field}: Invalid value: {value}: must be greater than or equal to 0");
    let expected = [negative("currentReplicas", -1), negative("desiredReplicas", -2)];
    assert_eq!(updated(SCALERS, Endpoint::Status, &new, &old), expected);
}

#[test]
fn the_first_version_is_checked_as_the_stored_one() {
    let rules = kinds::find("autoscaling", "v1", "horizontalpodautoscalers").expect("it is served");
    let mut object = read(rules, &scaler(r#""maxReplicas":3,"targetCPUUtilizationPercentage":-1"#));
    rules.prepare_create(&context(), &mut *object);
    let errors = rules.validate_create(&context(), &*object);
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let place = "spec.metrics[0].resource.target.averageUtilization";
    assert_eq!(errors, [format!("{place}: Invalid value: -1: must be greater than 0")]);
}

/// From one form to the other, where it is one of the kind.
type Way = fn(&dyn Object) -> Option<Box<dyn Object>>;

fn ways() -> (Way, Way) {
    let rules = kinds::find("autoscaling", "v1", "horizontalpodautoscalers").expect("it is served");
    let Some(VersionConversion::By { to_served, to_stored }) = rules.conversion() else {
        panic!("it has another form")
    };
    (to_served, to_stored)
}

fn first(text: &str) -> Box<dyn Object> {
    read(kinds::find("autoscaling", "v1", "horizontalpodautoscalers").expect("it is served"), text)
}

#[test]
fn what_the_first_version_cannot_say_is_in_its_annotations() {
    let rules = kinds::find("autoscaling", "v2", "horizontalpodautoscalers").expect("it is served");
    let metrics = r#""maxReplicas":3,"metrics":[
        {"type":"Pods","pods":{"metric":{"name":"m","selector":{"matchLabels":{"a":"b"}}},
            "target":{"type":"AverageValue","averageValue":"2"}}},
        {"type":"Object","object":{"describedObject":{"kind":"Ingress","name":"i"},"metric":{"name":"m"},
            "target":{"type":"AverageValue","averageValue":"7"}}},
        {"type":"External","external":{"metric":{"name":"m"},"target":{"type":"Value","value":"5"}}},
        {"type":"ContainerResource","containerResource":{"name":"cpu","container":"c",
            "target":{"type":"Utilization","averageUtilization":4}}},
        {"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}],
        "behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}"#;
    let stored = read(rules, &scaler(metrics));
    let (to_served, to_stored) = ways();
    let served = to_served(&*stored).expect("it is of the kind");
    assert_eq!(served.meta().annotations.len(), 2, "{:?}", served.meta().annotations);
    let text = json::encode(served.as_reflect());
    assert!(text.contains(r#""targetCPUUtilizationPercentage":50"#), "{text}");
    // Capitalised as upstream's internal type, and what is not there is null.
    assert!(text.contains(r#"\"ScaleUp\":{\"StabilizationWindowSeconds\":0,"#), "{text}");
    let again = to_stored(&*served).expect("it is of the kind");
    assert_eq!(json::encode(again.as_reflect()), json::encode(stored.as_reflect()));
}

#[test]
fn annotations_that_cannot_be_read_count_for_nothing() {
    let annotated = |name: &str, value: &str| {
        let text = scaler(r#""maxReplicas":3"#);
        let name = format!("autoscaling.alpha.kubernetes.io/{name}");
        text.replacen('{', &format!(r#"{{"metadata":{{"annotations":{{"{name}":{value:?}}}}},"#), 1)
    };
    let (_, to_stored) = ways();
    for (name, value, metrics) in [
        // Without any metric, processor time is what counts.
        ("metrics", "[", "Resource"),
        ("metrics", "null", "Resource"),
        ("metrics", r#"[{"type":"Pods","pods":{"metricName":3}}]"#, "Resource"),
        ("metrics", r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"3"}}]"#, "Pods"),
        ("behavior", r#"{"ScaleUp":null,"ScaleDown":null}"#, "Resource"),
        ("behavior", "[]", "Resource"),
        ("conditions", "{}", "Resource"),
        ("current-metrics", "x", "Resource"),
    ] {
        let stored = to_stored(&*first(&annotated(name, value))).expect("it is of the kind");
        let text = json::encode(stored.as_reflect());
        assert!(!text.contains("annotations"), "{name} {value}: {text}");
        assert!(text.contains(&format!(r#""metrics":[{{"type":"{metrics}""#)), "{name} {value}: {text}");
        assert!(!text.contains("behavior") && !text.contains("conditions"), "{name} {value}: {text}");
    }
    let lower = annotated("behavior", r#"{"scaledown":{"policies":[{"TYPE":"Pods","value":1,"periodseconds":2}]}}"#);
    let stored = json::encode(to_stored(&*first(&lower)).expect("it is of the kind").as_reflect());
    assert!(stored.contains(r#""policies":[{"type":"Pods","value":1,"periodSeconds":2}]"#), "{stored}");
}
