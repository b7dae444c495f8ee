//! Tables for strategic merge patches, on a small kind of their own.

use serde_json::json;

use super::*;
use crate::test_types::node;

#[test]
fn patches_apply() {
    let cases = [
        (
            "keyed merge",
            json!({"items": [{"name": "a", "value": "1"}]}),
            json!({"items": [{"name": "a", "value": "2"}, {"name": "b"}]}),
            json!({"items": [{"name": "a", "value": "2"}, {"name": "b"}]}),
        ),
        ("new item goes first", items(&["a"]), items(&["b"]), items(&["b", "a"])),
        ("delete item", items(&["a", "b"]), json!({"items": [{"name": "a", "$patch": "delete"}]}), items(&["b"])),
        ("replace list", items(&["a", "b"]), json!({"items": [{"name": "c"}, {"$patch": "replace"}]}), items(&["c"])),
        (
            "order",
            items(&["a", "b", "c"]),
            json!({"$setElementOrder/items": [{"name": "c"}, {"name": "a"}]}),
            items(&["b", "c", "a"]),
        ),
        (
            "order with new",
            items(&["a", "b"]),
            json!({"$setElementOrder/items": [{"name": "b"}, {"name": "n"}, {"name": "a"}], "items": [{"name": "n"}]}),
            items(&["b", "n", "a"]),
        ),
        ("scalars", json!({"marks": ["a", "b"]}), json!({"marks": ["c", "a"]}), json!({"marks": ["c", "a", "b"]})),
        (
            "scalars deleted",
            json!({"marks": ["a", "b"]}),
            json!({"$deleteFromPrimitiveList/marks": ["a"]}),
            json!({"marks": ["b"]}),
        ),
        ("nothing to delete from", json!({}), json!({"$deleteFromPrimitiveList/marks": ["a"]}), json!({})),
        ("replaced", json!({"args": ["a", "b"]}), json!({"args": ["c"]}), json!({"args": ["c"]})),
        (
            "map",
            json!({"labels": {"a": "1", "b": "2"}}),
            json!({"labels": {"a": null, "c": "3"}}),
            json!({"labels": {"b": "2", "c": "3"}}),
        ),
        (
            "map replaced",
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "replace", "c": "3"}}),
            json!({"labels": {"c": "3"}}),
        ),
        ("map emptied", json!({"labels": {"a": "1"}}), json!({"labels": {"$patch": "delete"}}), json!({"labels": {}})),
        ("struct deleted", json!({"inner": {"a": "1"}}), json!({"inner": null}), json!({})),
        (
            "retain",
            json!({"inner": {"a": "1"}}),
            json!({"inner": {"$retainKeys": ["b"], "b": "2"}}),
            json!({"inner": {"b": "2"}}),
        ),
        ("nulls of new values go", json!({}), json!({"inner": {"a": null, "b": "2"}}), json!({"inner": {"b": "2"}})),
        ("type change", json!({"labels": "x"}), json!({"labels": {"a": "1"}}), json!({"labels": {"a": "1"}})),
    ];
    for (name, document, patch, expected) in cases {
        assert_eq!(apply(document, &patch, node()), Ok(expected), "{name}");
    }
}

