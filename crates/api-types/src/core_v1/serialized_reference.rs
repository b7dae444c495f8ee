//! SerializedReference.

use api_machinery::api;

use super::ObjectReference;

/// An object reference in serialized form.
#[api(kind = "SerializedReference")]
pub struct SerializedReference {
    /// The object referred to.
    #[field(1)]
    pub reference: ObjectReference,
}
