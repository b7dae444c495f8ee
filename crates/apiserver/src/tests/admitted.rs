//! Admission plugins where they meet the server: that each is asked when it must be, and is told what it needs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pki::{AltNames, CertificateRequest, KeyAlgorithm, Name, PrivateKey};

use super::harness::Api;

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn made(api: &Api, path: &str, body: &str) -> serde_json::Value {
    let answer = api.post(path, body).await;
    assert_eq!(answer.code, 201, "{path}: {}", answer.text);
    seen(api, path).await;
    answer.json()
}

/// Plugins look at what is cached, and a read waits until that is as new as what was written.
async fn seen(api: &Api, path: &str) {
    api.get(path).await;
}

#[tokio::test(start_paused = true)]
async fn ingresses_get_the_default_class() {
    ingress_gets_the_default_class(&Api::start().await).await;
}

/// `--watch-cache-sizes` is about readers; what plugins look at is at hand all the same.
#[tokio::test(start_paused = true)]
async fn plugins_find_what_readers_have_no_cache_of() {
    let uncached = ["ingressclasses.networking.k8s.io", "namespaces", "serviceaccounts"].map(str::to_owned);
    ingress_gets_the_default_class(&Api::with(|config| config.storage.uncached.extend(uncached)).await).await;
}

async fn ingress_gets_the_default_class(api: &Api) {
    let marked = r#""annotations":{"ingressclass.kubernetes.io/is-default-class":"true"}"#;
    let class = format!(r#"{{"metadata":{{"name":"main",{marked}}},"spec":{{"controller":"example.com/c"}}}}"#);
    made(api, "/apis/networking.k8s.io/v1/ingressclasses", &class).await;
    let backend = r#"{"service":{"name":"s","port":{"number":80}}}"#;
    let ingress = format!(r#"{{"metadata":{{"name":"i"}},"spec":{{"defaultBackend":{backend}}}}}"#);
    let ingress = made(api, "/apis/networking.k8s.io/v1/namespaces/default/ingresses", &ingress).await;
    assert_eq!(ingress["spec"]["ingressClassName"], "main");
}

#[tokio::test(start_paused = true)]
async fn claims_grow_only_where_their_class_lets_them() {
    let api = Api::start().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    for (class, grows) in [("grows", true), ("stays", false)] {
        let body = format!(r#"{{"metadata":{{"name":"{class}"}},"provisioner":"p","allowVolumeExpansion":{grows}}}"#);
        made(&api, "/apis/storage.k8s.io/v1/storageclasses", &body).await;
        let resources = r#"{"requests":{"storage":"1Gi"}}"#;
        let claim = format!(
            r#"{{"metadata":{{"name":"{class}"}},"spec":{{"accessModes":["ReadWriteOnce"],"storageClassName":"{class}","resources":{resources}}}}}"#
        );
        made(&api, claims, &claim).await;
        let larger = r#"{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}"#;
        let bound = r#"{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}"#;
        let bound = api.patch("merge-patch", &format!("{claims}/{class}/status"), bound).await;
        assert_eq!(bound.code, 200, "{}", bound.text);
        let grown = api.patch("merge-patch", &format!("{claims}/{class}"), larger).await;
        assert_eq!(grown.code, if grows { 200 } else { 403 }, "{}", grown.text);
        assert_eq!(grown.text.contains("only dynamically provisioned pvc can be resized"), !grows, "{}", grown.text);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_for_a_superusers_certificate() {
    let api = Api::start().await;
    for (group, code) in [("developers", 201), ("system:masters", 403)] {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let name = Name::new("jane", &[group.to_owned()]);
        let pem = CertificateRequest::create(&key, &name, &AltNames::default()).unwrap().to_pem();
        let spec = format!(
            r#"{{"request":"{}","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}}"#,
            STANDARD.encode(pem)
        );
        let body = format!(r#"{{"metadata":{{"name":"{code}"}},"spec":{spec}}}"#);
        let answer = api.post("/apis/certificates.k8s.io/v1/certificatesigningrequests", &body).await;
        assert_eq!(answer.code, code, "{}", answer.text);
    }
}

/// A node in a zone, with room for two CPUs.
async fn with_node() -> Api {
    let api = Api::start().await;
    let labels = r#"{"topology.kubernetes.io/zone":"a","topology.kubernetes.io/region":"eu"}"#;
    made(&api, "/api/v1/nodes", &format!(r#"{{"metadata":{{"name":"n1","labels":{labels}}}}}"#)).await;
    let status = r#"{"status":{"allocatable":{"cpu":"2","memory":"1Gi"},"capacity":{"cpu":"2","memory":"1Gi"}}}"#;
    assert_eq!(api.patch("merge-patch", "/api/v1/nodes/n1/status", status).await.code, 200);
    seen(&api, "/api/v1/nodes").await;
    api
}

fn pod(name: &str, node: &str) -> String {
    let container = r#"{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}"#;
    format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"nodeName":"{node}","containers":[{container}]}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn pods_learn_where_they_are() {
    let api = with_node().await;
    let made_there = made(&api, PODS, &pod("made", "n1")).await;
    made(&api, PODS, &pod("bound", "")).await;
    let binding = r#"{"metadata":{"name":"bound"},"target":{"kind":"Node","name":"n1"}}"#;
    made(&api, &format!("{PODS}/bound/binding"), binding).await;
    let bound = api.get(&format!("{PODS}/bound")).await.json();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    for pod in [made_there, bound] {
        let labels = &pod["metadata"]["labels"];
        assert_eq!(labels["topology.kubernetes.io/zone"], "a", "{pod}");
        assert_eq!(labels["topology.kubernetes.io/region"], "eu", "{pod}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_do_not_outgrow_their_node() {
    let api = with_node().await;
    made(&api, PODS, &pod("p", "n1")).await;
    let resized = async |cpu: &str| {
        let body =
            format!(r#"{{"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{cpu}"}}}}}}]}}}}"#);
        api.patch("strategic-merge-patch", &format!("{PODS}/p/resize"), &body).await
    };
    let fits = resized("2").await;
    assert_eq!(fits.code, 200, "{}", fits.text);
    let outgrown = resized("3").await;
    let expected = "pods \"p\" is forbidden: node didn't have enough allocatable resources: cpu, requested: 3000, \
                    allocatable: 2000";
    assert_eq!(outgrown.refusal(), (403, expected.to_owned()));
    assert_eq!(outgrown.json()["details"]["causes"][0]["reason"], "NodeCapacity");
}

#[tokio::test(start_paused = true)]
async fn deletions_pass_plugins_that_change_objects_too() {
    let api = Api::with(|config| config.admission.selection.enabled.push("NodeRestriction".to_owned())).await;
    let refused = api.delete("/api/v1/namespaces/default").await.refusal();
    let text = "namespaces \"default\" is forbidden: this namespace may not be deleted";
    assert_eq!(refused, (403, text.to_owned()));

    for (name, node) in [("own", "n1"), ("other", "n2")] {
        made(&api, PODS, &pod(name, node)).await;
    }
    let node = [("authorization", "Bearer system:node:n1")];
    let refused = api.send(&format!("DELETE {PODS}/other"), &node, "").await.refusal();
    let text = "pods \"other\" is forbidden: node \"n1\" can only delete pods with spec.nodeName set to itself";
    assert_eq!(refused, (403, text.to_owned()));
    assert_eq!(api.send(&format!("DELETE {PODS}/own"), &node, "").await.code, 200);
}
