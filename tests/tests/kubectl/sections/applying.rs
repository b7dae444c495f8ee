//! `apply` from the client's side: what it keeps, clears, prunes, forces and refuses.

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
const ROLLING: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: keys}
spec:
  selector: {matchLabels: {app: keys}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template:
    metadata: {labels: {app: keys}}
    spec:
      containers: [{name: main, image: registry.example/web:1}]
      volumes: [{name: cache, emptyDir: {}}]
";
const RECREATED: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: keys}
spec:
  selector: {matchLabels: {app: keys}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: keys}}
    spec:
      containers: [{name: main, image: registry.example/web:1}]
      volumes: [{name: cache, hostPath: {path: /data}}]
";
const FILTERED: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: wanted, labels: {mark: yes-please}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: unwanted, labels: {mark: no-thanks}}}
";
const NULLS: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: nulls}
spec:
  selector: {matchLabels: {app: nulls}}
  template:
    metadata: {labels: {app: nulls}}
    spec:
      containers:
      - name: main
        image: registry.example/web:1
        resources: {requests: {memory: 64Mi, cpu: null}}
        terminationMessagePolicy: null
";
const QUOTA_NULLS: &str = "---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: nulls}, spec: {hard: {limits.cpu: null, limits.memory: null}}}";
const LABELS_1: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: labels, labels: {l1: l1}}
spec:
  selector: {matchLabels: {l1: l1}}
  template:
    metadata: {labels: {l1: l1}}
    spec: {containers: [{name: main, image: registry.example/web:1}]}
";
const LABELS_2: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: labels, labels: {l1: null, l2: l2}}
spec:
  selector: {matchLabels: {l1: l1}}
  template:
    metadata: {labels: {l1: l1, l2: l2}}
    spec: {containers: [{name: main, image: registry.example/web:1}]}
";

const LABEL: &str = "get pod web -o jsonpath={.metadata.labels.name}";

