//! Filling, deleting and forgetting token Secrets.

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::ObjectReference;
use pki::KeyAlgorithm;
use pki::jws::UnverifiedToken;

use super::*;
use crate::workloads::fixtures::{Running, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];
const SECRETS: &str = "v1/secrets";
const ACCOUNTS: &str = "v1/serviceaccounts";

fn meta(name: &str, uid: &str) -> ObjectMeta {
    ObjectMeta { name: name.into(), namespace: "ns".into(), uid: uid.into(), ..ObjectMeta::default() }
}

fn account(uid: &str) -> ServiceAccount {
    ServiceAccount { metadata: meta("build", uid), ..ServiceAccount::default() }
}

fn secret(account_uid: &str) -> Secret {
    let mut secret = Secret { metadata: meta("build-token", "s"), type_: TOKEN_TYPE.into(), ..Secret::default() };
    secret.metadata.annotations.insert(ACCOUNT_NAME.into(), "build".into());
    if !account_uid.is_empty() {
        secret.metadata.annotations.insert(ACCOUNT_UID.into(), account_uid.into());
    }
    secret
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

#[test]
fn what_is_there_stays_but_for_the_ca() {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let empty = filled(&secret(""), &account("u"), b"ca", &key).unwrap();
    assert_eq!((&empty.data[CA_KEY], &empty.data[NAMESPACE_KEY]), (&bytes("ca"), &bytes("ns")));
    assert_eq!(empty.metadata.annotations[ACCOUNT_UID], "u");
    let token = String::from_utf8(empty.data[TOKEN_KEY].0.clone()).unwrap();
    let token = UnverifiedToken::parse(&token).unwrap();
    let claims = token.verify(key.public_key()).unwrap();
    assert_eq!(claims["sub"], "system:serviceaccount:ns:build");
    assert_eq!(claims["kubernetes.io/serviceaccount/secret.name"], "build-token");
    assert!(claims.get("exp").is_none() && claims.get("aud").is_none());
    assert!(Lacks::of(&empty, b"ca").nothing());
    assert!(Lacks::of(&empty, b"").nothing(), "no CA is known, so none is lacking");
    let mut own = secret("");
    own.data.insert(TOKEN_KEY.into(), bytes("mine"));
    own.data.insert(NAMESPACE_KEY.into(), bytes("other"));
    own.data.insert(CA_KEY.into(), bytes("old"));
    let own = filled(&own, &account("u"), b"new", &key).unwrap();
    let data = [&own.data[TOKEN_KEY], &own.data[NAMESPACE_KEY], &own.data[CA_KEY]];
    assert_eq!(data, [&bytes("mine"), &bytes("other"), &bytes("new")]);
}

/// The controller at work, with a key of its own.
fn running() -> (Running, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sa.key");
    PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap().store(&file).unwrap();
    let settings = Settings { token_key_file: file, root_ca: "ca".into(), ..Settings::default() };
    (Running::start_with(KNOWN, settings), dir)
}

#[tokio::test(start_paused = true)]
async fn secrets_live_and_die_with_their_account() {
    let (running, _dir) = running();
    running.put(ACCOUNTS, &account("u"));
    running.put(SECRETS, &secret(""));
    let opaque = Secret { metadata: meta("other", "o"), type_: "Opaque".into(), ..Secret::default() };
    running.put(SECRETS, &opaque);
    run_until_idle().await;
    let made: Secret = running.client.namespaced("ns").get("build-token").await.unwrap();
    assert_eq!(made.metadata.annotations[ACCOUNT_UID], "u");
    assert!(!made.data[TOKEN_KEY].0.is_empty());
    running.assert_steady().await;
    running.server.remove(ACCOUNTS, "ns", "build");
    run_until_idle().await;
    assert_eq!(running.count(SECRETS), 1, "only the Secret of the account goes");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_another_account_of_the_name_goes() {
    let (running, _dir) = running();
    running.put(ACCOUNTS, &account("new"));
    running.put(SECRETS, &secret("old"));
    run_until_idle().await;
    assert_eq!(running.count(SECRETS), 0);
}

#[tokio::test(start_paused = true)]
async fn accounts_forget_secrets_that_are_gone() {
    let (running, _dir) = running();
    let mut owner = account("u");
    for name in ["build-token", "kept"] {
        owner.secrets.push(ObjectReference { name: name.into(), ..ObjectReference::default() });
    }
    running.put(ACCOUNTS, &owner);
    running.put(SECRETS, &secret("u"));
    run_until_idle().await;
    running.server.remove(SECRETS, "ns", "build-token");
    run_until_idle().await;
    let owner: ServiceAccount = running.client.namespaced("ns").get("build").await.unwrap();
    assert_eq!(owner.secrets.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["kept"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_key_nothing_is_filled() {
    let running = Running::start(KNOWN);
    running.put(ACCOUNTS, &account("u"));
    running.put(SECRETS, &secret(""));
    run_until_idle().await;
    let left: Secret = running.client.namespaced("ns").get("build-token").await.unwrap();
    assert!(left.data.is_empty());
}
