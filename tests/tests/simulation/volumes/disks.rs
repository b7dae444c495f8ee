//! Disks that are numbers. They are what is true: they survive whoever crashes, and take note of all that must never be done
//! to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use testing::{DriverError, NodeDriver};

/// How long each half of a step takes: that before it takes effect, and that before it is told.
const HALF: Duration = Duration::from_millis(800);

/// What is done to a disk in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Provision,
    Attach,
    Stage,
    Publish,
    Resize,
    Unpublish,
    Unstage,
    Detach,
}

/// When in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    /// It is asked for, and has no effect yet.
    Before,
    /// It has had its effect, and nobody knows of it.
    After,
}

/// A disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    /// Its size, as it is asked for.
    pub(super) size: String,
    /// The nodes that it is attached to, each with the number of that attachment.
    pub(super) on: BTreeMap<String, u64>,
    /// The attachments with which nodes use it: those nodes write to it.
    staged: BTreeMap<String, u64>,
    /// The pods that it was given to, by node and uid.
    published: BTreeSet<(String, String)>,
    is_formatted: bool,
}

impl Disk {
    fn is_published(&self, node: &str, pod_uid: &str) -> bool {
        self.published.contains(&(node.to_owned(), pod_uid.to_owned()))
    }

    fn is_used_on(&self, node: &str) -> bool {
        self.staged.contains_key(node) || self.published.iter().any(|(on, _)| on == node)
    }
}

/// All disks, by handle.
#[derive(Clone, Default)]
pub(super) struct Disks(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    disks: BTreeMap<String, Disk>,
    faults: BTreeSet<String>,
    /// The nodes of which nobody hears: disks may be taken from them in use.
    lost: BTreeSet<String>,
    reached: BTreeSet<(Step, Moment)>,
    /// Where steps go no further.
    held: Option<(Step, Moment)>,
    attachments: u64,
    /// Grows whenever the driver ends.
    lives: u64,
    is_down: bool,
}

impl State {
    fn disk(&mut self, handle: &str, what: &str) -> Option<&mut Disk> {
        if !self.disks.contains_key(handle) {
            self.faults.insert(format!("{handle} is lost, and was to be {what}"));
        }
        self.disks.get_mut(handle)
    }
}

impl Disks {
    pub(super) fn all(&self) -> BTreeMap<String, Disk> {
        self.0.lock().disks.clone()
    }

    /// What was done to a disk that must not be.
    pub(super) fn faults(&self) -> Vec<String> {
        self.0.lock().faults.iter().cloned().collect()
    }

    /// Nobody hears of a node from now on, or it is heard of again.
    pub(super) fn set_lost(&self, node: &str, is_lost: bool) {
        let mut state = self.0.lock();
        if is_lost {
            state.lost.insert(node.to_owned())
        } else {
            state.lost.remove(node)
        };
    }

    /// Whether a moment of a step has come.
    pub(super) fn has_reached(&self, step: Step, moment: Moment) -> bool {
        self.0.lock().reached.contains(&(step, moment))
    }

    /// The driver ends, wherever it is, or is there again.
    pub(super) fn set_down(&self, is_down: bool) {
        let mut state = self.0.lock();
        state.is_down = is_down;
        state.lives += u64::from(is_down);
    }

    /// Steps go no further than this from now on.
    pub(super) fn hold(&self, held: Option<(Step, Moment)>) {
        self.0.lock().held = held;
    }

    /// Half of a step passes.
    async fn half(&self, step: Step, moment: Moment) {
        tokio::time::sleep(HALF).await;
        while self.0.lock().held == Some((step, moment)) {
            tokio::time::sleep(HALF).await;
        }
    }

    /// Does a step, which ends wherever it is where the driver does.
    async fn step<T>(&self, step: Step, effect: impl FnOnce(&mut State) -> T) -> Result<T, DriverError> {
        let down = || DriverError("nobody is there".to_owned());
        let life = {
            let mut state = self.0.lock();
            if state.is_down {
                return Err(down());
            }
            state.reached.insert((step, Moment::Before));
            state.lives
        };
        self.half(step, Moment::Before).await;
        let done = {
            let mut state = self.0.lock();
            if state.lives != life {
                return Err(down());
            }
            let done = effect(&mut state);
            state.reached.insert((step, Moment::After));
            done
        };
        self.half(step, Moment::After).await;
        if self.0.lock().lives == life { Ok(done) } else { Err(down()) }
    }

