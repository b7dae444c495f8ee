//! Issuers that change their keys, are slow, or mean no good; behind a transport of the test's own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::value::Value as Json;
use async_trait::async_trait;
use base::{Rng, TaskGroup, TokioClock};
use bytes::Bytes;
use client::{ConfigError, Transport, TransportError, Trust};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::{self, Body};
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use pki::{KeyAlgorithm, PrivateKey, jwks, jws};
use serde_json::json;

use super::*;
use crate::authenticator::TokenAuthenticator;

const URL: &str = "https://issuer.example";
const NOW: u64 = 1_767_225_600;

/// What an address answers.
#[derive(Clone)]
enum Reply {
    Json(Json),
    Text(String),
    To(&'static str),
    Never,
    Endless,
}

/// Everybody's servers: what each address answers, and what was asked with which credentials.
#[derive(Default)]
struct Web {
    pages: Mutex<HashMap<String, Reply>>,
    asked: Mutex<Vec<(String, String)>>,
}

struct Site(Arc<Web>, String);

impl Connector for Arc<Web> {
    fn connect(&self, origin: &str, _: &Trust, _: Egress, _: &TaskGroup) -> Result<Arc<dyn Transport>, ConfigError> {
        Ok(Arc::new(Site(Self::clone(self), origin.to_owned())))
    }
}

#[async_trait]
impl Transport for Site {
    fn server(&self) -> &str {
        &self.1
    }

    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let url = format!("{}{}", self.1, request.uri());
        let shown = request.headers().get("authorization").map_or("", |own| own.to_str().unwrap_or("?"));
        self.0.asked.lock().push((url.clone(), shown.to_owned()));
        let reply = self.0.pages.lock().get(&url).cloned();
        let mut response = http::Response::new(serving::full(""));
        match reply {
            Some(Reply::Json(document)) => *response.body_mut() = serving::full(document.to_string()),
            Some(Reply::Text(text)) => *response.body_mut() = serving::full(text),
            Some(Reply::To(location)) => {
                *response.status_mut() = http::StatusCode::FOUND;
                response.headers_mut().insert("location", location.parse().expect("a header"));
            }
            Some(Reply::Never) => std::future::pending().await,
            Some(Reply::Endless) => {
                let chunk = Bytes::from(vec![b' '; 1 << 16]);
                let frames = futures_util::stream::repeat_with(move || Ok(http_body::Frame::data(chunk.clone())));
                *response.body_mut() = StreamBody::new(frames).boxed_unsync();
            }
            None => *response.status_mut() = http::StatusCode::NOT_FOUND,
        }
        Ok(response)
    }
}

struct Fixture {
    web: Arc<Web>,
    tokens: JwtAuthenticators,
    metrics: Arc<Metrics>,
}

impl Fixture {
    /// An authenticator of one issuer, to whose settings `more` is added.
    fn new(more: &str) -> Self {
        let web = Arc::new(Web::default());
        let text = format!(
            "{{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwt: [{{issuer: {{url: '{URL}', \
             audiences: [me]}}, claimMappings: {{username: {{claim: sub, prefix: ''}}, groups: {{claim: groups, prefix: \
             ''}}}}{more}}}]}}"
        );
        let configuration = parse(&text).expect("a file");
        let rules = compile(&configuration, &Surroundings::default()).expect("a good one");
        let metrics = Metrics::new(MetricsOptions::default());
        let cx = JwtCx {
            connector: Arc::new(Arc::clone(&web)),
            algorithms: ALGORITHMS.to_vec(),
            clock: TokioClock::shared(),
            rng: Rng::seeded(1),
            metrics: JwtMetrics::new(&metrics, "me".to_owned(), true),
        };
        let tokens = JwtAuthenticators::start(&configuration.jwt, rules, &cx, TaskGroup::new("test"));
        let fixture = Self { web, tokens, metrics };
        fixture.page("/.well-known/openid-configuration", Reply::Json(document(URL)));
        fixture
    }

    fn page(&self, path: &str, reply: Reply) {
        self.web.pages.lock().insert(format!("{URL}{path}"), reply);
    }

    fn keys(&self, keys: &[&PrivateKey]) {
        self.page("/keys", Reply::Json(key_set(keys)));
    }

