use api_machinery::meta::OwnerReference;
use api_types::authentication_v1::BoundObjectReference;
use api_types::coordination_v1::Lease;
use api_types::core_v1::{LocalObjectReference, PodExtendedResourceClaimStatus, Taint};
use pki::{AltNames, KeyAlgorithm, Name, PrivateKey};

use super::*;
use crate::Settings;
use crate::plugins::testing::{Fixture, create};

fn fixture() -> Fixture {
    let mut node = Node::default();
    node.metadata.name = "n1".into();
    node.metadata.uid = "node-uid".into();
    let mut mine = Pod::default();
    (mine.metadata.name, mine.metadata.namespace, mine.metadata.uid) = ("mine".into(), "a".into(), "pod-uid".into());
    mine.spec.node_name = "n1".into();
    let mut other = mine.clone();
    other.metadata.name = "other".into();
    other.spec.node_name = "n2".into();
    Fixture::default().with(vec![node]).with(vec![mine, other])
}

fn by_node(group: &str, resource: &str, name: &str) -> Attributes {
    let user =
        UserInfo { username: "system:node:n1".into(), groups: vec!["system:nodes".into()], ..UserInfo::default() };
    Attributes { user: user.into(), name: name.into(), namespace: "a".into(), ..create(group, resource) }
}

fn mirror() -> Pod {
    let mut pod = Pod::default();
    pod.metadata.annotations.insert(MIRROR_POD_ANNOTATION_KEY.into(), "x".into());
    pod.spec.node_name = "n1".into();
    pod.metadata.owner_references.push(OwnerReference {
        api_version: "v1".into(),
        kind: "Node".into(),
        name: "n1".into(),
        uid: "node-uid".into(),
        controller: Some(true),
        block_owner_deletion: None,
    });
    pod
}

#[track_caller]
fn refused(outcome: Result<(), ApiError>, part: &str) {
    let message = outcome.expect_err(part).message;
    assert!(message.contains(part), "{message}");
}

#[tokio::test]
async fn only_mirror_pods_of_the_node_itself_are_created() {
    let (fixture, attributes) = (fixture(), by_node("", "pods", "p"));
    fixture.mutate(&ENTRY, &attributes, &mut mirror()).await.unwrap();
    type Change = fn(&mut Pod);
    let cases: [(Change, &str); 7] = [
        (|pod| pod.metadata.annotations.clear(), "can only create mirror pods"),
        (|pod| pod.spec.node_name = "n2".into(), "spec.nodeName set to itself"),
        (|pod| pod.metadata.owner_references.clear(), "an owner reference set to itself"),
        (|pod| pod.metadata.owner_references[0].uid = "x".into(), "UID mismatch"),
        (|pod| pod.metadata.owner_references[0].controller = None, "a controller owner reference"),
        (|pod| pod.spec.service_account_name = "x".into(), "reference serviceaccounts"),
        (|pod| pod.spec.image_pull_secrets.push(LocalObjectReference::default()), "reference secrets"),
    ];
    for (change, part) in cases {
        let mut pod = mirror();
        change(&mut pod);
        refused(fixture.mutate(&ENTRY, &attributes, &mut pod).await, part);
    }
}

#[tokio::test]
async fn only_the_nodes_own_pods_are_deleted() {
    let fixture = fixture();
    for (name, expected) in [("mine", None), ("other", Some("can only delete pods")), ("none", Some("not found"))] {
        let attributes = Attributes { operation: Operation::Delete, ..by_node("", "pods", name) };
        let outcome = fixture.mutate(&ENTRY, &attributes, &mut Pod::default()).await;
        match expected {
            Some(part) => refused(outcome, part),
            None => outcome.unwrap(),
        }
    }
}

#[tokio::test]
async fn a_node_neither_taints_nor_labels_itself_at_will() {
    let fixture = fixture();
    let plugin = (ENTRY.build)(&Settings::default());
    let attributes = Attributes { operation: Operation::Update, ..by_node("", "nodes", "n1") };
    let context = fixture.context();
    let old = Node::clone(&context.lookup.get("", "n1").unwrap());
    type Change = fn(&mut Node);
    let cases: [(Change, &str); 3] = [
        (|node| node.spec.taints.push(Taint::default()), "modify taints"),
        (|node| node.metadata.owner_references.push(OwnerReference::default()), "modify ownerReferences"),
        (
            |node| drop(node.metadata.labels.insert("node-restriction.kubernetes.io/x".into(), "y".into())),
            "modify labels: node-restriction.kubernetes.io/x",
        ),
    ];
    for (change, part) in cases {
        let mut new = old.clone();
        change(&mut new);
        refused(plugin.mutate(&context, &attributes, Some(&mut new), Some(&old)).await, part);
    }
    let other = Attributes { name: "n2".into(), ..attributes.clone() };
    refused(
        plugin.mutate(&context, &other, Some(&mut old.clone()), Some(&old)).await,
        "not allowed to modify node \"n2\"",
    );
    plugin.mutate(&context, &attributes, Some(&mut old.clone()), Some(&old)).await.unwrap();
}

