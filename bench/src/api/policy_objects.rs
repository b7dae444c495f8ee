//! Ten policies as clusters have them, and a webhook.

use serde_json::{Value, json};

use super::pods;

/// What a pod must be, and what is said of one that is not.
const RULES: [(&str, &str, &str); 9] = [
    (
        "unprivileged",
        "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)",
        "privileged containers are not allowed",
    ),
    (
        "requests",
        "object.spec.containers.all(c, has(c.resources) && has(c.resources.requests) && 'cpu' in c.resources.requests)",
        "containers must request processor time",
    ),
    (
        "limits",
        "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits)",
        "containers must limit their memory",
    ),
    ("labels", "has(object.metadata.labels) && 'app' in object.metadata.labels", "pods must say which app they are of"),
    (
        "no-host-paths",
        "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
        "volumes of the host are not allowed",
    ),
    (
        "no-host-network",
        "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
        "the network of the host is not allowed",
    ),
    ("tags", "object.spec.containers.all(c, !c.image.endsWith(':latest'))", "images must have a fixed tag"),
    ("probes", "object.spec.containers.all(c, has(c.readinessProbe))", "containers must say when they are ready"),
    (
        "sizes",
        "variables.limits.all(l, quantity(l).compareTo(quantity('4Gi')) <= 0)",
        "containers may have 4Gi of memory at most",
    ),
];
/// The one that asks an object of the cluster.
const WITH_PARAMETERS: &str = "registries";
/// The policy that is changed to see how soon that counts.
pub(super) const CHANGED: &str = "labels";

/// A kind's collection and an object for it.
pub(super) type Made = (&'static str, Value);

const PARAMETERS: &str = "/api/v1/namespaces/bench/configmaps";
pub(super) const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The ten policies, each with its binding, and the parameters of one of them.
pub(super) fn ten_policies() -> Vec<Made> {
    let parameters =
        json!({"metadata": {"name": WITH_PARAMETERS}, "data": {"allowed": "k8s.gcr.io/,registry.k8s.io/"}});
    let mut made = vec![(PARAMETERS, parameters)];
    for (name, rule, message) in RULES {
        made.push((POLICIES, policy(name, rule, message)));
        made.push((BINDINGS, binding(name, Value::Null)));
    }
    let rule = "object.spec.containers.all(c, params.data.allowed.split(',').exists(r, c.image.startsWith(r)))";
    let mut policy = policy(WITH_PARAMETERS, rule, "images must come from a registry that is allowed");
    policy["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    made.push((POLICIES, policy));
    let parameters = json!({"name": WITH_PARAMETERS, "namespace": pods::NAMESPACE, "parameterNotFoundAction": "Deny"});
    made.push((BINDINGS, binding(WITH_PARAMETERS, parameters)));
    made
}

/// The rule of the policy that is changed: as it is among the ten, or one that no pod obeys.
pub(super) fn changed_rule(lets_pass: bool) -> String {
    let rule = RULES.iter().find(|(name, ..)| *name == CHANGED).map_or("true", |(_, rule, _)| rule);
    if lets_pass { rule.to_owned() } else { format!("!({rule})") }
}

fn pods() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}])
}

fn policy(name: &str, rule: &str, message: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": pods()},
        "matchConditions": [{"name": "no-nodes", "expression": "!request.userInfo.groups.exists(g, g == 'system:nodes')"}],
        "variables": [{"name": "limits", "expression": "object.spec.containers.map(c, c.resources.limits['memory'])"}],
        "validations": [{"expression": rule, "message": message}],
    }})
}

fn binding(policy: &str, parameters: Value) -> Value {
    let mut spec = json!({"policyName": policy, "validationActions": ["Deny"]});
    if !parameters.is_null() {
        spec["paramRef"] = parameters;
    }
    json!({"metadata": {"name": policy}, "spec": spec})
}

/// A webhook on a port of this machine that is asked about pods.
pub(super) fn webhook_for_pods(port: u16, ca: &str) -> Made {
    let configuration = json!({"metadata": {"name": "bench"}, "webhooks": [{
        "name": "bench.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": pods(),
        "clientConfig": {"url": format!("https://127.0.0.1:{port}/validate"), "caBundle": ca},
        "failurePolicy": "Fail", "timeoutSeconds": 10,
    }]});
    (WEBHOOKS, configuration)
}