    async fn who(&self, token: &str) -> Result<String, String> {
        match self.tokens.authenticate_token(token, &[]).await {
            Ok(Some(identity)) => Ok(format!("{}{:?}", identity.user.username, identity.user.groups)),
            Ok(None) => Err("no opinion".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// How often an address was asked since the last time.
    fn fetches(&self, path: &str) -> usize {
        let asked = std::mem::take(&mut *self.web.asked.lock());
        asked.iter().filter(|(url, _)| *url == format!("{URL}{path}")).count()
    }
}

fn document(issuer: &str) -> Json {
    json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")})
}

fn key() -> PrivateKey {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).expect("a key")
}

fn key_set(keys: &[&PrivateKey]) -> Json {
    jwks::key_set(&keys.iter().map(|key| jwks::WebKey::of(key.public_key().clone())).collect::<Vec<_>>())
}

fn signed(key: &PrivateKey, changes: Json) -> String {
    let mut claims = json!({"iss": URL, "aud": "me", "exp": NOW + 100_000, "sub": "ann"});
    claims.as_object_mut().expect("members").extend(changes.as_object().expect("members").clone());
    jws::sign(key, &claims).expect("a token")
}

const UNVERIFIED: &str = "oidc: verify token: failed to verify signature: failed to verify id token signature";

#[tokio::test(start_paused = true)]
async fn keys_are_fetched_when_they_are_needed_and_not_for_every_stranger() {
    let (fixture, old, new) = (Fixture::new(""), key(), key());
    fixture.keys(&[&old]);
    let token = signed(&old, json!({"groups": ["devs"]}));
    assert_eq!(fixture.who(&token).await, Err("oidc: authenticator not initialized".to_owned()));
    fixture.tokens.found().await;
    assert_eq!(fixture.fetches("/keys"), 0, "nobody needs keys yet");
    assert_eq!(fixture.who(&token).await.as_deref(), Ok("ann[\"devs\"]"));
    assert_eq!(fixture.who(&token).await.as_deref(), Ok("ann[\"devs\"]"));
    assert_eq!(fixture.fetches("/keys"), 1);

    let strange = signed(&new, json!({}));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fixture.who(&strange).await, Err(UNVERIFIED.to_owned()));
    for _ in 0..50 {
        assert_eq!(fixture.who(&strange).await, Err(UNVERIFIED.to_owned()));
    }
    assert_eq!(fixture.fetches("/keys"), 1, "one fetch is for all that come soon after it");
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(fixture.who(&strange).await, Err(UNVERIFIED.to_owned()));
    }
    let fetches = fixture.fetches("/keys");
    assert!((9..=16).contains(&fetches), "less and less often: {fetches}");

