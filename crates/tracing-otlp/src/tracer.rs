//! Who decides which traces are recorded, and records them.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use base::trace::{Kind, Record, Recorder, Scope, Span, SpanContext};
use base::{SharedClock, SharedConnector, SharedRng, TaskGroup};
use tokio::sync::mpsc;

use crate::endpoint::EndpointError;
use crate::exporter::{self, Ending};
use crate::settings::{MILLION, TracingSettings};

/// Spans that wait for the next batch; the default of OpenTelemetry's libraries. More are dropped.
pub(crate) const QUEUE: usize = 2048;

/// Who the spans are of.
#[derive(Debug, Clone)]
pub struct Resource {
    /// `service.name`
    pub service: String,
    /// `service.instance.id`; empty for none.
    pub instance: String,
    /// `host.name`; empty for none.
    pub host: String,
}

/// What a request says of the trace that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// Nothing.
    None,
    /// A trace that is continued, and whose decision to record it counts.
    Trusted(SpanContext),
    /// A trace of somebody who may not decide what is recorded here; a new one names it.
    Public(SpanContext),
}

/// Records spans. Clones are the same.
#[derive(Debug, Clone)]
pub struct Tracer(Arc<Inner>);

struct Inner {
    /// Traces are recorded whose id is below this.
    bound: u64,
    queue: mpsc::Sender<Record>,
    dropped: AtomicU64,
    ending: Ending,
    clock: SharedClock,
    rng: SharedRng,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Tracer")
    }
}

impl Recorder for Inner {
    fn now(&self) -> SystemTime {
        self.clock.wall()
    }

    fn span_id(&self) -> [u8; 8] {
        let mut id = [0; 8];
        self.rng.fill(&mut id);
        id
    }

    fn take(&self, record: Record) {
        if self.queue.try_send(record).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Tracer {
    /// Starts to record, as the settings say. Nothing is connected before there is a span; a collector that is not on this
    /// host's own sockets is then reached by `connector`.
    ///
    /// # Errors
    /// When the endpoint is none.
    pub fn start(
        settings: &TracingSettings,
        resource: Resource,
        clock: &SharedClock,
        rng: &SharedRng,
        tasks: &TaskGroup,
        connector: &SharedConnector,
    ) -> Result<Self, EndpointError> {
        let channel = crate::endpoint::connect(settings.endpoint(), connector)?;
        let (queue, waiting) = mpsc::channel(QUEUE);
        let ending = Ending::default();
        let inner = Inner {
            bound: bound(settings.sampling_rate_per_million.unwrap_or(0)),
            queue,
            dropped: AtomicU64::new(0),
            ending: ending.clone(),
            clock: SharedClock::clone(clock),
            rng: SharedRng::clone(rng),
        };
        let own = Self(Arc::new(inner));
        let lost = Arc::downgrade(&own.0);
        let lose = move |count: usize| {
            if let Some(own) = lost.upgrade() {
                own.dropped.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
        };
        let stop = tasks.token();
        tasks.spawn("traces", exporter::run(channel, resource, waiting, ending, stop, Box::new(lose)));
        Ok(own)
    }

    /// The span of a request; one that nobody records where chance, or a trusted parent, says so. The context is that of
    /// the trace in either case.
    #[must_use]
    pub fn root(&self, parent: Parent, name: impl Into<Cow<'static, str>>) -> (SpanContext, Span) {
        self.begin(parent, name.into(), Kind::Server)
    }

    fn begin(&self, parent: Parent, name: Cow<'static, str>, kind: Kind) -> (SpanContext, Span) {
        let span_id = self.0.span_id();
        let (trace_id, parent_id, is_sampled, link) = match parent {
            Parent::Trusted(parent) => (parent.trace_id, Some(parent.span_id), parent.is_sampled, None),
            Parent::None | Parent::Public(_) => {
                let mut trace_id = [0; 16];
                self.0.rng.fill(&mut trace_id);
                let link = if let Parent::Public(link) = parent { Some(link) } else { None };
                (trace_id, None, is_below(&trace_id, self.0.bound), link)
            }
        };
        let context = SpanContext { trace_id, span_id, is_sampled };
        if !is_sampled {
            return (context, Span::none());
        }
        let record = Record::begun(context, name, kind, self.0.now());
        let recorder: Arc<dyn Recorder> = Arc::clone(&self.0) as _;
        (context, Span::recorded(recorder, Record { parent: parent_id, link, ..record }))
    }

    /// Spans that never reached the collector, because there were too many of them or it did not take them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Sends what waits, for so long at most. What comes later is dropped.
    pub async fn shut_down(&self, deadline: Duration) {
        self.0.ending.begin();
        if tokio::time::timeout(deadline, self.0.ending.ended()).await.is_err() {
            tracing::warn!("The collector of traces did not take the last of them in time");
        }
    }
}

/// Does work of the process's own in a trace of its own; without a tracer, nothing but the work. `tell` says more of the span
/// where it is recorded.
pub async fn traced<F: Future>(
    tracer: Option<&Tracer>,
    name: &'static str,
    tell: impl FnOnce(&mut Span),
    work: F,
) -> F::Output {
    let Some(tracer) = tracer else { return work.await };
    let (context, mut span) = tracer.begin(Parent::None, Cow::Borrowed(name), Kind::Internal);
    if span.is_recorded() {
        tell(&mut span);
    }
    let scope = Scope::of(&span, None).unwrap_or_else(|| Scope::passed_on(context, None));
    // On the heap, as what is traced must not make the work larger that is not.
    scope.run(Box::pin(work)).await
}

/// As OpenTelemetry's libraries turn a share of traces into a bound of their ids.
fn bound(per_million: i32) -> u64 {
    let share = u64::from(u32::try_from(per_million).unwrap_or(0)).min(MILLION);
    (1 << 63) / MILLION * share + (1 << 63) % MILLION * share / MILLION
}

fn is_below(trace_id: &[u8; 16], bound: u64) -> bool {
    let low = trace_id.iter().skip(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    low >> 1 < bound
}
