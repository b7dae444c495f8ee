//! What a node may do: read what the pods bound to it need, keep its own objects, and nothing about other nodes.
//! Concept: <https://kubernetes.io/docs/reference/access-authn-authz/node/>

mod compact;
mod graph;
mod references;

use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use api_types::rbac_v1::PolicyRule;
use async_trait::async_trait;
use component_base::Gates;
use component_base::shared_gates::{CREDENTIAL_TOKENS, POD_CERTIFICATE_REQUEST};

pub use graph::{Graph, NodeObject};
use graph::{Kind, Vertex};

use crate::rbac::rule_allows;
use crate::{Attributes, Authorizer, Outcome, RuleSet, bootstrap, in_group};

const USER_PREFIX: &str = "system:node:";
const GROUP: &str = "system:nodes";
/// The role that says what else nodes may do.
const ROLE: &str = "system:node";
const LEASE_NAMESPACE: &str = "kube-node-lease";
const UNRELATED: &str = "no relationship found between node";

/// The Node authorizer.
pub struct NodeAuthorizer {
    graph: Arc<Graph>,
    rules: Vec<PolicyRule>,
    /// Nodes ask for certificates of their pods.
    pod_certificates: bool,
    /// Nodes look at the accounts of their pods: for those certificates, or for tokens that open registries.
    reads_accounts: bool,
}

/// Allowed, or refused with the reason for the caller.
type Allowed = Result<(), String>;

impl NodeAuthorizer {
    /// An authorizer over these links, where these gates are switched so.
    #[must_use]
    pub fn new(graph: Arc<Graph>, gates: &Gates) -> Self {
        let role = bootstrap::cluster_roles_with(gates).into_iter().find(|role| role.metadata.name == ROLE);
        let pod_certificates = gates.enabled(POD_CERTIFICATE_REQUEST);
        let reads_accounts = pod_certificates || gates.enabled(CREDENTIAL_TOKENS);
        Self { graph, rules: role.map(|role| role.rules).unwrap_or_default(), pod_certificates, reads_accounts }
    }

    /// Decides about one request.
    #[must_use]
    pub fn decide(&self, attributes: &Attributes) -> Outcome {
        let Some(node) = node_of(&attributes.user) else { return Outcome::no_opinion("") };
        if node.is_empty() {
            let user = &attributes.user.username;
            return Outcome::no_opinion(format!("unknown node for user {user:?}"));
        }
        match self.judge(node, attributes) {
            Ok(()) => Outcome::allow(""),
            Err(reason) => Outcome::no_opinion(reason),
        }
    }

    fn judge(&self, node: &str, attributes: &Attributes) -> Allowed {
        if !attributes.resource_request {
            return self.by_role(attributes);
        }
        match (attributes.group.as_str(), attributes.resource.as_str()) {
            ("", "secrets") => self.readable(node, attributes, Kind::Secret),
            ("", "configmaps") => self.readable(node, attributes, Kind::ConfigMap),
            ("", "persistentvolumeclaims") if attributes.subresource == "status" => {
                self.status_of_claim(node, attributes)
            }
            ("", "persistentvolumeclaims") => self.gettable(node, attributes, Kind::Claim),
            ("", "persistentvolumes") => self.volume(node, attributes),
            ("resource.k8s.io", "resourceclaims") => self.gettable(node, attributes, Kind::ResourceClaim),
            ("storage.k8s.io", "volumeattachments") => self.attachment(node, attributes),
            ("", "serviceaccounts") => self.service_account(node, attributes),
            ("coordination.k8s.io", "leases") => own_lease(node, attributes),
            ("storage.k8s.io", "csinodes") => own_csi_node(node, attributes),
            ("resource.k8s.io", "resourceslices") => self.slices(node, attributes),
            ("certificates.k8s.io", "podcertificaterequests") if self.pod_certificates => {
                self.certificate_requests(node, attributes)
            }
            ("", "nodes") => self.nodes(node, attributes),
            ("", "pods") => self.pods(node, attributes),
            _ => self.by_role(attributes),
        }
    }

    fn by_role(&self, attributes: &Attributes) -> Allowed {
        allow_if(self.rules.iter().any(|rule| rule_allows(rule, attributes)), "")
    }

    /// Secrets and config maps: read one by one, also as a list or watch of one.
    fn readable(&self, node: &str, attributes: &Attributes, kind: Kind) -> Allowed {
        allow_if(matches!(attributes.verb.as_str(), "get" | "list" | "watch"), "can only read resources of this type")?;
        allow_if(attributes.subresource.is_empty(), "cannot read subresource")?;
        allow_if(!attributes.namespace.is_empty(), "can only read namespaced object of this type")?;
        self.linked(node, attributes, kind)
    }

    fn gettable(&self, node: &str, attributes: &Attributes, kind: Kind) -> Allowed {
        gets_whole(attributes)?;
        self.linked(node, attributes, kind)
    }

    fn volume(&self, node: &str, attributes: &Attributes) -> Allowed {
        gets_whole(attributes)?;
        allow_if(!attributes.name.is_empty(), "No Object name found")?;
        related(node, self.graph.is_volume_linked(node, &attributes.name))
    }

    fn attachment(&self, node: &str, attributes: &Attributes) -> Allowed {
        gets_whole(attributes)?;
        allow_if(!attributes.name.is_empty(), "No Object name found")?;
        self.named(node, attributes, NodeObject::Attachment)
    }

    fn named(&self, node: &str, attributes: &Attributes, kind: NodeObject) -> Allowed {
        related(node, self.graph.is_named(node, kind, &attributes.namespace, &attributes.name))
    }

