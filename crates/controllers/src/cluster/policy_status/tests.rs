//! What is told of policies, from their kinds to their status.

use std::sync::Arc;

use api_machinery::object::from_value;
use bytes::Bytes;
use client::{Discovered, ResourceInfo, ServedResource, Transport, TransportError};
use component_base::serving::{Body, full};
use serde_json::json;

use super::*;
use crate::workloads::fixtures::{Running, run_until_idle};

const DESCRIPTORS: &[Descriptor] = &[DESCRIPTOR];

fn policy(spec: Value) -> ValidatingAdmissionPolicy {
    let body = json!({"metadata": {"name": "p", "generation": 2}, "spec": spec});
    from_value(&body).expect("a policy")
}

fn rule(groups: &[&str], versions: &[&str], resources: &[&str]) -> Value {
    json!({"operations": ["*"], "apiGroups": groups, "apiVersions": versions, "resources": resources})
}

fn served(resources: &[(&str, &str, &str, &str)]) -> Discovered {
    let served = |(group, version, resource, kind): &(&str, &str, &str, &str)| {
        let version = GroupVersion { group: (*group).to_owned().into(), version: (*version).to_owned().into() };
        let info = ResourceInfo {
            resource: version.with_resource((*resource).to_owned()),
            kind: (*kind).to_owned(),
            namespaced: true,
        };
        ServedResource { info, verbs: Vec::new(), subresources: Vec::new(), preferred: true }
    };
    Discovered { resources: resources.iter().map(served).collect(), failed: Vec::new() }
}

#[test]
fn kinds_are_those_that_are_named() {
    let discovered = served(&[
        ("", "v1", "pods", "Pod"),
        ("apps", "v1", "deployments", "Deployment"),
        ("apps", "v1", "statefulsets", "StatefulSet"),
    ]);
    for (what, rules, expected, all_known) in [
        ("one", vec![rule(&[""], &["v1"], &["pods"])], vec!["Pod"], true),
        (
            "each once, in order",
            vec![rule(&["apps", ""], &["v1"], &["deployments", "pods"]), rule(&[""], &["v1"], &["pods"])],
            vec!["Pod", "Deployment"],
            false,
        ),
        ("any group", vec![rule(&["*"], &["v1"], &["pods"])], vec![], true),
        ("any version", vec![rule(&[""], &["*"], &["pods"])], vec![], true),
        (
            "any resource, and subresources",
            vec![rule(&["apps"], &["v1"], &["*", "pods/status", "statefulsets"])],
            vec!["StatefulSet"],
            true,
        ),
        ("none that is known", vec![rule(&["x"], &["v1"], &["pods"])], vec![], false),
    ] {
        let (kinds, known) = kinds::of(&policy(json!({"matchConstraints": {"resourceRules": rules}})), &discovered);
        let names: Vec<&str> = kinds.iter().map(|kind| &*kind.kind).collect();
        assert_eq!((names, known), (expected, all_known), "{what}");
    }
}

#[test]
fn a_rule_with_many_kinds_is_the_last_that_is_looked_at() {
    let names: Vec<String> = (10..22).map(|index| format!("r{index}")).collect();
    let many: Vec<_> = names.iter().map(|name| ("g", "v1", name.as_str(), name.as_str())).collect();
    let discovered = served(&many);
    let resources: Vec<&str> = names.iter().take(11).map(String::as_str).collect();
    let rules = vec![rule(&["g"], &["v1"], &resources), rule(&["g"], &["v1"], &["r21"])];
    let (kinds, _) = kinds::of(&policy(json!({"matchConstraints": {"resourceRules": rules}})), &discovered);
    let found: Vec<&str> = kinds.iter().map(|kind| &*kind.kind).collect();
    assert_eq!(found, resources[..10], "neither the eleventh nor the next rule");
}

