//! Tokens from issue to acceptance, and every way they stop being good.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use async_trait::async_trait;
use base::Rng;
use futures_util::FutureExt as _;
use pki::{KeyAlgorithm, PrivateKey, PublicKey};

use super::*;
use crate::authenticator::{AuthnError, LookupError, TokenAuthenticator as _};
use crate::identity::Identity;
use crate::testing::{NOW_SECONDS, at, clock, uses};

pub(super) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

#[derive(Default, Clone)]
pub(super) struct Objects(BTreeMap<String, ObjectState>);

impl Objects {
    pub(super) fn usual() -> Self {
        let state = |uid: &str| ObjectState { uid: uid.to_owned(), deletion_timestamp: None };
        let names = ["sa/ns/app", "pod/ns/web", "secret/ns/key", "node/n1"];
        Self(names.into_iter().map(|name| (name.to_owned(), state(&format!("uid-{}", &name[..2])))).collect())
    }

    fn changed(mut self, name: &str, state: Option<ObjectState>) -> Self {
        match state {
            Some(state) => self.0.insert(name.to_owned(), state),
            None => self.0.remove(name),
        };
        self
    }

    fn find(&self, key: &str) -> Result<Option<ObjectState>, LookupError> {
        Ok(self.0.get(key).cloned())
    }
}

#[async_trait]
impl BoundObjects for Objects {
    async fn service_account(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.find(&format!("sa/{namespace}/{name}"))
    }
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.find(&format!("pod/{namespace}/{name}"))
    }
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.find(&format!("secret/{namespace}/{name}"))
    }
    async fn node(&self, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.find(&format!("node/{name}"))
    }
}

fn reference(name: &str, uid: &str) -> ObjectRef {
    ObjectRef { name: name.to_owned(), uid: uid.to_owned() }
}

fn wish(bound: Option<BoundObject>) -> TokenWish {
    TokenWish {
        namespace: "ns".to_owned(),
        service_account: reference("app", "uid-sa"),
        audiences: Vec::new(),
        expiration_seconds: 3600,
        bound,
    }
}

fn pod() -> Option<BoundObject> {
    Some(BoundObject::Pod { pod: reference("web", "uid-po"), node: Some(reference("n1", "uid-no")) })
}

struct Cluster {
    issuer: TokenIssuer,
    key: PublicKey,
}

impl Cluster {
    fn new(maximum: Option<Duration>, extension: ExpirationExtension) -> Self {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let public = key.public_key().clone();
        Self {
            issuer: TokenIssuer::new(ISSUER, Arc::new(key), vec!["api".to_owned()], maximum, extension),
            key: public,
        }
    }

    fn usual() -> Self {
        Self::new(None, ExpirationExtension::Extended)
    }

    fn issue(&self, wish: &TokenWish) -> IssuedToken {
        self.issuer.issue(wish, at(0), &Rng::seeded(7)).now_or_never().expect("it does not wait").unwrap()
    }

    async fn check(&self, token: &str, objects: Objects, seconds: i64) -> Result<Option<Identity>, AuthnError> {
        let audiences = vec!["api".to_owned()];
        let issuers = vec![ISSUER.to_owned()];
        let keys = StaticKeys::shared([self.key.clone()]);
        ServiceAccountTokens::new(issuers, keys, audiences, Arc::new(objects), clock(seconds), uses())
            .authenticate_token(token, &[])
            .await
    }
}

