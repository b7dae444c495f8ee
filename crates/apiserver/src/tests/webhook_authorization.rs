//! Somebody elsewhere decides, over HTTPS; and the file that says who does changes.

use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::apiserver_config_v1::{AuthorizerConfiguration, WebhookConfiguration, WebhookConnectionInfo};
use serde_json::json;

use super::fake_webhook::{FakeWebhook, Reply};
use super::harness::{Answer, Api};
use crate::config::AuthorizationConfig;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A webhook as an authorizer, with settings that flags would make.
fn authorizer(webhook: &FakeWebhook, change: impl FnOnce(&mut WebhookConfiguration)) -> AuthorizerConfiguration {
    let mut settings = WebhookConfiguration {
        authorized_ttl: GoDuration::from_secs(300),
        unauthorized_ttl: GoDuration::from_secs(30),
        timeout: GoDuration::from_secs(30),
        subject_access_review_version: "v1".into(),
        failure_policy: "NoOpinion".into(),
        connection_info: WebhookConnectionInfo {
            type_: "KubeConfigFile".into(),
            kube_config_file: Some(webhook.kubeconfig().display().to_string()),
        },
        ..WebhookConfiguration::default()
    };
    change(&mut settings);
    AuthorizerConfiguration { type_: "Webhook".into(), name: "w".into(), webhook: Some(settings) }
}

async fn with_webhook(webhook: &FakeWebhook, change: impl FnOnce(&mut WebhookConfiguration)) -> Api {
    let own = authorizer(webhook, change);
    Api::with(|config| {
        config.authorization = AuthorizationConfig::of_types(&["RBAC"]);
        config.authorization.authorizers.authorizers.insert(0, own);
    })
    .await
}

async fn alice(api: &Api, path: &str) -> Answer {
    api.send(&format!("GET {path}"), &[("authorization", "Bearer alice")], "").await
}

