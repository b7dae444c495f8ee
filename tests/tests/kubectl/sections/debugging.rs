//! `debug` and `exec`, as far as they get where no node runs anything.

use super::prelude::*;

const NAMESPACE: &str = "apiVersion: v1
kind: Namespace
metadata: {name: $NS-restricted, labels: {pod-security.kubernetes.io/enforce: restricted}}
";
const RESTRICTED: &str = "apiVersion: v1
kind: Pod
metadata: {name: target}
spec:
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: registry.example/box:1
    securityContext: {runAsUser: 1000, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
";
const IMAGES: &str = "get pod/copy -o jsonpath='{range .spec.containers[*]}{.name}={.image} {end}'";
const EPHEMERAL: &str = "get pod/target -o jsonpath={.spec.ephemeralContainers[*].name}";
const PROBED: &str = "apiVersion: v1
kind: Pod
metadata: {name: probed}
spec:
  containers:
  - {name: target, image: registry.example/web:1, livenessProbe: {httpGet: {path: /, port: 80}}, readinessProbe: {httpGet: {path: /, port: 80}}}
";
/// Of the pod that looks at a node.
const LOOKING: &str = "get pods -o jsonpath='{range .items[*].spec}{.nodeName} {.hostIPC}{.hostNetwork}{.hostPID} {.containers[0].image} {.containers[0].volumeMounts[0].mountPath}{.volumes[0].hostPath.path}{end}'";

pub(crate) const DEBUGGING: Section = Section {
    name: "debugging",
    files: &[("restricted.yaml", RESTRICTED), ("probed.yaml", PROBED), ("namespace.yaml", NAMESPACE)],
    rows: &[
        Row::new("run target --image=registry.example/web:1", Succeeds),
        Row::new("debug target -it --image=registry.example/box:1 --attach=false -c debugger", Succeeds),
        Row::new(EPHEMERAL, Prints("debugger")),
        Row::new(
            "debug target -it --image=registry.example/box:1 --attach=false -c debugger-2 --profile=general",
            Succeeds,
        ),
        Row::new(
            "get pod target -o jsonpath={.spec.ephemeralContainers[1].securityContext.capabilities.add}",
            Prints("[\"SYS_PTRACE\"]"),
        ),
        Row::new(
            "debug target -it --image=registry.example/box:1 --attach=false -c debugger-3 --profile=baseline",
            Succeeds,
        ),
        Row::new("get pod target -o jsonpath={.spec.ephemeralContainers[2].securityContext}", Prints("")),
        Row::new(
            "debug target -it --image=registry.example/box:1 --attach=false -c debugger-4 --profile=restricted",
            Succeeds,
        ),
        Row::new(
            "get pod target -o jsonpath={.spec.ephemeralContainers[3].securityContext.capabilities.drop}",
            Prints("[\"ALL\"]"),
        ),
        Row::new(
            "debug target -it --image=registry.example/box:1 --attach=false -c debugger-5 --profile=netadmin",
            Succeeds,
        ),
        Row::new(
            "get pod target -o jsonpath={.spec.ephemeralContainers[4].securityContext.capabilities.add}",
            Prints("[\"NET_ADMIN\",\"NET_RAW\"]"),
        ),
        Row::new(
            "debug target -it --copy-to=copy --image=registry.example/box:1 --container=debugger --attach=false",
            Succeeds,
        ),
        Row::new(IMAGES, Prints("target=registry.example/web:1 debugger=registry.example/box:1")),
        Row::new("delete pod copy", Succeeds),
        Row::new(
            "debug target -it --copy-to=copy --image=registry.example/box:1 --container=debugger --attach=false --replace",
            Succeeds,
        ),
        Row::new("get pods -o jsonpath={.items[*].metadata.name}", Prints("copy")),
        Row::new("delete pod copy", Succeeds),
        Row::new("run target --image=registry.example/web:1", Succeeds),
        Row::new("debug target --image=registry.example/box:1 --container=target --copy-to=copy -- sleep 1m", Succeeds),
        Row::new(IMAGES, Prints("target=registry.example/box:1")),
        Row::new("delete pod copy", Succeeds),
        Row::new("get pod/target -o yaml", Keeps("target.yaml")),
        Row::new(
            "debug -f $DIR/target.yaml --image=registry.example/box:1 --container=target --copy-to=copy -- sleep 1m",
            Succeeds,
        ),
        Row::new(IMAGES, Prints("target=registry.example/box:1")),
        Row::new("delete pod target copy", Succeeds),
        Row::new("create -f $DIR/probed.yaml", Succeeds),
        Row::new(
            "debug --profile general probed -it --copy-to=copy --image=registry.example/box:1 --container=debugger --attach=false",
            Succeeds,
        ),
        Row::new(IMAGES, Prints("target=registry.example/web:1 debugger=registry.example/box:1")),
        Row::new(
            "get pod/copy -o jsonpath='{.spec.containers[*].livenessProbe}{.spec.containers[*].readinessProbe}{.spec.shareProcessNamespace}'",
            Prints("true"),
        ),
        Row::new("delete pod probed copy", Succeeds),
        // In a namespace that allows little.
        Row::new("create -f $DIR/namespace.yaml", Succeeds),
        Row::new(
            "run target -n $NS-restricted --image=registry.example/web:1",
            Grumbles(&["(Forbidden)", "violates PodSecurity \"restricted:latest\""]),
        ),
        Row::new("create -n $NS-restricted -f $DIR/restricted.yaml", Shows(&["pod/target created"])),
        Row::new(
            "debug -n $NS-restricted target -it --image=registry.example/box:1 --attach=false -c debugger --profile=restricted",
            Succeeds,
        ),
        Row::new(
            "debug -n $NS-restricted target -it --image=registry.example/box:1 --attach=false -c bad --profile=general",
            Fails(&["violates PodSecurity"]),
        ),
        Row::new(
            "get pod target -n $NS-restricted -o jsonpath={.spec.ephemeralContainers[*].name}",
            Prints("debugger"),
        ),
        Row::new("delete namespace $NS-restricted --wait=false", Succeeds),
        Row::new(
            "debug node/127.0.0.1 --image=registry.example/box:1 --attach=false -- true",
            Says(&["Creating debugging pod node-debugger-127.0.0.1-"]),
        ),
        Row::new(LOOKING, Prints("127.0.0.1 truetruetrue registry.example/box:1 /host/")),
        Row::new("delete pods --force --all", Succeeds),
        Row::new(
            "debug --profile baseline node/127.0.0.1 --image=registry.example/box:1 --attach=false -- true",
            Succeeds,
        ),
        Row::new(
            "get pods -o jsonpath='{range .items[*].spec}{.nodeName}{.hostIPC}{.hostNetwork}{.hostPID}{end}'",
            Prints("127.0.0.1"),
        ),
        Row::new("delete pods --force --all", Succeeds),
    ],
};

const PODS: &str = "---\n{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: main, image: registry.example/web:1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: two}, spec: {containers: [{name: main, image: registry.example/web:1}]}}
";

pub(crate) const EXEC: Section = Section {
    name: "exec",
    files: &[("pods.yaml", PODS)],
    rows: &[
        Row::new("exec abc -- date", Fails(&["pods \"abc\" not found"])),
        Row::new("exec -f $DIR/pods.yaml -- echo test", Fails(&["cannot exec into multiple objects at a time"])),
        Row::new("create -f $DIR/pods.yaml", Succeeds),
        Row::new("exec one -- date", Fails(&["pod one does not have a host assigned"])),
        Row::new("attach one", Fails(&["pod one does not have a host assigned"])),
        Row::new("logs one", Prints("")),
        Row::new("exec nothing/bar -- date", Fails(&["error: the server doesn't have a resource type \"nothing\""])),
        Row::new("exec deployments/bar -- date", Fails(&["deployments.apps \"bar\" not found"])),
        Row::new("create configmap held", Succeeds),
        Row::new("exec configmap/held -- date", Fails(&["not implemented"])),
        Row::new("exec pods/one -- date", Fails(&["does not have a host assigned"])),
        Row::new("create deployment many --image=registry.example/web:1", Succeeds),
        Row::new("get pods -l app=many -o jsonpath={.items[*].status.phase}", Comes("Pending")),
        Row::new("exec deployment/many -- date", Fails(&["does not have a host assigned"])),
        Row::new("cp one:/etc/hosts $DIR/hosts", Fails(&["does not have a host assigned"])),
        Row::new(
            "port-forward pod/one :80",
            Fails(&["unable to forward port because pod is not running. Current status=Pending"]),
        ),
        Row::new("delete deployment/many configmap/held pod/one pod/two", Succeeds),
    ],
};
