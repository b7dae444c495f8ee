//! The pods of the benchmark: what a controller posts, and what a kubelet says of them later.

use bytes::Bytes;

/// The namespace that everything is in.
pub(super) const NAMESPACE: &str = "bench";

/// The collection's path.
pub(super) const COLLECTION: &str = "/api/v1/namespaces/bench/pods";

/// The name of the pod with this number.
pub(super) fn name(number: usize) -> String {
    format!("my-app-deployment-7c9d8f6b5d-{number:05}")
}

/// The path of the pod with this number.
pub(super) fn path(number: usize) -> String {
    format!("{COLLECTION}/{}", name(number))
}

/// A pod as the controller of a replica set posts it.
pub(super) fn manifest(number: usize) -> Bytes {
    let name = name(number);
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","generateName":"my-app-deployment-7c9d8f6b5d-","labels":{{"app":"my-app","pod-template-hash":"7c9d8f6b5d"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"my-app-deployment-7c9d8f6b5d","uid":"b6e1d7a4-52c3-4f88-a0c9-1d9f0c6e8b27","controller":true}}]}},"spec":{{"containers":[{{"name":"echo-container","image":"k8s.gcr.io/echoserver:1.4","ports":[{{"containerPort":8080,"protocol":"TCP"}}],"resources":{{"limits":{{"memory":"128Mi"}},"requests":{{"cpu":"100m","memory":"64Mi"}}}},"readinessProbe":{{"httpGet":{{"path":"/healthz","port":8080}}}}}}],"nodeName":"node-{node}"}}}}"#,
        node = number % 100,
    )
    .into()
}

/// A merge patch with the status of a running pod; `start` differs from one to the next, so that each is a change.
pub(super) fn status_patch(number: usize, start: usize) -> Bytes {
    let (host, second, minute) = (number % 250, start % 60, start / 60 % 60);
    let time = format!("2026-03-14T09:{minute:02}:{second:02}Z");
    let conditions =
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map(|kind| {
            format!(r#"{{"type":"{kind}","observedGeneration":1,"status":"True","lastTransitionTime":"{time}"}}"#)
        });
    format!(
        r#"{{"status":{{"observedGeneration":1,"phase":"Running","conditions":[{conditions}],"hostIP":"172.30.0.{host}","hostIPs":[{{"ip":"172.30.0.{host}"}}],"podIP":"10.244.0.{host}","podIPs":[{{"ip":"10.244.0.{host}"}}],"startTime":"{time}","containerStatuses":[{{"name":"echo-container","state":{{"running":{{"startedAt":"{time}"}}}},"lastState":{{}},"ready":true,"restartCount":0,"image":"k8s.gcr.io/echoserver:1.4","imageID":"sha256:a90209bb39e3d7b5fc9daf60c17044ea969aaca0333454d65ba8e3ba16ee3b8f","containerID":"containerd://5b6f1f6d0d1a4f2d8a1c0f6ab6e1f7c4d2a98e7350c1b6fe0d9a0c37e4b82d19","started":true}}]}}}}"#,
        conditions = conditions.join(","),
    )
    .into()
}
