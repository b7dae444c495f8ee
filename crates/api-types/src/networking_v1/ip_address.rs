//! IPAddress and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// A single address that something has taken. Its name is the address.
#[api(kind = "IPAddress", resource = "ipaddresses")]
pub struct IPAddress {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Who has taken it.
    #[field(2, required)]
    pub spec: IPAddressSpec,
}

/// Who has taken an address.
#[api]
pub struct IPAddressSpec {
    /// The object that the address belongs to.
    #[field(1, required)]
    pub parent_ref: Option<ParentReference>,
}

/// Points to an object.
#[api]
pub struct ParentReference {
    /// Its group; empty for core.
    #[field(1)]
    pub group: String,
    /// Its plural name.
    #[field(2, required)]
    pub resource: String,
    /// Its namespace.
    #[field(3)]
    pub namespace: String,
    /// Its name.
    #[field(4, required)]
    pub name: String,
}
