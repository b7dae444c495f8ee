//! The rules of policies and their bindings, case by case.

use api_machinery::field_path::ErrorList;
use api_machinery::object::from_value;
use api_types::admissionregistration_v1::{
    MutatingAdmissionPolicy, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use serde_json::{Value, json};

use super::mutating_admission_policy::MutatingAdmissionPolicyRules;
use super::validating_admission_policy::ValidatingAdmissionPolicyRules;
use super::validating_admission_policy_binding::ValidatingAdmissionPolicyBindingRules;
use crate::rules::{Endpoint, RuleContext, TypedRules};

fn object<T: api_machinery::object::Kind>(spec: Value, more: Value) -> T {
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
    let mut body = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}}});
    for part in [spec, more] {
        for (name, value) in part.as_object().expect("an object") {
            body["spec"][name] = value.clone();
        }
    }
    let mut object: T = from_value(&body).expect("an object of the kind");
    api_machinery::defaults::fill(&mut object);
    object
}

fn policy(more: Value) -> ValidatingAdmissionPolicy {
    object(json!({"validations": [{"expression": "true"}]}), more)
}

fn told(errors: &ErrorList) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn create<R: TypedRules>(object: &R::Object) -> String {
    told(&R::validate(&RuleContext::default(), object))
}

/// What is said of policies that have more than a validation that always holds, or another one.
fn check(cases: impl IntoIterator<Item = (Value, String)>) {
    for (more, expected) in cases {
        assert_eq!(create::<ValidatingAdmissionPolicyRules>(&policy(more.clone())), expected, "{more}");
    }
}

