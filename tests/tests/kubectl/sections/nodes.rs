//! A node that nobody runs: described, patched, tainted, cordoned and drained.

use super::prelude::*;

const PODS: &str = "---\n{apiVersion: v1, kind: Pod, metadata: {name: one, labels: {e: f, kind: judged}}, spec: {nodeName: 127.0.0.1, containers: [{name: main, image: registry.example/web:1}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: two, labels: {c: d, kind: judged}}, spec: {nodeName: 127.0.0.1, containers: [{name: main, image: registry.example/web:1}]}}
";
const TAINTS: &str = "get node 127.0.0.1 -o 'go-template={{range .spec.taints}}{{if eq .key \"dedicated\"}}{{.key}}={{.value}}:{{.effect}}{{end}}{{end}}'";
const UNSCHEDULABLE: &str = "get node 127.0.0.1 -o go-template={{.spec.unschedulable}}";

pub(crate) const NODES: Section = Section {
    name: "nodes",
    files: &[("pods.yaml", PODS)],
    rows: &[
        Row::new("get nodes -o go-template={{.apiVersion}}", Prints("v1")),
        Row::new("get nodes", Says(&["NAME", "STATUS", "ROLES", "AGE", "VERSION", "127.0.0.1"])),
        Row::new("get nodes --all-namespaces", Omits(&["NAMESPACE"])),
        Row::new("describe nodes 127.0.0.1 --show-events=false", Omits(&["Events:"])),
        // One that somebody else deletes meanwhile makes it fail.
        Row::new(
            "describe --chunk-size=1 --v=6 nodes",
            Shows(&["/nodes?limit=1", "/pods?fieldSelector=spec.nodeName%3D127.0.0.1"]),
        ),
        Row::new(UNSCHEDULABLE, Prints("<no value>")),
        Row::new("patch nodes 127.0.0.1 -p {\"spec\":{\"unschedulable\":true}}", Succeeds),
        Row::new(UNSCHEDULABLE, Prints("true")),
        Row::new("patch nodes 127.0.0.1 -p {\"spec\":{\"unschedulable\":null}}", Succeeds),
        Row::new(UNSCHEDULABLE, Prints("<no value>")),
        Row::new("create -f $DIR/pods.yaml", Succeeds),
        Row::new(TAINTS, Prints("")),
        Row::new(
            "taint node 127.0.0.1 --dry-run=client dedicated=foo:PreferNoSchedule",
            Says(&["node/127.0.0.1 tainted"]),
        ),
        Row::new(
            "taint node 127.0.0.1 --dry-run=server dedicated=foo:PreferNoSchedule",
            Says(&["node/127.0.0.1 tainted"]),
        ),
        Row::new(TAINTS, Prints("")),
        Row::new("taint node 127.0.0.1 dedicated=foo:PreferNoSchedule", Prints("node/127.0.0.1 tainted")),
        Row::new(TAINTS, Prints("dedicated=foo:PreferNoSchedule")),
        Row::new("taint node 127.0.0.1 dedicated-", Prints("node/127.0.0.1 untainted")),
        // Taints are one value: whoever wrote them last owns them, and controllers write some, too.
        Row::new(
            "taint node 127.0.0.1 dedicated:PreferNoSchedule -o json --show-managed-fields",
            Says(&["\"manager\": \"kubectl-taint\""]),
        ),
        Row::new(TAINTS, Prints("dedicated=<no value>:PreferNoSchedule")),
        Row::new("taint node 127.0.0.1 --dry-run=client dedicated-", Succeeds),
        Row::new("taint node 127.0.0.1 --dry-run=server dedicated-", Succeeds),
        Row::new(TAINTS, Prints("dedicated=<no value>:PreferNoSchedule")),
        Row::new("taint node 127.0.0.1 dedicated-", Succeeds),
        Row::new(TAINTS, Prints("")),
        Row::new(
            "taint node 127.0.0.1 judged=foo:PreferNoSchedule --template={{.metadata.name}}:",
            Prints("127.0.0.1:"),
        ),
        Row::new("taint node 127.0.0.1 judged-", Succeeds),
        Row::new("cordon 127.0.0.1 --dry-run=client", Says(&["cordoned (dry run)"])),
        Row::new("cordon 127.0.0.1 --dry-run=server", Says(&["cordoned (server dry run)"])),
        Row::new("drain 127.0.0.1 --dry-run=client --force", Succeeds),
        Row::new("drain 127.0.0.1 --dry-run=server --force", Succeeds),
        Row::new(UNSCHEDULABLE, Prints("<no value>")),
        Row::new(
            "drain 127.0.0.1 --pod-selector 'e in (f)' --dry-run=client --force",
            Says(&["evicting pod $NS/one (dry run)"]),
        ),
        Row::new(
            "drain 127.0.0.1 --pod-selector 'e in (f)' --dry-run=server --force",
            Says(&["evicting pod $NS/one (server dry run)"]),
        ),
        Row::new("get pods -o jsonpath={.items[*].metadata.name}", Prints("one two")),
        Row::new(
            "drain 127.0.0.1 --force --pod-selector 'e in (f)' --skip-wait-for-delete-timeout=1",
            Says(&["evicting pod $NS/one"]),
        ),
        Row::new("get pods/one -o go-template={{.metadata.deletionTimestamp}}", Omits(&["<no value>"])),
        Row::new("get pods/two -o go-template={{.metadata.deletionTimestamp}}", Prints("<no value>")),
        Row::new("delete pod one two --force --ignore-not-found", Succeeds),
        Row::new("create -f $DIR/pods.yaml", Succeeds),
        Row::new("uncordon 127.0.0.1", Says(&["node/127.0.0.1 uncordoned"])),
        Row::new(UNSCHEDULABLE, Prints("<no value>")),
        Row::new("uncordon 127.0.0.1 --dry-run=client", Says(&["already uncordoned"])),
        Row::new("uncordon 127.0.0.1 --dry-run=server", Says(&["already uncordoned"])),
        Row::new("label node 127.0.0.1 test=label", Succeeds),
        Row::new(
            "drain 127.0.0.1 --selector test=label",
            Fails(&["cannot specify both a node name and a --selector option"]),
        ),
        Row::new(
            "--v=6 drain --force --pod-selector kind=judged --selector test=label --chunk-size=1 --dry-run=client",
            Says(&[
                "/v1/nodes?labelSelector=test%3Dlabel&limit=1",
                "/v1/pods?fieldSelector=spec.nodeName%3D127.0.0.1&labelSelector=kind%3Djudged&limit=1",
                "/v1/pods?continue=",
                "evicting pod $NS/one",
                "evicting pod $NS/two",
            ]),
        ),
        Row::new(
            "--v=6 drain --force --selector test=label --dry-run=client",
            Says(&["/v1/nodes?labelSelector=test%3Dlabel&limit=500"]),
        ),
        Row::new("cordon", Fails(&["USAGE: cordon NODE"])),
        Row::new("cordon --selector=", Fails(&["must provide one or more resources"])),
        Row::new("cordon --selector test=label", Prints("node/127.0.0.1 cordoned")),
        Row::new("cordon --selector invalid=label", Omits(&["cordoned"])),
        Row::new(UNSCHEDULABLE, Prints("true")),
        // It has not been heard of for a while now, which is a condition.
        Row::new(
            "describe nodes 127.0.0.1",
            Shows(&[
                "Name:",
                "Labels:",
                "CreationTimestamp:",
                "Conditions:",
                "Addresses:",
                "Capacity:",
                "memory:  1Gi",
                "Pods:",
                "Events:",
            ]),
        ),
        Row::new("uncordon 127.0.0.1", Succeeds),
        Row::new("label node 127.0.0.1 test-", Succeeds),
        Row::new("delete pod one two --force", Succeeds),
    ],
};

