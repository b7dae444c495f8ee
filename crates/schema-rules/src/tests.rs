//! Whole schemas: what definitions are told of rules, and what objects are told by them.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use schema::Structural;
use serde_json::{Value, json};

use super::*;

fn rule(rule: &str) -> Value {
    json!({"rule": rule})
}

/// The schema of a whole object whose spec is `spec`.
fn root(spec: Value) -> Structural {
    Structural::root(&json!({"type": "object", "properties": {"spec": spec}}))
}

/// An object with a number, a limited string, a list and these rules.
fn spec(rules: Vec<Value>) -> Structural {
    root(json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "m": {"type": "integer"},
            "s": {"type": "string", "maxLength": 20},
            "open": {"type": "string"},
            "l": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}, "maxProperties": 10},
            "any": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "a.b": {"type": "string", "maxLength": 5},
            "namespace": {"type": "string", "maxLength": 5},
            "when": {"type": "string", "format": "date-time"},
        },
        "x-kubernetes-validations": rules,
    }))
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn checked(schema: &Structural, known: &KnownExpressions, is_unchanged: bool) -> Vec<String> {
    let shown = |_: &schema::structural::ValidationRule| BadValue::json("R");
    texts(&check(&Path::new("s"), schema, &Check { known, is_unchanged, is_broken: &|_| false, shown: &shown }))
}

const ADVICE: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings \
                      are declared)";
const AT: &str = "s.properties[spec].x-kubernetes-validations[0]";

#[test]
fn rules_that_compile_and_cost_little_are_accepted() {
    for expression in [
        "self.n > oldSelf.n",
        "self == oldSelf",
        "isURL(self.s)",
        "self.labels.all(key, key.matches('^[a-z]+$') && self.labels[key] != '')",
        "self.a__dot__b == self.__namespace__",
        "self.when > timestamp('2020-01-01T00:00:00Z')",
        "self.any == 5 || self.any == 'x'",
        "self.free == oldSelf.free",
        "self.?s.orValue('') != 'x'",
        "has(self.n) && self.n > 1",
    ] {
        assert_eq!(
            checked(&spec(vec![rule(expression)]), &KnownExpressions::default(), false),
            [""; 0],
            "{expression}"
        );
    }
}

#[test]
fn definitions_are_told_what_is_wrong_with_their_rules() {
    let exceeds =
        |what: &str, factor: &str| format!("estimated {what} cost exceeds budget by factor of {factor} {ADVICE}");
    for (stated, expected) in [
        (
            rule("self.zzz > 1"),
            vec![format!(
                "{AT}.rule: Invalid value: R: compilation failed: ERROR: <input>:1:5: undefined field 'zzz'\n | self.zzz > 1\n \
                 | ....^"
            )],
        ),
        (rule("self.n"), vec![format!("{AT}.rule: Invalid value: R: cel expression must evaluate to a bool")]),
        (
            json!({"rule": "true", "messageExpression": "1"}),
            vec![format!("{AT}.messageExpression: Invalid value: R: messageExpression must evaluate to a string")],
        ),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            vec![format!("{AT}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule")],
        ),
        (
            rule("!format.dns1123Label().validate(self.open).hasValue()"),
            vec![format!("{AT}.rule: Forbidden: {}", exceeds("rule", "1.006634x"))],
        ),
        (
            rule("self.l.all(a, self.l.all(b, self.l.all(c, a == b)))"),
            vec![
                format!("{AT}.rule: Forbidden: {}", exceeds("rule", "more than 100x")),
                format!(
                    "{AT}.rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 \
                     schema"
                ),
                format!(
                    "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds \
                     budget by factor of more than 100x {ADVICE}"
                ),
            ],
        ),
    ] {
        assert_eq!(checked(&spec(vec![stated.clone()]), &KnownExpressions::default(), false), expected, "{stated}");
    }
}