#[test]
fn policies_are_checked_with_their_expressions() {
    let undeclared = |place: &str, name: &str| {
        format!(
            "spec.{place}: Invalid value: \"{name}\": compilation failed: ERROR: <input>:1:1: undeclared reference to \
             '{name}' (in container '')\n | {name}\n | ^"
        )
    };
    check([
        (json!({}), String::new()),
        (json!({"validations": [{"expression": "nothing"}]}), undeclared("validations[0].expression", "nothing")),
        (
            json!({"validations": [{"expression": "1"}]}),
            "spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got int".to_owned(),
        ),
        (
            json!({"validations": [{"expression": " "}]}),
            "spec.validations[0].expression: Required value: expression is not specified".to_owned(),
        ),
        (
            json!({"validations": [{"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}]}),
            "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/').check('get').reason()\": \
             compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | \
             authorizer.path('/').check('get').reason()\n | ^"
                .to_owned(),
        ),
        (
            json!({"validations": [{"expression": "true", "message": "a\nb", "reason": "Unauthorized"}]}),
            "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks; \
             spec.validations[0].reason: Unsupported value: \"Unauthorized\": supported values: \"Forbidden\", \"Invalid\", \
             \"RequestEntityTooLarge\""
                .to_owned(),
        ),
    ]);
}

#[test]
fn policies_are_checked_beside_their_validations() {
    check([
        (
            json!({"validations": []}),
            "spec.validations: Required value: validations or auditAnnotations must contain at least one item; \
             spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item"
                .to_owned(),
        ),
        (
            json!({"auditAnnotations": [{"key": "a b", "valueExpression": "1"}]}),
            "spec.auditAnnotations[0].key: Invalid value: \"p/a b\": name part must consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
             regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'); \
             spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of [string null_type] but \
             got int"
                .to_owned(),
        ),
        (json!({"matchConditions": [{"name": "c", "expression": "params.a"}]}), {
            let source = "params.a";
            format!(
                "spec.matchConditions[0].expression: Invalid value: \"{source}\": compilation failed: ERROR: <input>:1:1: \
                 undeclared reference to 'params' (in container '')\n | {source}\n | ^"
            )
        }),
        (
            json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConditions": [{"name": "c", "expression": "params.a == 1"}]}),
            String::new(),
        ),
        (
            json!({"paramKind": {"apiVersion": "a/b/c", "kind": "-"}}),
            "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c; \
             spec.paramKind.kind: Invalid value: \"-\": may have mixed case, but should otherwise match: a DNS-1035 label must \
             consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an \
             alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        ),
        (
            json!({"variables": [{"name": "if", "expression": "1"}, {"name": "", "expression": ""}]}),
            "spec.variables[0].name: Invalid value: \"if\": must be a valid CEL identifier; spec.variables[1].name: Required \
             value: name is not specified; spec.variables[1].expression: Required value: expression is not specified"
                .to_owned(),
        ),
    ]);
}

#[test]
fn variables_have_types_for_those_that_follow() {
    let variables =
        json!([{"name": "n", "expression": "size(object.a)"}, {"name": "m", "expression": "variables.n + 1"}]);
    for (expression, fits) in
        [("variables.m > variables.n", true), ("variables.m == 'a'", false), ("variables.other > 0", false)]
    {
        let policy = policy(json!({"variables": variables, "validations": [{"expression": expression}]}));
        let told = create::<ValidatingAdmissionPolicyRules>(&policy);
        assert_eq!(told.is_empty(), fits, "{expression}: {told}");
    }
    let cycle = json!({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]});
    let told = create::<ValidatingAdmissionPolicyRules>(&policy(cycle));
    assert!(told.contains("undefined field 'b'"), "{told}");
}

#[test]
fn conditions_that_did_not_change_are_not_looked_at() {
    let condition = json!([{"name": "c", "expression": "nothing"}]);
    let old = policy(json!({"matchConditions": condition, "validations": [{"expression": "true"}]}));
    let update = |new: &ValidatingAdmissionPolicy| {
        told(&ValidatingAdmissionPolicyRules::validate_update(&RuleContext::default(), Endpoint::Main, new, &old))
    };
    assert_eq!(update(&policy(json!({"matchConditions": condition, "validations": [{"expression": "1 == 1"}]}))), "");
    // They are, where what they may use changed.
    let kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let told = update(&policy(json!({"matchConditions": condition, "paramKind": kind})));
    assert!(told.contains("undeclared reference to 'nothing'"), "{told}");
}

#[test]
fn bindings_name_a_policy_and_what_it_does() {
    let binding =
        |spec: Value| from_value::<ValidatingAdmissionPolicyBinding>(&json!({"metadata": {"name": "b"}, "spec": spec}));
    for (spec, expected) in [
        (json!({"policyName": "p", "validationActions": ["Deny", "Audit"]}), ""),
        (
            json!({"validationActions": []}),
            "spec.policyName: Required value; spec.validationActions: Required value: at least one validation action is required",
        ),
        (
            json!({"policyName": "p", "validationActions": ["Deny", "Warn"]}),
            "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the \
             same validation failure information in the API response and headers serves no purpose)",
        ),
        (
            json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": {"parameterNotFoundAction": "Maybe"}}),
            "spec.paramRef: Required value: one of name or selector must be specified; \
             spec.paramRef.parameterNotFoundAction: Unsupported value: \"Maybe\": supported values: \"Deny\", \"Allow\"",
        ),
        (
            json!({"policyName": "p", "validationActions": ["Deny"],
                   "paramRef": {"name": "n", "selector": {}, "parameterNotFoundAction": "Deny"}}),
            "spec.paramRef.name: Forbidden: name and selector are mutually exclusive; spec.paramRef.selector: Forbidden: \
             name and selector are mutually exclusive",
        ),
    ] {
        let binding = binding(spec.clone()).expect("a binding");
        assert_eq!(create::<ValidatingAdmissionPolicyBindingRules>(&binding), expected, "{spec}");
    }
}

#[test]
fn mutations_say_how_they_are_written() {
    let merging =
        |expression: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    let patching = |expression: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}});
    for (mutations, expected) in [
        (json!([merging("Object{spec: Object.spec{}}"), patching("[JSONPatch{op: 'add'}]")]), ""),
        (json!([]), "spec.mutations: Required value: mutations must contain at least one item"),
        (
            json!([merging("1"), patching("[1]")]),
            "spec.mutations[0].applyConfiguration.expression: Invalid value: \"1\": must evaluate to Object but got int; \
             spec.mutations[1].jsonPatch.expression: Invalid value: \"[1]\": must evaluate to list(JSONPatch) but got list(int)",
        ),
        (
            json!([{"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}]),
            "spec.mutations[0].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when \
             patchType is JSONPatch; spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ),
        (json!([{}]), "spec.mutations[0].patchType: Required value"),
    ] {
        let spec = json!({"mutations": mutations, "reinvocationPolicy": "Never"});
        let policy: MutatingAdmissionPolicy = object(spec.clone(), json!({}));
        assert_eq!(create::<MutatingAdmissionPolicyRules>(&policy), expected, "{spec}");
    }
    let mut policy: MutatingAdmissionPolicy =
        object(json!({"mutations": [merging("Object{}")], "reinvocationPolicy": "Always"}), json!({}));
    let rules = &mut policy.spec.match_constraints.as_mut().expect("constraints").resource_rules;
    rules[0].rule.operations = vec!["DELETE".into()];
    assert_eq!(
        create::<MutatingAdmissionPolicyRules>(&policy),
        "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \"CONNECT\", \
         \"CREATE\", \"UPDATE\"; spec.reinvocationPolicy: Unsupported value: \"Always\": supported values: \"IfNeeded\", \
         \"Never\""
    );
}
