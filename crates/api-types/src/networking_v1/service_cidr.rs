//! ServiceCIDR and what it is made of.

use api_machinery::api;
use api_machinery::meta::{Condition, ObjectMeta};

/// Networks from which cluster addresses of Services are taken.
#[api(kind = "ServiceCIDR", resource = "servicecidrs")]
pub struct ServiceCIDR {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The networks.
    #[field(2)]
    pub spec: ServiceCIDRSpec,
    /// Last observed state.
    #[field(3)]
    pub status: ServiceCIDRStatus,
}

/// The networks of a `ServiceCIDR`.
#[api]
pub struct ServiceCIDRSpec {
    /// One network for each address family. Immutable.
    #[field(1, atomic)]
    pub cidrs: Vec<String>,
}

/// Last observed state of a `ServiceCIDR`.
#[api]
pub struct ServiceCIDRStatus {
    /// Whether addresses can be taken from it.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<Condition>,
}
