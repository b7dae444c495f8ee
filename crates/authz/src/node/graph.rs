//! Which nodes are linked to which objects: a pod links its node to what the pod refers to, and a claim that a pod uses
//! links on to its volume and that volume's secrets. Other objects say themselves of which node they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_types::core_v1::{PersistentVolume, Pod};
use parking_lot::RwLock;

use super::compact::{Common, Uid};
use super::references;

/// The kinds that pods refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Secret,
    ConfigMap,
    Claim,
    ServiceAccount,
    ResourceClaim,
}

/// An object that nodes may be linked to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Vertex {
    kind: Kind,
    namespace: String,
    name: String,
}

impl Vertex {
    pub(super) fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// The kinds whose objects name their node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeObject {
    /// A VolumeAttachment.
    Attachment,
    /// A PodCertificateRequest.
    CertificateRequest,
    /// A ResourceSlice.
    Slice,
}

/// A pod that is bound to a node.
#[derive(Debug, PartialEq, Eq)]
struct BoundPod {
    node: Arc<str>,
    uid: Uid,
    /// How many ephemeral containers it had: they come without a new uid.
    ephemeral: usize,
    /// The claims made for it, which come after it was bound.
    claims: Box<[Option<String>]>,
    references: Arc<[Vertex]>,
}

/// A volume that is bound to a claim.
#[derive(Debug)]
struct BoundVolume {
    claim: Vertex,
    secrets: Vec<Vertex>,
}

#[derive(Default)]
struct Links {
    /// By [`key`].
    pods: HashMap<Arc<str>, BoundPod>,
    /// The nodes of pods.
    nodes: Common<str>,
    /// What pods refer to: those of one owner to the same objects, as a rule.
    references: Common<[Vertex]>,
    volumes: HashMap<String, BoundVolume>,
    /// The node that an object names, by its kind and its [`key`].
    named: HashMap<(NodeObject, String), String>,
    /// How many pods of each node refer to an object.
    users: HashMap<Vertex, BTreeMap<Arc<str>, usize>>,
    /// The volumes that need a secret.
    volumes_of_secret: HashMap<Vertex, BTreeSet<String>>,
}

/// The links, fed by whoever sees pods and volumes change.
#[derive(Default)]
pub struct Graph(RwLock<Links>);

impl Graph {
    /// A pod as it is now. `key` is its namespace and name with a slash between; it is kept.
    pub fn set_pod(&self, key: &Arc<str>, pod: &Pod) {
        if pod.spec.node_name.is_empty() {
            return self.0.write().unlink_pod(key);
        }
        let statuses = pod.status.resource_claim_statuses.iter().map(|claim| claim.resource_claim_name.clone());
        let extended = pod.status.extended_resource_claim_status.as_ref();
        let statuses = statuses.chain(extended.map(|claim| Some(claim.resource_claim_name.clone())));
        let claims: Box<[Option<String>]> = statuses.collect();
        let ephemeral = pod.spec.ephemeral_containers.len();
        let (node, uid) = (pod.spec.node_name.as_str(), Uid::from(pod.metadata.uid.as_str()));
        let is_known = |known: &BoundPod| {
            *known.node == *node && known.uid == uid && known.ephemeral >= ephemeral && known.claims == claims
        };
        if self.0.read().pods.get(key).is_some_and(is_known) {
            return;
        }
        let references = references::of_pod(pod);
        let mut links = self.0.write();
        links.unlink_pod(key);
        let (node, references) = (links.nodes.share(node), links.references.share(references));
        for vertex in &*references {
            *links.users.entry(vertex.clone()).or_default().entry(Arc::clone(&node)).or_default() += 1;
        }
        links.pods.insert(Arc::clone(key), BoundPod { node, uid, ephemeral, claims, references });
    }

    /// A pod that is gone.
    pub fn delete_pod(&self, namespace: &str, name: &str) {
        self.0.write().unlink_pod(&key(namespace, name));
    }