pub(crate) const APPLYING: Section = Section {
    name: "applying",
    files: &[
        ("pod.yaml", POD),
        ("changed.yaml", CHANGED),
        ("rolling.yaml", ROLLING),
        ("recreated.yaml", RECREATED),
        ("filtered.yaml", FILTERED),
        ("nulls.yaml", NULLS),
        ("quota.yaml", QUOTA_NULLS),
        ("labels-1.yaml", LABELS_1),
        ("labels-2.yaml", LABELS_2),
    ],
    rows: &[
        Row::new("apply -f $DIR/pod.yaml", Prints("pod/web created")),
        Row::new("get pods web -o yaml", Says(&["kubectl.kubernetes.io/last-applied-configuration"])),
        Row::new(
            "get --show-managed-fields -f $DIR/pod.yaml -o jsonpath={.metadata.managedFields[*].manager}",
            Says(&["kubectl-client-side-apply"]),
        ),
        Row::new("delete pods web", Succeeds),
        Row::new("create -f $DIR/pod.yaml", Succeeds),
        Row::new("get pods web -o yaml", Omits(&["last-applied-configuration"])),
        Row::new("apply set-last-applied --dry-run=client -f $DIR/pod.yaml --create-annotation=true", Succeeds),
        Row::new("apply set-last-applied --dry-run=server -f $DIR/pod.yaml --create-annotation=true", Succeeds),
        Row::new("get pods web -o yaml", Omits(&["last-applied-configuration"])),
        Row::new("apply set-last-applied -f $DIR/pod.yaml", Fails(&["no last-applied-configuration annotation found"])),
        Row::new("apply set-last-applied -f $DIR/pod.yaml --create-annotation=true", Succeeds),
        Row::new("get pods web -o yaml", Says(&["last-applied-configuration"])),
        Row::new("delete pods web", Succeeds),
        // `create` and `replace` write the annotation down only where it is there already.
        Row::new("create -f $DIR/pod.yaml", Succeeds),
        Row::new("replace -f $DIR/changed.yaml", Succeeds),
        Row::new(LABEL, Prints("after")),
        Row::new("get pods web -o yaml", Omits(&["last-applied-configuration"])),
        Row::new(
            "apply -f $DIR/pod.yaml",
            Grumbles(&["pod/web configured", "missing the kubectl.kubernetes.io/last-applied-configuration"]),
        ),
        Row::new("get pods web -o jsonpath={.metadata.annotations}", Says(&["\\\"name\\\":\\\"before\\\""])),
        Row::new("get pods web -o json", Keeps("WEB")),
        Row::with("label --local --overwrite -f - name=after -o json", "$WEB", Keeps("WEB")),
        Row::with("replace -f -", "$WEB", Succeeds),
        Row::new("get pods web -o jsonpath={.metadata.annotations}", Says(&["\\\"name\\\":\\\"after\\\""])),
        Row::new("delete pods web", Succeeds),
        // What the server filled in goes when something else takes its place.
        Row::new("apply -f $DIR/rolling.yaml", Succeeds),
        Row::new("get deployments keys -o yaml", Says(&["RollingUpdate", "maxSurge", "maxUnavailable", "emptyDir"])),
        Row::new("apply -f $DIR/recreated.yaml", Prints("deployment.apps/keys configured")),
        Row::new(
            "get deployments keys -o jsonpath={.spec.strategy}{.spec.template.spec.volumes}",
            Says(&["{\"type\":\"Recreate\"}", "hostPath"]),
        ),
        Row::new(
            "get deployments keys -o jsonpath={.spec.strategy}{.spec.template.spec.volumes}",
            Omits(&["emptyDir", "rollingUpdate"]),
        ),
        Row::new("delete deployments keys", Succeeds),
        Row::new("apply -l mark=yes-please -f $DIR/filtered.yaml", Prints("configmap/wanted created")),
        Row::new("create -l mark=no-thanks -f $DIR/filtered.yaml", Prints("configmap/unwanted created")),
        Row::new("delete configmap wanted unwanted", Succeeds),
        Row::new("apply --dry-run=client -f $DIR/pod.yaml", Prints("pod/web created (dry run)")),
        Row::new("apply --dry-run=server -f $DIR/pod.yaml", Prints("pod/web created (server dry run)")),
        Row::new("get pods -o name", Omits(&["pod/web"])),
        Row::new("apply -f $DIR/pod.yaml", Succeeds),
        Row::new("get pod web -o jsonpath={.metadata.resourceVersion}", Keeps("VERSION")),
        Row::new("apply --dry-run=client -f $DIR/changed.yaml", Prints("pod/web configured (dry run)")),
        Row::new("apply --dry-run=server -f $DIR/changed.yaml", Prints("pod/web configured (server dry run)")),
        Row::new(LABEL, Prints("before")),
        Row::new("get pod web -o jsonpath={.metadata.resourceVersion}", Prints("$VERSION")),
        Row::new("delete -f $DIR/pod.yaml", Succeeds),
        // A null takes nothing's place: what has a default gets it.
        Row::new("apply -f $DIR/nulls.yaml", Prints("deployment.apps/nulls created")),
        Row::new(
            "get deployment/nulls -o jsonpath={.spec.template.spec.containers[0].resources}",
            Prints("{\"requests\":{\"memory\":\"64Mi\"}}"),
        ),
        Row::new(
            "get deployment/nulls -o jsonpath={.spec.template.spec.containers[0].terminationMessagePolicy}",
            Prints("File"),
        ),
        Row::new("apply -f $DIR/nulls.yaml", Succeeds),
        Row::new(
            "get deployment/nulls -o jsonpath={.spec.template.spec.containers[0].resources}",
            Prints("{\"requests\":{\"memory\":\"64Mi\"}}"),
        ),
        Row::new("apply -f $DIR/quota.yaml", Prints("resourcequota/nulls created")),
        Row::new("get resourcequota/nulls -o jsonpath={.spec.hard}", Keeps("HARD")),
        Row::new("apply -f $DIR/quota.yaml", Succeeds),
        Row::new("get resourcequota/nulls -o jsonpath={.spec.hard}", Prints("$HARD")),
        Row::new("delete deployment/nulls resourcequota/nulls", Succeeds),
        Row::new("apply -f $DIR/labels-1.yaml", Succeeds),
        Row::new("apply -f $DIR/labels-2.yaml", Succeeds),
        Row::new(
            "get deployment labels -o go-template='{{.metadata.labels.l1}} {{.metadata.labels.l2}} {{.spec.template.metadata.labels.l1}}'",
            Prints("<no value> l2 l1"),
        ),
        Row::new("delete deployments,rs,pods --all --cascade=orphan --grace-period=0", Succeeds),
        Row::new("get deployments,rs,pods -o name", Comes("")),
    ],
};

