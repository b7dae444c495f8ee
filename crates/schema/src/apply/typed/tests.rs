//! Tables for the walks over typed values.

use api_machinery::reflect::View;
use serde_json::json;

use super::*;
use crate::Structural;
use crate::apply::FieldSet;
use crate::test_types::{Sample, node};

fn sets(comparison: &Comparison) -> [String; 3] {
    [&comparison.added, &comparison.modified, &comparison.removed].map(FieldSet::to_fields_v1)
}

#[test]
fn fields_of_a_value() {
    let cases = [
        (json!({"args": ["a"]}), r#"{"f:args":{}}"#),
        (json!({"labels": {"a": "1"}}), r#"{"f:labels":{"f:a":{}}}"#),
        (json!({"labels": {}}), r#"{"f:labels":{}}"#),
        (json!({"selector": {"a": "1"}}), r#"{"f:selector":{}}"#),
        (json!({"inner": {"a": "1"}}), r#"{"f:inner":{"f:a":{}}}"#),
        (json!({"marks": ["x", "a"]}), r#"{"f:marks":{"v:\"a\"":{},"v:\"x\"":{}}}"#),
        (
            json!({"items": [{"name": "a", "value": "1"}]}),
            r#"{"f:items":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:value":{}}}}"#,
        ),
        (
            json!({"ports": [{"port": 80}]}),
            r#"{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}"#,
        ),
        (json!({"raw": {"a": {"b": [1]}}}), r#"{"f:raw":{"f:a":{".":{},"f:b":{}}}}"#),
        (json!({"replicas": null}), r#"{"f:replicas":{}}"#),
        (json!({"items": []}), "{}"),
    ];
    for (value, expected) in cases {
        let set = fields_of(&value, node());
        assert_eq!(set.to_fields_v1(), expected, "{value}");
        let read = FieldSet::from_fields_v1(&serde_json::from_str(&set.to_fields_v1()).unwrap()).unwrap();
        assert_eq!(read, set, "{value}");
    }
}

#[test]
fn comparisons() {
    let cases = [
        (json!({"replicas": 1}), json!({"replicas": 1}), ["{}", "{}", "{}"]),
        (json!({"replicas": 1}), json!({"replicas": 2}), ["{}", r#"{"f:replicas":{}}"#, "{}"]),
        (json!({}), json!({"labels": {"a": "1"}}), [r#"{"f:labels":{".":{},"f:a":{}}}"#, "{}", "{}"]),
        (json!({"labels": {"a": "1"}}), json!({}), ["{}", "{}", r#"{"f:labels":{".":{},"f:a":{}}}"#]),
        (json!({"marks": ["a", "b"]}), json!({"marks": ["b", "a"]}), ["{}", "{}", "{}"]),
        (json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]}), ["{}", r#"{"f:args":{}}"#, "{}"]),
        (json!({"selector": {"a": "1"}}), json!({"selector": {"a": "2"}}), ["{}", r#"{"f:selector":{}}"#, "{}"]),
        (json!({"labels": {}}), json!({"labels": null}), ["{}", r#"{"f:labels":{}}"#, "{}"]),
        (
            json!({"items": [{"name": "a"}]}),
            json!({"items": [{"name": "b"}, {"name": "a", "value": "1"}]}),
            [
                r#"{"f:items":{"k:{\"name\":\"a\"}":{"f:value":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}"#,
                "{}",
                "{}",
            ],
        ),
        (json!({"marks": ["a", "a"]}), json!({"marks": ["a"]}), ["{}", r#"{"f:marks":{"v:\"a\"":{}}}"#, "{}"]),
        (
            json!({"items": [{"name": "a", "value": "1"}]}),
            json!({"items": [{"name": "a"}, {"name": "a", "value": "1"}]}),
            [
                "{}",
                r#"{"f:items":{"k:{\"name\":\"a\"}":{}}}"#,
                r#"{"f:items":{"k:{\"name\":\"a\"}":{"f:name":{},"f:value":{}}}}"#,
            ],
        ),
    ];
    for (old, new, expected) in cases {
        assert_eq!(sets(&compare(&old, &new, node())), expected.map(ToOwned::to_owned), "{old} {new}");
    }
}

#[test]
fn what_a_new_value_brings() {
    let cases = [
        (json!({}), "{}"),
        (json!({"replicas": 1, "args": ["a"], "selector": {"a": "1"}}), r#""f:args":{},"#),
        (json!({"labels": {"a": "1", "b": "2"}, "inner": {"a": "1"}}), r#""f:inner":{".":{},"f:a":{}}"#),
        (json!({"labels": {"a": "1", "b": "2"}}), r#""f:labels":{".":{},"f:a":{},"f:b":{}}"#),
        (json!({"marks": ["x", "a", "x"]}), r#""f:marks":{".":{},"v:\"a\"":{},"v:\"x\"":{}}"#),
        (
            json!({"items": [{"name": "b"}, {"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}),
            r#","k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"b\"}":{}}"#,
        ),
        (
            json!({"ports": [{"port": 80}, {"port": 81, "protocol": "UDP", "name": "n"}]}),
            r#""k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}"#,
        ),
        (json!({"raw": {"a": {"b": [1], "c": {}}}}), r#""f:raw":{"f:a":{".":{},"f:b":{},"f:c":{}}}"#),
        (json!({"metadata": {"labels": {"a": "1"}, "ownerReferences": [{"uid": "u"}]}}), r#""f:labels":{".":{}"#),
    ];
    for (value, part) in cases {
        let mut sample = Sample::default();
        api_machinery::value::from_value(&value, &mut sample).unwrap();
        let found = added(View::Struct(&sample), node(), Without::default());
        assert!(found.contains(part), "{value}: {found}");
        let free_form = api_machinery::value::to_value(&sample);
        let empty = api_machinery::value::to_value(&Sample::default());
        let compared = compare(&empty, &free_form, node()).into_written_and_removed().0;
        assert_eq!(found, compared.to_fields_v1(), "{value}");
    }
}

/// What every object of a kind has belongs to nobody, however deep it lies.
#[test]
fn printed_members_of_empty_objects_are_not_brought() {
    use api_machinery::reflect::Reflect;
    let mut deployment = api_types::apps_v1::Deployment::default();
    let json = json!({"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "strategy": {"type": "Recreate"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "resources": {}}]}}}});
    api_machinery::value::from_value(&json, &mut deployment).unwrap();
    let node = TypeNode::of_struct(deployment.struct_type());
    let expected = concat!(
        r#"{"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":{"f:type":{}},"f:template":{"f:metadata":{"#,
        r#""f:labels":{".":{},"f:a":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"#,
        r#""f:resources":{}}}}}}}"#
    );
    assert_eq!(added(View::Struct(&deployment), node, Without::default()), expected);
    let sets = [&["spec.template.spec", "spec.replicas"], &["spec.selector", "spec.strategy.type"]]
        .map(|set| FieldSet::of_fields(set));
    let without = Without { trees: Some(&sets[0]), places: Some(&sets[1]) };
    let expected = r#"{"f:spec":{"f:template":{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}}}"#;
    assert_eq!(added(View::Struct(&deployment), node, without), expected);
}

#[test]
fn merges_keep_order() {
    let marks = |list: &[&str]| json!({"marks": list});
    let cases = [
        (marks(&["a", "b", "c"]), marks(&["c", "a"]), marks(&["b", "c", "a"])),
        (marks(&["a", "b"]), marks(&["x"]), marks(&["a", "b", "x"])),
        (marks(&["a", "b", "c"]), marks(&["b"]), marks(&["a", "b", "c"])),
        (marks(&["a", "b"]), marks(&["n", "b"]), marks(&["a", "n", "b"])),
        (json!({"labels": {"a": "1"}}), json!({"labels": {"b": "2"}}), json!({"labels": {"a": "1", "b": "2"}})),
        (json!({"selector": {"a": "1"}}), json!({"selector": {"b": "2"}}), json!({"selector": {"b": "2"}})),
        // What is read of a null is the empty value, which is nothing where there need not be a value.
        (json!({"replicas": 1}), json!({"replicas": null}), json!({"replicas": null})),
        (json!({"labels": {"a": "1"}}), json!({"labels": {"a": null}}), json!({"labels": {"a": null}})),
        (json!({"items": [{"name": "a"}]}), json!({"items": null}), json!({"items": [{"name": "a"}]})),
        (json!({"labels": {"a": "1"}}), json!({"labels": null}), json!({"labels": {"a": "1"}})),
        (
            json!({"items": [{"name": "a", "value": "1"}, {"name": "b"}]}),
            json!({"items": [{"name": "b", "value": "2"}]}),
            json!({"items": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}),
        ),
    ];
    for (live, applied, expected) in cases {
        assert_eq!(merge(&live, &applied, node()), expected, "{live} {applied}");
    }
}

#[test]
fn misfits_are_told() {
    let cases = [
        (json!({"foo": 1}), ".foo: field not declared in schema"),
        (json!({"replicas": "x"}), ".replicas: expected numeric (int or float), got string"),
        (json!({"args": "x"}), ".args: expected list, got &{x}"),
        (json!({"labels": [1]}), ".labels: expected map, got &{[1]}"),
        (json!({"marks": ["a", "a"]}), ".marks: duplicate entries for key [=\"a\"]"),
        (json!({"items": [{"name": "a"}, {"name": "a"}]}), ".items: duplicate entries for key [name=\"a\"]"),
        (json!({"items": [{"name": "a", "x": 1}]}), ".items[name=\"a\"].x: field not declared in schema"),
    ];
    for (value, expected) in cases {
        let problems = validate(&value, node());
        assert_eq!(problems.first().map(ToString::to_string).as_deref(), Some(expected), "{value}");
    }
    assert!(validate(&json!({"raw": {"a": [1]}, "replicas": null, "ports": [{"port": 80}]}), node()).is_empty());
    // A key that is always written is empty where it is left out; one of a custom kind may be nothing at all.
    assert_eq!(validate(&json!({"items": [{"value": "a"}]}), node()), []);
    let schema = Structural::root(&json!({"type": "object", "properties": {"l": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}},
    }}}));
    let found = validate(&json!({"l": [{"v": "a"}]}), TypeNode::of_schema(&schema));
    assert_eq!(
        found[0].to_string(),
        ".l: element 0: associative list with keys has an element that omits all key fields [\"k\"] (and doesn't have \
         default values for any key fields)"
    );
}

#[test]
fn what_is_equal_and_written_otherwise_is_a_difference() {
    use api_machinery::value::{differing, from_value};
    use api_types::core_v1::Pod;

    let pod = |memory: &str, phase: &str| {
        let mut pod = Pod::default();
        let container = json!({"name": "c", "image": "i", "resources": {"limits": {"memory": memory}}});
        from_value(&json!({"spec": {"containers": [container]}, "status": {"phase": phase}}), &mut pod).unwrap();
        pod
    };
    let changed = |one: &Pod, other: &Pod| {
        let [before, after] = differing(one, other).map(Value::Object);
        compare(&before, &after, TypeNode::of_struct(Pod::STRUCT_TYPE)).modified.to_fields_v1()
    };
    let memory = r#"{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:resources":{"f:limits":{"f:memory":{}}}}}}}"#;
    assert_eq!(changed(&pod("1024", "Running"), &pod("1Ki", "Running")), memory);
    assert_eq!(changed(&pod("1", "Running"), &pod("1", "Failed")), r#"{"f:status":{"f:phase":{}}}"#);
    assert_eq!(differing(&pod("1", "Running"), &pod("1", "Running")).map(|map| map.len()), [0, 0]);
}
