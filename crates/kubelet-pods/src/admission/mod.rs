//! Whether a pod may run on this node, or may have what it newly asks for: an ordered list of handlers, of which each may
//! reserve what it says yes to.
//!
//! The first refusal decides, and whatever was reserved before it is given back. What is reserved outlives the kubelet
//! where the handler says so, and goes with the pod. Upstream: lifecycle.PodAdmitHandler, the allocation
//! manager. Why it is so: `docs/adr/0016-pod-admission.md`.

mod allocations;
mod app_armor;
#[cfg(test)]
mod contract_tests;
mod features;
mod pod_level;
mod predicates;
mod preemption;
mod pressure;
mod refusal;
mod reservation;
mod sysctls;
#[cfg(test)]
mod tests;
mod topology;

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::core_v1::{Node, Pod};
use component_helpers::taints::Comparing;
use kubelet_node::topology::TopologyManager;

use crate::runtime::checkpoint::CheckpointError;

pub(crate) use allocations::Allocations;
pub(crate) use predicates::shortages;
pub(crate) use preemption::{Missing, PreemptionError, victims};
pub(crate) use refusal::{Reason, Refusal, Remedy};
pub(crate) use reservation::{Admitted, Reservation};
pub use sysctls::check_pattern as check_sysctl_pattern;

/// What a pod asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// To run here.
    Add,
    /// To have other resources while it runs.
    Resize,
}

/// Whether there has to be room beside the other pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// What is requested must fit into what is left.
    Counted,
    /// Others make way.
    Made,
}

/// What the handlers decide from.
#[derive(Clone, Copy)]
pub(crate) struct Situation<'a> {
    pub node: Option<&'a Node>,
    /// Pods that run here, with what they have been given, without the one in question.
    pub others: &'a [Arc<Pod>],
    /// Pressure conditions that are on.
    pub pressures: &'a [String],
    pub shutting_down: bool,
    /// Patterns of sysctls that are allowed though not safe.
    pub unsafe_sysctls: &'a [String],
    /// Whether the runtime can keep to the listed groups.
    pub strict_groups: bool,
    /// How tolerations compare values.
    pub comparing: Comparing,
    /// Whether AppArmor profiles mean something here.
    pub enforces_app_armor: bool,
    /// Whether pods may say what all of their containers may have together.
    pub pod_level_resources: bool,
    /// Whether what claims give pods of that which nodes have anyway counts (KEP-5517).
    pub counts_claims: bool,
    /// What the node declares; `None` where that does not count.
    pub declared_features: Option<&'a [String]>,
}

/// One question of one pod.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub pod: &'a Pod,
    pub operation: Operation,
    pub room: Room,
    pub situation: Situation<'a>,
}

/// One of those who are asked.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Says yes and reserves what the pod then has, or refuses and leaves everything as it was.
    fn admit(&self, attempt: &Attempt<'_>) -> Result<Reservation, Refusal>;

    /// Takes over what an earlier kubelet reserved.
    fn restore(&self) -> Result<(), CheckpointError> {
        Ok(())
    }

    /// Gives back what is reserved for pods that are not among these.
    fn keep(&self, uids: &BTreeSet<String>) {
        let _ = uids;
    }

    /// All that is reserved, as text to compare.
    #[cfg(test)]
    fn reserved(&self) -> String {
        String::new()
    }
}

/// A handler that reserves nothing.
struct Check(fn(&Attempt<'_>) -> Result<(), Refusal>);

impl Handler for Check {
    fn admit(&self, attempt: &Attempt<'_>) -> Result<Reservation, Refusal> {
        (self.0)(attempt).map(|()| Reservation::nothing())
    }
}

/// The handlers of a node, in the order in which they are asked.
pub(crate) struct Admission {
    handlers: Vec<Box<dyn Handler>>,
}

impl Admission {
    /// Upstream's order.
    pub(crate) fn new(allocations: &Arc<Allocations>, topology: Option<&Arc<TopologyManager>>) -> Self {
        let mut handlers: Vec<Box<dyn Handler>> =
            vec![Box::new(Check(pressure::check)), Box::new(Check(sysctls::check))];
        handlers.extend(topology.map(|topology| Box::new(Arc::clone(topology)) as Box<dyn Handler>));
        let rest: [Box<dyn Handler>; 6] = [
            Box::new(Check(predicates::check)),
            Box::new(Check(app_armor::check)),
            Box::new(Check(pod_level::check)),
            Box::new(Check(features::check)),
            Box::new(Check(shutdown)),
            // Last, so that only what all others agree to is written down.
            Box::new(Arc::clone(allocations)),
        ];
        handlers.extend(rest);
        Self { handlers }
    }

    /// Asks all handlers. Nothing stays reserved unless the answer is committed.
    pub(crate) fn admit(&self, attempt: &Attempt<'_>) -> Result<Admitted, Refusal> {
        let mut admitted = Admitted::default();
        for handler in &self.handlers {
            admitted.hold(handler.admit(attempt)?);
        }
        Ok(admitted)
    }

    /// Takes over what an earlier kubelet reserved; to be called before the first question.
    pub(crate) fn restore(&self) -> Result<(), CheckpointError> {
        self.handlers.iter().try_for_each(|handler| handler.restore())
    }

    /// Gives back what is reserved for pods that are gone.
    pub(crate) fn keep(&self, uids: &BTreeSet<String>) {
        self.handlers.iter().for_each(|handler| handler.keep(uids));
    }
}

fn shutdown(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    if attempt.situation.shutting_down {
        return Err(Refusal::new(Reason::NodeShutdown, "Pod was rejected as the node is shutting down."));
    }
    Ok(())
}
