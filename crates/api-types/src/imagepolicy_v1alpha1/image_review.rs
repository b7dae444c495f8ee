//! ImageReview and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Asks whether the images of a pod may run.
#[api(kind = "ImageReview", resource = "imagereviews")]
pub struct ImageReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The pod that is asked about.
    #[field(2, always, required)]
    pub spec: ImageReviewSpec,
    /// The answer, filled in by who was asked.
    #[field(3)]
    pub status: ImageReviewStatus,
}

/// A pod, as far as its images are concerned.
#[api]
pub struct ImageReviewSpec {
    /// Its containers.
    #[field(1)]
    pub containers: Vec<ImageReviewContainerSpec>,
    /// Those of its annotations whose names contain `.image-policy.k8s.io/`.
    #[field(2)]
    pub annotations: BTreeMap<String, String>,
    /// Its namespace.
    #[field(3)]
    pub namespace: String,
}

/// A container of the pod.
#[api]
pub struct ImageReviewContainerSpec {
    /// Its image.
    #[field(1)]
    pub image: String,
}

/// What is said of the images.
#[api]
pub struct ImageReviewStatus {
    /// Whether they may run.
    #[field(1, always, required)]
    pub allowed: bool,
    /// Why not.
    #[field(2)]
    pub reason: String,
    /// Annotations for the audit log.
    #[field(3)]
    pub audit_annotations: BTreeMap<String, String>,
}