#[tokio::test]
async fn an_issued_token_names_account_pod_and_node() {
    let cluster = Cluster::usual();
    let issued = cluster.issue(&wish(pod()));
    assert_eq!((issued.expiration, issued.audiences.as_slice()), (at(3600), &["api".to_owned()][..]));
    let identity = cluster.check(&issued.token, Objects::usual(), 0).await.unwrap().unwrap();
    let user = &identity.user;
    assert_eq!((user.username.as_str(), user.uid.as_str()), ("system:serviceaccount:ns:app", "uid-sa"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns"]);
    let extra = |key: &str| user.extra[&format!("authentication.kubernetes.io/{key}")].0.join(",");
    assert_eq!(extra("pod-name") + &extra("pod-uid"), "webuid-po");
    assert_eq!(extra("node-name") + &extra("node-uid"), "n1uid-no");
    assert_eq!(identity.credential_id(), Some(format!("JTI={}", issued.id).as_str()));
    assert_eq!(identity.audiences, ["api"]);
    assert!(identity.audit_annotations.is_empty());
}

#[tokio::test]
async fn tokens_end_with_what_they_are_bound_to() {
    let cluster = Cluster::usual();
    let deleted = |uid: &str, ago| {
        let deletion_timestamp = Some(Time::from_unix_seconds(NOW_SECONDS - ago));
        Some(ObjectState { uid: uid.to_owned(), deletion_timestamp })
    };
    let other = Some(ObjectState { uid: "new".to_owned(), deletion_timestamp: None });
    let secret = Some(BoundObject::Secret(reference("key", "uid-se")));
    let node = Some(BoundObject::Node(reference("n1", "uid-no")));
    let cases = [
        ("account gone", pod(), "sa/ns/app", None, "serviceaccounts \"app\" not found"),
        ("account new", pod(), "sa/ns/app", other.clone(), "service account UID (new) does not match claim (uid-sa)"),
        ("account deleted", pod(), "sa/ns/app", deleted("uid-sa", 61), "service account ns/app has been deleted"),
        ("account just deleted", pod(), "sa/ns/app", deleted("uid-sa", 59), ""),
        ("pod gone", pod(), "pod/ns/web", None, "service account token has been invalidated"),
        ("pod deleted", pod(), "pod/ns/web", deleted("uid-po", 61), "service account token has been invalidated"),
        (
            "pod new",
            pod(),
            "pod/ns/web",
            other.clone(),
            "pod UID (new) does not match service account pod ref claim (uid-po)",
        ),
        ("the pod's node is only information", pod(), "node/n1", None, ""),
        ("secret gone", secret.clone(), "secret/ns/key", None, "service account token has been invalidated"),
        (
            "secret new",
            secret,
            "secret/ns/key",
            other.clone(),
            "secret UID (new) does not match service account secret ref claim (uid-se)",
        ),
        ("node gone", node.clone(), "node/n1", None, "service account token has been invalidated"),
        ("node new", node, "node/n1", other, "node UID (new) does not match service account node ref claim (uid-no)"),
    ];
    for (name, bound, object, state, expected) in cases {
        let token = cluster.issue(&wish(bound)).token;
        let got = cluster.check(&token, Objects::usual().changed(object, state), 0).await;
        let text = got.map(|_| String::new()).unwrap_or_else(|error| error.to_string());
        assert_eq!(text, expected, "{name}");
    }
}

#[tokio::test]
async fn times_have_a_minute_of_leeway() {
    let cluster = Cluster::usual();
    let token = cluster.issue(&wish(None)).token;
    for (seconds, expected) in [
        (-61, "service account token is not valid yet"),
        (-60, ""),
        (3660, ""),
        (3661, "service account token has expired"),
    ] {
        let got = cluster.check(&token, Objects::usual(), seconds).await;
        assert_eq!(got.map(|_| String::new()).unwrap_or_else(|error| error.to_string()), expected, "{seconds}");
    }
}

#[tokio::test]
async fn foreign_tokens_are_no_opinion_and_forged_ones_errors() {
    let (cluster, other) = (Cluster::usual(), Cluster::usual());
    for foreign in ["", "abcdef.0123456789abcdef", "a.b.c"] {
        assert_eq!(cluster.check(foreign, Objects::usual(), 0).await, Ok(None), "{foreign}");
    }
    let forged = other.issue(&wish(None)).token;
    let error = cluster.check(&forged, Objects::usual(), 0).await.unwrap_err().to_string();
    assert_eq!(error, "invalid signature, no keys found");
    let stranger = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let stranger = TokenIssuer::new("https://other", Arc::new(stranger), Vec::new(), None, ExpirationExtension::Exact);
    let token = stranger.issue(&wish(None), at(0), &Rng::seeded(1)).await.unwrap().token;
    assert_eq!(cluster.check(&token, Objects::usual(), 0).await, Ok(None));
    let (one, two) = (cluster.issue(&wish(None)).token, cluster.issue(&wish(pod())).token);
    let (head, _) = one.rsplit_once('.').unwrap();
    let (_, signature) = two.rsplit_once('.').unwrap();
    let error = cluster.check(&format!("{head}.{signature}"), Objects::usual(), 0).await.unwrap_err().to_string();
    assert_eq!(error, "error in cryptographic primitive");
}

#[tokio::test]
async fn audiences_of_token_and_request_must_meet() {
    let cluster = Cluster::usual();
    let vault = TokenWish { audiences: vec!["vault".to_owned()], ..wish(None) };
    let token = cluster.issue(&vault).token;
    let error = cluster.check(&token, Objects::usual(), 0).await.unwrap_err().to_string();
    assert_eq!(error, r#"token audiences ["vault"] is invalid for the target audiences ["api"]"#);
    let objects = Arc::new(Objects::usual());
    let keys = StaticKeys::shared([cluster.key.clone()]);
    let (issuers, audiences) = (vec![ISSUER.to_owned()], vec!["api".to_owned()]);
    let tokens = ServiceAccountTokens::new(issuers, keys, audiences, objects, clock(0), uses());
    let asked = ["x".to_owned(), "vault".to_owned()];
    assert_eq!(tokens.authenticate_token(&token, &asked).await.unwrap().unwrap().audiences, ["vault"]);
}

#[tokio::test]
async fn well_known_lifetimes_are_stretched_for_pods_and_reported_when_stale() {
    let extendable = |bound| TokenWish { expiration_seconds: 3607, ..wish(bound) };
    let cluster = Cluster::usual();
    let issued = cluster.issue(&extendable(pod()));
    assert_eq!(issued.expiration, at(3607), "the reply shows the wish");
    let fresh = cluster.check(&issued.token, Objects::usual(), 3600).await.unwrap().unwrap();
    assert!(fresh.audit_annotations.is_empty());
    let stale = cluster.check(&issued.token, Objects::usual(), 300_000).await.unwrap().unwrap();
    assert_eq!(
        stale.audit_annotations,
        [(
            "authentication.k8s.io/stale-token".to_owned(),
            "subject: system:serviceaccount:ns:app, seconds after warning threshold: 296393".to_owned()
        )]
    );
    let elsewhere = TokenWish { audiences: vec!["vault".to_owned()], ..extendable(pod()) };
    let exact = Cluster::new(None, ExpirationExtension::Exact);
    for (name, cluster, wish) in [
        ("not a pod", &cluster, extendable(None)),
        ("another audience", &cluster, elsewhere),
        ("another lifetime", &cluster, wish(pod())),
        ("switched off", &exact, extendable(pod())),
    ] {
        let token = cluster.issue(&wish).token;
        assert!(cluster.check(&token, Objects::usual(), 10_000).await.is_err(), "{name}");
    }
}

#[test]
fn lifetimes_are_bounded() {
    let cluster = Cluster::new(Some(Duration::from_secs(7200)), ExpirationExtension::Extended);
    let issued = cluster.issue(&TokenWish { expiration_seconds: 10_000, ..wish(pod()) });
    assert_eq!((issued.expiration, issued.expiration_seconds), (at(7200), 7200));
    assert_eq!(issued.warnings, ["requested expiration of 10000 seconds shortened to 7200 seconds"]);
    assert_eq!(expiration_problem(599), Some("may not specify a duration less than 10 minutes"));
    assert_eq!(expiration_problem(600), None);
    assert_eq!(expiration_problem(1 << 32), None);
    assert_eq!(expiration_problem((1 << 32) + 1), Some("may not specify a duration larger than 2^32 seconds"));
    assert_eq!(uid_conflict("", "a"), None);
    assert!(uid_conflict("a", "b").is_some());
    assert!(may_bind_to_pod("a", "b").is_err() && may_bind_to_pod("a", "a").is_ok());
}

#[test]
fn user_names_split_only_when_well_formed() {
    assert_eq!(split_username(&username("ns", "a.b")), Some(("ns", "a.b")));
    for bad in [
        "alice",
        "system:serviceaccount:ns",
        "system:serviceaccount:ns:",
        "system:serviceaccount:ns:a:b",
        "system:serviceaccount:N:a",
    ] {
        assert_eq!(split_username(bad), None, "{bad}");
    }
}
