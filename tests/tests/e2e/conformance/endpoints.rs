//! Endpoints and EndpointSlices: those the controllers make for Services, and those that somebody else makes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::check::Check;
use super::live::Place;
use super::networking::{client, http_name};
use super::object::{echo, pause, pod, text, with};

/// New Services whose endpoints are waited for, one after the other.
const SERVICES: usize = 20;
/// What the slowest of them may take; the suite allows half of them 20 s and one of a hundred 50 s.
const LATENCY_MAX: Duration = Duration::from_secs(20);

pub(crate) fn checks() -> Vec<Check> {
    vec![made(), by_hand(), latency()]
}

fn labelled(name: &str, container: Value, label: &str) -> Value {
    with(pod(name, &[container], json!({})), json!({"metadata": {"labels": {"app": label}}}))
}

fn made() -> Check {
    const ITEMS: &[&str] = &[
        "EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service",
        "EndpointsController should create Endpoints for Pods matching a Service",
    ];
    Check::new("made-endpoints", ITEMS, async |place: Place| {
        let ports = json!({"ports": [{"name": "example-named-port", "port": 80, "targetPort": "serve"}],
            "selector": {"app": "named"}, "publishNotReadyAddresses": true});
        place.create("services", &json!({"metadata": {"name": "named"}, "spec": ports})).await.ok();
        for (name, port) in [("named-1", 3000), ("named-2", 3001)] {
            let named = with(pause("main"), json!({"ports": [{"name": "serve", "containerPort": port}]}));
            place.ready(&labelled(name, named, "named")).await;
        }
        super::services::has_endpoints(&place, "named", &["named-1:3000", "named-2:3001"]).await;
        let whole = |endpoints: &Value| endpoints["subsets"].as_array().is_some_and(|subsets| subsets.len() == 2);
        let endpoints = place.until(&place.path("endpoints/named"), whole).await;
        for subset in endpoints["subsets"].as_array().into_iter().flatten() {
            assert_eq!(subset["ports"][0]["name"], "example-named-port", "{subset}");
            assert_eq!(subset["addresses"][0]["targetRef"]["kind"], "Pod", "{subset}");
        }
        place.delete(&place.path("services/named")).await.ok();
        place.gone(&place.path("endpoints/named")).await;
        super::services::has_endpoints(&place, "named", &[]).await;
    })
}

fn slice(name: &str, address: &str, ports: &[(&str, u16)]) -> Value {
    let ports: Vec<Value> =
        ports.iter().map(|(name, port)| json!({"name": name, "port": port, "protocol": "TCP"})).collect();
    let meta = json!({"name": name, "labels": {"kubernetes.io/service-name": "by-hand",
        "endpointslice.kubernetes.io/managed-by": "conformance"}});
    json!({"metadata": meta, "addressType": "IPv4", "ports": ports,
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}]})
}

fn by_hand() -> Check {
    const ITEMS: &[&str] = &[
        "EndpointSlice should support a Service with multiple ports specified in multiple EndpointSlices",
        "EndpointSlice should support a Service with multiple endpoint IPs specified in multiple EndpointSlices",
    ];
    Check::new("endpoints-by-hand", ITEMS, async |place: Place| {
        let server = |name: &str| pod(name, &[echo("one", 8080), echo("two", 8090)], json!({}));
        let first = place.ready(&server("hand-1")).await;
        let second = place.ready(&server("hand-2")).await;
        place.shared(&client("hand-client", json!({}))).await;
        let ports =
            json!([{"name": "one", "port": 80, "targetPort": 8080}, {"name": "two", "port": 81, "targetPort": 8090}]);
        let made =
            place.create("services", &json!({"metadata": {"name": "by-hand"}, "spec": {"ports": ports}})).await.ok();
        let ip = text(&made["spec"]["clusterIP"]).to_owned();
        let address = |pod: &Value| text(&pod["status"]["podIP"]).to_owned();
        let first_one = slice("hand-one", &address(&first), &[("one", 8080)]);
        let second_two = slice("hand-two", &address(&second), &[("two", 8090)]);
        for slice in [first_one, second_two] {
            place.create("endpointslices", &slice).await.ok();
        }
        answers(&place, &format!("{ip}:80"), "hand-1").await;
        answers(&place, &format!("{ip}:81"), "hand-2").await;
        // Both ports at one address, of two slices.
        place.delete(&place.path("endpointslices/hand-two")).await.ok();
        place.create("endpointslices", &slice("hand-three", &address(&first), &[("two", 8090)])).await.ok();
        answers(&place, &format!("{ip}:81"), "hand-1").await;
        answers(&place, &format!("{ip}:80"), "hand-1").await;
    })
}

async fn answers(place: &Place, address: &str, name: &str) {
    place
        .eventually(async || match place.try_exec("hand-client", "main", &http_name(address)).await {
            Ok(have) if have == name => Ok(()),
            other => Err(format!("{address}: {other:?} instead of {name}")),
        })
        .await;
}

fn latency() -> Check {
    const ITEM: &str = "Service endpoints latency should not be very high";
    Check::new("endpoints-latency", &[ITEM], async |place: Place| {
        place.ready(&labelled("latency", pause("main"), "latency")).await;
        let mut slowest = Duration::ZERO;
        for number in 0..SERVICES {
            let name = format!("latency-{number}");
            let service =
                json!({"metadata": {"name": name}, "spec": {"selector": {"app": "latency"}, "ports": [{"port": 80}]}});
            let start = Instant::now();
            place.create("services", &service).await.ok();
            place
                .until(&place.path(&format!("endpoints/{name}")), |found| !found["subsets"][0]["addresses"].is_null())
                .await;
            slowest = slowest.max(start.elapsed());
        }
        assert!(slowest < LATENCY_MAX, "endpoints took {slowest:?}");
    })
}
