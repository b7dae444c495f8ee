//! Probes: is a container started, alive, ready? One worker for each container and kind; their results are kept by
//! container id and change what the pod's sync does and what its status says.

mod dial;
pub(crate) mod exec;
pub(crate) mod grpc;
pub(crate) mod http;
pub(crate) mod ports;
mod run;
mod step;
pub(crate) mod tls;
mod workers;

use std::collections::HashMap;

use api_types::core_v1::{Container, Probe};
use parking_lot::RwLock;

use crate::runtime::plan::ProbeResults;

pub(crate) use workers::{News, ProbeDependencies, Probes, RESULT_QUEUE, Statuses};

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    Startup,
    Readiness,
    Liveness,
}

impl ProbeKind {
    pub const ALL: [Self; 3] = [Self::Startup, Self::Readiness, Self::Liveness];

    /// The container's probe of this kind.
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup_probe.as_deref(),
            Self::Readiness => container.readiness_probe.as_deref(),
            Self::Liveness => container.liveness_probe.as_deref(),
        }
    }

    /// As events write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }

    /// What counts before the first result.
    fn initial(self) -> ProbeResult {
        match self {
            Self::Startup => ProbeResult::Unknown,
            Self::Readiness => ProbeResult::Failure,
            Self::Liveness => ProbeResult::Success,
        }
    }
}

/// What a probe has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeResult {
    Unknown,
    Success,
    Failure,
}

/// The results on running containers, by kind and container id.
#[derive(Default)]
pub(crate) struct Results {
    by_container: RwLock<HashMap<(ProbeKind, String), ProbeResult>>,
}

impl Results {
    /// Returns whether that is news.
    pub(crate) fn set(&self, kind: ProbeKind, container_id: &str, result: ProbeResult) -> bool {
        self.by_container.write().insert((kind, container_id.to_owned()), result) != Some(result)
    }

    pub(crate) fn get(&self, kind: ProbeKind, container_id: &str) -> Option<ProbeResult> {
        self.by_container.read().get(&(kind, container_id.to_owned())).copied()
    }

    pub(crate) fn remove(&self, kind: ProbeKind, container_id: &str) {
        self.by_container.write().remove(&(kind, container_id.to_owned()));
    }
}

impl ProbeResults for Results {
    fn result(&self, kind: ProbeKind, container_id: &str) -> Option<ProbeResult> {
        self.get(kind, container_id)
    }
}
