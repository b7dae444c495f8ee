//! DaemonSets and StatefulSets, and the revisions kept of them.

use super::prelude::*;

const DAEMONS: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemon}
spec:
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}
  selector: {matchLabels: {service: daemon}}
  template:
    metadata: {labels: {service: daemon}}
    spec:
      nodeSelector: {none: such}
      containers: [{name: main, image: registry.example/pause:1}]
";
const DAEMONS_2: &str = "apiVersion: apps/v1
kind: DaemonSet
metadata: {name: daemon}
spec:
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 10%}}
  selector: {matchLabels: {service: daemon}}
  template:
    metadata: {labels: {service: daemon}}
    spec:
      nodeSelector: {none: such}
      containers: [{name: main, image: registry.example/pause:2}, {name: app, image: registry.example/web:1}]
";
const STATEFUL: &str = "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  serviceName: db
  replicas: 0
  updateStrategy: {type: RollingUpdate}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 5
      containers: [{name: main, image: registry.example/db:1, command: [sh, -c, 'while true; do sleep 1; done']}]
";
const STATEFUL_2: &str = "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  serviceName: db
  replicas: 0
  updateStrategy: {type: RollingUpdate}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 5
      containers: [{name: main, image: registry.example/db:2}, {name: pause, image: registry.example/pause:2}]
";

const GENERATION: &str = "get daemonsets daemon -o jsonpath={.metadata.generation}";
const DAEMON_IMAGES: &str = "get daemonset daemon -o jsonpath={.spec.template.spec.containers[*].image}";
const STATEFUL_IMAGES: &str = "get statefulset db -o jsonpath={.spec.template.spec.containers[*].image}";
const REVISIONS: &str = "get controllerrevisions -o jsonpath={.items[*].metadata.annotations}";

pub(crate) const DAEMON_SETS: Section = Section {
    name: "daemonsets",
    files: &[("one.yaml", DAEMONS)],
    rows: &[
        Row::new("apply -f $DIR/one.yaml", Prints("daemonset.apps/daemon created")),
        Row::new(GENERATION, Prints("1")),
        Row::new("apply -f $DIR/one.yaml", Prints("daemonset.apps/daemon unchanged")),
        Row::new(GENERATION, Prints("1")),
        Row::new("set image daemonsets/daemon *=registry.example/pause:3", Succeeds),
        Row::new(GENERATION, Prints("2")),
        Row::new("set env daemonsets/daemon foo=bar", Succeeds),
        Row::new(GENERATION, Prints("3")),
        Row::new("set resources daemonsets/daemon --limits=cpu=200m,memory=512Mi", Succeeds),
        Row::new(GENERATION, Prints("4")),
        Row::new(
            "get daemonsets daemon --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-set"]),
        ),
        Row::new("describe --chunk-size=1 --v=6 daemonsets", Says(&["/daemonsets?limit=1", "Pods Status:"])),
        Row::new("rollout restart daemonset/daemon", Succeeds),
        Row::new(GENERATION, Prints("5")),
        Row::new(
            "rollout status daemonset/daemon --timeout=20s",
            Says(&["daemon set \"daemon\" successfully rolled out"]),
        ),
        Row::new("delete -f $DIR/one.yaml", Succeeds),
    ],
};

pub(crate) const DAEMON_HISTORY: Section = Section {
    name: "daemon-history",
    files: &[("one.yaml", DAEMONS), ("two.yaml", DAEMONS_2)],
    rows: &[
        Row::new("apply -f $DIR/one.yaml --record", Succeeds),
        Row::new(REVISIONS, Shows(&["one.yaml", "--record=true"])),
        Row::new("rollout undo daemonset --to-revision=1", Says(&["daemonset.apps/daemon "])),
        Row::new(DAEMON_IMAGES, Prints("registry.example/pause:1")),
        Row::new("apply -f $DIR/two.yaml --record", Succeeds),
        Row::new(DAEMON_IMAGES, Prints("registry.example/pause:2 registry.example/web:1")),
        Row::new(REVISIONS, Shows(&["two.yaml", "--record=true"])),
        Row::new(
            "rollout history daemonset",
            Says(&["daemonset.apps/daemon", "REVISION  CHANGE-CAUSE", "1         kubectl", "2         kubectl"]),
        ),
        Row::new(
            "rollout history daemonset --revision=1",
            Says(&["daemonset.apps/daemon with revision #1", "Pod Template:", "registry.example/pause:1"]),
        ),
        Row::new(
            "rollout history daemonset --revision=2",
            Says(&["daemonset.apps/daemon with revision #2", "registry.example/pause:2", "registry.example/web:1"]),
        ),
        Row::new("rollout undo daemonset --dry-run=client", Succeeds),
        Row::new("rollout undo daemonset --dry-run=server", Succeeds),
        Row::new(DAEMON_IMAGES, Prints("registry.example/pause:2 registry.example/web:1")),
        Row::new("rollout undo daemonset --to-revision=1", Prints("daemonset.apps/daemon rolled back")),
        Row::new(DAEMON_IMAGES, Prints("registry.example/pause:1")),
        Row::new("rollout history daemonset", Shows(&["2         kubectl", "3         kubectl"])),
        Row::new(
            "rollout undo daemonset --to-revision=1000000",
            Fails(&["unable to find specified revision 1000000 in history"]),
        ),
        Row::new(DAEMON_IMAGES, Prints("registry.example/pause:1")),
        Row::new("rollout undo daemonset", Succeeds),
        Row::new(DAEMON_IMAGES, Prints("registry.example/pause:2 registry.example/web:1")),
        Row::new("rollout history daemonset", Shows(&["3         kubectl", "4         kubectl"])),
        Row::new("delete -f $DIR/one.yaml", Succeeds),
    ],
};

