//! NodeRestriction: a kubelet changes only its own node, its own pods and what belongs to them.

use api_machinery::gvk::GroupResource;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_machinery::value::{Value, differing};
use api_types::authentication_v1::{TokenRequest, UserInfo};
use api_types::certificates_v1::CertificateSigningRequest;
use api_types::core_v1::constants::MIRROR_POD_ANNOTATION_KEY;
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount};
use api_types::resource_v1::ResourceSlice;
use api_types::resource_v1beta1::ResourceSlice as FirstSlice;
use api_types::storage_v1::CSIDriver;
use async_trait::async_trait;
use pki::CertificateRequest;

use super::node_references::api_reference;
use super::{node_audiences, node_labels, node_pod_certificates};
use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "NodeRestriction",
    enabled_by_default: false,
    passes: Passes::Mutating,
    reads: &[
        &Node::TYPE,
        &Pod::TYPE,
        &ServiceAccount::TYPE,
        &CSIDriver::TYPE,
        &PersistentVolumeClaim::TYPE,
        &PersistentVolume::TYPE,
    ],
    configuration: None,
    build: |settings| {
        Box::new(NodeRestriction {
            audiences: settings.node_audiences,
            insecure_requests: settings.insecure_kubelet_requests,
        })
    },
};

const NODES_GROUP: &str = "system:nodes";
const USER_PREFIX: &str = "system:node:";
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// Who signs the certificates of kubelets.
const KUBELET_SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

#[derive(Clone, Copy)]
struct NodeRestriction {
    /// Whether a node gets tokens only for the audiences that its pods ask for.
    audiences: bool,
    /// Whether a node may ask for a certificate of a kubelet with any name.
    insecure_requests: bool,
}

/// A write by a node.
struct ByNode<'a> {
    rules: NodeRestriction,
    cx: &'a Context,
    attributes: &'a Attributes,
    node: &'a str,
}

#[async_trait]
impl Plugin for NodeRestriction {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation != Operation::Connect && node_of(&attributes.user).is_some()
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(node) = node_of(&attributes.user) else { return Ok(()) };
        if node.is_empty() {
            let user = &attributes.user.username;
            return Err(attributes.forbidden(format_args!("could not determine node from user {user:?}")));
        }
        let by = ByNode { rules: *self, cx, attributes, node };
        let object = object.map(|object| &*object);
        match (attributes.group.as_str(), attributes.resource.as_str(), attributes.subresource.as_str()) {
            ("", "pods", "") => by.pod(object),
            ("", "pods", "status") => by.pod_status(object, old),
            ("", "pods", "eviction") => by.eviction(object),
            ("", "pods", other) => by
                .refuse(format_args!("unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed")),
            ("", "nodes", _) => by.node(object, old),
            ("", "persistentvolumeclaims", "status") => by.claim_status(object, old),
            ("", "persistentvolumeclaims", _) => by.refuse("may only update PVC status"),
            ("", "serviceaccounts", "token") => by.token(object).await,
            ("coordination.k8s.io", "leases", _) => by.lease(object),
            ("certificates.k8s.io", "certificatesigningrequests", "") => by.certificate(object),
            ("certificates.k8s.io", "podcertificaterequests", _) => {
                node_pod_certificates::check(cx, attributes, node, object)
            }
            ("resource.k8s.io", "resourceslices", _) => by.slice(object, old),
            ("storage.k8s.io", "csinodes", _) if attributes.name != node => {
                by.refuse("can only access CSINode with the same name as the requesting node")
            }
            _ => Ok(()),
        }
    }
}

/// The node that the user is, if it is one; empty where the name is missing.
fn node_of(user: &UserInfo) -> Option<&str> {
    let member = user.groups.iter().any(|group| group == NODES_GROUP);
    user.username.strip_prefix(USER_PREFIX).filter(|_| member)
}

