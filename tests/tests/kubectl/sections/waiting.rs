//! `wait`, `scale` with what it prints, templates for what commands print, `run`, and the forms of `--save-config`.

use super::prelude::*;

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"name":"web"}},
    "spec":{"containers":[{"name":"main","image":"registry.example/web:1"}]}}"#;
const CONTROLLER: &str = "apiVersion: v1
kind: ReplicationController
metadata: {name: front}
spec:
  replicas: 1
  selector: {name: front}
  template:
    metadata: {labels: {name: front}}
    spec: {containers: [{name: main, image: registry.example/web:1}]}
";
const MET: &str = "deployment.apps/three condition met";

pub(crate) const WAITING: Section = Section {
    name: "waiting",
    files: &[],
    rows: &[
        Row::new("create deployment one --image=registry.example/box:1", Succeeds),
        Row::new("create deployment two --image=registry.example/box:1", Succeeds),
        Row::new(
            "wait --for=jsonpath=.status.readyReplicas=1 deploy/one --timeout=1s",
            Fails(&["timed out waiting for the condition on deployments/one"]),
        ),
        Row::new(
            "wait --for=condition=Progressing deploy/one --timeout=20s",
            Prints("deployment.apps/one condition met"),
        ),
        Row::new("delete deployment --all --cascade=foreground --wait=false", Succeeds),
        Row::new("wait deployment/one deployment/two --for=delete --timeout=30s", Succeeds),
        Row::new("get deployments -o name", Prints("")),
        Row::new("create deployment pods --image=registry.example/box:1 --replicas=3", Succeeds),
        Row::new("get pods -l app=pods -o jsonpath={.items[*].status.phase}", Comes("Pending Pending Pending")),
        Row::new(
            "wait pod --selector=app=pods --for=condition=InvalidCondition --timeout=1s",
            Fails(&["timed out waiting for the condition on pods/pods-"]),
        ),
        Row::new("delete deployment pods", Succeeds),
        Row::new("create deployment three --image=registry.example/busybox:1", Succeeds),
        Row::new("wait --for=jsonpath={.status.replicas} deploy/three --timeout=20s", Prints(MET)),
        Row::new(
            "wait --for=jsonpath='spec.template.spec.containers[?(@.name==\"busybox\")].image=registry.example/busybox:1' deploy/three",
            Prints(MET),
        ),
        Row::new("wait --for=jsonpath={.status.replicas} deploy/three --timeout=0", Prints(MET)),
        Row::new("wait --for=create deploy/three --timeout=5s", Prints(MET)),
        Row::new("wait --for=create deploy/never --timeout=1s", Fails(&["timed out waiting for the condition"])),
        Row::new(
            "wait --for=condition=Available deploy/never --timeout=1s",
            Fails(&["deployments.apps \"never\" not found"]),
        ),
        Row::new("delete deployment three", Succeeds),
    ],
};

pub(crate) const SCALING: Section = Section {
    name: "scaling",
    files: &[("rc.yaml", CONTROLLER)],
    rows: &[
        Row::new("create deployment one --image=registry.example/box:1", Succeeds),
        Row::new("create deployment two --image=registry.example/box:1", Succeeds),
        Row::new("label deployment one two run=hello", Succeeds),
        Row::new("create deployment three --image=registry.example/box:1", Succeeds),
        Row::new("scale deploy --replicas=3 --all --dry-run=client", Succeeds),
        Row::new("scale deploy --replicas=3 --all --dry-run=server", Succeeds),
        Row::new("get deploy one two three -o jsonpath={.items[*].spec.replicas}", Prints("1 1 1")),
        Row::new("scale deploy --replicas=2 -l run=hello", Succeeds),
        Row::new("get deploy one two three -o jsonpath={.items[*].spec.replicas}", Prints("2 2 1")),
        Row::new("scale deploy --replicas=3 --all", Succeeds),
        Row::new("get deploy one two three -o jsonpath={.items[*].spec.replicas}", Prints("3 3 3")),
        Row::new("scale --current-replicas=3 --replicas=1 deployment/one", Succeeds),
        Row::new("scale deployment one --replicas=2 --dry-run=client -o yaml", Says(&["replicas: 2"])).since("1.36"),
        Row::new("scale deployment one --replicas=3 --dry-run=server -o yaml", Says(&["replicas: 3"])).since("1.36"),
        Row::new("get deployment one -o jsonpath={.spec.replicas}", Prints("1")),
        Row::new("scale deployment one --replicas=2 -o yaml", Says(&["replicas: 2"])).since("1.36"),
        Row::new("create -f $DIR/rc.yaml", Succeeds),
        Row::new("scale rc front --replicas=3 -o yaml", Says(&["replicas: 3"])).since("1.36"),
        Row::new("scale -f $DIR/rc.yaml --replicas=2 -o name", Prints("replicationcontroller/front")),
        Row::new("get rc front --subresource=scale", Says(&["DESIRED", "AVAILABLE", "2"])),
        Row::new("delete rc front", Succeeds),
        Row::new("delete deployments --all", Succeeds),
    ],
};