    fn slices(&self, node: &str, attributes: &Attributes) -> Allowed {
        match attributes.verb.as_str() {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.named(node, attributes, NodeObject::Slice),
            "list" | "watch" | "deletecollection" => {
                let own = attributes.selected_field("spec.nodeName") == Some(node);
                allow_if(own, "can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => Err("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection".to_owned()),
        }
    }

    fn certificate_requests(&self, node: &str, attributes: &Attributes) -> Allowed {
        match attributes.verb.as_str() {
            "create" => Ok(()),
            "get" => self.named(node, attributes, NodeObject::CertificateRequest),
            "list" | "watch" => {
                let own = attributes.selected_field("spec.nodeName") == Some(node);
                allow_if(own, "can only list/watch podcertificaterequests with nodeName field selector")
            }
            verb => Err(format!("nodes may not {verb} podcertificaterequests")),
        }
    }

    fn status_of_claim(&self, node: &str, attributes: &Attributes) -> Allowed {
        // The text is upstream's, which has never let nodes get the status alone.
        allow_if(matches!(attributes.verb.as_str(), "update" | "patch"), "can only get/update/patch this type")?;
        self.linked(node, attributes, Kind::Claim)
    }

    fn linked(&self, node: &str, attributes: &Attributes, kind: Kind) -> Allowed {
        allow_if(!attributes.name.is_empty(), "No Object name found")?;
        let vertex = Vertex::new(kind, &attributes.namespace, &attributes.name);
        related(node, self.graph.is_linked(node, &vertex))
    }

    fn service_account(&self, node: &str, attributes: &Attributes) -> Allowed {
        match attributes.verb.as_str() {
            "get" if attributes.subresource.is_empty() => {
                allow_if(self.reads_accounts, "not allowed to get service accounts")?;
                self.linked(node, attributes, Kind::ServiceAccount)
            }
            "create" => {
                let one = !attributes.name.is_empty();
                allow_if(one, "can only create tokens for individual service accounts")?;
                let token = attributes.subresource == "token";
                allow_if(token, "can only create token subresource of serviceaccount")?;
                self.linked(node, attributes, Kind::ServiceAccount)
            }
            _ => Err("can only create tokens for individual service accounts".to_owned()),
        }
    }

    fn nodes(&self, node: &str, attributes: &Attributes) -> Allowed {
        match (attributes.verb.as_str(), attributes.subresource.as_str()) {
            ("create" | "update" | "patch", "") | ("update" | "patch", "status") => Ok(()),
            ("get" | "list" | "watch", "") => match attributes.name.as_str() {
                "" => Err(format!("node '{node}' cannot read all nodes, only its own Node object")),
                own if own == node => Ok(()),
                other => Err(format!("node '{node}' cannot read '{other}', only its own Node object")),
            },
            _ => self.by_role(attributes),
        }
    }

    fn pods(&self, node: &str, attributes: &Attributes) -> Allowed {
        let linked = || related(node, self.graph.is_pod_linked(node, &attributes.namespace, &attributes.name));
        match (attributes.verb.as_str(), attributes.subresource.as_str()) {
            ("get", "") => linked(),
            ("list" | "watch", "") if attributes.selected_field("spec.nodeName") == Some(node) => Ok(()),
            ("list" | "watch", "") if !attributes.name.is_empty() => linked(),
            ("list" | "watch", "") => Err("can only list/watch pods with spec.nodeName field selector".to_owned()),
            ("create" | "delete", "") | ("update" | "patch", "status") | ("create", "eviction") => Ok(()),
            _ => Err(String::new()),
        }
    }
}

fn allow_if(allowed: bool, reason: &str) -> Allowed {
    if allowed { Ok(()) } else { Err(reason.to_owned()) }
}

fn related(node: &str, linked: bool) -> Allowed {
    if linked { Ok(()) } else { Err(format!("{UNRELATED} '{node}' and this object")) }
}

fn own_lease(node: &str, attributes: &Attributes) -> Allowed {
    let verb = matches!(attributes.verb.as_str(), "get" | "create" | "update" | "patch" | "delete");
    allow_if(verb, "can only get, create, update, patch, or delete a node lease")?;
    let place = attributes.namespace == LEASE_NAMESPACE;
    allow_if(place, "can only access leases in the \"kube-node-lease\" system namespace")?;
    let own = attributes.verb == "create" || attributes.name == node;
    allow_if(own, "can only access node lease with the same name as the requesting node")
}

/// An object itself, read by its name.
fn gets_whole(attributes: &Attributes) -> Allowed {
    allow_if(attributes.verb == "get", "can only get individual resources of this type")?;
    allow_if(attributes.subresource.is_empty(), "cannot get subresource")
}

fn own_csi_node(node: &str, attributes: &Attributes) -> Allowed {
    let verb = matches!(attributes.verb.as_str(), "get" | "create" | "update" | "patch" | "delete");
    allow_if(verb, "can only get, create, update, patch, or delete a CSINode")?;
    allow_if(attributes.subresource.is_empty(), "cannot authorize CSINode subresources")?;
    let own = attributes.verb == "create" || attributes.name == node;
    allow_if(own, "can only access CSINode with the same name as the requesting node")
}

/// The node that a user is, if it is one.
#[must_use]
pub fn node_of(user: &UserInfo) -> Option<&str> {
    user.username.strip_prefix(USER_PREFIX).filter(|_| in_group(user, GROUP))
}

#[async_trait]
impl Authorizer for NodeAuthorizer {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        self.decide(attributes)
    }

    fn rules_for(&self, user: &UserInfo, _: &str) -> RuleSet {
        if node_of(user).is_none() {
            return RuleSet::default();
        }
        let errors = vec!["node authorizer does not support user rule resolution".to_owned()];
        RuleSet { incomplete: true, errors, ..RuleSet::default() }
    }
}

#[cfg(test)]
mod tests;
