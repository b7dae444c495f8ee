//! Disks that are numbers. They are what is true: they survive whoever crashes, and take note of all that must never be done
//! to one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::quantity::Quantity;
use base::SharedRng;
use parking_lot::Mutex;
use testing::DriverError;

/// How long each half of a step takes: that before it takes effect, and that before it is told.
const HALF: Duration = Duration::from_millis(800);
/// How long a step hangs at most in a driver that is not to be relied on.
const HANGS: Duration = Duration::from_secs(30);

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

/// When in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// It is asked for, and has no effect yet.
    Before,
    /// It has had its effect, and nobody knows of it.
    After,
}

/// A driver some of whose steps hang, or are said to have failed, before their effect or after it.
struct Unreliable {
    /// How many of a hundred.
    percent: u64,
    rng: SharedRng,
}

/// What goes wrong with a step.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    Hangs(Duration),
    Fails(Moment),
}

impl Unreliable {
    fn mishap(&self) -> Option<Mishap> {
        if self.rng.below(100) >= self.percent {
            return None;
        }
        Some(match self.rng.below(3) {
            0 => Mishap::Hangs(HANGS.mul_f64(self.rng.unit())),
            1 => Mishap::Fails(Moment::Before),
            _ => Mishap::Fails(Moment::After),
        })
    }
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

/// All disks, by handle.
#[derive(Clone, Default)]
pub(crate) struct Disks(pub(super) Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    pub(super) disks: BTreeMap<String, Disk>,
    pub(super) faults: BTreeSet<String>,
    /// The nodes of which nobody hears, or has not for long: disks may be taken from them in use.
    pub(super) lost: BTreeSet<String>,
    /// How often each moment of a step has come.
    reached: BTreeMap<(Step, Moment), usize>,
    /// Where steps go no further.
    held: Option<(Step, Moment)>,
    attachments: u64,
    /// Grows whenever the driver ends.
    lives: u64,
    is_down: bool,
    unreliable: Option<Unreliable>,
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
        self.0.lock().disks.clone()
    }

    /// What was done to a disk that must not be.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.0.lock().faults.iter().cloned().collect()
    }

    /// Nobody hears of a node from now on, or it is heard of again.
    pub(crate) fn set_lost(&self, node: &str, is_lost: bool) {
        let mut state = self.0.lock();
        if is_lost {
            state.lost.insert(node.to_owned())
        } else {
            state.lost.remove(node)
        };
    }

    /// How often a moment of a step has come.
    pub(crate) fn reached(&self, step: Step, moment: Moment) -> usize {
        self.0.lock().reached.get(&(step, moment)).copied().unwrap_or_default()
    }

    /// The driver ends, wherever it is, or is there again.
    pub(crate) fn set_down(&self, is_down: bool) {
        let mut state = self.0.lock();
        state.is_down = is_down;
        state.lives += u64::from(is_down);
    }

    /// So many of a hundred steps go wrong from now on.
    pub(crate) fn set_unreliable(&self, percent: u64, rng: &SharedRng) {
        self.0.lock().unreliable = Some(Unreliable { percent, rng: SharedRng::clone(rng) });
    }

    /// The driver can be relied on again.
    pub(crate) fn set_reliable(&self) {
        self.0.lock().unreliable = None;
    }

    /// Steps go no further than this from now on.
    pub(crate) fn hold(&self, held: Option<(Step, Moment)>) {
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
    pub(super) async fn step<T>(&self, step: Step, effect: impl FnOnce(&mut State) -> T) -> Result<T, DriverError> {
        let down = || DriverError("nobody is there".to_owned());
        let fails = |moment| Err(DriverError(format!("something went wrong {moment:?} the effect")));
        let (life, mishap) = {
            let mut state = self.0.lock();
            if state.is_down {
                return Err(down());
            }
            *state.reached.entry((step, Moment::Before)).or_default() += 1;
            (state.lives, state.unreliable.as_ref().and_then(Unreliable::mishap))
        };
        self.half(step, Moment::Before).await;
        match mishap {
            Some(Mishap::Hangs(time)) => tokio::time::sleep(time).await,
            Some(Mishap::Fails(Moment::Before)) => return fails(Moment::Before),
            Some(Mishap::Fails(Moment::After)) | None => {}
        }
        let done = {
            let mut state = self.0.lock();
            if state.lives != life {
                return Err(down());
            }
            let done = effect(&mut state);
            *state.reached.entry((step, Moment::After)).or_default() += 1;
            done
        };
        self.half(step, Moment::After).await;
        if matches!(mishap, Some(Mishap::Fails(Moment::After))) {
            return fails(Moment::After);
        }
        if self.0.lock().lives == life { Ok(done) } else { Err(down()) }
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
        let mut state = self.0.lock();
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
        let mut state = self.0.lock();
        if let Some(disk) = state.disks.remove(handle)
            && (!disk.on.is_empty() || !disk.staged.is_empty() || !disk.published.is_empty())
        {
            state.faults.insert(format!("{handle} was deleted in use: {disk:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    /// How long a step took, whether it was said to be done, and whether it was.
    async fn provision(disks: &Disks, handle: &str) -> (Duration, bool, bool) {
        let begun = tokio::time::Instant::now();
        let is_told = disks.provision(handle, &Quantity::default()).await.is_ok();
        (begun.elapsed(), is_told, disks.all().contains_key(handle))
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_is_not_to_be_relied_on_fails_in_each_way() {
        let disks = Disks::default();
        disks.set_unreliable(100, &Rng::seeded(1));
        let (mut hung, mut ways) = (false, BTreeSet::new());
        for number in 0..30 {
            let (took, is_told, is_done) = provision(&disks, &number.to_string()).await;
            hung |= took > HALF * 4;
            ways.insert((is_told, is_done));
        }
        assert!(hung);
        assert_eq!(ways, BTreeSet::from([(false, false), (false, true), (true, true)]));
        disks.set_reliable();
        assert_eq!(provision(&disks, "at last").await, (HALF * 2, true, true));
    }
}
