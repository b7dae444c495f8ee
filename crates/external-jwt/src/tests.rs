//! A signer of the test's own over a real socket: keys that change, refusals, and what must not be taken from it.

use std::sync::Arc;
use std::time::Duration;

use base::{TaskGroup, TokioClock};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pki::jws::UnverifiedToken;
use pki::{KeyAlgorithm, PrivateKey};
use serde_json::json;
use tokio::net::UnixListener;
use tokio::sync::Mutex;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use crate::{ExternalSigner, KeyCache, Observer};
use server_api::signer::external_jwt_signer_server::{ExternalJwtSigner, ExternalJwtSignerServer};
use server_api::signer::{
    FetchKeysRequest, FetchKeysResponse, Key, MetadataRequest, MetadataResponse, SignJwtRequest, SignJwtResponse,
    Timestamp,
};

struct State {
    key: PrivateKey,
    /// What is answered when keys are asked for.
    keys: FetchKeysResponse,
    fetches: usize,
    refuses: bool,
}

#[derive(Clone)]
struct Fake(Arc<Mutex<State>>);

fn described(key_id: &str, key: &PrivateKey) -> Key {
    Key { key_id: key_id.to_owned(), key: key.public_key().spki().to_vec(), exclude_from_oidc_discovery: false }
}

fn answer(keys: Vec<Key>) -> FetchKeysResponse {
    FetchKeysResponse { keys, data_timestamp: Some(Timestamp { seconds: 7, nanos: 0 }), refresh_hint_seconds: 600 }
}

#[tonic::async_trait]
impl ExternalJwtSigner for Fake {
    async fn sign(&self, request: Request<SignJwtRequest>) -> Result<Response<SignJwtResponse>, Status> {
        let state = self.0.lock().await;
        if state.refuses {
            return Err(Status::permission_denied("no"));
        }
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": "ES256", "kid": "first", "typ": "JWT"}).to_string());
        let input = format!("{header}.{}", request.into_inner().claims);
        let signature = pki::jws::raw_signature(&state.key, input.as_bytes()).expect("a signature");
        Ok(Response::new(SignJwtResponse { header, signature: URL_SAFE_NO_PAD.encode(signature) }))
    }

    async fn fetch_keys(&self, _: Request<FetchKeysRequest>) -> Result<Response<FetchKeysResponse>, Status> {
        let mut state = self.0.lock().await;
        state.fetches += 1;
        Ok(Response::new(state.keys.clone()))
    }

    async fn metadata(&self, _: Request<MetadataRequest>) -> Result<Response<MetadataResponse>, Status> {
        Ok(Response::new(MetadataResponse { max_token_expiration_seconds: 3600 }))
    }
}

/// Remembers the codes of calls.
#[derive(Default)]
struct Seen(parking_lot::Mutex<Vec<String>>);

impl Observer for Seen {
    fn called(&self, method: &'static str, code: &'static str, _: Duration) {
        self.0.lock().push(format!("{method} {code}"));
    }
    fn signed(&self, code: &'static str) {
        self.0.lock().push(format!("signed {code}"));
    }
    fn fetched(&self, code: &'static str, data: Option<f64>) {
        self.0.lock().push(format!("fetched {code} {data:?}"));
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    fake: Fake,
    seen: Arc<Seen>,
    tasks: TaskGroup,
}

impl Fixture {
    fn new() -> Self {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key");
        let keys = answer(vec![described("first", &key)]);
        let state = State { key, keys, fetches: 0, refuses: false };
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            fake: Fake(Arc::new(Mutex::new(state))),
            seen: Arc::default(),
            tasks: TaskGroup::new("test"),
        }
    }

    fn socket(&self) -> String {
        self.directory.path().join("signer.sock").display().to_string()
    }

