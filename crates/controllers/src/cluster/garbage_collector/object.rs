//! What an object is called, and how the metadata of objects is read and written.

use std::time::Duration;

use api_machinery::gvk::{GroupVersion, GroupVersionKind};
use api_machinery::meta::{DeleteOptions, ObjectMeta, OwnerReference, PartialObjectMetadata, Preconditions};
use api_machinery::value::{Value, ValueMap, to_value};
use client::{Api, Client, ClientError, Patch, ResourceInfo, RestMapper};
use controller::ReconcileError;

pub(super) const ORPHAN: &str = "orphan";
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Tries to remove a finalizer, and the pauses between them.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: u32 = 5;

/// The coordinates of an object. The namespace of an owner is its dependent's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Identity {
    /// Of an object of a resource.
    pub(super) fn of(info: &ResourceInfo, meta: &ObjectMeta) -> Self {
        Self {
            kind: info.kind.clone(),
            api_version: info.api_version(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
        }
    }

    /// Of an owner, as a dependent in this namespace names it.
    pub(super) fn of_owner(owner: &OwnerReference, namespace: &str) -> Self {
        Self {
            kind: owner.kind.clone(),
            api_version: owner.api_version.clone(),
            namespace: namespace.to_owned(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        }
    }

    /// Whether a reference in this namespace names the object by its right coordinates. A cluster-scoped object can be
    /// named from everywhere.
    pub(super) fn is_named_by(&self, owner: &OwnerReference, namespace: &str) -> bool {
        self.kind == owner.kind
            && self.api_version == owner.api_version
            && self.name == owner.name
            && (self.namespace.is_empty() || self.namespace == namespace)
    }

    /// The resource of the object.
    pub(super) fn resource(&self, mapper: &RestMapper) -> Result<ResourceInfo, ReconcileError> {
        let version = GroupVersion::parse(&self.api_version).unwrap_or_else(|_| GroupVersion::new("", ""));
        let kind = GroupVersionKind { group: version.group, version: version.version, kind: self.kind.clone().into() };
        mapper.resource_of(&kind).ok_or_else(|| {
            ReconcileError::failed(format!("unable to get REST mapping for {}/{}.", self.api_version, self.kind))
        })
    }
}

/// The metadata of the objects around this one.
pub(super) fn api(client: &Client, info: &ResourceInfo, namespace: &str) -> Api<PartialObjectMetadata> {
    client.metadata(info, if info.namespaced { namespace } else { "" })
}

/// The object as it is now; nothing where it is gone or another has its name.
pub(super) async fn live(
    client: &Client,
    info: &ResourceInfo,
    identity: &Identity,
) -> Result<Option<ObjectMeta>, ClientError> {
    if info.namespaced && identity.namespace.is_empty() {
        return Ok(None);
    }
    let found = api(client, info, &identity.namespace).get_opt(&identity.name).await?;
    Ok(found.map(|found| found.metadata).filter(|meta| meta.uid == identity.uid))
}

/// Deletes what was just read, unless it changed meanwhile in a way that matters.
pub(super) async fn delete(
    client: &Client,
    info: &ResourceInfo,
    read: &ObjectMeta,
    policy: &str,
) -> Result<(), ClientError> {
    let objects = api(client, info, &read.namespace);
    let conflict = match objects.delete(&read.name, &options(read, policy, Some(&read.resource_version))).await {
        Err(error) if error.is_conflict() => error,
        outcome => return outcome.map(drop),
    };
    let Some(now) = objects.get_opt(&read.name).await?.map(|now| now.metadata) else { return Ok(()) };
    if now.uid != read.uid || now.owner_references != read.owner_references {
        // Another object, or other owners. Fewer owners make no event for this object: it is looked at once more.
        return Err(conflict);
    }
    objects.delete(&read.name, &options(read, policy, None)).await.map(drop)
}

fn options(read: &ObjectMeta, policy: &str, version: Option<&String>) -> DeleteOptions {
    let preconditions = Preconditions { uid: Some(read.uid.clone()), resource_version: version.cloned() };
    DeleteOptions {
        preconditions: Some(preconditions),
        propagation_policy: Some(policy.to_owned()),
        ..DeleteOptions::default()
    }
}

/// Takes references to these owners out of an object.
pub(super) async fn remove_references(
    client: &Client,
    info: &ResourceInfo,
    meta: &ObjectMeta,
    owners: &[String],
) -> Result<(), ClientError> {
    let removal = |uid: &String| map([("$patch", "delete".into()), ("uid", uid.as_str().into())]);
    let strategic = owners.iter().map(removal).collect::<Vec<Value>>();
    let rest: Vec<OwnerReference> =
        meta.owner_references.iter().filter(|owner| !owners.contains(&owner.uid)).cloned().collect();
    patch_references(client, info, meta, strategic.into(), &rest).await
}

/// Has the object's references hold nobody's deletion up any more.
pub(super) async fn unblock(client: &Client, info: &ResourceInfo, meta: &ObjectMeta) -> Result<(), ClientError> {
    let mut references = meta.owner_references.clone();
    for reference in &mut references {
        reference.block_owner_deletion = Some(false);
    }
    patch_references(client, info, meta, to_value(&references), &references).await
}

/// A strategic merge patch; where the kind has none, a merge patch with the whole list, guarded by the version.
async fn patch_references(
    client: &Client,
    info: &ResourceInfo,
    meta: &ObjectMeta,
    strategic: Value,
    whole: &[OwnerReference],
) -> Result<(), ClientError> {
    let objects = api(client, info, &meta.namespace);
    let body = map([("uid", meta.uid.as_str().into()), ("ownerReferences", strategic)]);
    match objects.patch(&meta.name, &Patch::Strategic(map([("metadata", body)]))).await {
        Err(error) if error.api().is_some_and(|error| error.code == 415) => {}
        outcome => return outcome.map(drop),
    }
    let version = meta.resource_version.as_str().into();
    let body = map([("resourceVersion", version), ("ownerReferences", to_value(&whole.to_vec()))]);
    objects.patch(&meta.name, &Patch::Merge(map([("metadata", body)]))).await.map(drop)
}

/// Removes a finalizer from an object, if it is still there.
pub(super) async fn remove_finalizer(
    client: &Client,
    info: &ResourceInfo,
    identity: &Identity,
    finalizer: &str,
) -> Result<(), ClientError> {
    let mut pause = FIRST_PAUSE;
    let mut left = TRIES;
    loop {
        left -= 1;
        let Some(meta) = live(client, info, identity).await? else { return Ok(()) };
        if !meta.finalizers.iter().any(|one| one == finalizer) {
            return Ok(());
        }
        let rest: Vec<String> = meta.finalizers.iter().filter(|one| *one != finalizer).cloned().collect();
        let version = meta.resource_version.as_str().into();
        let body = map([("resourceVersion", version), ("finalizers", to_value(&rest))]);
        let objects = api(client, info, &identity.namespace);
        match objects.patch(&identity.name, &Patch::Merge(map([("metadata", body)]))).await {
            Err(error) if error.is_conflict() && left > 0 => {}
            Err(error) if error.is_not_found() => return Ok(()),
            outcome => return outcome.map(drop),
        }
        tokio::time::sleep(pause).await;
        pause *= PAUSE_FACTOR;
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let mut map = ValueMap::new();
    for (name, value) in entries {
        map.insert(name.into(), value);
    }
    map.into()
}
