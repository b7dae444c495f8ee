//! Deployments: made, rolled out and back, paused, set, and deleted with what they made or without.

use super::prelude::*;

const ONE: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: registry.example/web:1, ports: [{containerPort: 80}]}]}
";
const TWO: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: registry.example/web:2, ports: [{containerPort: 80}]}]}
";
const SECOND: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web2}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: registry.example/web:1}]}
";
const PAIR: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: pair}
spec:
  selector: {matchLabels: {app: pair}}
  template:
    metadata: {labels: {app: pair}}
    spec:
      containers:
      - {name: main, image: registry.example/web:1}
      - {name: side, image: registry.example/side:1}
";
const SOURCES: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: open}, data: {key-1: one, key-2: two}}
---
{apiVersion: v1, kind: Secret, metadata: {name: hidden}, data: {username: dXNlcg==, password: cGFzcw==}}
";
/// As large as a group's number may be.
const LARGE_IDS: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: large-ids}
spec:
  selector: {matchLabels: {app: large-ids}}
  template:
    metadata: {labels: {app: large-ids}}
    spec:
      securityContext: {runAsUser: 1000740000, fsGroup: 1000740000}
      containers: [{name: main, image: registry.example/web:1}]
";

const IMAGE: &str = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}";
const REVISION: &str = "get deployment web -o jsonpath='{.metadata.annotations.deployment\\.kubernetes\\.io/revision}'";
const IMAGES: &str = "get deployment pair -o jsonpath={.spec.template.spec.containers[*].image}";
const VARIABLES: &str = "get deployment pair -o jsonpath={.spec.template.spec.containers[0].env[*].name}";

pub(crate) const DEPLOYMENTS: Section = Section {
    name: "deployments",
    files: &[("one.yaml", ONE), ("large-ids.yaml", LARGE_IDS)],
    rows: &[
        Row::new("create deployment made --image=registry.example/web:1", Prints("deployment.apps/made created")),
        Row::new("get deploy made -o jsonpath={.spec.template.spec.containers[0].name}", Prints("web")),
        Row::new("get deployment.apps/made -o jsonpath={.spec.revisionHistoryLimit}", Prints("10")),
        Row::new("get deployment.apps -o jsonpath={.items[0].apiVersion}", Prints("apps/v1")),
        Row::new("get deployments.v1.apps -o jsonpath={.items[0].kind}", Prints("Deployment")),
        Row::new(
            "describe rs",
            Shows(&[
                "Name:",
                "Pod Template:",
                "Labels:",
                "Selector:",
                "Controlled By:  Deployment/made",
                "Replicas:",
                "Pods Status:",
                "Volumes:",
            ]),
        ),
        Row::new(
            "describe pods",
            Shows(&["Name:", "Image:", "Node:", "Labels:", "Status:", "Controlled By:", "ReplicaSet/made-"]),
        ),
        Row::new(
            "describe --chunk-size=1 --v=6 deployments",
            Says(&["/deployments?limit=1", "/replicasets?labelSelector="]),
        ),
        Row::new("delete deployment made", Succeeds),
        Row::new(
            "create deployment told --dry-run=client --image=registry.example/web:1 -- /bin/sleep infinity",
            Succeeds,
        ),
        Row::new(
            "create deployment told --dry-run=server --image=registry.example/web:1 -- /bin/sleep infinity",
            Succeeds,
        ),
        Row::new("get deployment -o name", Prints("")),
        Row::new("create deployment told --image=registry.example/web:1 -- /bin/sleep infinity", Succeeds),
        Row::new(
            "get deploy told -o jsonpath={.spec.template.spec.containers[0].command}",
            Prints("[\"/bin/sleep\",\"infinity\"]"),
        ),
        Row::new("delete deployment told", Succeeds),
        Row::new("create -f $DIR/large-ids.yaml", Succeeds),
        Row::new("get deployment large-ids -o json", Says(&["\"fsGroup\": 1000740000", "\"runAsUser\": 1000740000"])),
        Row::new("delete deployment large-ids", Succeeds),
        Row::new("get rs -o name", Comes("")),
        Row::new("create -f $DIR/one.yaml", Succeeds),
        Row::new("get rs -o jsonpath={.items[*].spec.replicas}", Comes("3")),
        Row::new("delete deployment web --cascade", Succeeds),
        Row::new("get rs -o name", Comes("")),
        Row::new("create deployment orphaned --image=registry.example/web:1", Succeeds),
        Row::new("get rs -o jsonpath={.items[*].spec.replicas}", Comes("1")),
        Row::new("delete deployment orphaned --cascade=orphan", Succeeds),
        Row::new("get deployment -o name", Comes("")),
        Row::new("get rs -o jsonpath={.items[*].spec.replicas}", Prints("1")),
        Row::new("get rs -o jsonpath={.items[*].metadata.ownerReferences}", Prints("")),
        Row::new("delete rs --all", Succeeds),
        Row::new("create -f $DIR/one.yaml", Succeeds),
        Row::new("autoscale deployment web --dry-run=client --min=2 --max=3", Succeeds),
        Row::new("autoscale deployment web --dry-run=server --min=2 --max=3", Succeeds),
        Row::new("get hpa -o name", Prints("")),
        Row::new("autoscale deployment web --min=2 --max=3", Succeeds),
        Row::new("get hpa web -o jsonpath='{.spec.minReplicas} {.spec.maxReplicas}'", Prints("2 3")),
        Row::new("delete hpa web", Succeeds),
        Row::new("delete deployment.apps web", Succeeds),
    ],
};

