//! What nodes may do, as a table.

use api_machinery::object;
use api_types::core_v1::{PersistentVolume, Pod};
use component_base::shared_gates::{CLUSTER_TRUST_BUNDLE, CREDENTIAL_TOKENS};
use serde_json::{Value, json};

use super::*;
use crate::{Decision, SelectorRequirement};

fn pod(value: &Value) -> Pod {
    object::from_value(value).unwrap()
}

fn bound_pod(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "n", "uid": name},
        "spec": {
            "nodeName": node,
            "serviceAccountName": "robot",
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [{
                "name": "c",
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}}],
                "envFrom": [{"configMapRef": {"name": "env-map"}}],
            }],
            "volumes": [
                {"name": "a", "secret": {"secretName": "volume"}},
                {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "map"}}]}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            ],
        },
    })
}

fn set_pod(graph: &Graph, value: &Value) {
    let pod = pod(value);
    graph.set_pod(&format!("{}/{}", pod.metadata.namespace, pod.metadata.name).into(), &pod);
}

fn authorizer() -> NodeAuthorizer {
    let graph = Graph::default();
    set_pod(&graph, &bound_pod("p", "one"));
    let volume: PersistentVolume = object::from_value(&json!({
        "metadata": {"name": "pv"},
        "spec": {
            "claimRef": {"namespace": "n", "name": "claim"},
            "csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"namespace": "s", "name": "publish"},
                "controllerPublishSecretRef": {"namespace": "s", "name": "controller"}},
        },
    }))
    .unwrap();
    graph.set_volume(&volume);
    for name in ["attached", "gone"] {
        graph.set_named(NodeObject::Attachment, "", name, "one");
    }
    graph.delete_named(NodeObject::Attachment, "", "gone");
    for name in ["slice", "moved"] {
        graph.set_named(NodeObject::Slice, "", name, "one");
    }
    graph.set_named(NodeObject::Slice, "", "moved", "");
    graph.set_named(NodeObject::CertificateRequest, "n", "request", "one");
    let gates = [POD_CERTIFICATE_REQUEST, CLUSTER_TRUST_BUNDLE].into_iter();
    let gates = gates.fold(Gates::default(), |gates, feature| gates.with(feature, true));
    NodeAuthorizer::new(Arc::new(graph), &gates)
}

/// `verb group/resource[/subresource] [namespace/]name`
fn ask(authorizer: &NodeAuthorizer, node: &str, question: &str) -> Outcome {
    let mut words = question.split(' ');
    let verb = words.next().unwrap().to_owned();
    let mut path = words.next().unwrap().split('/');
    let (group, resource) = (path.next().unwrap().to_owned(), path.next().unwrap().to_owned());
    let subresource = path.next().unwrap_or_default().to_owned();
    let (namespace, name) = words.next().unwrap_or("/").split_once('/').unwrap();
    authorizer.decide(&Attributes {
        user: UserInfo {
            username: format!("system:node:{node}"),
            groups: vec![GROUP.to_owned()],
            ..UserInfo::default()
        }
        .into(),
        verb,
        resource_request: true,
        group,
        resource,
        subresource,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    })
}

#[test]
fn nodes_read_what_their_pods_need() {
    let authorizer = authorizer();
    let allowed = [
        "get /secrets n/pull",
        "watch /secrets n/env",
        "list /secrets n/volume",
        "get /secrets n/projected",
        "get /secrets s/publish",
        "get /configmaps n/env-map",
        "get /configmaps n/map",
        "get /persistentvolumeclaims n/claim",
        "get /persistentvolumeclaims n/p-d",
        "patch /persistentvolumeclaims/status n/claim",
        "get /persistentvolumes /pv",
        "get storage.k8s.io/volumeattachments /attached",
        "create /serviceaccounts/token n/robot",
        "get /serviceaccounts n/robot",
        "get /pods n/p",
        "get resource.k8s.io/resourceslices /slice",
        "update resource.k8s.io/resourceslices /slice",
        "get certificates.k8s.io/podcertificaterequests n/request",
    ];
    for question in allowed {
        assert_eq!(ask(&authorizer, "one", question).decision, Decision::Allow, "{question}");
        assert_eq!(ask(&authorizer, "two", question).decision, Decision::NoOpinion, "{question} of another node");
    }
}