/// Items that have nothing but a name.
fn items(names: &[&str]) -> Value {
    json!({"items": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
}

#[test]
fn what_is_taken_whole_loses_its_directives() {
    let cases = [
        (
            "atomic list, directive",
            json!({"args": ["a"]}),
            json!({"args": [{"$patch": "delete"}]}),
            json!({"args": []}),
        ),
        (
            "atomic list, directive beside items",
            json!({"raws": [{"a": "1"}]}),
            json!({"raws": [{"a": "2"}, {"$patch": "replace"}]}),
            json!({"raws": [{"a": "2"}]}),
        ),
        (
            "new list, directive",
            json!({}),
            json!({"items": [{"name": "a", "$patch": "delete"}, {"name": "b"}]}),
            json!({"items": [{"name": "b"}]}),
        ),
        (
            "new ordered list, directive",
            json!({}),
            json!({"$setElementOrder/items": [{"name": "c"}, {"name": "b"}], "items": [{"name": "a", "$patch": "delete"}, {"name": "c"}, {"name": "b"}]}),
            json!({"items": [{"name": "c"}, {"name": "b"}]}),
        ),
        ("new map, delete", json!({}), json!({"inner": {"$patch": "delete"}}), json!({})),
        ("new map, replace", json!({}), json!({"inner": {"$patch": "replace", "a": "1"}}), json!({})),
        (
            "new item, directive below",
            items(&["a"]),
            json!({"items": [{"name": "b", "sub": {"$patch": "delete"}}]}),
            items(&["b", "a"]),
        ),
        (
            "directives that nobody obeys stay",
            json!({}),
            json!({"inner": {"$retainKeys": ["a"], "a": "1"}}),
            json!({"inner": {"$retainKeys": ["a"], "a": "1"}}),
        ),
        (
            "empty order",
            items(&["a"]),
            json!({"$setElementOrder/items": [], "items": [{"name": "b"}]}),
            items(&["a", "b"]),
        ),
    ];
    for (name, document, patch, expected) in cases {
        assert_eq!(apply(document, &patch, node()), Ok(expected), "{name}");
    }
}

#[test]
fn selectors_of_disruption_budgets_are_replaced() {
    use api_machinery::reflect::{Field, Shape};
    let Shape::Struct(table) = <api_types::policy_v1::PodDisruptionBudget as Field>::shape() else {
        panic!("a struct");
    };
    let budget = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}}});
    let patched = apply(budget(json!({"a": "1"})), &budget(json!({"b": "2"})), TypeNode::of_struct(table));
    assert_eq!(patched, Ok(budget(json!({"b": "2"}))));
}

#[test]
fn failures_follow_upstream() {
    let live = json!({"items": [{"name": "a"}], "marks": ["a"], "inner": {"a": "1"}, "labels": {"a": "1"}});
    let cases = [
        (json!([]), 400, "invalid JSON document"),
        (json!({"items": [{"value": "1"}]}), 500, "map: map[value:1] does not contain declared merge key: name"),
        (
            json!({"items": [{"$patch": "delete", "value": "1"}]}),
            500,
            "map: map[$patch:delete value:1] does not contain declared merge key: name",
        ),
        (json!({"items": [{"$patch": "grow"}]}), 500, "unknown patch type: grow in map: map[$patch:grow]"),
        (json!({"items": [{"$patch": "merge"}]}), 500, "merging lists cannot yet be specified in the patch"),
        (json!({"labels": {"$patch": "grow"}}), 500, "unknown patch type: grow in map: map[$patch:grow]"),
        (json!({"marks": [["x"]]}), 500, "list element types are not identical: [[a] [[x]]]"),
        (json!({"inner": {"$retainKeys": ["b"], "a": "2"}}), 400, "invalid patch format of retainKeys"),
        (json!({"inner": {"$retainKeys": "b"}}), 400, "invalid patch format of retainKeys"),
        (json!({"$setElementOrder/items": "a"}), 500, "expected a []interface {}, but received a string"),
        (json!({"$setElementOrder/items": 1}), 500, "expected a []interface {}, but received a int64"),
    ];
    for (patch, code, text) in cases {
        let error = apply(live.clone(), &patch, node()).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, text), "{patch}");
    }
    let same = apply(live.clone(), &json!({"$deleteFromPrimitiveList/marks": "a"}), node());
    assert_eq!(same, Ok(live.clone()), "what is no list deletes nothing");
    let unordered = json!({"$setElementOrder/items": [{"name": "x"}], "items": [{"name": "y"}]});
    let error = apply(live, &unordered, node()).unwrap_err();
    let text = "The order in patch list:\n[map[name:y]]\n doesn't match $setElementOrder list:\n[map[name:x]]\n";
    assert_eq!(error.to_string(), text);
}
