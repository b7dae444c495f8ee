//! How many volumes a node may have attached, and at most has, as known from an earlier look: of thousands of nodes that are
//! looked at for each pod, few have changed since, and nearly all have room.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api_types::storage_v1::{CSINode, VolumeAttachment};
use parking_lot::{Mutex, RwLock};

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
    /// By the place in the snapshot that the node had when it was looked up.
    nodes: Vec<Option<Node>>,
    /// Where each of them is.
    places: HashMap<Arc<str>, usize>,
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

impl Known {
    /// Keeps what is known of a node, once: not where it had its place before.
    fn keep(&mut self, place: usize, node: Node) {
        self.forget(&node.name);
        if self.nodes.len() <= place {
            self.nodes.resize(place + 1, None);
        }
        let Some(slot) = self.nodes.get_mut(place) else { return };
        self.places.insert(Arc::clone(&node.name), place);
        if let Some(other) = slot.replace(node) {
            self.places.remove(&other.name);
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(slot) = self.places.remove(name).and_then(|place| self.nodes.get_mut(place)) {
            *slot = None;
        }
    }

    fn forget_all(&mut self) {
        self.nodes.clear();
        self.places.clear();
    }
}

/// The room that a node has for volumes.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// The lowest limit of its drivers; none where none has any.
    pub(super) lowest: Option<i64>,
    /// The most volumes that it has: some are perhaps counted twice.
    most: usize,
}

impl Room {
    /// Whether so many more are certainly within a limit. Where they are not, they may be all the same.
    pub(super) fn is_certain(self, more: usize, limit: Option<i64>) -> bool {
        limit.is_none_or(|limit| i64::try_from(self.most + more).is_ok_and(|all| all <= limit))
    }
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
    pub(super) fn forget_changed(&self) {
        let changed = std::mem::take(&mut *self.changed.lock());
        if matches!(&changed, Changed::These(names) if names.is_empty()) {
            return;
        }
        let mut known = self.known.write();
        known.epoch += 1;
        match changed {
            Changed::TooMany => known.forget_all(),
            Changed::These(names) => names.iter().for_each(|name| known.forget(name)),
        }
    }

    /// What is known of a node.
    pub(super) fn of(&self, node: NodeView<'_>) -> Room {
        let is_this = |known: &&Node| Arc::ptr_eq(&known.name, &node.info.name);
        let (known, epoch) = {
            let all = self.known.read();
            let known = all.nodes.get(node.index).and_then(Option::as_ref).filter(is_this);
            (known.map(|known| (known.lowest, known.attachments)), all.epoch)
        };
        let (lowest, attachments) = known.unwrap_or_else(|| self.look(node, epoch));
        Room { lowest, most: node.info.shared_volumes + attachments }
    }

    /// Looks a node up; kept where nothing was forgotten meanwhile.
    fn look(&self, node: NodeView<'_>, epoch: u64) -> (Option<i64>, usize) {
        let csi = self.nodes.find("", &node.info.name);
        let drivers = csi.iter().flat_map(|csi| &csi.spec.drivers);
        let lowest = drivers.filter_map(|driver| driver.allocatable.as_ref()?.count).min().map(i64::from);
        let attachments = self.attachments.by_index(BY_NODE, &node.info.name).len();
        let mut known = self.known.write();
        if known.epoch == epoch {
            known.keep(node.index, Node { name: Arc::clone(&node.info.name), lowest, attachments });
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
            room.forget_changed();
            let room = room.of(snapshot.view(index).unwrap());
            room.is_certain(more, room.lowest)
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
            room.forget_changed();
            let seen = room.of(snapshot.view(0).unwrap());
            assert_eq!(seen.is_certain(3, seen.lowest), fits, "{name}");
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
        room.forget_changed();
        room.look(view, epoch);
        assert!(room.known.read().nodes.iter().all(Option::is_none));
        room.look(view, epoch + 1);
        assert_eq!(room.known.read().nodes.len(), 1);
    }

    /// One that has another place now must not be found where it was, should it come back there.
    #[test]
    fn a_node_is_known_in_one_place() {
        let node = |name: &Arc<str>| Node { name: Arc::clone(name), lowest: None, attachments: 0 };
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let there = |known: &Known| known.nodes.iter().flatten().map(|node| node.name.to_string()).collect::<Vec<_>>();
        let mut known = Known::default();
        known.keep(2, node(&a));
        known.keep(0, node(&a));
        assert_eq!((there(&known), known.places.len()), (vec!["a".to_owned()], 1));
        known.keep(0, node(&b));
        known.keep(1, node(&a));
        assert_eq!((there(&known), known.places.len()), (vec!["b".to_owned(), "a".to_owned()], 2));
        known.forget("b");
        known.forget("c");
        assert_eq!((there(&known), known.places.len()), (vec!["a".to_owned()], 1));
    }
}
