//! The rules as tables.

use api_types::admissionregistration_v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};

use super::mutating_webhook_configuration::MutatingWebhookConfigurationRules;
use super::validating_webhook_configuration::ValidatingWebhookConfigurationRules;
use super::*;
use crate::rules::{Endpoint, TypedRules};

const GOOD: &str =
    r#""name":"a.b.c","clientConfig":{"url":"https://h"},"sideEffects":"None","admissionReviewVersions":["v1"]"#;

fn configuration(webhooks: &str) -> MutatingWebhookConfiguration {
    let text = format!(r#"{{"metadata":{{"name":"c"}},"webhooks":[{webhooks}]}}"#);
    let mut object = MutatingWebhookConfiguration::default();
    let decoded = api_machinery::json::decode(text.as_bytes(), &mut object).expect("an object");
    assert_eq!(decoded.problems, Vec::<String>::new(), "{text}");
    object
}

fn created(webhooks: &str) -> Vec<String> {
    let errors = MutatingWebhookConfigurationRules::validate(&RuleContext::default(), &configuration(webhooks));
    errors.iter().map(ToString::to_string).collect()
}

fn updated(new: &str, old: &str) -> Vec<String> {
    let (cx, new, old) = (RuleContext::default(), configuration(new), configuration(old));
    let errors = MutatingWebhookConfigurationRules::validate_update(&cx, Endpoint::Main, &new, &old);
    errors.iter().map(ToString::to_string).collect()
}

/// The good webhook with a member of it put in place of its own.
fn with(member: &str) -> String {
    let name = member.split(':').next().unwrap_or_default();
    let kept = [
        "\"name\":\"a.b.c\"",
        "\"clientConfig\":{\"url\":\"https://h\"}",
        "\"sideEffects\":\"None\"",
        "\"admissionReviewVersions\":[\"v1\"]",
    ];
    let kept = kept.into_iter().filter(|own| !own.starts_with(name) && !member.is_empty());
    format!("{{{}}}", kept.chain([member]).collect::<Vec<_>>().join(","))
}

#[test]
fn webhooks_are_checked_member_by_member() {
    for (member, expected) in [
        (r#""timeoutSeconds":30"#, vec![]),
        (
            r#""name":"a.b""#,
            vec![
                r#"webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots"#,
            ],
        ),
        (
            r#""failurePolicy":"Maybe""#,
            vec![r#"webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore""#],
        ),
        (
            r#""matchPolicy":"Near""#,
            vec![r#"webhooks[0].matchPolicy: Unsupported value: "Near": supported values: "Equivalent", "Exact""#],
        ),
        (
            r#""sideEffects":"Some""#,
            vec![r#"webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun""#],
        ),
        (
            r#""sideEffects":null"#,
            vec!["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"],
        ),
        (
            r#""timeoutSeconds":31"#,
            vec!["webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
        ),
        (
            r#""reinvocationPolicy":"Often""#,
            vec![
                r#"webhooks[0].reinvocationPolicy: Unsupported value: "Often": supported values: "IfNeeded", "Never""#,
            ],
        ),
        (
            r#""clientConfig":{}"#,
            vec!["webhooks[0].clientConfig: Required value: exactly one of url or service is required"],
        ),
        (
            r#""admissionReviewVersions":[]"#,
            vec!["webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
        ),
        (
            r#""admissionReviewVersions":["v2","v2"]"#,
            vec![
                r#"webhooks[0].admissionReviewVersions[1]: Invalid value: "v2": duplicate version"#,
                r#"webhooks[0].admissionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1"#,
            ],
        ),
        (
            r#""matchConditions":[{"name":"a","expression":" "},{"name":"a","expression":"true"}]"#,
            vec![
                "webhooks[0].matchConditions[0].expression: Required value",
                r#"webhooks[0].matchConditions[1].name: Duplicate value: "a""#,
            ],
        ),
    ] {
        assert_eq!(created(&with(member)), expected, "{member}");
    }
    let twice = format!("{{{GOOD}}},{{{GOOD}}}");
    assert_eq!(created(&twice), [r#"webhooks[1].name: Duplicate value: "a.b.c""#]);
}

#[test]
fn rules_name_what_they_match() {
    let rule = |rule: &str| {
        let full = format!(r#""operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],{rule}"#);
        created(&format!(r#"{{{GOOD},"rules":[{{{full}}}]}}"#))
    };
    let at = "webhooks[0].rules[0]";
    for (text, expected) in [
        (r#""resources":["pods","pods/log","*/scale"],"scope":"Namespaced""#, vec![]),
        (r#""resources":[]"#, vec![format!("{at}.resources: Required value")]),
        (
            r#""resources":["pods/*","pods/log"]"#,
            vec![format!(
                r#"{at}.resources[1]: Invalid value: "pods/log": if 'pods/*' is present, must not specify pods/log"#
            )],
        ),
        (
            r#""resources":["*/log","pods/log"]"#,
            vec![format!(
                r#"{at}.resources[1]: Invalid value: "pods/log": if '*/log' is present, must not specify pods/log"#
            )],
        ),
        (
            r#""resources":["*/*","pods"]"#,
            vec![format!(
                r#"{at}.resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources"#
            )],
        ),
        (
            r#""resources":["*","pods"]"#,
            vec![format!(
                "{at}.resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources \
                 without subresources"
            )],
        ),
        (r#""resources":["pods","*"]"#, vec![]),
        (
            r#""resources":["pods"],"scope":"Node""#,
            vec![format!(r#"{at}.scope: Unsupported value: "Node": supported values: "*", "Cluster", "Namespaced""#)],
        ),
    ] {
        assert_eq!(rule(text), expected, "{text}");
    }
    let nothing = created(&format!(r#"{{{GOOD},"rules":[{{}}]}}"#));
    let fields = ["operations", "apiGroups", "apiVersions", "resources"];
    assert_eq!(nothing, fields.map(|field| format!("{at}.{field}: Required value")));
    let mixed = r#"{"operations":["*","MAKE"],"apiGroups":["","*"],"apiVersions":["v1",""],"resources":["pods"]}"#;
    assert_eq!(
        created(&format!(r#"{{{GOOD},"rules":[{mixed}]}}"#)),
        [
            format!(
                r#"{at}.operations: Invalid value: ["*","MAKE"]: if '*' is present, must not specify other operations"#
            ),
            format!(
                r#"{at}.operations[1]: Unsupported value: "MAKE": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#
            ),
            format!(r#"{at}.apiGroups: Invalid value: ["","*"]: if '*' is present, must not specify other API groups"#),
            format!("{at}.apiVersions[1]: Required value"),
        ]
    );
}

/// What an older server let in may stay, and no more.
#[test]
fn what_is_stored_may_stay() {
    for (member, fault) in [
        (r#""sideEffects":"Some""#, "Unsupported value"),
        (r#""admissionReviewVersions":["v2"]"#, "must include at least one of"),
        (
            r#""objectSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["-"]}]}"#,
            "objectSelector.matchExpressions[0].values[0]",
        ),
        (r#""matchConditions":[{"name":"","expression":"true"}]"#, "matchConditions[0].name"),
    ] {
        let bad = with(member);
        assert_eq!(updated(&bad, &bad), Vec::<String>::new(), "{member}");
        let told = updated(&bad, &format!("{{{GOOD}}}"));
        assert!(told.len() == 1 && told[0].contains(fault), "{member}: {told:?}");
    }
    let twice = format!("{{{GOOD}}},{{{GOOD}}}");
    assert_eq!(updated(&twice, &twice), Vec::<String>::new());
    let unknown = updated(&with(r#""sideEffects":null"#), &with(r#""sideEffects":"Unknown""#));
    let detail = "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun, Some, Unknown";
    assert_eq!(unknown, [detail]);
}

#[test]
fn the_generation_counts_changes_of_the_webhooks() {
    type Rules = ValidatingWebhookConfigurationRules;
    let mut old = ValidatingWebhookConfiguration::default();
    Rules::prepare_create(&RuleContext::default(), &mut old);
    let mut new = old.clone();
    new.metadata.generation = 9;
    Rules::prepare_update(&RuleContext::default(), Endpoint::Main, &mut new, &old);
    assert_eq!(new.metadata.generation, 1);
    new.webhooks.push(Default::default());
    Rules::prepare_update(&RuleContext::default(), Endpoint::Main, &mut new, &old);
    assert_eq!(new.metadata.generation, 2);
}

#[test]
fn names_of_files_configurations_are_warned_of() {
    let mut object = ValidatingWebhookConfiguration::default();
    for (name, warned) in [("a.static.k8s.io", true), ("static.k8s.io.a", false)] {
        object.metadata.name = name.into();
        assert_eq!(ValidatingWebhookConfigurationRules::warnings(&object, None).len(), usize::from(warned), "{name}");
    }
}

#[test]
fn names_of_files_are_refused_where_there_may_be_files() {
    let on = RuleContext {
        gates: feature_gates::Gates::default().with(crate::gates::MANIFEST_BASED_ADMISSION, true),
        ..RuleContext::default()
    };
    let off = RuleContext::default();
    for rules in KINDS {
        let mut object = rules.new_object();
        object.meta_mut().name = "a.static.k8s.io".to_owned();
        let refused = |errors: &ErrorList| errors.iter().filter(|error| error.detail == RESERVED).count();
        let kind = rules.info().kind;
        assert_eq!(refused(&rules.validate_create(&on, &*object)), 1, "{kind}");
        assert_eq!(refused(&rules.validate_create(&off, &*object)), 0, "{kind}");
        // What was there before the gate was switched stays.
        assert_eq!(refused(&rules.validate_update(&on, Endpoint::Main, &*object, &*object)), 0, "{kind}");
    }
}
