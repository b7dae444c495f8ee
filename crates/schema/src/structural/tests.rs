//! Tables for structural schemas.

use api_machinery::field_path::Path;
use serde_json::json;

use super::*;

fn schema() -> Structural {
    Structural::root(&json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "exclusiveMaximum": true},
                    "asn": {"type": "integer", "format": "int32", "maximum": 4_294_967_295_u32},
                    "few": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                    "small": {"type": "object", "minProperties": 1},
                    "amount": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
                    "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
                    "maybe": {"type": "string", "nullable": true},
                    "port": {"x-kubernetes-int-or-string": true},
                    "marks": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 3, "items": {"type": "string"}},
                    "ports": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                        "items": {"type": "object", "properties": {"n": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}}}
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"in": {"type": "object"}}},
                    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer"}}}},
                    "day": {"type": "string", "format": "date"},
                    "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                    "nested": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
                }
            }
        }
    }))
}

#[test]
fn undeclared_fields_go() {
    let cases = [
        (json!({"kind": "K", "metadata": {"x": 1}, "foo": 1}), json!({"kind": "K", "metadata": {"x": 1}}), vec!["foo"]),
        (json!({"spec": {"size": 1, "x": 1}}), json!({"spec": {"size": 1}}), vec!["spec.x"]),
        (
            json!({"spec": {"ports": [{"n": 1, "x": 1}]}}),
            json!({"spec": {"ports": [{"n": 1}]}}),
            vec!["spec.ports[0].x"],
        ),
        (
            json!({"spec": {"free": {"x": {"y": 1}, "in": {"z": 1}}}}),
            json!({"spec": {"free": {"x": {"y": 1}, "in": {}}}}),
            vec!["spec.free.in.z"],
        ),
        (
            json!({"spec": {"map": {"k": {"a": 1, "b": 1}}}}),
            json!({"spec": {"map": {"k": {"a": 1}}}}),
            vec!["spec.map.k.b"],
        ),
        (
            json!({"spec": {"nested": {"kind": "X", "y": 1}}}),
            json!({"spec": {"nested": {"kind": "X", "y": 1}}}),
            vec![],
        ),
        (
            json!({"spec": {"x": 1, "nested": {"metadata": {"name": "n", "z": 1}}}}),
            json!({"spec": {"nested": {"metadata": {"name": "n"}}}}),
            vec!["spec.x", "spec.nested.metadata.z"],
        ),
    ];
    for (mut value, expected, unknown) in cases {
        assert_eq!(prune(&mut value, &schema()), unknown);
        assert_eq!(value, expected);
    }
}

#[test]
fn defaults_fill_in_and_nulls_go() {
    let cases = [
        (json!({}), json!({})),
        (json!({"spec": {}}), json!({"spec": {"mode": "A"}})),
        (json!({"spec": {"mode": null, "maybe": null, "name": null}}), json!({"spec": {"mode": "A", "maybe": null}})),
        (
            json!({"spec": {"mode": "B", "ports": [{"n": 1}]}}),
            json!({"spec": {"mode": "B", "ports": [{"n": 1, "p": "TCP"}]}}),
        ),
    ];
    for (mut value, expected) in cases {
        drop_nulls(&mut value, &schema());
        fill_defaults(&mut value, &schema());
        assert_eq!(value, expected);
    }
}

