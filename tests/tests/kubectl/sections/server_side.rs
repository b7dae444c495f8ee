//! `apply` on the server's side, from there to the client's and back, and `diff`.

use super::prelude::*;

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {name: before}}
spec: {containers: [{name: main, image: registry.example/web:1}]}
";
const CHANGED: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {name: after}}
spec: {containers: [{name: main, image: registry.example/web:1}]}
";
const STATUS: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
status: {conditions: [{type: example.io/Foo, status: 'True', lastTransitionTime: 2021-01-01T00:00:00Z}]}
";
const MAP_1: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: map}, data: {key: value, legacy: unused}}";
const MAP_2: &str =
    "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: map}, data: {key: value, ssaKey: ssaValue}}";
const MAP_3: &str =
    "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: map}, data: {key: value, newKey: newValue}}";
const MAP_4: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: map, annotations: {newAnnotation: newValue}}, data: {key: value, newKey: newValue}}";
const OWN_1: &str =
    "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {key: value1, legacy: value2}}";
const OWN_2: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: own}, data: {key: value2}}";

const LABEL: &str = "get pod web -o jsonpath={.metadata.labels.name}";
const DATA: &str = "get configmap map -o jsonpath={.data}";

pub(crate) const SERVER_SIDE: Section = Section {
    name: "serverside",
    files: &[
        ("pod.yaml", POD),
        ("changed.yaml", CHANGED),
        ("status.yaml", STATUS),
        ("map-1.yaml", MAP_1),
        ("map-2.yaml", MAP_2),
        ("map-3.yaml", MAP_3),
        ("map-4.yaml", MAP_4),
        ("own-1.yaml", OWN_1),
        ("own-2.yaml", OWN_2),
    ],
    rows: &[
        Row::new("apply --server-side -f $DIR/pod.yaml", Prints("pod/web serverside-applied")),
        Row::new(LABEL, Prints("before")),
        Row::new(
            "get --show-managed-fields -f $DIR/pod.yaml -o jsonpath={.metadata.managedFields[*].manager}",
            Prints("kubectl"),
        ),
        Row::new("apply --server-side --field-manager=mine --force-conflicts -f $DIR/pod.yaml", Succeeds),
        Row::new(
            "get --show-managed-fields -f $DIR/pod.yaml -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["mine", "kubectl"]),
        ),
        Row::new("apply --server-side --subresource=status --field-manager=mine -f $DIR/status.yaml", Succeeds)
            .since("1.34"),
        Row::new("get pod web -o jsonpath={.status.conditions[*].type}", Says(&["example.io/Foo"])).since("1.34"),
        Row::new("delete pods web", Succeeds),
        Row::new(
            "apply --server-side --dry-run=server -f $DIR/pod.yaml",
            Prints("pod/web serverside-applied (server dry run)"),
        ),
        Row::new("get pods -o name", Prints("")),
        Row::new("apply --server-side -f $DIR/pod.yaml", Succeeds),
        Row::new("get pod web -o jsonpath={.metadata.resourceVersion}", Keeps("VERSION")),
        Row::new(
            "apply --server-side --dry-run=server -f $DIR/changed.yaml",
            Prints("pod/web serverside-applied (server dry run)"),
        ),
        Row::new(LABEL, Prints("before")),
        Row::new("get pod web -o jsonpath={.metadata.resourceVersion}", Prints("$VERSION")),
        Row::new("delete pods web", Succeeds),
        // From the client's side to the server's, and back.
        Row::new("apply -f $DIR/pod.yaml", Succeeds),
        Row::new(
            "apply --server-side --field-manager=another -f $DIR/changed.yaml",
            Fails(&["conflict with \"kubectl-client-side-apply\"", ".metadata.labels.name"]),
        ),
        Row::new("apply --server-side -f $DIR/changed.yaml", Prints("pod/web serverside-applied")),
        Row::new("apply view-last-applied pod/web -o json", Says(&["\"name\": \"after\""])),
        Row::new("apply --server-side -f $DIR/pod.yaml", Succeeds),
        Row::new("apply view-last-applied pod/web -o json", Says(&["\"name\": \"before\""])),
        Row::new("apply -f $DIR/changed.yaml", Prints("pod/web configured")),
        Row::new(LABEL, Prints("after")),
        Row::new("delete pods web", Succeeds),
        Row::new("apply --server-side=false -f $DIR/map-1.yaml", Prints("configmap/map created")),
        Row::new("apply --server-side -f $DIR/map-1.yaml", Prints("configmap/map serverside-applied")),
        Row::new("apply --server-side -f $DIR/map-2.yaml", Succeeds),
        Row::new(DATA, Prints("{\"key\":\"value\",\"ssaKey\":\"ssaValue\"}")),
        Row::new("apply --server-side=false -f $DIR/map-3.yaml", Prints("configmap/map configured")),
        Row::new(DATA, Prints("{\"key\":\"value\",\"newKey\":\"newValue\"}")),
        Row::new("apply --server-side -f $DIR/map-2.yaml", Succeeds),
        Row::new(DATA, Prints("{\"key\":\"value\",\"ssaKey\":\"ssaValue\"}")),
        Row::new(
            "diff --server-side -f $DIR/map-4.yaml",
            Ends(1, &["+  newKey: newValue", "+    newAnnotation: newValue", "-  ssaKey: ssaValue"]),
        ),
        Row::new("delete configmap map", Succeeds),
        // With a manager's name of one's own.
        Row::new("apply --server-side=false --field-manager=mine -f $DIR/own-1.yaml", Succeeds),
        Row::new("get configmap own -o yaml", Says(&["last-applied-configuration"])),
        Row::new("apply --server-side=true --field-manager=mine -f $DIR/own-1.yaml", Succeeds),
        Row::new("get configmap own -o yaml", Omits(&["last-applied-configuration"])),
        Row::new("apply --server-side=true --field-manager=mine -f $DIR/own-2.yaml", Succeeds),
        Row::new("get configmap own -o jsonpath={.data}", Prints("{\"key\":\"value2\"}")),
        Row::new("delete configmap own", Succeeds),
    ],
};

