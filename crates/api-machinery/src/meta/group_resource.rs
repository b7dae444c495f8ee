//! GroupResource, as objects name a resource.

use api_derive::api;

/// A resource, in any of its versions.
#[api]
pub struct GroupResource {
    /// API group of the resource; empty for core.
    #[field(1, always, required)]
    pub group: String,
    /// Name of the resource in plural.
    #[field(2, always, required)]
    pub resource: String,
}
