//! Probes: is a container started, alive, ready? One worker for each container and kind; their verdicts are kept by
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

use crate::runtime::plan::Verdicts;

pub(crate) use workers::{News, Parts as ProbeParts, Probes, Statuses, VERDICT_QUEUE};

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

    /// What counts before the first verdict.
    fn initial(self) -> Verdict {
        match self {
            Self::Startup => Verdict::Unknown,
            Self::Readiness => Verdict::Failure,
            Self::Liveness => Verdict::Success,
        }
    }
}

/// What a probe has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Unknown,
    Success,
    Failure,
}

/// The verdicts on running containers, by kind and container id.
#[derive(Default)]
pub(crate) struct Results {
    verdicts: RwLock<HashMap<(ProbeKind, String), Verdict>>,
}

impl Results {
    /// Returns whether that is news.
    pub(crate) fn set(&self, kind: ProbeKind, container_id: &str, verdict: Verdict) -> bool {
        self.verdicts.write().insert((kind, container_id.to_owned()), verdict) != Some(verdict)
    }

    pub(crate) fn get(&self, kind: ProbeKind, container_id: &str) -> Option<Verdict> {
        self.verdicts.read().get(&(kind, container_id.to_owned())).copied()
    }

    pub(crate) fn remove(&self, kind: ProbeKind, container_id: &str) {
        self.verdicts.write().remove(&(kind, container_id.to_owned()));
    }
}

impl Verdicts for Results {
    fn verdict(&self, kind: ProbeKind, container_id: &str) -> Option<Verdict> {
        self.get(kind, container_id)
    }
}