    fixture.keys(&[&new]);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(fixture.who(&strange).await.as_deref(), Ok("ann[]"), "the key has come");
    assert_eq!(fixture.who(&token).await, Err(UNVERIFIED.to_owned()), "and the former has gone");
    let text = fixture.metrics.text();
    assert_eq!(text.matches("jwks_fetch_last_key_set_info{").count(), 1, "{text}");
    assert!(text.contains("result=\"success\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_an_issuer_does_wrong_ends_soon_and_is_no_users_fault() {
    let key = key();
    let token = signed(&key, json!({}));
    let failed = |why: &str| Err(format!("oidc: verify token: failed to verify signature: fetching keys {why}"));
    let get = format!("Get \"{URL}/keys\"");
    for (reply, expected) in [
        (Reply::Endless, failed(&format!("{get}: the answer is longer than 1048576 bytes"))),
        (Reply::Never, failed(&format!("{get}: context deadline exceeded"))),
        (Reply::To("/keys"), failed(&format!("{get}: stopped after 10 redirects"))),
        (
            Reply::To("http://plain.example/keys"),
            failed("Get \"http://plain.example/keys\": unsupported protocol scheme, only https is asked"),
        ),
        (
            Reply::To("https://u:secret@x.example/keys?k=secret"),
            failed("parse \"https://x.example/keys\": no host, or a name and password before it"),
        ),
        (Reply::To("/elsewhere"), Ok("ann[]".to_owned())),
        (Reply::Text("<html>".to_owned()), failed("oidc: failed to decode keys: not a key set")),
        (Reply::Json(json!({"keys": []})), Err(UNVERIFIED.to_owned())),
    ] {
        let fixture = Fixture::new("");
        fixture.page("/keys", reply);
        fixture.page("/elsewhere", Reply::Json(key_set(&[&key])));
        fixture.tokens.found().await;
        assert_eq!(fixture.who(&token).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn issuers_are_looked_for_until_they_are_found() {
    let fixture = Fixture::new("");
    fixture.page("/.well-known/openid-configuration", Reply::Json(document("https://other.example")));
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(fixture.fetches("/.well-known/openid-configuration"), 3);
    let expected = format!(
        "oidc: issuer did not match the issuer returned by provider, expected \"{URL}\" got \"https://other.example\""
    );
    assert_eq!(fixture.tokens.problems(), [expected]);
    fixture.page("/.well-known/openid-configuration", Reply::Json(document(URL)));
    fixture.tokens.found().await;
    assert!(fixture.tokens.problems().is_empty());
}

#[tokio::test(start_paused = true)]
async fn groups_may_be_elsewhere() {
    let (fixture, key, theirs) = (Fixture::new(""), key(), key());
    fixture.keys(&[&key]);
    fixture.tokens.found().await;
    let other = "https://groups.example";
    {
        let mut pages = fixture.web.pages.lock();
        pages.insert(format!("{other}/.well-known/openid-configuration"), Reply::Json(document(other)));
        pages.insert(format!("{other}/keys"), Reply::Json(key_set(&[&theirs])));
        let claim = signed(&theirs, json!({"iss": other, "groups": ["far"]}));
        pages.insert(format!("{other}/claims?of=ann"), Reply::Text(claim));
        pages.insert(format!("{other}/moved"), Reply::To("https://thief.example/claims"));
        pages.insert(format!("{other}/other"), Reply::Text(signed(&theirs, json!({"iss": other}))));
        pages.insert(format!("{other}/forged"), Reply::Text(signed(&key, json!({"iss": other, "groups": ["far"]}))));
    }
    let pointing = |endpoint: &str| {
        let source = json!({"endpoint": format!("{other}{endpoint}"), "access_token": "secret"});
        signed(&key, json!({"_claim_names": {"groups": "s"}, "_claim_sources": {"s": source}}))
    };
    assert_eq!(fixture.who(&pointing("/claims?of=ann")).await.as_deref(), Ok("ann[\"far\"]"));
    let asked = std::mem::take(&mut *fixture.web.asked.lock());
    assert!(asked.contains(&(format!("{other}/claims?of=ann"), "Bearer secret".to_owned())), "{asked:?}");
    assert!(asked.iter().filter(|(url, _)| !url.contains("/claims")).all(|(_, shown)| shown.is_empty()), "{asked:?}");

    let error = fixture.who(&pointing("/moved")).await.expect_err("nothing is there");
    assert!(
        error.starts_with("oidc: could not expand distributed claims: while getting distributed claim \"groups\": ")
    );
    assert!(!error.contains("secret"), "{error}");
    let asked = std::mem::take(&mut *fixture.web.asked.lock());
    assert!(
        asked.contains(&("https://thief.example/claims".to_owned(), String::new())),
        "without the token: {asked:?}"
    );

    let error = fixture.who(&pointing("/other")).await.expect_err("no groups");
    assert!(error.contains("did not contain claim: groups"), "{error}");
    let error = fixture.who(&pointing("/forged")).await.expect_err("another's key");
    assert!(error.contains("verify distributed claim token: failed to verify signature"), "{error}");
    let lost = signed(&key, json!({"_claim_names": {"groups": "s"}}));
    assert_eq!(
        fixture.who(&lost).await,
        Err("oidc: could not expand distributed claims: oidc: no claim sources".to_owned())
    );
    let plain = signed(&key, json!({"groups": "near", "_claim_names": {"groups": "s"}}));
    assert_eq!(fixture.who(&plain).await.as_deref(), Ok("ann[\"near\"]"), "what is there is not looked for");
}

#[tokio::test(start_paused = true)]
async fn other_tokens_are_nobodys_business_here() {
    let (fixture, key) = (Fixture::new(""), key());
    for token in ["", "a", "a.b.c", &signed(&key, json!({"iss": "https://other"}))] {
        assert_eq!(fixture.who(token).await, Err("no opinion".to_owned()), "{token}");
    }
}
