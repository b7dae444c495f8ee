//! Admission webhooks: what they are asked, and what becomes of their answers.

use pki::{KeyAlgorithm, PrivateKey};
use serde_json::{Value, json};

use super::harness::Api;
use super::review_server::{Reply, ReviewServer, configure};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> String {
    json!({"metadata": {"name": name}, "data": {"a": "b"}}).to_string()
}

async fn with(kind: &str, reply: Reply, changed: &Value) -> (Api, ReviewServer) {
    let (api, server) = (Api::start().await, ReviewServer::start(reply));
    configure(&api, kind, "c", &[server.webhook("w", changed)]).await;
    (api, server)
}

#[tokio::test]
async fn a_webhook_is_told_everything_and_may_refuse() {
    let (api, server) = with("validating", Reply::allows(), &json!({})).await;
    assert_eq!(api.post(&format!("{MAPS}?fieldManager=me&dryRun=All"), &map("m")).await.code, 201);
    let [asked] = server.asked().try_into().expect("one question");
    assert_eq!((asked.uri.as_str(), asked.authorization.as_str()), ("/review?timeout=5s", ""));
    let request = &asked.request;
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    for (member, expected) in [
        ("kind", &kind),
        ("requestKind", &kind),
        ("resource", &resource),
        ("requestResource", &resource),
        ("name", &json!("m")),
        ("namespace", &json!("default")),
        ("operation", &json!("CREATE")),
        ("oldObject", &Value::Null),
        ("dryRun", &json!(true)),
    ] {
        assert_eq!(&request[member], expected, "{member}");
    }
    assert_eq!(request["userInfo"]["username"], "root");
    assert_eq!(request["object"]["data"], json!({"a": "b"}));
    assert_eq!((&request["object"]["kind"], &request["object"]["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    let options = json!({
        "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "me",
    });
    assert_eq!(request["options"], options);

    let status = json!({"code": 409, "message": "not today", "reason": "Conflict"});
    server.reply(Reply::Response(json!({"allowed": false, "status": status, "warnings": ["mind the gap"]})));
    let refused = api.post(MAPS, &map("m")).await;
    let text = "admission webhook \"w.example.com\" denied the request: not today";
    assert_eq!(refused.refusal(), (409, text.to_owned()));
    assert_eq!(
        (refused.json()["reason"].as_str(), refused.warnings()),
        (Some("Conflict"), vec!["299 - \"mind the gap\""])
    );
}

#[tokio::test]
async fn every_verb_is_told_with_its_objects() {
    let (api, server) = with("validating", Reply::allows(), &json!({})).await;
    api.post(MAPS, &map("m")).await;
    let stored = api.get(&format!("{MAPS}/m")).await.json();
    server.asked();
    assert_eq!(api.patch("merge-patch", &format!("{MAPS}/m"), r#"{"data":{"a":"c"}}"#).await.code, 200);
    let [asked] = server.asked().try_into().expect("one question");
    let old = &asked.request["oldObject"];
    assert_eq!((&asked.request["operation"], &old["data"]), (&json!("UPDATE"), &stored["data"]));
    assert_eq!(old["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);
    assert_eq!(
        (&asked.request["object"]["data"]["a"], &asked.request["options"]["kind"]),
        (&json!("c"), &json!("UpdateOptions"))
    );

    assert_eq!(api.delete(&format!("{MAPS}/m?gracePeriodSeconds=0")).await.code, 200);
    let [asked] = server.asked().try_into().expect("one question");
    let request = &asked.request;
    assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(
        (&request["oldObject"]["data"]["a"], &request["options"]["kind"]),
        (&json!("c"), &json!("DeleteOptions"))
    );

    api.post(MAPS, &map("one")).await;
    api.post(MAPS, &map("two")).await;
    server.asked();
    assert_eq!(api.delete(MAPS).await.code, 200);
    let mut names: Vec<Value> =
        server.asked().iter().map(|own| own.request["oldObject"]["metadata"]["name"].clone()).collect();
    names.sort_by_key(ToString::to_string);
    assert!(names.contains(&json!("one")) && names.contains(&json!("two")), "{names:?}");
}

/// As upstream: rules come before those who may only refuse, who are shown what the server fills in.
#[tokio::test]
async fn what_is_never_stored_is_told_as_it_is_answered() {
    let (dir, key) = (tempfile::tempdir().unwrap(), PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap());
    let file = dir.path().join("sa.key");
    key.store(&file).unwrap();
    let api = Api::with(|config| {
        config.service_accounts.issuers = vec!["https://kubernetes.default.svc".to_owned()];
        config.service_accounts.api_audiences = config.service_accounts.issuers.clone();
        config.service_accounts.signing_key_file = Some(file);
    })
    .await;
    let server = ReviewServer::start(Reply::Response(json!({"allowed": false, "status": {"message": "no"}})));
    let rules = json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews", "serviceaccounts/token"]}]});
    configure(&api, "validating", "c", &[server.webhook("w", &rules)]).await;
    let group = "/apis/authorization.k8s.io/v1";
    let (bad, good) =
        (json!({"spec": {}}), json!({"spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}}}));
    let local = format!("{group}/namespaces/default/localsubjectaccessreviews");
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let seconds = |seconds: u32| json!({"spec": {"expirationSeconds": seconds}});
    for (path, body, code, asked) in [
        (format!("{group}/subjectaccessreviews"), &bad, 422, 0),
        (format!("{group}/subjectaccessreviews"), &good, 400, 1),
        (local, &bad, 422, 0),
        (format!("{group}/selfsubjectrulesreviews"), &bad, 400, 0),
        (token.to_owned(), &seconds(1), 422, 0),
        (token.to_owned(), &json!({"metadata": {"name": "other"}}), 422, 0),
        (token.replace("/default/token", "/absent/token"), &seconds(3600), 404, 0),
        (token.to_owned(), &seconds(3600), 400, 1),
    ] {
        let answer = api.post(&path, &body.to_string()).await;
        assert_eq!((answer.code, server.asked().len()), (code, asked), "{path} {body}: {}", answer.text);
    }
    server.reply(Reply::allows());
    assert_eq!(api.post(token, &seconds(3600).to_string()).await.code, 201);
    let [asked] = server.asked().try_into().expect("one question");
    let object = &asked.request["object"];
    assert_eq!(object["metadata"]["name"], "default");
    assert_eq!(object["spec"]["audiences"], json!(["https://kubernetes.default.svc"]));
}

#[tokio::test]
async fn what_can_be_done_to_a_pod_is_told_of_its_subresources() {
    let rules = json!({"rules": [{
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["pods/*", "deployments/scale"],
    }]});
    let (api, server) = with("validating", Reply::allows(), &rules).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(api.post("/api/v1/namespaces/default/pods", &pod.to_string()).await.code, 201);
    server.asked();
    server.reply(Reply::Response(json!({"allowed": false, "status": {"message": "no"}})));
    let pods = "/api/v1/namespaces/default/pods/p";
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n1"}}).to_string();
    let eviction = json!({"metadata": {"name": "p"}}).to_string();
    for (line, body, operation, kind) in [
        (format!("POST {pods}/binding"), binding.as_str(), "CREATE", "Binding"),
        (format!("POST {pods}/eviction"), eviction.as_str(), "CREATE", "Eviction"),
        (format!("PATCH {pods}/status"), r#"{"status":{"message":"m"}}"#, "UPDATE", "Pod"),
        (format!("GET {pods}/exec?command=date&container=c&stdout=1"), "", "CONNECT", "PodExecOptions"),
        (format!("GET {pods}/attach?container=c"), "", "CONNECT", "PodAttachOptions"),
        (format!("GET {pods}/portforward?ports=80"), "", "CONNECT", "PodPortForwardOptions"),
        (format!("GET {pods}/proxy/path"), "", "CONNECT", "PodProxyOptions"),
    ] {
        let patch = [("content-type", "application/merge-patch+json")];
        let headers = if line.starts_with("PATCH") { &patch[..] } else { &[] };
        let refused = api.send(&line, headers, body).await;
        assert!(refused.code == 400 && refused.text.contains("denied the request: no"), "{line}: {}", refused.text);
        let [asked] = server.asked().try_into().expect("one question");
        let (told, object) = (&asked.request, &asked.request["object"]);
        assert_eq!((&told["operation"], &told["kind"]["kind"]), (&json!(operation), &json!(kind)), "{line}");
        assert_eq!((&object["kind"], &told["name"]), (&json!(kind), &json!("p")), "{line}");
    }
}

#[tokio::test]
async fn a_change_is_read_defaulted_and_validated() {
    let add = json!([{"op": "add", "path": "/data/more", "value": "1"}, {"op": "add", "path": "/unknown", "value": 1}]);
    let (api, server) = with("mutating", Reply::patches(&add), &json!({})).await;
    let made = api.post(MAPS, &map("m")).await;
    assert_eq!((made.code, &made.json()["data"]), (201, &json!({"a": "b", "more": "1"})));
    assert!(made.json().get("unknown").is_none(), "what no config map has is dropped");
    server.reply(Reply::patches(&json!([{"op": "add", "path": "/data/%20", "value": "1"}])));
    let refused = api.post(MAPS, &map("n")).await;
    assert!(refused.code == 422 && refused.text.contains("data[%20]"), "{}", refused.text);
    for (operations, code, text) in [
        (json!([{"op": "remove", "path": "/data/none"}]), 500, "Internal error occurred: "),
        (json!([{"op": "replace", "path": "/data", "value": 1}]), 500, "Internal error occurred: "),
        (json!({"op": "add"}), 500, "received undecodable patch in webhook response: "),
        (json!([]), 201, ""),
    ] {
        server.reply(Reply::patches(&operations));
        let answer = api.post(&format!("{MAPS}?dryRun=All"), &map("o")).await;
        assert!(answer.code == code && answer.text.contains(text), "{operations}: {}", answer.text);
    }
    server.reply(Reply::patches(&json!([{"op": "add", "path": "/data", "value": {}}])));
    let refused = api.delete(&format!("{MAPS}/m")).await;
    let text =
        "admission webhook \"w.example.com\" attempted to modify the object, which is not supported for this operation";
    assert_eq!(refused.refusal(), (500, format!("Internal error occurred: {text}")));
}

/// Each sees what those before it changed, and who wants to sees what came after it, once.
#[tokio::test]
async fn webhooks_are_asked_in_order_and_again_if_needed() {
    let api = Api::start().await;
    let (first, second) = (ReviewServer::start(Reply::allows()), ReviewServer::start(Reply::allows()));
    configure(&api, "mutating", "b", &[second.webhook("second", &json!({}))]).await;
    configure(
        &api,
        "mutating",
        "a",
        &[first.webhook("again", &json!({"reinvocationPolicy": "IfNeeded"})), first.webhook("once", &json!({}))],
    )
    .await;
    second.reply(Reply::patches(&json!([{"op": "add", "path": "/data/second", "value": "1"}])));
    let made = api.post(MAPS, &map("m")).await;
    assert_eq!((made.code, &made.json()["data"]["second"]), (201, &json!("1")));
    let seen: Vec<bool> = first.asked().iter().map(|own| !own.request["object"]["data"]["second"].is_null()).collect();
    assert_eq!(seen, [false, false, true], "one of the two is asked again");
    assert_eq!(second.asked().len(), 1);
    second.reply(Reply::allows());
    api.post(MAPS, &map("n")).await;
    assert_eq!(first.asked().len(), 2, "nobody changed anything");
}

#[tokio::test]
async fn versions_and_conversions() {
    let changed = json!({
        "admissionReviewVersions": ["v2", "v1beta1", "v1"],
        "rules": [{
            "operations": ["CREATE"], "apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "resources": ["events"],
        }],
    });
    let (api, server) =
        with("mutating", Reply::patches(&json!([{"op": "add", "path": "/note", "value": "changed"}])), &changed).await;
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "kind": "Pod", "name": "p"},
        "reason": "Because", "message": "told", "type": "Normal", "source": {"component": "c"},
    });
    let made = api.post("/api/v1/namespaces/default/events", &event.to_string()).await;
    assert_eq!((made.code, &made.json()["message"]), (201, &json!("changed")), "{}", made.text);
    let [asked] = server.asked().try_into().expect("one question");
    let request = &asked.request;
    assert_eq!(request["resource"], json!({"group": "events.k8s.io", "version": "v1", "resource": "events"}));
    assert_eq!(request["requestResource"], json!({"group": "", "version": "v1", "resource": "events"}));
    assert_eq!(
        (&request["object"]["apiVersion"], &request["object"]["note"]),
        (&json!("events.k8s.io/v1"), &json!("told"))
    );
}

#[tokio::test]
async fn custom_objects_are_pruned_after_a_change() {
    let changed = json!({"rules": [{
        "operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["*"],
    }]});
    let patch =
        json!([{"op": "add", "path": "/spec/unknown", "value": 1}, {"op": "add", "path": "/spec/size", "value": 3}]);
    let (api, _server) = with("mutating", Reply::patches(&patch), &changed).await;
    api.wait_until_ready().await;
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "size": {"type": "integer"}, "colour": {"type": "string", "default": "red"},
                }}},
            }}}],
        },
    });
    let made = api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}).to_string();
    let mut made = api.post("/apis/example.com/v1/namespaces/default/widgets", &widget).await;
    for _ in 0..100 {
        if made.code == 201 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        made = api.post("/apis/example.com/v1/namespaces/default/widgets", &widget).await;
    }
    assert_eq!(made.json()["spec"], json!({"size": 3, "colour": "red"}), "{}", made.text);
}

