//! Tokens of issuers elsewhere, over HTTPS, from a file that changes while the server runs.

use std::time::Duration;

use api_types::apiserver_config_v1::{AnonymousAuthCondition, AnonymousAuthConfig};
use authn::jwt::ALGORITHMS;
use serde_json::{Value, json};

use super::harness::{Answer, Api};
use super::issuer_server::{IssuerServer, Mood};
use crate::config::JwtConfig;

const WHO: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The file of the configuration.
struct File(tempfile::TempDir);

impl File {
    fn new(jwt: &[Value]) -> Self {
        let file = Self(tempfile::tempdir().expect("a directory"));
        file.write(jwt, &json!({}));
        file
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("authentication")
    }

    fn write(&self, jwt: &[Value], more: &Value) {
        let mut text =
            json!({"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": jwt});
        text.as_object_mut().expect("members").extend(more.as_object().expect("members").clone());
        std::fs::write(self.path(), text.to_string()).expect("a file");
    }

    async fn serve(&self) -> Api {
        Api::with(|config| {
            config.authentication.jwt =
                JwtConfig { issuers: Vec::new(), algorithms: ALGORITHMS.to_vec(), file: Some(self.path()) };
        })
        .await
    }
}

async fn ask(api: &Api, token: &str) -> Answer {
    api.send(WHO, &[("authorization", &format!("Bearer {token}"))], "{}").await
}

/// The user that a token is, once it is one.
async fn becomes(api: &Api, token: &str, wanted: &str) {
    let mut answer = ask(api, token).await;
    for _ in 0..100 {
        if answer.json()["status"]["userInfo"]["username"] == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = ask(api, token).await;
    }
    panic!("never {wanted}: {answer:?}");
}

async fn counted(api: &Api, line: &str) -> bool {
    for _ in 0..50 {
        if api.get("/metrics").await.text.contains(line) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}

/// Why a token is refused.
async fn refusal(api: &Api, token: &str) -> String {
    let review = json!({"spec": {"token": token}}).to_string();
    let answer = api.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.json();
    answer["status"]["error"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn keys_change_while_the_server_runs() {
    let issuer = IssuerServer::start();
    let api = File::new(&[issuer.configured("u:")]).serve().await;
    let first = issuer.token(&json!({"jti": "t1"}));
    becomes(&api, &first, "u:zoe").await;
    let user = ask(&api, &first).await.json()["status"]["userInfo"].clone();
    assert_eq!(user["groups"], json!(["system:masters", "system:authenticated"]));
    assert_eq!(user["extra"]["authentication.kubernetes.io/credential-id"], json!(["JTI=t1"]));
    assert_eq!(issuer.asked("/keys"), 1);
    issuer.rotate();
    becomes(&api, &issuer.token(&json!({"sub": "yan"})), "u:yan").await;
    assert_eq!(issuer.asked("/keys"), 2, "one fetch brings the new key");
    let review = json!({"spec": {"token": issuer.token(&json!({"aud": "other"}))}}).to_string();
    let answer = api.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.json();
    let expected = "[invalid bearer token, oidc: verify token: oidc: expected audience \"kubernetes\" got [\"other\"]]";
    assert_eq!(answer["status"]["error"], expected);
    assert_eq!(ask(&api, &issuer.token(&json!({"exp": 1}))).await.code, 401);
    let metrics = api.get("/metrics").await.text;
    assert_eq!(metrics.matches("jwt_authenticator_jwks_fetch_last_key_set_info{").count(), 1, "{metrics}");
    assert!(metrics.contains("apiserver_authentication_jwt_authenticator_latency_seconds_count{"), "{metrics}");
}

#[tokio::test]
async fn the_file_changes_while_the_server_runs() {
    let (one, two) = (IssuerServer::start(), IssuerServer::start());
    let file = File::new(&[one.configured("one:")]);
    let api = file.serve().await;
    becomes(&api, &one.token(&json!({})), "one:zoe").await;
    assert_eq!(ask(&api, &two.token(&json!({}))).await.code, 401);
    file.write(&[one.configured("uno:"), two.configured("two:")], &json!({}));
    becomes(&api, &two.token(&json!({})), "two:zoe").await;
    becomes(&api, &one.token(&json!({"n": 1})), "uno:zoe").await;

    let reloads = "apiserver_authentication_config_controller_automatic_reloads_total{";
    let of = |status: &str, count: u32| format!("status=\"{status}\"}} {count}\n");
    assert!(counted(&api, &of("success", 1)).await);
    assert!(api.get("/metrics").await.text.contains(reloads));
    for (jwt, more) in [
        (vec![json!({"issuer": {"url": "http://plain"}})], json!({})),
        (vec![two.configured("x:")], json!({"anonymous": {"enabled": false}})),
    ] {
        let text = api.get("/metrics").await.text;
        let former = (1..9).find(|count| text.contains(&of("failure", *count))).unwrap_or(0);
        file.write(&jwt, &more);
        assert!(counted(&api, &of("failure", former + 1)).await, "{jwt:?}");
        becomes(&api, &one.token(&json!({"n": former + 2})), "uno:zoe").await;
    }
}

#[tokio::test]
async fn hostile_issuers_keep_nobody_else_waiting() {
    let issuer = IssuerServer::start();
    let api = File::new(&[issuer.configured("u:")]).serve().await;
    let expected = [
        (Mood::Endless, "the answer is longer than 1048576 bytes"),
        (Mood::Elsewhere("http://127.0.0.1:1/keys".to_owned()), "unsupported protocol scheme, only https is asked"),
        (Mood::Elsewhere("/keys".to_owned()), "stopped after 10 redirects"),
    ];
    for (mood, expected) in expected {
        issuer.mood(mood);
        let token = issuer.token(&json!({}));
        let mut told = refusal(&api, &token).await;
        for _ in 0..100 {
            if told.contains(expected) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            told = refusal(&api, &token).await;
        }
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains(&token), "no token is told");
    }
    issuer.mood(Mood::Silent);
    let token = issuer.token(&json!({}));
    let waits = ask(&api, &token);
    let others = async { api.get("/version").await.code };
    tokio::pin!(waits);
    tokio::select! {
        _ = &mut waits => {}
        code = others => assert_eq!(code, 200, "whom others know passes at once"),
    }
}

#[tokio::test]
async fn an_issuer_that_is_somebody_else_is_none() {
    let issuer = IssuerServer::start();
    issuer.pretend("https://somebody.example");
    let api = File::new(&[issuer.configured("u:")]).serve().await;
    while issuer.asked("/.well-known/openid-configuration") == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let told = refusal(&api, &issuer.token(&json!({}))).await;
    assert_eq!(told, "[invalid bearer token, oidc: authenticator not initialized]");
    assert_eq!(issuer.asked("/keys"), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_without_credentials_get_to_some_paths() {
    let condition = AnonymousAuthCondition { path: "/version".to_owned() };
    let api = Api::with(|config| {
        config.authentication.anonymous = AnonymousAuthConfig { enabled: true, conditions: vec![condition] };
    })
    .await;
    for (path, code) in [("/version", 200), ("/version/", 401), ("/readyz", 401), ("/api", 401)] {
        assert_eq!(api.send(&format!("GET {path}"), &[("authorization", "")], "").await.code, code, "{path}");
    }
}
