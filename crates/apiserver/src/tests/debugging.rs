//! What the server tells those who look for a fault in it.

use super::harness::Api;

const STRUCTURED: &str = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz";

#[tokio::test(start_paused = true)]
async fn the_pages_tell_what_runs_and_how_it_was_started() {
    let flags = [("v".to_owned(), "2".to_owned())].into();
    let api = Api::as_process(|lifecycle| lifecycle.with_command_line(flags), |_| {}).await;
    let status = api.get("/statusz").await;
    assert!(status.text.starts_with("\napiserver statusz\nWarning: "), "{}", status.text);
    let paths = status.text.lines().find(|line| line.starts_with("Paths")).unwrap();
    for path in ["/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/flagz", "/version", "/debug"] {
        assert!(paths.contains(path), "{path}: {paths}");
    }
    assert!(!paths.contains("/apis") && !paths.contains("/openapi"), "{paths}");
    assert!(api.get("/flagz").await.text.starts_with("\napiserver flagz\n"));
    let object = api.send("GET /statusz", &[("accept", STRUCTURED)], "").await.json();
    assert_eq!((object["kind"].as_str(), object["metadata"]["name"].as_str()), (Some("Statusz"), Some("apiserver")));
    let refused = api.send("GET /flagz", &[("accept", "application/json")], "").await;
    assert_eq!((refused.code, refused.json()["reason"].as_str()), (406, Some("NotAcceptable")));
    let index = api.get("/").await.text;
    for path in ["/flagz", "/statusz", "/debug/flags", "/debug/flags/v", "/debug/pprof"] {
        assert!(index.contains(&format!("\"{path}\"")), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn debug_handlers_are_there_with_profiling_and_logs_on_demand() {
    let api = Api::start().await;
    assert_eq!(api.get("/debug/pprof").await.headers["location"], "/debug/pprof/");
    assert!(api.get("/debug/pprof/goroutine").await.text.starts_with("goroutine profile: total "));
    assert_eq!(api.get("/debug/pprof/profile").await.text, "Unknown profile\n");
    assert_eq!(api.get("/debug/flags/v").await.code, 406);
    assert_eq!(api.put("/debug/flags/v", "x").await.code, 400);
    assert_eq!(api.get("/logs").await.code, 404);
    let api = Api::with(|config| {
        config.debugging.profiling = false;
        config.debugging.logs = true;
    })
    .await;
    assert_eq!(api.get("/debug/pprof/").await.code, 404);
    assert_eq!(api.get("/logs/no-such-file").await.text, "file not found");
    assert_eq!(api.get("/logs/../../etc/passwd").await.code, 404);
}
