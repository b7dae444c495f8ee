//! APIGroupDiscovery and what it is made of.

use api_machinery::api;
use api_machinery::meta::{GroupVersionKind, ObjectMeta};

/// Describes an API group and all its resources.
#[api(kind = "APIGroupDiscovery")]
pub struct APIGroupDiscovery {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Versions of the group, most preferred first.
    #[field(2, keys("version"))]
    pub versions: Vec<APIVersionDiscovery>,
}

/// Describes one version of an API group.
#[api]
pub struct APIVersionDiscovery {
    /// Name of the version, such as v1.
    #[field(1, always, required)]
    pub version: String,
    /// Resources served in this version.
    #[field(2, keys("resource"))]
    pub resources: Vec<APIResourceDiscovery>,
    /// Whether the data is Current or Stale.
    #[field(3, go = "v2.DiscoveryFreshness")]
    pub freshness: String,
}

/// Describes one resource.
#[api]
pub struct APIResourceDiscovery {
    /// Plural name of the resource, as used in URLs.
    #[field(1, always, required)]
    pub resource: String,
    /// Kind that the resource returns.
    #[field(2)]
    pub response_kind: Option<GroupVersionKind>,
    /// Whether objects are Cluster or Namespaced.
    #[field(3, always, required, go = "v2.ResourceScope")]
    pub scope: String,
    /// Singular name, used by command line tools.
    #[field(4, always, required)]
    pub singular_resource: String,
    /// Supported verbs, such as get, list and watch.
    #[field(5, always, required, set)]
    pub verbs: Vec<String>,
    /// Short names accepted by command line tools.
    #[field(6, set)]
    pub short_names: Vec<String>,
    /// Groupings the resource belongs to, such as all.
    #[field(7, set)]
    pub categories: Vec<String>,
    /// Subresources of the resource.
    #[field(8, keys("subresource"))]
    pub subresources: Vec<APISubresourceDiscovery>,
}

/// Describes one subresource.
#[api]
pub struct APISubresourceDiscovery {
    /// Name of the subresource, as used in URLs.
    #[field(1, always, required)]
    pub subresource: String,
    /// Kind that the subresource returns.
    #[field(2)]
    pub response_kind: Option<GroupVersionKind>,
    /// Kinds that the subresource accepts in requests.
    #[field(3, keys("group", "version", "kind"))]
    pub accepted_types: Vec<GroupVersionKind>,
    /// Supported verbs, such as get and update.
    #[field(4, always, required, set)]
    pub verbs: Vec<String>,
}
