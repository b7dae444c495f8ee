//! A login manager that tells of shutdowns, and pods that end in time or do not.

use std::collections::VecDeque;

use base::TokioClock;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;

use super::*;

type Journal = Arc<Mutex<Vec<String>>>;

struct FakeLogind {
    journal: Journal,
    delays: Mutex<VecDeque<u64>>,
    shutdowns: Vec<bool>,
}

struct FakeLock(Journal);

impl Drop for FakeLock {
    fn drop(&mut self) {
        self.0.lock().push("let go".to_owned());
    }
}

#[async_trait]
impl Logind for FakeLogind {
    async fn longest_delay(&self) -> Result<Duration, LogindError> {
        let mut delays = self.delays.lock();
        let next = delays.pop_front().unwrap();
        if delays.is_empty() {
            delays.push_back(next);
        }
        Ok(Duration::from_secs(next))
    }

    async fn override_delay(&self, delay: Duration) -> Result<(), LogindError> {
        self.journal.lock().push(format!("wait for {delay:?}"));
        Ok(())
    }

    async fn inhibit(&self) -> Result<Lock, LogindError> {
        self.journal.lock().push("inhibit".to_owned());
        Ok(Box::new(FakeLock(self.journal.clone())))
    }

    async fn shutdowns(&self) -> Result<BoxStream<'static, bool>, LogindError> {
        Ok(stream::iter(self.shutdowns.clone()).boxed())
    }
}

/// Pods with their priority, and how many seconds they take to end.
struct FakePods(Journal, Vec<(Arc<Pod>, u64)>);

#[async_trait]
impl EndPods for FakePods {
    fn active(&self) -> Vec<Arc<Pod>> {
        self.1.iter().map(|(pod, _)| pod.clone()).collect()
    }

    async fn end(&self, pod: &Pod, grace_seconds: i64) {
        let name = &pod.metadata.name;
        self.0.lock().push(format!("end {name} in {grace_seconds}"));
        let takes = self.1.iter().find(|(other, _)| other.metadata.name == *name).map_or(0, |(_, takes)| *takes);
        tokio::time::sleep(Duration::from_secs(takes)).await;
        self.0.lock().push(format!("{name} ended"));
    }
}

impl ShutdownView for FakePods {
    fn set_shutting_down(&self, going: bool) {
        self.0.lock().push(format!("going {going}"));
    }
}

impl Events for FakePods {
    fn event(&self, _: ObjectReference, _: Level, reason: &str, message: &str) {
        self.0.lock().push(format!("{reason}: {message}"));
    }
}

fn pod(name: &str, priority: i32, takes: u64) -> (Arc<Pod>, u64) {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.spec.priority = Some(priority);
    pod.spec.termination_grace_period_seconds = Some(10);
    (Arc::new(pod), takes)
}

fn bench(root: &std::path::Path, pods: Vec<(Arc<Pod>, u64)>) -> (ShutdownManager, Journal) {
    let journal = Journal::default();
    let fake = Arc::new(FakePods(journal.clone(), pods));
    let counted = journal.clone();
    let manager = ShutdownManager {
        periods: periods(&[], 30, 5),
        root: root.to_owned(),
        node: ObjectReference::default(),
        pods: fake.clone(),
        view: fake.clone(),
        events: fake,
        clock: TokioClock::shared(),
        count: Box::new(move |started, ended| counted.lock().push(format!("took {}", (ended - started).max(-1.0)))),
    };
    (manager, journal)
}

#[tokio::test(start_paused = true)]
async fn pods_end_in_order_and_the_machine_waits_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let pods = vec![pod("system", 2_000_000_000, 60), pod("one", 0, 1), pod("two", 5, 3)];
    let (manager, journal) = bench(dir.path(), pods);
    let logind =
        FakeLogind { journal: journal.clone(), delays: Mutex::new([5, 5, 30].into()), shutdowns: vec![true, false] };
    manager.watch(&logind).await.unwrap();
    let seen = journal.lock().clone();
    let expected = [
        "wait for 30s",
        "inhibit",
        "Shutdown: Shutdown manager detected shutdown event",
        "going true",
        "took -1",
        "end one in 10",
        "end two in 10",
        "one ended",
        "two ended",
        "end system in 5",
        // It takes longer than it may.
        "took 8",
        "let go",
        "Shutdown: Shutdown manager detected shutdown cancellation",
        "going false",
        "inhibit",
        "let go",
    ];
    assert_eq!(seen, expected);
    let state = std::fs::read_to_string(dir.path().join(STATE_FILE)).unwrap();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert!(state["startTime"].is_string() && state["endTime"].is_string(), "{state}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_will_not_wait_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (manager, journal) = bench(dir.path(), Vec::new());
    let logind = FakeLogind { journal, delays: Mutex::new([5].into()), shutdowns: Vec::new() };
    let error = manager.watch(&logind).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to 30s \
         (ShutdownGracePeriod), current value is 5s"
    );
}
