//! Devices, processors and memory: a pod that asks for some is given them once all else is agreed to, as plugins of devices
//! have to be asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubelet_node::cpus::CpuError;
use kubelet_node::memory::MemoryError;
use kubelet_node::topology::{AdmitError, TopologyManager};

use super::{Attempt, Handler, Operation, Reason, Refusal, Reservation};
use crate::runtime::checkpoint::CheckpointError;

impl Handler for Arc<TopologyManager> {
    fn admit(&self, attempt: &Attempt<'_>) -> Result<Reservation, Refusal> {
        let (me, pod) = (Arc::clone(self), attempt.pod.clone());
        if attempt.operation != Operation::Add {
            let Some(before) = me.resize(&pod)? else { return Ok(Reservation::nothing()) };
            return Ok(Reservation::undone_by(move || me.put_back(&pod.metadata.uid, before)));
        }
        Ok(Reservation::asked_for(async move {
            let Some(before) = me.allocate(&pod).await? else { return Ok(Reservation::nothing()) };
            Ok(Reservation::undone_by(move || me.put_back(&pod.metadata.uid, before)))
        }))
    }

    fn restore(&self) -> Result<(), CheckpointError> {
        Ok(TopologyManager::restore(self)?)
    }

    fn keep(&self, uids: &BTreeSet<String>) {
        TopologyManager::keep(self, uids);
    }
}

impl From<AdmitError> for Refusal {
    fn from(error: AdmitError) -> Self {
        let reason = match &error {
            AdmitError::Affinity | AdmitError::PodAffinity(_) => Reason::TopologyAffinityError,
            AdmitError::Cpus(CpuError::EmptyPool(_)) | AdmitError::Memory(MemoryError::EmptyPool(_)) => {
                Reason::EmptyPodSharedPoolError
            }
            AdmitError::Cpus(error) if error.is_alignment() => Reason::SmtAlignmentError,
            AdmitError::Cpus(_) | AdmitError::Devices(_) | AdmitError::Memory(_) => Reason::UnexpectedAdmissionError,
            AdmitError::Save(_) => Reason::NotWritten,
        };
        match reason {
            Reason::UnexpectedAdmissionError | Reason::NotWritten => {
                Self::new(reason, format!("Allocate failed due to {error}, which is unexpected"))
            }
            _ => Self::new(reason, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use kubelet_node::cpus::TooFew;
    use kubelet_node::topology::{EmptyPool, Scope};

    use super::*;

    #[test]
    fn refusals_have_upstreams_reasons() {
        let few = CpuError::TooFew(TooFew { requested: 2, available: 1 });
        let part = CpuError::PartOfCore { requested: 3, per_core: 2 };
        let cases = [
            (AdmitError::Affinity, "TopologyAffinityError: Resources cannot be allocated with Topology locality"),
            (
                AdmitError::Cpus(part),
                "SMTAlignmentError: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
            ),
            (
                AdmitError::PodAffinity(Scope::Pod),
                "TopologyAffinityError: Pod Scope pod with pod-level resources failed admission under pod-scope topology \
                 manager",
            ),
            (
                AdmitError::Memory(MemoryError::EmptyPool(EmptyPool::SharedInit("memory".into()))),
                "EmptyPodSharedPoolError: pod rejected, pod has shared init containers but no memory available for them",
            ),
            (
                AdmitError::Cpus(few),
                "UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: \
                 requested=2, available=1, which is unexpected",
            ),
        ];
        for (error, expected) in cases {
            let refusal = Refusal::from(error);
            assert_eq!(format!("{}: {}", refusal.reason, refusal.message), expected);
        }
    }
}
