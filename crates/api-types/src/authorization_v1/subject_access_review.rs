//! SubjectAccessReview and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::StringList;
use api_machinery::meta::{FieldSelectorRequirement, LabelSelectorRequirement, ObjectMeta};

/// Checks whether a user may do something.
#[api(kind = "SubjectAccessReview", resource = "subjectaccessreviews")]
pub struct SubjectAccessReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The request to check.
    #[field(2, always, required)]
    pub spec: SubjectAccessReviewSpec,
    /// Result, filled in by the server.
    #[field(3)]
    pub status: SubjectAccessReviewStatus,
}

/// The request to check. Exactly one kind of attributes is set.
#[api]
pub struct SubjectAccessReviewSpec {
    /// The resource request to check. Excludes nonResourceAttributes.
    #[field(1)]
    pub resource_attributes: Option<ResourceAttributes>,
    /// The URL path request to check. Excludes resourceAttributes.
    #[field(2)]
    pub non_resource_attributes: Option<NonResourceAttributes>,
    /// User to check for. Needed if groups is empty.
    #[field(3)]
    pub user: String,
    /// Groups of the user to check for.
    #[field(4)]
    pub groups: Vec<String>,
    /// Further user data from the authenticator.
    #[field(5, go = "map[string]v1.ExtraValue")]
    pub extra: BTreeMap<String, StringList>,
    /// Unique identifier of the user.
    #[field(6)]
    pub uid: String,
}

/// A request on a resource.
#[api]
pub struct ResourceAttributes {
    /// Namespace of the request. Empty means all, or cluster scope.
    #[field(1)]
    pub namespace: String,
    /// Verb such as get, list or delete. The value * means all.
    #[field(2)]
    pub verb: String,
    /// API group of the resource. The value * means all.
    #[field(3)]
    pub group: String,
    /// API version of the resource. The value * means all.
    #[field(4)]
    pub version: String,
    /// Plural resource name. The value * means all.
    #[field(5)]
    pub resource: String,
    /// Subresource name. Empty means none.
    #[field(6)]
    pub subresource: String,
    /// Name of the object. Empty means all.
    #[field(7)]
    pub name: String,
    /// Field selector that limits the request.
    #[field(8)]
    pub field_selector: Option<FieldSelectorAttributes>,
    /// Label selector that limits the request.
    #[field(9)]
    pub label_selector: Option<LabelSelectorAttributes>,
}

/// A field selector as seen by authorizers.
#[api]
pub struct FieldSelectorAttributes {
    /// Selector as query text, parsed by webhooks. Excludes requirements.
    #[field(1)]
    pub raw_selector: String,
    /// Parsed selector, all parts of which must hold. Excludes rawSelector.
    #[field(2)]
    pub requirements: Vec<FieldSelectorRequirement>,
}

/// A label selector as seen by authorizers.
#[api]
pub struct LabelSelectorAttributes {
    /// Selector as query text, parsed by webhooks. Excludes requirements.
    #[field(1)]
    pub raw_selector: String,
    /// Parsed selector, all parts of which must hold. Excludes rawSelector.
    #[field(2)]
    pub requirements: Vec<LabelSelectorRequirement>,
}

/// A request on a URL path that is not a resource.
#[api]
pub struct NonResourceAttributes {
    /// URL path of the request.
    #[field(1)]
    pub path: String,
    /// HTTP verb in lower case.
    #[field(2)]
    pub verb: String,
}

/// The result of an access check.
#[api]
pub struct SubjectAccessReviewStatus {
    /// Whether the request is allowed.
    #[field(1, always, required)]
    pub allowed: bool,
    /// Whether the request is explicitly denied. Cannot be true together with allowed.
    #[field(4)]
    pub denied: bool,
    /// Why the request is allowed or denied.
    #[field(2)]
    pub reason: String,
    /// Problem met during the check, which may still give a result.
    #[field(3)]
    pub evaluation_error: String,
}
