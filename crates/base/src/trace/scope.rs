//! On whose behalf a task is at work.

use std::borrow::Cow;
use std::cell::Cell;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use super::context::{SpanContext, TRACESTATE};
use super::span::{Kind, Record, Recorder, Span};

tokio::task_local! {
    static CURRENT: Scope;
}

/// The trace that what a task does belongs to, and the span in it.
#[derive(Clone)]
pub struct Scope {
    /// That of the innermost span that was entered.
    context: Cell<SpanContext>,
    /// Who records further spans of the trace; nobody where it is only passed on.
    recorder: Option<Arc<dyn Recorder>>,
    /// What others note of the trace, passed on as it came.
    state: Option<HeaderValue>,
}

impl Scope {
    /// Of a trace that is passed on, and not recorded here.
    #[must_use]
    pub const fn passed_on(context: SpanContext, state: Option<HeaderValue>) -> Self {
        Self { context: Cell::new(context), recorder: None, state }
    }

    /// Of a span; nothing where nobody records it.
    #[must_use]
    pub fn of(span: &Span, state: Option<HeaderValue>) -> Option<Self> {
        Some(Self { context: Cell::new(span.context()?), recorder: span.recorder().cloned(), state })
    }

    /// Runs `work` within this span.
    pub async fn run<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// A span below this one.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>, kind: Kind) -> Span {
        let own = self.context.get();
        match &self.recorder {
            Some(recorder) if own.is_sampled => {
                let context = SpanContext { span_id: recorder.span_id(), ..own };
                let record = Record::begun(context, name, kind, recorder.now());
                Span::recorded(Arc::clone(recorder), Record { parent: Some(own.span_id), ..record })
            }
            _ => Span::none(),
        }
    }
}

/// The trace that this task is at work for: what further tasks that it starts should run in.
#[must_use]
pub fn current() -> Option<Scope> {
    CURRENT.try_with(Scope::clone).ok()
}

/// A span below that of the task; one that nobody records where the task is not traced.
#[must_use]
pub fn child(name: &'static str) -> Span {
    child_of_kind(name, Kind::Internal)
}

/// The same, of another kind.
#[must_use]
pub fn child_of_kind(name: impl Into<Cow<'static, str>>, kind: Kind) -> Span {
    CURRENT.try_with(|scope| scope.child(name, kind)).unwrap_or_default()
}

/// Says in the headers of a request which trace it belongs to, where it belongs to one. `span` is the one that the request
/// is; where nobody records that, it is the task's.
pub fn inject(span: &Span, headers: &mut HeaderMap) {
    // Where there is no trace, there is nothing to say.
    let _ = CURRENT.try_with(|scope| {
        span.context().unwrap_or(scope.context.get()).inject(headers);
        match &scope.state {
            Some(state) => drop(headers.insert(TRACESTATE, state.clone())),
            // That of the request which came belongs to another trace.
            None => drop(headers.remove(TRACESTATE)),
        }
    });
}

/// Runs `work` below a span, and nothing else that this task does meanwhile.
pub async fn within<F: Future>(span: &Span, work: F) -> F::Output {
    match (span.context(), current()) {
        // On the heap: what is traced must not make the work larger that is not.
        (Some(context), Some(scope)) => {
            scope.context.set(context);
            scope.run(Box::pin(work)).await
        }
        _ => work.await,
    }
}

/// A span that those which follow in the task are below, until it is dropped.
#[derive(Debug)]
pub struct Entered {
    span: Span,
    above: Option<SpanContext>,
}

impl Span {
    /// Lets the spans that follow in this task be below this one. Work that runs side by side in one task must not: see
    /// [`within`].
    #[must_use]
    pub fn entered(self) -> Entered {
        let enter = |context| CURRENT.try_with(|scope| scope.context.replace(context)).ok();
        let above = self.context().and_then(enter);
        Entered { span: self, above }
    }
}

impl Deref for Entered {
    type Target = Span;

    fn deref(&self) -> &Span {
        &self.span
    }
}

impl DerefMut for Entered {
    fn deref_mut(&mut self) -> &mut Span {
        &mut self.span
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(above) = self.above {
            // A task that is dropped has no scope any more, and needs none.
            let _ = CURRENT.try_with(|scope| scope.context.set(above));
        }
    }
}
