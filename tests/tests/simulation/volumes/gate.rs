//! The door of a driver that the controllers of volumes ask: what they ask for takes time, fails, and is done one after the other
//! where it is about the same, as the specification has drivers say.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use node_api::csi::Gate;
use node_api::tonic::Status;
use parking_lot::Mutex;

use super::steps::{Begun, Steps};

/// A call: its method, and what it is about.
type Call = (&'static str, String);

/// The door.
#[derive(Default)]
pub(crate) struct Door {
    pub(crate) steps: Steps<&'static str>,
    /// What is being done, and how far it is.
    pending: Mutex<BTreeMap<Call, Option<Begun<&'static str>>>>,
}

impl Door {
    /// A door that a driver and a story share.
    pub(crate) fn shared() -> Arc<Self> {
        Arc::default()
    }
}

#[async_trait]
impl Gate for Door {
    async fn enter(&self, method: &'static str, about: &str) -> Result<(), Status> {
        let call = (method, about.to_owned());
        if self.pending.lock().contains_key(&call) {
            return Err(Status::aborted(format!("an operation of {about} is pending")));
        }
        self.pending.lock().insert(call.clone(), None);
        match self.steps.enter(method).await {
            Ok(begun) => {
                self.pending.lock().insert(call, Some(begun));
                Ok(())
            }
            Err(why) => {
                self.pending.lock().remove(&call);
                Err(Status::unavailable(why))
            }
        }
    }

    async fn leave(&self, method: &'static str, about: &str) -> Result<(), Status> {
        let call = (method, about.to_owned());
        let begun = self.pending.lock().get(&call).copied().flatten();
        let told = match begun {
            Some(begun) => self.steps.leave(begun).await.map_err(Status::unavailable),
            None => Ok(()),
        };
        self.pending.lock().remove(&call);
        told
    }
}