#[tokio::test]
async fn kubelets_ask_for_their_own_certificates_only() {
    let fixture = fixture();
    let pem = |name: &str| {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let made = CertificateRequest::create(&key, &Name::new(name, &["system:nodes".into()]), &AltNames::default());
        made.unwrap().to_pem().into_bytes()
    };
    let [serving, client] = KUBELET_SIGNERS;
    for (signer, body, expected) in [
        (serving, pem("system:node:n1"), None),
        (client, pem("system:node:n1"), None),
        (serving, pem("system:node:n2"), Some("can only create a node CSR with CN=system:node:n1")),
        (client, pem("system:node:n2"), Some("can only create a node CSR with CN=system:node:n1")),
        (client, b"nonsense".to_vec(), Some("unable to parse csr: ")),
        ("example.com/own", pem("system:node:n2"), None),
    ] {
        let mut request = CertificateSigningRequest::default();
        request.spec.signer_name = signer.into();
        request.spec.request.0 = body;
        let attributes = by_node("certificates.k8s.io", "certificatesigningrequests", "x");
        match (fixture.mutate(&ENTRY, &attributes, &mut request).await, expected) {
            (Ok(()), None) => {}
            (outcome, Some(part)) => refused(outcome, part),
            (outcome, None) => panic!("{signer}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn gates_loosen_what_nodes_ask_for() {
    let fixture = fixture();
    let context = fixture.context();
    let certificate = by_node("certificates.k8s.io", "certificatesigningrequests", "x");
    let mut request = CertificateSigningRequest::default();
    request.spec.signer_name = KUBELET_SIGNERS[0].into();
    request.spec.request.0 = b"nonsense".to_vec();
    for (insecure_kubelet_requests, is_refused) in [(true, false), (false, true)] {
        let plugin = (ENTRY.build)(&Settings { insecure_kubelet_requests, ..Settings::default() });
        let outcome = plugin.mutate(&context, &certificate, Some(&mut request), None).await;
        assert_eq!(outcome.is_err(), is_refused, "{insecure_kubelet_requests}");
    }
    let token = Attributes { subresource: "token".into(), ..by_node("", "serviceaccounts", "default") };
    let mut request = TokenRequest::default();
    request.spec.bound_object_ref = Some(BoundObjectReference {
        kind: "Pod".into(),
        api_version: "v1".into(),
        name: "mine".into(),
        uid: "pod-uid".into(),
    });
    request.spec.audiences = vec!["one".into(), "other".into()];
    for (node_audiences, is_refused) in [(true, true), (false, false)] {
        let plugin = (ENTRY.build)(&Settings { node_audiences, ..Settings::default() });
        let outcome = plugin.mutate(&context, &token, Some(&mut request), None).await;
        assert_eq!(outcome.is_err(), is_refused, "{node_audiences}");
    }
}

#[tokio::test]
async fn leases_and_tokens_are_the_nodes_own() {
    let fixture = fixture();
    let lease = by_node("coordination.k8s.io", "leases", "n1");
    refused(fixture.mutate(&ENTRY, &lease, &mut Lease::default()).await, "kube-node-lease");
    let lease = Attributes { namespace: LEASE_NAMESPACE.into(), ..lease };
    let mut own = Lease::default();
    own.metadata.name = "n1".into();
    fixture.mutate(&ENTRY, &lease, &mut own).await.unwrap();
    let unnamed = Attributes { name: String::new(), ..lease.clone() };
    refused(fixture.mutate(&ENTRY, &unnamed, &mut Lease::default()).await, "same name as the requesting node");
    let other = Attributes { name: "n2".into(), operation: Operation::Delete, ..lease };
    refused(fixture.mutate(&ENTRY, &other, &mut own).await, "same name as the requesting node");

    let token = Attributes { subresource: "token".into(), ..by_node("", "serviceaccounts", "default") };
    let bound = |name: &str, uid: &str| {
        let reference =
            BoundObjectReference { kind: "Pod".into(), api_version: "v1".into(), name: name.into(), uid: uid.into() };
        let mut request = TokenRequest::default();
        request.spec.bound_object_ref = Some(reference);
        request
    };
    for (mut request, part) in [
        (TokenRequest::default(), "not bound to a pod"),
        (bound("mine", ""), "without a uid"),
        (bound("mine", "stale"), "does not match the UID"),
        (bound("other", "pod-uid"), "scheduled on a different node"),
        (bound("mine", "pod-uid"), "not found in pod spec volume"),
    ] {
        refused(fixture.mutate(&ENTRY, &token, &mut request).await, part);
    }
}

#[tokio::test]
async fn a_status_brings_neither_labels_nor_claims() {
    let (plugin, fixture) = ((ENTRY.build)(&Settings::default()), fixture());
    let context = fixture.context();
    let [mine, other] = ["mine", "other"].map(|name| Pod::clone(&context.lookup.get::<Pod>("a", name).unwrap()));
    let attributes =
        Attributes { operation: Operation::Update, subresource: "status".into(), ..by_node("", "pods", "mine") };
    type Change = fn(&mut Pod);
    let cases: [(Change, &str); 3] = [
        (|pod| drop(pod.metadata.labels.insert("a".into(), "b".into())), "cannot update labels through pod status"),
        (|pod| pod.status.resource_claim_statuses.push(Default::default()), "cannot update resource claim statues"),
        (
            |pod| pod.status.extended_resource_claim_status = Some(PodExtendedResourceClaimStatus::default()),
            "cannot update extended resource claim status",
        ),
    ];
    for (change, part) in cases {
        let mut new = mine.clone();
        change(&mut new);
        refused(plugin.mutate(&context, &attributes, Some(&mut new), Some(&mine)).await, part);
    }
    let outcome = plugin.mutate(&context, &attributes, Some(&mut other.clone()), Some(&other)).await;
    refused(outcome, "can only update pod status for pods with spec.nodeName set to itself");
    plugin.mutate(&context, &attributes, Some(&mut mine.clone()), Some(&mine)).await.unwrap();
}

#[tokio::test]
async fn of_a_claim_only_its_growth_is_told() {
    let (plugin, fixture) = ((ENTRY.build)(&Settings::default()), fixture());
    let context = fixture.context();
    let attributes = Attributes {
        operation: Operation::Update,
        subresource: "status".into(),
        ..by_node("", "persistentvolumeclaims", "c")
    };
    let mut old = PersistentVolumeClaim::default();
    (old.metadata.resource_version, old.status.phase) = ("1".into(), "Bound".into());
    type Change = fn(&mut PersistentVolumeClaim);
    let cases: [(Change, Option<&str>); 3] = [
        (|claim| drop(claim.status.capacity.insert("storage".into(), Default::default())), None),
        (|claim| claim.metadata.resource_version.clear(), None),
        (
            |claim| claim.status.phase = "Lost".into(),
            Some(
                "node \"n1\" is not allowed to update fields other than status.quantity and status.conditions: \
                 -{\"status\":{\"phase\":\"Bound\"}} +{\"status\":{\"phase\":\"Lost\"}}",
            ),
        ),
    ];
    for (change, expected) in cases {
        let mut new = old.clone();
        change(&mut new);
        let outcome = plugin.mutate(&context, &attributes, Some(&mut new), Some(&old)).await;
        match expected {
            None => outcome.unwrap(),
            Some(part) => refused(outcome, part),
        }
    }
}

#[tokio::test]
async fn slices_are_those_of_the_nodes_own_devices() {
    let (plugin, fixture) = ((ENTRY.build)(&Settings::default()), fixture());
    let context = fixture.context();
    let slice = |node: Option<&str>| -> Box<dyn Object> {
        let mut slice = ResourceSlice::default();
        slice.spec.node_name = node.map(str::to_owned);
        Box::new(slice)
    };
    let first = |node: &str| -> Box<dyn Object> {
        let mut slice = FirstSlice::default();
        slice.spec.node_name = node.into();
        Box::new(slice)
    };
    for (mut slice, is_own) in [
        (slice(Some("n1")), true),
        (slice(Some("n2")), false),
        (slice(None), false),
        (first("n1"), true),
        (first("n2"), false),
    ] {
        for (operation, verb) in [(Operation::Create, "create"), (Operation::Delete, "delete")] {
            let attributes = Attributes { operation, ..by_node("resource.k8s.io", "resourceslices", "x") };
            let outcome = match operation {
                Operation::Delete => plugin.mutate(&context, &attributes, None, Some(&*slice)).await,
                _ => plugin.mutate(&context, &attributes, Some(&mut *slice), None).await,
            };
            match is_own {
                true => outcome.unwrap(),
                false => refused(outcome, &format!("can only {verb} ResourceSlice with the same NodeName as the")),
            }
        }
        let update = Attributes { operation: Operation::Update, ..by_node("resource.k8s.io", "resourceslices", "x") };
        let old = slice.clone_object();
        plugin.mutate(&context, &update, Some(&mut *slice), Some(&*old)).await.unwrap();
    }
}
