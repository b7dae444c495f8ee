//! Disks that are numbers. They are what is true: they survive whoever crashes, and take note of all that must never be done
//! to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use parking_lot::Mutex;
use testing::DriverError;

use super::steps::Steps;

/// What is done to a disk in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Provision,
    Attach,
    Stage,
    Publish,
    Resize,
    Expand,
    Unpublish,
    Unstage,
    Detach,
}

/// A disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    pub(crate) size: Quantity,
    /// How large the file system on it is; none on a blank one.
    pub(crate) file_system: Option<Quantity>,
    /// The nodes that it is attached to, each with the number of that attachment.
    pub(crate) on: BTreeMap<String, u64>,
    /// The attachments with which nodes use it: those nodes write to it.
    pub(super) staged: BTreeMap<String, u64>,
    /// The pods that it was given to, by node and uid.
    pub(crate) published: BTreeSet<(String, String)>,
}

impl Disk {
    pub(super) fn is_published(&self, node: &str, pod_uid: &str) -> bool {
        self.published.contains(&(node.to_owned(), pod_uid.to_owned()))
    }

    pub(super) fn is_used_on(&self, node: &str) -> bool {
        self.staged.contains_key(node) || self.published.iter().any(|(on, _)| on == node)
    }
}

/// All disks, by handle, and how what is done to them goes.
#[derive(Clone, Default)]
pub(crate) struct Disks {
    pub(super) state: Arc<Mutex<State>>,
    pub(crate) steps: Steps<Step>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) disks: BTreeMap<String, Disk>,
    pub(super) faults: BTreeSet<String>,
    /// The nodes of which nobody hears, or has not for long: disks may be taken from them in use.
    pub(super) lost: BTreeSet<String>,
    attachments: u64,
}

impl State {
    pub(super) fn disk(&mut self, handle: &str, what: &str) -> Option<&mut Disk> {
        if !self.disks.contains_key(handle) {
            self.faults.insert(format!("{handle} is lost, and was to be {what}"));
        }
        self.disks.get_mut(handle)
    }
}

impl Disks {
    pub(crate) fn all(&self) -> BTreeMap<String, Disk> {
        self.state.lock().disks.clone()
    }

    /// What was done to a disk that must not be.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.state.lock().faults.iter().cloned().collect()
    }

    /// Nobody hears of a node from now on, or it is heard of again.
    pub(crate) fn set_lost(&self, node: &str, is_lost: bool) {
        let mut state = self.state.lock();
        if is_lost {
            state.lost.insert(node.to_owned())
        } else {
            state.lost.remove(node)
        };
    }

    /// Does a step, which ends wherever it is where the driver does.
    pub(super) async fn step<T>(&self, step: Step, effect: impl FnOnce(&mut State) -> T) -> Result<T, DriverError> {
        let begun = self.steps.enter(step).await.map_err(DriverError)?;
        let done = effect(&mut self.state.lock());
        self.steps.leave(begun).await.map_err(DriverError)?;
        Ok(done)
    }

    /// Makes a disk; again, it is the same.
    pub(crate) async fn provision(&self, handle: &str, size: &Quantity) -> Result<(), DriverError> {
        self.step(Step::Provision, |state| {
            state.disks.entry(handle.to_owned()).or_insert(Disk { size: size.clone(), ..Disk::default() });
        })
        .await
    }

    /// Makes a disk larger; what is on it stays as it is.
    pub(crate) async fn resize(&self, handle: &str, size: &Quantity) -> Result<(), DriverError> {
        self.step(Step::Resize, |state| {
            let Some(disk) = state.disk(handle, "resized") else { return };
            if *size < disk.size {
                let fault = format!("{handle} was to shrink from {} to {size}", disk.size);
                state.faults.insert(fault);
                return;
            }
            disk.size = size.clone();
        })
        .await
    }

    /// Somebody is told how much room there is: never more than there is.
    pub(crate) fn tell_room(&self, handle: &str, room: &Quantity) {
        let mut state = self.state.lock();
        let Some(disk) = state.disks.get(handle) else { return };
        if let Some(own) = disk.file_system.as_ref().filter(|own| *own < room) {
            let fault = format!("{handle} is said to have {room}, the file system on it has {own}");
            state.faults.insert(fault);
        }
    }

    pub(crate) async fn attach(&self, handle: &str, node: &str) -> Result<(), DriverError> {
        self.step(Step::Attach, |state| {
            state.attachments += 1;
            let number = state.attachments;
            let Some(disk) = state.disk(handle, "attached") else { return };
            disk.on.entry(node.to_owned()).or_insert(number);
            if disk.on.len() > 1 {
                let fault = format!("{handle} is attached to {:?} at once", disk.on.keys());
                state.faults.insert(fault);
            }
        })
        .await
    }

    pub(crate) async fn detach(&self, handle: &str, node: &str) -> Result<(), DriverError> {
        self.step(Step::Detach, |state| {
            let Some(disk) = state.disks.get_mut(handle) else { return };
            let was_used = disk.on.remove(node).is_some() && disk.is_used_on(node);
            if was_used && !state.lost.contains(node) {
                state.faults.insert(format!("{handle} was detached from {node}, which uses it"));
            }
        })
        .await
    }

    pub(crate) fn remove(&self, handle: &str) {
        let mut state = self.state.lock();
        if let Some(disk) = state.disks.remove(handle)
            && (!disk.on.is_empty() || !disk.staged.is_empty() || !disk.published.is_empty())
        {
            state.faults.insert(format!("{handle} was deleted in use: {disk:?}"));
        }
    }
}
