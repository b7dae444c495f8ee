//! The shared flag tables against the published flag data: names, defaults and what is hidden.

use component_base::flags::{FEATURE_GATES, Flag, GLOBAL, LOGS, METRICS, parse};
use component_base::serving::secure_serving_flags;

const SERVING: &[Flag] = &secure_serving_flags("6443", "/var/run/kubernetes");

#[test]
fn shared_flags_are_upstreams() {
    let document = test_facts::facts("flags/kube-apiserver.json");
    let published = document["flags"].as_array().expect("the data lists flags");
    let gates: &[Flag] = &[FEATURE_GATES];
    for flag in [GLOBAL.flags, LOGS.flags, METRICS.flags, SERVING, gates].concat() {
        let facts = published.iter().find(|facts| facts["flag"] == flag.name);
        let facts = facts.unwrap_or_else(|| panic!("--{} is not a flag of kube-apiserver", flag.name));
        assert_eq!(flag.hidden, facts["hidden"].as_bool().unwrap_or(false), "--{} hidden", flag.name);
        let expected = match &facts["default"] {
            serde_json::Value::String(text) if text == "[]" => String::new(),
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Array(items) if items.is_empty() => String::new(),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        };
        assert_eq!(flag.default, expected, "--{} default", flag.name);
    }
    assert!(parse(&[LOGS, METRICS, GLOBAL], []).is_ok());
}
