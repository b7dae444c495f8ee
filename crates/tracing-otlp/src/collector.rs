//! A collector that keeps what it gets, for tests: a real one on the loopback interface, which can be told to fail.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::TaskGroup;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::messages::{ExportTraceServiceRequest, ExportTraceServiceResponse, KeyValue, OneValue, SpanMessage};

/// What a collector does with a batch.
#[derive(Debug, Clone, Copy, Default)]
pub enum Mood {
    /// Keeps it.
    #[default]
    Keeps,
    /// Answers with an error.
    Fails(Code),
    /// Never answers.
    Sleeps,
}

/// A span as it was received. Ids are hexadecimal.
#[derive(Debug, Clone)]
pub struct Received {
    /// The trace.
    pub trace: String,
    /// The span.
    pub span: String,
    /// The span above it; empty for none.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// 1 for internal, 2 for server, 3 for client.
    pub kind: i32,
    /// What it tells.
    pub attributes: BTreeMap<String, String>,
    /// The traces that it names.
    pub links: Vec<String>,
    /// How long it took, in nanoseconds.
    pub nanos: u64,
    /// Who it is of.
    pub resource: BTreeMap<String, String>,
}

/// A collector. It runs until its task group ends.
#[derive(Clone)]
pub struct Collector {
    address: SocketAddr,
    kept: Arc<Kept>,
}

#[derive(Default)]
struct Kept {
    mood: Mutex<Mood>,
    batches: Mutex<Vec<Vec<Received>>>,
}

impl Collector {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start(tasks: &TaskGroup) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let own = Self { address: listener.local_addr()?, kept: Arc::default() };
        let service = TraceService(Arc::clone(&own.kept));
        let stop = tasks.token();
        tasks.spawn("collector", async move {
            let server = tonic::transport::Server::builder().add_service(service);
            let served = server.serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop.cancelled_owned());
            if let Err(error) = served.await {
                tracing::warn!(%error, "The collector ended");
            }
        });
        Ok(own)
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.address.to_string()
    }

    /// Changes what it does with batches.
    pub fn turn(&self, mood: Mood) {
        *self.kept.mood.lock() = mood;
    }

    /// How large each batch was.
    #[must_use]
    pub fn batches(&self) -> Vec<usize> {
        self.kept.batches.lock().iter().map(Vec::len).collect()
    }

    /// All spans that it has.
    #[must_use]
    pub fn spans(&self) -> Vec<Received> {
        self.kept.batches.lock().concat()
    }
}

#[derive(Clone)]
struct TraceService(Arc<Kept>);

impl NamedService for TraceService {
    const NAME: &'static str = "opentelemetry.proto.collector.trace.v1.TraceService";
}

impl Service<http::Request<Body>> for TraceService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let own = self.clone();
        Box::pin(async move { Ok(Grpc::new(ProstCodec::default()).unary(own, request).await) })
    }
}

impl UnaryService<ExportTraceServiceRequest> for TraceService {
    type Response = ExportTraceServiceResponse;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Self::Response>, Status>> + Send>>;

    fn call(&mut self, request: Request<ExportTraceServiceRequest>) -> Self::Future {
        let kept = Arc::clone(&self.0);
        Box::pin(async move {
            let mood = *kept.mood.lock();
            match mood {
                Mood::Keeps => {}
                Mood::Fails(code) => return Err(Status::new(code, "not now")),
                Mood::Sleeps => std::future::pending().await,
            }
            let batch = request.into_inner().resource_spans.into_iter().flat_map(|group| {
                let resource = texts(group.resource.unwrap_or_default().attributes);
                let spans = group.scope_spans.into_iter().flat_map(|scope| scope.spans);
                spans.map(move |span| received(span, resource.clone()))
            });
            kept.batches.lock().push(batch.collect());
            Ok(Response::new(ExportTraceServiceResponse::default()))
        })
    }
}

fn received(span: SpanMessage, resource: BTreeMap<String, String>) -> Received {
    Received {
        trace: base::hex(&span.trace_id),
        span: base::hex(&span.span_id),
        parent: base::hex(&span.parent_span_id),
        name: span.name,
        kind: span.kind,
        attributes: texts(span.attributes),
        links: span.links.iter().map(|link| base::hex(&link.trace_id)).collect(),
        nanos: span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano),
        resource,
    }
}

fn texts(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |pair: KeyValue| {
        let value = match pair.value.and_then(|value| value.value) {
            Some(OneValue::Text(text)) => text,
            Some(OneValue::Bool(yes)) => yes.to_string(),
            Some(OneValue::Int(number)) => number.to_string(),
            None => String::new(),
        };
        (pair.key, value)
    };
    pairs.into_iter().map(text).collect()
}
