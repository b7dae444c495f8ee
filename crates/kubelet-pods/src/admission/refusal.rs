//! Why a pod may not run here, and what may help.

use std::fmt;

use super::PreemptionError;
use crate::runtime::checkpoint::CheckpointError;

/// Why a pod may not run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub reason: Reason,
    pub message: String,
}

/// The reason as the status and the event have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Evicted,
    SysctlForbidden,
    InvalidNodeInfo,
    PodOsSelectorNodeLabelDoesNotMatch,
    PodOsNotSupported,
    SupplementalGroupsPolicyNotSupported,
    /// There is too little of this resource.
    OutOf(String),
    NodeAffinity,
    NodeName,
    NodePorts,
    TaintToleration,
    AppArmor,
    PodFeatureUnsupported,
    NodeShutdown,
    /// What it asks for would not be near enough together.
    TopologyAffinityError,
    /// It cannot have whole cores.
    SmtAlignmentError,
    /// Some of its containers have all that it has, so that nothing is left for the others.
    EmptyPodSharedPoolError,
    PodLevelResourcesNotSupported,
    /// What is not the pod's doing: room could not be made, or what it is given not be had.
    UnexpectedAdmissionError,
    /// What it is given cannot be written down, which users see as the one above.
    NotWritten,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Evicted => "Evicted",
            Self::SysctlForbidden => "SysctlForbidden",
            Self::InvalidNodeInfo => "InvalidNodeInfo",
            Self::PodOsSelectorNodeLabelDoesNotMatch => "PodOSSelectorNodeLabelDoesNotMatch",
            Self::PodOsNotSupported => "PodOSNotSupported",
            Self::SupplementalGroupsPolicyNotSupported => "SupplementalGroupsPolicyNotSupported",
            Self::OutOf(resource) => return write!(f, "OutOf{resource}"),
            Self::NodeAffinity => "NodeAffinity",
            Self::NodeName => "NodeName",
            Self::NodePorts => "NodePorts",
            Self::TaintToleration => "TaintToleration",
            Self::AppArmor => "AppArmor",
            Self::PodFeatureUnsupported => "PodFeatureUnsupported",
            Self::NodeShutdown => "NodeShutdown",
            Self::TopologyAffinityError => "TopologyAffinityError",
            Self::SmtAlignmentError => "SMTAlignmentError",
            Self::EmptyPodSharedPoolError => "EmptyPodSharedPoolError",
            Self::PodLevelResourcesNotSupported => "PodLevelResourcesNotSupported",
            Self::UnexpectedAdmissionError | Self::NotWritten => "UnexpectedAdmissionError",
        })
    }
}

/// What may turn a refusal around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Nothing that the kubelet could do.
    None,
    /// Reading the node anew: its labels may lag behind.
    FreshNode,
    /// Ending other pods.
    Preemption,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// A predicate of the scheduler's does not hold.
    pub(super) fn predicate(reason: Reason, why: &str) -> Self {
        let message = format!("Predicate {reason} failed: {why}");
        Self { reason, message }
    }

    /// What may turn it around.
    pub(crate) fn remedy(&self) -> Remedy {
        match self.reason {
            Reason::NodeAffinity => Remedy::FreshNode,
            Reason::OutOf(_) => Remedy::Preemption,
            _ => Remedy::None,
        }
    }
}

/// The attempt to make room failed.
impl From<PreemptionError> for Refusal {
    fn from(error: PreemptionError) -> Self {
        let text = format!("Unexpected error while attempting to recover from admission failure: {error}");
        Self::new(Reason::UnexpectedAdmissionError, text)
    }
}

/// What the pod would be given could not be written down.
impl From<CheckpointError> for Refusal {
    fn from(error: CheckpointError) -> Self {
        Self::new(Reason::NotWritten, format!("Allocate failed due to {error}, which is unexpected"))
    }
}
