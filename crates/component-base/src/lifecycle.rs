//! How a component ends: named events, in upstream's order, and the tasks that are drained at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use base::{CancellationToken, Rng, SharedClock, SharedRng, SystemClock, TaskGroup};

use feature_gates::Gates;

use crate::flags::Versions;
use crate::http_proxy::ProxyEnvironment;
use crate::logging::Logging;

/// Something that happens once.
#[derive(Debug, Clone)]
pub struct Event {
    name: &'static str,
    token: CancellationToken,
}

impl Event {
    fn new(name: &'static str) -> Self {
        Self { name, token: CancellationToken::new() }
    }

    /// It has happened. Only the first call has an effect.
    pub fn signal(&self) {
        if !self.token.is_cancelled() {
            self.token.cancel();
            tracing::info!(v = 1, name = self.name, "[graceful-termination] shutdown event");
        }
    }

    /// Whether it has happened.
    #[must_use]
    pub fn has_happened(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until it has happened.
    pub async fn wait(&self) {
        self.token.cancelled().await;
    }

    /// A token that is cancelled when it happens, for code that takes one.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }
}

/// The stages of a component's life, in their usual order.
#[derive(Debug, Clone)]
pub struct Events {
    /// `/readyz` has answered 200 once.
    pub has_been_ready: Event,
    /// All paths are known, so that an unknown one is really a 404.
    pub mux_and_discovery_complete: Event,
    /// The process was asked to end.
    pub shutdown_initiated: Event,
    /// Load balancers have had `--shutdown-delay-duration` to notice.
    pub after_shutdown_delay: Event,
    /// Hooks that run before the drain are done.
    pub pre_shutdown_hooks_stopped: Event,
    /// New requests are refused.
    pub not_accepting_new_request: Event,
    /// Running requests have ended.
    pub in_flight_requests_drained: Event,
    /// The listener is closed.
    pub http_server_stopped_listening: Event,
}

impl Events {
    fn new() -> Self {
        Self {
            has_been_ready: Event::new("HasBeenReady"),
            mux_and_discovery_complete: Event::new("MuxAndDiscoveryComplete"),
            shutdown_initiated: Event::new("ShutdownInitiated"),
            after_shutdown_delay: Event::new("AfterShutdownDelayDuration"),
            pre_shutdown_hooks_stopped: Event::new("PreShutdownHooksStopped"),
            not_accepting_new_request: Event::new("NotAcceptingNewRequest"),
            in_flight_requests_drained: Event::new("InFlightRequestsDrained"),
            http_server_stopped_listening: Event::new("HTTPServerStoppedListening"),
        }
    }
}

/// What a component is given to live with. Clones share everything.
#[derive(Clone)]
pub struct Lifecycle {
    tasks: TaskGroup,
    events: Events,
    clock: SharedClock,
    rng: SharedRng,
    gates: Gates,
    versions: Versions,
    logging: Option<Logging>,
    command_line: Arc<BTreeMap<String, String>>,
    proxies: Arc<ProxyEnvironment>,
    started: SystemTime,
}

impl Lifecycle {
    /// A lifecycle of its own, for tests and for components that run inside another process: no signals, no log, no
    /// proxies, gates at their defaults.
    #[must_use]
    pub fn new(name: &str, clock: SharedClock, rng: SharedRng) -> Self {
        let (gates, versions) = (Gates::default(), Versions::default());
        let (tasks, events, started) = (TaskGroup::new(name), Events::new(), clock.wall());
        let (command_line, proxies) = (Arc::default(), Arc::default());
        Self { tasks, events, clock, rng, gates, versions, logging: None, command_line, proxies, started }
    }

    /// The lifecycle of a process. Of its environment the proxies are read here, once.
    pub(crate) fn of_process(name: &str, versions: Versions, gates: Gates, logging: Logging) -> Self {
        let own = Self::new(name, SystemClock::shared(), Rng::from_os());
        let proxies = Arc::new(ProxyEnvironment::of_process());
        Self { gates, versions, logging: Some(logging), proxies, ..own }
    }

    /// Says with which flags it was started, by name.
    #[must_use]
    pub fn with_command_line(self, flags: BTreeMap<String, String>) -> Self {
        Self { command_line: Arc::new(flags), ..self }
    }

    /// Replaces the releases that it goes by.
    #[must_use]
    pub fn with_versions(self, versions: Versions) -> Self {
        Self { versions, ..self }
    }

    /// Replaces the gates.
    #[must_use]
    pub fn with_gates(mut self, gates: Gates) -> Self {
        self.gates = gates;
        self
    }

    /// The component's tasks; they are told to end when the component's main function has returned, and drained.
    #[must_use]
    pub fn tasks(&self) -> &TaskGroup {
        &self.tasks
    }

    /// The stages.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The source of randomness.
    #[must_use]
    pub fn rng(&self) -> &SharedRng {
        &self.rng
    }

    /// The feature gates as set by flag.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// The releases that it goes by.
    #[must_use]
    pub fn versions(&self) -> Versions {
        self.versions
    }

    /// Every flag with its value at the start; none inside another process.
    #[must_use]
    pub fn command_line(&self) -> &BTreeMap<String, String> {
        &self.command_line
    }

    /// When it began.
    #[must_use]
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// Through which proxies the environment wants connections to go.
    #[must_use]
    pub fn proxies(&self) -> &Arc<ProxyEnvironment> {
        &self.proxies
    }

    /// The log, for its health check and for changing `-v`; none inside another process.
    #[must_use]
    pub fn logging(&self) -> Option<&Logging> {
        self.logging.as_ref()
    }

    /// Asks the component to end, as SIGTERM does.
    pub fn begin_shutdown(&self) {
        self.events.shutdown_initiated.signal();
    }

    /// Waits until the component is asked to end.
    pub async fn shutdown_requested(&self) {
        self.events.shutdown_initiated.wait().await;
    }
}
