//! Whether the runtime is well: polled, and told to the node's Ready condition in upstream's words.

use std::time::Duration;

use base::SharedClock;
use node_api::cri::Runtime;
use node_api::cri::v1::{RuntimeCondition, StatusResponse};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::pleg::PlegError;

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
    status: Option<StatusResponse>,
    /// When the runtime last said that it is ready.
    ready: Option<Instant>,
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
            Ok(status) => {
                let mut state = self.state.lock();
                if complaint(&status, "RuntimeReady").is_none() {
                    state.ready = Some(self.clock.monotonic());
                }
                state.status = Some(status);
            }
            Err(error) => tracing::error!(%error, "Container runtime sanity check failed"),
        }
    }

    /// Such as `containerd`; empty before the first answer.
    pub(super) fn runtime_name(&self) -> String {
        self.state.lock().name.clone()
    }

    pub(super) fn status(&self) -> Option<StatusResponse> {
        self.state.lock().status.clone()
    }

    /// Why pods cannot have a network, if they cannot.
    pub(super) fn network_error(&self) -> Option<String> {
        let state = self.state.lock();
        let Some(status) = &state.status else { return Some("network state unknown".to_owned()) };
        complaint(status, "NetworkReady").map(|text| format!("container runtime network not ready: {text}"))
    }

    /// Why the runtime cannot be used, if it cannot; `pleg` is what the generator of pod events has to say.
    pub(super) fn runtime_errors(&self, pleg: Result<(), PlegError>) -> Vec<String> {
        let state = self.state.lock();
        let mut out = Vec::new();
        match state.ready {
            None => out.push("container runtime status check may not have completed yet".to_owned()),
            Some(at) if self.clock.monotonic() - at > DOWN_AFTER => out.push("container runtime is down".to_owned()),
            Some(_) => {}
        }
        out.extend(pleg.err().map(|error| format!("PLEG is not healthy: {error}")));
        let complaint = state.status.as_ref().and_then(|status| complaint(status, "RuntimeReady"));
        out.extend(complaint.map(|text| format!("container runtime not ready: {text}")));
        out
    }
}

/// What is said of a condition that is off, or that the runtime does not tell of.
fn complaint(status: &StatusResponse, type_: &str) -> Option<String> {
    let mut conditions = status.status.iter().flat_map(|status| &status.conditions);
    match conditions.find(|condition| condition.r#type == type_) {
        Some(condition) if condition.status => None,
        Some(RuntimeCondition { reason, message, .. }) => {
            Some(format!("{type_}=false reason:{reason} message:{message}"))
        }
        None => Some("<nil>".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use base::{TaskGroup, TokioClock};
    use node_api::cri::fake::FakeRuntime;
    use node_api::cri::{Code, CriError};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_words_are_upstreams() {
        let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("runtime"));
        let health = RuntimeHealth::new(TokioClock::shared());
        let errors = || health.runtime_errors(Ok(())).join(", ");
        assert_eq!(errors(), "container runtime status check may not have completed yet");
        assert_eq!(health.network_error().as_deref(), Some("network state unknown"));
        health.poll(&runtime).await;
        assert_eq!((errors().as_str(), health.network_error()), ("", None));
        assert_eq!(
            health.runtime_errors(Err(PlegError::NeverLooked)),
            ["PLEG is not healthy: pleg has yet to be successful"]
        );

        runtime.set_condition("NetworkReady", false, "NoCni", "no config");
        health.poll(&runtime).await;
        let network = "container runtime network not ready: NetworkReady=false reason:NoCni message:no config";
        assert_eq!((errors().as_str(), health.network_error().as_deref()), ("", Some(network)));

        // One that answers that it is not ready is down after a while, too.
        runtime.set_condition("RuntimeReady", false, "Stuck", "no shim");
        let not_ready = "container runtime not ready: RuntimeReady=false reason:Stuck message:no shim";
        for (wait, expected) in [(10, not_ready.to_owned()), (21, format!("container runtime is down, {not_ready}"))] {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            health.poll(&runtime).await;
            assert_eq!(errors(), expected);
        }
        runtime.set_condition("RuntimeReady", true, "", "");
        health.poll(&runtime).await;
        assert_eq!(errors(), "");
        runtime.fail_always("status", Some(CriError::rpc("status", Code::Unavailable, "gone")));
        tokio::time::sleep(Duration::from_secs(31)).await;
        health.poll(&runtime).await;
        assert_eq!(errors(), "container runtime is down");
    }
}