const A: &str = "---\n{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {prune: these}}, spec: {containers: [{name: main, image: registry.example/pause:1}]}}";
const B: &str = "---\n{apiVersion: v1, kind: Pod, metadata: {name: b, labels: {prune: these}}, spec: {containers: [{name: main, image: registry.example/pause:1}]}}";
const SERVICE: &str = "---\n{apiVersion: v1, kind: Service, metadata: {name: c, labels: {prune: these}}, spec: {selector: {prune: these}, ports: [{port: 80}]}}";
const PODS: &str = "get pods -o jsonpath={.items[*].metadata.name}";

pub(crate) const PRUNING: Section = Section {
    name: "pruning",
    files: &[("a.yaml", A), ("b.yaml", B), ("c.yaml", SERVICE)],
    rows: &[
        Row::new("apply -l prune=these -f $DIR/a.yaml", Prints("pod/a created")),
        Row::new("diff -l prune=these -f $DIR/b.yaml", Ends(1, &["name: b"])),
        Row::new("diff --prune -l prune=these -f $DIR/b.yaml", Ends(1, &["name: a", "name: b"])),
        Row::new("apply --prune -l prune=these -f $DIR/b.yaml", Says(&["pod/b created", "pod/a pruned"])),
        Row::new(PODS, Comes("b")),
        Row::new("diff --prune -l prune=these -f $DIR/b.yaml", Succeeds),
        Row::new("apply -l prune=these -f $DIR/a.yaml", Succeeds),
        Row::new(PODS, Prints("a b")),
        Row::new(
            "apply --prune -f $DIR/a.yaml",
            Fails(&["all resources selected for prune without explicitly passing --all"]),
        ),
        Row::new("delete pods a b", Succeeds),
        Row::new("apply --prune -l prune=these -f $DIR/a.yaml", Succeeds),
        Row::new(
            "apply --prune -l prune=these -f $DIR/c.yaml --prune-allowlist core/v1/Service",
            Prints("service/c created"),
        ),
        Row::new(PODS, Prints("a")),
        Row::new("apply --prune -l prune=these -f $DIR/c.yaml", Says(&["service/c unchanged", "pod/a pruned"])),
        Row::new(PODS, Comes("")),
        Row::new("delete service c", Succeeds),
        // Of another namespace than the one it is called in.
        Row::new("create namespace $NS-b", Succeeds),
        Row::new("apply --namespace $NS-b -f $DIR/a.yaml -f $DIR/b.yaml", Says(&["pod/a created", "pod/b created"])),
        Row::new("apply --namespace $NS-b --prune -l prune=these -f $DIR/b.yaml", Says(&["pod/a pruned"])),
        Row::new("get pods -n $NS-b -o name", Comes("pod/b")),
        Row::new("delete namespace $NS-b --wait=false", Succeeds),
    ],
};

const FIXED: &str =
    "---\n{apiVersion: v1, kind: Service, metadata: {name: fixed}, spec: {clusterIP: 10.0.0.11, ports: [{port: 80}]}}";
const MOVED: &str =
    "---\n{apiVersion: v1, kind: Service, metadata: {name: fixed}, spec: {clusterIP: 10.0.0.12, ports: [{port: 80}]}}";
const FOREIGN: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: one}}";
const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: strict}
spec:
  selector: {matchLabels: {name: one}}
  template:
    metadata: {labels: {name: one}}
    spec: {containers: [{name: one, image: registry.example/web:1}]}
";
const CONFLICTING: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: strict, resourceVersion: '99'}
spec:
  selector: {matchLabels: {name: two}}
  template:
    metadata: {labels: {name: two}}
    spec: {containers: [{name: two, image: registry.example/web:1}]}
