//! ReplicationControllers and ReplicaSets: scaled, exposed, set, autoscaled, orphaned.

use super::prelude::*;

const CONTROLLER: &str = "apiVersion: v1
kind: ReplicationController
metadata: {name: front, labels: {name: front}}
spec:
  replicas: 3
  selector: {name: front}
  template:
    metadata: {labels: {name: front}}
    spec: {containers: [{name: main, image: registry.example/web:1, env: [{name: HOSTS_FROM, value: dns}], ports: [{containerPort: 80}]}]}
";
const OTHERS: &str = "apiVersion: v1
kind: ReplicationController
metadata: {name: writer}
spec:
  replicas: 1
  selector: {role: writer}
  template:
    metadata: {labels: {role: writer}}
    spec: {containers: [{name: main, image: registry.example/store:1}]}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: reader}
spec:
  replicas: 2
  selector: {role: reader}
  template:
    metadata: {labels: {role: reader}}
    spec: {containers: [{name: main, image: registry.example/store:1}]}
";
const REPLICA_SET: &str = "apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: front, labels: {app: front}}
spec:
  replicas: 3
  selector: {matchLabels: {tier: front}}
  template:
    metadata: {labels: {tier: front}}
    spec: {containers: [{name: main, image: registry.example/web:1, ports: [{containerPort: 80}]}]}
";
const SECOND_SET: &str = "apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: reader}
spec:
  replicas: 1
  selector: {matchLabels: {tier: reader}}
  template:
    metadata: {labels: {tier: reader}}
    spec: {containers: [{name: main, image: registry.example/store:1}]}
";

const RC: &str = "get rc front -o jsonpath={.spec.replicas}";
const RS: &str = "get rs front -o jsonpath={.spec.replicas}";
const GENERATION: &str = "get rs front -o jsonpath={.metadata.generation}";
const SCALER: &str = "get hpa front -o jsonpath='{.spec.minReplicas} {.spec.maxReplicas} {.spec.metrics[0].resource.target.averageUtilization}'";

pub(crate) const REPLICATION_CONTROLLERS: Section = Section {
    name: "replicationcontrollers",
    files: &[("front.yaml", CONTROLLER), ("others.yaml", OTHERS)],
    rows: &[
        Row::new("create -f $DIR/front.yaml", Prints("replicationcontroller/front created")),
        Row::new("delete rc front", Succeeds),
        Row::new("get pods -l name=front -o name", Comes("")),
        Row::new("create -f $DIR/front.yaml", Succeeds),
        Row::new(
            "describe rc front",
            Says(&[
                "Name:",
                "Pod Template:",
                "Labels:",
                "Selector:",
                "Replicas:",
                "Pods Status:",
                "Volumes:",
                "HOSTS_FROM:",
            ]),
        ),
        Row::new("describe rc --show-events=false", Omits(&["Events:"])),
        Row::new("describe --chunk-size=1 --v=6 rc", Says(&["/replicationcontrollers?limit=1", "Events:"])),
        Row::new(RC, Prints("3")),
        Row::new("scale --current-replicas=3 --replicas=2 replicationcontrollers front", Succeeds),
        Row::new(RC, Prints("2")),
        Row::new(
            "scale --current-replicas=3 --replicas=2 replicationcontrollers front",
            Fails(&["Expected replicas to be 3, was 2"]),
        ),
        Row::new("scale --replicas=3 replicationcontrollers front", Succeeds),
        Row::new(RC, Prints("3")),
        Row::new("scale --replicas=2 -f $DIR/front.yaml", Succeeds),
        Row::new(RC, Prints("2")),
        Row::new("create -f $DIR/others.yaml", Succeeds),
        Row::new(
            "scale rc/writer rc/reader --replicas=4",
            Says(&["replicationcontroller/writer scaled", "replicationcontroller/reader scaled"]),
        ),
        Row::new("get rc writer reader -o jsonpath={.items[*].spec.replicas}", Prints("4 4")),
        Row::new("delete rc writer reader", Succeeds),
        Row::new("expose rc front --port=80", Succeeds),
        Row::new(
            "get service front -o go-template='{{(index .spec.ports 0).name}} {{(index .spec.ports 0).port}}'",
            Prints("<no value> 80"),
        ),
        Row::new("delete service front", Succeeds),
        Row::new(
            "autoscale -f $DIR/front.yaml --max=2 --cpu-percent=70",
            Says(&["horizontalpodautoscaler.autoscaling/front autoscaled"]),
        ),
        Row::new(SCALER, Prints("1 2 70")),
        Row::new("delete hpa front", Succeeds),
        Row::new("autoscale rc front --min=2 --max=3", Succeeds),
        Row::new("get hpa front -o jsonpath='{.spec.minReplicas} {.spec.maxReplicas}'", Prints("2 3")),
        Row::new("delete hpa front", Succeeds),
        Row::new("autoscale rc front", Fails(&["max"])),
        Row::new("delete rc front", Succeeds),
        Row::new("get rc -o name", Prints("")),
    ],
};

