//! Nodes, pods, the workloads that they are of, and who scales those.

use serde_json::{Value, json};

use super::kubelets;

pub(super) const PODS_OF_A_NODE: usize = 100;
const NAMESPACES: usize = 100;

/// A kind's collection and an object for it, with the status that it gets, if one.
pub(super) struct Made {
    pub(super) collection: String,
    pub(super) object: Value,
    pub(super) status: Option<Value>,
}

impl Made {
    fn plain(collection: impl Into<String>, object: Value) -> Self {
        Self { collection: collection.into(), object, status: None }
    }
}

/// The namespace of everything with a number.
pub(super) fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

/// The workload with a number, which has one pod.
fn workload(number: usize) -> String {
    format!("app-{number:05}")
}

pub(super) fn pod_name(number: usize) -> String {
    format!("{}-7c9d8f6b5d-x2x4z", workload(number))
}

pub(super) fn namespaces() -> impl Iterator<Item = Made> {
    (0..NAMESPACES).map(|number| {
        let object = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace(number)}});
        Made::plain("/api/v1/namespaces", object)
    })
}

/// A node whose kubelet listens at its own address and this port.
pub(super) fn node(number: usize, port: u16) -> Made {
    let status = json!({
        "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": kubelets::address(number).to_string()}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    let object = json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": format!("node-{number}")}});
    Made { status: Some(json!({"status": status})), ..Made::plain("/api/v1/nodes", object) }
}

fn labels(number: usize) -> Value {
    json!({"app": workload(number), "pod-template-hash": "7c9d8f6b5d", "app.kubernetes.io/part-of": "bench"})
}

fn containers() -> Value {
    json!([{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}])
}

/// A pod that has run for long.
pub(super) fn pod(number: usize) -> Made {
    let since = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": since});
    let status = json!({"phase": "Running", "startTime": since,
        "conditions": [condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
        "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "image": "pause", "imageID": "",
            "state": {"running": {"startedAt": since}}}]});
    let object = json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": pod_name(number), "labels": labels(number)},
        "spec": {"nodeName": format!("node-{}", number / PODS_OF_A_NODE), "containers": containers()}});
    let collection = format!("/api/v1/namespaces/{}/pods", namespace(number));
    Made { status: Some(json!({"status": status})), ..Made::plain(collection, object) }
}

/// The workload that a pod is of.
pub(super) fn deployment(number: usize) -> Made {
    let template = json!({"metadata": {"labels": labels(number)}, "spec": {"containers": containers()}});
    let object = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": workload(number)},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": workload(number)}}, "template": template}});
    let collection = format!("/apis/apps/v1/namespaces/{}/deployments", namespace(number));
    let status = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}});
    Made { status: Some(status), ..Made::plain(collection, object) }
}

/// Who scales it: it uses what it should.
pub(super) fn autoscaler(number: usize) -> Made {
    let object = json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
        "metadata": {"name": workload(number)},
        "spec": {"minReplicas": 1, "maxReplicas": 10,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload(number)},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    Made::plain(format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers", namespace(number)), object)
}

/// The server of metrics as an extension of the API server, at this address.
pub(super) fn extension(address: std::net::IpAddr, port: u16) -> [Made; 3] {
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "metrics-server"},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]}});
    let slice = json!({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
        "metadata": {"name": "metrics-server-1", "labels": {"kubernetes.io/service-name": "metrics-server"}},
        "endpoints": [{"addresses": [address.to_string()]}], "ports": [{"name": "https", "port": port}]});
    let api = json!({"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"namespace": "kube-system", "name": "metrics-server"}}});
    [
        Made::plain("/api/v1/namespaces/kube-system/services", service),
        Made::plain("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", slice),
        Made::plain("/apis/apiregistration.k8s.io/v1/apiservices", api),
    ]
}
