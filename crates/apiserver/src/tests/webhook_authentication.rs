//! Somebody elsewhere knows tokens, over HTTPS.

use std::time::Duration;

use authn::TokenReviewVersion;
use serde_json::{Value, json};

use super::fake_webhook::{FakeWebhook, Reply};
use super::harness::{Answer, Api};
use crate::config::TokenWebhookConfig;

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn with_webhook(webhook: &FakeWebhook, version: TokenReviewVersion, ttl: Duration) -> Api {
    let own = TokenWebhookConfig { file: webhook.kubeconfig(), version, ttl };
    Api::with(|config| {
        config.service_accounts.api_audiences = vec!["api".to_owned()];
        config.authentication.token_webhook = Some(own);
    })
    .await
}

async fn get(api: &Api, token: &str) -> Answer {
    api.send("GET /version", &[("authorization", &format!("Bearer {token}"))], "").await
}

#[tokio::test]
async fn tokens_that_nobody_knows_are_put_to_the_webhook() {
    let user = json!({"username": "zoe", "uid": "7", "groups": ["system:masters"], "extra": {"k": ["v"]}});
    let webhook = FakeWebhook::start(Reply::Status(json!({"authenticated": true, "user": user})));
    let api = with_webhook(&webhook, TokenReviewVersion::V1, Duration::from_secs(60)).await;
    assert!(webhook.asked().is_empty(), "others know these tokens");
    let answer = api.send(&format!("POST {WHO}"), &[("authorization", "Bearer far")], "{}").await;
    let who = &answer.json()["status"]["userInfo"];
    assert_eq!((&who["username"], &who["uid"], &who["extra"]), (&json!("zoe"), &json!("7"), &json!({"k": ["v"]})));
    let [asked] = webhook.asked().try_into().expect("one question");
    assert_eq!((asked.uri.as_str(), asked.authorization.as_str()), ("/ask?timeout=30s", "Bearer secret"));
    assert_eq!(asked.body["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(asked.body["spec"], json!({"token": "far", "audiences": ["api"]}));
}

#[tokio::test]
async fn answers_decide_and_are_remembered_good_or_bad() {
    let webhook = FakeWebhook::start(Reply::Status(json!({})));
    let api = with_webhook(&webhook, TokenReviewVersion::V1beta1, Duration::from_secs(60)).await;
    let good = |audiences: Value| json!({"authenticated": true, "user": {"username": "zoe"}, "audiences": audiences});
    for (token, status, code) in [
        ("a", json!({"authenticated": false}), 401),
        ("b", json!({"authenticated": false, "error": "expired"}), 401),
        ("c", good(json!(["other"])), 401),
        ("d", good(json!(["other", "api"])), 200),
    ] {
        webhook.reply(Reply::Status(status));
        assert_eq!(get(&api, token).await.code, code, "{token}");
        let asked = webhook.asked();
        assert_eq!((asked.len(), asked[0].body["apiVersion"].as_str()), (1, Some("authentication.k8s.io/v1beta1")));
        webhook.reply(Reply::With(500, "nobody asks".into()));
        assert_eq!(get(&api, token).await.code, code, "{token} again");
        assert!(webhook.asked().is_empty(), "{token} is remembered");
    }
    let review = api.post("/apis/authentication.k8s.io/v1/tokenreviews", r#"{"spec": {"token": "b"}}"#).await.json();
    assert_eq!(review["status"]["error"], "[invalid bearer token, expired]");
}

#[tokio::test]
async fn failures_are_not_remembered() {
    let webhook = FakeWebhook::start(Reply::With(200, "garbage".into()));
    let api = with_webhook(&webhook, TokenReviewVersion::V1, Duration::from_secs(60)).await;
    assert_eq!(get(&api, "a").await.code, 401, "garbage");
    webhook.reply(Reply::With(503, "busy".into()));
    assert_eq!(get(&api, "a").await.code, 401, "503");
    assert_eq!(webhook.asked().len(), 2);
    webhook.reply(Reply::Status(json!({"authenticated": true, "user": {"username": "zoe"}})));
    assert_eq!(get(&api, "a").await.code, 200, "it is asked again");
    webhook.stop().await;
    assert_eq!(get(&api, "a").await.code, 200, "it is remembered");
    assert_eq!(get(&api, "b").await.code, 401, "refused");
    assert_eq!(get(&api, "root").await.code, 200, "whom others know passes all the same");
}
