//! Applying manifests and looking at what came of it.

use tests::desk::Desk;
use tests::table::{Row, Want::*};

use crate::background::Background;

const APPLYING: &[Row] = &[
    Row::new("create namespace $NS", Says(&["namespace/$NS created"])),
    Row::new("create namespace $NS", Fails(&["(AlreadyExists)", "namespaces \"$NS\" already exists"])),
    Row::new(
        "apply -f $MANIFEST",
        Says(&[
            "configmap/settings created",
            "deployment.apps/web created",
            "service/web created",
            "pod/shell created",
        ]),
    ),
    Row::new("rollout status deployment/web --timeout=90s", Says(&["deployment \"web\" successfully rolled out"])),
    Row::new("wait --for=condition=Ready pod/shell --timeout=90s", Says(&["pod/shell condition met"])),
    Row::new("wait --for=jsonpath={.status.phase}=Running pod/flaky --timeout=90s", Says(&["pod/flaky condition met"])),
    Row::new("wait --for=condition=Ready pod/none --timeout=1s", Fails(&["pods \"none\" not found"])),
    Row::new(
        "wait --for=jsonpath={.spec.replicas}=7 deployment/web --timeout=1s",
        Fails(&["timed out waiting for the condition on deployments/web"]),
    ),
    // Twice at once: nothing changes.
    Row::new(
        "apply -f $MANIFEST",
        Says(&["configmap/settings unchanged", "deployment.apps/web unchanged", "pod/shell unchanged"]),
    ),
];

const GETTING: &[Row] = &[
    Row::new("get pods", Says(&["NAME", "READY", "STATUS", "RESTARTS", "AGE", "shell", "1/1", "Running"])),
    Row::new("get pods -o wide", Says(&["IP", "NODE", "NOMINATED NODE", "READINESS GATES", "node-", "10.244."])),
    Row::new("get pods --no-headers -o name", Says(&["pod/shell", "pod/flaky", "pod/web-"])),
    Row::new("get deployments,services", Says(&["deployment.apps/web", "2/2", "service/web", "ClusterIP", "80/TCP"])),
    Row::new(
        "get deployment web -o wide",
        Says(&["CONTAINERS", "IMAGES", "SELECTOR", "echo", "k8s.gcr.io/echoserver:1.4", "app=web"]),
    ),
    Row::new("get all", Says(&["pod/shell", "service/web", "deployment.apps/web", "replicaset.apps/web-"])),
    Row::new("get pod shell -o yaml", Says(&["apiVersion: v1", "kind: Pod", "  name: shell", "phase: Running"])),
    Row::new("get pod shell -o yaml", Omits(&["managedFields"])),
    Row::new(
        "get pod shell -o yaml --show-managed-fields",
        Says(&["managedFields", "manager: kubectl-client-side-apply", "manager: kubelet"]),
    ),
    Row::new("get pod shell -o json", Says(&["\"kind\": \"Pod\"", "\"hostIP\": "])),
    Row::new("get pods -o json", Says(&["\"kind\": \"List\"", "\"resourceVersion\""])),
    Row::new("get pod shell -o jsonpath={.spec.containers[0].image}", Prints("busybox:1.36")),
    Row::new("get pods -l app=web -o 'jsonpath={range .items[*]}{.status.phase},{end}'", Prints("Running,Running,")),
    Row::new("get pod shell -o go-template={{.metadata.name}}", Prints("shell")),
    Row::new(
        "get pods -l run=shell -o custom-columns=N:.metadata.name,S:.status.phase",
        Says(&["N", "S", "shell", "Running"]),
    ),
    Row::new("get pods -l 'app in (web)' -o name", Omits(&["shell"])),
    Row::new("get pods -l app!=web -o name", Omits(&["web-"])),
    Row::new("get pods --field-selector=metadata.name=shell -o name", Prints("pod/shell")),
    Row::new("get pods --field-selector=status.phase=Failed", Says(&["No resources found in $NS namespace."])),
    Row::new("get pods --field-selector=spec.nothing=x", Fails(&["field label not supported: spec.nothing"])),
    Row::new("get pods --show-labels", Says(&["LABELS", "run=shell", "pod-template-hash="])),
    Row::new("get pods -L run", Says(&["RUN"])),
    Row::new("get pods --sort-by=.metadata.name -o name", Says(&["pod/flaky\npod/shell\npod/web-"])),
    Row::new("get pods -A", Says(&["NAMESPACE", "kube-system", "$NS"])),
    Row::new("get pods --chunk-size=1 -o name", Says(&["pod/shell", "pod/flaky"])),
    Row::new("get -f $MANIFEST", Says(&["configmap/settings", "deployment.apps/web", "pod/flaky"])),
    Row::new("get nodes", Says(&["STATUS", "ROLES", "VERSION", "node-1", "Ready", "v1.36"])),
    Row::new(
        "get nodes -o wide",
        Says(&["INTERNAL-IP", "OS-IMAGE", "CONTAINER-RUNTIME", "containerd://", "172.30.0.254"]),
    ),
    Row::new("get namespaces", Says(&["kube-system", "default", "Active"])),
    Row::new("get endpoints web", Shows(&["10.244.", ":8080"])),
    Row::new("get endpointslices -l kubernetes.io/service-name=web", Shows(&["ADDRESSTYPE", "IPv4", "8080"])),
    Row::new("get cm,sa,secrets", Says(&["configmap/kube-root-ca.crt", "serviceaccount/default"])),
    Row::new("get leases -n kube-node-lease", Says(&["HOLDER", "node-1"])),
    Row::new("get pod none", Fails(&["Error from server (NotFound): pods \"none\" not found"])),
    Row::new("get nonsense", Fails(&["the server doesn't have a resource type \"nonsense\""])),
    Row::new("get pods --subresource=status shell -o jsonpath={.status.phase}", Prints("Running")),
    Row::new("get --raw /api/v1/namespaces/$NS/services/web:http/proxy/hostname", Says(&["web-"])),
    Row::new("get --raw /readyz", Prints("ok")),
    Row::new("get --raw /readyz?verbose", Says(&["[+]ping ok", "readyz check passed"])),
    Row::new("get --raw /version", Says(&["\"major\": \"1\"", "\"minor\": \"36\""])),
    Row::new("get --raw /apis", Says(&["APIGroupList", "rbac.authorization.k8s.io"])),
    Row::new("get --raw /nothing", Fails(&["the server could not find the requested resource"])),
];

