//! Calls of the runtime on behalf of traced work: a span for each, named by what is called, and the trace in what is sent.

use std::fmt::Display;
use std::pin::Pin;
use std::task::{Context, Poll};

use base::trace::{self, Kind, Span};
use futures_util::future::Either;
use grpc::code_name;
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::{Service, http};

/// A way to the runtime. Calls of tasks that are not traced pass as they are.
#[derive(Debug, Clone)]
pub(super) struct Traced<S>(pub(super) S);

type Request = http::Request<Body>;
type Response = http::Response<Body>;

impl<S> Service<Request> for Traced<S>
where
    S: Service<Request, Response = Response>,
    S::Error: Display,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<S::Future, Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let span = call_span(request.uri().path());
        trace::inject(&span, request.headers_mut());
        let call = self.0.call(request);
        if !span.is_recorded() {
            return Either::Left(call);
        }
        Either::Right(Box::pin(async move {
            let outcome = call.await;
            end(span, &outcome);
            outcome
        }))
    }
}

/// The span of a call, by its path: `/runtime.v1.RuntimeService/Version`.
fn call_span(path: &str) -> Span {
    let Some(scope) = trace::current() else { return Span::none() };
    let name = path.trim_start_matches('/');
    let mut span = scope.child(name.to_owned(), Kind::Client);
    if let (true, Some((service, method))) = (span.is_recorded(), name.split_once('/')) {
        span.set("rpc.system", "grpc");
        span.set("rpc.service", service.to_owned());
        span.set("rpc.method", method.to_owned());
    }
    span
}

/// Says how a call ended. What has failed says so at once; what comes of a stream is not waited for.
fn end<E: Display>(mut span: Span, outcome: &Result<Response, E>) {
    let code = match outcome {
        Ok(response) => {
            let told = response.headers().get("grpc-status");
            told.map_or(Code::Ok, |told| Code::from_bytes(told.as_bytes()))
        }
        Err(error) => {
            span.fail(error.to_string());
            return;
        }
    };
    span.set("rpc.grpc.status_code", i64::from(i32::from(code)));
    if code != Code::Ok {
        span.fail(code_name(code));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use base::trace::{AttributeValue, Record, Recorder, Scope, SpanContext, TRACEPARENT};
    use parking_lot::Mutex;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[derive(Default)]
    struct Told(Mutex<Vec<Record>>);

    impl Recorder for Told {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn span_id(&self) -> [u8; 8] {
            [7; 8]
        }

        fn take(&self, record: Record) {
            self.0.lock().push(record);
        }
    }

    /// Answers with a code in the head, and gives back the trace that it was told.
    #[derive(Clone)]
    struct Answers(&'static str);

    impl Service<Request> for Answers {
        type Response = Response;
        type Error = String;
        type Future = std::future::Ready<Result<Response, String>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), String>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request) -> Self::Future {
            let mut response = http::Response::builder().header("grpc-status", self.0);
            if let Some(parent) = request.headers().get(TRACEPARENT) {
                response = response.header(TRACEPARENT, parent);
            }
            std::future::ready(response.body(Body::empty()).map_err(|error| error.to_string()))
        }
    }

    async fn call(code: &'static str) -> Option<String> {
        let request = http::Request::builder().uri("/runtime.v1.RuntimeService/Version").body(Body::empty()).unwrap();
        let answer = Traced(Answers(code)).call(request).await.unwrap();
        answer.headers().get(TRACEPARENT).map(|value| value.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn calls_are_spans_of_the_trace_that_they_are_made_for() {
        assert_eq!(call("0").await, None, "nothing is traced");
        let told = Arc::new(Told::default());
        let recorder: Arc<dyn Recorder> = Arc::<Told>::clone(&told);
        let context = SpanContext::parse(PARENT).unwrap();
        let root = Span::recorded(recorder, Record::begun(context, "root", Kind::Internal, SystemTime::UNIX_EPOCH));
        let calls = async { (call("0").await, call("5").await) };
        let (sent, _) = Scope::of(&root, None).unwrap().run(calls).await;
        assert_eq!(sent.unwrap(), "00-0af7651916cd43dd8448eb211c80319c-0707070707070707-01");
        let records = std::mem::take(&mut *told.0.lock());
        let [good, bad] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((good.name.as_ref(), good.kind), ("runtime.v1.RuntimeService/Version", Kind::Client));
        assert_eq!(good.parent, Some(context.span_id));
        assert!(good.attributes.contains(&("rpc.method", AttributeValue::from("Version"))));
        assert!(good.attributes.contains(&("rpc.grpc.status_code", AttributeValue::Int(0))));
        assert_eq!((good.error.as_deref(), bad.error.as_deref()), (None, Some("NotFound")));
    }
}
