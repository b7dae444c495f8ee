//! Several objects in one file or directory, some of which cannot be.

use super::prelude::*;

const NAMESPACE_LAST: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, namespace: $NS-late}
spec: {containers: [{name: main, image: registry.example/web:1}]}
---
{apiVersion: v1, kind: Namespace, metadata: {name: $NS-late}}
";
const BOGUS: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: good}}
---
{apiVersion: example.com/v1, kind: Bogus, metadata: {name: bad}}
";
const UPPER: &str = "---\n{apiVersion: v1, kind: Pod, metadata: {name: pod-a}, spec: {containers: [{name: main, image: registry.example/web:1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: POD-B}, spec: {containers: [{name: main, image: registry.example/web:1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pod-c}, spec: {containers: [{name: main, image: registry.example/web:1}]}}
";
const KIND_AND_OBJECT: &str = "apiVersion: mixed.example.com/v1
kind: Widget
metadata: {name: first}
spec: {image: web}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.mixed.example.com}
spec:
  group: mixed.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {image: {type: string}}}}}}
";
const INVALID: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: strict}
spec:
  replicas: 1
  unknownField: true
  selector: {matchLabels: {app: strict}}
  template:
    metadata: {labels: {app: strict}}
    spec: {containers: [{name: main, image: registry.example/web:1, imagePullPolicies: Always}]}
";

pub(crate) const PARTIAL: Section = Section {
    name: "partial",
    files: &[
        ("late.yaml", NAMESPACE_LAST),
        ("bogus.yaml", BOGUS),
        ("upper.yaml", UPPER),
        ("kind.yaml", KIND_AND_OBJECT),
        ("invalid.yaml", INVALID),
    ],
    rows: &[
        Row::new(
            "apply -f $DIR/late.yaml",
            Fails(&["namespaces \"$NS-late\" not found", "namespace/$NS-late created"]),
        ),
        Row::new("get pods web -n $NS-late", Fails(&["pods \"web\" not found"])),
        Row::new("apply -f $DIR/late.yaml", Grumbles(&["pod/web created", "namespace/$NS-late unchanged"])),
        Row::new("delete -f $DIR/late.yaml", Succeeds),
        Row::new(
            "apply -f $DIR/bogus.yaml",
            Fails(&["no matches for kind \"Bogus\" in version \"example.com/v1\"", "configmap/good created"]),
        ),
        Row::new("delete configmap good", Succeeds),
        Row::new(
            "apply -f $DIR/upper.yaml",
            Fails(&["The Pod \"POD-B\" is invalid", "pod/pod-a created", "pod/pod-c created"]),
        ),
        Row::new("delete pod pod-a pod-c", Succeeds),
        Row::new(
            "apply -f $DIR/kind.yaml",
            Fails(&[
                "no matches for kind \"Widget\" in version \"mixed.example.com/v1\"",
                "widgets.mixed.example.com created",
            ]),
        ),
        Row::new("wait --for=condition=Established crd/widgets.mixed.example.com --timeout=20s", Succeeds),
        Row::new("get widgets first", Fails(&["widgets.mixed.example.com \"first\" not found"])),
        Row::new(
            "apply -f $DIR/kind.yaml",
            Says(&["widget.mixed.example.com/first created", "widgets.mixed.example.com unchanged"]),
        ),
        Row::new("get widget first -o jsonpath={.spec.image}", Prints("web")),
        Row::new("delete -f $DIR/kind.yaml", Succeeds),
        // What the server does not know.
        Row::new(
            "create -f $DIR/invalid.yaml",
            Fails(&[
                "unknown field \"spec.unknownField\"",
                "unknown field \"spec.template.spec.containers[0].imagePullPolicies\"",
            ]),
        ),
        Row::new("create -f $DIR/invalid.yaml --validate", Fails(&["unknown field \"spec.unknownField\""])),
        Row::new("create -f $DIR/invalid.yaml --validate=true", Fails(&["unknown field \"spec.unknownField\""])),
        Row::new(
            "create -f $DIR/invalid.yaml --validate=strict",
            Fails(&["strict decoding error", "unknown field \"spec.unknownField\""]),
        ),
        Row::new("create -f $DIR/invalid.yaml --validate=foo", Fails(&["invalid - validate option \"foo\""])),
        Row::new("create -f $DIR/invalid.yaml --validate=false", Prints("deployment.apps/strict created")),
        Row::new("delete deployment strict", Succeeds),
        Row::new(
            "create -f $DIR/invalid.yaml --validate=warn",
            Says(&[
                "deployment.apps/strict created",
                "Warning: unknown field \"spec.unknownField\"",
                "imagePullPolicies\"",
            ]),
        ),
        Row::new("delete deployment strict", Succeeds),
        Row::new("create -f $DIR/invalid.yaml --validate=ignore", Prints("deployment.apps/strict created")),
        Row::new("delete deployment strict", Succeeds),
        Row::new("create", Fails(&["must specify"])),
    ],
};

