//! A container runtime in memory, for tests and hollow nodes.
//!
//! It keeps the promises of [`Runtime`] and [`Images`] that the contract suite checks, on tokio's clock, paused or not.
//! What containers do is scripted per container name ([`Script`]); any call can be made to fail or to take time
//! ([`FakeRuntime::fail_next`], [`FakeRuntime::delay`]). Deliberately not here: real output, log files, streaming
//! servers and checkpoints.

mod control;
mod images;
mod model;
mod runtime;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::{SharedClock, TaskGroup};
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};

use super::CriError;
use super::v1::{
    ContainerEventResponse, Image, MetricDescriptor, PodSandboxMetrics, RuntimeCondition, RuntimeFeatures,
};
use model::{FakeContainer, FakeSandbox};

/// Events that a slow reader may fall behind before its stream ends.
const EVENT_BACKLOG: usize = 1024;
/// Calls that are remembered; older ones are forgotten.
const MAX_CALLS: usize = 100_000;

/// What a container does when it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// How long it runs by itself; `None` means until it is stopped.
    pub runs_for: Option<Duration>,
    /// The exit code when it ends by itself.
    pub exit_code: i32,
    /// What it does with the stop signal: ends after this time with the code, or ignores it (`None`).
    pub on_stop: Option<(Duration, i32)>,
    /// The reason in the status, when it is not the usual `Completed` or `Error`.
    pub reason: String,
    /// Why starting it fails, if it does; the container then exits with code 128.
    pub start_error: Option<String>,
}

impl Script {
    /// Runs until it is stopped; obeys the stop signal at once with code 143.
    #[must_use]
    pub fn forever() -> Self {
        let on_stop = Some((Duration::ZERO, 143));
        Self { runs_for: None, exit_code: 0, on_stop, reason: String::new(), start_error: None }
    }

    /// Runs for a while and ends with a code.
    #[must_use]
    pub fn exits(after: Duration, code: i32) -> Self {
        Self { runs_for: Some(after), exit_code: code, ..Self::forever() }
    }
}

/// What a command run by `exec_sync` does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecScript {
    /// How long it takes.
    pub takes: Duration,
    /// Its exit code.
    pub exit_code: i32,
    /// Its output.
    pub stdout: Vec<u8>,
    /// Its error output.
    pub stderr: Vec<u8>,
}

/// A container runtime in memory. Clones share it.
#[derive(Clone)]
pub struct FakeRuntime {
    shared: Arc<Shared>,
}

struct Shared {
    clock: SharedClock,
    group: TaskGroup,
    events: broadcast::Sender<ContainerEventResponse>,
    state: Mutex<State>,
}

/// One call that was made, in metric spelling, with the id or name it was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operation, such as `run_podsandbox`.
    pub operation: &'static str,
    /// A sandbox, container or image; empty for calls about everything.
    pub subject: String,
}

#[derive(Default)]
struct State {
    next_id: u64,
    next_ip: u32,
    sandboxes: BTreeMap<String, FakeSandbox>,
    containers: BTreeMap<String, FakeContainer>,
    images: BTreeMap<String, Image>,
    unpullable: HashMap<String, CriError>,
    pull_takes: Duration,
    scripts: HashMap<String, VecDeque<Script>>,
    execs: HashMap<String, ExecScript>,
    memory: HashMap<String, u64>,
    features: Option<RuntimeFeatures>,
    /// What the runtime's own metrics are, and their values.
    metrics: (Vec<MetricDescriptor>, Vec<PodSandboxMetrics>),
    conditions: Vec<RuntimeCondition>,
    faults: HashMap<&'static str, VecDeque<CriError>>,
    broken: HashMap<&'static str, CriError>,
    delays: HashMap<&'static str, Duration>,
    calls: VecDeque<Call>,
    pod_cidr: String,
    /// Where streams are served; nowhere unless a test says so.
    streaming_base: Option<String>,
}

/// Tells those who wait for a container's end.
type Ended = watch::Receiver<bool>;

impl FakeRuntime {
    /// An empty runtime whose containers run as tasks of `group`.
    #[must_use]
    pub fn new(clock: SharedClock, group: &TaskGroup) -> Self {
        let condition = |name: &str| RuntimeCondition { r#type: name.to_owned(), status: true, ..Default::default() };
        let conditions = vec![condition("RuntimeReady"), condition("NetworkReady")];
        let state = State { conditions, ..State::default() };
        let (events, _) = broadcast::channel(EVENT_BACKLOG);
        Self { shared: Arc::new(Shared { clock, group: group.clone(), events, state: Mutex::new(state) }) }
    }

    /// Wall time in nanoseconds since 1970, as CRI has it.
    fn now(&self) -> i64 {
        let since = self.shared.clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }
}
