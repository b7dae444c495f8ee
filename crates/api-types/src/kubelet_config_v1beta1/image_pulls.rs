//! ImagePullIntent and ImagePulledRecord: what a kubelet writes down of the images that it pulls.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::time::Time;

/// An image is about to be pulled.
#[api(group = "kubelet.config.k8s.io", version = "v1beta1", kind = "ImagePullIntent")]
pub struct ImagePullIntent {
    /// As the container names it.
    #[field(0, always, required)]
    pub image: String,
}

/// An image was pulled.
#[api(group = "kubelet.config.k8s.io", version = "v1beta1", kind = "ImagePulledRecord")]
pub struct ImagePulledRecord {
    /// When this was written.
    #[field(0, always, required)]
    pub last_updated_time: Time,
    /// What the runtime calls the image.
    #[field(0, always, required)]
    pub image_ref: String,
    /// By repository, with what it was pulled from there.
    #[field(0, required)]
    pub credential_mapping: BTreeMap<String, ImagePullCredentials>,
}

/// With what an image was pulled. Where nothing is known, nobody may use it unasked.
#[api]
pub struct ImagePullCredentials {
    /// With these secrets.
    #[field(0, set)]
    pub kubernetes_secrets: Vec<ImagePullSecret>,
    /// With what these service accounts have.
    #[field(0, set)]
    pub kubernetes_service_accounts: Vec<ImagePullServiceAccount>,
    /// Without any, or with those of the node: all its pods may use the image.
    #[field(0)]
    pub node_pods_accessible: bool,
}

/// A secret with which an image was pulled.
#[api]
pub struct ImagePullSecret {
    /// Its uid.
    #[field(0, always, required)]
    pub uid: String,
    /// Its namespace.
    #[field(0, always, required)]
    pub namespace: String,
    /// Its name.
    #[field(0, always, required)]
    pub name: String,
    /// The SHA-256 of what it held, in hexadecimal.
    #[field(0, always, required)]
    pub credential_hash: String,
}

/// A service account with whose credentials an image was pulled.
#[api]
pub struct ImagePullServiceAccount {
    /// Its uid.
    #[field(0, always, required)]
    pub uid: String,
    /// Its namespace.
    #[field(0, always, required)]
    pub namespace: String,
    /// Its name.
    #[field(0, always, required)]
    pub name: String,
}
