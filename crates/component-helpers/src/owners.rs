//! Owner references: who controls an object.

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::object::{Kind, Object};

/// The reference to the managing controller, if there is one.
#[must_use]
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().find(|owner| owner.controller == Some(true))
}

/// Whether the object with this uid is the managing controller.
#[must_use]
pub fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|owner| owner.uid == uid)
}

/// The reference that makes `owner` the managing controller, holding up its foreground deletion.
#[must_use]
pub fn controller_reference<T: Kind + Object>(owner: &T) -> OwnerReference {
    OwnerReference {
        api_version: T::TYPE.api_version(),
        kind: T::TYPE.kind.to_owned(),
        name: owner.meta().name.clone(),
        uid: owner.meta().uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
