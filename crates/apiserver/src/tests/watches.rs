//! Watches: their frames, their beginning and their end.

use serde_json::Value;

use super::harness::{Api, frame};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn events(chunk: &str) -> Vec<(String, Value)> {
    let lines = chunk.lines().map(|line| serde_json::from_str::<Value>(line).expect("a frame per line"));
    lines.map(|event| (event["type"].as_str().unwrap_or_default().to_owned(), event["object"].clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn events_come_as_they_happen() {
    let api = Api::start().await;
    api.config_map("a").await;
    let response = api.open(&format!("GET {MAPS}?watch=1&allowWatchBookmarks=true"), &[], "").await;
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap()),
        (200, "application/json")
    );
    let mut body = response.into_body();
    let mut first = events(&frame(&mut body).await.unwrap());
    if first.len() == 1 {
        first.extend(events(&frame(&mut body).await.unwrap()));
    }
    assert_eq!((first[0].0.as_str(), &first[0].1["metadata"]["name"]), ("ADDED", &"a".into()));
    assert_eq!(first[1].0, "BOOKMARK");
    assert_eq!(first[1].1["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    api.patch("merge-patch", &format!("{MAPS}/a"), r#"{"data":{"x":"y"}}"#).await;
    let next = events(&frame(&mut body).await.unwrap());
    assert_eq!((next[0].0.as_str(), &next[0].1["data"]["x"]), ("MODIFIED", &"y".into()));
    api.delete(&format!("{MAPS}/a")).await;
    assert_eq!(events(&frame(&mut body).await.unwrap())[0].0, "DELETED");
}

#[tokio::test(start_paused = true)]
async fn projections_and_selectors_apply() {
    let api = Api::start().await;
    api.config_map("a").await;
    api.config_map("b").await;
    let table = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let line = format!("GET {MAPS}?watch=1&fieldSelector=metadata.name%3Db");
    let mut body = api.open(&line, &table, "").await.into_body();
    let first = events(&frame(&mut body).await.unwrap());
    assert_eq!(first.len(), 1);
    assert_eq!((&first[0].1["kind"], &first[0].1["rows"][0]["cells"][0]), (&"Table".into(), &"b".into()));
    assert!(first[0].1["columnDefinitions"].is_array());
    api.patch("merge-patch", &format!("{MAPS}/b"), r#"{"data":{"x":"y"}}"#).await;
    let next = events(&frame(&mut body).await.unwrap());
    assert_eq!(next[0].1["columnDefinitions"].as_array().map(Vec::len), None, "columns come once");

    let mut old = api.open("GET /api/v1/watch/namespaces/default/configmaps/a", &[], "").await.into_body();
    assert_eq!(events(&frame(&mut old).await.unwrap())[0].1["metadata"]["name"], "a");
    let yaml = api.send(&line, &[("accept", "application/yaml")], "").await;
    assert_eq!(yaml.code, 406);
    let protobuf = api.open(&line, &[("accept", "application/vnd.kubernetes.protobuf;stream=watch")], "").await;
    assert_eq!(protobuf.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
}

#[tokio::test(start_paused = true)]
async fn watches_end_in_time_and_with_the_server() {
    let api = Api::start().await;
    let whole = api.get(&format!("{MAPS}?watch=1&timeoutSeconds=3")).await;
    assert_eq!((whole.code, whole.text.as_str()), (200, ""));
    let response = api.open(&format!("GET {MAPS}?watch=1"), &[], "").await;
    let cx = std::sync::Arc::clone(api.server.cx());
    cx.watches().end(std::time::Duration::ZERO).await;
    let mut body = response.into_body();
    assert_eq!(frame(&mut body).await, None);
    assert_eq!(api.get(&format!("{MAPS}?watch=1")).await.code, 503, "no new watches at the end");
    let future = api.get(&format!("{MAPS}?resourceVersion=99999")).await;
    assert_eq!((future.code, &future.json()["reason"]), (504, &"Timeout".into()));
    assert_eq!(future.headers["retry-after"], "1");
}