    /// A volume as it is now.
    pub fn set_volume(&self, volume: &PersistentVolume) {
        let name = &volume.metadata.name;
        let Some(claim) = &volume.spec.claim_ref else { return self.delete_volume(name) };
        let claim = Vertex::new(Kind::Claim, &claim.namespace, &claim.name);
        let secrets = references::secrets_of_volume(volume);
        let mut links = self.0.write();
        links.unlink_volume(name);
        for secret in &secrets {
            links.volumes_of_secret.entry(secret.clone()).or_default().insert(name.clone());
        }
        links.volumes.insert(name.clone(), BoundVolume { claim, secrets });
    }

    /// A volume that is gone.
    pub fn delete_volume(&self, name: &str) {
        self.0.write().unlink_volume(name);
    }

    /// An object as it is now, which names its node, or none.
    pub fn set_named(&self, kind: NodeObject, namespace: &str, name: &str, node: &str) {
        if node.is_empty() {
            return self.delete_named(kind, namespace, name);
        }
        self.0.write().named.insert((kind, key(namespace, name)), node.to_owned());
    }

    /// Such an object is gone.
    pub fn delete_named(&self, kind: NodeObject, namespace: &str, name: &str) {
        self.0.write().named.remove(&(kind, key(namespace, name)));
    }

    /// Whether an object names the node.
    pub(super) fn is_named(&self, node: &str, kind: NodeObject, namespace: &str, name: &str) -> bool {
        self.0.read().named.get(&(kind, key(namespace, name))).is_some_and(|own| own == node)
    }

    /// Whether a pod of the node refers to the object, or to a claim whose volume needs it.
    pub(super) fn is_linked(&self, node: &str, vertex: &Vertex) -> bool {
        let links = self.0.read();
        if links.uses(node, vertex) {
            return true;
        }
        let volumes = links.volumes_of_secret.get(vertex).into_iter().flatten();
        let mut volumes = volumes.filter_map(|name| links.volumes.get(name));
        volumes.any(|volume| links.uses(node, &volume.claim))
    }

    /// Whether a pod of the node uses the claim of a volume.
    pub(super) fn is_volume_linked(&self, node: &str, volume: &str) -> bool {
        let links = self.0.read();
        links.volumes.get(volume).is_some_and(|volume| links.uses(node, &volume.claim))
    }

    /// Whether a pod is bound to the node.
    pub(super) fn is_pod_linked(&self, node: &str, namespace: &str, name: &str) -> bool {
        self.0.read().pods.get(&*key(namespace, name)).is_some_and(|pod| *pod.node == *node)
    }
}

/// What a pod is found by; no namespace has a slash in its name.
fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

#[cfg(test)]
impl Graph {
    /// How many nodes and lists of references are kept.
    pub(super) fn common(&self) -> [usize; 2] {
        let links = self.0.read();
        [links.nodes.len(), links.references.len()]
    }
}

impl Links {
    fn uses(&self, node: &str, vertex: &Vertex) -> bool {
        self.users.get(vertex).is_some_and(|nodes| nodes.contains_key(node))
    }

    fn unlink_pod(&mut self, place: &str) {
        let Some(pod) = self.pods.remove(place) else { return };
        for vertex in &*pod.references {
            let Some(nodes) = self.users.get_mut(vertex) else { continue };
            if let Some(count) = nodes.get_mut(&pod.node) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    nodes.remove(&pod.node);
                }
            }
            if nodes.is_empty() {
                self.users.remove(vertex);
            }
        }
        self.nodes.give_back(&pod.node);
        self.references.give_back(&pod.references);
    }

    fn unlink_volume(&mut self, name: &str) {
        let Some(volume) = self.volumes.remove(name) else { return };
        for secret in volume.secrets {
            let Some(volumes) = self.volumes_of_secret.get_mut(&secret) else { continue };
            volumes.remove(name);
            if volumes.is_empty() {
                self.volumes_of_secret.remove(&secret);
            }
        }
    }
}