#[tokio::test]
async fn webhooks_have_no_say_over_themselves() {
    let rules =
        json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]});
    let (api, server) = (Api::start().await, ReviewServer::start(Reply::Response(json!({"allowed": false}))));
    // Nothing is asked of what the server makes at the start.
    api.wait_until_ready().await;
    configure(&api, "validating", "c", &[server.webhook("w", &rules)]).await;
    assert_eq!(api.post(MAPS, &map("m")).await.code, 400);
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/c";
    assert_eq!(api.delete(path).await.code, 200);
    // The server's own work is asked about as well, at any time.
    let asked = server.asked();
    let about = |resource: &str| asked.iter().any(|own| own.request["resource"]["resource"] == resource);
    assert!(about("configmaps") && !about("validatingwebhookconfigurations"));
    api.get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations").await;
    assert_eq!(api.post(MAPS, &map("m")).await.code, 201);
}

#[tokio::test]
async fn dry_runs_need_a_webhook_without_side_effects() {
    let some = json!({"sideEffects": "NoneOnDryRun"});
    let (api, server) = with("validating", Reply::allows(), &some).await;
    assert_eq!(api.post(&format!("{MAPS}?dryRun=All"), &map("m")).await.code, 201);
    assert_eq!(server.asked().len(), 1);
}

