//! Pods: made, found, described, marked and deleted.

use super::prelude::*;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"name":"web"}},
    "spec":{"containers":[{"name":"main","image":"registry.example/web:1",
        "resources":{"limits":{"cpu":"1","memory":"512Mi"}}}]}}"#;
const PRECISE: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"precise"},
    "spec":{"activeDeadlineSeconds":2147483647,"terminationGracePeriodSeconds":9007199254740993,
        "containers":[{"name":"main","image":"registry.example/web:1"}]}}"#;
const TWO: &str = "apiVersion: v1
kind: Pod
metadata: {name: first}
spec: {containers: [{name: main, image: registry.example/web:1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: second}
spec: {containers: [{name: main, image: registry.example/web:1}]}
";
const SERVICE_AND_CONTROLLER: &str = r#"{"apiVersion":"v1","kind":"List","items":[
    {"apiVersion":"v1","kind":"Service","metadata":{"name":"plain"},"spec":{"ports":[{"port":80}],"selector":{"app":"plain"}}},
    {"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"plain"},"spec":{"replicas":1,"selector":{"app":"plain"},
        "template":{"metadata":{"labels":{"app":"plain"}},"spec":{"containers":[{"name":"main","image":"registry.example/web:1"}]}}}}]}"#;

const NAMES: &str = "get pods -o go-template={{range.items}}{{.metadata.name}}:{{end}}";
const LABELS: &str = "get pod web -o go-template={{range.metadata.labels}}{{.}}:{{end}}";
const MANAGERS: &str = "get pod web --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}";

pub(crate) const MAKING: Section = Section {
    name: "pods",
    files: &[("pod.json", POD), ("two.yaml", TWO)],
    rows: &[
        Row::new(NAMES, Prints("")),
        Row::new("create -f $DIR/pod.json", Prints("pod/web created")),
        Row::new(NAMES, Prints("web:")),
        Row::new("get pod web -o go-template={{.metadata.name}}", Prints("web")),
        Row::new("get pod/web -o go-template={{.metadata.name}}", Prints("web")),
        Row::new("get pods/web -o jsonpath={.metadata.name}", Prints("web")),
        Row::new("get pods -o jsonpath={.items[*].metadata.name}", Prints("web")),
        Row::new(
            "get --show-managed-fields -f $DIR/pod.json -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-create"]),
        ),
        Row::new("describe pods web", Says(&["Name:", "Image:", "Node:", "Labels:", "Status:", "Events:"])),
        Row::new("describe --show-events=true pods web", Says(&["Events:"])),
        Row::new("describe --show-events=false pods web", Omits(&["Events:"])),
        Row::new("describe pods", Says(&["Name:", "Image:", "Node:", "Labels:", "Status:", "Events:"])),
        Row::new("describe --show-events=false pods", Omits(&["Events:"])),
        Row::new("describe --chunk-size=1 --v=6 pods", Says(&["/pods?limit=1", "/events?fieldSelector=", "limit=1"])),
        Row::new("get pod web -o yaml", Keeps("POD")),
        Row::new("delete pod web --grace-period=0 --force", Says(&["pod \"web\" force deleted"])),
        Row::new(NAMES, Prints("")),
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("delete pod web --now", Says(&["pod \"web\" deleted"])),
        Row::new(NAMES, Prints("")),
        Row::new("create -f $DIR/pod.json", Succeeds),
        // Nobody has bound it: without force, too, it is gone at once.
        Row::new("delete pod web --grace-period=0", Says(&["pod \"web\" deleted"])),
        Row::new(NAMES, Prints("")),
        // What the server wrote can be sent back to it.
        Row::with("create -f -", "$POD", Prints("pod/web created")),
        Row::new(NAMES, Prints("web:")),
        Row::new("delete -f $DIR/pod.json --grace-period=0 --force", Succeeds),
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("get pods -l 'name in (web)' -o name", Prints("pod/web")),
        Row::new("get pods -l 'name notin (web)' -o name", Prints("")),
        Row::new("get pods --field-selector metadata.name=web -o name", Prints("pod/web")),
        Row::new("get pods --field-selector status.phase=Pending -o name", Prints("pod/web")),
        Row::new("get pods --field-selector status.phase!=Pending -o name", Prints("")),
        Row::new("delete pods", Fails(&["resource(s) were provided, but no name was specified"])),
        Row::new("delete --all pods -l 'name in (web)'", Fails(&["selector"])),
        Row::new(NAMES, Prints("web:")),
        Row::new("delete pods -l 'name in (web)' --grace-period=0 --force", Succeeds),
        Row::new(NAMES, Prints("")),
        Row::new("create -f $DIR/two.yaml", Says(&["pod/first created", "pod/second created"])),
        Row::new(NAMES, Prints("first:second:")),
        Row::new("delete pods first second --grace-period=0 --force", Succeeds),
        Row::new("create -f $DIR/two.yaml", Succeeds),
        Row::new("delete -f $DIR/two.yaml", Succeeds),
        Row::new(NAMES, Prints("")),
        Row::new("create -f $DIR/two.yaml", Succeeds),
        Row::new("delete --all pods --grace-period=0 --force", Succeeds),
        Row::new(NAMES, Prints("")),
        Row::new("create --dry-run=client -f $DIR/pod.json", Prints("pod/web created (dry run)")),
        Row::new("create --dry-run=server -f $DIR/pod.json", Prints("pod/web created (server dry run)")),
        Row::new(NAMES, Prints("")),
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("get pod web --request-timeout=1", Shows(&["web"])),
        Row::new("get pod web --request-timeout=1p", Fails(&["Invalid timeout value"])),
        Row::new(
            "get pod web --request-timeout=1 --watch --v=5",
            Grumbles(&["Unable to decode an event from the watch stream"]),
        ),
        Row::new("delete pod web", Succeeds),
    ],
};