#[test]
fn nodes_keep_their_own_objects() {
    let authorizer = authorizer();
    let cases = [
        ("get /nodes /one", None),
        ("get /nodes /two", Some("node 'one' cannot read 'two', only its own Node object")),
        ("list /nodes /", Some("node 'one' cannot read all nodes, only its own Node object")),
        ("patch /nodes/status /one", None),
        ("update coordination.k8s.io/leases kube-node-lease/one", None),
        ("create coordination.k8s.io/leases kube-node-lease/", None),
        (
            "update coordination.k8s.io/leases kube-node-lease/two",
            Some("can only access node lease with the same name as the requesting node"),
        ),
        (
            "get coordination.k8s.io/leases default/one",
            Some("can only access leases in the \"kube-node-lease\" system namespace"),
        ),
        ("get /persistentvolumeclaims/status n/claim", Some("can only get/update/patch this type")),
        ("update /secrets n/pull", Some("can only read resources of this type")),
        ("get /secrets n/other", Some("no relationship found between node 'one' and this object")),
        ("get /secrets s/controller", Some("no relationship found between node 'one' and this object")),
        ("list /secrets n/", Some("No Object name found")),
        ("list /pods /", Some("can only list/watch pods with spec.nodeName field selector")),
        ("create /pods n/", None),
        ("create /events n/", None),
        ("delete /services n/s", Some("")),
        ("create resource.k8s.io/resourceslices /", None),
        (
            "delete resource.k8s.io/resourceslices /moved",
            Some("no relationship found between node 'one' and this object"),
        ),
        (
            "list resource.k8s.io/resourceslices /",
            Some("can only list/watch/deletecollection resourceslices with nodeName field selector"),
        ),
        ("create certificates.k8s.io/podcertificaterequests n/", None),
        (
            "watch certificates.k8s.io/podcertificaterequests /",
            Some("can only list/watch podcertificaterequests with nodeName field selector"),
        ),
        (
            "delete certificates.k8s.io/podcertificaterequests n/request",
            Some("nodes may not delete podcertificaterequests"),
        ),
        ("watch certificates.k8s.io/clustertrustbundles /", None),
    ];
    for (question, refusal) in cases {
        let outcome = ask(&authorizer, "one", question);
        let found = (outcome.decision != Decision::Allow).then_some(outcome.reason.as_str());
        assert_eq!(found, refusal, "{question}");
    }
    assert_eq!(ask(&authorizer, "", "get /nodes /one").reason, "unknown node for user \"system:node:\"");
}

#[test]
fn what_is_behind_gates_is_nobodys_without_them() {
    let authorizer = NodeAuthorizer::new(Arc::default(), &Gates::default());
    for question in [
        "create certificates.k8s.io/podcertificaterequests n/",
        "get certificates.k8s.io/podcertificaterequests n/request",
        "watch certificates.k8s.io/clustertrustbundles /",
    ] {
        let outcome = ask(&authorizer, "one", question);
        assert_eq!((outcome.decision, outcome.reason.as_str()), (Decision::NoOpinion, ""), "{question}");
    }
}

#[test]
fn accounts_are_read_where_something_is_made_of_them() {
    let read = |credentials: bool, certificates: bool| {
        let gates = Gates::default().with(CREDENTIAL_TOKENS, credentials).with(POD_CERTIFICATE_REQUEST, certificates);
        let graph = authorizer().graph;
        ask(&NodeAuthorizer::new(graph, &gates), "one", "get /serviceaccounts n/robot")
    };
    for (credentials, certificates, expected) in [
        (true, false, Decision::Allow),
        (false, true, Decision::Allow),
        (true, true, Decision::Allow),
        (false, false, Decision::NoOpinion),
    ] {
        assert_eq!(read(credentials, certificates).decision, expected, "{credentials} {certificates}");
    }
    assert_eq!(read(false, false).reason, "not allowed to get service accounts");
}

#[test]
fn links_end_with_their_pod() {
    let authorizer = authorizer();
    let graph = &authorizer.graph;
    set_pod(graph, &bound_pod("q", "one"));
    assert_eq!(graph.common(), [1, 2], "each refers to a claim of its own");
    graph.delete_pod("n", "p");
    assert_eq!(ask(&authorizer, "one", "get /secrets n/pull").decision, Decision::Allow, "another pod needs it");
    graph.delete_pod("n", "q");
    assert_eq!(ask(&authorizer, "one", "get /secrets n/pull").decision, Decision::NoOpinion);
    assert_eq!(graph.common(), [0, 0]);
    let mut mirror = bound_pod("m", "one");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    set_pod(graph, &mirror);
    assert_eq!(
        ask(&authorizer, "one", "get /secrets n/pull").decision,
        Decision::NoOpinion,
        "mirror pods give nothing"
    );
    assert_eq!(ask(&authorizer, "one", "get /pods n/m").decision, Decision::Allow);
}

#[test]
fn objects_are_listed_by_node() {
    let authorizer = authorizer();
    let selector = |value: &str| {
        vec![SelectorRequirement { key: "spec.nodeName".into(), operator: "In".into(), values: vec![value.into()] }]
    };
    let user = UserInfo { username: "system:node:one".into(), groups: vec![GROUP.into()], ..UserInfo::default() };
    let kinds =
        [("", "pods"), ("resource.k8s.io", "resourceslices"), ("certificates.k8s.io", "podcertificaterequests")];
    for (group, resource) in kinds {
        for (node, expected) in [("one", Decision::Allow), ("two", Decision::NoOpinion)] {
            let attributes = Attributes {
                user: user.clone().into(),
                verb: "watch".into(),
                resource_request: true,
                group: group.into(),
                resource: resource.into(),
                field_selector: selector(node),
                ..Attributes::default()
            };
            assert_eq!(authorizer.decide(&attributes).decision, expected, "{resource} {node}");
        }
    }
}
