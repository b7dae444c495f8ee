//! What becomes of events between a request and a sink.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::leaf::RawJson;
use api_types::audit_v1::Event;
use async_trait::async_trait;
use base::{SharedClock, TaskGroup, TokioClock};
use component_base::metrics::{Metrics, MetricsOptions};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::*;
use crate::sink::SinkError;

/// Takes batches when it is let, and refuses what is named so.
struct Takes {
    batches: Mutex<Vec<Vec<String>>>,
    turns: Semaphore,
}

#[async_trait]
impl Sink for Takes {
    fn name(&self) -> &'static str {
        "takes"
    }

    fn concurrency(&self) -> u32 {
        2
    }

    fn keeps_batches(&self) -> bool {
        true
    }

    async fn send(&self, events: &[Arc<Finished>]) -> Result<(), SinkError> {
        self.turns.acquire().await.expect("it stays open").forget();
        let names: Vec<String> = events.iter().map(|event| event.name().to_owned()).collect();
        let is_refused = names.iter().any(|name| name == "refused");
        self.batches.lock().push(names);
        if is_refused { Err(SinkError::Remote("no".into())) } else { Ok(()) }
    }
}

struct Bench {
    sink: Arc<Takes>,
    metrics: Arc<Metrics>,
    tasks: TaskGroup,
    backend: Backend,
}

const BATCHING: Batching = Batching { room: 10, max_events: 3, max_wait: Duration::from_secs(30), rate: None };

impl Bench {
    fn new(mode: Mode, batching: Batching, truncation: Option<Truncation>) -> Self {
        let sink = Arc::new(Takes { batches: Mutex::default(), turns: Semaphore::new(1000) });
        let (metrics, tasks) = (Metrics::new(MetricsOptions::default()), TaskGroup::new("test"));
        let clock: SharedClock = TokioClock::shared();
        let delivery = Delivery { mode, batching, truncation };
        let own = AuditMetrics::new(&metrics);
        let backend = Backend::start(Arc::clone(&sink) as _, delivery, &own, &clock, &tasks);
        Self { sink, metrics, tasks, backend }
    }

    fn post(&self, names: &[&str]) {
        names.iter().for_each(|name| self.backend.post(&event(name, 0)));
    }

    async fn shut_down(&self) {
        self.backend.close();
        self.backend.drained(Duration::from_secs(1)).await;
    }

    fn batches(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.sink.batches.lock())
    }

    fn lost(&self, plugin: &str) -> Option<String> {
        let start = format!("apiserver_audit_error_total{{plugin=\"{plugin}\"}} ");
        self.metrics.text().lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned))
    }
}

/// An event with an object of so many bytes.
fn event(name: &str, bytes: usize) -> Arc<Finished> {
    let object = (bytes > 0).then(|| RawJson::from_text(format!("\"{}\"", "x".repeat(bytes))));
    let (audit_id, level) = (name.to_owned(), "Request".to_owned());
    Arc::new(Finished::new(Event { audit_id, level, request_object: object, ..Event::default() }))
}

#[tokio::test(start_paused = true)]
async fn a_batch_leaves_when_it_is_full_or_has_waited_long_enough() {
    let bench = Bench::new(Mode::Batch, BATCHING, None);
    bench.post(&["a", "b", "c", "d"]);
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(bench.batches(), [["a", "b", "c"]]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.batches(), [["d"]]);
}

#[tokio::test(start_paused = true)]
async fn batches_wait_for_their_turn() {
    let rate = Some(Rate { per_second: 1.0, burst: 2 });
    let bench = Bench::new(Mode::Batch, Batching { max_events: 1, rate, ..BATCHING }, None);
    bench.post(&["a", "b", "c", "d"]);
    for (seconds, expected) in [(0.5, 2), (1.0, 1), (1.0, 1), (1.0, 0)] {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        assert_eq!(bench.batches().len(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_while_a_sink_is_slow_is_lost() {
    let bench = Bench::new(Mode::Batch, Batching { room: 2, max_events: 1, ..BATCHING }, None);
    bench.sink.turns.forget_permits(1000);
    // Two are on their way, one waits for a slot, two wait in the queue.
    for _ in 0..8 {
        bench.post(&["a"]);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(bench.lost("buffered").as_deref(), Some("3"));
    bench.sink.turns.add_permits(1000);
    bench.shut_down().await;
    assert_eq!(bench.batches().len(), 5);
    bench.post(&["late"]);
    assert_eq!(bench.lost("buffered").as_deref(), Some("4"));
}

#[tokio::test(start_paused = true)]
async fn the_end_sends_what_waits_and_counts_what_it_cannot_send() {
    let bench = Bench::new(Mode::Batch, BATCHING, None);
    bench.post(&["a", "b", "c", "d"]);
    bench.shut_down().await;
    assert_eq!(bench.batches(), [vec!["a", "b", "c"], vec!["d"]]);
    assert_eq!(bench.lost("buffered"), None);

    let stuck = Bench::new(Mode::Batch, BATCHING, None);
    stuck.sink.turns.forget_permits(1000);
    stuck.post(&["a", "b", "c", "d"]);
    stuck.shut_down().await;
    assert_eq!(stuck.lost("buffered").as_deref(), Some("4"));
    stuck.sink.turns.add_permits(1000);
    stuck.tasks.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn only_strict_modes_tell_a_request_that_its_event_is_lost() {
    for (mode, name, expected) in [
        (Mode::Batch, "refused", true),
        (Mode::Blocking, "refused", true),
        (Mode::BlockingStrict, "refused", false),
        (Mode::BlockingStrict, "a", true),
    ] {
        let bench = Bench::new(mode, BATCHING, None);
        assert_eq!(bench.backend.deliver(&event(name, 0)).await, expected, "{mode:?} {name}");
        bench.shut_down().await;
        assert_eq!(bench.batches(), [[name]]);
        assert_eq!(bench.lost("takes").is_some(), name == "refused", "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_end_at_a_time_share_a_write() {
    let (bench, last) = (Arc::new(Bench::new(Mode::Blocking, BATCHING, None)), Arc::new(Notify::new()));
    let mut requests = tokio::task::JoinSet::new();
    for name in ["d", "a", "b", "c"] {
        let (bench, last) = (Arc::clone(&bench), Arc::clone(&last));
        requests.spawn(async move {
            match name {
                "c" => last.notify_one(),
                // Ready when the writer has heard of the others already.
                "d" => last.notified().await,
                _ => {}
            }
            bench.backend.deliver(&event(name, 0)).await
        });
    }
    assert_eq!(requests.join_all().await, [true; 4]);
    assert_eq!(bench.batches(), [["a", "b", "c", "d"]], "more than a batch has that waits for others");
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_loses_its_objects_or_is_lost() {
    let size = event("a", 0).json().len();
    let fits = Truncation { max_event_bytes: size + 60, max_batch_bytes: 3 * size };
    let bench = Bench::new(Mode::Batch, BATCHING, Some(fits));
    bench.backend.post(&event("a", 1000));
    bench.backend.post(&event("b", 0));
    bench.backend.post(&event("c", 0));
    bench.shut_down().await;
    let mut batches = bench.batches();
    batches.sort();
    assert_eq!(batches, [vec!["a", "b"], vec!["c"]], "an event that says that something is missing is longer");
    let none = Truncation { max_event_bytes: size, ..fits };
    let bench = Bench::new(Mode::Batch, BATCHING, Some(none));
    bench.backend.post(&event("a", 1000));
    bench.shut_down().await;
    assert_eq!((bench.batches().len(), bench.lost("truncate").as_deref()), (0, Some("1")));
}
