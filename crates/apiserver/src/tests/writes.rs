//! Create, update and delete.

use super::harness::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn creation_checks_what_it_is_given() {
    let api = Api::start().await;
    let made = api.post(MAPS, r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"x"}}"#).await;
    assert_eq!(made.code, 201);
    let json = made.json();
    assert!(json["metadata"]["uid"].as_str().is_some_and(|uid| uid.len() == 36));
    assert_eq!(json["metadata"]["namespace"], "default");
    assert_eq!(json["metadata"].get("managedFields"), None, "nothing but its name was set");

    let cases = [
        (r#"{"metadata":{"name":"a"}}"#, 409, "configmaps \"a\" already exists"),
        (
            r#"{"metadata":{"name":"b","namespace":"other"}}"#,
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            r#"{"kind":"Secret","apiVersion":"v1"}"#,
            400,
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            r#"{"metadata":{}}"#,
            422,
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
    ];
    for (body, code, message) in cases {
        assert_eq!(api.post(MAPS, body).await.refusal(), (code, message.to_owned()), "{body}");
    }
    let large = format!(r#"{{"metadata":{{"name":"l"}},"data":{{"a":"{}"}}}}"#, "x".repeat(3 * 1024 * 1024));
    assert_eq!(api.post(MAPS, &large).await.refusal(), (413, "Request entity too large: limit is 3145728".into()));
    let text = [("content-type", "text/plain")];
    assert_eq!(api.send(&format!("POST {MAPS}"), &text, "{}").await.code, 415);
    let generated = api.post(MAPS, r#"{"metadata":{"generateName":"g-"}}"#).await.json();
    assert!(generated["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("g-") && name.len() == 7));
}

/// Its data alone fits into the store's 1.5 MiB; with the record of who owns each of its keys it does not.
fn map_of_many_keys(name: &str) -> String {
    let pair = |number: usize| format!(r#""key-of-this-large-map-{number:05}":"{}""#, "x".repeat(110));
    let pairs: Vec<String> = (0..9_000).map(pair).collect();
    format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}"}},"data":{{{}}}}}"#, pairs.join(","))
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_with_its_record_is_kept_without_it() {
    let api = Api::start().await;
    let made = api.post(MAPS, &map_of_many_keys("a")).await;
    assert_eq!((made.code, made.json()["metadata"].get("managedFields")), (201, None));
    assert_eq!(api.post(MAPS, r#"{"metadata":{"name":"b"}}"#).await.code, 201);
    let put = api.send(&format!("PUT {MAPS}/b"), &[("content-type", "application/json")], &map_of_many_keys("b")).await;
    assert_eq!((put.code, put.json()["metadata"].get("managedFields")), (200, None));
    let apply = [("content-type", "application/apply-patch+yaml")];
    let applied = api.send(&format!("PATCH {MAPS}/c?fieldManager=me"), &apply, &map_of_many_keys("c")).await;
    assert_ne!(applied.code, 201, "an apply without its record would forget what it owns");
}

#[tokio::test(start_paused = true)]
async fn a_write_is_answered_with_what_a_read_shows() {
    let api = Api::start().await;
    // The job's labels are those of its template, which the server adds to when defaults have been set already.
    let template = r#"{"spec":{"containers":[{"name":"c","image":"i"}],"restartPolicy":"Never"}}"#;
    let job = format!(r#"{{"metadata":{{"name":"j"}},"spec":{{"template":{template}}}}}"#);
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let made = api.post(jobs, &job).await.json();
    assert_eq!(made["metadata"]["labels"]["job-name"], "j");
    assert_eq!(made, api.get(&format!("{jobs}/j")).await.json());
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_warn_or_refuse() {
    let api = Api::start().await;
    let body = r#"{"metadata":{"name":"a"},"dataa":{}}"#;
    let strict = api.post(&format!("{MAPS}?fieldValidation=Strict"), body).await;
    let text =
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"dataa\"";
    assert_eq!(strict.refusal(), (400, text.to_owned()));
    let dry = api.post(&format!("{MAPS}?dryRun=All"), body).await;
    assert_eq!((dry.code, dry.warnings()), (201, vec!["299 - \"unknown field \\\"dataa\\\"\""]));
    assert_eq!(api.get(&format!("{MAPS}/a")).await.code, 404, "a dry run writes nothing");
    assert!(api.post(&format!("{MAPS}?fieldValidation=Ignore"), body).await.warnings().is_empty());
    assert_eq!(api.post(&format!("{MAPS}?dryRun=Maybe"), body).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn updates_keep_to_revisions() {
    let api = Api::start().await;
    let made = api.config_map("a").await;
    let path = format!("{MAPS}/a");
    let mut next = made.clone();
    next["data"]["a"] = "c".into();
    let updated = api.put(&path, &next.to_string()).await;
    assert_eq!((updated.code, &updated.json()["data"]["a"]), (200, &"c".into()));
    let stale = api.put(&path, &next.to_string()).await.refusal();
    assert_eq!(stale.0, 409);
    assert!(stale.1.ends_with("please apply your changes to the latest version and try again"), "{}", stale.1);
    let same = updated.json();
    let again = api.put(&path, &same.to_string()).await.json();
    assert_eq!(again["metadata"]["resourceVersion"], same["metadata"]["resourceVersion"], "nothing was written");
    assert_eq!(
        api.put(&path, r#"{"metadata":{"name":"b"}}"#).await.refusal(),
        (400, "the name of the object (b) does not match the name on the URL (a)".to_owned())
    );
    assert_eq!(
        api.put(&path, "{}").await.refusal(),
        (400, "the name of the object (a based on URL) was undeterminable: name must be provided".to_owned())
    );
    assert_eq!(api.put(&format!("{MAPS}/none"), r#"{"metadata":{"name":"none"}}"#).await.code, 404);
    assert_eq!(api.put(&path, r#"{"metadata":{"name":"a"},"data":{}}"#).await.code, 200, "unconditional");
}

#[tokio::test(start_paused = true)]
async fn leases_are_created_by_put() {
    let api = Api::start().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let body = r#"{"metadata":{"name":"l"},"spec":{"holderIdentity":"me"}}"#;
    let made = api.put(path, body).await;
    assert_eq!(made.code, 201);
    let blind = api.put(path, body).await.refusal();
    assert!(
        blind.1.ends_with("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
        "{blind:?}"
    );
    assert_eq!(api.put(path, &made.text).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn deletion_answers_as_the_kind_does() {
    let api = Api::start().await;
    api.config_map("a").await;
    api.config_map("b").await;
    let gone = api.delete(&format!("{MAPS}/a")).await;
    assert_eq!((gone.code, &gone.json()["kind"], &gone.json()["status"]), (200, &"Status".into(), &"Success".into()));
    assert_eq!(api.delete(&format!("{MAPS}/a")).await.refusal(), (404, "configmaps \"a\" not found".to_owned()));
    let conflict = api.delete(&format!("{MAPS}/b?uid=other")).await;
    assert_eq!(conflict.code, 409);
    let account = api.delete("/api/v1/namespaces/default/serviceaccounts/default").await;
    assert_eq!(account.json()["kind"], "ServiceAccount");

    let held = r#"{"metadata":{"name":"held","finalizers":["example.com/x"]}}"#;
    api.post(MAPS, held).await;
    let waiting = api.delete(&format!("{MAPS}/held")).await.json();
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let list = api.delete(MAPS).await;
    assert_eq!((list.code, &list.json()["kind"]), (200, &"ConfigMapList".into()));
    assert_eq!(api.get(&format!("{MAPS}/b")).await.code, 404);
    let options = r#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Sideways"}"#;
    assert_eq!(api.send(&format!("DELETE {MAPS}/held"), &[], options).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn who_deletes_a_job_is_warned_whatever_comes_of_it() {
    let api = Api::start().await;
    let path = "DELETE /apis/batch/v1/namespaces/default/jobs/gone";
    let gone = api.send(path, &[], "").await;
    let warning = gone.headers["warning"].to_str().unwrap();
    assert!(gone.code == 404 && warning.contains("child pods are preserved by default"), "{} {warning}", gone.code);
    let told = api.send(&format!("{path}?propagationPolicy=Background"), &[], "").await;
    assert_eq!((told.code, told.headers.get("warning")), (404, None));
}
