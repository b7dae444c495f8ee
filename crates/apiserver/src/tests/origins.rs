//! Requests out of web pages, and what is switched off.

use super::harness::Api;

async fn with_origins() -> Api {
    Api::with(|config| {
        config.requests.cors_allowed_origins = vec![regex::Regex::new(r"//example\.com$").expect("a pattern")];
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn pages_of_allowed_sites_see_answers() {
    let api = with_origins().await;
    for (origin, allowed) in [("https://example.com", true), ("https://example.com.evil.org", false)] {
        let answer = api.send("GET /version", &[("origin", origin)], "").await;
        let header = answer.headers.get("access-control-allow-origin").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header, allowed.then(|| origin.to_owned()));
        let asked = api.send("OPTIONS /api/v1/pods", &[("origin", origin), ("authorization", "")], "").await;
        assert_eq!(asked.code == 204, allowed, "{}", asked.code);
    }
    let plain = Api::start().await.send("GET /version", &[("origin", "https://example.com")], "").await;
    assert!(plain.headers.get("access-control-allow-origin").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_switched_off_is_not_there() {
    let api = Api::with(|config| config.disabled = [("batch", "v1", "jobs")].into()).await;
    assert_eq!(api.get("/apis/batch/v1/namespaces/default/jobs").await.code, 404);
    assert_eq!(api.get("/apis/batch/v1/namespaces/default/cronjobs").await.code, 200);
    let resources = api.get("/apis/batch/v1").await.json();
    let names: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().filter_map(|own| own["name"].as_str()).collect();
    assert!(names.contains(&"cronjobs") && !names.contains(&"jobs"), "{names:?}");
    let openapi = api.get("/openapi/v3/apis/batch/v1").await.text;
    assert!(openapi.contains("/cronjobs") && !openapi.contains("namespaces/{namespace}/jobs"));
}
