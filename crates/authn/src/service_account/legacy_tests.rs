//! Tokens from Secrets, and every way they are refused.

use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;
use api_types::core_v1::ObjectReference;
use parking_lot::Mutex;
use pki::{KeyAlgorithm, PrivateKey, jws};
use serde_json::json;

use super::*;
use crate::service_account::StaticKeys;
use crate::testing::{at, clock, uses};

#[derive(Default)]
struct Objects {
    secret: Option<Secret>,
    account: Option<ServiceAccount>,
    noted: Mutex<Vec<String>>,
}

#[async_trait]
impl TokenSecrets for Objects {
    async fn token_secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, LookupError> {
        assert_eq!((namespace, name), ("ns", "build-token"));
        Ok(self.secret.clone().map(Arc::new))
    }
    async fn account(&self, namespace: &str, name: &str) -> Result<Option<Arc<ServiceAccount>>, LookupError> {
        assert_eq!((namespace, name), ("ns", "build"));
        Ok(self.account.clone().map(Arc::new))
    }
    async fn note_use(&self, _: &Secret, date: &str) {
        self.noted.lock().push(date.to_owned());
    }
}

fn payload() -> Value {
    json!({
        "iss": ISSUER,
        "sub": "system:serviceaccount:ns:build",
        "kubernetes.io/serviceaccount/namespace": "ns",
        "kubernetes.io/serviceaccount/secret.name": "build-token",
        "kubernetes.io/serviceaccount/service-account.name": "build",
        "kubernetes.io/serviceaccount/service-account.uid": "u",
    })
}

fn meta(name: &str, uid: &str) -> ObjectMeta {
    ObjectMeta { name: name.into(), namespace: "ns".into(), uid: uid.into(), ..ObjectMeta::default() }
}

struct Cluster {
    key: PrivateKey,
    token: String,
}

impl Cluster {
    fn of(payload: &Value) -> Self {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let token = jws::sign(&key, payload).unwrap();
        Self { key, token }
    }

    fn objects(&self) -> Objects {
        let mut secret = Secret { metadata: meta("build-token", "s"), ..Secret::default() };
        secret.data.insert("token".into(), ByteString(self.token.clone().into_bytes()));
        let account = ServiceAccount { metadata: meta("build", "u"), ..ServiceAccount::default() };
        Objects { secret: Some(secret), account: Some(account), ..Objects::default() }
    }

    async fn check(&self, objects: &Arc<Objects>, audiences: &[&str]) -> Result<Option<Identity>, AuthnError> {
        let audiences: Vec<String> = audiences.iter().map(|one| (*one).to_owned()).collect();
        let keys = StaticKeys::shared([self.key.public_key().clone()]);
        let objects = Arc::clone(objects) as Arc<dyn TokenSecrets>;
        let tokens = LegacyTokens::new(keys, vec!["api".to_owned()], Some(objects), clock(0), uses());
        tokens.authenticate_token(&self.token, &audiences).await
    }
}

#[tokio::test]
async fn nobody_has_to_look_up_what_a_token_lives_in() {
    let cluster = Cluster::of(&payload());
    let keys = StaticKeys::shared([cluster.key.public_key().clone()]);
    let tokens = LegacyTokens::new(keys, vec!["api".to_owned()], None, clock(0), uses());
    let identity = tokens.authenticate_token(&cluster.token, &[]).await.unwrap().unwrap();
    assert_eq!(identity.user.username, "system:serviceaccount:ns:build");
}

