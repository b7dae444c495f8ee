//! Groups and workloads as the engine runs them.

use api_machinery::object::Object;
use feature_gates::Gates;

use super::KINDS;
use crate::gates;
use crate::rules::{Endpoint, RuleContext, Rules};

fn kind(name: &str) -> &'static dyn Rules {
    *KINDS.iter().find(|rules| rules.info().kind == name).expect("a kind")
}

fn read(rules: &dyn Rules, text: &str) -> Box<dyn Object> {
    let mut object = rules.new_object();
    let decoded = api_machinery::json::decode(text.as_bytes(), object.as_reflect_mut());
    assert!(decoded.expect(text).problems.is_empty(), "{text}");
    rules.set_defaults(&mut *object);
    object
}

fn context() -> RuleContext {
    let on = gates::SWITCHED.iter().fold(Gates::default(), |all, feature| all.with(*feature, true));
    RuleContext { gates: on, ..RuleContext::default() }
}

#[test]
fn what_is_created_says_all_that_it_must() {
    for (name, text, expected) in [
        ("PodGroup", r#"{"spec":{"schedulingPolicy":{"basic":{}}}}"#, &[] as &[&str]),
        ("PodGroup", "{}", &["spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`"]),
        (
            "PodGroup",
            r#"{"spec":{"schedulingPolicy":{"basic":{},"gang":{"minCount":0}},"disruptionMode":"All","priority":1000000001}}"#,
            &[
                "spec.schedulingPolicy: Invalid value: \"{basic, gang}\": must specify exactly one of: `basic`, `gang`",
                "spec.schedulingPolicy.gang.minCount: Required value",
                "spec.disruptionMode: Unsupported value: \"All\": supported values: \"Pod\", \"PodGroup\"",
                "spec.priority: Invalid value: 1000000001: must be less than or equal to 1000000000",
            ],
        ),
        (
            "PodGroup",
            r#"{"spec":{"schedulingPolicy":{"gang":{"minCount":2}},"podGroupTemplateRef":{},"resourceClaims":[{"name":"a"},
                {"name":"a","resourceClaimName":"c","resourceClaimTemplateName":"t"}],
                "schedulingConstraints":{"topology":[{"key":"a"},{"key":"b"}]}}}"#,
            &[
                "spec.podGroupTemplateRef: Invalid value: \"\": must specify one of: `workload`",
                "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item",
                "spec.resourceClaims[1]: Duplicate value: {\"name\":\"a\"}",
                "spec.resourceClaims[0]: Invalid value: \"\": must specify one of: `resourceClaimName`",
                "spec.resourceClaims[1]: Invalid value: \"{resourceClaimName, resourceClaimTemplateName}\"",
            ],
        ),
        (
            "Workload",
            r#"{"spec":{"podGroupTemplates":[{"name":"t","schedulingPolicy":{"gang":{"minCount":-1}}}],"controllerRef":{"kind":"a/b","name":""}}}"#,
            &[
                "spec.controllerRef.kind: Invalid value: \"a/b\"",
                "spec.controllerRef.name: Required value",
                "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
            ],
        ),
        ("Workload", "{}", &["spec.podGroupTemplates: Required value"]),
    ] {
        let rules = kind(name);
        let mut object = read(rules, text);
        rules.prepare_create(&context(), &mut *object);
        let found: Vec<String> = rules.validate_create(&context(), &*object).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for (text, expected) in found.iter().zip(expected) {
            assert!(text.starts_with(expected), "{text}");
        }
    }
}

#[test]
fn nothing_of_a_spec_changes() {
    let off = RuleContext { gates: context().gates.with(gates::GROUP_PREEMPTION, false), ..context() };
    let old = r#"{"spec":{"schedulingPolicy":{"basic":{}},"priority":1}}"#;
    for (cx, name, endpoint, new, old, expected) in [
        (
            context(),
            "PodGroup",
            Endpoint::Main,
            r#"{"spec":{"schedulingPolicy":{"gang":{"minCount":1}},"priority":2}}"#,
            old,
            &[
                "spec.schedulingPolicy: Invalid value: null: field is immutable",
                "spec.priority: Invalid value: null: field is immutable",
            ] as &[&str],
        ),
        (
            off,
            "PodGroup",
            Endpoint::Main,
            r#"{"spec":{"schedulingPolicy":{"basic":{}},"priority":2}}"#,
            old,
            &["spec.priority: Forbidden"],
        ),
        (
            context(),
            "PodGroup",
            Endpoint::Status,
            r#"{"status":{"resourceClaimStatuses":[{"name":"a"}]}}"#,
            old,
            &["status.resourceClaimStatuses[0].name: Invalid value: \"a\": must match the name of an entry in"],
        ),
        (
            context(),
            "Workload",
            Endpoint::Main,
            r#"{"spec":{"podGroupTemplates":[{"name":"t"}]}}"#,
            r#"{"spec":{"controllerRef":{"kind":"Job","name":"j"}}}"#,
            &[
                "spec.controllerRef: Invalid value: null: field is immutable",
                "spec.podGroupTemplates: Invalid value: null: field is immutable",
            ],
        ),
    ] {
        let rules = kind(name);
        let (mut new, old) = (read(rules, new), read(rules, old));
        rules.prepare_update(&cx, endpoint, &mut *new, &*old);
        let errors = rules.validate_update(&cx, endpoint, &*new, &*old);
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (text, expected) in found.iter().zip(expected) {
            assert!(text.starts_with(expected), "{text}");
        }
    }
}