/// Who asks for what nobody knows can keep it waiting, too, and must not name a series by that.
#[tokio::test]
async fn what_waited_too_long_is_counted_without_made_up_words() {
    let webhook = FakeWebhook::start(Reply::Never);
    let api = with_webhook(&webhook, |_| {}).await;
    for path in ["/apis/made/v1/up", MAPS] {
        assert_eq!(alice(&api, &format!("{path}?timeout=200ms")).await.code, 504, "{path}");
    }
    let metrics = api.get("/metrics").await.text;
    let counted = |resource: &str, scope: &str| {
        let line = format!(
            r#"apiserver_request_terminations_total{{code="504",component="apiserver",group="",resource="{resource}",scope="{scope}","#
        );
        metrics.lines().any(|own| own.starts_with(&line) && own.ends_with(" 1"))
    };
    assert!(counted("", "cluster") && counted("configmaps", "namespace"), "{metrics}");
    assert!(!metrics.contains(r#""made""#) && !metrics.contains(r#""up""#), "{metrics}");
}

#[tokio::test]
async fn a_webhook_is_asked_and_its_answer_remembered() {
    let webhook = FakeWebhook::start(Reply::Status(json!({"allowed": true, "reason": "why not"})));
    let api = with_webhook(&webhook, |_| {}).await;
    assert!(webhook.asked().is_empty(), "members of system:masters pass before");
    let path = format!("{MAPS}?labelSelector=a%3Db&fieldSelector=metadata.name%3Dx");
    assert_eq!(alice(&api, &path).await.code, 200);
    let [asked] = webhook.asked().try_into().expect("one question");
    assert_eq!((asked.uri.as_str(), asked.authorization.as_str()), ("/ask?timeout=30s", "Bearer secret"));
    assert_eq!(
        asked.body["spec"],
        json!({
            "user": "alice",
            "groups": ["system:authenticated"],
            "resourceAttributes": {
                "namespace": "default", "verb": "list", "version": "v1", "resource": "configmaps", "name": "x",
                "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]},
                "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]},
            },
        })
    );
    assert_eq!(alice(&api, &path).await.code, 200);
    assert!(webhook.asked().is_empty(), "it is remembered");
    let long = format!("/api/v1/namespaces/default/configmaps/{}", "x".repeat(10_000));
    for _ in 0..2 {
        alice(&api, &long).await;
        assert_eq!(webhook.asked().len(), 1, "what is too long is not");
    }
    let metrics = api.get("/metrics").await.text;
    for expected in [
        "apiserver_authorization_webhook_evaluations_total{name=\"w\",result=\"success\"} 3",
        "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"w\",type=\"Webhook\"} 4",
    ] {
        assert!(metrics.contains(expected), "{expected}");
    }
}

#[tokio::test]
async fn answers_decide() {
    let webhook = FakeWebhook::start(Reply::Never);
    let api = with_webhook(&webhook, |settings| settings.cache_unauthorized_requests = Some(false)).await;
    let refused = "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    for (status, code, message) in [
        (json!({"allowed": false, "denied": true, "reason": "never"}), 403, format!("{refused}: never")),
        (json!({"allowed": false, "reason": "who knows"}), 403, format!("{refused}: who knows")),
        (
            json!({"allowed": true, "denied": true}),
            500,
            format!(
                "Internal Server Error: \"{MAPS}\": webhook subject access review returned both allow and deny response\n"
            ),
        ),
    ] {
        webhook.reply(Reply::Status(status.clone()));
        assert_eq!(alice(&api, MAPS).await.refusal(), (code, message), "{status}");
    }
    webhook.reply(Reply::Status(json!({"allowed": false})));
    let review = r#"{"spec": {"namespace": "default"}}"#;
    let path = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let rules = api.send(path, &[], review).await.json();
    assert_eq!(rules["status"]["incomplete"], true);
    assert_eq!(rules["status"]["evaluationError"], "webhook authorizer does not support user rule resolution");
}

#[tokio::test]
async fn failures_come_to_what_the_policy_says() {
    for (policy, code, fail_open) in [("NoOpinion", 500, true), ("Deny", 500, false)] {
        let webhook = FakeWebhook::start(Reply::With(200, "garbage".into()));
        let api = with_webhook(&webhook, |settings| {
            settings.failure_policy = policy.into();
            settings.timeout = GoDuration::from_nanos(200_000_000);
        })
        .await;
        assert_eq!(alice(&api, MAPS).await.code, code, "{policy}: garbage");
        webhook.reply(Reply::With(503, "busy".into()));
        assert_eq!(alice(&api, MAPS).await.code, code, "{policy}: 503");
        assert_eq!(webhook.asked().len(), 2, "neither is asked again");
        webhook.reply(Reply::Never);
        let began = tokio::time::Instant::now();
        assert_eq!(alice(&api, MAPS).await.code, code, "{policy}: slow");
        assert!(began.elapsed() < Duration::from_secs(5));
        webhook.stop().await;
        assert_eq!(alice(&api, MAPS).await.code, code, "{policy}: refused");
        let metrics = api.get("/metrics").await.text;
        let name = "apiserver_authorization_webhook_evaluations_fail_open_total{";
        assert_eq!(metrics.contains(&format!("{name}name=\"w\",result=\"timeout\"}} 1")), fail_open, "{policy}");
        assert!(metrics.contains("webhook_evaluations_total{name=\"w\",result=\"timeout\"} 1"), "{policy}");
        assert_eq!(api.get(MAPS).await.code, 200, "system:masters pass all the same");
    }
}

#[tokio::test]
async fn what_may_pass_is_asked_again() {
    let webhook = FakeWebhook::start(Reply::With(500, "oops".into()));
    let api = with_webhook(&webhook, |_| {}).await;
    let heals = async {
        while webhook.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        webhook.reply(Reply::Status(json!({"allowed": true})));
    };
    let (answer, ()) = tokio::join!(alice(&api, MAPS), heals);
    assert_eq!(answer.code, 200, "{}", answer.text);
}

#[tokio::test]
async fn the_file_changes_who_decides() {
    let webhook = FakeWebhook::start(Reply::Status(json!({"allowed": true})));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("authorization.yaml");
    let write = |authorizers: &str| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration\nauthorizers: [{authorizers}]\n"
        );
        std::fs::write(&path, text).expect("a file");
    };
    let asking = format!(
        "{{type: Webhook, name: w, webhook: {{timeout: 3s, subjectAccessReviewVersion: v1beta1, failurePolicy: Deny, \
         connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {:?}}}}}}}, {{type: RBAC, name: rbac}}",
        webhook.kubeconfig()
    );
    write("{type: RBAC, name: rbac}");
    let api = Api::with(|config| {
        config.authorization = AuthorizationConfig::of_types(&["RBAC"]);
        config.authorization.file = Some(path.clone());
    })
    .await;
    assert_eq!(alice(&api, MAPS).await.code, 403);
    let becomes = async |code: u16| {
        for _ in 0..500 {
            if alice(&api, MAPS).await.code == code {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it never became {code}");
    };
    write(&asking);
    becomes(200).await;
    let asked = webhook.asked().pop().expect("a question");
    assert_eq!(asked.body["spec"]["group"], json!(["system:authenticated"]), "as v1beta1 has it");

    let failures = async || {
        let text = api.get("/metrics").await.text;
        let name = "apiserver_authorization_config_controller_automatic_reloads_total{";
        let line = text.lines().find(|line| line.starts_with(name) && line.contains("status=\"failure\""));
        line.and_then(|line| line.rsplit(' ').next()).map_or(0, |count| count.parse::<u64>().expect("a count"))
    };
    for bad in ["", "{type: Node, name: node}, {type: RBAC, name: rbac}", "{type: AlwaysAllow, name: alwaysallow}"] {
        let before = failures().await;
        write(bad);
        while failures().await == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(alice(&api, MAPS).await.code, 200, "{bad:?} changes nothing");
    }
    write("{type: RBAC, name: rbac}");
    becomes(403).await;
}

#[tokio::test]
async fn policies_of_a_file_decide_and_can_be_listed() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let policy = r#"{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"*","apiGroup":"*","readonly":true}}"#;
    std::fs::write(file.path(), policy).expect("it is written");
    let api = Api::with(|config| {
        config.authorization = AuthorizationConfig::of_types(&["Node", "ABAC"]);
        config.authorization.policy_file = Some(file.path().to_owned());
    })
    .await;
    assert_eq!(alice(&api, MAPS).await.code, 200);
    let write = api.send(&format!("DELETE {MAPS}/x"), &[("authorization", "Bearer alice")], "").await;
    assert!(write.refusal().1.ends_with(": No policy matched."), "{}", write.text);
}