fn document() -> Value {
    let kind = |kind: &str, field: &str| {
        json!({
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": kind}],
            "properties": {"spec": {"type": "object", "properties": {field: {"type": "integer"}}}},
        })
    };
    json!({"components": {"schemas": {
        "Deployment": kind("Deployment", "replicas"), "StatefulSet": kind("StatefulSet", "replicas"),
        "DaemonSet": kind("DaemonSet", "ready"),
    }}})
}

#[test]
fn what_does_not_fit_is_told_for_each_kind() {
    let types = OpenApiTypes::new(&document());
    let known = |name: &&str| {
        let kind = GroupVersionKind { group: "apps".into(), version: "v1".into(), kind: (*name).to_owned().into() };
        let object = types.of_kind(&kind).expect("a kind");
        (kind, object)
    };
    let all: Vec<_> = ["DaemonSet", "Deployment", "StatefulSet"].iter().map(known).collect();
    let spec = json!({
        "variables": [{"name": "count", "expression": "object.spec.replicas"}],
        "validations": [
            {"expression": "object.spec.replicas > 1"},
            {"expression": "true", "messageExpression": "object.spec.sice"},
            {"expression": "authorizer.path('/').check('get').allowed() && request.dryRun && namespaceObject != null"},
            {"expression": "variables.count > 1"},
        ],
    });
    let spec = policy(spec).spec;
    let found = check::warnings(&spec, &all, None);
    let places: Vec<&str> = found.iter().map(|own| own.field_ref.as_str()).collect();
    assert_eq!(places, ["spec.validations[0].expression", "spec.validations[1].messageExpression"]);
    let place = "ERROR: <input>:1:12: undefined field 'replicas'\n | object.spec.replicas > 1\n | ...........^";
    assert_eq!(found[0].warning, format!("apps/v1, Kind=DaemonSet: {place}\n"));
    let lines: Vec<&str> = found[1].warning.lines().filter(|line| line.contains("Kind=")).collect();
    assert_eq!(lines.len(), 3, "{}", found[1].warning);
    assert!(found[1].warning.contains("^\n\napps/v1, Kind=Deployment: "), "{}", found[1].warning);
    assert_eq!(check::warnings(&spec, &[], None), [], "nothing is known of no kind");
}

/// Answers discovery and the document of a group, and hands everything else on.
struct WithTypes(Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for WithTypes {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let body = match request.uri().path() {
            "/apis" => {
                let kind = json!({"kind": "Deployment"});
                let resources =
                    json!([{"resource": "deployments", "scope": "Namespaced", "responseKind": kind, "verbs": []}]);
                let versions = json!([{"version": "v1", "freshness": "Current", "resources": resources}]);
                let items = json!([{"metadata": {"name": "apps"}, "versions": versions}]);
                json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
            }
            "/openapi/v3/apis/apps/v1" => document(),
            _ => return self.0.send(request).await,
        };
        let mut response = http::Response::new(full(body.to_string()));
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn server(&self) -> &str {
        self.0.server()
    }
}

#[tokio::test(start_paused = true)]
async fn each_generation_is_looked_at_once() {
    const POLICIES: &str = "admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let running =
        Running::start_over(DESCRIPTORS, Settings::default(), |server| Arc::new(WithTypes(server.transport())));
    let rules = json!({"resourceRules": [rule(&["apps"], &["v1"], &["deployments"])]});
    let own = policy(json!({"matchConstraints": rules, "validations": [{"expression": "object.spec.sice > 1"}]}));
    running.put(POLICIES, &own);
    run_until_idle().await;
    let [stored] = running.server.objects(POLICIES).try_into().expect("one policy");
    assert_eq!(stored["status"]["observedGeneration"], 2);
    let warnings = &stored["status"]["typeChecking"]["expressionWarnings"];
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[0].expression");
    assert!(warnings[0]["warning"].as_str().expect("a text").contains("undefined field 'sice'"), "{warnings}");
    assert_eq!(running.requests("PATCH", "/status"), 1);
    running.assert_steady().await;
}
