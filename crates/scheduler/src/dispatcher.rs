//! Bindings and statuses as calls that one place makes: of each pod one call is under way and one waits at most, and what has been
//! overtaken meanwhile is not asked of the API server any more (KEP-5229, `SchedulerAsyncAPICalls`).
//!
//! A binding overtakes a status that still waits, and a status that comes after a binding is not written at all. A status is
//! joined with one that still waits. What is written of pods that are to be evicted goes its own way.

use std::collections::HashMap;
use std::sync::Arc;

use api_types::core_v1::{Pod, PodStatus};
use async_trait::async_trait;
use base::SharedClock;
use component_base::Feature;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::metrics::SchedulerMetrics;
use crate::writer::{ClusterWriter, WriteError};

/// Bindings and statuses go through a [`Dispatcher`].
pub(crate) const ASYNC_CALLS: Feature = Feature::named("SchedulerAsyncAPICalls");

/// What is asked of the API server. The later kind is the more relevant one.
#[derive(Clone)]
enum Call {
    /// From what the pod says to the status.
    Status(Box<(Pod, PodStatus)>),
    /// The pod, and the node that it gets.
    Bind(Box<(Pod, String)>),
}

impl Call {
    /// As metrics name it.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Status(_) => "pod_status_patch",
            Self::Bind(_) => "pod_binding",
        }
    }
}

/// A call that waits, and whoever waits for it.
struct Waiting {
    call: Call,
    callers: Vec<oneshot::Sender<Result<(), WriteError>>>,
}

/// The calls of one pod.
#[derive(Default)]
struct Calls {
    waiting: Mutex<Option<Waiting>>,
    /// Whoever has it makes the call that waits then, whose ever it is.
    turn: tokio::sync::Mutex<()>,
}

/// Makes calls, at most one of a pod at a time.
pub(crate) struct Dispatcher {
    writer: Arc<dyn ClusterWriter>,
    clock: SharedClock,
    /// By uid of the pod; only those with calls.
    pods: Mutex<HashMap<String, Arc<Calls>>>,
    metrics: Arc<SchedulerMetrics>,
}

impl Dispatcher {
    /// One that makes its calls through `writer`.
    pub(crate) fn new(writer: Arc<dyn ClusterWriter>, clock: SharedClock, metrics: Arc<SchedulerMetrics>) -> Self {
        Self { writer, clock, pods: Mutex::default(), metrics }
    }

    /// Has a call made; what became of it. One that was overtaken counts as made.
    async fn dispatch(&self, uid: &str, call: Call) -> Result<(), WriteError> {
        let calls = Arc::clone(self.pods.lock().entry(uid.to_owned()).or_default());
        let (told, mut answer) = oneshot::channel();
        self.put(&calls, call, told);
        let turn = calls.turn.lock().await;
        let waiting = calls.waiting.lock().take();
        if let Some(Waiting { call, callers }) = waiting {
            self.metrics.call_waits(call.kind(), -1.0);
            let outcome = self.make(&call).await;
            for caller in callers {
                // One that does not listen any more needs to know nothing.
                let _ = caller.send(outcome.clone());
            }
        }
        drop(turn);
        self.forget(uid, calls);
        answer.try_recv().unwrap_or(Ok(()))
    }

    /// Puts a call where the one of its pod waits.
    fn put(&self, calls: &Calls, call: Call, caller: oneshot::Sender<Result<(), WriteError>>) {
        let mut waiting = calls.waiting.lock();
        let next = match (waiting.take(), call) {
            (None, call) => {
                self.metrics.call_waits(call.kind(), 1.0);
                Waiting { call, callers: vec![caller] }
            }
            (Some(Waiting { call: Call::Status(older), mut callers }), Call::Status(newer)) => {
                callers.push(caller);
                Waiting { call: Call::Status(Box::new(joined(&older, *newer))), callers }
            }
            // Overtaken: whoever waits for the status hears that nothing went wrong.
            (Some(Waiting { call: older @ Call::Status(_), .. }), call @ Call::Bind(_)) => {
                self.metrics.call_waits(older.kind(), -1.0);
                self.metrics.call_waits(call.kind(), 1.0);
                Waiting { call, callers: vec![caller] }
            }
            (Some(binding), Call::Status(_)) => binding,
            (Some(Waiting { mut callers, .. }), call @ Call::Bind(_)) => {
                callers.push(caller);
                Waiting { call, callers }
            }
        };
        *waiting = Some(next);
    }

