//! Who owns whom, by uid. Pure: each change answers which objects are to be looked at.

use std::collections::{BTreeSet, HashMap};

use api_machinery::meta::{ObjectMeta, OwnerReference};

use super::object::{FOREGROUND, Identity, ORPHAN};

/// An object, or an owner that is known from references only.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) identity: Identity,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) dependents: BTreeSet<String>,
    pub(super) being_deleted: bool,
    /// It is being deleted and waits for its dependents.
    pub(super) deleting_dependents: bool,
    /// It is being deleted and its dependents are to be let go.
    orphaning: bool,
    /// Nobody has seen it, somebody refers to it.
    pub(super) is_virtual: bool,
}

/// What follows from a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Objects that may have to go.
    pub(super) delete: BTreeSet<String>,
    /// Objects whose dependents are to be let go.
    pub(super) orphan: BTreeSet<String>,
    /// Where nothing is any more.
    pub(super) absent: Option<Identity>,
}

/// The graph. Bounded by the objects of the cluster and what they refer to.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
}

impl Graph {
    /// A copy of a node.
    pub(super) fn node(&self, uid: &str) -> Option<Node> {
        self.nodes.get(uid).cloned()
    }

    /// All nodes with their uids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(uid, node)| (uid.as_str(), node))
    }

    /// A node with its uid.
    pub(super) fn get(&self, uid: &str) -> Option<(&str, &Node)> {
        self.nodes.get_key_value(uid).map(|(uid, node)| (uid.as_str(), node))
    }

    /// The dependents of an object that are known.
    pub(super) fn dependents(&self, uid: &str) -> Vec<Node> {
        let dependents = self.nodes.get(uid).into_iter().flat_map(|node| &node.dependents);
        dependents.filter_map(|uid| self.nodes.get(uid)).cloned().collect()
    }

    /// An object was added or changed.
    pub(super) fn observe(&mut self, identity: Identity, meta: &ObjectMeta) -> Effects {
        let mut effects = Effects::default();
        let uid = identity.uid.clone();
        self.resolve_identity(identity, &mut effects);
        let before = self.nodes.get(&uid).map(|node| node.owners.clone()).unwrap_or_default();
        self.relink(&uid, &before, &meta.owner_references, &mut effects);
        self.transition(&uid, meta, &mut effects);
        effects
    }

    /// Enters a new object, or makes a real one of what was known from references only.
    fn resolve_identity(&mut self, identity: Identity, effects: &mut Effects) {
        let uid = identity.uid.clone();
        let node =
            self.nodes.entry(uid.clone()).or_insert_with(|| Node { identity: identity.clone(), ..Node::default() });
        let was_virtual = std::mem::take(&mut node.is_virtual);
        node.identity = identity.clone();
        if !was_virtual {
            return;
        }
        for dependent in self.dependents(&uid) {
            let right =
                |owner: &OwnerReference| owner.uid != uid || identity.is_named_by(owner, &dependent.identity.namespace);
            if !dependent.owners.iter().all(right) {
                effects.delete.insert(dependent.identity.uid);
            }
        }
    }

    fn relink(&mut self, uid: &str, before: &[OwnerReference], now: &[OwnerReference], effects: &mut Effects) {
        for old in before {
            let new = now.iter().find(|owner| owner.uid == old.uid);
            let blocked = old.block_owner_deletion == Some(true);
            let unblocked = blocked && new.is_some_and(|new| new.block_owner_deletion != Some(true));
            if new.is_none() || unblocked {
                self.wake_waiting(&old.uid, effects);
            }
            if new.is_none() {
                self.unlink(uid, &old.uid);
            }
        }
        let namespace = match self.nodes.get_mut(uid) {
            Some(node) => {
                node.owners = now.to_vec();
                node.identity.namespace.clone()
            }
            None => return,
        };
        for owner in now {
            if !before.contains(owner) {
                self.link(uid, owner, &namespace, effects);
            }
        }
    }

    fn link(&mut self, uid: &str, owner: &OwnerReference, namespace: &str, effects: &mut Effects) {
        let named = Identity::of_owner(owner, namespace);
        let node = self.nodes.entry(owner.uid.clone()).or_insert_with(|| {
            effects.delete.insert(owner.uid.clone());
            Node { identity: named, is_virtual: true, ..Node::default() }
        });
        node.dependents.insert(uid.to_owned());
        // Nobody has seen the owner, and its name is from a dependent outside all namespaces: if it is of a namespaced
        // kind it cannot be looked for by that name, so this dependent looks for it by its own.
        let nowhere = node.is_virtual && node.identity.namespace.is_empty() && !namespace.is_empty();
        if nowhere || !node.identity.is_named_by(owner, namespace) {
            effects.delete.insert(uid.to_owned());
        }
        // It was there before its owner began to wait for its dependents, or came since: it has to go as well.
        if node.deleting_dependents {
            effects.delete.insert(uid.to_owned());
        }
    }

    fn unlink(&mut self, dependent: &str, owner: &str) {
        let Some(node) = self.nodes.get_mut(owner) else { return };
        node.dependents.remove(dependent);
        if node.is_virtual && node.dependents.is_empty() {
            self.nodes.remove(owner);
        }
    }

    /// An owner that waits for its dependents looks again.
    fn wake_waiting(&self, owner: &str, effects: &mut Effects) {
        if self.nodes.get(owner).is_some_and(|node| node.deleting_dependents) {
            effects.delete.insert(owner.to_owned());
        }
    }

    fn transition(&mut self, uid: &str, meta: &ObjectMeta, effects: &mut Effects) {
        let Some(node) = self.nodes.get_mut(uid) else { return };
        node.being_deleted = meta.deletion_timestamp.is_some();
        let has = |finalizer: &str| node.being_deleted && meta.finalizers.iter().any(|one| one == finalizer);
        let (orphaning, waiting) = (has(ORPHAN), has(FOREGROUND));
        if orphaning && !node.orphaning {
            effects.orphan.insert(uid.to_owned());
        }
        node.orphaning = orphaning;
        if waiting && !node.deleting_dependents {
            node.deleting_dependents = true;
            effects.delete.insert(uid.to_owned());
            effects.delete.extend(node.dependents.iter().cloned());
        }
    }

    /// An object is gone.
    pub(super) fn remove(&mut self, uid: &str) -> Effects {
        let mut effects = Effects::default();
        let Some(node) = self.nodes.remove(uid) else { return effects };
        for owner in &node.owners {
            self.unlink(uid, &owner.uid);
            self.wake_waiting(&owner.uid, &mut effects);
        }
        if !node.dependents.is_empty() {
            effects.absent = Some(node.identity);
            effects.delete.extend(node.dependents);
        }
        effects
    }

    /// Nothing is where an owner was thought to be. Those who named it so are looked at; where others name it
    /// otherwise, the next of these names is tried.
    pub(super) fn not_there(&mut self, tried: &Identity) -> Effects {
        let mut effects = Effects { absent: Some(tried.clone()), ..Effects::default() };
        let uid = &tried.uid;
        if self.nodes.get(uid).is_none_or(|node| !node.is_virtual) {
            return effects;
        }
        let mut others = BTreeSet::new();
        for dependent in self.dependents(uid) {
            for owner in dependent.owners.iter().filter(|owner| owner.uid == *uid) {
                let named = Identity::of_owner(owner, &dependent.identity.namespace);
                if named == *tried {
                    effects.delete.insert(dependent.identity.uid.clone());
                } else {
                    others.insert(named);
                }
            }
        }
        let next = others.range(tried..).next().or_else(|| others.first()).cloned();
        match (next, self.nodes.get_mut(uid)) {
            (Some(next), Some(node)) => {
                node.identity = next;
                effects.delete.insert(uid.clone());
            }
            // Dependents keep their references until they are gone; the owner need not be asked for again.
            _ => {
                self.nodes.remove(uid);
            }
        }
        effects
    }
}
