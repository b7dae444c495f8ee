//! What becomes of many events.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{Event, EventSource, ObjectReference, Pod};
use tokio::time::Instant;

use super::correlator::{CorrelateResult, Correlator};
use super::*;
use crate::fake::FakeServer;
use crate::transport::{FaultLayer, Faults};

fn event(name: &str, object: &str, message: &str) -> Event {
    Event {
        metadata: ObjectMeta { name: name.into(), ..ObjectMeta::default() },
        involved_object: ObjectReference { name: object.into(), ..ObjectReference::default() },
        source: EventSource { component: "test".into(), host: String::new() },
        message: message.into(),
        type_: "Normal".into(),
        count: 1,
        ..Event::default()
    }
}

#[test]
fn equal_events_are_counted_and_similar_ones_merged() {
    let mut correlator = Correlator::new();
    let now = Instant::now();
    assert!(matches!(correlator.correlate(event("e1", "pod", "hello"), now), CorrelateResult::Create(_)));
    let CorrelateResult::Count(again) = correlator.correlate(event("e2", "pod", "hello"), now) else {
        panic!("counted")
    };
    assert_eq!((again.metadata.name.as_str(), again.count), ("e1", 2));
    for index in 0..8 {
        let verdict = correlator.correlate(event("x", "pod", &format!("m{index}")), now);
        assert!(matches!(verdict, CorrelateResult::Create(_)), "{index}");
    }
    let CorrelateResult::Create(merged) = correlator.correlate(event("e10", "pod", "tenth"), now) else {
        panic!("merged")
    };
    assert_eq!(merged.message, "(combined from similar events): tenth");
    let CorrelateResult::Count(more) = correlator.correlate(event("e11", "pod", "eleventh"), now) else {
        panic!("counted")
    };
    assert_eq!((more.metadata.name.as_str(), more.count), ("e10", 2));
    let CorrelateResult::Count(known) = correlator.correlate(event("e12", "pod", "hello"), now) else {
        panic!("counted")
    };
    assert_eq!((known.metadata.name.as_str(), known.message.as_str(), known.count), ("e1", "hello", 3));
    let later = now + Duration::from_secs(700);
    assert!(matches!(correlator.correlate(event("e13", "pod", "fresh"), later), CorrelateResult::Create(_)));
}

#[test]
fn a_flood_is_cut_off_and_dries_up_slowly() {
    let mut correlator = Correlator::new();
    let now = Instant::now();
    let sent =
        (0..40).filter(|_| !matches!(correlator.correlate(event("e", "pod", "same"), now), CorrelateResult::Drop));
    assert_eq!(sent.count(), 25);
    assert!(matches!(correlator.correlate(event("e", "other", "same"), now), CorrelateResult::Create(_)));
    let later = now + Duration::from_secs(300);
    let CorrelateResult::Count(event) = correlator.correlate(event("e", "pod", "same"), later) else {
        panic!("sent again")
    };
    assert_eq!(event.count, 41, "what was dropped was counted");
}

