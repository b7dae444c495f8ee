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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::SystemTime;

    use parking_lot::Mutex;

    use super::*;

    /// Gives ids in order, and keeps what it is told.
    #[derive(Default)]
    struct Told {
        ids: Mutex<u8>,
        records: Mutex<Vec<Record>>,
    }

    impl Recorder for Told {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn span_id(&self) -> [u8; 8] {
            let mut ids = self.ids.lock();
            *ids += 1;
            [*ids; 8]
        }

        fn take(&self, record: Record) {
            self.records.lock().push(record);
        }
    }

    fn context() -> SpanContext {
        let mut headers = HeaderMap::new();
        let told = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        headers.insert(super::super::TRACEPARENT, HeaderValue::from_static(told));
        SpanContext::extract(&headers).unwrap()
    }

    /// Asks twice below one span, as a request does that is asked about side by side.
    async fn ask(name: &'static str) {
        let span = child(name);
        within(&span, async {
            tokio::task::yield_now().await;
            drop(child("below"));
        })
        .await;
    }

    #[tokio::test]
    async fn works_side_by_side_have_their_own_parents() {
        let told = Arc::new(Told::default());
        let recorder: Arc<dyn Recorder> = Arc::<Told>::clone(&told);
        let root = Span::recorded(recorder, Record::begun(context(), "root", Kind::Server, SystemTime::UNIX_EPOCH));
        let scope = Scope::of(&root, None).unwrap();
        scope.run(async { tokio::join!(ask("one"), ask("two"), async { drop(child("beside")) }) }).await;
        let records = std::mem::take(&mut *told.records.lock());
        let id = |name: &str| records.iter().find(|record| record.name == name).unwrap().context.span_id;
        let below = records.iter().filter(|record| record.name == "below");
        let parents: BTreeSet<_> = below.filter_map(|record| record.parent).collect();
        assert_eq!(parents, BTreeSet::from([id("one"), id("two")]));
        let beside = records.iter().find(|record| record.name == "beside").unwrap();
        assert_eq!(beside.parent, Some(context().span_id));
    }

    #[tokio::test]
    async fn notes_of_another_trace_are_not_passed_on() {
        let mut headers = HeaderMap::new();
        headers.insert(TRACESTATE, HeaderValue::from_static("a=1"));
        inject(&Span::none(), &mut headers);
        assert_eq!(headers.len(), 1, "who is not traced says nothing");
        let inject = async |state, mut headers| {
            Scope::passed_on(context(), state).run(async { super::inject(&Span::none(), &mut headers) }).await;
            headers.get(TRACESTATE).cloned()
        };
        assert_eq!(inject(None, headers.clone()).await, None);
        let own = Some(HeaderValue::from_static("b=2"));
        assert_eq!(inject(own.clone(), headers).await, own);
    }
}
