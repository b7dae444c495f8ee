//! extensions/v1beta1: what had a form of its own there. Its other kinds had the form of `apps_v1beta1`, `apps_v1`,
//! `networking_v1beta1` or `networking_v1`. Nobody serves it any more; a store may hold it.

mod daemon_set;

pub use daemon_set::{DaemonSet, DaemonSetSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.extensions.v1beta1";
/// The API group.
pub const GROUP: &str = "extensions";
/// The version.
pub const VERSION: &str = "v1beta1";