#[test]
fn what_a_definition_had_before_is_not_held_against_it() {
    let costly = spec(vec![rule("!format.dns1123Label().validate(self.open).hasValue()")]);
    assert_eq!(checked(&costly, &KnownExpressions::default(), true), [""; 0]);
    let mut known = KnownExpressions::default();
    known.add(&costly);
    assert_eq!(checked(&costly, &known, false).len(), 1, "another version may not have it");
}

#[test]
fn a_rule_costs_as_often_as_it_can_be_evaluated() {
    let list = |limits: Value, kind: &str| {
        let mut list = json!({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [rule(kind)]}});
        list.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
        checked(&root(list), &KnownExpressions::default(), false)
    };
    assert_eq!(list(json!({"maxItems": 10}), "self != 'bad'"), [""; 0]);
    assert!(list(json!({}), "self.contains('x')")[0].contains("more than 100x"), "strings and lists without limits");
    let errors = list(json!({"maxItems": 5}), "self == oldSelf");
    let at = "s.properties[spec].items.x-kubernetes-validations[0].rule";
    let within = "oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[spec]";
    assert_eq!(errors.last().unwrap(), &format!("{at}: Invalid value: \"self == oldSelf\": {within}"));
}

/// What an object is told: errors and warnings.
fn told(schema: &Structural, value: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let subject = Subject { value, old, ratchets: old.is_some() };
    let found = RuleTree::compile(schema).validate(&Path::nil(), subject, &mut RUNTIME_BUDGET.clone());
    (texts(&found.errors), found.warnings)
}

#[test]
fn objects_are_told_which_rules_fail() {
    for (stated, given, expected) in [
        (json!({"rule": "self.n < self.m", "message": " n below m "}), json!({"n": 1, "m": 2}), ""),
        (
            json!({"rule": "self.n < self.m", "message": " n below m "}),
            json!({"n": 3, "m": 2}),
            "spec: Invalid value: n below m",
        ),
        (rule("self.n < self.m "), json!({"n": 3, "m": 2}), "spec: Invalid value: failed rule: self.n < self.m"),
        (
            json!({"rule": "false", "messageExpression": "'n is ' + string(self.n)", "fieldPath": ".n"}),
            json!({"n": 3}),
            "spec.n: Invalid value: n is 3",
        ),
        (
            json!({"rule": "false", "message": "m", "messageExpression": "self.s", "reason": "FieldValueForbidden"}),
            json!({}),
            "spec: Forbidden: m",
        ),
        (
            json!({"rule": "false", "message": "m", "messageExpression": "' '", "reason": "FieldValueRequired"}),
            json!({}),
            "spec: Required value: m",
        ),
        (json!({"rule": "false", "reason": "FieldValueDuplicate"}), json!({}), "spec: Duplicate value"),
        (
            rule("self.n < self.m"),
            json!({"m": 2}),
            "spec: Invalid value: \"object\": no such key: n evaluating rule: self.n < self.m",
        ),
        (
            rule("self.any > 1"),
            json!({"any": "x"}),
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported operator, function \
             or macro signature for rule: self.any > 1",
        ),
        (rule("self == oldSelf"), json!({}), ""),
        (
            json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true, "message": "no"}),
            json!({}),
            "spec: Invalid value: no",
        ),
        (rule("!has(self.n)"), json!({"n": null}), ""),
        (rule("self.__namespace__ == 'a' && self.a__dot__b == 'b'"), json!({"namespace": "a", "a.b": "b"}), ""),
    ] {
        let (errors, _) = told(&spec(vec![stated.clone()]), &json!({"spec": given}), None);
        assert_eq!(errors.join("; "), expected, "{stated}");
    }
}