const DESCRIBING: &[Row] = &[
    Row::new(
        "describe pod shell",
        Shows(&[
            "Name:             shell",
            "Namespace:        $NS",
            "Status:           Running",
            "Container ID:  containerd://",
            "COLOUR:  <set to the key 'colour' of config map 'settings'>",
            "QoS Class:                   Burstable",
            "node.kubernetes.io/not-ready:NoExecute op=Exists for 3s",
            "Successfully assigned $NS/shell to node-",
            "Container created",
            "Container started",
        ]),
    ),
    Row::new(
        "describe deployment web",
        Says(&[
            "Replicas:               2 desired | 2 updated | 2 total | 2 available",
            "StrategyType:           RollingUpdate",
            "NewReplicaSet:   web-",
            "Scaled up replica set",
        ]),
    ),
    Row::new(
        "describe service web",
        Shows(&["Selector:", "app=web", "TargetPort:", "http/TCP", "Endpoints:", "10.244."]),
    ),
    Row::new(
        "describe node node-1",
        Says(&[
            "Capacity:",
            "Allocatable:",
            "Non-terminated Pods:",
            "Allocated resources:",
            "KubeletReady",
            "PodCIDR:",
            "Lease:",
        ]),
    ),
    Row::new(
        "describe namespace $NS",
        Says(&["Status:       Active", "No resource quota.", "No LimitRange resource."]),
    ),
    Row::new("describe replicasets", Says(&["Controlled By:", "Deployment/web", "Successf"])),
    Row::new("describe configmap settings", Says(&["colour:", "blue"])),
    Row::new("describe pod none", Fails(&["pods \"none\" not found"])),
    Row::new("events", Shows(&["LAST SEEN", "Scheduled", "Pulled", "Pod/shell"])),
    Row::new("events --for pod/shell", Says(&["Successfully assigned"])),
    Row::new("get events --field-selector=involvedObject.name=shell", Says(&["Scheduled", "Started"])),
];

const DISCOVERING: &[Row] = &[
    Row::new("api-resources", Says(&["SHORTNAMES", "deployments", "deploy", "apps/v1", "true", "Deployment"])),
    Row::new("api-resources --api-group=batch -o name", Says(&["cronjobs.batch", "jobs.batch"])),
    Row::new("api-resources --namespaced=false --verbs=list -o wide", Says(&["nodes", "VERBS", "deletecollection"])),
    Row::new("api-versions", Says(&["apps/v1", "batch/v1", "rbac.authorization.k8s.io/v1", "v1"])),
    Row::new(
        "explain pods.spec.containers",
        Says(&["KIND:       Pod", "FIELD: containers <[]Container>", "image", "-required-"]),
    ),
    Row::new(
        "explain deployment --recursive",
        Says(&["KIND:       Deployment", "maxUnavailable", "<IntOrString>", "topologySpreadConstraints"]),
    ),
    Row::new("explain deploy.spec.nothing", Fails(&["field \"nothing\" does not exist"])),
    Row::new("cluster-info", Says(&["Kubernetes control plane", "is running at", "https://172.30.0.254:6443"])),
    Row::new("version", Says(&["Client Version: v1.3", "Server Version: v1.36"])),
    Row::new("auth whoami", Says(&["kubernetes-admin", "system:authenticated"])),
    Row::new("auth can-i create pods", Prints("yes")),
    Row::new("auth can-i get pods --as=nobody", Ends(1, &["no"])),
    Row::new("auth can-i --list --as=nobody", Says(&["selfsubjectaccessreviews.authorization.k8s.io", "/healthz"])),
    Row::new(
        "get pods --as=nobody",
        Fails(&[
            "(Forbidden)",
            "User \"nobody\" cannot list resource \"pods\" in API group \"\" in the namespace \"$NS\"",
        ]),
    ),
];

pub(super) async fn story(desk: &Desk) {
    for table in [APPLYING, GETTING, DESCRIBING, DISCOVERING] {
        desk.work_through(table).await;
    }
    watching(desk).await;
}

async fn watching(desk: &Desk) {
    let watch = Background::kubectl(&desk.kubectl, "get configmaps --watch --output-watch-events -o name").await;
    watch.until(|text| text.contains("configmap/settings")).await;
    desk.work_through(&[Row::new("create configmap seen", Succeeds), Row::new("delete configmap seen", Succeeds)])
        .await;
    watch.until(|text| text.matches("configmap/seen").count() >= 2).await;
}
