//! Admission policies where they meet the server: what is bound acts at once, whatever its parameters are.

use serde_json::{Value, json};

use super::audited::Audited;
use super::harness::{Answer, Api};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A policy about config maps, and its binding of the same name.
struct Bound {
    kind: &'static str,
    policy: Value,
    binding: Value,
}

fn validating(validations: Value) -> Bound {
    let binding = json!({"validationActions": ["Deny"]});
    Bound { kind: "validating", policy: json!({ "validations": validations }), binding }
}

fn mutating(mutations: Value) -> Bound {
    let policy = json!({"mutations": mutations, "reinvocationPolicy": "Never"});
    Bound { kind: "mutating", policy, binding: json!({}) }
}

impl Bound {
    fn policy(mut self, more: Value) -> Self {
        merge(&mut self.policy, more);
        self
    }

    fn binding(mut self, more: Value) -> Self {
        merge(&mut self.binding, more);
        self
    }

    async fn install(&self, api: &Api, name: &str) {
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]);
        let mut policy = json!({"metadata": {"name": name}, "spec": {"matchConstraints": {"resourceRules": rules}}});
        merge(&mut policy["spec"], self.policy.clone());
        let mut binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        merge(&mut binding["spec"], self.binding.clone());
        for (resource, body) in [("policies", policy), ("policybindings", binding)] {
            let path = format!("{GROUP}/{}admission{resource}", self.kind);
            let answer = api.post(&path, &body.to_string()).await;
            assert_eq!(answer.code, 201, "{}", answer.text);
            // A read waits until the cache has what was written.
            api.get(&path).await;
        }
    }

    async fn remove(&self, api: &Api, name: &str) {
        for resource in ["policies", "policybindings"] {
            let path = format!("{GROUP}/{}admission{resource}", self.kind);
            api.delete(&format!("{path}/{name}")).await;
            api.get(&path).await;
        }
    }
}

fn merge(into: &mut Value, more: Value) {
    for (name, value) in more.as_object().expect("an object") {
        into[name] = value.clone();
    }
}

async fn create(api: &Api, data: Value) -> Answer {
    let body = json!({"metadata": {"name": "m"}, "data": data});
    api.post(&format!("{MAPS}?dryRun=All"), &body.to_string()).await
}

/// The value of a config map that is sent with this one, where a policy would make it another.
pub(super) async fn changed_by_a_policy(api: &Api, sent: &str, changed: &str) -> String {
    let change = merging(&format!("Object{{data: {{'k': '{changed}'}}}}"));
    mutating(json!([change])).install(api, "p").await;
    let made = create(api, json!({"k": sent})).await.json();
    made["data"]["k"].as_str().unwrap_or_default().to_owned()
}

/// What a policy is about, the policy, the data of a config map, and what comes of it.
type Case = (&'static str, Bound, Value, u16, String);

fn refusals() -> [Case; 8] {
    let has = json!([{"expression": "has(object.data) && object.data.k != 'bad'", "message": "no bad"}]);
    let denied = |text: &str| {
        format!("configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: {text}")
    };
    [
        ("a rule that holds", validating(has.clone()), json!({"k": "good"}), 201, String::new()),
        ("a rule that does not", validating(has.clone()), json!({"k": "bad"}), 422, denied("no bad")),
        (
            "an error",
            validating(json!([{"expression": "object.data.other == ''"}])),
            json!({"k": "x"}),
            422,
            denied("expression 'object.data.other == ''' resulted in error: no such key: other"),
        ),
        (
            "an error that does not count",
            validating(json!([{"expression": "object.data.other == ''"}])).policy(json!({"failurePolicy": "Ignore"})),
            json!({"k": "x"}),
            201,
            String::new(),
        ),
        (
            "a message that is made, and a reason",
            validating(json!([{
                "expression": "variables.size < 2",
                "messageExpression": "'size ' + string(variables.size)",
                "reason": "Forbidden"
            }]))
            .policy(json!({"variables": [{"name": "size", "expression": "size(object.data.k)"}]})),
            json!({"k": "xxx"}),
            403,
            denied("size 3"),
        ),
        (
            "a condition that does not hold",
            validating(json!([{"expression": "false"}]))
                .policy(json!({"matchConditions": [{"name": "c", "expression": "object.data.k == 'seen'"}]})),
            json!({"k": "x"}),
            201,
            String::new(),
        ),
        (
            "what the authorizer, the request and the namespace say",
            validating(json!([{
                "expression": "authorizer.group('').resource('pods').namespace(request.namespace).check('get').allowed() \
                               && namespaceObject.metadata.name == 'default' && request.userInfo.username == 'root' \
                               && request.options.kind == 'CreateOptions' && request.kind.kind == 'ConfigMap'"
            }])),
            json!({"k": "x"}),
            201,
            String::new(),
        ),
        (
            "another namespace",
            validating(json!([{"expression": "false"}])).binding(json!({
                "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
            })),
            json!({"k": "x"}),
            201,
            String::new(),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn policies_refuse_as_upstream_does() {
    let api = Api::start().await;
    for (what, bound, data, code, message) in refusals() {
        bound.install(&api, "p").await;
        let answer = create(&api, data).await;
        assert_eq!(answer.code, code, "{what}: {}", answer.text);
        if code != 201 {
            assert_eq!(answer.refusal().1, message, "{what}");
        }
        bound.remove(&api, "p").await;
        assert_eq!(create(&api, json!({"k": "bad"})).await.code, 201, "{what}: taken away again");
    }
}

#[tokio::test(start_paused = true)]
async fn bindings_may_warn_instead() {
    let api = Api::start().await;
    let bound = validating(json!([{"expression": "false", "message": "beware"}]));
    bound.binding(json!({"validationActions": ["Warn", "Audit"]})).install(&api, "p").await;
    let answer = create(&api, json!({"k": "x"})).await;
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': beware";
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert!(answer.warnings().iter().any(|own| own.contains(warning)), "{:?}", answer.warnings());
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

async fn define_widgets(api: &Api) {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "max": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}}
    }}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let body = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        }
    });
    let answer = api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &body.to_string()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    for _ in 0..100 {
        if api.get(WIDGETS).await.code == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("widgets are never served");
}

