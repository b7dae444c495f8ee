//! The runtime's own events (gate `EventedPLEG`, KEP-3386): asked for again after a failure, and given up after some.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use node_api::cri::v1::ContainerEventResponse;
use node_api::cri::{Code, CriError, EventStream, Runtime};
use tokio::time::Instant;

use crate::metrics::KubeletMetrics;

/// After so many failures of the stream the runtime is only listed, as without events.
const MAX_FAILURES: usize = 5;
/// Time between a failure and the next try: a runtime that is started anew takes a moment.
const PAUSE: Duration = Duration::from_secs(1);
const OPERATION: &str = "get_container_events";

/// Where the events come from.
pub(super) struct Feed {
    runtime: Arc<dyn Runtime>,
    metrics: Arc<KubeletMetrics>,
    state: State,
    failures: usize,
}

enum State {
    Off,
    Resting(Instant),
    Opening(BoxFuture<'static, Result<EventStream, CriError>>),
    Open(EventStream),
}

/// What is to be done about the feed.
pub(super) enum Word {
    Event(Box<ContainerEventResponse>),
    /// Events are asked for from now on; what happened before has to be looked for.
    Begun,
    Failed(CriError),
}

impl Feed {
    /// A feed that tells nothing, ever.
    pub(super) fn off(runtime: Arc<dyn Runtime>, metrics: Arc<KubeletMetrics>) -> Self {
        Self { runtime, metrics, state: State::Off, failures: 0 }
    }

    /// A feed that is about to ask.
    pub(super) fn on(runtime: Arc<dyn Runtime>, metrics: Arc<KubeletMetrics>) -> Self {
        Self { state: State::Resting(Instant::now()), ..Self::off(runtime, metrics) }
    }

    /// Whether events come, or may come again.
    pub(super) fn is_on(&self) -> bool {
        !matches!(self.state, State::Off)
    }

    /// The next word. Nothing is lost where the caller drops the future.
    pub(super) async fn next(&mut self) -> Word {
        loop {
            match &mut self.state {
                State::Off => pending().await,
                State::Resting(until) => {
                    tokio::time::sleep_until(*until).await;
                    let runtime = self.runtime.clone();
                    self.state = State::Opening(Box::pin(async move { runtime.container_events().await }));
                    return Word::Begun;
                }
                State::Opening(opening) => match opening.await {
                    Ok(stream) => {
                        self.metrics.pleg_connections.with(&[]).inc();
                        self.state = State::Open(stream);
                    }
                    Err(error) => return self.failed(error),
                },
                State::Open(stream) => match stream.next().await {
                    Some(Ok(event)) => return Word::Event(Box::new(event)),
                    Some(Err(error)) => return self.failed(error),
                    None => return self.failed(CriError::rpc(OPERATION, Code::Unavailable, "the stream ended")),
                },
            }
        }
    }

    fn failed(&mut self, error: CriError) -> Word {
        self.metrics.pleg_connection_errors.with(&[]).inc();
        // Whoever has no events will have none at the next try either.
        self.failures = if error.code() == Code::Unimplemented { MAX_FAILURES } else { self.failures + 1 };
        let rests = self.failures < MAX_FAILURES;
        self.state = if rests { State::Resting(Instant::now() + PAUSE) } else { State::Off };
        Word::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use base::{TaskGroup, TokioClock};
    use node_api::cri::fake::FakeRuntime;
    use node_api::cri::v1::{PodSandboxConfig, PodSandboxMetadata};
    use tokio::sync::mpsc;

    use crate::pleg::{EVENT_QUEUE, Pleg, PodChange};
    use crate::runtime::cache::RuntimeCache;
    use crate::runtime::labels;

    use super::*;

    struct Bench {
        runtime: FakeRuntime,
        cache: Arc<RuntimeCache>,
        pleg: Arc<Pleg>,
        changes: mpsc::Receiver<PodChange>,
        tasks: TaskGroup,
    }

    /// A generator that follows events, a few seconds after its start.
    async fn start(error: Option<CriError>) -> Bench {
        let tasks = TaskGroup::new("test");
        let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("runtime"));
        runtime.fail_always(OPERATION, error);
        let (events, changes) = mpsc::channel(EVENT_QUEUE);
        let (cache, metrics) = (Arc::<RuntimeCache>::default(), KubeletMetrics::unseen());
        let shared = Arc::new(runtime.clone());
        let pleg = Pleg::new(shared, Arc::clone(&cache), events, metrics, TokioClock::shared()).evented(true);
        let pleg = Arc::new(pleg);
        let me = Arc::clone(&pleg);
        tasks.spawn_cancellable("pleg", async move { me.run().await });
        tokio::time::sleep(Duration::from_millis(3500)).await;
        drop(runtime.take_calls());
        Bench { runtime, cache, pleg, changes, tasks }
    }

