//! Devices of plugins: a pod that asks for some is given them once all else is agreed to, as their plugins have to be asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use kubelet_node::devices::{AllocateError, Devices};

use super::{Attempt, Handler, Operation, Reason, Refusal, Reservation};
use crate::runtime::checkpoint::CheckpointError;

impl Handler for Arc<Devices> {
    fn admit(&self, attempt: &Attempt<'_>) -> Result<Reservation, Refusal> {
        // What a pod has of devices does not change while it runs.
        if attempt.operation != Operation::Add || !self.wants(attempt.pod) {
            return Ok(Reservation::nothing());
        }
        let (me, pod) = (Arc::clone(self), attempt.pod.clone());
        Ok(Reservation::asked_for(async move {
            if !me.allocate(&pod).await? {
                return Ok(Reservation::nothing());
            }
            Ok(Reservation::undone_by(move || me.free(&pod.metadata.uid)))
        }))
    }

    fn restore(&self) -> Result<(), CheckpointError> {
        Devices::restore(self);
        Ok(())
    }

    fn keep(&self, uids: &BTreeSet<String>) {
        Devices::keep(self, uids);
    }
}

impl From<AllocateError> for Refusal {
    fn from(error: AllocateError) -> Self {
        Self::new(Reason::UnexpectedAdmissionError, format!("Allocate failed due to {error}, which is unexpected"))
    }
}
