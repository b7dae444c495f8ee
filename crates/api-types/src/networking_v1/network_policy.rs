//! NetworkPolicy and what it is made of.

use api_machinery::api;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{LabelSelector, ObjectMeta};

use super::constants::policy_type;
use crate::core_v1::constants::protocol;

/// Controls which traffic selected pods may send and receive.
#[api(kind = "NetworkPolicy", resource = "networkpolicies", namespaced)]
pub struct NetworkPolicy {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The traffic rules.
    #[field(2)]
    pub spec: NetworkPolicySpec,
}

/// The traffic rules of a network policy.
#[api]
pub struct NetworkPolicySpec {
    /// Selects the pods the policy applies to. Empty selects all in the namespace.
    #[field(1, always)]
    pub pod_selector: LabelSelector,
    /// Allowed incoming traffic. Empty allows none if the policy covers ingress.
    #[field(2)]
    pub ingress: Vec<NetworkPolicyIngressRule>,
    /// Allowed outgoing traffic. Empty allows none if the policy covers egress.
    #[field(3)]
    pub egress: Vec<NetworkPolicyEgressRule>,
    /// Directions covered: Ingress, Egress. Default is Ingress, plus Egress if rules exist.
    #[field(4, go = "[]v1.PolicyType", values = policy_type::ALL)]
    pub policy_types: Vec<String>,
}

/// Allows some incoming traffic.
#[api]
pub struct NetworkPolicyIngressRule {
    /// Ports that traffic may reach. Empty allows all ports.
    #[field(1)]
    pub ports: Vec<NetworkPolicyPort>,
    /// Sources that may connect. Empty allows all sources.
    #[field(2)]
    pub from: Vec<NetworkPolicyPeer>,
}

/// A port or port range.
#[api]
pub struct NetworkPolicyPort {
    /// Transport protocol: TCP (default), UDP or SCTP.
    #[field(1, fill = "\"TCP\"", go = "v1.Protocol", values = protocol::ALL)]
    pub protocol: Option<String>,
    /// Port number or pod port name. Absent means all ports.
    #[field(2)]
    pub port: Option<IntOrString>,
    /// Last port of the range that starts at port. Needs a number.
    #[field(3)]
    pub end_port: Option<i32>,
}

/// The other side of allowed traffic.
#[api]
pub struct NetworkPolicyPeer {
    /// Selects pods, in this namespace or those of namespaceSelector.
    #[field(1)]
    pub pod_selector: Option<LabelSelector>,
    /// Selects namespaces by label. Empty selects all.
    #[field(2)]
    pub namespace_selector: Option<LabelSelector>,
    /// Address range of the peer. Excludes the selectors.
    #[field(3)]
    pub ip_block: Option<IPBlock>,
}

/// A range of IP addresses.
#[api]
pub struct IPBlock {
    /// Address range, such as 192.168.1.0/24.
    #[field(1, always, required)]
    pub cidr: String,
    /// Ranges inside cidr that are left out.
    #[field(2)]
    pub except: Vec<String>,
}

/// Allows some outgoing traffic.
#[api]
pub struct NetworkPolicyEgressRule {
    /// Ports that traffic may go to. Empty allows all ports.
    #[field(1)]
    pub ports: Vec<NetworkPolicyPort>,
    /// Destinations that may be reached. Empty allows all destinations.
    #[field(2)]
    pub to: Vec<NetworkPolicyPeer>,
}
