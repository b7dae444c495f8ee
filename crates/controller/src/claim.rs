//! Who controls an object: reading owner references, and taking over or letting go of objects that a selector says
//! are or are not the controller's own. Pure; the patches are sent by the controllers.

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::object::Kind;
use api_machinery::value::{Value, ValueMap, to_value};
use client::Patch;

/// What a controller does about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is the controller's, and stays so.
    Keep,
    /// It is nobody's and matches: take it over.
    Adopt,
    /// It is the controller's but no longer matches: let it go.
    Release,
    /// It is none of the controller's business.
    Ignore,
}

/// The owner reference that marks the controller, if there is one.
#[must_use]
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().find(|owner| owner.controller == Some(true))
}

/// Whether `owner` controls the object, by uid.
#[must_use]
pub fn is_controlled_by(object: &ObjectMeta, owner: &ObjectMeta) -> bool {
    controller_of(object).is_some_and(|reference| reference.uid == owner.uid)
}

/// The reference by which an owner of kind `T` controls an object.
#[must_use]
pub fn controller_ref<T: Kind>(owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: T::TYPE.api_version(),
        kind: T::TYPE.kind.to_owned(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Decides about an object. `matches` says whether the owner's selector selects it.
#[must_use]
pub fn claim(object: &ObjectMeta, owner: &ObjectMeta, matches: bool) -> Claim {
    let owner_goes = owner.deletion_timestamp.is_some();
    match controller_of(object) {
        Some(reference) if reference.uid != owner.uid => Claim::Ignore,
        Some(_) if matches => Claim::Keep,
        Some(_) if owner_goes => Claim::Ignore,
        Some(_) => Claim::Release,
        None => {
            let free = matches && object.deletion_timestamp.is_none() && object.namespace == owner.namespace;
            if free && !owner_goes { Claim::Adopt } else { Claim::Ignore }
        }
    }
}

/// The patch that takes an object over, and puts `finalizers` on it. Names its uid, so that it cannot hit another
/// object of the same name.
#[must_use]
pub fn adopt_patch(object_uid: &str, owner: &OwnerReference, finalizers: &[&str]) -> Patch {
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), object_uid.into());
    metadata.insert("ownerReferences".into(), Value::Array(vec![to_value(owner)]));
    if !finalizers.is_empty() {
        metadata.insert("finalizers".into(), finalizers.iter().copied().collect());
    }
    Patch::Strategic(within_metadata(metadata))
}

/// The patch that lets an object go, and takes `finalizers` off it.
#[must_use]
pub fn release_patch(object_uid: &str, owner_uid: &str, finalizers: &[&str]) -> Patch {
    let mut gone = ValueMap::new();
    gone.insert("$patch".into(), "delete".into());
    gone.insert("uid".into(), owner_uid.into());
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), object_uid.into());
    metadata.insert("ownerReferences".into(), Value::Array(vec![Value::Object(gone)]));
    if !finalizers.is_empty() {
        metadata.insert("$deleteFromPrimitiveList/finalizers".into(), finalizers.iter().copied().collect());
    }
    Patch::Strategic(within_metadata(metadata))
}

fn within_metadata(metadata: ValueMap<String, Value>) -> Value {
    let mut patch = ValueMap::new();
    patch.insert("metadata".into(), Value::Object(metadata));
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use api_machinery::json::encode_value;
    use api_machinery::time::Time;
    use api_types::apps_v1::ReplicaSet;

    use super::*;

    #[test]
    fn claims_follow_owner_and_selector() {
        let owner = ObjectMeta { uid: "me".into(), name: "web".into(), namespace: "ns".into(), ..Default::default() };
        let going = ObjectMeta { deletion_timestamp: Some(Time::from_unix_seconds(1)), ..owner.clone() };
        let orphan = ObjectMeta { namespace: "ns".into(), ..Default::default() };
        let mine = ObjectMeta { owner_references: vec![controller_ref::<ReplicaSet>(&owner)], ..orphan.clone() };
        let other = ObjectMeta { uid: "other".into(), ..Default::default() };
        let theirs = ObjectMeta { owner_references: vec![controller_ref::<ReplicaSet>(&other)], ..orphan.clone() };
        let dying = ObjectMeta { deletion_timestamp: Some(Time::from_unix_seconds(1)), ..orphan.clone() };
        let elsewhere = ObjectMeta { namespace: "far".into(), ..orphan.clone() };
        let cases = [
            ("another's", &theirs, &owner, true, Claim::Ignore),
            ("mine", &mine, &owner, true, Claim::Keep),
            ("mine of a deleted owner", &mine, &going, true, Claim::Keep),
            ("mine no more", &mine, &owner, false, Claim::Release),
            ("mine no more, owner deleted", &mine, &going, false, Claim::Ignore),
            ("an orphan", &orphan, &owner, true, Claim::Adopt),
            ("an orphan that does not match", &orphan, &owner, false, Claim::Ignore),
            ("an orphan of a deleted owner", &orphan, &going, true, Claim::Ignore),
            ("a dying orphan", &dying, &owner, true, Claim::Ignore),
            ("an orphan elsewhere", &elsewhere, &owner, true, Claim::Ignore),
        ];
        for (name, object, owner, matches, expected) in cases {
            assert_eq!(claim(object, owner, matches), expected, "{name}");
        }
    }

    #[test]
    fn patches_are_upstreams() {
        let owner = ObjectMeta { uid: "u".into(), name: "web".into(), ..Default::default() };
        let Patch::Strategic(adopt) = adopt_patch("o", &controller_ref::<ReplicaSet>(&owner), &[]) else { panic!() };
        assert_eq!(
            encode_value(&adopt),
            r#"{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":"web","uid":"u"}],"uid":"o"}}"#
        );
        let Patch::Strategic(release) = release_patch("o", "u", &["f"]) else { panic!() };
        assert_eq!(
            encode_value(&release),
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["f"],"ownerReferences":[{"$patch":"delete","uid":"u"}],"uid":"o"}}"#
        );
    }
}
