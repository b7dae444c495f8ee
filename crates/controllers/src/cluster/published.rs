//! What those count who publish a bundle: each look by the code of its answer, and how long it took.

use client::ClientError;
use component_base::metrics::{Counters, Desc, Histograms};
use controller::{Build, Cx, Next, ReconcileError};

/// Counters of looks; both have the label `code`.
pub(super) struct Looks {
    total: Counters,
    durations: Histograms,
}

impl Looks {
    pub(super) fn new(build: &Build<'_>, total: &'static Desc, durations: &'static Desc) -> Self {
        Self { total: build.metrics().counters(total), durations: build.metrics().histograms(durations) }
    }

    /// Takes a look, and counts it: 200 where it came to a good end, what the server said where it refused, else 500.
    pub(super) async fn take(
        &self,
        cx: &Cx,
        look: impl Future<Output = Result<(), ClientError>>,
    ) -> Result<Next, ReconcileError> {
        let started = cx.clock.monotonic();
        let outcome = look.await;
        let code = match &outcome {
            Ok(()) => 200,
            Err(ClientError::Api(error)) => error.code,
            Err(_) => 500,
        };
        let took = cx.clock.monotonic().saturating_duration_since(started);
        self.total.with(&[&code.to_string()]).inc();
        self.durations.with(&[&code.to_string()]).observe(took.as_secs_f64());
        outcome?;
        Ok(Next::Done)
    }
}
