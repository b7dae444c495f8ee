//! Spans on their way to a collector, and contexts on theirs.

use std::sync::Arc;
use std::time::Duration;

use base::trace::{Kind, Scope, SpanContext, child, child_of_kind, current, inject};
use base::{
    Connecting, Connector, Direct, Rng, SharedClock, SharedConnector, SharedRng, SystemClock, TaskGroup, host_and_port,
};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use tonic::Code;

use crate::collector::{Collector, Mood};
use crate::*;

const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

struct Set {
    tasks: TaskGroup,
    collector: Collector,
    tracer: Tracer,
}

impl Set {
    async fn start(per_million: i32) -> Self {
        let tasks = TaskGroup::new("test");
        let collector = Collector::start(&tasks).await.unwrap();
        let tracer = tracer(&collector.endpoint(), per_million, &tasks);
        Self { tasks, collector, tracer }
    }

    async fn end(&self) {
        self.tracer.shut_down(Duration::from_secs(5)).await;
    }
}

fn tracer(endpoint: &str, per_million: i32, tasks: &TaskGroup) -> Tracer {
    tracer_by(endpoint, per_million, tasks, &Direct::shared())
}

fn tracer_by(endpoint: &str, per_million: i32, tasks: &TaskGroup, connector: &SharedConnector) -> Tracer {
    let settings =
        TracingSettings { endpoint: Some(endpoint.to_owned()), sampling_rate_per_million: Some(per_million) };
    let resource = Resource { service: "apiserver".to_owned(), instance: "one".to_owned(), host: String::new() };
    let (clock, rng): (SharedClock, SharedRng) = (SystemClock::shared(), Rng::seeded(3));
    Tracer::start(&settings, resource, &clock, &rng, tasks, connector).unwrap()
}

/// Notes where it is to connect to, and connects to the collector.
#[derive(Debug)]
struct Proxy {
    collector: (String, u16),
    asked: Mutex<Vec<String>>,
}