#[test]
fn values_are_checked_with_upstream_texts() {
    let cases = [
        (json!({"size": 1}), "[]"),
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            json!({"size": 1.5}),
            "spec.size: Invalid value: \"number\": spec.size in body must be of type integer: \"number\"",
        ),
        (json!({"size": 0}), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (json!({"size": 9}), "spec.size: Invalid value: 9: spec.size in body should be less than 9"),
        (json!({"size": 1, "mode": "C"}), "spec.mode: Unsupported value: \"C\": supported values: \"A\", \"B\""),
        (
            json!({"size": 1, "name": "a"}),
            "spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long",
        ),
        (json!({"size": 1, "name": "aaaaa"}), "spec.name: Too long: may not be more than 4 bytes"),
        (
            json!({"size": 1, "name": "AA"}),
            "spec.name: Invalid value: \"AA\": spec.name in body should match '^[a-z]+$'",
        ),
        (json!({"size": 1, "marks": ["a", "b", "c", "d"]}), "spec.marks: Too many: 4: must have at most 3 items"),
        (
            json!({"size": 1, "marks": [1]}),
            "spec.marks[0]: Invalid value: \"integer\": spec.marks[0] in body must be of type string: \"integer\"",
        ),
        (
            json!({"size": 1, "port": true}),
            "spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"",
        ),
        (json!({"size": 1, "port": "x", "maybe": null}), "[]"),
        (
            json!({"size": 1, "day": "x"}),
            "spec.day: Invalid value: \"x\": spec.day in body must be of type date: \"x\"",
        ),
        (
            json!({"size": 1, "map": {"k": {"a": "x"}}}),
            "spec.map.k.a: Invalid value: \"string\": spec.map.k.a in body must be of type integer: \"string\"",
        ),
        (
            json!({"size": 1, "either": {"a": "1", "b": "2"}}),
            "<nil>: Invalid value: \"\": \"spec.either\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ),
        (
            json!({"size": 1, "either": {}}),
            "[<nil>: Invalid value: \"\": \"spec.either\" must validate one and only one schema (oneOf). Found none valid, spec.either.a: Required value]",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(validate(&Path::nil(), &json!({"spec": spec}), &schema()).to_string(), expected, "{spec}");
    }
}

/// Of counts, ranges, and of all that is wrong with one value.
#[test]
fn values_are_counted_and_looked_at_by_every_rule() {
    let cases = [
        (json!({"size": 1.0}), "[]"),
        (
            json!({"size": 5_000_000_000_i64}),
            "[<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.size, spec.size: Invalid value: 5000000000: spec.size in body should be less than 9]",
        ),
        (
            json!({"size": 1, "asn": 1}),
            "<nil>: Invalid value: \"\": Maximum boundary value must be of type integer with format int32 in spec.asn",
        ),
        (
            json!({"size": 1, "few": [], "small": {}}),
            "[spec.few: Invalid value: 0: spec.few in body should have at least 1 items, spec.small: Invalid value: 0: spec.small in body should have at least 1 properties]",
        ),
        // All rules are looked at, in their order.
        (
            json!({"size": 1, "mode": 5}),
            "[spec.mode: Invalid value: \"integer\": spec.mode in body must be of type string: \"integer\", spec.mode: Unsupported value: 5: supported values: \"A\", \"B\"]",
        ),
        (
            json!({"size": 1, "amount": 0.5}),
            "[spec.amount: Invalid value: \"number\": spec.amount in body must be of type integer,string: \"number\", <nil>: Invalid value: \"\": \"spec.amount\" must validate at least one schema (anyOf), spec.amount: Invalid value: \"number\": spec.amount in body must be of type integer: \"number\"]",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(validate(&Path::nil(), &json!({"spec": spec}), &schema()).to_string(), expected, "{spec}");
    }
}

#[test]
fn unchanged_values_are_tolerated() {
    let old = json!({"spec": {"size": 99, "mode": "C", "ports": [{"n": 1, "p": 5}]}});
    let new = json!({"spec": {"size": 99, "mode": "D", "ports": [{"n": 2, "p": 6}, {"n": 1, "p": 5}]}});
    let errors = validate_update(&Path::nil(), &new, &old, &schema()).to_string();
    assert!(errors.contains("spec.mode") && errors.contains("spec.ports[0].p"), "{errors}");
    assert!(!errors.contains("spec.size") && !errors.contains("spec.ports[1].p"), "{errors}");
}

#[test]
fn repeated_items_are_told_once() {
    let value = json!({"spec": {"marks": ["a", "a", "a"], "ports": [{"n": 1}, {"n": 1}, {"n": 2}]}});
    assert_eq!(
        check_list_types(&Path::nil(), &value, &schema()).to_string(),
        "[spec.marks[1]: Duplicate value: \"a\", spec.ports[1]: Duplicate value: {\"n\":1}]"
    );
}

#[test]
fn formats() {
    let cases = [
        ("date-time", "2024-01-01T00:00:00Z", "2024-01-01"),
        ("ipv4", "10.0.0.1", "::1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("uuid4", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "f47ac10b-58cc-1372-a567-0e02b2c3d479"),
        ("email", "a@b.c", "a"),
        ("hostname", "a.example", "a.b"),
        ("hostname", "a", "-a"),
        ("mac", "01:23:45:67:89:ab", "01:23"),
        ("duration", "1h", "x"),
        ("byte", "aGk=", "a"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("isbn10", "0-306-40615-2", "0-306-40615-3"),
        ("isbn13", "978-3-16-148410-0", "978-3-16-148410-1"),
        ("k8s-short-name", "a-b", "a.b"),
        ("hexcolor", "#fff", "#ff"),
        ("rgbcolor", "rgb(1, 2, 3)", "rgb(1,2)"),
        ("uri", "https://a/b", "a b"),
    ];
    for (format, good, bad) in cases {
        assert!(super::formats::matches(format, good), "{format} {good}");
        assert!(!super::formats::matches(format, bad), "{format} {bad}");
    }
    assert!(super::formats::matches("unheard-of", "x") && !is_known_format("unheard-of"));
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn check_schemas(cases: &[(Value, &str)]) {
    for (schema, expected) in cases {
        let errors = structure::check(&Path::new("s"), schema).all().to_string();
        assert_eq!(errors, *expected, "{schema}");
    }
}

#[test]
fn schemas_have_rules_of_their_own() {
    let cases = [
        (object(json!({"a": {"type": "string"}})), "[]"),
        (json!({}), "s.type: Required value: must not be empty at the root"),
        (json!({"type": "string"}), "s.type: Invalid value: \"string\": must be object at the root"),
        (
            object(json!({"a": {}})),
            "s.properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (object(json!({"a": {"type": "array"}})), "s.properties[a].items: Required value: must be specified"),
        (
            object(
                json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}}),
            ),
            "s.properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            object(json!({"a": {"type": "string", "anyOf": [{"type": "string"}]}})),
            "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            object(
                json!({"a": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}),
            ),
            "[]",
        ),
        (
            object(json!({"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"}})),
            "[s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map, s.properties[a].items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map]",
        ),
        (
            object(json!({"a": {"type": "string", "pattern": "("}})),
            "s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
        ),
        (
            object(json!({"a": {"type": "string", "uniqueItems": true}})),
            "s.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        // Neither type is set: of another dialect, only that is told.
        (object(json!({"a": {"$ref": "b"}, "c": {}})), "s.properties[a].$ref: Forbidden: $ref is not supported"),
        (
            object(json!({"a": {"type": "string", "x-kubernetes-validations": [{"rule": " "}]}})),
            "s.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ),
    ];
    check_schemas(&cases);
}

#[test]
fn of_metadata_a_schema_may_say_little() {
    // An object inside, of whose labels more is said.
    let embedded = |labels: Value| {
        let mut metadata = object(json!({"labels": labels}));
        metadata["properties"]["labels"]["type"] = "object".into();
        let mut whole = object(json!({"metadata": metadata}));
        whole["x-kubernetes-embedded-resource"] = true.into();
        whole
    };
    let cases = [
        (
            object(json!({"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}})),
            "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            object(json!({"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "a"}}}})),
            "s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata",
        ),
        (
            object(json!({"a": embedded(json!({"additionalProperties": {"type": "string", "default": "a"}}))})),
            "s.properties[a].properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not \
             be set inside additionalProperties applying to object metadata",
        ),
        (
            object(json!({"a": embedded(json!({
                "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
            }))})),
            "s.properties[a].properties[metadata].properties[labels].x-kubernetes-embedded-resource: Forbidden: must not \
             be used inside of resource meta",
        ),
    ];
    check_schemas(&cases);
}

#[test]
fn an_answer_is_bounded() {
    let list = |kind: &str, items: Value| json!({"type": "array", "x-kubernetes-list-type": kind, "items": items});
    let numbers = Structural::root(&list("atomic", json!({"type": "integer"})));
    let texts = Value::Array(vec![json!("a"); 3000]);
    assert_eq!(validate(&Path::nil(), &texts, &numbers).len(), 1000);
    let set = Structural::root(&list("set", json!({"type": "integer"})));
    let twice: Vec<Value> = (0..3000).chain(0..3000).map(Value::from).collect();
    assert_eq!(check_list_types(&Path::nil(), &Value::Array(twice), &set).len(), 1000);
    let keys = vec!["k"; 3000];
    let mut keyed = list("map", json!({"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}));
    keyed["x-kubernetes-list-map-keys"] = json!(keys);
    let schema = json!({"type": "object", "properties": {"list": keyed}});
    assert_eq!(structure::check(&Path::new("s"), &schema).all().len(), 16);
}
