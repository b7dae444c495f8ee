//! How many volumes a node may have attached, and at most has, as known from an earlier look: of thousands of nodes that are
//! looked at for each pod, few have changed since, and nearly all have room.

use std::collections::HashSet;
use std::sync::Arc;

use api_types::storage_v1::{CSINode, VolumeAttachment};
use parking_lot::{Mutex, RwLock};

use crate::cache::Snapshot;
use crate::listers::Lister;
use crate::node_info::NodeView;

/// Attachments by node.
pub(super) const BY_NODE: &str = "node";
/// Where more nodes than these have changed since the last pod, nothing is known any more.
const MAX_CHANGED: usize = 4096;

/// What is known of the nodes.
pub(super) struct AttachRoom {
    nodes: Lister<CSINode>,
    attachments: Lister<VolumeAttachment>,
    known: RwLock<Known>,
    changed: Mutex<Changed>,
}

#[derive(Default)]
struct Known {
    /// By the node's place in the snapshot.
    nodes: Vec<Option<Node>>,
    /// How often something has been forgotten: what was looked up before may be old.
    epoch: u64,
}

#[derive(Clone)]
struct Node {
    /// Which node it is: another may have its place by now.
    name: Arc<str>,
    /// The lowest limit of its drivers.
    lowest: Option<i64>,
    attachments: usize,
}

/// The nodes of which something has changed.
enum Changed {
    These(HashSet<String>),
    TooMany,
}

impl Default for Changed {
    fn default() -> Self {
        Self::These(HashSet::new())
    }
}

impl AttachRoom {
    /// Nothing is known yet; whatever is, is forgotten when the node's drivers or attachments change.
    pub(super) fn new(nodes: Lister<CSINode>, attachments: Lister<VolumeAttachment>) -> Arc<Self> {
        attachments.add_index(BY_NODE, |attachment| vec![attachment.spec.node_name.clone()]);
        let (known, changed) = (RwLock::default(), Mutex::default());
        let this = Arc::new(Self { nodes, attachments, known, changed });
        let to = Arc::downgrade(&this);
        this.nodes.on_change(move |node| {
            if let Some(to) = to.upgrade() {
                to.has_changed(&node.metadata.name);
            }
        });
        let to = Arc::downgrade(&this);
        this.attachments.on_change(move |attachment| {
            if let Some(to) = to.upgrade() {
                to.has_changed(&attachment.spec.node_name);
            }
        });
        this
    }

    fn has_changed(&self, name: &str) {
        let mut changed = self.changed.lock();
        match &mut *changed {
            Changed::These(names) if names.len() >= MAX_CHANGED => *changed = Changed::TooMany,
            Changed::These(names) if names.contains(name) => {}
            Changed::These(names) => drop(names.insert(name.to_owned())),
            Changed::TooMany => {}
        }
    }

    /// Forgets what has changed; once for a pod, before its nodes are looked at.
    pub(super) fn forget_changed(&self, snapshot: &Snapshot) {
        let changed = std::mem::take(&mut *self.changed.lock());
        if matches!(&changed, Changed::These(names) if names.is_empty()) {
            return;
        }
        let mut known = self.known.write();
        known.epoch += 1;
        match changed {
            Changed::TooMany => known.nodes.clear(),
            Changed::These(names) => {
                for index in names.iter().filter_map(|name| snapshot.index_of(name)) {
                    if let Some(slot) = known.nodes.get_mut(index) {
                        *slot = None;
                    }
                }
            }
        }
    }

    /// Whether the node certainly has room for so many more volumes, of whichever drivers. Where it has not, it may have all
    /// the same: some are perhaps counted twice.
    pub(super) fn is_certain(&self, node: NodeView<'_>, more: usize) -> bool {
        let is_this = |known: &&Node| Arc::ptr_eq(&known.name, &node.info.name);
        let (known, epoch) = {
            let all = self.known.read();
            let known = all.nodes.get(node.index).and_then(Option::as_ref).filter(is_this);
            (known.map(|known| (known.lowest, known.attachments)), all.epoch)
        };
        let (lowest, attachments) = known.unwrap_or_else(|| self.look(node, epoch));
        let most = node.info.shared_volumes + attachments + more;
        lowest.is_none_or(|lowest| i64::try_from(most).is_ok_and(|most| most <= lowest))
    }