impl Connector for Proxy {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        self.asked.lock().push(host_and_port(host, port));
        Direct.connect(&self.collector.0, self.collector.1)
    }

    fn is_direct(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_collector_is_reached_by_whoever_connects() {
    let tasks = TaskGroup::new("test");
    let collector = Collector::start(&tasks).await.unwrap();
    let endpoint = collector.endpoint();
    let (host, port) = endpoint.rsplit_once(':').unwrap();
    let collector_at = (host.to_owned(), port.parse().unwrap());
    let proxy = Arc::new(Proxy { collector: collector_at, asked: Mutex::default() });
    let connector: SharedConnector = Arc::<Proxy>::clone(&proxy);
    let tracer = tracer_by("collector.example:4317", 1_000_000, &tasks, &connector);
    drop(tracer.root(Parent::None, "GET /"));
    tracer.shut_down(Duration::from_secs(5)).await;
    assert_eq!(collector.spans().len(), 1);
    assert_eq!(*proxy.asked.lock(), ["collector.example:4317"]);
}

#[tokio::test]
async fn what_runs_within_a_span_is_below_it() {
    let set = Set::start(1_000_000).await;
    let (_, mut root) = set.tracer.root(Parent::None, "GET /api/v1/pods");
    root.set("http.target", "/api/v1/pods");
    let scope = Scope::of(&root, Some(HeaderValue::from_static("a=b"))).unwrap();
    let headers = scope
        .run(async {
            let list = child("List").entered();
            tokio::task::yield_now().await;
            let mut headers = HeaderMap::new();
            let mut call = child_of_kind("HTTP POST", Kind::Client);
            call.fail("refused");
            inject(&call, &mut headers);
            drop(call);
            drop(list);
            drop(child("SerializeObject"));
            headers
        })
        .await;
    drop(root);
    set.end().await;
    let spans = set.collector.spans();
    let [call, list, after, root] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((call.name.as_str(), list.name.as_str(), root.name.as_str()), ("HTTP POST", "List", "GET /api/v1/pods"));
    assert_eq!((&call.parent, &list.parent, root.parent.as_str()), (&list.span, &root.span, ""));
    assert_eq!((after.name.as_str(), &after.parent), ("SerializeObject", &root.span));
    assert_eq!((call.kind, list.kind, root.kind), (3, 1, 2));
    assert!(call.trace == root.trace && list.trace == root.trace);
    assert_eq!(headers["traceparent"], format!("00-{}-{}-01", call.trace, call.span));
    assert_eq!(headers["tracestate"], "a=b");
    assert_eq!(root.attributes["http.target"], "/api/v1/pods");
    assert_eq!(
        (root.resource["service.name"].as_str(), root.resource["service.instance.id"].as_str()),
        ("apiserver", "one")
    );
}

#[tokio::test]
async fn parents_decide_only_where_they_are_trusted() {
    let context = SpanContext::parse(TEXT).unwrap();
    let unsampled = SpanContext { is_sampled: false, ..context };
    let (never, always) = (Set::start(0).await, Set::start(1_000_000).await);
    let (own, span) = never.tracer.root(Parent::Trusted(context), "a");
    assert!(span.is_recorded() && own.trace_id == context.trace_id && own.span_id != context.span_id);
    drop(span);
    let (own, span) = never.tracer.root(Parent::Public(context), "b");
    assert!(!span.is_recorded() && own.trace_id != context.trace_id && !own.is_sampled);
    assert!(!always.tracer.root(Parent::Trusted(unsampled), "c").1.is_recorded());
    drop(always.tracer.root(Parent::Public(context), "d").1);
    never.end().await;
    always.end().await;
    assert_eq!(never.collector.spans()[0].parent, "b7ad6b7169203331");
    let linked = &always.collector.spans()[0];
    assert_eq!(
        (linked.links.as_slice(), linked.parent.as_str()),
        (["0af7651916cd43dd8448eb211c80319c".to_owned()].as_slice(), "")
    );
}

#[tokio::test]
async fn about_so_many_of_a_million_are_recorded() {
    let set = Set::start(250_000).await;
    let recorded = (0..2_000).filter(|_| set.tracer.root(Parent::None, "x").1.is_recorded()).count();
    assert!((400..600).contains(&recorded), "{recorded}");
}

#[tokio::test]
async fn without_a_trace_nothing_is_recorded_or_told() {
    let mut headers = HeaderMap::new();
    let span = child("List");
    inject(&span, &mut headers);
    assert!(!span.is_recorded() && headers.is_empty() && current().is_none());
    let context = SpanContext::parse(TEXT).unwrap();
    Scope::passed_on(context, None).run(async { inject(&child("List"), &mut headers) }).await;
    assert_eq!(headers["traceparent"], TEXT, "passed on as it came");
}

#[tokio::test]
async fn spans_are_sent_in_batches_and_again_where_that_may_help() {
    let set = Set::start(1_000_000).await;
    set.collector.turn(Mood::Fails(Code::Unavailable));
    for _ in 0..1_500 {
        drop(set.tracer.root(Parent::None, "x"));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(set.collector.batches().is_empty());
    set.collector.turn(Mood::Keeps);
    while set.collector.batches().iter().sum::<usize>() < 1_024 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    set.end().await;
    assert_eq!(set.collector.batches(), [512, 512, 476]);
    assert_eq!(set.tracer.dropped(), 0);
    drop(set.tracer.root(Parent::None, "late"));
    assert_eq!(set.tracer.dropped(), 1, "the end has been");
}

#[tokio::test]
async fn a_collector_that_is_gone_or_refuses_costs_spans_and_nothing_else() {
    let set = Set::start(1_000_000).await;
    set.collector.turn(Mood::Fails(Code::InvalidArgument));
    drop(set.tracer.root(Parent::None, "x"));
    set.end().await;
    assert_eq!(set.tracer.dropped(), 1);
    let gone = tracer("127.0.0.1:1", 1_000_000, &set.tasks);
    for _ in 0..5_000 {
        drop(gone.root(Parent::None, "x"));
    }
    assert!(gone.dropped() >= 5_000 - 2_048 - 512, "the queue is bounded: {}", gone.dropped());
    let begun = tokio::time::Instant::now();
    gone.shut_down(Duration::from_secs(10)).await;
    assert!(begun.elapsed() < Duration::from_secs(8) && gone.dropped() == 5_000, "{}", gone.dropped());
}

#[tokio::test]
async fn work_of_its_own_is_a_trace_of_its_own() {
    let set = Set::start(1_000_000).await;
    let work = async {
        tokio::task::yield_now().await;
        drop(child("below"));
        7
    };
    assert_eq!(traced(Some(&set.tracer), "syncPod", |span| span.set("k8s.pod.name", "web"), work).await, 7);
    assert!(current().is_none());
    let told = |_: &mut base::trace::Span| panic!("nobody records this");
    traced(None, "syncPod", told, async { assert!(current().is_none()) }).await;
    let never = tracer(&set.collector.endpoint(), 0, &set.tasks);
    let passed_on = async {
        let mut headers = HeaderMap::new();
        inject(&child("x"), &mut headers);
        assert!(headers[base::trace::TRACEPARENT].to_str().unwrap().ends_with("-00"));
    };
    traced(Some(&never), "syncPod", told, passed_on).await;
    set.end().await;
    let spans = set.collector.spans();
    let [below, work] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((work.name.as_str(), work.kind, work.attributes["k8s.pod.name"].as_str()), ("syncPod", 1, "web"));
    assert_eq!((&below.parent, &below.trace), (&work.span, &work.trace));
}

#[tokio::test]
async fn a_collector_that_sleeps_does_not_hold_the_end_up() {
    let set = Set::start(1_000_000).await;
    set.collector.turn(Mood::Sleeps);
    drop(set.tracer.root(Parent::None, "x"));
    let begun = tokio::time::Instant::now();
    set.tracer.shut_down(Duration::from_secs(1)).await;
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(matches!(set.tasks.shutdown(Duration::from_secs(5)).await, base::Drained::All));
}

#[test]
fn settings_are_judged_in_upstreams_words() {
    let judged = |endpoint: Option<&str>, rate: Option<i32>| {
        let settings = TracingSettings { endpoint: endpoint.map(str::to_owned), sampling_rate_per_million: rate };
        settings.problems(None).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for endpoint in [None, Some("localhost:4317"), Some("unix:///a"), Some("dns://x/y:1"), Some("unix-abstract://a")] {
        assert_eq!(judged(endpoint, Some(1_000_000)), Vec::<String>::new());
    }
    assert_eq!(judged(None, Some(-1)), ["samplingRatePerMillion: Invalid value: -1: sampling rate must be positive"]);
    let more = "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to \
                one million";
    assert_eq!(judged(None, Some(1_000_001)), [more]);
    let scheme = "endpoint: Invalid value: \"http://localhost:4317\": unsupported scheme: http.  Options are none, dns, \
                  unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md";
    assert_eq!(judged(Some("http://localhost:4317"), None), [scheme]);
}