    fn listen(&self) {
        let listener = UnixListener::bind(self.socket()).expect("a socket");
        let service = ExternalJwtSignerServer::new(self.fake.clone());
        self.tasks.spawn_cancellable("signer", async move {
            let incoming = UnixListenerStream::new(listener);
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming)
                .await
                .expect("it serves");
        });
    }

    fn signer(&self) -> ExternalSigner {
        let seen = Arc::clone(&self.seen) as Arc<dyn Observer>;
        ExternalSigner::new(&self.socket(), seen, TokioClock::shared()).expect("a path")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

#[tokio::test]
async fn tokens_are_signed_and_can_be_checked_with_the_keys() {
    let fixture = Fixture::new();
    let signer = fixture.signer();
    // A signer that comes later is waited for.
    let (lifetime, ()) = tokio::join!(signer.max_lifetime(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        fixture.listen();
    });
    assert_eq!(lifetime.expect("an answer"), 3600);
    let keys = KeyCache::start(signer, &fixture.tasks).await.expect("keys");
    let token = keys.sign(r#"{"sub":"x"}"#).await.expect("a token");
    let token = UnverifiedToken::parse(&token).expect("a token");
    assert_eq!(token.key_id(), "first");
    let known = keys.with("first").await;
    assert_eq!(token.verify(&known[0].key).expect("a good signature")["sub"], "x");
    assert!(keys.max_age() > Duration::from_secs(590));
    fixture.fake.0.lock().await.refuses = true;
    let error = keys.sign("{}").await.expect_err("it refuses").to_string();
    assert_eq!(error, "while signing jwt: rpc error: code = PermissionDenied desc = no");
    let seen = std::mem::take(&mut *fixture.seen.0.lock());
    let expected = [
        "/v1.ExternalJWTSigner/Metadata OK",
        "/v1.ExternalJWTSigner/FetchKeys OK",
        "fetched OK Some(7.0)",
        "/v1.ExternalJWTSigner/Sign OK",
        "signed OK",
        "/v1.ExternalJWTSigner/Sign PermissionDenied",
        "signed PermissionDenied",
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn keys_are_fetched_anew_for_one_that_is_not_known() {
    let fixture = Fixture::new();
    fixture.listen();
    let keys = KeyCache::start(fixture.signer(), &fixture.tasks).await.expect("keys");
    let second = PrivateKey::generate(KeyAlgorithm::EcdsaP384).expect("a key");
    fixture.fake.0.lock().await.keys.keys.push(described("second", &second));
    for _ in 0..20 {
        assert_eq!(keys.with("second").await.len(), 1, "not so soon");
    }
    assert_eq!(fixture.fake.0.lock().await.fetches, 1);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(keys.with("second").await.len(), 2);
    assert_eq!((keys.with("second").await.len(), keys.with("").await.len()), (2, 2));
    assert_eq!(fixture.fake.0.lock().await.fetches, 2);

    fixture.fake.0.lock().await.keys.keys[0].exclude_from_oidc_discovery = true;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    keys.with("third").await;
    let error = keys.sign("{}").await.expect_err("nobody could check it").to_string();
    assert_eq!(
        error,
        "while validating header: key used for signing JWT (kid: first) is excluded from OIDC discovery docs"
    );
}

#[tokio::test]
async fn keys_that_are_none_are_refused() {
    let fixture = Fixture::new();
    fixture.listen();
    let good = fixture.fake.0.lock().await.keys.clone();
    let with = |change: &dyn Fn(&mut FetchKeysResponse)| {
        let mut changed = good.clone();
        change(&mut changed);
        changed
    };
    let long = "k".repeat(1025);
    for (keys, expected) in [
        (with(&|own| own.refresh_hint_seconds = 0), "found invalid refresh hint (0s)"),
        (with(&|own| own.keys.clear()), "found no keys"),
        (with(&|own| own.data_timestamp = None), "invalid data timestamp"),
        (with(&|own| own.keys[0].key_id.clear()), "found invalid public key id \"\""),
        (with(&|own| own.keys[0].key_id.clone_from(&long)), "found invalid public key id"),
        (with(&|own| own.keys[0].key.clear()), "found empty public key"),
        (with(&|own| own.keys[0].key.truncate(20)), "while parsing external public keys: "),
    ] {
        fixture.fake.0.lock().await.keys = keys;
        let error =
            KeyCache::start(fixture.signer(), &fixture.tasks).await.map(|_| ()).expect_err(expected).to_string();
        assert!(error.starts_with("while fetching token verification keys: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn sockets_are_paths_or_names() {
    let seen: Arc<dyn Observer> = Arc::new(Seen::default());
    for (socket, is_good) in
        [("/run/signer.sock", true), ("unix:///run/signer.sock", true), ("@signer", true), ("", false)]
    {
        let signer = ExternalSigner::new(socket, Arc::clone(&seen), TokioClock::shared());
        assert_eq!(signer.is_ok(), is_good, "{socket}");
    }
}
