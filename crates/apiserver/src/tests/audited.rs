//! What the audit log tells of requests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use audit::{Batching, Delivery, Format, Mode, Rotation};
use component_base::Gates;
use component_base::lifecycle::Lifecycle;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::harness::Api;
use crate::config::{AuditConfig, AuditLogConfig};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server that tells what a policy wants of requests, and its log.
pub(super) struct Audited {
    folder: tempfile::TempDir,
    pub(super) api: Api,
}

impl Audited {
    pub(super) async fn new(rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::as_process(|lifecycle| lifecycle, folder, rules).await
    }

    /// The same of a process that was started in another way.
    async fn as_process(process: impl FnOnce(Lifecycle) -> Lifecycle, folder: tempfile::TempDir, rules: &str) -> Self {
        let audit = audit(folder.path(), Mode::Blocking, rules);
        let api = Api::as_process(process, |server| server.audit = Some(audit)).await;
        Self { folder, api }
    }

    /// The events of requests with this path, once the log has what was told without waiting.
    pub(super) async fn events(&self, uri: &str) -> Vec<Value> {
        // Whoever waits is behind whatever was told before.
        self.api.get("/api/v1/nodes/none").await;
        let text = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is an event"));
        events.filter(|event| event["requestURI"].as_str().is_some_and(|own| own.starts_with(uri))).collect()
    }
}

fn audit(folder: &Path, mode: Mode, rules: &str) -> AuditConfig {
    let policy = folder.join("policy.yaml");
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: {rules}\n");
    std::fs::write(&policy, text).expect("a policy");
    let log = Some(log(folder.join("audit.log"), mode));
    AuditConfig { policy, log, webhook: None }
}

fn log(path: PathBuf, mode: Mode) -> AuditLogConfig {
    let batching = Batching { room: 100, max_events: 1, max_wait: Duration::ZERO, rate: None };
    let delivery = Delivery { mode, batching, truncation: None };
    AuditLogConfig { path, format: Format::Json, rotation: Rotation::default(), delivery }
}

const EVERYTHING: &str = "[{level: Metadata}]";

