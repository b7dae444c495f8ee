//! LimitRange and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::ResourceList;

/// Default and allowed resource amounts in a namespace.
#[api(kind = "LimitRange", resource = "limitranges", namespaced)]
pub struct LimitRange {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The limits to enforce.
    #[field(2)]
    pub spec: LimitRangeSpec,
}

/// Describes the limits of a namespace.
#[api]
pub struct LimitRangeSpec {
    /// The limits that are enforced.
    #[field(1, always, required)]
    pub limits: Vec<LimitRangeItem>,
}

/// Limits for one kind of resource user.
#[api]
pub struct LimitRangeItem {
    /// Kind that is limited: Pod, Container or PersistentVolumeClaim.
    #[field(1, always, required, go = "v1.LimitType")]
    pub type_: String,
    /// Highest allowed amount per resource.
    #[field(2, go = "v1.ResourceList")]
    pub max: ResourceList,
    /// Lowest allowed amount per resource.
    #[field(3, go = "v1.ResourceList")]
    pub min: ResourceList,
    /// Limit applied per resource when none is given.
    #[field(4, go = "v1.ResourceList")]
    pub default: ResourceList,
    /// Request applied per resource when none is given.
    #[field(5, go = "v1.ResourceList")]
    pub default_request: ResourceList,
    /// Largest allowed ratio of limit to request per resource.
    #[field(6, go = "v1.ResourceList")]
    pub max_limit_request_ratio: ResourceList,
}