#[test]
fn rules_hold_at_every_node() {
    let no = |text: &str| json!([{"rule": format!("self != '{text}'"), "message": "no"}]);
    let schema = Structural::root(&json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": no("bad")}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "x-kubernetes-validations": no("bad")}},
            "whole": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
                "x-kubernetes-validations": [{"rule": "self.kind != 'Bad' && self.metadata.name != 'bad'", "message": "no"}]},
        },
        "x-kubernetes-validations": [{"rule": "self.metadata.name != 'bad' && self.kind != 'Bad'", "message": "no"}],
    }));
    let fine = json!({"metadata": {"name": "a"}, "kind": "K", "list": ["a", null], "map": {}, "whole": {"kind": "X",
        "metadata": {"name": "y"}}});
    assert_eq!(told(&schema, &fine, None).0, [""; 0]);
    let wrong = json!({"metadata": {"name": "bad"}, "kind": "K", "list": ["a", "bad"], "map": {"k": "bad"}, "whole":
        {"kind": "Bad", "metadata": {}}});
    assert_eq!(
        told(&schema, &wrong, None).0,
        [
            "<nil>: Invalid value: no",
            "list[1]: Invalid value: \"bad\": no",
            "map[k]: Invalid value: \"bad\": no",
            "whole: Invalid value: no",
        ]
    );
}

#[test]
fn transitions_are_told_by_place_and_by_key() {
    let grows = json!([{"rule": "self >= oldSelf", "message": "shrinks"}]);
    let schema = root(json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": grows},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items":
            {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer",
                "x-kubernetes-validations": grows}}}},
    }}));
    let old = json!({"spec": {"n": 3, "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}});
    for (given, expected) in [
        (json!({"n": 4, "list": [{"k": "b", "v": 2}, {"k": "a", "v": 1}, {"k": "c", "v": 0}]}), ""),
        (json!({"n": 2}), "spec.n: Invalid value: 2: shrinks"),
        (json!({"list": [{"k": "b", "v": 1}]}), "spec.list[0].v: Invalid value: 1: shrinks"),
    ] {
        assert_eq!(told(&schema, &json!({"spec": given}), Some(&old)).0.join("; "), expected, "{given}");
    }
}

#[test]
fn what_was_no_better_before_is_a_warning() {
    let short = json!([{"rule": "size(self) < 3", "message": "long"}]);
    let schema = root(json!({
        "type": "object",
        "properties": {
            "s": {"type": "string", "x-kubernetes-validations": short},
            "list": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": short}},
        },
        "x-kubernetes-validations": [{"rule": "self.s != 'abcd'", "message": "not this"}],
    }));
    let old = json!({"spec": {"s": "abcd", "list": ["wxyz", "a"]}});
    let with = |s: &str, list: Value| told(&schema, &json!({"spec": {"s": s, "list": list}}), Some(&old));
    let (errors, warnings) = with("abcd", json!(["wxyz", "a"]));
    let each = [
        "spec: Invalid value: not this",
        "spec.list[0]: Invalid value: \"wxyz\": long",
        "spec.s: Invalid value: \"abcd\": long",
    ];
    assert_eq!((errors, warnings), (vec![], each.map(String::from).to_vec()));
    let (errors, warnings) = with("abcd", json!(["wxyz"]));
    assert_eq!(
        errors,
        ["spec: Invalid value: not this", "spec.list[0]: Invalid value: \"wxyz\": long"],
        "another list"
    );
    assert_eq!(warnings, ["spec.s: Invalid value: \"abcd\": long"]);
}

#[test]
fn hostile_objects_stay_within_their_budget_and_are_told() {
    let pairs = "self.all(a, self.all(b, a != b || true))";
    let schema = root(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [rule(pairs)]}));
    let object = json!({"spec": vec!["x"; 5000]});
    let (errors, _) = told(&schema, &object, None);
    let text = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost \
                exceeds limit for rule: ";
    assert_eq!(errors, [format!("spec: Invalid value: \"array\": {text}{pairs}")]);

    let subject = Subject { value: &object, old: None, ratchets: false };
    let found = RuleTree::compile(&schema).validate(&Path::nil(), subject, &mut 10);
    let text = "validation failed due to running out of cost budget, no further validation rules will be run";
    assert_eq!(texts(&found.errors), [format!("spec: Invalid value: \"array\": {text}")]);

    let each = json!({"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [rule("self > 5")]}});
    let (errors, _) = told(&root(each), &json!({"spec": vec![1; 100_000]}), None);
    assert_eq!(errors.len(), 1000, "an answer is bounded");
}
