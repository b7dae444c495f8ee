//! Policies, and what becomes of a request's notes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ObjectMeta, Status};
use api_types::authentication_v1::UserInfo;
use base::{SharedClock, TaskGroup, TokioClock};
use component_base::metrics::{Metrics, MetricsOptions};
use serde_json::{Value, json};

use crate::policy::Asked;
use crate::{
    AuditMetrics, Auditor, Backend, Batching, Context, Delivery, Format, LogFile, LogSink, Mode, NotStored, Origin,
    Policy, Rotation, Target,
};

fn policy(rules: &Value) -> Policy {
    let text = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}).to_string();
    Policy::read(&text).expect(&text)
}

fn user(name: &str, groups: &[&str]) -> UserInfo {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    UserInfo { username: name.into(), groups, ..UserInfo::default() }
}

/// `VERB NAMESPACE RESOURCE[/PART] [NAME]` of a group, or `VERB /path`.
fn target(text: &str) -> Target {
    let words: Vec<&str> = text.split(' ').collect();
    let verb = words[0].to_owned();
    if words[1].starts_with('/') {
        return Target { verb, path: words[1].into(), ..Target::default() };
    }
    let (resource, part) = words[2].split_once('/').unwrap_or((words[2], ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    Target {
        verb,
        is_resource: true,
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        subresource: part.into(),
        namespace: words[1].trim_matches('-').into(),
        name: words.get(3).copied().unwrap_or_default().into(),
        ..Target::default()
    }
}

#[test]
fn the_first_rule_that_fits_decides() {
    let resources = |entries: Value| json!([{"level": "Metadata", "resources": entries}]);
    let all = json!([{"level": "Metadata"}]);
    for (rules, request, expected) in [
        (all.clone(), "get ns pods a", true),
        (all.clone(), "get /healthz", true),
        (json!([{"level": "None", "users": ["jane"]}, {"level": "Metadata"}]), "get ns pods a", false),
        (json!([{"level": "None", "users": ["joe"]}, {"level": "Metadata"}]), "get ns pods a", true),
        (json!([{"level": "Metadata", "userGroups": ["ops", "devs"]}]), "get ns pods a", true),
        (json!([{"level": "Metadata", "userGroups": ["ops"]}]), "get ns pods a", false),
        (json!([{"level": "Metadata", "verbs": ["list"]}]), "get ns pods a", false),
        (json!([{"level": "Metadata", "namespaces": ["ns"]}]), "get ns pods a", true),
        (json!([{"level": "Metadata", "namespaces": ["ns"]}]), "get /healthz", false),
        (json!([{"level": "Metadata", "namespaces": [""]}]), "get - nodes n", true),
        (json!([{"level": "Metadata", "namespaces": [""]}]), "get ns pods a", false),
        (resources(json!([{"group": "", "resources": ["pods"]}])), "get ns pods a", true),
        (resources(json!([{"group": "", "resources": ["pods"]}])), "get ns pods/log a", false),
        (resources(json!([{"group": "", "resources": ["pods/log"]}])), "get ns pods/log a", true),
        (resources(json!([{"group": "", "resources": ["pods/*"]}])), "get ns pods/log a", true),
        (resources(json!([{"group": "", "resources": ["*/log"]}])), "get ns pods/log a", true),
        (resources(json!([{"group": "", "resources": ["*/log"]}])), "get ns pods a", false),
        (resources(json!([{"group": "", "resources": ["*"]}])), "get ns pods/log a", true),
        (resources(json!([{"group": ""}])), "get ns pods a", true),
        (resources(json!([{"group": ""}])), "get ns jobs.batch a", false),
        (resources(json!([{"group": "*", "resources": ["jobs"]}])), "get ns jobs.batch a", true),
        (resources(json!([{"resources": ["pods"], "resourceNames": ["a"]}])), "get ns pods a", true),
        (resources(json!([{"resources": ["pods"], "resourceNames": ["a"]}])), "list ns pods", false),
        (json!([{"level": "Metadata", "nonResourceURLs": ["/heal*"]}]), "get /healthz", true),
        (json!([{"level": "Metadata", "nonResourceURLs": ["/healthz"]}]), "get /healthz/etcd", false),
        (json!([{"level": "Metadata", "nonResourceURLs": ["*"]}]), "get ns pods a", false),
    ] {
        let (user, target) = (user("jane", &["devs"]), target(request));
        let config = policy(&rules).evaluate(Asked { user: &user, target: &target });
        assert_eq!(config.is_some(), expected, "{rules} {request}");
    }
}

#[test]
fn policies_that_mean_nothing_are_refused() {
    for (rules, expected) in [
        (json!([]), "loaded illegal policy with 0 rules"),
        (json!([{"level": "Meta"}]), "rules[0].level: Unsupported value: \"Meta\""),
        (json!([{}]), "rules[0].level: Required value"),
        (json!([{"level": "None", "omitStages": ["End"]}]), "rules[0].omitStages[0]: allowed stages are"),
        (json!([{"level": "None", "nonResourceURLs": ["x"]}]), "must begin with a '/' character"),
        (json!([{"level": "None", "nonResourceURLs": ["/a*b"]}]), "must be the final character of the rule"),
        (
            json!([{"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["n"]}]),
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        (
            json!([{"level": "None", "resources": [{"resourceNames": ["n"]}]}]),
            "rules[0].resources[0].resourceNames: using resourceNames requires at least one resource",
        ),
    ] {
        let text = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}).to_string();
        let error = Policy::read(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(Policy::read(r#"{"apiVersion": "v1", "kind": "Policy"}"#).is_err());
    // A field of a later version is no reason not to start.
    policy(&json!([{"level": "None", "more": 1}]));
}

/// An audit log in a folder of its own.
struct Bench {
    folder: tempfile::TempDir,
    metrics: Arc<Metrics>,
    tasks: TaskGroup,
    auditor: Arc<Auditor>,
}

impl Bench {
    fn new(mode: Mode, rules: &Value) -> Self {
        Self::over("audit.log", mode, rules)
    }

    fn over(file: &str, mode: Mode, rules: &Value) -> Self {
        let (folder, metrics) = (tempfile::tempdir().expect("a folder"), Metrics::new(MetricsOptions::default()));
        let (tasks, own) = (TaskGroup::new("test"), AuditMetrics::new(&metrics));
        let clock: SharedClock = TokioClock::shared();
        let log = LogFile::new(&folder.path().join(file), Rotation::default());
        let sink = Arc::new(LogSink::new(log, Format::Json, Arc::clone(&clock), tasks.clone()));
        let batching = Batching { room: 2, max_events: 1, max_wait: Duration::ZERO, rate: None };
        let delivery = Delivery { mode, batching, truncation: None };
        let backend = Backend::start(sink, delivery, &own, &clock, &tasks);
        let auditor = Auditor::new(policy(rules), vec![backend], own, clock);
        Self { folder, metrics, tasks, auditor }
    }

    fn request(&self, text: &str) -> Context {
        let origin = Origin {
            audit_id: "id".into(),
            uri: "/x?y=1".into(),
            remote: "192.0.2.1".parse().ok(),
            ..Origin::default()
        };
        self.auditor.request(origin, target(text))
    }

    /// The events, once everything is written.
    async fn events(self) -> Vec<Value> {
        self.tasks.shutdown(Duration::from_secs(5)).await;
        let text = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line is an event")).collect()
    }
}

fn stages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["stage"].as_str().expect("a stage")).collect()
}

#[tokio::test]
async fn everybody_notes_what_they_know() {
    let bench = Bench::new(Mode::Blocking, &json!([{"level": "Metadata"}]));
    let request = bench.request("create ns pods");
    let noted = vec![("authentication.k8s.io/stale-token".to_owned(), "x".to_owned())];
    request.identified(&user("jane", &["devs"]), noted).await.expect("it is stored");
    request.annotate("authorization.k8s.io/decision", "allow");
    request.annotate("authorization.k8s.io/decision", "forbid");
    request.impersonated(&user("joe", &[]), "impersonate:user-info");
    request.about(&ObjectMeta {
        name: "a".into(),
        namespace: "other".into(),
        uid: "u".into(),
        ..ObjectMeta::default()
    });
    request.complete(201).await;
    request.annotate("too", "late");
    request.complete(500).await;
    let events = bench.events().await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    let [first, last] = events.as_slice() else { panic!("two events") };
    assert_eq!(
        (&first["apiVersion"], &first["kind"], &first["level"]),
        (&json!("audit.k8s.io/v1"), &json!("Event"), &json!("Metadata"))
    );
    assert_eq!(first["requestReceivedTimestamp"], first["stageTimestamp"]);
    assert_eq!(
        (&first["auditID"], &first["requestURI"], &first["sourceIPs"]),
        (&json!("id"), &json!("/x?y=1"), &json!(["192.0.2.1"]))
    );
    assert_eq!(first["user"], json!({"username": "jane", "groups": ["devs"]}));
    assert_eq!(last["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "allow", "what was noted first stays");
    assert_eq!(last["annotations"].as_object().expect("annotations").len(), 2);
    assert_eq!(last["impersonatedUser"]["username"], "joe");
    assert_eq!(last["objectRef"]["namespace"], "ns", "the path knows better");
    assert_eq!((&last["objectRef"]["name"], &last["objectRef"]["uid"]), (&json!("a"), &json!("u")));
}

#[tokio::test]
async fn stages_are_left_out() {
    let bench = Bench::new(Mode::Batch, &json!([{"level": "Metadata", "omitStages": ["RequestReceived"]}]));
    let watch = bench.request("watch ns pods");
    watch.identified(&user("jane", &[]), Vec::new()).await.expect("it is stored");
    watch.started(200).await;
    watch.clone().ended();
    watch.ended();
    assert_eq!(stages(&bench.events().await), ["ResponseStarted", "ResponseComplete"]);
}

#[tokio::test]
async fn what_goes_wrong_is_told() {
    let bench = Bench::new(Mode::Blocking, &json!([{"level": "Metadata", "omitStages": ["RequestReceived"]}]));
    let refused = bench.request("get ns pods a");
    refused.refused(401, "Authentication failed, no credentials provided".into()).await;
    refused.complete(401).await;
    let denied = bench.request("get ns pods a");
    denied.identified(&user("jane", &[]), Vec::new()).await.expect("it is stored");
    denied.answered(&Status { status: "Failure".into(), reason: "Forbidden".into(), ..Status::default() });
    denied.complete(403).await;
    let broken = bench.request("get ns pods a");
    broken.identified(&user("jane", &[]), Vec::new()).await.expect("it is stored");
    broken.panicked().await;
    let events = bench.events().await;
    assert_eq!(stages(&events), ["ResponseStarted", "ResponseComplete", "Panic"]);
    let codes: Vec<&Value> = events.iter().map(|event| &event["responseStatus"]["code"]).collect();
    assert_eq!(codes, [401, 403, 500]);
    assert_eq!(events[0]["user"], json!({}));
    assert_eq!(events[1]["responseStatus"]["reason"], "Forbidden");
}

#[tokio::test]
async fn nothing_is_noted_of_what_the_policy_does_not_want() {
    let bench = Bench::new(Mode::Blocking, &json!([{"level": "None"}]));
    let request = bench.request("get ns pods a");
    request.identified(&user("jane", &[]), Vec::new()).await.expect("nothing is to be stored");
    request.complete(200).await;
    let shown = bench.metrics.text();
    assert!(shown.contains("apiserver_audit_level_total{level=\"None\"} 1"), "{shown}");
    assert_eq!(bench.events().await, Vec::<Value>::new());
    let unheard = Context::default();
    unheard.identified(&user("jane", &[]), Vec::new()).await.expect("nobody listens");
    unheard.complete(200).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_written_refuses_requests_where_that_is_asked_for() {
    for (mode, expected) in [(Mode::Blocking, Ok(())), (Mode::BlockingStrict, Err(NotStored))] {
        let bench = Bench::over("file/below", mode, &json!([{"level": "Metadata"}]));
        std::fs::write(bench.folder.path().join("file"), "").expect("a file");
        assert!(Path::new(bench.folder.path()).exists());
        let request = bench.request("get ns pods a");
        assert_eq!(request.identified(&user("jane", &[]), Vec::new()).await, expected, "{mode:?}");
        let shown = bench.metrics.text();
        assert!(shown.contains("apiserver_audit_error_total{plugin=\"log\"} 1"), "{shown}");
        let rejected = i32::from(mode == Mode::BlockingStrict);
        assert!(shown.contains(&format!("apiserver_audit_requests_rejected_total {rejected}")), "{shown}");
    }
}

/// Of a thousand events that nobody waits for, those that found no room are counted, and the others written.
#[tokio::test]
async fn what_finds_no_room_is_counted() {
    let bench = Bench::new(Mode::Batch, &json!([{"level": "Metadata"}]));
    for _ in 0..1000 {
        bench.request("get ns pods a").identified(&user("jane", &[]), Vec::new()).await.expect("nobody waits");
    }
    let shown = bench.metrics.text();
    let lost = shown.lines().find_map(|line| line.strip_prefix("apiserver_audit_error_total{plugin=\"buffered\"} "));
    let lost: usize = lost.map_or(0, |count| count.parse().expect("a number"));
    assert!(lost > 0);
    assert_eq!(bench.events().await.len(), 1000 - lost);
}