#[tokio::test(start_paused = true)]
async fn parameters_may_be_of_any_kind() {
    let api = Api::start().await;
    define_widgets(&api).await;
    for (name, max, label) in [("small", 1, "a"), ("large", 5, "a"), ("other", 9, "b")] {
        let body = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": name, "labels": {"l": label}}, "spec": {"max": max}
        });
        assert_eq!(api.post(WIDGETS, &body.to_string()).await.code, 201);
    }
    let rule = json!([{"expression": "size(object.data.k) <= params.spec.max", "messageExpression": "'at most ' + string(params.spec.max)"}]);
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    for (param_ref, expected) in [
        (json!({"name": "small", "parameterNotFoundAction": "Deny"}), Some("at most 1")),
        (json!({"name": "large", "parameterNotFoundAction": "Deny"}), None),
        (json!({"selector": {"matchLabels": {"l": "a"}}, "parameterNotFoundAction": "Deny"}), Some("at most 1")),
        (json!({"selector": {"matchLabels": {"l": "b"}}, "parameterNotFoundAction": "Deny"}), None),
        (json!({"name": "gone", "parameterNotFoundAction": "Deny"}), Some(missing)),
        (json!({"name": "gone", "parameterNotFoundAction": "Allow"}), None),
    ] {
        let bound = validating(rule.clone())
            .policy(json!({"paramKind": {"apiVersion": "example.com/v1", "kind": "Widget"}}))
            .binding(json!({ "paramRef": param_ref }));
        bound.install(&api, "p").await;
        let answer = create(&api, json!({"k": "xxx"})).await;
        assert_eq!(answer.code, if expected.is_some() { 422 } else { 201 }, "{param_ref}: {}", answer.text);
        assert!(answer.refusal().1.ends_with(expected.unwrap_or_default()), "{param_ref}: {}", answer.text);
        bound.remove(&api, "p").await;
    }
    let bound = validating(json!([{"expression": "params != null"}]))
        .policy(json!({"paramKind": {"apiVersion": "example.com/v1", "kind": "Gadget"}}))
        .binding(json!({"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}}));
    bound.install(&api, "p").await;
    let answer = create(&api, json!({"k": "x"})).await;
    let text = "failed to find resource referenced by paramKind: 'example.com/v1, Kind=Gadget'";
    assert!(answer.refusal().1.ends_with(text), "{}", answer.text);
}

fn merging(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patching(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[tokio::test(start_paused = true)]
async fn policies_change_objects() {
    let api = Api::start().await;
    let cases = [
        (
            "merged, then patched with what was merged",
            json!([
                merging("Object{metadata: Object.metadata{labels: {'a': object.metadata.name}}}"),
                patching("[JSONPatch{op: 'add', path: '/data/copy', value: object.metadata.labels.a}]")
            ]),
            Ok(json!({"labels": {"a": "m"}, "data": {"k": "x", "copy": "m"}})),
        ),
        (
            "a test that fails",
            json!([patching(
                "[JSONPatch{op: 'test', path: '/data/k', value: 'y'}, JSONPatch{op: 'remove', path: '/data/k'}]"
            )]),
            Ok(json!({"labels": null, "data": {"k": "x"}})),
        ),
        (
            "a path that is not there",
            json!([patching("[JSONPatch{op: 'remove', path: '/none'}]")]),
            Err("JSON Patch: error in remove for path: '/none': Unable to remove nonexistent key: none: missing value"),
        ),
        (
            "a field that is not declared",
            json!([merging("Object{nothing: 1}")]),
            Err(
                "error applying patch: failed to convert patch object to typed object: .nothing: field not declared in schema",
            ),
        ),
        (
            "a type of another place",
            json!([merging("Object{metadata: Object.data{labels: {'a': 'b'}}}")]),
            Err(
                "type mismatch: unexpected type name \"Object.data\", expected \"Object.metadata\", which matches field name \
                 path from root Object type",
            ),
        ),
    ];
    for (what, mutations, expected) in cases {
        let bound = mutating(mutations);
        bound.install(&api, "p").await;
        let answer = create(&api, json!({"k": "x"})).await;
        match expected {
            Ok(expected) => {
                assert_eq!(answer.code, 201, "{what}: {}", answer.text);
                let object = answer.json();
                let seen = json!({"labels": object["metadata"]["labels"], "data": object["data"]});
                assert_eq!(seen, expected, "{what}");
            }
            Err(text) => {
                let text = format!("policy 'p' with binding 'p' denied request: {text}");
                assert_eq!(answer.refusal(), (403, text), "{what}");
            }
        }
        bound.remove(&api, "p").await;
    }
}

#[tokio::test(start_paused = true)]
async fn custom_objects_are_merged_by_their_schema() {
    let api = Api::start().await;
    define_widgets(&api).await;
    let rules =
        json!([{"apiGroups": ["example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["widgets"]}]);
    let constraints = json!({"matchConstraints": {"resourceRules": rules}});
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"tags": ["a"], "whole": {"a": "b"}}
    });
    for (expression, expected) in [
        (
            "Object{spec: Object.spec{tags: ['b'], max: 3}}",
            Ok(json!({"tags": ["a", "b"], "max": 3, "whole": {"a": "b"}})),
        ),
        (
            "Object{spec: Object.spec{whole: Object.spec.whole{a: 'c'}}}",
            Err("may not mutate atomic arrays, maps or structs: .spec.whole"),
        ),
        ("Object{spec: Object.spec{other: 1}}", Err(".spec.other: field not declared in schema")),
    ] {
        let bound = mutating(json!([merging(expression)])).policy(constraints.clone());
        bound.install(&api, "p").await;
        let answer = api.post(&format!("{WIDGETS}?dryRun=All"), &widget.to_string()).await;
        match expected {
            Ok(spec) => assert_eq!(answer.json()["spec"], spec, "{expression}: {}", answer.text),
            Err(text) => assert!(answer.refusal().1.ends_with(text), "{expression}: {}", answer.text),
        }
        bound.remove(&api, "p").await;
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_were_called_before_are_called_again() {
    let api = Api::start().await;
    let label = merging("Object{metadata: Object.metadata{labels: {'seen': string(has(object.data.late))}}}");
    mutating(json!([label])).policy(json!({"reinvocationPolicy": "IfNeeded"})).install(&api, "a").await;
    mutating(json!([merging("Object{data: {'late': 'x'}}")])).install(&api, "b").await;
    let object = create(&api, json!({"k": "x"})).await.json();
    assert_eq!(object["metadata"]["labels"]["seen"], "true", "{object}");
}

#[tokio::test(start_paused = true)]
async fn what_costs_too_much_is_refused_by_name() {
    let api = Api::start().await;
    let keys: Vec<String> = (0..200).map(|index| format!("k{index}")).collect();
    let data: Value = keys.iter().map(|key| (key.clone(), Value::from("x"))).collect::<serde_json::Map<_, _>>().into();
    let bomb = "object.data.all(x, object.data.all(y, object.data.all(z, x + y + z != '')))";
    validating(json!([{ "expression": bomb }])).install(&api, "p").await;
    let answer = create(&api, data.clone()).await;
    let text = format!("expression '{bomb}' resulted in error: operation cancelled: actual cost limit exceeded");
    assert!(answer.refusal().1.ends_with(&text), "{}", answer.text);
    validating(json!([{ "expression": bomb }])).remove(&api, "p").await;

    let long = validating(json!([{
        "expression": "false", "message": "short", "messageExpression": "object.data.map(k, k + k + k + k + k + k).join(',') + object.data.map(k, k + k + k + k + k + k).join(',')"
    }]));
    long.install(&api, "p").await;
    let answer = create(&api, data).await;
    assert!(answer.refusal().1.ends_with("denied request: short"), "a huge message is not told: {}", answer.text);
}

#[tokio::test(start_paused = true)]
async fn policies_are_not_subject_to_policies() {
    let api = Api::start().await;
    let all = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
    let locked =
        validating(json!([{"expression": "false"}])).policy(json!({"matchConstraints": {"resourceRules": all}}));
    locked.install(&api, "p").await;
    assert_eq!(create(&api, json!({"k": "x"})).await.code, 422);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                        "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let answer = api.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review.to_string()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    locked.remove(&api, "p").await;
    assert_eq!(create(&api, json!({"k": "x"})).await.code, 201, "nobody is locked out");
}

#[tokio::test(start_paused = true)]
async fn who_sets_parameters_may_read_them() {
    let api = Api::start().await;
    let role = json!({
        "metadata": {"name": "policies"},
        "rules": [{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
    });
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role.to_string()).await;
    let binding = json!({
        "metadata": {"name": "policies"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "policies"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    });
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding.to_string()).await;
    api.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
    let policy = |name: &str, kind: Value| {
        json!({"metadata": {"name": name}, "spec": {
            "paramKind": kind, "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]
        }})
    };
    let alice = [("authorization", "Bearer alice")];
    let policies = format!("POST {GROUP}/validatingadmissionpolicies");
    let answer = api.send(&policies, &alice, policy("a", Value::Null).to_string()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let secrets = json!({"apiVersion": "v1", "kind": "Secret"});
    let answer = api.send(&policies, &alice, policy("b", secrets.clone()).to_string()).await;
    let text = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"b\" is invalid: spec.paramKind: Forbidden: user \
                &{alice  [system:authenticated] map[]} must have \"get\" permission on all objects of the referenced \
                paramKind (kind=Secret, apiVersion=v1)";
    assert_eq!(answer.refusal(), (422, text.to_owned()));
    let answer = api.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy("b", secrets).to_string()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let binding = json!({"metadata": {"name": "b"}, "spec": {
        "policyName": "b", "validationActions": ["Deny"],
        "paramRef": {"name": "s", "namespace": "default", "parameterNotFoundAction": "Deny"}
    }});
    let line = format!("POST {GROUP}/validatingadmissionpolicybindings");
    let answer = api.send(&line, &alice, binding.to_string()).await;
    let text = "does not have \"get\" permission on the object referenced by paramRef";
    assert!(answer.code == 422 && answer.refusal().1.ends_with(text), "{}", answer.text);
}

#[tokio::test]
async fn what_policies_did_is_noted_and_counted() {
    let audited = Audited::new("[{level: Metadata}]").await;
    let api = &audited.api;
    validating(json!([{"expression": "object.data.k == 'y'", "message": "beware"}]))
        .policy(json!({"auditAnnotations": [{"key": "k", "valueExpression": "'saw ' + object.data.m"}]}))
        .binding(json!({"validationActions": ["Warn", "Audit"]}))
        .install(api, "p")
        .await;
    // The server makes a map of its own at its start, in another namespace, which may come to it as late as this.
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": "default"}});
    let here = json!({"matchResources": {"namespaceSelector": here}});
    mutating(json!([merging("Object{data: {'m': 'x'}}")])).binding(here).install(api, "m").await;
    assert_eq!(create(api, json!({"k": "x"})).await.code, 201);
    let [event] = audited.events(&format!("{MAPS}?dryRun=All")).await.try_into().expect("one event");
    let annotations = &event["annotations"];
    assert_eq!(annotations["p/k"], "saw x", "what was made of the object is what is seen");
    let noted =
        r#"[{"message":"beware","policy":"p","binding":"p","expressionIndex":0,"validationActions":["Warn","Audit"]}]"#;
    assert_eq!(annotations["validation.policy.admission.k8s.io/validation_failure"], noted);
    let metrics = api.get("/metrics").await.text;
    for (name, labels) in [
        ("validating", r#"enforcement_action="warn",error_type="no_error",policy="p",policy_binding="p""#),
        ("validating", r#"enforcement_action="audit",error_type="no_error",policy="p",policy_binding="p""#),
        ("mutating", r#"error_type="no_error",policy="m",policy_binding="m""#),
    ] {
        let name = format!("apiserver_{name}_admission_policy_check_total");
        let counted: Vec<&str> = metrics.lines().filter(|line| line.starts_with(&name)).collect();
        assert!(counted.contains(&format!("{name}{{{labels}}} 1").as_str()), "{labels} is not in {counted:#?}");
    }
}