pub(crate) const TEMPLATES: Section = Section {
    name: "templates",
    files: &[("pod.json", POD), ("rc.yaml", CONTROLLER)],
    rows: &[
        Row::new("create -f $DIR/pod.json --template={{.metadata.name}}:", Prints("web:")),
        Row::new(
            "patch --dry-run=client pods/web -p {\"patched\":\"value3\"} --type=merge --template={{.metadata.name}}:",
            Prints("web:"),
        ),
        Row::new("label --dry-run=client pods/web label=value --template={{.metadata.name}}:", Prints("web:")),
        Row::new("annotate --dry-run=client pods/web annotation=value --template={{.metadata.name}}:", Prints("web:")),
        Row::new("apply --dry-run=client -f $DIR/pod.json --template={{.metadata.name}}:", Grumbles(&["web:"])),
        Row::new(
            "create clusterrole --template={{.metadata.name}}: --verb get judged-template --non-resource-url /logs/ --resource pods",
            Prints("judged-template:"),
        ),
        Row::new(
            "create clusterrolebinding judged-template --clusterrole=judged-template --template={{.metadata.name}}:",
            Prints("judged-template:"),
        ),
        Row::new(
            "set subject clusterrolebinding/judged-template --user=foo --dry-run=client --template={{.metadata.name}}:",
            Prints("judged-template:"),
        ),
        Row::new("delete clusterrole/judged-template clusterrolebinding/judged-template", Succeeds),
        Row::new(
            "create deployment deploy --image=registry.example/web:1 --template={{.metadata.name}}:",
            Prints("deploy:"),
        ),
        Row::new("create cronjob pi --schedule='*/10 * * * *' --image=registry.example/perl -- perl", Succeeds),
        Row::new("create job foo --from=cronjob/pi --dry-run=client --template={{.metadata.name}}:", Prints("foo:")),
        Row::new("set env pod/web --dry-run=client A=B --template={{.metadata.name}}:", Prints("web:")),
        Row::new(
            "set image pod/web --dry-run=client main=registry.example/web:2 --template={{.metadata.name}}:",
            Prints("web:"),
        ),
        Row::new(
            "set resources pod/web --limits=memory=256Mi --dry-run=client --template={{.metadata.name}}:",
            Prints("web:"),
        ),
        Row::new("set serviceaccount pod/web deployer --dry-run=client --template={{.metadata.name}}:", Prints("web:")),
        Row::new("rollout pause deploy/deploy --template={{.metadata.name}}:", Prints("deploy:")),
        Row::new("rollout history deploy/deploy --template={{.metadata.name}}:", Shows(&["deploy:"])),
        Row::new("rollout resume deploy/deploy --template={{.metadata.name}}:", Prints("deploy:")),
        Row::new("rollout undo deploy/deploy --to-revision=1 --template={{.metadata.name}}:", Prints("deploy:")),
        Row::new(
            "create configmap cm --dry-run=client --template={{.metadata.name}}: --output yaml",
            Says(&["kind: ConfigMap"]),
        ),
        Row::new("delete cronjob/pi pod/web deployment/deploy", Succeeds),
        // What is sent, kept beside the object.
        Row::new("create -f $DIR/pod.json --save-config", Succeeds),
        Row::new("get pods web -o yaml", Says(&["last-applied-configuration"])),
        Row::new("delete pod web", Succeeds),
        Row::new("create -f $DIR/pod.json", Succeeds),
        Row::new("replace -f $DIR/pod.json --save-config", Succeeds),
        Row::new("get pods web -o yaml", Says(&["last-applied-configuration"])),
        Row::new("delete pod web", Succeeds),
        Row::new("run web --image=registry.example/web:1 --save-config", Succeeds),
        Row::new("get pods web -o yaml", Says(&["last-applied-configuration"])),
        Row::new("create -f $DIR/rc.yaml", Succeeds),
        Row::new("get rc front -o yaml", Omits(&["last-applied-configuration"])),
        Row::new("expose rc front --save-config --port=80 --target-port=8000", Succeeds),
        Row::new("get svc front -o yaml", Says(&["last-applied-configuration"])),
        Row::new("autoscale -f $DIR/rc.yaml --save-config --max=2", Succeeds),
        Row::new("get hpa front -o yaml", Says(&["last-applied-configuration"])),
        Row::new("get hpa.autoscaling -o jsonpath={.items[0].apiVersion}", Prints("autoscaling/v2")),
        // A part of a group's name will do.
        Row::new("get hpa.autoscal -o jsonpath={.items[0].apiVersion}", Prints("autoscaling/v2")),
        Row::new(
            "get horizontalpodautoscalers.v1.autoscaling -o jsonpath={.items[0].apiVersion}",
            Prints("autoscaling/v1"),
        ),
        Row::new("delete hpa/front rc/front svc/front pod/web", Succeeds),
        Row::new(
            "run bad --image=InvalidImageName",
            Fails(&["Invalid image name \"InvalidImageName\": invalid reference format"]),
        ),
        Row::new("run good --image=validname --dry-run=server", Prints("pod/good created (server dry run)")),
    ],
};
