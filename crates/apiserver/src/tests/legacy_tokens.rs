//! Tokens that live in Secrets, on the whole road.

use std::time::Duration;

use pki::{KeyAlgorithm, PrivateKey, jws};
use serde_json::json;

use super::harness::Api;

const SECRET: &str = "/api/v1/namespaces/default/secrets/build-token";

#[tokio::test(start_paused = true)]
async fn a_token_of_a_secret_is_its_account_until_the_secret_goes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sa.key");
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    key.store(&file).unwrap();
    let api = Api::with(|config| {
        config.service_accounts.issuers = vec!["https://kubernetes.default.svc".to_owned()];
        config.service_accounts.api_audiences = config.service_accounts.issuers.clone();
        config.service_accounts.signing_key_file = Some(file);
    })
    .await;
    let account = api.get("/api/v1/namespaces/default/serviceaccounts/default").await.json();
    let claims = json!({
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:default:default",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "build-token",
        "kubernetes.io/serviceaccount/service-account.name": "default",
        "kubernetes.io/serviceaccount/service-account.uid": account["metadata"]["uid"],
    });
    let token = jws::sign(&key, &claims).unwrap();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let ask = || api.send("GET /api/v1/namespaces/default/configmaps", &headers, "");
    assert_eq!(ask().await.code, 401, "there is no Secret yet");

    let annotations = json!({"kubernetes.io/service-account.name": "default"});
    let secret = json!({
        "metadata": {"name": "build-token", "annotations": annotations},
        "type": "kubernetes.io/service-account-token",
        "stringData": {"token": token},
    });
    assert_eq!(api.post("/api/v1/namespaces/default/secrets", &secret.to_string()).await.code, 201);
    let (code, message) = ask().await.refusal();
    assert_eq!(code, 403, "known, and allowed nothing: {message}");
    assert!(message.contains("User \"system:serviceaccount:default:default\" cannot list"), "{message}");
    let used = api.get(SECRET).await.json();
    assert_eq!(used["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"], "2026-01-01");

    assert_eq!(api.delete(SECRET).await.code, 200);
    // What was found out about a token is remembered for a moment.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(ask().await.code, 401);
    let review = json!({"spec": {"token": token}}).to_string();
    let answer = api.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.json();
    assert_eq!(answer["status"]["error"], "[invalid bearer token, Token has been invalidated]", "{answer}");
}