/// The metrics tell what became of each question.
#[tokio::test]
async fn questions_are_counted() {
    let (api, server) =
        with("validating", Reply::Response(json!({"allowed": false})), &json!({"failurePolicy": "Ignore"})).await;
    assert_eq!(api.post(MAPS, &map("m")).await.code, 400);
    server.reply(Reply::With(503, "away".into(), "/"));
    assert_eq!(api.post(MAPS, &map("m")).await.code, 201);
    let metrics = api.get("/metrics").await.text;
    let series = |start: &str, value: &str| {
        let found = metrics
            .lines()
            .any(|line| line.starts_with(start) && line.contains("w.example.com") && line.ends_with(value));
        assert!(found, "{start}");
    };
    series("apiserver_admission_webhook_rejection_count{error_type=\"no_error\"", " 1");
    series("apiserver_admission_webhook_fail_open_count{", " 1");
    series("apiserver_admission_webhook_request_total{code=\"400\"", " 1");
    series("apiserver_admission_webhook_admission_duration_seconds_count{", " 1");
}

/// What a condition sees of a request, and what becomes of one that nobody can say holds.
#[tokio::test]
async fn conditions_keep_requests_from_webhooks() {
    let api = Api::start().await;
    let server = ReviewServer::start(Reply::allows());
    let failing = "object.data.none == 'x'";
    let forbidden =
        format!("configmaps \"m\" is forbidden: expression '{failing}' resulted in error: no such key: none");
    let sees = "request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' && object.data.a == 'b' \
                && oldObject == null && namespaceObject == null && request.userInfo.username == 'root' \
                && authorizer.group('').resource('pods').check('get').allowed()";
    for kind in ["validating", "mutating"] {
        for (what, conditions, policy, answer, asked) in [
            ("one that holds", &[sees][..], "Fail", Ok(()), 1),
            ("one that does not", &["true", "object.data.a == 'c'"], "Fail", Ok(()), 0),
            ("one that fails", &["true", failing], "Fail", Err(forbidden.clone()), 0),
            ("one that fails, which does not count", &["true", failing], "Ignore", Ok(()), 0),
            ("one that fails beside one that does not hold", &[failing, "false"], "Fail", Ok(()), 0),
        ] {
            let named = |(index, own): (usize, &&str)| json!({"name": format!("c{index}"), "expression": own});
            let conditions: Vec<Value> = conditions.iter().enumerate().map(named).collect();
            let changed = json!({"matchConditions": conditions, "failurePolicy": policy});
            configure(&api, kind, "c", &[server.webhook("w", &changed)]).await;
            let answered = api.post(&format!("{MAPS}?dryRun=All"), &map("m")).await;
            match answer {
                Ok(()) => assert_eq!(answered.code, 201, "{kind}, {what}: {}", answered.text),
                Err(text) => assert_eq!(answered.refusal(), (403, text), "{kind}, {what}"),
            }
            assert_eq!(server.asked().len(), asked, "{kind}, {what}");
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            api.delete(&format!("{path}/c")).await;
            api.get(&path).await;
        }
    }
    let metrics = api.get("/metrics").await.text;
    for (series, kind, value) in [
        ("evaluation_seconds_count", "validating", " 5"),
        ("evaluation_errors_total", "validating", " 3"),
        ("exclusions_total", "admit", " 2"),
    ] {
        let labels = format!("{{kind=\"webhook\",name=\"w.example.com\",operation=\"CREATE\",type=\"{kind}\"}}");
        let line = format!("apiserver_admission_match_condition_{series}{labels}{value}");
        assert!(metrics.lines().any(|own| own == line), "{line}");
    }
}

