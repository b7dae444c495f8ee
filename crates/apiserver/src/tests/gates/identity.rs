//! Who clients are, and as whom they act.

use std::time::Duration;

use api_types::authentication_v1::UserInfo;
use base::TokioClock;
use component_base::Gates;
use component_base::lifecycle::Lifecycle;

use crate::aggregation::state::Aggregation;
use crate::config::{JwtConfig, ServerConfig};
use crate::server::Server;
use crate::tests::harness::Api;

/// What alice is refused who wants to list config maps as somebody else.
pub(super) async fn impersonated(gates: Gates) -> String {
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), |_| {}).await;
    let headers = [("authorization", "Bearer alice"), ("impersonate-user", "bob")];
    let (_, message) = api.send("GET /api/v1/namespaces/default/configmaps", &headers, "").await.refusal();
    message.split(' ').next().unwrap_or_default().to_owned()
}

/// A file that states these issuers.
fn issuers(directory: &tempfile::TempDir, jwt: &str) -> JwtConfig {
    let file = directory.path().join("authentication");
    let text = format!("{{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwt: [{jwt}]}}");
    std::fs::write(&file, text).expect("a file");
    JwtConfig { file: Some(file), algorithms: authn::jwt::ALGORITHMS.to_vec(), ..JwtConfig::default() }
}

/// Whether an issuer may be reached by one of the server's ways.
pub(super) async fn egress(gates: Gates) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = ServerConfig::in_memory(Vec::new());
    config.authentication.jwt = issuers(
        &directory,
        "{issuer: {url: 'https://i.example', audiences: [a], egressSelectorType: cluster}, claimMappings: {username: \
         {claim: sub, prefix: ''}}}",
    );
    let lifecycle = Lifecycle::new("kube-apiserver", TokioClock::shared(), base::Rng::seeded(7)).with_gates(gates);
    match Server::build(config, lifecycle).await {
        Ok(_) => "it starts".to_owned(),
        Err(error) => {
            let error = error.to_string();
            let part = "egress selector is not supported";
            if error.contains(part) { part.to_owned() } else { error }
        }
    }
}

/// How many families of alpha stability more there are where a file states issuers.
pub(super) async fn issuer_families(gates: Gates) -> String {
    let count = async |jwt: JwtConfig| {
        let change = |config: &mut ServerConfig| config.authentication.jwt = jwt;
        let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates.clone()), change).await;
        let text = api.get("/metrics").await.text;
        let line = "registered_metrics_total{deprecated_version=\"\",stability_level=\"ALPHA\"} ";
        let (_, rest) = text.split_once(line).expect("a count");
        rest.lines().next().and_then(|count| count.parse::<u32>().ok()).expect("a number")
    };
    let directory = tempfile::tempdir().expect("a directory");
    let without = count(JwtConfig::default()).await;
    (count(issuers(&directory, "")).await - without).to_string()
}

/// The uid of a user whose certificate states one.
pub(super) async fn uid(gates: Gates) -> String {
    let (now, rng) = (TokioClock::shared().wall(), base::Rng::seeded(1));
    let key = || pki::PrivateKey::generate(pki::KeyAlgorithm::EcdsaP256).expect("a key");
    let ca = pki::CertificateAuthority::create("ca", key(), Duration::from_secs(3600), now, &rng).expect("a CA");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("ca.crt");
    std::fs::write(&file, ca.certificate().to_pem()).expect("a file");
    let trusts = |config: &mut crate::config::ServerConfig| config.authentication.client_ca_file = Some(file);
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(gates), trusts).await;
    api.wait_until_ready().await;
    let attribute = |oid: &str, value: &str| pki::NameAttribute { oid: oid.to_owned(), value: Some(value.to_owned()) };
    let attributes = vec![attribute("2.5.4.3", "jane"), attribute("1.3.6.1.4.1.57683.2", "u1")];
    let mut spec = pki::CertificateSpec::client("", &[], Duration::from_secs(60));
    spec.subject = pki::Name::from_attributes(attributes);
    let leaf = ca.issue(&spec, key().public_key(), now, &rng).expect("a certificate");
    let peer = client::Peer { certificates: vec![leaf.der().to_vec().into()], ..client::Peer::default() };
    let review = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(bytes::Bytes::from(review))
        .expect("a request");
    let answer = api.server.api().call(request, &peer).await;
    let bytes = http_body_util::BodyExt::collect(answer.into_body()).await.expect("a body").to_bytes();
    let review: serde_json::Value = serde_json::from_slice(&bytes).expect("a review");
    assert_eq!(review["status"]["userInfo"]["username"], "jane", "{review}");
    review["status"]["userInfo"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// The uid that a server behind this one is told.
pub(super) async fn remote_uid(gates: Gates) -> String {
    let aggregation = Aggregation::alone(|lifecycle| lifecycle.with_gates(gates));
    let user = UserInfo { username: "jane".to_owned(), uid: "u1".to_owned(), ..UserInfo::default() };
    let told = aggregation.told_of(&user);
    told.get("x-remote-uid").map(|uid| uid.to_str().expect("a text").to_owned()).unwrap_or_default()
}
