//! Traces: which requests are recorded, with which spans, and that a collector can do no harm.

use std::time::Duration;

use base::TaskGroup;
use serde_json::json;
use tracing_otlp::TracingSettings;
use tracing_otlp::collector::{Collector, Mood, Received};

use super::harness::Api;
use super::review_server::{Reply, ReviewServer, configure};
use crate::server::shut_down;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const MAP: &str = r#"{"metadata":{"name":"m"}}"#;

fn settings(endpoint: String, per_million: i32) -> TracingSettings {
    TracingSettings { endpoint: Some(endpoint), sampling_rate_per_million: Some(per_million) }
}

/// A server whose traces go to a collector.
async fn traced(per_million: i32) -> (Api, Collector, TaskGroup) {
    let tasks = TaskGroup::new("collector");
    let collector = Collector::start(&tasks).await.unwrap();
    let settings = settings(collector.endpoint(), per_million);
    let api = Api::with(|config| config.tracing = Some(settings)).await;
    (api, collector, tasks)
}

/// The spans of one trace, after the server has ended.
async fn spans(api: &Api, collector: &Collector, trace: &str) -> Vec<Received> {
    shut_down(api.server.cx(), None).await;
    collector.spans().into_iter().filter(|span| span.trace == trace).collect()
}

fn find<'a>(spans: &'a [Received], name: &str) -> &'a Received {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:?}"))
}

#[tokio::test]
async fn a_trusted_trace_goes_on_through_the_server_to_its_webhooks() {
    let (api, collector, _tasks) = traced(0).await;
    let webhook = ReviewServer::start(Reply::allows());
    configure(&api, "validating", "c", &[webhook.webhook("w", &json!({}))]).await;
    let headers = [("traceparent", PARENT), ("tracestate", "a=b"), ("audit-id", "0123")];
    assert_eq!(api.send(&format!("POST {MAPS}"), &headers, MAP).await.code, 201);
    let spans = spans(&api, &collector, TRACE).await;
    let root = find(&spans, "POST /api/v1/namespaces/{:namespace}/configmaps");
    assert_eq!((root.parent.as_str(), root.kind), ("b7ad6b7169203331", 2));
    assert_eq!((root.attributes["audit-id"].as_str(), root.attributes["http.target"].as_str()), ("0123", MAPS));
    assert_eq!(root.attributes["http.status_code"], "201");
    for filter in ["authentication", "constrainedimpersonation", "priorityandfairness", "authorization", "Create"] {
        assert_eq!(find(&spans, filter).parent, root.span, "{filter}");
    }
    let create = find(&spans, "Create");
    assert_eq!((create.attributes["resource"].as_str(), create.attributes["verb"].as_str()), ("configmaps", "create"));
    let call = find(&spans, "Call validating webhook");
    assert_eq!((&call.parent, call.attributes["webhook"].as_str()), (&create.span, "w.example.com"));
    let asked = webhook.asked();
    let sent = find(&spans, "HTTP POST");
    assert_eq!((&sent.parent, sent.kind), (&call.span, 3));
    assert_eq!(asked[0].traceparent, format!("00-{TRACE}-{}-01", sent.span));
    assert!(
        root.resource["service.name"] == "apiserver" && root.resource["service.instance.id"].starts_with("apiserver-")
    );
}

#[tokio::test]
async fn a_stranger_does_not_decide_what_is_recorded() {
    let (api, collector, _tasks) = traced(0).await;
    let headers = [("authorization", "Bearer alice"), ("traceparent", PARENT)];
    assert_eq!(api.send("GET /version", &headers, "").await.code, 200);
    shut_down(api.server.cx(), None).await;
    assert!(collector.spans().is_empty());

    let (api, collector, _tasks) = traced(1_000_000).await;
    assert_eq!(api.send("GET /version", &headers, "").await.code, 200);
    shut_down(api.server.cx(), None).await;
    let all = collector.spans();
    let own = all.iter().find(|span| span.links == [TRACE]).expect("a trace of its own that names the stranger's");
    assert!((own.name.as_str(), own.parent.as_str()) == ("GET", "") && own.trace != TRACE);
    assert!(all.iter().all(|span| span.trace != TRACE));
}

#[tokio::test]
async fn without_a_configuration_a_trace_is_passed_on() {
    let api = Api::start().await;
    let webhook = ReviewServer::start(Reply::allows());
    configure(&api, "validating", "c", &[webhook.webhook("w", &json!({}))]).await;
    assert_eq!(api.send(&format!("POST {MAPS}"), &[("traceparent", PARENT)], MAP).await.code, 201);
    assert_eq!(api.post(MAPS, r#"{"metadata":{"name":"n"}}"#).await.code, 201);
    let parents = || webhook.asked().into_iter().map(|asked| asked.traceparent).collect::<Vec<_>>();
    assert_eq!(parents(), [PARENT, ""]);
    for bad in ["", "x", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "\u{e4}"] {
        let name = r#"{"metadata":{"generateName":"x"}}"#;
        assert_eq!(api.send(&format!("POST {MAPS}"), &[("traceparent", bad)], name).await.code, 201);
    }
    assert_eq!(parents(), ["", "", "", ""]);
}

#[tokio::test]
async fn a_collector_that_sleeps_or_is_gone_holds_nothing_up() {
    for gone in [false, true] {
        let tasks = TaskGroup::new("collector");
        let collector = Collector::start(&tasks).await.unwrap();
        collector.turn(Mood::Sleeps);
        let endpoint = if gone { "127.0.0.1:1".to_owned() } else { collector.endpoint() };
        let api = Api::with(|config| config.tracing = Some(settings(endpoint, 1_000_000))).await;
        for _ in 0..1_000 {
            assert_eq!(api.get(MAPS).await.code, 200);
        }
        let shown = api.get("/metrics").await.text;
        let lost = shown.lines().find_map(|line| line.strip_prefix("coxswain_apiserver_dropped_spans_total "));
        assert!(lost.is_some_and(|count| count.parse::<f64>().is_ok_and(|count| count > 1_000.0)), "{lost:?}");
        let ends = shut_down(api.server.cx(), None);
        assert!(tokio::time::timeout(Duration::from_secs(20), ends).await.is_ok());
    }
}
