//! The way of spans to the collector: in batches, in the order in which they ended, one batch at a time.

use std::time::Duration;

use base::CancellationToken;
use base::trace::Record;
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::messages::{self, ExportTraceServiceRequest, ExportTraceServiceResponse};
use crate::tracer::Resource;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Spans that are sent together, how long the first of them waits for company, and how long sending may take: the defaults
/// of OpenTelemetry's libraries.
const BATCH: usize = 512;
const INTERVAL: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a batch is sent that the collector could not take just then, and the rest between the tries.
const TRIES: usize = 3;
const REST: Duration = Duration::from_secs(1);
/// How long a batch that is on its way may still take when the end begins; then it is lost, and the rest has its time.
const ON_ITS_WAY: Duration = Duration::from_secs(1);
/// How long the last spans may take when the process ends without waiting for them.
const LAST: Duration = Duration::from_secs(3);

/// How the end of recording is agreed on. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    begun: CancellationToken,
    ended: CancellationToken,
}

impl Ending {
    pub(crate) fn begin(&self) {
        self.begun.cancel();
    }

    async fn is_late(&self) {
        self.begun.cancelled().await;
        tokio::time::sleep(ON_ITS_WAY).await;
    }

    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// Told how many spans were lost.
pub(crate) type Lose = Box<dyn Fn(usize) + Send + Sync>;

/// Sends what comes until the end has begun, and then what is there.
pub(crate) async fn run(
    channel: Channel,
    resource: Resource,
    mut waiting: mpsc::Receiver<Record>,
    ending: Ending,
    stop: CancellationToken,
    lose: Lose,
) {
    let collector = Collector { channel, resource, lose };
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = ending.begun.cancelled() => break,
            () = stop.cancelled() => break,
            () = gather(&mut waiting, &mut batch) => {}
        }
        if batch.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = ending.is_late() => break,
            () = collector.deliver(std::mem::take(&mut batch)) => {}
        }
    }
    waiting.close();
    let rest = async {
        loop {
            let mut batch = std::mem::take(&mut batch);
            while batch.len() < BATCH
                && let Ok(record) = waiting.try_recv()
            {
                batch.push(record);
            }
            if batch.is_empty() {
                return;
            }
            collector.deliver(batch).await;
        }
    };
    if tokio::time::timeout(LAST, rest).await.is_err() {
        (collector.lose)(waiting.len());
    }
    ending.ended.cancel();
}

/// The next batch: so many, or what has come in some time since the first; none once nothing comes any more. What was
/// gathered stays where this is not waited for to its end.
async fn gather(waiting: &mut mpsc::Receiver<Record>, batch: &mut Vec<Record>) {
    let Some(first) = waiting.recv().await else { return };
    batch.push(first);
    let more = async {
        while batch.len() < BATCH
            && let Some(record) = waiting.recv().await
        {
            batch.push(record);
        }
    };
    // What came in time is enough.
    let _ = tokio::time::timeout(INTERVAL, more).await;
}

struct Collector {
    channel: Channel,
    resource: Resource,
    lose: Lose,
}

/// Spans on their way, which are lost where nobody says otherwise.
struct OnTheWay<'a> {
    count: usize,
    lose: &'a Lose,
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        (self.lose)(self.count);
    }
}

impl Collector {
    /// Sends a batch, if need be several times. What the collector does not take is lost.
    async fn deliver(&self, records: Vec<Record>) {
        let mut own = OnTheWay { count: records.len(), lose: &self.lose };
        let request = messages::request(&self.resource, records);
        for tried in 1..=TRIES {
            match self.send(request.clone()).await {
                Ok(answer) => {
                    let refused = answer.partial_success.unwrap_or_default();
                    if refused.rejected_spans > 0 {
                        tracing::warn!(
                            spans = refused.rejected_spans,
                            why = refused.error_message,
                            "Traces were refused"
                        );
                    }
                    own.count = own.count.min(usize::try_from(refused.rejected_spans).unwrap_or(0));
                    return;
                }
                Err(status) if tried == TRIES || !may_pass(status.code()) => {
                    tracing::warn!(spans = own.count, error = %status.message(), code = ?status.code(), "traces export failed");
                    return;
                }
                Err(status) => {
                    tracing::debug!(error = %status.message(), tried, "Traces are sent again");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }

    async fn send(&self, request: ExportTraceServiceRequest) -> Result<ExportTraceServiceResponse, Status> {
        let call = async {
            let mut client = tonic::client::Grpc::new(self.channel.clone());
            client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
            let codec: ProstCodec<ExportTraceServiceRequest, ExportTraceServiceResponse> = ProstCodec::default();
            client.unary(tonic::Request::new(request), PathAndQuery::from_static(EXPORT), codec).await
        };
        match tokio::time::timeout(TIMEOUT, call).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded("context deadline exceeded")),
        }
    }
}

/// Whether the collector may take later what it did not take now, by the specification of OTLP.
fn may_pass(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::ResourceExhausted
    )
}
