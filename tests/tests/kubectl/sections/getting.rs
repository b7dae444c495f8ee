//! `get`: what is there and what is not, in every form, in pieces, in order, of all namespaces.

use super::prelude::*;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"name":"web"}},
    "spec":{"containers":[{"name":"main","image":"registry.example/web:1"}]}}"#;
const SORTED: [&str; 3] = [
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: sorted-1, labels: {name: c}}, spec: {containers: [{name: b, image: i, resources: {requests: {memory: 512Mi, cpu: 600m}, limits: {memory: 600Mi, cpu: 700m}}}]}}",
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: sorted-2, labels: {name: b}}, spec: {containers: [{name: a, image: i, resources: {requests: {memory: 1Gi, cpu: 1}, limits: {memory: 2Gi, cpu: 2}}}]}}",
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: sorted-3, labels: {name: a}}, spec: {containers: [{name: c, image: i, resources: {requests: {memory: 100Mi, cpu: 10m}, limits: {memory: 200Mi, cpu: 20m}}}]}}",
];

pub(crate) const GETTING: Section = Section {
    name: "getting",
    files: &[("pod.json", POD)],
    rows: &[
        Row::new("get pods abc", Fails(&["Error from server (NotFound): pods \"abc\" not found"])),
        Row::new("get pods abc -o name", Fails(&["pods \"abc\" not found"])),
        Row::new("get pods abc -o json", Fails(&["pods \"abc\" not found"])),
        Row::new("get pods abc --ignore-not-found", Prints("")),
        Row::new("get pods -o json", Says(&["\"items\": []"])),
        Row::new("get pods -o yaml", Says(&["items: []"])),
        Row::new("get pods -o name", Omits(&["No resources found"])),
        Row::new("get pods -o jsonpath={.items}", Prints("[]")),
        Row::new("get pods -o go-template={{.items}}", Prints("[]")),
        Row::new("get pods -o custom-columns=NAME:.metadata.name", Prints("NAME")),
        Row::new("get pods", Says(&["No resources found in $NS namespace."])),
        Row::new("get pods --ignore-not-found", Omits(&["No resources found"])),
        Row::new("get pods -o wide", Says(&["No resources found"])),
        Row::new(
            "--v=6 get all --chunk-size=0",
            Says(&[
                "/api/v1/namespaces/$NS/pods",
                "/api/v1/namespaces/$NS/replicationcontrollers",
                "/api/v1/namespaces/$NS/services",
                "/apis/apps/v1/namespaces/$NS/daemonsets",
                "/apis/apps/v1/namespaces/$NS/deployments",
                "/apis/apps/v1/namespaces/$NS/replicasets",
                "/apis/apps/v1/namespaces/$NS/statefulsets",
                "/apis/autoscaling/v2/namespaces/$NS/horizontalpodautoscalers",
                "/apis/batch/v1/namespaces/$NS/jobs",
                "/apis/batch/v1/namespaces/$NS/cronjobs",
            ]),
        ),
        Row::new(
            "--v=6 get clusterrole --chunk-size=10",
            Says(&["/clusterroles?limit=10", "/v1/clusterroles?continue="]),
        ),
        Row::new("--v=6 get clusterrole", Says(&["/clusterroles?limit=500"])),
        Row::new("get namespaces --chunk-size=1 --no-headers", Says(&["default", "kube-public", "kube-system"])),
        Row::new("create configmap one", Succeeds),
        Row::new("create configmap two", Succeeds),
        Row::new("create configmap three", Succeeds),
        Row::new("get configmap --chunk-size=1 --watch --request-timeout=1s", Grumbles(&["one", "two", "three"])),
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("get pod web -o jsonpath={.missing}", Prints("")),
        Row::new("get pod web -o go-template={{.missing}}", Prints("<no value>")),
        Row::new("get pod web --template={{.metadata.name}}:", Prints("web:")),
        Row::new(
            "get pod web --allow-missing-template-keys=false -o jsonpath={.missing}",
            Fails(&["missing is not found"]),
        ),
        Row::new(
            "get pod web --allow-missing-template-keys=false -o go-template={{.missing}}",
            Fails(&["map has no entry for key \"missing\""]),
        ),
        Row::new("get pod web --subresource=status", Says(&["web", "Pending"])),
        Row::new("get pod web --subresource=scale", Fails(&["the server could not find the requested resource"])),
        Row::new("get pods -w --request-timeout=1", Grumbles(&["STATUS", "web"])),
        Row::new("get pods/web -o name -w --request-timeout=1", Grumbles(&["pod/web"])),
        Row::new("get pods/web -o yaml -w --request-timeout=1", Grumbles(&["name: web"])),
        Row::new("get pods/none -w --request-timeout=1", Grumbles(&["\"none\" not found"])),
        Row::new("get pods web -o wide", Says(&["NOMINATED NODE", "READINESS GATES"])),
        Row::new("get pods web --show-labels", Says(&["LABELS", "name=web"])),
        Row::new("get pods web -L name", Says(&["NAME", "web"])),
        Row::new("get pods web --server-print=false", Says(&["NAME", "AGE", "web"])),
        Row::new(
            "get pods --field-selector=spec.none=x",
            Fails(&["(BadRequest)", "field label not supported: spec.none"]),
        ),
        Row::new("get pods -l 'a in'", Fails(&["unable to parse requirement"])),
        // What is on its way out says so, and may count as an error.
        Row::new(
            "get endpoints",
            Grumbles(&["Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]),
        ),
        Row::new("get endpoints --warnings-as-errors", Fails(&["v1 Endpoints is deprecated", "1 warning received"])),
        Row::new("delete pod web", Succeeds),
        Row::new("get --raw /metrics", Says(&["apiserver_request_total"])),
        Row::new("get --raw /api/kubernetes", Fails(&["(NotFound)"])),
        Row::new("get --raw /apis/apps/", Says(&["\"kind\":\"APIGroup\""])),
    ],
};

pub(crate) const SORTING: Section = Section {
    name: "sorting",
    files: &[("1.yaml", SORTED[0]), ("2.yaml", SORTED[1]), ("3.yaml", SORTED[2])],
    rows: &[
        Row::new("get pods --sort-by={metadata.name}", Succeeds),
        Row::new("get pods --sort-by={metadata.creationTimestamp}", Succeeds),
        Row::new("create -f $DIR/1.yaml", Succeeds),
        Row::new("get pods --v=8 --sort-by={metadata.name}", Says(&["as=Table", "includeObject=Object", "sorted-1"])),
        // Creation times are whole seconds.
        Row::new(
            "wait --for=condition=Never pod/sorted-1 --timeout=1s",
            Fails(&["timed out waiting for the condition"]),
        ),
        Row::new("create -f $DIR/2.yaml", Succeeds),
        Row::new(
            "wait --for=condition=Never pod/sorted-2 --timeout=1s",
            Fails(&["timed out waiting for the condition"]),
        ),
        Row::new("create -f $DIR/3.yaml", Succeeds),
        Row::new("get pods --sort-by={metadata.name}", Orders(&["sorted-1", "sorted-2", "sorted-3"])),
        Row::new("get pods --sort-by={metadata.labels.name}", Orders(&["sorted-3", "sorted-2", "sorted-1"])),
        Row::new("get pods --sort-by={spec.containers[0].name}", Orders(&["sorted-2", "sorted-1", "sorted-3"])),
        Row::new("get pods --sort-by={metadata.creationTimestamp}", Orders(&["sorted-1", "sorted-2", "sorted-3"])),
        Row::new(
            "get pods --sort-by={.spec.containers[0].resources.requests.memory}",
            Orders(&["sorted-3", "sorted-1", "sorted-2"]),
        ),
        Row::new(
            "get pods --sort-by={.spec.containers[0].resources.requests.cpu}",
            Orders(&["sorted-3", "sorted-1", "sorted-2"]),
        ),
        Row::new(
            "get pods --sort-by={.spec.containers[0].resources.limits.memory}",
            Orders(&["sorted-3", "sorted-1", "sorted-2"]),
        ),
        Row::new(
            "get pods --sort-by={.spec.containers[0].resources.limits.cpu}",
            Orders(&["sorted-3", "sorted-1", "sorted-2"]),
        ),
        Row::new(
            "get pods --sort-by={spec.containers[0].name} --server-print=false",
            Orders(&["sorted-2", "sorted-1", "sorted-3"]),
        ),
        Row::new("get pods --sort-by={spec.containers[0].name} --server-print=false --v=8", Omits(&["Table"])),
        Row::new("delete pod --grace-period=0 --force --all", Succeeds),
    ],
};

pub(crate) const NAMESPACES: Section = Section {
    name: "namespaces",
    files: &[("pod.json", POD)],
    rows: &[
        Row::new("get ns/$NS-1", Fails(&["namespaces \"$NS-1\" not found"])),
        Row::new("create namespace $NS-1 --dry-run=client", Succeeds),
        Row::new("create namespace $NS-1 --dry-run=server", Succeeds),
        Row::new("get ns/$NS-1", Fails(&["not found"])),
        Row::new("create namespace $NS-1", Prints("namespace/$NS-1 created")),
        // One that somebody else deletes meanwhile makes it fail.
        Row::new(
            "describe --chunk-size=1 --v=6 namespaces",
            Shows(&[
                "/namespaces?limit=1",
                "/resourcequotas?limit=1",
                "/limitranges?limit=1",
                "No resource quota.",
                "No LimitRange resource.",
            ]),
        ),
        Row::new("delete namespace $NS-1 --wait=false", Says(&["namespace \"$NS-1\" deleted"])),
        Row::new("wait --for=delete ns/$NS-1 --timeout=60s", Succeeds),
        Row::new("get ns/$NS-1", Fails(&["not found"])),
        Row::new("create namespace $NS-2", Succeeds),
        Row::new("create namespace $NS-3", Succeeds),
        Row::new("get pods -o name -n $NS-2", Prints("")),
        Row::new("create -f $DIR/pod.json --namespace=$NS-2", Shows(&["pod/web created"])),
        Row::new("get pods -n $NS-2 -o name", Prints("pod/web")),
        Row::new("get pods --namespace=$NS-2 -o name", Prints("pod/web")),
        Row::new(
            "get pod web --all-namespaces",
            Fails(&["a resource cannot be retrieved by name across all namespaces"]),
        ),
        Row::new("get pods --all-namespaces --namespace=default", Says(&["NAMESPACE", "$NS-2"])),
        Row::new("delete pod --namespace=$NS-2 web --grace-period=0 --force", Succeeds),
        Row::new("create serviceaccount test -n $NS-2", Succeeds),
        Row::new("create serviceaccount test -n $NS-3", Succeeds),
        Row::new("get serviceaccounts -A", Says(&["NAMESPACE", "$NS-2", "$NS-3"])),
        Row::new("create configmap one -n $NS-2", Succeeds),
        Row::new("create configmap two -n $NS-3", Succeeds),
        Row::new("label configmap one deletetest=true -n $NS-2", Succeeds),
        Row::new("label configmap two deletetest=true -n $NS-3", Succeeds),
        Row::new(
            "delete configmap --dry-run=client -l deletetest=true --all-namespaces",
            Says(&["configmap \"one\" deleted", "(dry run)"]),
        ),
        Row::new(
            "delete configmap --dry-run=server -l deletetest=true --all-namespaces",
            Says(&["configmap \"two\" deleted", "(server dry run)"]),
        ),
        Row::new("get configmaps -l deletetest -A -o jsonpath={.items[*].metadata.name}", Prints("one two")),
        Row::with(
            "delete configmap -l deletetest=true -A --interactive",
            "n\n",
            Says(&["configmap/one", "configmap/two", "Do you want to continue?"]),
        ),
        Row::new("get configmaps -l deletetest -A -o jsonpath={.items[*].metadata.name}", Prints("one two")),
        Row::with(
            "delete configmap -l deletetest=true -A --interactive",
            "y\n",
            Says(&["configmap \"one\" deleted", "configmap \"two\" deleted"]),
        ),
        Row::new("get configmaps -l deletetest -A -o name", Prints("")),
        Row::new("create quota small -n $NS-2 --dry-run=client", Succeeds),
        Row::new("create quota small -n $NS-2 --dry-run=server", Succeeds),
        Row::new("get quota -n $NS-2 -o name", Prints("")),
        Row::new("create quota small -n $NS-2", Succeeds),
        Row::new("describe --chunk-size=1 --v=6 resourcequotas -n $NS-2", Says(&["/resourcequotas?limit=1", "small"])),
        Row::new(
            "delete namespace $NS-2 $NS-3 --timeout=60s",
            Says(&["namespace \"$NS-2\" deleted", "namespace \"$NS-3\" deleted"]),
        ),
    ],
};
