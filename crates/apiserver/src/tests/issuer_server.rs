//! An issuer of tokens: a real HTTPS server with the documents of OpenID Connect, whose keys a test changes.

use std::sync::Arc;

use base::{Rng, SystemClock, TaskGroup};
use component_base::serving::{Body, Response, ServerHandle, handler_fn, text};
use http::StatusCode;
use parking_lot::Mutex;
use pki::{KeyAlgorithm, PrivateKey, jwks, jws};
use serde_json::{Value, json};

use super::https::serving;
use super::review_server::endless;
use crate::server::self_signed;

/// What the issuer does when it is asked for its keys.
pub(super) enum Mood {
    /// Tells them.
    Honest,
    /// Answers without an end.
    Endless,
    /// Never answers.
    Silent,
    /// Sends to somebody else.
    Elsewhere(String),
}

pub(super) struct IssuerServer {
    tasks: TaskGroup,
    handle: ServerHandle,
    /// The certificate of the server, in PEM form.
    pub(super) ca: String,
    state: Arc<Mutex<State>>,
}

struct State {
    key: PrivateKey,
    mood: Mood,
    /// Who it says that it is, if not itself.
    name: Option<String>,
    asked: Vec<String>,
}

fn new_key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

impl IssuerServer {
    pub(super) fn start() -> Self {
        component_base::tls::install_default();
        let tasks = TaskGroup::new("issuer");
        let state = State { key: new_key(), mood: Mood::Honest, name: None, asked: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let handler = handler_fn(move |request| answer(Arc::clone(&shared), request));
        let serving = serving();
        let generate = self_signed::generator(&SystemClock::shared(), &Rng::seeded(5));
        let certificates = serving.certificates(&["127.0.0.1".to_owned()], &generate).expect("certificates");
        let chain = certificates.default_chain();
        let ca = chain.iter().map(|own| pki::encode_block("CERTIFICATE", own)).collect();
        let handle = serving.serve(&tasks, certificates, &[], Arc::new(handler)).expect("a server");
        Self { tasks, handle, ca, state }
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}", self.handle.address())
    }

    /// From now on there is another key.
    pub(super) fn rotate(&self) {
        self.state.lock().key = new_key();
    }

    pub(super) fn mood(&self, mood: Mood) {
        self.state.lock().mood = mood;
    }

    /// From now on it says that it is somebody else.
    pub(super) fn pretend(&self, name: &str) {
        self.state.lock().name = Some(name.to_owned());
    }

    /// How often a path was asked for.
    pub(super) fn asked(&self, path: &str) -> usize {
        self.state.lock().asked.iter().filter(|own| *own == path).count()
    }

    /// A token with these claims beside the usual ones.
    pub(super) fn token(&self, changes: &Value) -> String {
        let mut claims = json!({
            "iss": self.url(), "aud": "kubernetes", "exp": 4_000_000_000_u64, "sub": "zoe", "groups": ["system:masters"],
        });
        claims.as_object_mut().expect("members").extend(changes.as_object().expect("members").clone());
        jws::sign(&self.state.lock().key, &claims).expect("a token")
    }

    /// The issuer as AuthenticationConfiguration states it; names get this prefix.
    pub(super) fn configured(&self, prefix: &str) -> Value {
        json!({
            "issuer": {"url": self.url(), "certificateAuthority": self.ca, "audiences": ["kubernetes"]},
            "claimMappings": {
                "username": {"claim": "sub", "prefix": prefix},
                "groups": {"claim": "groups", "prefix": ""},
            },
        })
    }
}

impl Drop for IssuerServer {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn answer(state: Arc<Mutex<State>>, request: component_base::serving::Request) -> Response {
    let (path, host) = (request.uri().path().to_owned(), request.uri().authority().map(ToString::to_string));
    let host = host.or_else(|| Some(request.headers().get("host")?.to_str().ok()?.to_owned())).unwrap_or_default();
    let found = {
        let mut state = state.lock();
        state.asked.push(path.clone());
        match path.as_str() {
            "/.well-known/openid-configuration" => {
                let own = format!("https://{host}");
                let issuer = state.name.clone().unwrap_or_else(|| own.clone());
                Ok(json!({"issuer": issuer, "jwks_uri": format!("{own}/keys")}))
            }
            "/keys" => match &state.mood {
                Mood::Honest => Ok(jwks::key_set(&[jwks::WebKey::of(state.key.public_key().clone())])),
                Mood::Endless => Err(Some(Response::new(endless()))),
                Mood::Silent => Err(None),
                Mood::Elsewhere(place) => {
                    let mut response = text(StatusCode::FOUND, "");
                    response.headers_mut().insert("location", place.parse().expect("a header"));
                    Err(Some(response))
                }
            },
            _ => Err(Some(text(StatusCode::NOT_FOUND, ""))),
        }
    };
    match found {
        Ok(document) => text(StatusCode::OK, document.to_string()),
        Err(Some(response)) => response,
        Err(None) => std::future::pending::<http::Response<Body>>().await,
    }
}
