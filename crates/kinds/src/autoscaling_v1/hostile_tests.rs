//! Annotations that stand for fields, and say anything (CVE-2024-0793).

use api_machinery::object::Object;
use api_types::autoscaling_v1::HorizontalPodAutoscaler;

use super::annotations::ALL;
use super::horizontal_pod_autoscaler::FirstForm;
use crate::other_form::OtherForm;
use crate::rules::RuleContext;

/// What was sent, and what of it is no value of its field.
fn odd_texts() -> Vec<String> {
    let texts = [
        "",
        " ",
        "null",
        "true",
        "1",
        "1e999",
        "\"text\"",
        "{}",
        "[]",
        "[null]",
        "[[]]",
        "[{}]",
        "{\"ScaleUp\":null}",
        "{\"ScaleUp\":{}}",
        "{\"scaleup\":{\"POLICIES\":[null]}}",
        "{\"ScaleDown\":{\"Policies\":[{\"Value\":1e99}]}}",
        "{\"ScaleDown\":{\"Tolerance\":\"-1e400\"}}",
        "[{\"type\":null}]",
        "[{\"type\":\"Resource\"}]",
        "[{\"type\":\"Resource\",\"resource\":null}]",
        "[{\"type\":\"Resource\",\"resource\":{}}]",
        "[{\"type\":\"Pods\",\"pods\":{\"targetAverageValue\":\"x\"}}]",
        "[{\"type\":\"Object\",\"object\":{}}]",
        "[{\"type\":\"Object\",\"object\":{\"target\":null,\"targetValue\":\"9999999999999999999999\"}}]",
        "[{\"type\":\"External\",\"external\":{\"metricSelector\":{\"matchExpressions\":[{}]}}}]",
        "[{\"type\":\"ContainerResource\",\"containerResource\":{\"targetAverageUtilization\":-1}}]",
        "[{\"type\":\"Other\"},{\"type\":\"Resource\",\"pods\":{}}]",
        "[{\"currentAverageValue\":{}}]",
        "[{\"lastTransitionTime\":\"never\"}]",
        "\u{0}",
        "[{\"type\":\"\\ud800\"}]",
    ];
    let nested = ["[", "{\"a\":"].map(|open| open.repeat(100_000));
    texts.iter().map(|text| (*text).to_owned()).chain(nested).collect()
}

#[test]
fn odd_annotations_are_no_fields_and_harm_nobody() {
    let rules = crate::find("autoscaling", "v2", "horizontalpodautoscalers").expect("the kind");
    for name in ALL {
        for text in odd_texts() {
            let mut sent = HorizontalPodAutoscaler::default();
            sent.metadata.name = "web".to_owned();
            sent.spec.max_replicas = 3;
            sent.metadata.annotations.insert(name.to_owned(), text.clone());
            let stored = FirstForm::to_stored(&sent);
            let shown = text.chars().take(40).collect::<String>();
            assert!(!stored.metadata.annotations.contains_key(name), "{name}: {shown}");
            drop(rules.validate_create(&RuleContext::default(), &stored as &dyn Object));
            // What it comes to is the same whichever version it is read in.
            let once = FirstForm::to_stored(&FirstForm::to_served(&stored));
            let twice = FirstForm::to_stored(&FirstForm::to_served(&once));
            assert_eq!(once, twice, "{name}: {shown}");
        }
    }
}
