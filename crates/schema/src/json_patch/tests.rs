//! Tables for JSON patch, and the public test suite where it is at hand.

use serde_json::json;

use super::*;

fn run(document: Value, patch: &Value) -> Result<Value, JsonPatchError> {
    JsonPatch::parse(patch)?.apply(document)
}

#[test]
fn operations_apply() {
    let cases = [
        (json!({}), json!([{"op": "add", "path": "/a", "value": 1}]), json!({"a": 1})),
        (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-", "value": 2}]), json!({"a": [1, 2]})),
        (json!({"a": [1]}), json!([{"op": "add", "path": "/a/0", "value": 2}]), json!({"a": [2, 1]})),
        (json!({"a": [1]}), json!([{"op": "add", "path": "/a/-1", "value": 2}]), json!({"a": [1, 2]})),
        (json!({"a": [1, 2]}), json!([{"op": "remove", "path": "/a/-1"}]), json!({"a": [1]})),
        (
            json!({"a/b": 1, "m~n": 2}),
            json!([{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}]),
            json!({}),
        ),
        (json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1})),
        (json!({"a": 1}), json!([{"op": "replace", "path": "", "value": [1]}]), json!([1])),
        (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), json!({"b": 1})),
        (json!({"a": 1}), json!([{"op": "copy", "from": "/a", "path": "/b"}]), json!({"a": 1, "b": 1})),
        (json!({"a": 1}), json!([{"op": "copy", "from": "/x", "path": "/b"}]), json!({"a": 1, "b": null})),
        (json!({"a": 1.0}), json!([{"op": "test", "path": "/a", "value": 1}]), json!({"a": 1.0})),
        (json!({}), json!([{"op": "test", "path": "/a", "value": null}]), json!({})),
        (json!({}), json!([{"op": "add", "path": "/a"}]), json!({"a": null})),
    ];
    for (document, patch, expected) in cases {
        assert_eq!(run(document, &patch), Ok(expected), "{patch}");
    }
}

#[test]
fn failures_say_why() {
    let cases = [
        (
            json!([{"op": "add", "path": "/a/b", "value": 1}]),
            "add operation does not apply: doc is missing path: \"/a/b\": missing value",
        ),
        (
            json!([{"op": "remove", "path": "/a"}]),
            "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value",
        ),
        (
            json!([{"op": "remove", "path": "/l/3"}]),
            "error in remove for path: '/l/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            json!([{"op": "add", "path": "/l/x"}]),
            "error in add for path: '/l/x': value was not a proper array index: 'x'",
        ),
        (
            json!([{"op": "replace", "path": "/l/7"}]),
            "replace operation does not apply: doc is missing key: /l/7: missing value",
        ),
        (json!([{"op": "test", "path": "/l", "value": 1}]), "testing value /l failed: test failed"),
        (json!([{"op": "grow", "path": "/l"}]), "Unexpected kind: grow"),
        (json!({}), "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
    ];
    for (patch, expected) in cases {
        assert_eq!(run(json!({"l": [1]}), &patch).unwrap_err().to_string(), expected, "{patch}");
    }
}

#[test]
fn size_is_bounded_and_unknown_members_are_told() {
    let many = Value::Array(vec![json!({"op": "add", "path": "/a"}); MAX_OPERATIONS + 1]);
    assert_eq!(
        JsonPatch::parse(&many).unwrap_err().to_string(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    let doubling: Vec<Value> = (0..30).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
    let error = run(json!({"a": ["x".repeat(1000)]}), &Value::Array(doubling)).unwrap_err();
    assert!(matches!(error, JsonPatchError::CopyTooLarge(_)));
    let patch = JsonPatch::parse(&json!([{"op": "add", "path": "/a", "foo": 1}])).unwrap();
    assert_eq!(patch.unknown_fields, ["unknown field \"[0].foo\""]);
}

/// Where upstream's library is more lenient than the RFC.
const LENIENT: [&str; 7] = [
    "missing from location to copy",
    "Out of bounds (lower)",
    "replace op should fail with missing",
    "missing 'value'",
    "null value should be valid obj property",
    "duplicate ops",
    "leading zero",
];

#[test]
fn the_public_suite_passes() {
    let Some(path) = test_facts::outside("vectors/json-patch/tests.json") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let (mut ran, mut unexpected) = (0, Vec::new());
    for case in cases.iter().filter(|case| case.get("disabled") != Some(&json!(true)) && case.get("patch").is_some()) {
        let comment = case.get("comment").or(case.get("error")).and_then(Value::as_str).unwrap_or_default();
        let outcome = run(case["doc"].clone(), &case["patch"]);
        ran += 1;
        if let Some(expected) = case.get("expected") {
            assert_eq!(outcome.as_ref(), Ok(expected), "{comment}: {case}");
        } else if case.get("error").is_some() && outcome.is_ok() {
            let lenient = LENIENT.iter().any(|text| case.to_string().contains(text));
            if !lenient {
                unexpected.push(case.to_string());
            }
        }
    }
    assert!(unexpected.is_empty(), "should fail:\n{}", unexpected.join("\n"));
    assert!(ran > 50, "only {ran} cases ran");
}