pub(crate) const ROLLOUTS: Section = Section {
    name: "rollouts",
    files: &[("one.yaml", ONE), ("two.yaml", TWO), ("second.yaml", SECOND)],
    rows: &[
        Row::new("create -f $DIR/one.yaml", Succeeds),
        Row::new("rollout history deployment web", Shows(&["1         <none>"])),
        // Where it is already.
        Row::new("rollout undo deployment web --to-revision=1", Says(&["deployment.apps/web"])),
        Row::new(IMAGE, Prints("registry.example/web:1")),
        Row::new("apply -f $DIR/two.yaml", Grumbles(&["deployment.apps/web configured"])),
        Row::new(IMAGE, Prints("registry.example/web:2")),
        Row::new("rollout history deployment web", Shows(&["2         <none>"])),
        Row::new("rollout undo deployment web --dry-run=client", Says(&["registry.example/web:1"])),
        Row::new("rollout undo deployment web --dry-run=server", Says(&["deployment.apps/web"])),
        Row::new(IMAGE, Prints("registry.example/web:2")),
        Row::new("rollout undo deployment web --to-revision=1", Prints("deployment.apps/web rolled back")),
        Row::new(IMAGE, Prints("registry.example/web:1")),
        Row::new("rollout history deployment web", Shows(&["3         <none>"])),
        Row::new(
            "rollout undo deployment web --to-revision=1000000",
            Fails(&["unable to find specified revision 1000000 in history"]),
        ),
        Row::new("rollout undo deployment web", Succeeds),
        Row::new(IMAGE, Prints("registry.example/web:2")),
        Row::new("rollout history deployment web", Shows(&["4         <none>"])),
        Row::new("rollout pause deployment web", Prints("deployment.apps/web paused")),
        Row::new("rollout pause deployment web", Fails(&["is already paused"])),
        Row::new("rollout undo deployment web", Fails(&["you cannot rollback a paused deployment"])),
        Row::new("rollout restart deployment web", Fails(&["can't restart paused deployment"])),
        Row::new("rollout resume deployment web", Prints("deployment.apps/web resumed")),
        Row::new("rollout undo deployment web", Succeeds),
        // The ReplicaSet of the first template has been the newest three times.
        Row::new(
            "get rs -l app=web -o jsonpath='{.items[?(@.spec.template.spec.containers[0].image==\"registry.example/web:1\")].metadata.annotations.deployment\\.kubernetes\\.io/revision-history}'",
            Comes("1,3"),
        ),
        Row::new(REVISION, Comes("5")),
        Row::new(
            "rollout status deployment/web --revision=3",
            Fails(&["desired revision (3) is different from the running revision (5)"]),
        ),
        Row::new("rollout restart deployment/web", Prints("deployment.apps/web restarted")),
        Row::new(
            "get rs -l app=web -o jsonpath='{.items[*].metadata.annotations.deployment\\.kubernetes\\.io/revision}'",
            Shows(&["6"]),
        ),
        Row::new(REVISION, Comes("6")),
        Row::new("describe deployment web", Shows(&["NewReplicaSet:   web-"])),
        Row::new(
            "get deployment web --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-rollout"]),
        ),
        // A second one with the same selector blocks nobody's deletion.
        Row::new("create -f $DIR/second.yaml", Succeeds),
        Row::new("delete deployment web2 --timeout=30s", Succeeds),
        Row::new("delete deployment web --timeout=30s", Succeeds),
    ],
};

