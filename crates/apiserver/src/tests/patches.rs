//! The four kinds of patches.

use super::harness::Api;

const MAP: &str = "/api/v1/namespaces/default/configmaps/a";

#[tokio::test(start_paused = true)]
async fn patches_change_objects() {
    let api = Api::start().await;
    api.config_map("a").await;
    let merged = api.patch("merge-patch", MAP, r#"{"data":{"x":"1","a":null}}"#).await.json();
    assert_eq!(merged["data"], serde_json::json!({"x": "1"}));
    let patched = api.patch("json-patch", MAP, r#"[{"op":"add","path":"/data/y","value":"2"}]"#).await.json();
    assert_eq!(patched["data"], serde_json::json!({"x": "1", "y": "2"}));
    let strategic = api.patch("strategic-merge-patch", MAP, r#"{"metadata":{"labels":{"l":"v"}}}"#).await.json();
    assert_eq!(strategic["metadata"]["labels"]["l"], "v");
    let unchanged = api.patch("merge-patch", MAP, r#"{"data":{"x":"1"}}"#).await.json();
    assert_eq!(unchanged["metadata"]["resourceVersion"], strategic["metadata"]["resourceVersion"]);

    let cases = [
        ("merge-patch", r#"{"metadata":{"name":"b"}}"#, 400),
        ("merge-patch", r#"{"metadata":{"resourceVersion":"1"}}"#, 409),
        ("merge-patch", r#"{"data":[]}"#, 422),
        ("merge-patch", "{", 400),
        ("json-patch", r#"[{"op":"remove","path":"/data/none"}]"#, 422),
        ("json-patch", "{}", 400),
        ("unknown", "{}", 415),
    ];
    for (kind, body, code) in cases {
        assert_eq!(api.patch(kind, MAP, body).await.code, code, "{kind} {body}");
    }
    assert_eq!(api.patch("merge-patch", &format!("{MAP}none"), "{}").await.code, 404);
    assert_eq!(api.patch("merge-patch", &format!("{MAP}?force=true"), "{}").await.code, 422);
    let refused = api.patch("strategic-merge-patch", MAP, r#"{"data":{"x":1}}"#).await.refusal();
    let text = " \"\" is invalid: patch: Invalid value: \"map[data:map[x:1]]\": cannot convert int64 to string";
    assert_eq!(refused, (422, text.to_owned()));
    let refused = api.patch("merge-patch", MAP, r#"{"metadata":{"uid":"other"}}"#).await.refusal();
    let text = "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable";
    assert_eq!(refused, (422, text.to_owned()), "a patch changes a uid as it does anything");
    let strict = format!("{MAP}?fieldValidation=Strict");
    let refused = api.patch("json-patch", &strict, r#"[{"op":"add","path":"/foo","value":1,"bar":2}]"#).await.refusal();
    let text = "strict decoding error: json patch unknown field \"[0].bar\", unknown field \"foo\"";
    assert!(refused.0 == 422 && refused.1.ends_with(text), "{refused:?}");
    let refused = api.patch("merge-patch", MAP, r#"{"data":[]}"#).await.refusal().1;
    assert!(refused.starts_with(" \"\" is invalid: patch: Invalid value: \"{"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn annotations_that_hold_former_fields_must_be_what_these_were() {
    let api = Api::start().await;
    for (resource, kind, annotation, why) in [
        (
            "daemonsets",
            "DaemonSet",
            "deprecated.daemonset.template.generation",
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
        (
            "deployments",
            "Deployment",
            "deprecated.deployment.rollback.to",
            "failed to parse annotation[deprecated.deployment.rollback.to]=x as int64: strconv.ParseInt: parsing \"x\": \
             invalid syntax",
        ),
    ] {
        let all = format!("/apis/apps/v1/namespaces/default/{resource}");
        let of = |value: &str| {
            format!(
                r#"{{"metadata":{{"name":"a","annotations":{{"{annotation}":"{value}"}}}},"spec":{{"selector":{{"matchLabels":
                {{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
            )
        };
        let unhandled = format!("{kind} in version \"v1\" cannot be handled as a {kind}: {why}");
        assert_eq!(api.post(&all, &of("x")).await.refusal(), (400, unhandled.clone()));
        assert_eq!(api.post(&all, &of("3")).await.code, 201);
        let (one, json) = (format!("{all}/a"), [("content-type", "application/json")]);
        assert_eq!(api.send(&format!("PUT {one}"), &json, &of("x")).await.refusal(), (400, unhandled));
        let patch = format!(r#"{{"metadata":{{"annotations":{{"{annotation}":"x"}}}}}}"#);
        let (code, told) = api.patch("merge-patch", &one, &patch).await.refusal();
        assert!(
            code == 422 && told.starts_with(" \"\" is invalid: patch: Invalid value: \"{") && told.ends_with(why),
            "{told}"
        );
        assert_eq!(api.patch("strategic-merge-patch", &one, &patch).await.refusal(), (500, why.to_owned()));
        let kept = &api.get(&one).await.json()["metadata"]["annotations"];
        assert_eq!(kept[annotation], "3");
    }
}

#[tokio::test(start_paused = true)]
async fn managers_own_what_they_apply() {
    let api = Api::start().await;
    let apply = async |manager: &str, query: &str, data: &str| {
        let body = format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {data}\n");
        api.patch("apply", &format!("{MAP}?fieldManager={manager}{query}"), &body).await
    };
    assert_eq!(apply("one", "", "{a: b}").await.code, 201);
    assert_eq!(apply("one", "", "{a: b}").await.code, 200);
    let conflict = apply("two", "", "{a: c}").await;
    let text = "Apply failed with 1 conflict: conflict with \"one\": .data.a";
    assert_eq!(conflict.refusal(), (409, text.to_owned()));
    assert_eq!(conflict.json()["details"]["causes"][0]["reason"], "FieldManagerConflict");
    let forced = apply("two", "&force=true", "{a: c}").await.json();
    assert_eq!(forced["data"]["a"], "c");
    let managers: Vec<_> =
        forced["metadata"]["managedFields"].as_array().unwrap().iter().map(|m| &m["manager"]).collect();
    assert_eq!(managers, ["two"]);
    let dropped = apply("two", "", "{}").await.json();
    assert_eq!(dropped.get("data"), None, "what its only owner no longer applies goes");
    assert_eq!(api.patch("apply", MAP, "{}").await.code, 422, "an apply names its manager");
    assert_eq!(apply("two", "", "[").await.code, 400);
}

#[tokio::test(start_paused = true)]
async fn ordinary_writes_are_recorded() {
    let api = Api::start().await;
    let agent = [("user-agent", "kubectl/v1.36.0 (linux/amd64)")];
    let line = "POST /api/v1/namespaces/default/configmaps?fieldManager=kubectl-create";
    api.send(line, &agent, r#"{"metadata":{"name":"a"},"data":{"a":"b"}}"#).await;
    let kind = ("content-type", "application/merge-patch+json");
    let patched = api.send(&format!("PATCH {MAP}"), &[agent[0], kind], r#"{"data":{"x":"y"}}"#).await.json();
    let record = patched["metadata"]["managedFields"].as_array().unwrap();
    let entries: Vec<_> = record.iter().map(|entry| (&entry["manager"], &entry["fieldsV1"])).collect();
    let expected = [
        (&"kubectl".into(), &serde_json::json!({"f:data": {"f:x": {}}})),
        (&"kubectl-create".into(), &serde_json::json!({"f:data": {".": {}, "f:a": {}}})),
    ];
    assert_eq!(entries.len(), 2);
    for entry in expected {
        assert!(entries.contains(&entry), "{entry:?} in {entries:?}");
    }
}
