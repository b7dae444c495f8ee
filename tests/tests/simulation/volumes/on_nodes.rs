//! What is done to disks on nodes: the half of a driver that kubelets ask, and the writes of what runs there.

use api_machinery::quantity::Quantity;
use async_trait::async_trait;
use testing::{Container, DriverError, NodeDriver};

use super::disks::{Disks, Step};

impl Disks {
    /// All that runs writes to all that it has.
    pub(crate) fn write_all(&self, containers: &[Container]) {
        for container in containers {
            for volume in &container.volumes {
                self.write(&volume.handle, &container.node, &container.uid);
            }
        }
    }

    /// What runs of a pod on a node writes to its disk. It writes by what it has mounted, whatever has become of that; a node
    /// that was lost may be cut off the disk, any other may not.
    fn write(&self, handle: &str, node: &str, pod_uid: &str) {
        let mut state = self.state.lock();
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
        let was_blank = self.state.lock().disks.get(handle).is_some_and(|disk| disk.file_system.is_none());
        let staged = self.step(Step::Stage, |state| {
            let disk = state.disk(handle, "staged")?;
            let attachment = *disk.on.get(node)?;
            // Who has seen that it is blank formats it, whatever has become of it since.
            let is_twice = was_blank && disk.file_system.replace(disk.size.clone()).is_some();
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
            let lost = state.lost.clone();
            let disk = state.disk(handle, "published")?;
            let attachment = *disk.staged.get(node)?;
            let is_current = disk.on.get(node) == Some(&attachment);
            let mut elsewhere = disk.published.iter().map(|(on, _)| on).filter(|on| *on != node && !lost.contains(*on));
            let fault = elsewhere.next().map(|on| format!("{handle} was published on {node}, and is on {on}"));
            disk.published.insert((node.to_owned(), pod_uid.to_owned()));
            let stale = (!is_current).then(|| format!("{handle} was published on {node}, which has lost it"));
            state.faults.extend(fault.into_iter().chain(stale));
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

    async fn expand(&self, node: &str, handle: &str, size: &Quantity) -> Result<(), DriverError> {
        let expanded = self.step(Step::Expand, |state| {
            let disk = state.disk(handle, "expanded")?;
            let (largest, own) = (disk.size.clone(), disk.file_system.clone()?);
            disk.staged.get(node)?;
            disk.file_system = Some(own.max(size.clone()));
            if largest < *size {
                state.faults.insert(format!("{handle} has {largest}, and what is on it was to have {size}"));
            }
            Some(())
        });
        expanded.await?.ok_or_else(|| DriverError(format!("{handle} is not staged on {node}")))
    }
}