    async fn make(&self, call: &Call) -> Result<(), WriteError> {
        let began = self.clock.monotonic();
        let outcome = match call {
            Call::Status(change) => self.writer.patch_status(&change.0, &change.1).await,
            Call::Bind(binding) => self.writer.bind(&binding.0, &binding.1).await,
        };
        let took = self.clock.monotonic().saturating_duration_since(began);
        self.metrics.called(call.kind(), outcome.is_ok(), took);
        outcome
    }

    /// Forgets the calls of a pod once nobody has any to do with them.
    fn forget(&self, uid: &str, calls: Arc<Calls>) {
        let mut pods = self.pods.lock();
        drop(calls);
        if pods.get(uid).is_some_and(|calls| Arc::strong_count(calls) == 1) {
            pods.remove(uid);
        }
    }
}

/// Two changes of a status in one: the newer one counts, and what only the older one was to change.
fn joined(older: &(Pod, PodStatus), newer: (Pod, PodStatus)) -> (Pod, PodStatus) {
    let ((was, before), (mut pod, mut status)) = (older, newer);
    for condition in before.conditions.iter().filter(|condition| !was.status.conditions.contains(condition)) {
        let own = status.conditions.iter_mut().find(|own| own.type_ == condition.type_);
        match own {
            None => status.conditions.push(condition.clone()),
            Some(own) if pod.status.conditions.contains(own) => own.clone_from(condition),
            Some(_) => {}
        }
    }
    if status.nominated_node_name == pod.status.nominated_node_name {
        status.nominated_node_name.clone_from(&before.nominated_node_name);
    }
    if status.extended_resource_claim_status == pod.status.extended_resource_claim_status {
        status.extended_resource_claim_status.clone_from(&before.extended_resource_claim_status);
    }
    if status.node_allocatable_resource_claim_statuses == pod.status.node_allocatable_resource_claim_statuses {
        // What it was matters, too: it is written even where this pod has it already.
        let of_claims = |status: &PodStatus| status.node_allocatable_resource_claim_statuses.clone();
        pod.status.node_allocatable_resource_claim_statuses = of_claims(&was.status);
        status.node_allocatable_resource_claim_statuses = of_claims(before);
    }
    (pod, status)
}