const POD: &str = "---\n{apiVersion: v1, kind: Pod, metadata: {name: box0, labels: {app: box0}}, spec: {containers: [{name: main, image: registry.example/box:1}]}}";
const POD_1: &str = "---\n{apiVersion: v1, kind: Pod, metadata: {name: box1, labels: {app: box1}}, spec: {containers: [{name: main, image: registry.example/box:1}]}}";
const RC: &str = "---\n{apiVersion: v1, kind: ReplicationController, metadata: {name: rc0}, spec: {replicas: 1, selector: {app: rc0}, template: {metadata: {labels: {app: rc0}}, spec: {containers: [{name: main, image: registry.example/box:1}]}}}}";
/// Its `kind` is misspelt.
const BROKEN: &str = "---\n{apiVersion: v1, ind: Pod, metadata: {name: box2}, spec: {containers: [{name: main, image: registry.example/box:1}]}}";

pub(crate) const RECURSIVE: Section = Section {
    name: "recursive",
    files: &[
        ("pods/0.yaml", POD),
        ("pods/deep/1.yaml", POD_1),
        ("pods/deep/2.yaml", BROKEN),
        ("rcs/0.yaml", RC),
        ("rcs/2.yaml", BROKEN),
    ],
    rows: &[
        Row::new("create -f $DIR/pods --recursive", Fails(&["pod/box0 created", "pod/box1 created", "kind not set"])),
        Row::new("get pods -o jsonpath={.items[*].metadata.name}", Prints("box0 box1")),
        Row::new("edit -f $DIR/pods --recursive", Fails(&["Object 'Kind' is missing"]))
            .editing("sed -i s/box:1/box:2/"),
        Row::new(
            "get pods -o jsonpath={.items[*].spec.containers[0].image}",
            Prints("registry.example/box:1 registry.example/box:1"),
        ),
        Row::new(
            "replace -f $DIR/pods --recursive",
            Fails(&["pod/box0 replaced", "pod/box1 replaced", "kind not set"]),
        ),
        Row::new("describe -f $DIR/pods --recursive", Fails(&["app=box0", "app=box1", "Object 'Kind' is missing"])),
        Row::new("annotate -f $DIR/pods note=deep --recursive", Fails(&["Object 'Kind' is missing"])),
        Row::new("get pods -o jsonpath={.items[*].metadata.annotations.note}", Prints("deep deep")),
        Row::new(
            "apply -f $DIR/pods --recursive",
            Fails(&["pod/box0 configured", "pod/box1 configured", "kind not set"]),
        ),
        Row::new(
            "get -f $DIR/pods --recursive -o jsonpath={.items[*].metadata.name}",
            Fails(&["box0 box1", "Object 'Kind' is missing"]),
        ),
        Row::new("label -f $DIR/pods mine=value --recursive", Fails(&["pod/box0 labeled", "pod/box1 labeled"])),
        Row::new(
            "patch -f $DIR/pods -p {\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/box:3\"}]}} --recursive",
            Fails(&["pod/box0 patched", "pod/box1 patched"]),
        ),
        Row::new(
            "get pods -o jsonpath={.items[*].spec.containers[0].image}",
            Prints("registry.example/box:3 registry.example/box:3"),
        ),
        Row::new(
            "delete -f $DIR/pods --recursive --grace-period=0 --force",
            Fails(&["pod \"box0\" force deleted", "pod \"box1\" force deleted"]),
        ),
        Row::new("get pods -o name", Prints("")),
        Row::new("create -f $DIR/rcs --recursive", Fails(&["replicationcontroller/rc0 created"])),
        Row::new(
            "autoscale --min=1 --max=2 -f $DIR/rcs --recursive",
            Fails(&["horizontalpodautoscaler.autoscaling/rc0 autoscaled", "Object 'Kind' is missing"]),
        ),
        Row::new("delete hpa rc0", Succeeds),
        Row::new(
            "expose -f $DIR/rcs --recursive --port=80",
            Fails(&["service/rc0 exposed", "Object 'Kind' is missing"]),
        ),
        Row::new(
            "scale --current-replicas=1 --replicas=2 -f $DIR/rcs --recursive",
            Fails(&["replicationcontroller/rc0 scaled"]),
        ),
        Row::new("get rc rc0 -o jsonpath={.spec.replicas}", Prints("2")),
        Row::new(
            "rollout undo -f $DIR/rcs --recursive --to-revision=1",
            Fails(&["no rollbacker has been implemented for \"ReplicationController\""]),
        ),
        Row::new(
            "rollout pause -f $DIR/rcs --recursive",
            Fails(&["replicationcontrollers \"rc0\" pausing is not supported"]),
        ),
        Row::new(
            "rollout resume -f $DIR/rcs --recursive",
            Fails(&["replicationcontrollers \"rc0\" resuming is not supported"]),
        ),
        Row::new(
            "delete -f $DIR/rcs --recursive --grace-period=0 --force",
            Fails(&["replicationcontroller \"rc0\" force deleted"]),
        ),
        Row::new("delete service rc0", Succeeds),
    ],
};