#[tokio::test(start_paused = true)]
async fn recorded_events_reach_the_server() {
    let server = FakeServer::new();
    let recorder = EventRecorder::new(&server.client(), "test", "");
    let mut pod = Pod::default();
    pod.metadata.name = "web".into();
    pod.metadata.namespace = "ns".into();
    for _ in 0..3 {
        recorder.event(&pod, EventType::Warning, "Failed", "it did not work");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let events = server.objects("v1/events");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["count"], 3);
    assert_eq!(events[0]["involvedObject"]["kind"], "Pod");
    assert!(events[0]["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("web.")));
    server.remove("v1/events", "ns", events[0]["metadata"]["name"].as_str().unwrap());
    recorder.event(&pod, EventType::Warning, "Failed", "it did not work");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.objects("v1/events").len(), 1, "a lost event is created anew");
}

#[tokio::test(start_paused = true)]
async fn series_are_written_twice_and_when_they_end() {
    let server = FakeServer::new();
    let recorder = SeriesRecorder::new(&server.client(), "default-scheduler", "host");
    let regarding = ObjectReference { name: "web".into(), namespace: "ns".into(), ..ObjectReference::default() };
    let what = SeriesEvent {
        regarding,
        related: None,
        kind: EventType::Warning,
        reason: "FailedScheduling".into(),
        action: "Scheduling".into(),
        note: "0/1 nodes".into(),
    };
    for _ in 0..5 {
        recorder.event(what.clone());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let count = || server.objects("events.k8s.io/v1/events")[0]["series"]["count"].clone();
    assert_eq!(count(), 2);
    tokio::time::sleep(Duration::from_secs(13 * 60)).await;
    assert_eq!(count(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_changed_object_is_an_event_of_its_own() {
    let server = FakeServer::new();
    let recorder = SeriesRecorder::new(&server.client(), "default-scheduler", "host");
    for (version, note) in [("1", "no cpu"), ("1", "no cpu"), ("2", "no memory")] {
        let (name, namespace) = ("web".into(), "ns".into());
        let resource_version = version.into();
        recorder.event(SeriesEvent {
            regarding: ObjectReference { name, namespace, resource_version, ..ObjectReference::default() },
            related: None,
            kind: EventType::Warning,
            reason: "FailedScheduling".into(),
            action: "Scheduling".into(),
            note: note.into(),
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let events = server.objects("events.k8s.io/v1/events");
    let mut notes: Vec<_> = events.iter().filter_map(|event| event["note"].as_str()).collect();
    notes.sort_unstable();
    assert_eq!(notes, ["no cpu", "no memory"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_does_not_hold_many_events_up() {
    let server = FakeServer::new();
    let delay_limit = Duration::from_secs(1);
    let faults = Faults { delay: 1.0, delay_limit, ..Faults::default() };
    let slow = FaultLayer::new(server.transport(), faults, base::Rng::seeded(1));
    let recorder = SeriesRecorder::new(&server.client_over(Arc::new(slow)), "default-scheduler", "host");
    for index in 0..64 {
        let name = format!("web-{index}");
        recorder.event(SeriesEvent {
            regarding: ObjectReference { name, namespace: "ns".into(), ..ObjectReference::default() },
            related: None,
            kind: EventType::Normal,
            reason: "Scheduled".into(),
            action: "Binding".into(),
            note: "there".into(),
        });
    }
    tokio::time::sleep(4 * delay_limit).await;
    assert_eq!(server.objects("events.k8s.io/v1/events").len(), 64);
}

/// An event of the scheduler about a pod.
fn scheduled(name: String, note: &str) -> SeriesEvent {
    SeriesEvent {
        regarding: ObjectReference { name, namespace: "ns".into(), ..ObjectReference::default() },
        related: None,
        kind: EventType::Normal,
        reason: "Scheduled".into(),
        action: "Binding".into(),
        note: note.into(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_work_is_told_of_in_full() {
    const MANY: usize = 1500;
    let server = FakeServer::new();
    let (series, plain) = (
        SeriesRecorder::new(&server.client(), "default-scheduler", "host"),
        EventRecorder::new(&server.client(), "test", ""),
    );
    let mut pod = Pod::default();
    pod.metadata.namespace = "ns".into();
    for index in 0..MANY {
        series.event(scheduled(format!("web-{index}"), "there"));
        pod.metadata.name = format!("web-{index}");
        plain.event(&pod, EventType::Normal, "Started", "it runs");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.objects("events.k8s.io/v1/events").len(), MANY);
    assert_eq!(server.objects("v1/events").len(), MANY);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_room_is_counted() {
    let metrics = component_base::metrics::Metrics::new(component_base::metrics::MetricsOptions::default());
    let server = FakeServer::new();
    let cx = server.client().cx().clone().with_metrics(crate::RequestMetrics::new(&metrics));
    let mut config = crate::ClientConfig::for_server("https://fake").with_rate(-1.0, 1);
    config.content = crate::ContentType::Json;
    let client = crate::Client::with_transport(server.transport(), config, cx).unwrap();
    let recorder = SeriesRecorder::new(&client, "default-scheduler", "host");
    let note = "x".repeat(1 << 20);
    for index in 0..40 {
        recorder.event(scheduled(format!("web-{index}"), &note));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let written = server.objects("events.k8s.io/v1/events").len();
    assert!((25..40).contains(&written), "{written}");
    let line = format!(
        "event_recorder_dropped_events_total{{cause=\"queue_full\",component=\"default-scheduler\"}} {}\n",
        40 - written
    );
    assert!(metrics.text().contains(&line), "{line}\nin\n{}", metrics.text());
    recorder.event(scheduled("later".into(), &note));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.objects("events.k8s.io/v1/events").len(), written + 1, "what was written makes room");
}

#[tokio::test(start_paused = true)]
async fn repetitions_that_come_while_one_is_written_are_one_more_write() {
    let server = FakeServer::new();
    let delay_limit = Duration::from_secs(1);
    let slow = FaultLayer::new(
        server.transport(),
        Faults { delay: 1.0, delay_limit, ..Faults::default() },
        base::Rng::seeded(1),
    );
    let recorder = EventRecorder::new(&server.client_over(Arc::new(slow)), "test", "");
    let mut pod = Pod::default();
    (pod.metadata.name, pod.metadata.namespace) = ("web".into(), "ns".into());
    for _ in 0..20 {
        recorder.event(&pod, EventType::Warning, "Failed", "it did not work");
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(4 * delay_limit).await;
    let events = server.objects("v1/events");
    assert_eq!((events.len(), &events[0]["count"]), (1, &20.into()));
    assert_eq!(server.requests().len(), 2, "{:?}", server.requests());
}

#[tokio::test(start_paused = true)]
async fn more_kinds_of_events_than_are_remembered_forget_the_oldest() {
    let server = FakeServer::new();
    let recorder = SeriesRecorder::new(&server.client(), "default-scheduler", "host");
    for _ in 0..3 {
        recorder.event(scheduled("running".into(), "there"));
    }
    for index in 0..5000 {
        recorder.event(scheduled(format!("web-{index}"), "there"));
    }
    for _ in 0..2 {
        recorder.event(scheduled("web-4999".into(), "there"));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let events = server.objects("events.k8s.io/v1/events");
    let of = |name: &str| events.iter().filter(|event| event["regarding"]["name"] == name).collect::<Vec<_>>();
    assert_eq!(of("running")[0]["series"]["count"], 3, "written a last time");
    assert_eq!((of("web-4999").len(), &of("web-4999")[0]["series"]["count"]), (1, &2.into()), "still counted");
}

/// Counts the requests that are under way at once.
struct Busy {
    inner: Arc<dyn crate::transport::Transport>,
    now: std::sync::atomic::AtomicUsize,
    most: std::sync::atomic::AtomicUsize,
}

#[async_trait::async_trait]
impl crate::transport::Transport for Busy {
    async fn send(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> Result<http::Response<crate::transport::Body>, crate::transport::TransportError> {
        use std::sync::atomic::Ordering::Relaxed;
        self.most.fetch_max(self.now.fetch_add(1, Relaxed) + 1, Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let answer = self.inner.send(request).await;
        self.now.fetch_sub(1, Relaxed);
        answer
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

#[tokio::test(start_paused = true)]
async fn many_series_are_written_a_few_at_a_time() {
    let server = FakeServer::new();
    let busy = Arc::new(Busy { inner: server.transport(), now: 0.into(), most: 0.into() });
    let recorder = SeriesRecorder::new(&server.client_over(Arc::<Busy>::clone(&busy)), "default-scheduler", "host");
    // Every five minutes again, so that the series run on until they are written at half past.
    for _ in 0..7 {
        for index in 0..200 {
            recorder.event(SeriesEvent {
                regarding: ObjectReference {
                    name: format!("web-{index}"),
                    namespace: "ns".into(),
                    ..ObjectReference::default()
                },
                related: None,
                kind: EventType::Warning,
                reason: "FailedScheduling".into(),
                action: "Scheduling".into(),
                note: "0/1 nodes".into(),
            });
        }
        tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    }
    let most = busy.most.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(most, 32);
    let events = server.objects("events.k8s.io/v1/events");
    assert!(events.len() == 200 && events.iter().all(|event| event["series"]["count"] == 7), "{:?}", events[0]);
}
