//! Which of upstream's families of metrics there are.

use std::collections::BTreeSet;

use super::harness::Api;

/// What is not served, and why, for users.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
/// The section of families that are there once what they count is configured.
const ON_DEMAND: &str = "## Only where they are configured";

/// The names in the lists of the document: those that are never served, and those that may be.
fn listed() -> (BTreeSet<String>, BTreeSet<String>) {
    let text = std::fs::read_to_string(DOCUMENT).unwrap();
    let names = |part: &str| -> BTreeSet<String> {
        let lines = part.lines().filter_map(|line| line.strip_prefix("- `")?.split_once('`'));
        lines.map(|(name, _)| name.to_owned()).collect()
    };
    let (never, rest) = text.split_once(ON_DEMAND).expect("the section");
    (names(never), names(rest))
}

#[tokio::test(start_paused = true)]
async fn every_family_of_upstream_is_served_or_listed_with_the_reason() {
    let facts = test_facts::facts("metrics.json");
    let api = Api::start().await;
    api.config_map("a").await;
    let metrics = &api.server.cx().metrics;
    let mut served: BTreeSet<String> = BTreeSet::new();
    for registry in [&metrics.registry, &metrics.slis] {
        served.extend(registry.declared().into_iter().map(str::to_owned));
        let shown = registry.text();
        let names = shown.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        served.extend(names.map(str::to_owned));
    }
    let of_api_server = |fact: &&serde_json::Value| {
        let components = fact["components"].as_array().into_iter().flatten();
        components.into_iter().any(|own| own["component"] == "kube-apiserver")
    };
    let facts = facts["metrics"].as_array().unwrap().iter().filter(of_api_server);
    let known: BTreeSet<String> = facts.map(|fact| fact["name"].as_str().unwrap().to_owned()).collect();
    let (never, on_demand) = listed();
    let missing: Vec<_> =
        known.iter().filter(|name| ![&served, &never, &on_demand].iter().any(|all| all.contains(*name))).collect();
    assert!(missing.is_empty(), "neither served nor listed: {missing:?}");
    let lies: Vec<_> = never.intersection(&served).collect();
    assert!(lies.is_empty(), "listed, but served: {lies:?}");
    let unknown: Vec<_> = never.union(&on_demand).filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "listed, but not upstream's: {unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn writes_are_counted_by_their_bodies_and_what_becomes_of_unknown_fields() {
    let api = Api::start().await;
    let body = r#"{"metadata":{"name":"m"}}"#;
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(api.post(&format!("{maps}?fieldValidation=Strict"), body).await.code, 201);
    api.get(&format!("{maps}/m?fieldValidation=Strict")).await;
    assert_eq!(api.delete(&format!("{maps}/m?fieldValidation=Strict")).await.code, 200);
    let text = api.get("/metrics").await.text;
    for line in [
        "field_validation_request_duration_seconds_count{field_validation=\"Strict\"} 1".to_owned(),
        format!(
            "apiserver_request_body_size_bytes_sum{{group=\"\",resource=\"configmaps\",verb=\"create\"}} {}",
            body.len()
        ),
        "apiserver_request_body_size_bytes_sum{group=\"\",resource=\"configmaps\",verb=\"delete\"} 0".to_owned(),
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}");
    }
    // What resources count is told of once for each place, however many versions there are.
    let told =
        "apiserver_watch_cache_initializations_total{group=\"autoscaling\",resource=\"horizontalpodautoscalers\"} 1";
    assert_eq!(text.lines().filter(|line| *line == told).count(), 1);
}
