//! How tests steer the fake runtime and look into it.

use std::time::Duration;

use super::super::v1::{ContainerConfig, MetricDescriptor, PodSandboxConfig, PodSandboxMetrics, RuntimeFeatures};
use super::{Call, CriError, ExecScript, FakeRuntime, MAX_CALLS, RuntimeCondition, Script, State};

impl FakeRuntime {
    /// What containers of this name do, one script per start; the last one is for all further starts. Containers
    /// without scripts run forever.
    pub fn script(&self, container_name: &str, scripts: impl IntoIterator<Item = Script>) {
        self.shared.state.lock().scripts.insert(container_name.to_owned(), scripts.into_iter().collect());
    }

    /// What a command (joined by blanks) does in any container; others succeed at once without output.
    pub fn script_exec(&self, command: &str, script: ExecScript) {
        self.shared.state.lock().execs.insert(command.to_owned(), script);
    }

    /// Ends a running container now. Returns whether it was running.
    pub fn exit_container(&self, container_id: &str, code: i32, reason: &str) -> bool {
        self.end(container_id, code, reason)
    }

    /// Where `exec`, `attach` and `port_forward` send clients, such as `http://127.0.0.1:40000`; the test serves there.
    pub fn set_streaming_base(&self, url: &str) {
        self.shared.state.lock().streaming_base = Some(url.to_owned());
    }

    /// Makes a container's memory working set this large in stats; by container name.
    pub fn set_memory(&self, container_name: &str, bytes: u64) {
        self.shared.state.lock().memory.insert(container_name.to_owned(), bytes);
    }

    /// What the runtime says that it can do, whatever its handlers are; by default nothing.
    pub fn set_features(&self, features: RuntimeFeatures) {
        self.shared.state.lock().features = Some(features);
    }

    /// What the runtime describes of its own metrics, and their values.
    pub fn set_metrics(&self, described: Vec<MetricDescriptor>, values: Vec<PodSandboxMetrics>) {
        self.shared.state.lock().metrics = (described, values);
    }

    /// Makes every pull of an image fail with `error`; `None` heals it.
    pub fn set_pull_error(&self, image: &str, error: Option<CriError>) {
        let mut state = self.shared.state.lock();
        match error {
            Some(error) => drop(state.unpullable.insert(image.to_owned(), error)),
            None => drop(state.unpullable.remove(image)),
        }
    }

    /// How long pulls take.
    pub fn set_pull_time(&self, takes: Duration) {
        self.shared.state.lock().pull_takes = takes;
    }

    /// Sets a runtime condition such as `NetworkReady`.
    pub fn set_condition(&self, name: &str, status: bool, reason: &str, message: &str) {
        let mut state = self.shared.state.lock();
        state.conditions.retain(|condition| condition.r#type != name);
        state.conditions.push(RuntimeCondition {
            r#type: name.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
        });
    }

    /// Makes the next call of an operation fail; further ones queue up.
    pub fn fail_next(&self, operation: &'static str, error: CriError) {
        self.shared.state.lock().faults.entry(operation).or_default().push_back(error);
    }

    /// Makes every call of an operation fail until `None` heals it.
    pub fn fail_always(&self, operation: &'static str, error: Option<CriError>) {
        let mut state = self.shared.state.lock();
        match error {
            Some(error) => drop(state.broken.insert(operation, error)),
            None => drop(state.broken.remove(operation)),
        }
    }

    /// Makes every call of an operation take so long before it does anything.
    pub fn delay(&self, operation: &'static str, takes: Duration) {
        self.shared.state.lock().delays.insert(operation, takes);
    }

    /// The calls made since the last time, oldest first.
    #[must_use]
    pub fn take_calls(&self) -> Vec<Call> {
        self.shared.state.lock().calls.drain(..).collect()
    }

    /// The ids of all containers that there are, dead ones too.
    #[must_use]
    pub fn container_ids(&self) -> Vec<String> {
        self.shared.state.lock().containers.keys().cloned().collect()
    }

    /// What the containers of a name were created from, those that are gone left out.
    #[must_use]
    pub fn container_configs(&self, container_name: &str) -> Vec<ContainerConfig> {
        let state = self.shared.state.lock();
        let own = state.containers.values().filter(|container| container.name() == container_name);
        own.map(|container| container.config.clone()).collect()
    }

    /// The ids of all sandboxes that there are, stopped ones too.
    #[must_use]
    pub fn sandbox_ids(&self) -> Vec<String> {
        self.shared.state.lock().sandboxes.keys().cloned().collect()
    }

    /// What a sandbox was made from, with what has been changed since.
    #[must_use]
    pub fn sandbox_config(&self, sandbox_id: &str) -> Option<PodSandboxConfig> {
        self.shared.state.lock().sandboxes.get(sandbox_id).map(|sandbox| sandbox.config.clone())
    }

    /// The pod CIDR that `update_runtime_config` set.
    #[must_use]
    pub fn pod_cidr(&self) -> String {
        self.shared.state.lock().pod_cidr.clone()
    }

    /// Notes a call, waits its delay and fails if it shall.
    pub(super) async fn enter(&self, operation: &'static str, subject: &str) -> Result<(), CriError> {
        let delay = {
            let mut state = self.shared.state.lock();
            if state.calls.len() >= MAX_CALLS {
                state.calls.pop_front();
            }
            state.calls.push_back(Call { operation, subject: subject.to_owned() });
            state.delays.get(operation).copied()
        };
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        let mut state = self.shared.state.lock();
        match take_fault(&mut state, operation) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn take_fault(state: &mut State, operation: &'static str) -> Option<CriError> {
    let next = state.faults.get_mut(operation).and_then(std::collections::VecDeque::pop_front);
    next.or_else(|| state.broken.get(operation).cloned())
}