#[tokio::test]
async fn a_write_is_told_before_it_is_answered() {
    let audited = Audited::new(EVERYTHING).await;
    let map = r#"{"metadata": {"name": "a"}}"#;
    let headers = [("audit-id", "mine"), ("user-agent", "tests"), ("x-forwarded-for", "192.0.2.7")];
    assert_eq!(audited.api.send(&format!("POST {MAPS}?dryRun=All"), &headers, map).await.code, 201);
    let text = std::fs::read_to_string(audited.folder.path().join("audit.log")).expect("a log");
    let line = text.lines().find(|line| line.contains("dryRun=All")).expect("it is there already");
    let event: Value = serde_json::from_str(line).expect("an event");
    assert_eq!((&event["stage"], &event["verb"]), (&json!("ResponseComplete"), &json!("create")));
    assert_eq!((&event["auditID"], &event["userAgent"]), (&json!("mine"), &json!("tests")));
    assert_eq!(
        (&event["requestURI"], &event["sourceIPs"]),
        (&json!(format!("{MAPS}?dryRun=All")), &json!(["192.0.2.7", "127.0.0.1"]))
    );
    assert_eq!(event["user"]["username"], "root");
    let object = json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"});
    assert_eq!(event["objectRef"], object, "the path does not say its name");
    assert_eq!(event["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "allow");
    assert!(event.get("requestObject").is_none());
}

#[tokio::test]
async fn refusals_say_why() {
    let audited = Audited::new(EVERYTHING).await;
    let (alice, nobody) = ([("authorization", "Bearer alice")], [("authorization", "Bearer mallory")]);
    assert_eq!(audited.api.send("GET /api/v1/pods", &alice, "").await.code, 403);
    let forbidden = audited.events("/api/v1/pods").await.remove(0);
    assert_eq!(forbidden["annotations"]["authorization.k8s.io/decision"], "forbid");
    let status = &forbidden["responseStatus"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
    assert!(status["message"].as_str().is_some_and(|text| text.contains("User \"alice\" cannot list")), "{status}");

    assert_eq!(audited.api.send("GET /api/v1/secrets", &nobody, "").await.code, 401);
    let unknown = audited.events("/api/v1/secrets").await;
    let [unknown] = unknown.as_slice() else { panic!("one event of it: {unknown:?}") };
    assert_eq!((&unknown["stage"], &unknown["user"]), (&json!("ResponseStarted"), &json!({})));
    assert_eq!(unknown["responseStatus"]["message"], "Authentication failed, attempted: bearer");

    assert_eq!(audited.api.get(&format!("{MAPS}/none")).await.code, 404);
    let missing = audited.events(&format!("{MAPS}/none")).await.remove(0);
    assert_eq!(missing["responseStatus"]["reason"], "NotFound");
    assert_eq!(missing["responseStatus"]["details"]["kind"], "configmaps");

    assert_eq!(audited.api.get(&format!("{MAPS}?timeout=x")).await.code, 400);
    let bad = audited.events(&format!("{MAPS}?timeout=x")).await.remove(0);
    assert_eq!((&bad["stage"], &bad["responseStatus"]["code"]), (&json!("ResponseStarted"), &json!(400)));
}

#[tokio::test]
async fn a_panic_is_told() {
    let audited = Audited::new(EVERYTHING).await;
    assert_eq!(audited.api.get("/test/panic").await.code, 500);
    let events = audited.events("/test/panic").await;
    let [event] = events.as_slice() else { panic!("one event of it: {events:?}") };
    assert_eq!((&event["stage"], &event["responseStatus"]["reason"]), (&json!("Panic"), &json!("InternalError")));
    assert!(event.get("objectRef").is_none());
}

#[tokio::test]
async fn who_acts_for_whom_is_told() {
    let audited = Audited::new("[{level: None, users: [alice]}, {level: Metadata}]").await;
    audited.api.send("GET /version", &[("impersonate-user", "bob")], "").await;
    let constraint = audited.events("/version").await[0]["authenticationMetadata"]["impersonationConstraint"].clone();
    assert_eq!(constraint, "impersonate:user-info");
    let headers = [("impersonate-user", "alice"), ("impersonate-group", "system:masters")];
    assert_eq!(audited.api.send(&format!("GET {MAPS}"), &headers, "").await.code, 200);
    let events = audited.events(MAPS).await;
    let [event] = events.as_slice() else { panic!("rules look at the sender: {events:?}") };
    assert_eq!((&event["user"]["username"], &event["impersonatedUser"]["username"]), (&json!("root"), &json!("alice")));
    assert!(event.get("authenticationMetadata").is_none(), "only the old permission makes anybody a master");
    let direct = audited.api.send("GET /api/v1/nodes", &[("authorization", "Bearer alice")], "").await;
    assert_eq!(direct.code, 403);
    assert_eq!(audited.events("/api/v1/nodes?").await.len() + audited.events("/api/v1/nodes ").await.len(), 0);
}

#[tokio::test]
async fn what_admission_notes_is_told_though_it_refuses() {
    let audited = Audited::new(EVERYTHING).await;
    let space = r#"{"metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/audit": "restricted"}}}"#;
    assert_eq!(audited.api.post("/api/v1/namespaces", space).await.code, 201);
    let account = r#"{"metadata": {"name": "default"}}"#;
    assert_eq!(audited.api.post("/api/v1/namespaces/strict/serviceaccounts", account).await.code, 201);
    let pod =
        r#"{"metadata": {"name": "p"}, "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]}}"#;
    assert_eq!(audited.api.post("/api/v1/namespaces/strict/pods", pod).await.code, 403);
    let event = audited.events("/api/v1/namespaces/strict/pods").await.remove(0);
    let annotations = &event["annotations"];
    assert_eq!(annotations["pod-security.kubernetes.io/enforce-policy"], "baseline:latest");
    let violations = annotations["pod-security.kubernetes.io/audit-violations"].as_str().expect("violations");
    assert!(violations.starts_with("would violate PodSecurity \"restricted:latest\": "), "{violations}");
    assert_eq!(event["responseStatus"]["reason"], "Forbidden");
}

#[tokio::test]
async fn a_watch_is_told_when_it_begins_and_when_it_ends() {
    let audited = Audited::new(EVERYTHING).await;
    let watch = audited.api.open(&format!("GET {MAPS}?watch=1&timeoutSeconds=1"), &[], "").await;
    assert_eq!(watch.status(), 200);
    let stages = async || -> Vec<Value> {
        audited.events(&format!("{MAPS}?watch")).await.into_iter().map(|event| event["stage"].clone()).collect()
    };
    assert_eq!(stages().await, ["ResponseStarted"]);
    watch.into_body().collect().await.expect("it ends");
    assert_eq!(stages().await, ["ResponseStarted", "ResponseComplete"]);
    let dropped = audited.api.open(&format!("GET {MAPS}?watch=true"), &[], "").await;
    drop(dropped);
    let last = audited.events(&format!("{MAPS}?watch=true")).await.pop().expect("an event");
    assert_eq!((&last["stage"], &last["responseStatus"]["code"]), (&json!("ResponseComplete"), &json!(200)));
}

#[tokio::test]
async fn a_log_that_cannot_be_written_refuses_requests_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let api = {
        let policy = folder.path().join("policy.yaml");
        let text =
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, users: [root]}, {level: Metadata}]\n";
        std::fs::write(&policy, text).expect("a policy");
        let log = Some(log(policy.join("below"), Mode::BlockingStrict));
        let config = AuditConfig { policy, log, webhook: None };
        Api::with(|server| server.audit = Some(config)).await
    };
    let answer = api.send("GET /version", &[("authorization", "Bearer alice")], "").await;
    assert_eq!(
        (answer.code, answer.text.as_str()),
        (500, "Internal Server Error: \"/version\": failed to store audit event\n")
    );
    assert_eq!(api.get("/version").await.code, 200, "of which nothing is told");
}

#[tokio::test]
async fn it_is_told_who_deletes_without_reading() {
    let gates = Gates::default().with(registry::UNSAFE_DELETION, true);
    let folder = tempfile::tempdir().expect("a folder");
    let audited = Audited::as_process(|lifecycle| lifecycle.with_gates(gates), folder, EVERYTHING).await;
    let backend = audited.api.server.cx().backend();
    for (name, body, expected) in [
        ("a", r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":true}"#, json!("")),
        ("b", r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":false}"#, Value::Null),
    ] {
        let key = format!("/registry/configmaps/default/{name}").as_str().into();
        backend.txn(&key, storage::Expect::Absent, storage::Write::put("k8s\0garbage")).await.expect("a write");
        audited.api.send(&format!("DELETE {MAPS}/{name}"), &[], body).await;
        let events = audited.events(&format!("{MAPS}/{name}")).await;
        let [event] = events.as_slice() else { panic!("one event: {events:?}") };
        assert_eq!(event["annotations"]["apiserver.k8s.io/unsafe-delete-ignore-read-error"], expected, "{name}");
    }
}