const SEVERAL: &str = "apiVersion: v1
kind: Service
metadata: {name: mock, labels: {app: mock, status: made}}
spec: {ports: [{protocol: TCP, port: 99}], selector: {app: mock}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: mock, labels: {app: mock, status: made}}
spec:
  replicas: 1
  selector: {app: mock}
  template:
    metadata: {labels: {app: mock}}
    spec: {containers: [{name: main, image: registry.example/pause:1, ports: [{containerPort: 9949}]}]}
";
const SEVERAL_CHANGED: &str = "apiVersion: v1
kind: Service
metadata: {name: mock, labels: {app: mock, status: replaced}}
spec: {ports: [{protocol: TCP, port: 99}], selector: {app: mock}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: mock, labels: {app: mock, status: replaced}}
spec:
  replicas: 1
  selector: {app: mock}
  template:
    metadata: {labels: {app: mock}}
    spec: {containers: [{name: main, image: registry.example/pause:1, ports: [{containerPort: 9949}]}]}
";
/// Lists of one kind, as the server would give them.
const LIST: &str = r#"{"apiVersion":"v1","kind":"ServiceList","items":[
    {"apiVersion":"v1","kind":"Service","metadata":{"name":"one"},"spec":{"ports":[{"port":99}]}},
    {"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"ports":[{"port":99}]}}]}"#;
const CONCATENATED: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"}}"#;
const STATUSES: &str = "get service/mock rc/mock -o jsonpath={.items[*].metadata.labels.status}";

pub(crate) const SEVERAL_AT_ONCE: Section = Section {
    name: "several",
    files: &[
        ("mock.yaml", SEVERAL),
        ("changed.yaml", SEVERAL_CHANGED),
        ("list.json", LIST),
        ("joined.json", CONCATENATED),
    ],
    rows: &[
        Row::new("create -f $DIR/mock.yaml", Prints("service/mock created\nreplicationcontroller/mock created")),
        Row::new(
            "get -f $DIR/mock.yaml",
            Says(&["service/mock", "replicationcontroller/mock", "DESIRED", "CLUSTER-IP"]),
        ),
        Row::new(
            "get -f $DIR/mock.yaml --watch",
            Fails(&["watch is only supported on individual resources and resource collections"]),
        ),
        Row::new("describe -f $DIR/mock.yaml", Says(&["Session Affinity:", "Pods Status:"])),
        Row::new(
            "replace -f $DIR/changed.yaml --force --cascade=background",
            Says(&["service/mock replaced", "replicationcontroller/mock replaced"]),
        ),
        Row::new(STATUSES, Prints("replaced replaced")),
        Row::new("edit -f $DIR/mock.yaml", Says(&["service/mock edited", "replicationcontroller/mock edited"]))
            .editing("sed -i 's/status: replaced/status: edited/'"),
        Row::new(STATUSES, Prints("edited edited")),
        Row::new("label -f $DIR/mock.yaml labeled=true --overwrite", Succeeds),
        Row::new("annotate -f $DIR/mock.yaml annotated=true --overwrite", Succeeds),
        Row::new(
            "get service/mock rc/mock -o jsonpath={.items[*].metadata.labels.labeled}{.items[*].metadata.annotations.annotated}",
            Prints("true truetrue true"),
        ),
        Row::new("get all -l app=mock -o name", Says(&["service/mock", "replicationcontroller/mock", "pod/mock-"])),
        Row::new("delete all -l app=mock", Succeeds),
        Row::new("get all -l app=mock -o name", Comes("")),
        Row::new("create -f $DIR/list.json", Prints("service/one created\nservice/two created")),
        Row::new("delete -f $DIR/list.json", Succeeds),
        Row::new("create -f $DIR/joined.json", Prints("configmap/one created\nconfigmap/two created")),
        Row::new("delete -f $DIR/joined.json", Succeeds),
        Row::new(
            "get nodes/127.0.0.1 namespace/default -o jsonpath={.items[*].metadata.name}",
            Prints("127.0.0.1 default"),
        ),
    ],
};