pub(crate) const REPLICA_SETS: Section = Section {
    name: "replicasets",
    files: &[("front.yaml", REPLICA_SET), ("reader.yaml", SECOND_SET)],
    rows: &[
        Row::new("create -f $DIR/front.yaml", Prints("replicaset.apps/front created")),
        Row::new("delete rs front", Succeeds),
        Row::new("get pods -l tier=front -o name", Comes("")),
        Row::new("create -f $DIR/front.yaml", Succeeds),
        Row::new("get pods -l tier=front -o jsonpath={.items[*].spec.containers[0].name}", Comes("main main main")),
        Row::new("delete rs front --cascade=orphan", Succeeds),
        Row::new("get rs -o name", Comes("")),
        Row::new("get pods -l tier=front -o jsonpath={.items[*].spec.containers[0].name}", Prints("main main main")),
        Row::new("delete pods -l tier=front", Succeeds),
        Row::new("get pods -o name", Prints("")),
        Row::new("create -f $DIR/front.yaml", Succeeds),
        Row::new(
            "describe rs front",
            Says(&["Name:", "Pod Template:", "Labels:", "Selector:", "Replicas:", "Pods Status:", "Volumes:"]),
        ),
        Row::new("describe rs --show-events=false", Omits(&["Events:"])),
        Row::new("describe rs", Shows(&["Events:", "SuccessfulCreate"])),
        Row::new(
            "describe pods",
            Says(&["Name:", "Image:", "Node:", "Labels:", "Status:", "Controlled By:", "ReplicaSet/front"]),
        ),
        Row::new("scale --dry-run=client --current-replicas=3 --replicas=2 replicasets front", Succeeds),
        Row::new("scale --dry-run=server --current-replicas=3 --replicas=2 replicasets front", Succeeds),
        Row::new(RS, Prints("3")),
        Row::new("scale --current-replicas=3 --replicas=2 replicasets front", Prints("replicaset.apps/front scaled")),
        Row::new(RS, Prints("2")),
        Row::new("expose rs front --port=80", Succeeds),
        Row::new(
            "get service front -o go-template='{{(index .spec.ports 0).name}} {{(index .spec.ports 0).port}}'",
            Prints("<no value> 80"),
        ),
        Row::new("delete service front", Succeeds),
        Row::new("delete rs front", Succeeds),
        Row::new("create -f $DIR/front.yaml", Succeeds),
        Row::new(GENERATION, Prints("1")),
        Row::new("set image rs/front *=registry.example/web:2", Succeeds),
        Row::new(GENERATION, Prints("2")),
        Row::new("set env rs/front foo=bar", Succeeds),
        Row::new(GENERATION, Prints("3")),
        Row::new("set resources rs/front --dry-run=client --limits=cpu=200m,memory=512Mi", Succeeds),
        Row::new("set resources rs/front --dry-run=server --limits=cpu=200m,memory=512Mi", Succeeds),
        Row::new(GENERATION, Prints("3")),
        Row::new("set resources rs/front --limits=cpu=200m,memory=512Mi", Succeeds),
        Row::new(GENERATION, Prints("4")),
        Row::new("set serviceaccount rs/front --dry-run=client robot", Succeeds),
        Row::new("set serviceaccount rs/front --dry-run=server robot", Succeeds),
        Row::new(GENERATION, Prints("4")),
        Row::new("set serviceaccount rs/front robot", Succeeds),
        Row::new(GENERATION, Prints("5")),
        Row::new(
            "get rs front --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-set", "kube-controller-manager"]),
        ),
        Row::new("create -f $DIR/reader.yaml", Succeeds),
        Row::new("get rs -o jsonpath={.items[*].metadata.name}", Prints("front reader")),
        Row::new("autoscale -f $DIR/front.yaml --max=2 --cpu-percent=70", Succeeds),
        Row::new(SCALER, Prints("1 2 70")),
        Row::new("delete hpa front", Succeeds),
        Row::new("autoscale rs front --min=2 --max=3", Succeeds),
        Row::new(
            "get hpa front --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-autoscale"]),
        ),
        Row::new("delete hpa front", Succeeds),
        Row::new("delete rs front reader", Succeeds),
        Row::new("get rs -o name", Prints("")),
    ],
};