impl ByNode<'_> {
    fn refuse(&self, text: impl std::fmt::Display) -> Result<(), ApiError> {
        Err(self.attributes.forbidden(text))
    }

    fn stored_pod(&self, name: &str) -> Result<std::sync::Arc<Pod>, ApiError> {
        let missing = || ApiError::not_found(&GroupResource::new("", "pods"), name);
        self.cx.lookup.get(&self.attributes.namespace, name).ok_or_else(missing)
    }

    fn pod(&self, object: Option<&dyn Object>) -> Result<(), ApiError> {
        let node = self.node;
        match self.attributes.operation {
            Operation::Create => match object.and_then(|object| object.downcast_ref::<Pod>()) {
                Some(pod) => self.mirror_pod(pod),
                None => Ok(()),
            },
            Operation::Delete if self.stored_pod(&self.attributes.name)?.spec.node_name != node => {
                self.refuse(format_args!("node {node:?} can only delete pods with spec.nodeName set to itself"))
            }
            Operation::Delete | Operation::Connect => Ok(()),
            Operation::Update => self.refuse(format_args!(
                "unexpected operation \"UPDATE\", node {node:?} can only create and delete mirror pods"
            )),
        }
    }

    fn mirror_pod(&self, pod: &Pod) -> Result<(), ApiError> {
        let node = self.node;
        if !pod.metadata.annotations.contains_key(MIRROR_POD_ANNOTATION_KEY) {
            return self.refuse(format_args!(
                "pod does not have {MIRROR_POD_ANNOTATION_KEY:?} annotation, node {node:?} can only create mirror pods"
            ));
        }
        if pod.spec.node_name != node {
            return self.refuse(format_args!("node {node:?} can only create pods with spec.nodeName set to itself"));
        }
        self.mirror_owner(pod)?;
        match api_reference(pod) {
            Some(what) => self.refuse(format_args!("node {node:?} can not create pods that reference {what}")),
            None => Ok(()),
        }
    }

    fn mirror_owner(&self, pod: &Pod) -> Result<(), ApiError> {
        let node = self.node;
        let rule = format!("node {node:?} can only create pods with");
        let owner = match pod.metadata.owner_references.as_slice() {
            [owner] => owner,
            [] => return self.refuse(format_args!("{rule} an owner reference set to itself")),
            _ => return self.refuse(format_args!("{rule} a single owner reference set to itself")),
        };
        if owner.api_version != "v1" || owner.kind != "Node" || owner.name != node {
            return self.refuse(format_args!("{rule} an owner reference set to itself"));
        }
        if owner.controller != Some(true) {
            return self.refuse(format_args!("{rule} a controller owner reference set to itself"));
        }
        if owner.block_owner_deletion == Some(true) {
            return self.refuse(format_args!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
        }
        let missing = || ApiError::not_found(&GroupResource::new("", "nodes"), node);
        let stored = self.cx.lookup.get::<Node>("", node).ok_or_else(missing)?;
        if stored.metadata.uid != owner.uid {
            let (wanted, found) = (&owner.uid, &stored.metadata.uid);
            return self.refuse(format_args!("node {node} UID mismatch: expected {wanted} got {found}"));
        }
        Ok(())
    }

    fn pod_status(&self, object: Option<&dyn Object>, old: Option<&dyn Object>) -> Result<(), ApiError> {
        let node = self.node;
        if self.attributes.operation != Operation::Update {
            return self.refuse(format_args!("unexpected operation {:?}", self.attributes.operation.as_str()));
        }
        let pods = object.and_then(|new| new.downcast_ref::<Pod>()).zip(old.and_then(|old| old.downcast_ref::<Pod>()));
        let Some((new, old)) = pods else { return Ok(()) };
        if old.spec.node_name != node {
            return self.refuse(format_args!(
                "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
            ));
        }
        if new.metadata.labels != old.metadata.labels {
            return self.refuse(format_args!("node {node:?} cannot update labels through pod status"));
        }
        if new.status.resource_claim_statuses != old.status.resource_claim_statuses {
            return self.refuse(format_args!("node {node:?} cannot update resource claim statues"));
        }
        if new.status.extended_resource_claim_status != old.status.extended_resource_claim_status {
            return self.refuse(format_args!("node {node:?} cannot update extended resource claim status"));
        }
        Ok(())
    }

    fn eviction(&self, object: Option<&dyn Object>) -> Result<(), ApiError> {
        if self.attributes.operation != Operation::Create {
            return self.refuse(format_args!("unexpected operation {}", self.attributes.operation.as_str()));
        }
        let given = object.map(|object| object.meta().name.as_str()).unwrap_or_default();
        let name = if self.attributes.name.is_empty() { given } else { &self.attributes.name };
        if name.is_empty() {
            return self.refuse("could not determine pod from request data");
        }
        if self.stored_pod(name)?.spec.node_name != self.node {
            let node = self.node;
            return self.refuse(format_args!("node {node} can only evict pods with spec.nodeName set to itself"));
        }
        Ok(())
    }

    fn node(&self, object: Option<&dyn Object>, old: Option<&dyn Object>) -> Result<(), ApiError> {
        let (node, named) = (self.node, &self.attributes.name);
        let given = object.map(|object| object.meta().name.as_str()).unwrap_or_default();
        let target = if named.is_empty() { given } else { named };
        if target != node {
            return self.refuse(format_args!("node {node:?} is not allowed to modify node {target:?}"));
        }
        let Some(new) = object.and_then(|object| object.downcast_ref::<Node>()) else { return Ok(()) };
        match (self.attributes.operation, old.and_then(|old| old.downcast_ref::<Node>())) {
            (Operation::Create, _) => self.new_node(new),
            (Operation::Update, Some(old)) => self.changed_node(new, old),
            _ => Ok(()),
        }
    }

    fn new_node(&self, new: &Node) -> Result<(), ApiError> {
        let node = self.node;
        if new.spec.config_source.is_some() {
            return self
                .refuse(format_args!("node {node:?} is not allowed to create pods with a non-nil configSource"));
        }
        let forbidden: Vec<&str> =
            new.metadata.labels.keys().map(String::as_str).filter(|key| node_labels::is_forbidden(key)).collect();
        if forbidden.is_empty() {
            return Ok(());
        }
        let list = forbidden.join(", ");
        self.refuse(format_args!("node {node:?} is not allowed to set the following labels: {list}"))
    }

    fn changed_node(&self, new: &Node, old: &Node) -> Result<(), ApiError> {
        let node = self.node;
        if new.spec.config_source.is_some() && new.spec.config_source != old.spec.config_source {
            let text = "is not allowed to update configSource to a new non-nil configSource";
            return self.refuse(format_args!("node {node:?} {text}"));
        }
        if new.spec.taints != old.spec.taints {
            return self.refuse(format_args!("node {node:?} is not allowed to modify taints"));
        }
        // Owned by something that goes, the node would be collected as garbage (CVE-2025-5187).
        if new.metadata.owner_references != old.metadata.owner_references {
            return self.refuse(format_args!("node {node:?} is not allowed to modify ownerReferences"));
        }
        let changed = node_labels::changed(&old.metadata.labels, &new.metadata.labels);
        let forbidden: Vec<&str> = changed.into_iter().filter(|key| node_labels::is_forbidden(key)).collect();
        if forbidden.is_empty() {
            return Ok(());
        }
        self.refuse(format_args!("is not allowed to modify labels: {}", forbidden.join(", ")))
    }

    /// Only what a kubelet learns while it grows a volume may change.
    fn claim_status(&self, object: Option<&dyn Object>, old: Option<&dyn Object>) -> Result<(), ApiError> {
        if self.attributes.operation != Operation::Update {
            return self.refuse(format_args!("unexpected operation {:?}", self.attributes.operation.as_str()));
        }
        let plain = |object: Option<&dyn Object>| {
            let mut claim = object?.downcast_ref::<PersistentVolumeClaim>()?.clone();
            claim.metadata.resource_version.clear();
            claim.metadata.managed_fields.clear();
            claim.status.capacity.clear();
            claim.status.conditions.clear();
            claim.status.allocated_resources.clear();
            claim.status.allocated_resource_statuses.clear();
            Some(claim)
        };
        let (new, old) = (plain(object), plain(old));
        if new == old {
            return Ok(());
        }
        let [was, is] = differing(&old.unwrap_or_default(), &new.unwrap_or_default()).map(Value::from);
        let node = self.node;
        self.refuse(format_args!(
            "node {node:?} is not allowed to update fields other than status.quantity and status.conditions: -{was} +{is}"
        ))
    }

    async fn token(&self, object: Option<&dyn Object>) -> Result<(), ApiError> {
        let request = object.and_then(|object| object.downcast_ref::<TokenRequest>());
        let bound = request.and_then(|request| request.spec.bound_object_ref.as_ref());
        let Some(bound) =
            bound.filter(|bound| bound.kind == "Pod" && bound.api_version == "v1" && !bound.name.is_empty())
        else {
            return self.refuse("node requested token not bound to a pod");
        };
        if bound.uid.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.stored_pod(&bound.name)?;
        if pod.metadata.uid != bound.uid {
            return self.refuse(format_args!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have \
                 been deleted and then recreated",
                bound.uid
            ));
        }
        if pod.spec.node_name != self.node {
            return self.refuse("node requested token bound to a pod scheduled on a different node");
        }
        match request.filter(|_| self.rules.audiences).map(|request| request.spec.audiences.as_slice()) {
            Some([_, _, ..]) => self.refuse("node may only request 0 or 1 audiences"),
            Some(audiences) => {
                let audience = audiences.first().map_or("", String::as_str);
                node_audiences::check(self.cx, self.attributes, &pod, audience).await
            }
            None => Ok(()),
        }
    }

    /// A node tells of its own devices only. Which node a slice is of never changes.
    fn slice(&self, object: Option<&dyn Object>, old: Option<&dyn Object>) -> Result<(), ApiError> {
        let (verb, slice) = match self.attributes.operation {
            Operation::Create => ("create", object),
            Operation::Delete => ("delete", old),
            Operation::Update | Operation::Connect => return Ok(()),
        };
        let Some(slice) = slice else { return Ok(()) };
        let current = slice.downcast_ref::<ResourceSlice>().and_then(|own| own.spec.node_name.as_deref());
        let first = slice.downcast_ref::<FirstSlice>().map(|own| own.spec.node_name.as_str());
        if current.or(first) == Some(self.node) {
            return Ok(());
        }
        self.refuse(format_args!("can only {verb} ResourceSlice with the same NodeName as the requesting node"))
    }

    /// A certificate for a kubelet is asked for by that kubelet alone.
    fn certificate(&self, object: Option<&dyn Object>) -> Result<(), ApiError> {
        let request = object.and_then(|object| object.downcast_ref::<CertificateSigningRequest>());
        let of_kubelets = |request: &&CertificateSigningRequest| KUBELET_SIGNERS.contains(&&*request.spec.signer_name);
        let (Operation::Create, Some(request), false) =
            (self.attributes.operation, request.filter(of_kubelets), self.rules.insecure_requests)
        else {
            return Ok(());
        };
        let parsed = CertificateRequest::from_pem(&request.spec.request.0)
            .map_err(|error| self.attributes.forbidden(format_args!("unable to parse csr: {error}")))?;
        let wanted = format!("{USER_PREFIX}{}", self.node);
        if parsed.subject().common_name() == wanted {
            return Ok(());
        }
        self.refuse(format_args!("can only create a node CSR with CN={wanted}"))
    }

    fn lease(&self, object: Option<&dyn Object>) -> Result<(), ApiError> {
        if self.attributes.namespace != LEASE_NAMESPACE {
            return self.refuse(format_args!("can only access leases in the {LEASE_NAMESPACE:?} system namespace"));
        }
        // A name that is still to be generated is nobody's.
        let name = match (self.attributes.operation, object) {
            (Operation::Create, Some(lease)) => &lease.meta().name,
            _ => &self.attributes.name,
        };
        if name != self.node {
            return self.refuse("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "node_restriction_tests.rs"]
mod tests;
