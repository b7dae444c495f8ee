//! Which of upstream's families of metrics there are.

use std::collections::BTreeSet;

use base::Rng;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use component_base::serving::TakenBy;
use pki::{AltNames, CertificateAuthority, CertificateRequest, CertificateSpec, KeyAlgorithm, Name, PrivateKey};
use serde_json::json;

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

#[tokio::test(start_paused = true)]
async fn answers_that_are_cut_off_are_counted() {
    let api = Api::start().await;
    let mut response = api.open("GET /api/v1/namespaces/default/configmaps", &[], "").await;
    let taken_by = response.extensions_mut().remove::<TakenBy>().expect("it has to be taken in time");
    let head = "apiserver_request_aborts_total{";
    assert!(!api.get("/metrics").await.text.contains(head));
    taken_by.cut();
    let text = api.get("/metrics").await.text;
    let line = format!(
        "{head}group=\"\",resource=\"configmaps\",scope=\"namespace\",subresource=\"\",verb=\"LIST\",version=\"v1\"}} 1"
    );
    assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
}

/// The sum of all series of a family whose labels contain a text.
fn sum(text: &str, family: &str, labels: &str) -> f64 {
    let series = text.lines().filter_map(|line| line.strip_prefix(family)?.rsplit_once(' '));
    series.filter(|(own, _)| own.contains(labels)).filter_map(|(_, number)| number.parse::<f64>().ok()).sum()
}

/// Nothing holds an administrator up, but what its requests take, others do not have.
#[tokio::test(start_paused = true)]
async fn what_exempt_requests_take_is_estimated() {
    let api = Api::start().await;
    api.wait_until_ready().await;
    let large = format!(r#"{{"metadata":{{"name":"large"}},"data":{{"text":"{}"}}}}"#, "x".repeat(250_000));
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(api.post(maps, &large).await.code, 201);
    // A read waits until the cache is as new as the store.
    api.get(maps).await;
    let before = api.get("/metrics").await.text;
    assert_eq!(api.get(maps).await.code, 200);
    let after = api.get("/metrics").await.text;
    let more = |family: &str| sum(&after, family, "\"exempt\"") - sum(&before, family, "\"exempt\"");
    assert_eq!(more("apiserver_flowcontrol_work_estimated_seats_count"), 2.0, "the list, and the look at metrics");
    let seats = more("apiserver_flowcontrol_work_estimated_seats_sum");
    assert!((4.0..=11.0).contains(&seats), "a seat for the look, and for the list one for each 100 kB: {seats}");
}

/// What is told of writes and of watches that they concern.
#[tokio::test(start_paused = true)]
async fn updates_say_what_they_change_and_whom_they_concern() {
    let api = Api::start().await;
    api.config_map("a").await;
    let path = "/api/v1/namespaces/default/configmaps/a";
    let _watch = api.open("GET /api/v1/namespaces/default/configmaps?watch=1", &[], "").await;
    let before = api.get("/metrics").await.text;
    for (body, name) in [
        (r#"{"data":{"k":"v"}}"#, "a new field"),
        (r#"{"data":{"k":"w"}}"#, "another value"),
        (r#"{"data":{"k":"w"}}"#, "nothing"),
    ] {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert_eq!(api.patch("merge-patch", path, body).await.code, 200, "{name}");
    }
    let after = api.get("/metrics").await.text;
    let more = |family: &str, labels: &str| sum(&after, family, labels) - sum(&before, family, labels);
    let compared = "apiserver_request_timestamp_comparison_time_count";
    assert!(more(compared, "unequal_objects_slow") >= 1.0, "another value has other owners' times");
    assert!(
        more(compared, "\"equal_objects") + more(compared, "unequal_objects_fast") >= 1.0,
        "nothing need be looked at"
    );
    assert!(more("apiserver_flowcontrol_watch_count_samples_sum", "") >= 3.0, "three writes concern the watch");
    assert!(sum(&after, "apiserver_flowcontrol_seat_fair_frac", "") > 0.0);
}

#[tokio::test(start_paused = true)]
async fn certificates_of_a_wanted_lifetime_are_counted() {
    let api = Api::start().await;
    let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let now = api.server.cx().clock().wall();
    let hour = std::time::Duration::from_secs(3_600);
    let authority = CertificateAuthority::create("ca", key(), 1_000 * hour, now, &Rng::seeded(1)).unwrap();
    let spec = CertificateSpec::client("jane", &[], hour);
    let issued = authority.issue(&spec, key().public_key(), now, &Rng::seeded(2)).unwrap().to_pem();
    let wish = CertificateRequest::create(&key(), &Name::new("jane", &[]), &AltNames::default()).unwrap().to_pem();
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    for (name, signer, seconds) in [("a", "example.com/s", 3_600), ("b", "kubernetes.io/kube-apiserver-client", 86_400)]
    {
        let body = json!({"metadata": {"name": name}, "spec": {"signerName": signer, "expirationSeconds": seconds,
            "usages": ["client auth"], "request": STANDARD.encode(&wish)}});
        assert_eq!(api.post(requests, &body.to_string()).await.code, 201);
        let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}});
        let path = format!("{requests}/{name}");
        assert_eq!(api.patch("merge-patch", &format!("{path}/approval"), &approved.to_string()).await.code, 200);
        let certificate = json!({"status": {"certificate": STANDARD.encode(&issued)}});
        for _ in 0..2 {
            let told = api.patch("merge-patch", &format!("{path}/status"), &certificate.to_string()).await;
            assert_eq!(told.code, 200, "{}", told.text);
        }
    }
    let text = api.get("/metrics").await.text;
    for line in [
        "requested_duration_total{signerName=\"other\"} 1",
        "requested_duration_total{signerName=\"kubernetes.io/kube-apiserver-client\"} 1",
        "honored_duration_total{signerName=\"other\"} 1",
    ] {
        let line = format!("apiserver_certificates_registry_csr_{line}");
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    assert!(!text.contains("honored_duration_total{signerName=\"kubernetes.io/"), "a day is not an hour");
}
