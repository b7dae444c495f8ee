//! How many volumes a node may have attached, and at most has, as known from an earlier look: of thousands of nodes that are
//! looked at for each pod, few have changed since, and nearly all have room.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api_types::storage_v1::{CSINode, VolumeAttachment};
use parking_lot::Mutex;

use crate::listers::Lister;
use crate::node_info::NodeView;

/// Attachments by node.
pub(super) const BY_NODE: &str = "node";
/// Where more nodes than these have changed since the last pod, nothing is known any more.
const MAX_CHANGED: usize = 4096;

/// So many nodes are shared at a time between what is known and what pods look at.
const CHUNK: usize = 64;

/// What is known of the nodes.
pub(super) struct AttachRoom {
    nodes: Lister<CSINode>,
    attachments: Lister<VolumeAttachment>,
    known: Mutex<Known>,
    changed: Mutex<Changed>,
}

/// What is known of nodes by the place in the snapshot that each had when it was looked up. Copies share it, and whoever
/// changes one of them copies the list of chunks, and a chunk.
type Places = Arc<Vec<Arc<Chunk>>>;
type Chunk = [Option<Node>; CHUNK];

#[derive(Default)]
struct Known {
    places: Places,
    /// Where each of the nodes is.
    of_name: HashMap<Arc<str>, usize>,
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
        while self.places.len() <= place / CHUNK {
            Arc::make_mut(&mut self.places).push(Arc::new([const { None }; CHUNK]));
        }
        self.of_name.insert(Arc::clone(&node.name), place);
        if let Some(other) = self.slot(place).and_then(|slot| slot.replace(node)) {
            self.of_name.remove(&other.name);
        }
    }

    fn forget(&mut self, name: &str) {
        if let Some(place) = self.of_name.remove(name)
            && let Some(slot) = self.slot(place)
        {
            *slot = None;
        }
    }

    fn slot(&mut self, place: usize) -> Option<&mut Option<Node>> {
        Arc::make_mut(Arc::make_mut(&mut self.places).get_mut(place / CHUNK)?).get_mut(place % CHUNK)
    }

    fn forget_all(&mut self) {
        self.places = Places::default();
        self.of_name.clear();
    }
}

/// What is known when a pod's turn comes: thousands of nodes are looked at for it, at once, and nobody waits for a lock.
#[derive(Clone)]
pub(super) struct Seen {
    places: Places,
    epoch: u64,
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
        let (known, changed) = (Mutex::default(), Mutex::default());
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

    /// What is known now, without what has changed since; once for a pod, before its nodes are looked at.
    pub(super) fn now(&self) -> Seen {
        let changed = std::mem::take(&mut *self.changed.lock());
        let mut known = self.known.lock();
        match changed {
            Changed::These(names) if names.is_empty() => {}
            Changed::These(names) => {
                known.epoch += 1;
                names.iter().for_each(|name| known.forget(name));
            }
            Changed::TooMany => {
                known.epoch += 1;
                known.forget_all();
            }
        }
        Seen { places: Arc::clone(&known.places), epoch: known.epoch }
    }

    /// The room of a node.
    pub(super) fn of(&self, seen: &Seen, node: NodeView<'_>) -> Room {
        let slot = seen.places.get(node.index / CHUNK).and_then(|chunk| chunk.get(node.index % CHUNK));
        let known = slot.and_then(Option::as_ref).filter(|known| Arc::ptr_eq(&known.name, &node.info.name));
        let known = known.map(|known| (known.lowest, known.attachments));
        let (lowest, attachments) = known.unwrap_or_else(|| self.look(node, seen.epoch));
        Room { lowest, most: node.info.shared_volumes + attachments }
    }

    /// Looks a node up; kept where nothing was forgotten meanwhile.
    fn look(&self, node: NodeView<'_>, epoch: u64) -> (Option<i64>, usize) {
        let csi = self.nodes.find("", &node.info.name);
        let drivers = csi.iter().flat_map(|csi| &csi.spec.drivers);
        let lowest = drivers.filter_map(|driver| driver.allocatable.as_ref()?.count).min().map(i64::from);
        let attachments = self.attachments.by_index(BY_NODE, &node.info.name).len();
        let mut known = self.known.lock();
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

    /// The names of the nodes that are known, by their places.
    fn there(known: &Known) -> Vec<String> {
        known.places.iter().flat_map(|chunk| chunk.iter().flatten()).map(|node| node.name.to_string()).collect()
    }

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
            let room = room.of(&room.now(), snapshot.view(index).unwrap());
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
            let seen = room.of(&room.now(), snapshot.view(0).unwrap());
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
        let epoch = room.now().epoch;
        room.has_changed("a");
        assert_eq!(room.now().epoch, epoch + 1);
        room.look(view, epoch);
        assert!(there(&room.known.lock()).is_empty());
        room.look(view, epoch + 1);
        assert_eq!(there(&room.known.lock()), ["a"]);
    }

    /// One that has another place now must not be found where it was, should it come back there.
    #[test]
    fn a_node_is_known_in_one_place() {
        let node = |name: &Arc<str>| Node { name: Arc::clone(name), lowest: None, attachments: 0 };
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut known = Known::default();
        known.keep(2, node(&a));
        known.keep(0, node(&a));
        assert_eq!((there(&known), known.of_name.len()), (vec!["a".to_owned()], 1));
        let before = known.places.clone();
        known.keep(0, node(&b));
        known.keep(1, node(&a));
        assert!(before[0][0].as_ref().is_some_and(|node| &*node.name == "a"), "a pod keeps what it has seen");
        assert_eq!((there(&known), known.of_name.len()), (vec!["b".to_owned(), "a".to_owned()], 2));
        known.forget("b");
        known.forget("c");
        assert_eq!((there(&known), known.of_name.len()), (vec!["a".to_owned()], 1));
    }
}
