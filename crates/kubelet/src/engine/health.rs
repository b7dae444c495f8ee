//! Whether the runtime is well: polled, and told to the node's Ready condition in upstream's words.

use std::time::Duration;

use base::SharedClock;
use node_api::cri::Runtime;
use node_api::cri::v1::{RuntimeCondition, StatusResponse};
use parking_lot::Mutex;
use tokio::time::Instant;

const POLL: Duration = Duration::from_secs(5);
/// The runtime counts as down when its last good answer is older.
const DOWN_AFTER: Duration = Duration::from_secs(30);

/// What the runtime said of itself last.
pub(super) struct RuntimeHealth {
    state: Mutex<State>,
    clock: SharedClock,
}

#[derive(Default)]
struct State {
    last: Option<(Instant, StatusResponse)>,
    name: String,
}

impl RuntimeHealth {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self { state: Mutex::default(), clock }
    }

    /// Asks until the caller drops the future.
    pub(super) async fn run(&self, runtime: &dyn Runtime) {
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.poll(runtime).await;
        }
    }

    /// Asks once.
    pub(super) async fn poll(&self, runtime: &dyn Runtime) {
        if self.state.lock().name.is_empty() {
            match runtime.version().await {
                Ok(version) => self.state.lock().name = version.runtime_name,
                Err(error) => return tracing::error!(%error, "Container runtime version failed"),
            }
        }
        match runtime.status(false).await {
            Ok(status) => self.state.lock().last = Some((self.clock.monotonic(), status)),
            Err(error) => tracing::error!(%error, "Container runtime sanity check failed"),
        }
    }

    /// Such as `containerd`; empty before the first answer.
    pub(super) fn runtime_name(&self) -> String {
        self.state.lock().name.clone()
    }

    pub(super) fn status(&self) -> Option<StatusResponse> {
        self.state.lock().last.as_ref().map(|(_, status)| status.clone())
    }

    /// Why pods cannot have a network, if they cannot.
    pub(super) fn network_error(&self) -> Option<String> {
        self.condition("NetworkReady")
            .map(|condition| text("container runtime network not ready", "NetworkReady", &condition))
    }

    /// Why the runtime cannot be used, if it cannot.
    pub(super) fn runtime_errors(&self) -> Vec<String> {
        let last = self.state.lock().last.as_ref().map(|(at, _)| *at);
        let Some(last) = last else {
            return vec!["container runtime status check may not have completed yet".to_owned()];
        };
        let mut out = Vec::new();
        if self.clock.monotonic() - last > DOWN_AFTER {
            out.push("container runtime is down".to_owned());
        }
        if let Some(condition) = self.condition("RuntimeReady") {
            out.push(text("container runtime not ready", "RuntimeReady", &condition));
        }
        out
    }

    /// The condition of a type where it is off.
    fn condition(&self, type_: &str) -> Option<RuntimeCondition> {
        let state = self.state.lock();
        let status = state.last.as_ref()?.1.status.as_ref()?;
        status.conditions.iter().find(|condition| condition.r#type == type_ && !condition.status).cloned()
    }
}

fn text(what: &str, type_: &str, condition: &RuntimeCondition) -> String {
    format!("{what}: {type_}=false reason:{} message:{}", condition.reason, condition.message)
}
