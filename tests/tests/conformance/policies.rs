//! Admission policies: what they refuse and change of Deployments.

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A policy about the deployments of a namespace, bound; it counts once a read shows both.
async fn bind(cx: &Cx, kind: &str, ns: &str, spec: Value, binding: Value) {
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]);
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": ns}});
    let mut policy = json!({"metadata": {"name": ns}, "spec": {"matchConstraints": {"resourceRules": rules}}});
    let mut bound = json!({"metadata": {"name": ns}, "spec": {"policyName": ns, "matchResources": {"namespaceSelector": selector}}});
    for (into, more) in [(&mut policy, spec), (&mut bound, binding)] {
        for (name, value) in more.as_object().expect("an object") {
            into["spec"][name] = value.clone();
        }
    }
    for (resource, body) in [("policies", policy), ("policybindings", bound)] {
        let path = format!("{GROUP}/{kind}admission{resource}");
        cx.create(&path, &body).await.ok();
        cx.get(&format!("{path}/{ns}")).await.ok();
        cx.get(&path).await.ok();
    }
}

fn deployment(name: &str, replicas: i32) -> Value {
    let labels = json!({"app": name});
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        }
    })
}

async fn deploy(cx: &Cx, ns: &str, name: &str, replicas: i32) -> crate::harness::Answer {
    cx.create(&format!("/apis/apps/v1/namespaces/{ns}/deployments"), &deployment(name, replicas)).await
}

#[test]
fn a_policy_validates_a_deployment() {
    conform(async |cx| {
        let ns = cx.namespace("validated").await;
        let validations =
            json!([{"expression": "object.spec.replicas > 1", "messageExpression": "'wants more than ' + string(1)"}]);
        let deny = json!({"validationActions": ["Deny"]});
        bind(cx, "validating", &ns, json!({ "validations": validations }), deny).await;
        let refused = deploy(cx, &ns, "one", 1).await.refused(422);
        assert!(refused.ends_with("denied request: wants more than 1"), "{refused}");
        deploy(cx, &ns, "two", 2).await.ok();
        let other = cx.namespace("not-validated").await;
        deploy(cx, &other, "one", 1).await.ok();
    });
}

#[test]
fn expressions_refer_to_variables() {
    conform(async |cx| {
        let ns = cx.namespace("variables").await;
        let spec = json!({
            "variables": [
                {"name": "replicas", "expression": "object.spec.replicas"},
                {"name": "odd", "expression": "variables.replicas % 2 == 1"}
            ],
            "validations": [{"expression": "variables.replicas > 1"}, {"expression": "variables.odd"}]
        });
        bind(cx, "validating", &ns, spec, json!({"validationActions": ["Deny"]})).await;
        for (replicas, failed) in [(1, "variables.replicas > 1"), (2, "variables.odd")] {
            let refused = deploy(cx, &ns, "d", replicas).await.refused(422);
            assert!(refused.ends_with(&format!("failed expression: {failed}")), "{refused}");
        }
        deploy(cx, &ns, "d", 3).await.ok();
    });
}

#[test]
fn a_policy_mutates_a_deployment() {
    conform(async |cx| {
        let ns = cx.namespace("mutated").await;
        let merged = "Object{metadata: Object.metadata{annotations: {'by': 'policy'}}, \
                      spec: Object.spec{template: Object.spec.template{metadata: Object.spec.template.metadata{labels: {'more': 'x'}}}}}";
        let patched = "[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}]";
        let mutations = json!([
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": merged}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": patched}}
        ]);
        let spec = json!({"mutations": mutations, "reinvocationPolicy": "Never"});
        bind(cx, "mutating", &ns, spec, json!({})).await;
        let made = deploy(cx, &ns, "d", 1).await.ok();
        assert_eq!(made["spec"]["replicas"], 2, "{made}");
        assert_eq!(made["metadata"]["annotations"]["by"], "policy", "{made}");
        assert_eq!(made["spec"]["template"]["metadata"]["labels"], json!({"app": "d", "more": "x"}), "{made}");
    });
}