pub(crate) const SETTING: Section = Section {
    name: "sets",
    files: &[("pair.yaml", PAIR), ("sources.yaml", SOURCES)],
    rows: &[
        Row::new("create -f $DIR/pair.yaml", Succeeds),
        Row::new("set image deployment pair main=registry.example/web:2 --dry-run=client", Succeeds),
        Row::new("set image deployment pair main=registry.example/web:2 --dry-run=server", Succeeds),
        Row::new(IMAGES, Prints("registry.example/web:1 registry.example/side:1")),
        Row::new("set image deployment pair main=registry.example/web:2", Prints("deployment.apps/pair image updated")),
        Row::new(IMAGES, Prints("registry.example/web:2 registry.example/side:1")),
        Row::new("set image deployment pair none=none", Fails(&["unable to find container named"])),
        Row::new("set image deployments --all main=registry.example/web:3", Succeeds),
        Row::new(IMAGES, Prints("registry.example/web:3 registry.example/side:1")),
        Row::new("set image -f $DIR/pair.yaml main=registry.example/web:4", Succeeds),
        Row::new(
            "set image -f $DIR/pair.yaml main=registry.example/web:5 --local -o yaml",
            Says(&["registry.example/web:5"]),
        ),
        Row::new(IMAGES, Prints("registry.example/web:4 registry.example/side:1")),
        Row::new("set image deployment pair *=registry.example/web:6", Succeeds),
        Row::new("set image deployment pair *=registry.example/web:6", Succeeds),
        Row::new(IMAGES, Prints("registry.example/web:6 registry.example/web:6")),
        Row::new("create -f $DIR/sources.yaml", Succeeds),
        Row::new(
            "set env deployment pair --keys=key-2 --from=configmap/open",
            Prints("deployment.apps/pair env updated"),
        ),
        Row::new(VARIABLES, Prints("KEY_2")),
        Row::new("set env deployment pair --dry-run=client --from=configmap/open", Succeeds),
        Row::new("set env deployment pair --dry-run=server --from=configmap/open", Succeeds),
        Row::new(VARIABLES, Prints("KEY_2")),
        Row::new("set env deployment pair --from=configmap/open", Succeeds),
        Row::new(VARIABLES, Prints("KEY_2 KEY_1")),
        Row::new("set env deployment pair env=prod", Succeeds),
        Row::new("set env deployment pair superenv=superprod -c=main", Succeeds),
        Row::new("set env deployment pair --keys=username --from=secret/hidden", Succeeds),
        Row::new("set env deployment pair --from=secret/hidden", Succeeds),
        Row::new("set env deployment pair env-", Succeeds),
        Row::new(
            "get deployment pair -o jsonpath={.spec.template.spec.containers[1].env[*].name}",
            Omits(&["superenv", "env "]),
        ),
        Row::new(
            "set resources -f $DIR/pair.yaml -c=side --limits=cpu=300m --requests=cpu=300m --local -o yaml",
            Says(&["cpu: 300m"]),
        ),
        Row::new(
            "set resources deployment pair --limits=cpu=100m",
            Prints("deployment.apps/pair resource requirements updated"),
        ),
        Row::new(
            "get deployment pair -o jsonpath={.spec.template.spec.containers[*].resources.limits.cpu}",
            Prints("100m 100m"),
        ),
        Row::new("set resources deployment pair -c=none --limits=cpu=100m", Fails(&["unable to find container named"])),
        Row::new("set resources deployment pair -c=main --limits=cpu=200m", Succeeds),
        Row::new("set resources -f $DIR/pair.yaml -c=side --limits=cpu=300m --requests=cpu=300m", Succeeds),
        Row::new(
            "set resources deployment pair -c=side --limits=cpu=400m --requests=cpu=400m --dry-run=client -o yaml",
            Says(&["cpu: 400m"]),
        ),
        Row::new(
            "set resources deployment pair -c=side --limits=cpu=400m --requests=cpu=400m --dry-run=server -o yaml",
            Says(&["cpu: 400m"]),
        ),
        Row::new(
            "set resources deployment pair -c=side --limits=cpu=400m --requests=cpu=400m --local -o yaml",
            Fails(&[]),
        ),
        Row::new(
            "get deployment pair -o jsonpath={.spec.template.spec.containers[*].resources.limits.cpu}",
            Prints("200m 300m"),
        ),
        Row::new(
            "get deployment pair -o jsonpath={.spec.template.spec.containers[1].resources.requests.cpu}",
            Prints("300m"),
        ),
        Row::new("delete deployment pair", Succeeds),
    ],
};
