//! ServiceAccount.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::{LocalObjectReference, ObjectReference};

/// An identity for processes that run in pods.
#[api(kind = "ServiceAccount", resource = "serviceaccounts", namespaced)]
pub struct ServiceAccount {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Deprecated list of secrets that pods using this account may reference.
    #[field(2, merge_key = "name")]
    pub secrets: Vec<ObjectReference>,
    /// Secrets that pods using this account use to pull images.
    #[field(3)]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Whether pods get a token mounted by default; pods may override.
    #[field(4)]
    pub automount_service_account_token: Option<bool>,
}