    /// Looks a node up; kept where nothing was forgotten meanwhile.
    fn look(&self, node: NodeView<'_>, epoch: u64) -> (Option<i64>, usize) {
        let csi = self.nodes.find("", &node.info.name);
        let drivers = csi.iter().flat_map(|csi| &csi.spec.drivers);
        let lowest = drivers.filter_map(|driver| driver.allocatable.as_ref()?.count).min().map(i64::from);
        let attachments = self.attachments.by_index(BY_NODE, &node.info.name).len();
        let mut known = self.known.write();
        if known.epoch == epoch {
            if known.nodes.len() <= node.index {
                known.nodes.resize(node.index + 1, None);
            }
            if let Some(slot) = known.nodes.get_mut(node.index) {
                *slot = Some(Node { name: Arc::clone(&node.info.name), lowest, attachments });
            }
        }
        (lowest, attachments)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listers::Listers;
    use crate::pod_class::ClassTable;
    use crate::test_objects::{node, object, pod, snapshot};

    #[test]
    fn what_changes_is_looked_up_again() {
        let listers = Listers::in_memory();
        let (nodes, attachments) = (listers.of::<CSINode>(), listers.of::<VolumeAttachment>());
        let room = AttachRoom::new(nodes.clone(), attachments.clone());
        let limit = |driver: &str, count: u32| {
            let driver = json!({"name": driver, "nodeID": "a", "allocatable": {"count": count}});
            nodes.put(Arc::new(object(json!({"metadata": {"name": "a"}, "spec": {"drivers": [driver]}}))));
        };
        let snapshot = snapshot(vec![node("a"), node("b")], vec![pod("x").claim("c").on("a")], &ClassTable::default());
        let fits = |index: usize, more: usize| {
            room.forget_changed(&snapshot);
            room.is_certain(snapshot.view(index).unwrap(), more)
        };
        // Nothing says how many a node may have.
        assert!(fits(0, 99) && fits(1, 99));
        limit("d", 3);
        assert!(fits(0, 2) && !fits(0, 3) && fits(1, 99));
        let attachment = json!({"metadata": {"name": "t"}, "spec": {"attacher": "d", "nodeName": "a", "source": {}}});
        attachments.put(Arc::new(object(attachment)));
        assert!(fits(0, 1) && !fits(0, 2));
        // What nobody has looked up may change as often as it likes.
        (0..MAX_CHANGED).for_each(|number| {
            nodes.put(Arc::new(object(json!({"metadata": {"name": number.to_string()}, "spec": {"drivers": []}}))));
        });
        attachments.remove("", "t");
        assert!(fits(0, 2) && !fits(0, 3));
        nodes.remove("", "a");
        assert!(fits(0, 99));
    }

    #[test]
    fn a_place_is_of_the_node_that_has_it() {
        let listers = Listers::in_memory();
        let room = AttachRoom::new(listers.of(), listers.of());
        for (name, count) in [("a", 1), ("b", 5)] {
            let driver = json!({"name": "d", "nodeID": name, "allocatable": {"count": count}});
            let node = json!({"metadata": {"name": name}, "spec": {"drivers": [driver]}});
            listers.of::<CSINode>().put(Arc::new(object(node)));
        }
        for (name, fits) in [("a", false), ("b", true), ("a", false)] {
            let snapshot = snapshot(vec![node(name)], vec![], &ClassTable::default());
            room.forget_changed(&snapshot);
            assert_eq!(room.is_certain(snapshot.view(0).unwrap(), 3), fits, "{name}");
        }
    }

    /// It was looked up before the change, and comes to be known after what had changed was forgotten.
    #[test]
    fn an_old_look_is_not_kept() {
        let listers = Listers::in_memory();
        let room = AttachRoom::new(listers.of(), listers.of());
        let snapshot = snapshot(vec![node("a")], vec![], &ClassTable::default());
        let view = snapshot.view(0).unwrap();
        let epoch = room.known.read().epoch;
        room.has_changed("a");
        room.forget_changed(&snapshot);
        room.look(view, epoch);
        assert!(room.known.read().nodes.iter().all(Option::is_none));
        room.look(view, epoch + 1);
        assert_eq!(room.known.read().nodes.len(), 1);
    }
}