    /// Makes a disk; again, it is the same.
    pub(super) async fn provision(&self, handle: &str, size: &str) -> Result<(), DriverError> {
        self.step(Step::Provision, |state| {
            state.disks.entry(handle.to_owned()).or_insert(Disk { size: size.to_owned(), ..Disk::default() });
        })
        .await
    }

    pub(super) async fn resize(&self, handle: &str, size: &str) -> Result<(), DriverError> {
        self.step(Step::Resize, |state| {
            if let Some(disk) = state.disk(handle, "resized") {
                size.clone_into(&mut disk.size);
            }
        })
        .await
    }

    pub(super) async fn attach(&self, handle: &str, node: &str) -> Result<(), DriverError> {
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

    pub(super) async fn detach(&self, handle: &str, node: &str) -> Result<(), DriverError> {
        self.step(Step::Detach, |state| {
            let Some(disk) = state.disks.get_mut(handle) else { return };
            let was_used = disk.on.remove(node).is_some() && disk.is_used_on(node);
            if was_used && !state.lost.contains(node) {
                state.faults.insert(format!("{handle} was detached from {node}, which uses it"));
            }
        })
        .await
    }

    pub(super) fn remove(&self, handle: &str) {
        let mut state = self.0.lock();
        if let Some(disk) = state.disks.remove(handle)
            && (!disk.on.is_empty() || !disk.staged.is_empty() || !disk.published.is_empty())
        {
            state.faults.insert(format!("{handle} was deleted in use: {disk:?}"));
        }
    }

    /// What runs of a pod on a node writes to its disk. It writes by what it has mounted, whatever has become of that; a node
    /// that was lost may be cut off the disk, any other may not.
    pub(super) fn write(&self, handle: &str, node: &str, pod_uid: &str) {
        let mut state = self.0.lock();
        let is_lost = state.lost.contains(node);
        let Some(disk) = state.disk(handle, "written to") else { return };
        let fault = match disk.on.get(node) {
            None if is_lost => return,
            None => "is cut off",
            Some(attachment) if disk.staged.get(node) != Some(attachment) => "had lost",
            Some(_) if !disk.is_published(node, pod_uid) => "did not give to the pod",
            Some(_) => return,
        };
        state.faults.insert(format!("what runs on {node} writes to {handle}, which the node {fault}"));
    }
}

#[async_trait]
impl NodeDriver for Disks {
    async fn stage(&self, node: &str, handle: &str) -> Result<(), DriverError> {
        let was_blank = self.0.lock().disks.get(handle).is_some_and(|disk| !disk.is_formatted);
        let staged = self.step(Step::Stage, |state| {
            let disk = state.disk(handle, "staged")?;
            let attachment = *disk.on.get(node)?;
            // Who has seen that it is blank formats it, whatever has become of it since.
            let is_twice = was_blank && std::mem::replace(&mut disk.is_formatted, true);
            disk.staged.insert(node.to_owned(), attachment);
            if is_twice {
                state.faults.insert(format!("{handle} was formatted twice"));
            }
            Some(())
        });
        staged.await?.ok_or_else(|| DriverError(format!("{handle} is not attached to {node}")))
    }

    async fn publish(&self, node: &str, handle: &str, pod_uid: &str) -> Result<(), DriverError> {
        let published = self.step(Step::Publish, |state| {
            let disk = state.disk(handle, "published")?;
            disk.staged.get(node)?;
            disk.published.insert((node.to_owned(), pod_uid.to_owned()));
            Some(())
        });
        published.await?.ok_or_else(|| DriverError(format!("{handle} is not staged on {node}")))
    }

    async fn unpublish(&self, node: &str, handle: &str, pod_uid: &str) -> Result<(), DriverError> {
        self.step(Step::Unpublish, |state| {
            if let Some(disk) = state.disks.get_mut(handle) {
                disk.published.remove(&(node.to_owned(), pod_uid.to_owned()));
            }
        })
        .await
    }

    async fn unstage(&self, node: &str, handle: &str) -> Result<(), DriverError> {
        self.step(Step::Unstage, |state| {
            let Some(disk) = state.disks.get_mut(handle) else { return };
            disk.staged.remove(node);
            if disk.is_used_on(node) {
                state.faults.insert(format!("{node} unstaged {handle}, which a pod has"));
            }
        })
        .await
    }
}