pub(crate) const STATEFUL_SETS: Section = Section {
    name: "statefulsets",
    files: &[("one.yaml", STATEFUL)],
    rows: &[
        Row::new("create -f $DIR/one.yaml", Succeeds),
        Row::new("get statefulset db -o jsonpath={.spec.replicas}", Prints("0")),
        Row::new("get statefulset db -o jsonpath={.status.observedGeneration}", Comes("1")),
        Row::new("scale --current-replicas=0 --replicas=1 statefulset db", Prints("statefulset.apps/db scaled")),
        Row::new("get statefulset db -o jsonpath={.spec.replicas}", Prints("1")),
        Row::new("get statefulset db -o jsonpath={.status.observedGeneration}", Comes("2")),
        Row::new("get pods -l app=db -o name", Comes("pod/db-0")),
        Row::new("describe --chunk-size=1 --v=6 statefulsets", Says(&["/statefulsets?limit=1"])),
        Row::new("rollout restart statefulset db", Succeeds),
        Row::new("get statefulset db -o jsonpath={.status.observedGeneration}", Comes("3")),
        Row::new("delete -f $DIR/one.yaml", Succeeds),
        Row::new("get pods -l app=db -o name", Comes("")),
    ],
};

pub(crate) const STATEFUL_HISTORY: Section = Section {
    name: "stateful-history",
    files: &[("one.yaml", STATEFUL), ("two.yaml", STATEFUL_2)],
    rows: &[
        Row::new("apply -f $DIR/one.yaml --record", Succeeds),
        Row::new(REVISIONS, Shows(&["one.yaml", "--record=true"])),
        Row::new("rollout undo statefulset --to-revision=1", Says(&["statefulset.apps/db "])),
        Row::new(STATEFUL_IMAGES, Prints("registry.example/db:1")),
        Row::new("apply -f $DIR/two.yaml --record", Succeeds),
        Row::new(STATEFUL_IMAGES, Prints("registry.example/db:2 registry.example/pause:2")),
        Row::new(REVISIONS, Shows(&["two.yaml", "--record=true"])),
        Row::new(
            "rollout history statefulset",
            Says(&["statefulset.apps/db", "REVISION  CHANGE-CAUSE", "1         kubectl", "2         kubectl"]),
        ),
        Row::new(
            "rollout history statefulset --revision=1",
            Says(&["statefulset.apps/db with revision #1", "registry.example/db:1"]),
        ),
        Row::new("rollout undo statefulset --dry-run=client", Succeeds),
        Row::new("rollout undo statefulset --dry-run=server", Succeeds),
        Row::new(STATEFUL_IMAGES, Prints("registry.example/db:2 registry.example/pause:2")),
        Row::new("rollout undo statefulset --to-revision=1", Prints("statefulset.apps/db rolled back")),
        Row::new(STATEFUL_IMAGES, Prints("registry.example/db:1")),
        Row::new(
            "rollout undo statefulset --to-revision=1000000",
            Fails(&["unable to find specified revision 1000000 in history"]),
        ),
        Row::new("rollout history statefulset", Shows(&["3         kubectl"])),
        Row::new("rollout undo statefulset", Succeeds),
        Row::new(STATEFUL_IMAGES, Prints("registry.example/db:2 registry.example/pause:2")),
        Row::new("delete -f $DIR/two.yaml", Succeeds),
        Row::new("get pods -l app=db -o name", Comes("")),
    ],
};
