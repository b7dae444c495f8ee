//! imagepolicy.k8s.io/v1alpha1: what a webhook is asked about images.

mod image_review;

pub use image_review::{ImageReview, ImageReviewContainerSpec, ImageReviewSpec, ImageReviewStatus};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.imagepolicy.v1alpha1";
/// The API group.
pub const GROUP: &str = "imagepolicy.k8s.io";
/// The version.
pub const VERSION: &str = "v1alpha1";