pub(crate) const MARKING: Section = Section {
    name: "marks",
    files: &[("pod.json", POD), ("precise.json", PRECISE)],
    rows: &[
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("label pods web new=other --dry-run=client", Says(&["pod/web labeled (dry run)"])),
        Row::new("label pods web new=other --dry-run=server", Says(&["pod/web labeled (server dry run)"])),
        Row::new(LABELS, Prints("web:")),
        Row::new("label pods web new=other", Prints("pod/web labeled")),
        Row::new(LABELS, Prints("web:other:")),
        Row::new("label pods web empty=", Succeeds),
        Row::new("get pod web -o go-template={{.metadata.labels.empty}}", Prints("")),
        Row::new("get pod web -o go-template={{.metadata.annotations.empty}}", Prints("<no value>")),
        Row::new("annotate pods web empty= --dry-run=client", Succeeds),
        Row::new("annotate pods web empty= --dry-run=server", Succeeds),
        Row::new("get pod web -o go-template={{.metadata.annotations.empty}}", Prints("<no value>")),
        Row::new("annotate pods web empty=", Prints("pod/web annotated")),
        Row::new("get pod web -o go-template={{.metadata.annotations.empty}}", Prints("")),
        Row::new(MANAGERS, Says(&["kubectl-annotate", "kubectl-label", "kubectl-create"])),
        Row::new("label pods web recorded=true --record=true", Succeeds),
        Row::new("get pod web -o go-template={{range.metadata.annotations}}{{.}}:{{end}}", Says(&["--record=true"])),
        Row::new("label pods web unrecorded=true --record=false", Succeeds),
        Row::new("get pod web -o go-template={{range.metadata.annotations}}{{.}}:{{end}}", Omits(&["unrecorded"])),
        Row::new("label pods web again=true --record=true", Succeeds),
        Row::new("get pod web -o go-template={{range.metadata.annotations}}{{.}}:{{end}}", Says(&["again=true"])),
        Row::new("label pods web name=better", Fails(&["already has a value (web), and --overwrite is false"])),
        Row::new("get pod web -o go-template={{.metadata.labels.name}}", Prints("web")),
        Row::new("label --local --overwrite -f $DIR/pod.json name=local -o yaml", Says(&["name: local"])),
        Row::new("get pod web -o go-template={{.metadata.labels.name}}", Prints("web")),
        Row::new("label --overwrite pods --all name=better", Succeeds),
        Row::new("get pod web -o go-template={{.metadata.labels.name}}", Prints("better")),
        Row::new("annotate -f $DIR/pod.json note=live", Succeeds),
        Row::new("annotate --local -f $DIR/pod.json note=local -o yaml", Says(&["note: local"])),
        Row::new("get pod web -o go-template={{.metadata.annotations.note}}", Prints("live")),
        Row::new("delete pods -l new=other --grace-period=0 --force", Succeeds),
        // Numbers too large for a float keep every digit, whatever is changed beside them.
        Row::new("create -f $DIR/precise.json", Succeeds),
        Row::new("patch pod precise -p {\"metadata\":{\"annotations\":{\"patched\":\"yes\"}}}", Succeeds),
        Row::new("label pods precise labelled=yes", Succeeds),
        Row::new("annotate pods precise annotated=yes", Succeeds),
        Row::new(
            "get pod precise -o jsonpath={.metadata.annotations.patched}{.metadata.labels.labelled}",
            Prints("yesyes"),
        ),
        Row::new("get pod precise -o json", Says(&["2147483647", "9007199254740993"])),
        Row::new("delete pod precise --grace-period=0 --force", Succeeds),
    ],
};