#[tokio::test]
async fn a_token_of_a_secret_is_the_account() {
    let cluster = Cluster::of(&payload());
    let objects = Arc::new(cluster.objects());
    let identity = cluster.check(&objects, &[]).await.unwrap().unwrap();
    assert_eq!((identity.user.username.as_str(), identity.user.uid.as_str()), ("system:serviceaccount:ns:build", "u"));
    assert_eq!(identity.user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns"]);
    assert_eq!(identity.audiences, ["api"]);
    assert!(identity.warnings.is_empty());
    assert_eq!(*objects.noted.lock(), [date(Time::from(at(0)))]);
    assert!(cluster.check(&objects, &["other"]).await.is_err());
}

#[tokio::test]
async fn automatic_secrets_are_warned_of() {
    let cluster = Cluster::of(&payload());
    let mut objects = cluster.objects();
    let reference = ObjectReference { name: "build-token".into(), ..ObjectReference::default() };
    objects.account.as_mut().unwrap().secrets.push(reference);
    let identity = cluster.check(&Arc::new(objects), &[]).await.unwrap().unwrap();
    assert_eq!(identity.warnings, [AUTOMATIC_WARNING]);
}

#[tokio::test]
async fn use_is_noted_once_a_day() {
    let cluster = Cluster::of(&payload());
    for (label, expected) in [(date(at(0).into()), 0), (date(at(86_400).into()), 0), (date(at(-86_400).into()), 1)] {
        let mut objects = cluster.objects();
        objects.secret.as_mut().unwrap().metadata.labels.insert(LAST_USED.into(), label.clone());
        let objects = Arc::new(objects);
        cluster.check(&objects, &[]).await.unwrap();
        assert_eq!(objects.noted.lock().len(), expected, "{label}");
    }
}

#[tokio::test]
async fn each_claim_is_needed() {
    for (claim, expected) in [
        ("sub", "sub claim is missing"),
        ("kubernetes.io/serviceaccount/namespace", "namespace claim is missing"),
        ("kubernetes.io/serviceaccount/secret.name", "secretName claim is missing"),
        ("kubernetes.io/serviceaccount/service-account.name", "serviceAccountName claim is missing"),
        ("kubernetes.io/serviceaccount/service-account.uid", "serviceAccountUID claim is missing"),
    ] {
        let mut payload = payload();
        payload.as_object_mut().unwrap().remove(claim);
        let cluster = Cluster::of(&payload);
        let error = cluster.check(&Arc::new(cluster.objects()), &[]).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let mut other = payload();
    other["sub"] = "system:serviceaccount:ns:admin".into();
    let cluster = Cluster::of(&other);
    assert_eq!(cluster.check(&Arc::new(cluster.objects()), &[]).await.unwrap_err().to_string(), "sub claim is invalid");
    let mut foreign = payload();
    foreign["iss"] = "somebody".into();
    let cluster = Cluster::of(&foreign);
    assert_eq!(cluster.check(&Arc::new(cluster.objects()), &[]).await, Ok(None), "another kind of token");
}

#[tokio::test]
async fn what_the_token_lives_in_decides() {
    let cluster = Cluster::of(&payload());
    type Change = fn(&mut Objects);
    let cases: [(&str, Change, &str); 7] = [
        ("no secret", |o| o.secret = None, "Token has been invalidated"),
        (
            "dying secret",
            |o| o.secret.as_mut().unwrap().metadata.deletion_timestamp = Some(Time::from_unix_seconds(1)),
            "Token has been invalidated",
        ),
        (
            "another token",
            |o| drop(o.secret.as_mut().unwrap().data.insert("token".into(), ByteString(b"x".to_vec()))),
            "Token does not match server's copy",
        ),
        ("no account", |o| o.account = None, "serviceaccounts \"build\" not found"),
        (
            "dying account",
            |o| o.account.as_mut().unwrap().metadata.deletion_timestamp = Some(Time::from_unix_seconds(1)),
            "ServiceAccount ns/build has been deleted",
        ),
        (
            "another account",
            |o| o.account.as_mut().unwrap().metadata.uid = "other".into(),
            "ServiceAccount UID (other) does not match claim (u)",
        ),
        (
            "marked",
            |o| drop(o.secret.as_mut().unwrap().metadata.labels.insert(INVALID_SINCE.into(), "2026-01-01".into())),
            "the token in secret ns/build-token for service account ns/build has been marked invalid. Use tokens from the \
             TokenRequest API or manually created secret-based tokens, or remove the \
             'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token",
        ),
    ];
    for (name, change, expected) in cases {
        let mut objects = cluster.objects();
        change(&mut objects);
        let error = cluster.check(&Arc::new(objects), &[]).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{name}");
    }
    let stranger = Cluster::of(&payload());
    let theirs = Cluster { key: stranger.key, token: cluster.token };
    assert!(theirs.check(&Arc::new(theirs.objects()), &[]).await.is_err(), "signed by another");
}
