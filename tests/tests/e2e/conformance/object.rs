//! Small objects: pods with short grace and no token, and containers of the few images that every node has.

use serde_json::{Value, json};

pub(crate) const BUSYBOX: &str = "busybox:1.36";
/// The same image under another name.
pub(crate) const BUSYBOX_OTHER: &str = "busybox:1.35";
pub(crate) const ECHO: &str = "registry.k8s.io/echoserver:1.4";
pub(crate) const ECHO_OTHER: &str = "registry.k8s.io/echoserver:1.5";
pub(crate) const PAUSE: &str = "registry.k8s.io/pause:3.10.1";

/// What a container does that is there to be looked at.
pub(crate) const IDLE: &str = "trap exit TERM; while :; do sleep 1; done";

/// An object with the members of both; those of the second win, objects are merged.
pub(crate) fn with(mut base: Value, more: Value) -> Value {
    merge(&mut base, more);
    base
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// A pod that nobody waits for long.
pub(crate) fn pod(name: &str, containers: &[Value], spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"pod": name}},
        "spec": pod_spec(containers, spec)})
}

/// Its specification.
pub(crate) fn pod_spec(containers: &[Value], spec: Value) -> Value {
    let base = json!({"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
        "containers": containers});
    with(base, spec)
}

/// The template of a workload's pods.
pub(crate) fn template(labels: &Value, containers: &[Value]) -> Value {
    json!({"metadata": {"labels": labels}, "spec": pod_spec(containers, json!({}))})
}

/// A container that runs a script.
pub(crate) fn shell(name: &str, script: &str) -> Value {
    json!({"name": name, "image": BUSYBOX, "command": ["sh", "-c", script]})
}

/// A container that does nothing until it is told to end.
pub(crate) fn idle(name: &str) -> Value {
    shell(name, IDLE)
}

/// A container that does nothing at all and costs least.
pub(crate) fn pause(name: &str) -> Value {
    json!({"name": name, "image": PAUSE})
}

/// A server at a port.
pub(crate) fn echo(name: &str, port: u16) -> Value {
    json!({"name": name, "image": ECHO, "env": [{"name": "PORT", "value": port.to_string()}],
        "ports": [{"containerPort": port}]})
}

/// A container status of a pod.
pub(crate) fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut all = lists.iter().filter_map(|list| pod["status"][list].as_array()).flatten();
    all.find(|status| status["name"] == name).unwrap_or(&Value::Null)
}

/// How often a container was started again.
pub(crate) fn restarts(pod: &Value, name: &str) -> u64 {
    container(pod, name)["restartCount"].as_u64().unwrap_or(0)
}

/// Whether a condition of an object is true.
pub(crate) fn is_true(object: &Value, condition: &str) -> bool {
    condition_of(object, condition)["status"] == "True"
}

/// A condition of an object, or null.
pub(crate) fn condition_of<'a>(object: &'a Value, condition: &str) -> &'a Value {
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|each| each["type"] == condition).unwrap_or(&Value::Null)
}

pub(crate) fn phase(pod: &Value) -> &str {
    text(&pod["status"]["phase"])
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn name_of(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}