const OTHER_IMAGE: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {name: before}}
spec: {containers: [{name: main, image: registry.example/web:2}]}
";
const INVALID: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {restartPolicy: Sometimes, containers: [{name: main, image: registry.example/web:1}]}
";
const ALIKE: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: alike}}
---
{apiVersion: v1, kind: Secret, metadata: {name: alike}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: alike}
spec:
  selector: {matchLabels: {app: alike}}
  template:
    metadata: {labels: {app: alike}}
    spec: {containers: [{name: main, image: registry.example/web:1}]}
";
const VERSION: &str = "get pod web -o jsonpath={.metadata.resourceVersion}";

pub(crate) const DIFFERENCES: Section = Section {
    name: "differences",
    files: &[("pod.yaml", POD), ("other.yaml", OTHER_IMAGE), ("invalid.yaml", INVALID), ("alike.yaml", ALIKE)],
    rows: &[
        Row::new("diff -f $DIR/pod.yaml", Ends(1, &["+  name: web"])),
        Row::new("get pods -o name", Prints("")),
        Row::new("apply -f $DIR/pod.yaml", Succeeds),
        Row::new(VERSION, Keeps("VERSION")),
        Row::new("diff -f $DIR/pod.yaml", Prints("")),
        Row::new(VERSION, Prints("$VERSION")),
        Row::new("diff -f $DIR/other.yaml", Ends(1, &["+  - image: registry.example/web:2"])),
        Row::new(
            "diff --server-side --force-conflicts -f $DIR/other.yaml",
            Ends(1, &["+  - image: registry.example/web:2"]),
        ),
        Row::new(VERSION, Prints("$VERSION")),
        Row::new("diff -f $DIR/invalid.yaml", Ends(2, &["spec.restartPolicy: Unsupported value: \"Sometimes\""])),
        Row::new("delete -f $DIR/pod.yaml", Succeeds),
        Row::new("diff --server-side -f $DIR/pod.yaml", Ends(1, &["+  name: web"])),
        Row::new("get pods -o name", Prints("")),
        Row::new("apply --server-side -f $DIR/pod.yaml", Succeeds),
        Row::new("diff --server-side -f $DIR/pod.yaml", Prints("")),
        Row::new("diff --server-side -f $DIR/other.yaml", Ends(1, &["+  - image: registry.example/web:2"])),
        Row::new("delete -f $DIR/pod.yaml", Succeeds),
        // Objects of one name are told apart by kind.
        Row::new("diff -f $DIR/alike.yaml", Ends(1, &["v1.ConfigMap.", "v1.Secret.", "apps.v1.Deployment.", ".alike"])),
    ],
};