#[async_trait]
impl ClusterWriter for Dispatcher {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError> {
        self.dispatch(&pod.metadata.uid, Call::Bind(Box::new((pod.clone(), node.to_owned())))).await
    }

    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        if *status == pod.status {
            return Ok(());
        }
        self.dispatch(&pod.metadata.uid, Call::Status(Box::new((pod.clone(), status.clone())))).await
    }

    async fn patch_victim(&self, victim: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        self.writer.patch_status(victim, status).await
    }

    async fn delete(&self, pod: &Pod) -> Result<(), WriteError> {
        self.writer.delete(pod).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api_types::core_v1::PodCondition;
    use base::TokioClock;
    use component_base::metrics::{Metrics, MetricsOptions};
    use futures_util::future::join_all;

    use super::*;
    use crate::test_objects::pod;

    /// Takes a second for each call, and notes what it was.
    #[derive(Default)]
    struct Slow(Mutex<Vec<String>>);

    #[async_trait]
    impl ClusterWriter for Slow {
        async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError> {
            self.0.lock().push(format!("bind {} {node}", pod.metadata.name));
            tokio::time::sleep(Duration::from_secs(1)).await;
            if node == "full" { Err(WriteError::Failed("no room".into())) } else { Ok(()) }
        }
        async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError> {
            let reasons: Vec<_> = status.conditions.iter().map(|own| own.reason.as_str()).collect();
            let line = format!("patch {} {} [{}]", pod.metadata.name, reasons.join(" "), status.nominated_node_name);
            self.0.lock().push(line);
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(())
        }
        async fn delete(&self, pod: &Pod) -> Result<(), WriteError> {
            self.0.lock().push(format!("delete {}", pod.metadata.name));
            Ok(())
        }
    }

    fn told(reason: &str, node: &str) -> PodStatus {
        let condition = PodCondition { type_: "PodScheduled".into(), reason: reason.into(), ..PodCondition::default() };
        let conditions = if reason.is_empty() { Vec::new() } else { vec![condition] };
        PodStatus { conditions, nominated_node_name: node.into(), ..PodStatus::default() }
    }

    #[test]
    fn changes_of_what_claims_give_are_joined() {
        let with = |claims: &[&str]| {
            let mut own = pod("p").0;
            let status = |name: &&str| {
                crate::test_objects::object(serde_json::json!({"resourceClaimName": name, "resources": {}}))
            };
            own.status.node_allocatable_resource_claim_statuses = claims.iter().map(status).collect();
            own
        };
        let change = |from: &[&str], to: &[&str]| (with(from), with(to).status);
        for (older, newer, expected) in [
            (change(&[], &["c"]), change(&[], &[]), (0, 1)),
            (change(&[], &["c"]), change(&["c"], &["c"]), (0, 1)),
            (change(&["c"], &[]), change(&[], &["d", "e"]), (0, 2)),
            (change(&["c"], &[]), change(&["c"], &["c"]), (1, 0)),
        ] {
            let (pod, status) = joined(&older, newer);
            let count = |status: &PodStatus| status.node_allocatable_resource_claim_statuses.len();
            assert_eq!((count(&pod.status), count(&status)), expected);
        }
    }

    enum Ask {
        Bind(&'static str),
        Tell(&'static str, &'static str),
        Evict(&'static str),
    }

    /// What is called when all of this is asked at about the same time, and what everybody hears.
    async fn calls(asked: &[(&'static str, Ask)]) -> (Vec<String>, Vec<bool>, String) {
        let (slow, shown) = (Arc::new(Slow::default()), Metrics::new(MetricsOptions::default()));
        let dispatcher =
            Dispatcher::new(Arc::clone(&slow) as _, TokioClock::shared(), Arc::new(SchedulerMetrics::new(&shown)));
        let ask = async |name: &'static str, ask: &Ask| {
            let pod = pod(name).build();
            let outcome = match ask {
                Ask::Bind(node) => dispatcher.bind(&pod, node).await,
                Ask::Tell(reason, node) => dispatcher.patch_status(&pod, &told(reason, node)).await,
                Ask::Evict(reason) => dispatcher.patch_victim(&pod, &told(reason, "")).await,
            };
            outcome.is_ok()
        };
        let heard = join_all(asked.iter().map(|(name, what)| ask(name, what))).await;
        assert!(dispatcher.pods.lock().is_empty(), "nothing is kept of pods without calls");
        let lines = slow.0.lock().clone();
        (lines, heard, shown.text())
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_joined_or_overtaken() {
        use Ask::{Bind, Evict, Tell};
        for (name, asked, expected, heard) in [
            ("of each pod one at a time", vec![("a", Bind("n")), ("b", Bind("n"))], "bind a n, bind b n", "++"),
            ("no news", vec![("a", Tell("", ""))], "", "+"),
            (
                "joined",
                vec![("a", Tell("first", "")), ("a", Tell("", "n")), ("a", Tell("last", ""))],
                "patch a first [], patch a last [n]",
                "+++",
            ),
            (
                "overtaken",
                vec![("a", Tell("x", "")), ("a", Tell("y", "")), ("a", Bind("n"))],
                "patch a x [], bind a n",
                "+++",
            ),
            (
                "too late",
                vec![("a", Tell("x", "")), ("a", Bind("n")), ("a", Tell("y", ""))],
                "patch a x [], bind a n",
                "+++",
            ),
            ("a failure", vec![("a", Tell("x", "")), ("a", Bind("full"))], "patch a x [], bind a full", "+-"),
            ("victims", vec![("a", Bind("n")), ("a", Evict("x"))], "bind a n, patch a x []", "++"),
        ] {
            let (lines, outcomes, shown) = calls(&asked).await;
            assert_eq!(lines.join(", "), expected, "{name}");
            let outcomes: String = outcomes.into_iter().map(|fine| if fine { '+' } else { '-' }).collect();
            assert_eq!(outcomes, heard, "{name}");
            let pending = shown.lines().filter(|line| line.starts_with("scheduler_pending_async_api_calls{"));
            assert!(pending.clone().all(|line| line.ends_with(" 0")), "{name}: {:?}", pending.collect::<Vec<_>>());
            let made = r#"scheduler_async_api_call_execution_total{call_type="pod_binding",result="success"} 1"#;
            assert_eq!(shown.contains(made), expected.ends_with("bind a n") || name == "victims", "{name}: {shown}");
        }
    }
}