";
const CONFLICTING_AND_INVALID: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: strict, resourceVersion: '99'}
spec:
  selector: {matchLabels: {name: three}}
  template:
    metadata: {labels: {name: four}}
    spec: {containers: [{name: three, image: registry.example/web:1}]}
";
const KUSTOMIZATION: &str = "resources: [objects.yaml]\nnamePrefix: made-\n";
const OBJECTS: &str = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: map}, data: {altGreeting: Good Morning!}}
---
{apiVersion: v1, kind: Service, metadata: {name: service}, spec: {selector: {deployment: hello}, ports: [{protocol: TCP, port: 8666, targetPort: 8080}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: deployment}
spec:
  replicas: 3
  selector: {matchLabels: {deployment: hello}}
  template:
    metadata: {labels: {deployment: hello}}
    spec: {containers: [{name: main, image: registry.example/web:1, ports: [{containerPort: 8080}]}]}
";

pub(crate) const FORCING: Section = Section {
    name: "forcing",
    files: &[
        ("fixed.yaml", FIXED),
        ("moved.yaml", MOVED),
        ("foreign.yaml", FOREIGN),
        ("deployment.yaml", DEPLOYMENT),
        ("conflicting.yaml", CONFLICTING),
        ("invalid.yaml", CONFLICTING_AND_INVALID),
        ("kustomization.yaml", KUSTOMIZATION),
        ("objects.yaml", OBJECTS),
    ],
    rows: &[
        Row::new(
            "apply -n two -f $DIR/foreign.yaml",
            Fails(&["the namespace from the provided object \"one\" does not match the namespace \"two\"."]),
        ),
        Row::new("apply -f $DIR/fixed.yaml", Prints("service/fixed created")),
        Row::new(
            "apply -f $DIR/moved.yaml",
            Fails(&["spec.clusterIPs[0]: Invalid value: [\"10.0.0.12\"]: may not change once set"]),
        ),
        Row::new("apply -f $DIR/moved.yaml --force", Says(&["service/fixed configured"])),
        Row::new("get service fixed -o jsonpath={.spec.clusterIP}", Prints("10.0.0.12")),
        Row::new("delete -f $DIR/moved.yaml", Succeeds),
        Row::new("apply -f $DIR/deployment.yaml", Succeeds),
        Row::new("apply -f $DIR/conflicting.yaml", Fails(&["Error from server (Conflict)"])),
        Row::new(
            "apply -f $DIR/conflicting.yaml --overwrite=true --force=true --grace-period=10",
            Says(&["deployment.apps/strict configured"]),
        ),
        Row::new("apply view-last-applied deploy/strict -o json", Says(&["\"name\": \"two\""])),
        // It is deleted, cannot be made anew, and is put back as it was.
        Row::new("apply -f $DIR/invalid.yaml --force", Fails(&["Invalid value"])),
        Row::new("get deployment strict -o jsonpath={.spec.template.metadata.labels.name}", Prints("two")),
        Row::new("delete deployments --all --grace-period=10", Succeeds),
        Row::new(
            "create -k $DIR",
            Says(&[
                "configmap/made-map created",
                "service/made-service created",
                "deployment.apps/made-deployment created",
            ]),
        ),
        Row::new("get -k $DIR -o jsonpath={..metadata.name}", Says(&["made-map", "made-deployment", "made-service"])),
        Row::new("delete -k $DIR", Succeeds),
        Row::new(
            "apply -k $DIR",
            Says(&[
                "configmap/made-map created",
                "service/made-service created",
                "deployment.apps/made-deployment created",
            ]),
        ),
        Row::new(
            "apply --kustomize $DIR",
            Says(&[
                "configmap/made-map unchanged",
                "service/made-service unchanged",
                "deployment.apps/made-deployment unchanged",
            ]),
        ),
        Row::new("get configmap made-map -o jsonpath={.data.altGreeting}", Prints("Good Morning!")),
        Row::new("delete --kustomize $DIR", Succeeds),
    ],
};