    impl Bench {
        async fn sandbox(&self, attempt: u32) -> String {
            let metadata = PodSandboxMetadata { uid: "u".into(), attempt, ..Default::default() };
            let labels = std::collections::HashMap::from([(labels::POD_UID.to_owned(), "u".to_owned())]);
            let config = PodSandboxConfig { metadata: Some(metadata), labels, ..Default::default() };
            self.runtime.run_pod_sandbox(config, "").await.unwrap()
        }

        /// How often the runtime was listed in full since the last time.
        fn listed(&self) -> usize {
            self.runtime.take_calls().iter().filter(|call| call.operation == "list_podsandbox").count()
        }

        /// The change that is told within a millisecond.
        async fn told(&mut self) -> Option<PodChange> {
            tokio::time::timeout(Duration::from_millis(1), self.changes.recv()).await.ok().flatten()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_told_as_they_happen_and_nothing_is_listed_for_them() {
        let mut bench = start(None).await;
        let first = bench.sandbox(0).await;
        assert_eq!(bench.told().await.unwrap().uid, "u");
        assert!(bench.cache.get("u").unwrap().has_ready_sandbox());
        bench.runtime.stop_pod_sandbox(&first).await.unwrap();
        assert_eq!(bench.told().await.unwrap().uid, "u");
        assert!(!bench.cache.get("u").unwrap().has_ready_sandbox());
        let second = bench.sandbox(1).await;
        assert!(bench.told().await.is_some());
        let ids: Vec<String> = bench.cache.get("u").unwrap().sandboxes.iter().map(|own| own.id.clone()).collect();
        assert_eq!(ids, [second, first.clone()], "what an event is not about stays known");
        assert_eq!(bench.listed(), 0);
        // Of what is gone the event says no more than that.
        bench.runtime.remove_pod_sandbox(&first).await.unwrap();
        assert!(bench.told().await.is_some());
        assert_eq!(bench.cache.get("u").unwrap().sandboxes.len(), 1);
        assert_eq!(bench.listed(), 1, "that pod alone");
        tokio::time::sleep(Duration::from_secs(290)).await;
        assert_eq!((bench.listed(), bench.pleg.health()), (0, Ok(())));
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(bench.listed(), 1);
        bench.tasks.shutdown(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_newer_than_an_event_stays_and_is_told() {
        let mut bench = start(None).await;
        let id = bench.sandbox(0).await;
        assert!(bench.told().await.is_some());
        let old = bench.runtime.pod_sandbox_status(&id, false).await.unwrap();
        bench.tasks.shutdown(Duration::from_secs(1)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Only a worker sees the end, as it asks.
        bench.runtime.stop_pod_sandbox(&id).await.unwrap();
        bench.cache.newer_than(&bench.runtime, "u", Some(Instant::now())).await.unwrap();
        let event = ContainerEventResponse {
            container_id: id,
            created_at: old.timestamp,
            pod_sandbox_status: old.status,
            ..Default::default()
        };
        bench.pleg.take(event).await;
        assert!(!bench.cache.get("u").unwrap().has_ready_sandbox());
        assert!(bench.told().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_fails_is_tried_again_and_given_up_in_the_end() {
        // (why, how often it is tried)
        for (code, tries) in [(Code::Unavailable, MAX_FAILURES), (Code::Unimplemented, 1)] {
            let mut bench = start(Some(CriError::rpc(OPERATION, code, "no"))).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            drop(bench.runtime.take_calls());
            assert_eq!(bench.pleg.metrics.pleg_connection_errors.with(&[]).get(), tries as f64, "{code:?}");
            bench.sandbox(0).await;
            assert!(bench.told().await.is_none());
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert!(bench.told().await.is_some());
            assert!((10..=11).contains(&bench.listed()), "{code:?}: each second, as without events");
            bench.tasks.shutdown(Duration::from_secs(1)).await;
            tokio::time::sleep(Duration::from_secs(200)).await;
            let late = bench.pleg.health().unwrap_err().to_string();
            assert!(late.ends_with("threshold is 3m0s"), "{late}");
        }
    }
}