const CLAIMS: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim-1}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 3Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim-2}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Gi}}}
";
const LOCAL: &str = "apiVersion: v1
kind: PersistentVolume
metadata: {name: judged-1, labels: {type: local}}
spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/data01}}
";
const DISK: &str = "apiVersion: v1
kind: PersistentVolume
metadata: {name: judged-2}
spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce, ReadOnlyMany], gcePersistentDisk: {pdName: disk, fsType: ext4}}
";
const CLASS: &str = r#"{"kind":"StorageClass","apiVersion":"storage.k8s.io/v1","metadata":{"name":"judged"},
    "provisioner":"kubernetes.io/fake-provisioner-type","parameters":{"zone":"us-east-1b","type":"ssd"}}"#;

pub(crate) const STORAGE: Section = Section {
    name: "storage",
    files: &[("claims.yaml", CLAIMS), ("local.yaml", LOCAL), ("disk.yaml", DISK), ("class.json", CLASS)],
    rows: &[
        Row::new("create -f $DIR/local.yaml", Prints("persistentvolume/judged-1 created")),
        Row::new(
            "get pv",
            Says(&[
                "CAPACITY",
                "ACCESS MODES",
                "RECLAIM POLICY",
                "VOLUMEATTRIBUTESCLASS",
                "judged-1",
                "10Gi",
                "RWO",
                "Retain",
            ]),
        ),
        Row::new("delete pv judged-1", Prints("persistentvolume \"judged-1\" deleted")),
        Row::new("create -f $DIR/disk.yaml", Succeeds),
        Row::new(
            "describe --chunk-size=1 --v=6 persistentvolumes",
            Says(&["/persistentvolumes?limit=1", "GCEPersistentDisk", "PDName:"]),
        ),
        Row::new("delete pv judged-2", Succeeds),
        Row::new("get pv -o name", Prints("")),
        Row::new("create -f $DIR/local.yaml", Succeeds),
        Row::new(
            "delete pv -n test --all",
            Grumbles(&["deleting cluster-scoped resources", "persistentvolume \"judged-1\" deleted"]),
        ),
        Row::new("get pv -o name", Prints("")),
        Row::new("create -f $DIR/claims.yaml", Succeeds),
        Row::new("get pvc", Says(&["NAME", "STATUS", "VOLUME", "claim-1", "claim-2", "Pending"])),
        Row::new(
            "describe --chunk-size=1 --v=6 persistentvolumeclaims",
            Says(&["/persistentvolumeclaims?limit=1", "continue=", "Used By:"]),
        ),
        Row::new(
            "describe pvc claim-1",
            Shows(&["FailedBinding", "no persistent volumes available for this claim and no storage class is set"]),
        ),
        Row::new("delete pvc claim-1 claim-2", Succeeds),
        Row::new("get pvc -o name", Prints("")),
        Row::new("create -f $DIR/class.json", Succeeds),
        Row::new("get storageclass -o name", Prints("storageclass.storage.k8s.io/judged")),
        Row::new(
            "get sc judged",
            Says(&[
                "PROVISIONER",
                "RECLAIMPOLICY",
                "VOLUMEBINDINGMODE",
                "ALLOWVOLUMEEXPANSION",
                "Delete",
                "Immediate",
                "false",
            ]),
        ),
        Row::new(
            "describe --chunk-size=1 --v=6 storageclasses",
            Says(&["/storageclasses?limit=1", "type=ssd,zone=us-east-1b"]),
        ),
        Row::new("delete storageclass judged", Succeeds),
    ],
};