/// What `--edit` and an editor make of objects before they are sent.
pub(crate) const EDITING: Section = Section {
    name: "edits",
    files: &[("pod.json", POD), ("list.json", SERVICE_AND_CONTROLLER)],
    rows: &[
        Row::new(
            "create --edit -f $DIR/list.json",
            Says(&["service/changed created", "replicationcontroller/changed created"]),
        )
        .editing("sed -i s/plain/changed/g"),
        Row::new("get service,rc -o name", Prints("service/changed\nreplicationcontroller/changed")),
        Row::new(
            "get service/changed --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-create"]),
        ),
        Row::new(
            "get rc/changed --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-create"]),
        ),
        Row::new("delete service/changed rc/changed", Succeeds),
        Row::new("create --edit -f $DIR/pod.json -o json", Grumbles(&["Edit cancelled"])).editing("cat"),
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("edit pods/web --output-patch=true", Says(&["Patch:", "pod/web edited"]))
            .editing("sed -i s#example/web:1#example/web:2#"),
        Row::new("get pod web -o jsonpath={.spec.containers[0].image}", Prints("registry.example/web:2")),
        Row::new(MANAGERS, Says(&["kubectl-edit"])),
        Row::new("edit pod/web", Grumbles(&["Edit cancelled", "name: web"])).editing("cat"),
        Row::new("edit namespaces", Grumbles(&["Edit cancelled", "kind: List"])).editing("cat"),
        Row::new("edit pod web --save-config", Succeeds).editing("sed -i s#example/web:2#example/web:3#"),
        Row::new("get pod web -o yaml", Says(&["kubectl.kubernetes.io/last-applied-configuration"])),
        Row::new(
            "edit pod web",
            Grumbles(&["pods \"web\" is invalid", "Edit cancelled, no valid changes were saved."]),
        )
        .editing("sed -i 's/restartPolicy: Always/restartPolicy: Never/'"),
        Row::new("delete pod web", Succeeds),
    ],
};

/// What `describe` finds out beside the pod itself.
pub(crate) const DESCRIBING: Section = Section {
    name: "descriptions",
    files: &[(
        "env.json",
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"env"},"spec":{"restartPolicy":"Never","containers":[
            {"name":"main","image":"registry.example/web:1","env":[
                {"name":"ONE","valueFrom":{"secretKeyRef":{"name":"hidden","key":"key-1"}}},
                {"name":"TWO","valueFrom":{"configMapKeyRef":{"name":"open","key":"key-2"}}},
                {"name":"THREE","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}"#,
    )],
    rows: &[
        Row::new("create secret generic hidden --dry-run=client --from-literal=key-1=value1 --type=own", Succeeds),
        Row::new("create secret generic hidden --dry-run=server --from-literal=key-1=value1 --type=own", Succeeds),
        Row::new("get secrets -o name", Prints("")),
        Row::new("create secret generic hidden --from-literal=key-1=value1 --type=own", Succeeds),
        Row::new("get secret/hidden -o go-template={{.type}}", Prints("own")),
        Row::new("create configmap open --from-literal=key-2=value2", Succeeds),
        Row::new("create pdb two --dry-run=client --selector=app=rails --min-available=2", Succeeds),
        Row::new("create pdb two --dry-run=server --selector=app=rails --min-available=2", Succeeds),
        Row::new("get pdb -o name", Prints("")),
        Row::new("create pdb two --selector=app=rails --min-available=2", Succeeds),
        Row::new("get pdb two -o go-template={{.spec.minAvailable}}", Prints("2")),
        Row::new("create pdb half --selector=app=rails --min-available=50%", Succeeds),
        Row::new("get pdb half -o go-template={{.spec.minAvailable}}", Prints("50%")),
        Row::new("create pdb three --selector=app=rails --max-unavailable=2", Succeeds),
        Row::new("get pdb three -o go-template={{.spec.maxUnavailable}}", Prints("2")),
        Row::new("create pdb four --selector=app=rails --max-unavailable=50%", Succeeds),
        Row::new("get pdb four -o go-template={{.spec.maxUnavailable}}", Prints("50%")),
        Row::new(
            "create pdb five --selector=app=rails --min-available=2 --max-unavailable=3",
            Fails(&["cannot be both specified"]),
        ),
        Row::new(
            "describe --chunk-size=1 --v=6 pdb",
            Says(&["/poddisruptionbudgets?limit=1", "Max unavailable:", "Min available:"]),
        ),
        Row::new("create -f $DIR/env.json", Succeeds),
        Row::new(
            "describe pods env",
            Says(&[
                "ONE:",
                "<set to the key 'key-1' in secret 'hidden'>",
                "TWO:",
                "<set to the key 'key-2' of config map 'open'>",
                "THREE:",
                "env (v1:metadata.name)",
            ]),
        ),
        Row::new("delete pod/env secret/hidden configmap/open pdb/two pdb/half pdb/three pdb/four", Succeeds),
        Row::new("create priorityclass judged --dry-run=client", Succeeds),
        Row::new("create priorityclass judged --dry-run=server", Succeeds),
        Row::new("get priorityclass judged", Fails(&["priorityclasses.scheduling.k8s.io \"judged\" not found"])),
        Row::new("create priorityclass judged", Prints("priorityclass.scheduling.k8s.io/judged created")),
        Row::new("describe --chunk-size=1 --v=6 priorityclasses", Says(&["/priorityclasses?limit=1", "judged"])),
        Row::new("delete priorityclass judged", Succeeds),
    ],
};
