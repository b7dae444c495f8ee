//! The rules as tables.

use api_machinery::object::Object;
use api_types::flowcontrol_v1::FlowSchema;

use super::flow_schema::FlowSchemaRules;
use super::priority_level_configuration::PriorityLevelConfigurationRules;
use crate::rules::{RuleContext, TypedRules};

fn read<T: Object + Default>(name: &str, spec: &str) -> T {
    let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#);
    let mut object = T::default();
    api_machinery::json::decode(text.as_bytes(), &mut object).expect("an object");
    object
}

fn problems<R: TypedRules>(name: &str, spec: &str) -> Vec<String>
where
    R::Object: Default,
{
    let object = read::<R::Object>(name, spec);
    R::validate(&RuleContext::default(), &object).iter().map(ToString::to_string).collect()
}

/// A schema with some rules.
fn schema(rules: &str) -> Vec<String> {
    let spec =
        format!(r#"{{"matchingPrecedence":5,"priorityLevelConfiguration":{{"name":"l"}},"rules":[{{{rules}}}]}}"#);
    problems::<FlowSchemaRules>("s", &spec)
}

const SUBJECTS: &str = r#""subjects":[{"kind":"User","user":{"name":"u"}}]"#;

#[test]
fn schemas_name_a_level_and_an_order() {
    for (spec, expected) in [
        (r#"{"matchingPrecedence":5,"priorityLevelConfiguration":{"name":"l"}}"#, vec![]),
        (
            r#"{"matchingPrecedence":-1,"priorityLevelConfiguration":{}}"#,
            vec![
                "spec.matchingPrecedence: Invalid value: -1: must be a positive value",
                "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
            ],
        ),
        (
            r#"{"matchingPrecedence":10001,"priorityLevelConfiguration":{"name":"l"}}"#,
            vec!["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
        ),
        (
            r#"{"matchingPrecedence":1,"priorityLevelConfiguration":{"name":"l"},"distinguisherMethod":{"type":"X"}}"#,
            vec![
                "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
                concat!(
                    r#"spec.distinguisherMethod.type: Unsupported value: {"Type":"X"}: "#,
                    r#"supported values: "ByNamespace", "ByUser""#
                ),
            ],
        ),
    ] {
        assert_eq!(problems::<FlowSchemaRules>("s", spec), expected, "{spec}");
    }
}

#[test]
fn subjects_are_of_one_kind() {
    let rule = r#""nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/a/*","/"]}]"#;
    for (subject, expected) in [
        (r#"{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"*"}}"#, vec![]),
        (r#"{"kind":"Group"}"#, vec!["group: Required value: group is required when subject kind is 'Group'"]),
        (r#"{"kind":"User","user":{"name":""}}"#, vec!["user.name: Required value"]),
        (
            r#"{"kind":"User","user":{"name":"u"},"group":{"name":"g"}}"#,
            vec!["group: Forbidden: group is forbidden when subject kind is not 'Group'"],
        ),
        (
            r#"{"kind":"ServiceAccount","serviceAccount":{"name":"a"}}"#,
            vec!["serviceAccount.namespace: Required value: must specify namespace for service account"],
        ),
        (
            r#"{"kind":"X"}"#,
            vec![r#"kind: Unsupported value: "X": supported values: "Group", "ServiceAccount", "User""#],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|text| format!("spec.rules[0].subjects[0].{text}")).collect();
        assert_eq!(schema(&format!(r#""subjects":[{subject}],{rule}"#)), expected, "{subject}");
    }
    assert_eq!(
        schema(""),
        [
            "spec.rules[0].subjects: Required value: subjects must contain at least one value",
            "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
        ]
    );
}

#[test]
fn rules_are_whole_and_stars_stand_alone() {
    let resources = |rule: &str| schema(&format!(r#"{SUBJECTS},"resourceRules":[{{{rule}}}]"#));
    let at = "spec.rules[0].resourceRules[0].";
    for (rule, expected) in [
        (r#""verbs":["get"],"apiGroups":[""],"resources":["pods"],"clusterScope":true"#, vec![]),
        (
            "",
            vec![
                "verbs: Required value: verbs must contain at least one value",
                "apiGroups: Required value: resource rules must supply at least one api group",
                "resources: Required value: resource rules must supply at least one resource",
                "namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace",
            ],
        ),
        (
            r#""verbs":["get","*"],"apiGroups":["*","a"],"resources":["*"],"namespaces":["*"]"#,
            vec![
                r#"verbs: Invalid value: ["get","*"]: if '*' is present, must not specify other verbs"#,
                r#"apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other api groups"#,
            ],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|text| format!("{at}{text}")).collect();
        assert_eq!(resources(rule), expected, "{rule}");
    }
    let unknown = resources(r#""verbs":["head"],"apiGroups":["*"],"resources":["*"],"namespaces":["N"]"#);
    assert!(unknown[0].starts_with(&format!(r#"{at}verbs: Unsupported value: ["head"]: supported values: "create""#)));
    let text = format!(
        r#"{at}namespaces[0]: Invalid value: "N": each member of this list must be '*' or a DNS-1123 label; a lowercase"#
    );
    assert!(unknown[1].starts_with(&text), "{unknown:?}");
    for (url, expected) in [
        ("", "must not be empty"),
        ("a", "must start with slash"),
        ("/a b", "must not contain white-space"),
        ("/a//b", "must not contain double slash"),
        ("/a*", "wildcard can only do suffix matching"),
        ("/*/*", "wildcard can only do suffix matching"),
    ] {
        let found =
            schema(&format!(r#"{SUBJECTS},"nonResourceRules":[{{"verbs":["*"],"nonResourceURLs":["{url}"]}}]"#));
        let at = "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]";
        assert_eq!(found, [format!("{at}: Invalid value: {url:?}: {expected}")], "{url}");
    }
}

fn level(name: &str, spec: &str) -> Vec<String> {
    problems::<PriorityLevelConfigurationRules>(name, spec)
}

#[test]
fn levels_are_limited_or_exempt() {
    let reject = r#""limitResponse":{"type":"Reject"}"#;
    for (name, spec, expected) in [
        ("l", format!(r#"{{"type":"Limited","limited":{{{reject}}}}}"#), vec![]),
        ("exempt", r#"{"type":"Exempt","exempt":{"nominalConcurrencyShares":7}}"#.to_owned(), vec![]),
        (
            "l",
            r#"{"type":"Exempt"}"#.to_owned(),
            vec![r#"spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'"#],
        ),
        (
            "l",
            r#"{"type":"Limited"}"#.to_owned(),
            vec!["spec.limited: Required value: must not be empty when type is Limited"],
        ),
        (
            "l",
            format!(
                r#"{{"type":"Limited","exempt":{{}},"limited":{{{reject},"nominalConcurrencyShares":-1,
                "lendablePercent":101,"borrowingLimitPercent":-1}}}}"#
            ),
            vec![
                "spec.exempt: Forbidden: must be nil if the type is Limited",
                "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer",
            ],
        ),
        ("l", "{}".to_owned(), vec!["spec.type: Required value"]),
    ] {
        assert_eq!(level(name, &spec), expected, "{name} {spec}");
    }
}

#[test]
fn queues_can_be_dealt() {
    for (queues, hand, length, expected) in [
        (64, 8, 50, ""),
        (0, 1, 1, "queues: Invalid value: 0: must be positive"),
        (10_000_001, 1, 1, "queues: Invalid value: 10000001: must not be greater than 10000000"),
        (4, 5, 1, "handSize: Invalid value: 5: should not be greater than queues (4)"),
        (4, 0, 1, "handSize: Invalid value: 0: must be positive"),
        (4, 4, 0, "queueLengthLimit: Invalid value: 0: must be positive"),
        (
            64,
            11,
            1,
            "handSize: Invalid value: 11: required entropy bits of deckSize 64 and handSize 11 should not be greater than 60",
        ),
    ] {
        let spec = format!(
            r#"{{"type":"Limited","limited":{{"limitResponse":{{"type":"Queue","queuing":
            {{"queues":{queues},"handSize":{hand},"queueLengthLimit":{length}}}}}}}}}"#
        );
        let found = level("l", &spec).join("\n").replace("spec.limited.limitResponse.queuing.", "");
        // A hand cannot be dealt of no queues, either.
        assert_eq!(found.lines().next().unwrap_or_default(), expected, "{hand} of {queues}");
    }
}

#[test]
fn what_must_be_there_is_as_it_is() {
    for object in flow_control::mandatory_schemas() {
        let name = object.metadata.name.clone();
        assert!(FlowSchemaRules::validate(&RuleContext::default(), &object).is_empty(), "{name}");
        let mut other: FlowSchema = object;
        other.spec.rules.clear();
        let errors = FlowSchemaRules::validate(&RuleContext::default(), &other);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.ends_with(&format!("spec of '{name}' must equal the fixed value"))));
    }
    for mut object in flow_control::mandatory_levels() {
        assert!(PriorityLevelConfigurationRules::validate(&RuleContext::default(), &object).is_empty());
        object.spec.limited.iter_mut().for_each(|own| own.nominal_concurrency_shares = Some(6));
        object.spec.exempt.iter_mut().for_each(|own| own.nominal_concurrency_shares = Some(6));
        let name = object.metadata.name.clone();
        let errors = PriorityLevelConfigurationRules::validate(&RuleContext::default(), &object);
        assert_eq!(errors.is_empty(), name == "exempt", "{name}");
    }
}
