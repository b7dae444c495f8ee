//! The span of a request to the kubelet's API.

use base::trace::{Scope, SpanContext, TRACESTATE};
use component_base::serving::{Request, Response, hold};
use tracing_otlp::{Parent, Tracer};

use super::metering;

/// Answers a request within its span, which ends with the answer. `parent` says what the trace counts for that the request
/// names: who was let in decides what is recorded, others do not.
pub(super) async fn traced<F>(
    tracer: Option<&Tracer>,
    parent: fn(SpanContext) -> Parent,
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let Some(tracer) = tracer else { return answer(request).await };
    let parent = SpanContext::extract(request.headers()).map_or(Parent::None, parent);
    let (context, mut span) = tracer.root(parent, "");
    if span.is_recorded() {
        let route = route(request.uri().path());
        span.rename(route.clone().unwrap_or_else(|| format!("HTTP {} route not found", request.method())));
        span.set("http.method", request.method().as_str().to_owned());
        span.set("http.target", request.uri().path().to_owned());
        span.set("http.route", route.unwrap_or_default());
    }
    let state = request.headers().get(TRACESTATE).filter(|_| matches!(parent, Parent::Trusted(_))).cloned();
    let scope = Scope::of(&span, state.clone()).unwrap_or_else(|| Scope::passed_on(context, state));
    let response = scope.run(Box::pin(answer(request))).await;
    if span.is_recorded() {
        span.set("http.status_code", i64::from(response.status().as_u16()));
        if response.status().is_server_error() {
            span.fail("");
        }
    }
    hold(response, span)
}

/// What requests to the same place have in common; nothing where there is no such place.
fn route(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    Some(match parts.as_slice() {
        [first @ ("attach" | "checkpoint" | "containerLogs" | "exec" | "run"), _, _, _] => {
            format!("/{first}/{{podNamespace}}/{{podID}}/{{containerName}}")
        }
        [first @ ("attach" | "exec" | "run"), _, _, _, _] => {
            format!("/{first}/{{podNamespace}}/{{podID}}/{{uid}}/{{containerName}}")
        }
        ["portForward", _, _] => "/portForward/{podNamespace}/{podID}".to_owned(),
        ["portForward", _, _, _] => "/portForward/{podNamespace}/{podID}/{uid}".to_owned(),
        ["logs", ..] => "/logs/{logpath:*}".to_owned(),
        _ => format!("/{}", metering::place(path)?),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::{Direct, Rng, SystemClock, TaskGroup};
    use component_base::serving::{empty, text};
    use http::StatusCode;
    use http_body_util::BodyExt as _;
    use tracing_otlp::collector::Collector;
    use tracing_otlp::{Resource, TracingSettings};

    use super::*;

    #[test]
    fn requests_are_named_without_their_pods() {
        for (path, expected) in [
            ("/pods", Some("/pods")),
            ("/metrics/cadvisor", Some("/metrics/cadvisor")),
            ("/containerLogs/ns/web/main", Some("/containerLogs/{podNamespace}/{podID}/{containerName}")),
            ("/exec/ns/web/uid/main", Some("/exec/{podNamespace}/{podID}/{uid}/{containerName}")),
            ("/portForward/ns/web", Some("/portForward/{podNamespace}/{podID}")),
            ("/logs/pods/a", Some("/logs/{logpath:*}")),
            ("/nothing/there", None),
        ] {
            assert_eq!(route(path).as_deref(), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn who_was_let_in_decides_what_is_recorded() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        let tasks = TaskGroup::new("test");
        let collector = Collector::start(&tasks).await.unwrap();
        let settings = TracingSettings { endpoint: Some(collector.endpoint()), sampling_rate_per_million: None };
        let resource = Resource { service: "kubelet".into(), instance: String::new(), host: "node1".into() };
        let (clock, rng) = (SystemClock::shared(), Rng::seeded(1));
        let tracer = Tracer::start(&settings, resource, &clock, &rng, &tasks, &Direct::shared()).unwrap();
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        let ask = async |kind: fn(SpanContext) -> Parent| {
            let request = http::Request::builder().uri("/pods").header("traceparent", &parent);
            let answer = async |_: Request| {
                drop(base::trace::child("below"));
                text(StatusCode::INTERNAL_SERVER_ERROR, "broken")
            };
            let response = traced(Some(&tracer), kind, request.body(empty()).unwrap(), answer).await;
            response.into_body().collect().await.unwrap();
        };
        ask(Parent::Trusted).await;
        ask(Parent::Public).await;
        tracer.shut_down(Duration::from_secs(5)).await;
        let spans = collector.spans();
        let [below, own] = spans.as_slice() else { panic!("{spans:?}") };
        assert_eq!((own.name.as_str(), own.kind, own.parent.as_str()), ("/pods", 2, "b7ad6b7169203331"));
        assert_eq!((own.attributes["http.status_code"].as_str(), own.trace.as_str()), ("500", TRACE));
        assert_eq!(below.parent, own.span);
    }
}
