//! APIVersions and what it is made of.

use crate::leaf::StringList;
use api_derive::api;

/// Lists the versions of the legacy API root.
#[api(group = "", version = "v1", kind = "APIVersions")]
pub struct APIVersions {
    /// Available API versions.
    #[field(1, always, required)]
    pub versions: Vec<String>,
    /// Server addresses to use, depending on the client's network.
    #[field(2, name = "serverAddressByClientCIDRs", always, required)]
    pub server_address_by_client_cidrs: Vec<ServerAddressByClientCIDR>,
}

/// The server address for clients in one network.
#[api]
pub struct ServerAddressByClientCIDR {
    /// Network of the clients, in CIDR form.
    #[field(1, name = "clientCIDR", always, required)]
    pub client_cidr: String,
    /// Host name, IP address or host and port of the server.
    #[field(2, always, required)]
    pub server_address: String,
}

/// Describes one API group and its versions.
#[api(group = "", version = "v1", kind = "APIGroup")]
pub struct APIGroup {
    /// Name of the group.
    #[field(1, always, required)]
    pub name: String,
    /// Versions served for the group.
    #[field(2, always, required)]
    pub versions: Vec<GroupVersionForDiscovery>,
    /// Version that clients should use by default.
    #[field(3)]
    pub preferred_version: GroupVersionForDiscovery,
    /// Server addresses to use, depending on the client's network.
    #[field(4, name = "serverAddressByClientCIDRs")]
    pub server_address_by_client_cidrs: Vec<ServerAddressByClientCIDR>,
}

/// A group version as shown in discovery.
#[api]
pub struct GroupVersionForDiscovery {
    /// Group and version joined as group/version.
    #[field(1, always, required)]
    pub group_version: String,
    /// The version alone, for example v1.
    #[field(2, always, required)]
    pub version: String,
}

/// Lists all API groups the server offers.
#[api(group = "", version = "v1", kind = "APIGroupList")]
pub struct APIGroupList {
    /// The API groups.
    #[field(1, always, required)]
    pub groups: Vec<APIGroup>,
}

/// Lists the resources of one group version.
#[api(group = "", version = "v1", kind = "APIResourceList")]
pub struct APIResourceList {
    /// Group and version the resources belong to.
    #[field(1, always, required)]
    pub group_version: String,
    /// The resources, including subresources.
    #[field(2, always, required)]
    pub resources: Vec<APIResource>,
}

/// Describes one resource and its abilities.
#[api]
pub struct APIResource {
    /// Plural name of the resource, or a subresource path.
    #[field(1, always, required)]
    pub name: String,
    /// Singular name used by command line tools.
    #[field(6, always, required)]
    pub singular_name: String,
    /// Whether objects of the resource live in a namespace.
    #[field(2, always, required)]
    pub namespaced: bool,
    /// Group of the returned kind. Empty means the group listed.
    #[field(8)]
    pub group: String,
    /// Version of the returned kind. Empty means the version listed.
    #[field(9)]
    pub version: String,
    /// Kind of the objects, for example Pod.
    #[field(3, always, required)]
    pub kind: String,
    /// Supported verbs, such as get, list and watch.
    #[field(4, always, required, go = "v1.Verbs")]
    pub verbs: StringList,
    /// Short names accepted by command line tools.
    #[field(5)]
    pub short_names: Vec<String>,
    /// Groupings the resource belongs to, such as all.
    #[field(7)]
    pub categories: Vec<String>,
    /// Hash of the storage version, to be compared for equality only.
    #[field(10)]
    pub storage_version_hash: String,
}

/// Lists the paths available at the server root.
#[api]
pub struct RootPaths {
    /// Paths served at the root.
    #[field(1, always, required)]
    pub paths: Vec<String>,
}

/// Names a kind by group, version and kind name.
#[api]
pub struct GroupVersionKind {
    /// API group name, empty for the core group.
    #[field(1, always, required)]
    pub group: String,
    /// API version, for example v1.
    #[field(2, always, required)]
    pub version: String,
    /// Kind name in camel case, for example Pod.
    #[field(3, always, required)]
    pub kind: String,
}

/// Names a resource by group, version and plural name.
#[api]
pub struct GroupVersionResource {
    /// API group name, empty for the core group.
    #[field(1, always, required)]
    pub group: String,
    /// API version, for example v1.
    #[field(2, always, required)]
    pub version: String,
    /// Plural name in lower case, for example pods.
    #[field(3, always, required)]
    pub resource: String,
}
