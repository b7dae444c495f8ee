//! Account tokens that somebody else signs, behind a real socket.

use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use pki::{KeyAlgorithm, PrivateKey};
use serde_json::json;
use server_api::signer::external_jwt_signer_server::{ExternalJwtSigner, ExternalJwtSignerServer};
use server_api::signer::{
    FetchKeysRequest, FetchKeysResponse, Key, MetadataRequest, MetadataResponse, SignJwtRequest, SignJwtResponse,
    Timestamp,
};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use super::harness::Api;

const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";

/// A signer whose keys have names of their own; the last one signs.
#[derive(Clone)]
struct Signer(Arc<Mutex<Vec<(String, PrivateKey)>>>);

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

#[tonic::async_trait]
impl ExternalJwtSigner for Signer {
    async fn sign(&self, request: Request<SignJwtRequest>) -> Result<Response<SignJwtResponse>, Status> {
        let keys = self.0.lock();
        let (name, key) = keys.last().ok_or_else(|| Status::unavailable("no key"))?;
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": "ES256", "kid": name, "typ": "JWT"}).to_string());
        let input = format!("{header}.{}", request.into_inner().claims);
        let signature = pki::jws::raw_signature(key, input.as_bytes()).expect("a signature");
        Ok(Response::new(SignJwtResponse { header, signature: URL_SAFE_NO_PAD.encode(signature) }))
    }

    async fn fetch_keys(&self, _: Request<FetchKeysRequest>) -> Result<Response<FetchKeysResponse>, Status> {
        let described = |(name, key): &(String, PrivateKey)| Key {
            key_id: name.clone(),
            key: key.public_key().spki().to_vec(),
            exclude_from_oidc_discovery: name.starts_with("old"),
        };
        Ok(Response::new(FetchKeysResponse {
            keys: self.0.lock().iter().map(described).collect(),
            data_timestamp: Some(Timestamp { seconds: 7, nanos: 0 }),
            refresh_hint_seconds: 600,
        }))
    }

    async fn metadata(&self, _: Request<MetadataRequest>) -> Result<Response<MetadataResponse>, Status> {
        Ok(Response::new(MetadataResponse { max_token_expiration_seconds: 7200 }))
    }
}

#[tokio::test]
async fn tokens_of_an_external_signer_are_given_accepted_and_published() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("signer.sock");
    let signer = Signer(Arc::new(Mutex::new(vec![("old-1".to_owned(), key()), ("k1".to_owned(), key())])));
    let tasks = TaskGroup::new("signer");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let service = ExternalJwtSignerServer::new(signer.clone());
    tasks.spawn_cancellable("signer", async move {
        let incoming = UnixListenerStream::new(listener);
        tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(incoming)
            .await
            .expect("it serves");
    });
    let api = Api::with(|config| {
        config.service_accounts.issuers = vec!["https://kubernetes.default.svc".to_owned()];
        config.service_accounts.api_audiences = config.service_accounts.issuers.clone();
        config.service_accounts.signing_endpoint = Some(socket.display().to_string());
        config.service_accounts.extend_expiration = true;
    })
    .await;
    let request = |seconds: u32| json!({"spec": {"expirationSeconds": seconds}}).to_string();
    let who = async |token: &str| {
        let headers = [("authorization", format!("Bearer {token}"))];
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        api.send("GET /api/v1/namespaces/default/configmaps", &headers, "").await.refusal()
    };
    let made = api.post(TOKEN, &request(10_000)).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.warnings().len(), 1, "no token lives longer than the signer lets it: {:?}", made.warnings());
    assert_eq!(made.json()["spec"]["expirationSeconds"], 7200);
    let first = made.json()["status"]["token"].as_str().expect("a token").to_owned();
    let (code, message) = who(&first).await;
    assert_eq!(code, 403, "known, and allowed nothing: {message}");
    assert!(message.contains("User \"system:serviceaccount:default:default\" cannot list"), "{message}");

    let keys = api.get("/openid/v1/jwks").await;
    let names: Vec<_> = keys.json()["keys"].as_array().expect("keys").iter().map(|own| own["kid"].clone()).collect();
    assert_eq!(names, [json!("k1")], "keys of former tokens are told to nobody");
    let cache = keys.headers["cache-control"].to_str().expect("text").to_owned();
    let age: u64 = cache.strip_prefix("public, max-age=").and_then(|age| age.parse().ok()).expect("an age");
    assert!((500..=600).contains(&age), "{cache}");

    tokio::time::sleep(Duration::from_millis(1100)).await;
    signer.0.lock().push(("k2".to_owned(), key()));
    let second = api.post(TOKEN, &request(3600)).await.json()["status"]["token"].as_str().expect("a token").to_owned();
    assert_eq!(who(&second).await.0, 403, "the new key is fetched as it is named");
    assert_eq!(who(&first).await.0, 403, "the former is good all the same");
    let metrics = api.get("/metrics").await.text;
    for line in [
        "apiserver_externaljwt_sign_request_total{code=\"OK\"} 2",
        "apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"} 2",
        "apiserver_externaljwt_fetch_keys_data_timestamp 7",
        "apiserver_externaljwt_request_duration_seconds_count{code=\"OK\",method=\"/v1.ExternalJWTSigner/Sign\"} 2",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
    signer.0.lock().clear();
    tasks.cancel();
}
