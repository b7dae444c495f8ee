//! Indexes that several controllers share.

use api_machinery::meta::ObjectMeta;

use crate::claim::controller_of;

/// Objects by the uid of their controller; those without one are under the empty text.
pub const CONTROLLER_UID: &str = "controller-uid";
/// Pods by the node that runs them.
pub const NODE_NAME: &str = "node-name";

/// The values of [`CONTROLLER_UID`] for an object.
#[must_use]
pub fn controller_uid(meta: &ObjectMeta) -> Vec<String> {
    vec![controller_of(meta).map(|owner| owner.uid.clone()).unwrap_or_default()]
}