/// A condition sees the object in the version that the webhook wants.
#[tokio::test]
async fn conditions_see_the_version_that_is_asked_about() {
    let changed = json!({
        "rules": [{
            "operations": ["CREATE"], "apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "resources": ["events"],
        }],
        "matchConditions": [{
            "name": "note",
            "expression": "object.note == 'told' && request.resource.group == 'events.k8s.io' \
                           && request.requestResource.group == ''",
        }],
    });
    for kind in ["validating", "mutating"] {
        let (api, server) = with(kind, Reply::allows(), &changed).await;
        for (message, asked) in [("told", 1), ("other", 0)] {
            let event = json!({
                "metadata": {"name": message}, "involvedObject": {"namespace": "default", "kind": "Pod", "name": "p"},
                "reason": "Because", "message": message, "type": "Normal", "source": {"component": "c"},
            });
            assert_eq!(api.post("/api/v1/namespaces/default/events", &event.to_string()).await.code, 201);
            assert_eq!(server.asked().len(), asked, "{kind}, {message}");
        }
    }
}

/// What does not compile is not stored.
#[tokio::test]
async fn conditions_have_to_compile() {
    let api = Api::start().await;
    let server = ReviewServer::start(Reply::allows());
    for (expression, text) in [
        (
            "object.",
            "compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n | object.\n \
             | .......^",
        ),
        ("1 + 1", "must evaluate to bool but got int"),
        (
            "params.x",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x\n \
             | ^",
        ),
    ] {
        let changed = json!({"matchConditions": [{"name": "c", "expression": expression}]});
        let body = json!({"metadata": {"name": "c"}, "webhooks": [server.webhook("w", &changed)]});
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let refused = api.post(path, &body.to_string()).await;
        assert_eq!(refused.code, 422, "{expression}: {}", refused.text);
        let cause = &refused.json()["details"]["causes"][0];
        assert_eq!(cause["field"], "webhooks[0].matchConditions[0].expression", "{expression}");
        let expected = format!("Invalid value: {expression:?}: {text}");
        assert_eq!(cause["message"], json!(expected), "{expression}");
    }
}
