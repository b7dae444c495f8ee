//! The object that a token is bound to: with its end the token ends.

use api_machinery::gvk::GroupResource;
use api_machinery::meta::ObjectMeta;
use api_machinery::status::ApiError;
use api_types::authentication_v1::BoundObjectReference;
use api_types::core_v1::{Node, Pod, Secret};
use authn::service_account::{BoundObject, ObjectRef, may_bind_to_pod, uid_conflict};
use registry::Registry;

use super::stored::read;

/// Finds the object and checks that it is the one that was meant.
pub(super) async fn find(
    registry: &Registry,
    reference: &BoundObjectReference,
    account: &ObjectMeta,
) -> Result<BoundObject, ApiError> {
    let name = reference.name.as_str();
    let bound = match (in_core(&reference.api_version), reference.kind.as_str()) {
        (true, "Pod") => {
            let pod: Pod = read(registry, "pods", &account.namespace, name).await?;
            may_bind_to_pod(&account.name, &pod.spec.service_account_name).map_err(ApiError::bad_request)?;
            check_uid(reference, &pod.metadata)?;
            let node = node_of(registry, &pod).await?;
            BoundObject::Pod { pod: reference_to(&pod.metadata), node }
        }
        (true, "Secret") => {
            let secret: Secret = read(registry, "secrets", &account.namespace, name).await?;
            check_uid(reference, &secret.metadata)?;
            BoundObject::Secret(reference_to(&secret.metadata))
        }
        (true, "Node") => {
            let node: Node = read(registry, "nodes", "", name).await?;
            check_uid(reference, &node.metadata)?;
            BoundObject::Node(reference_to(&node.metadata))
        }
        (_, kind) => return Err(unbindable(&reference.api_version, kind)),
    };
    Ok(bound)
}

/// Only the group counts, whatever the version is.
fn in_core(api_version: &str) -> bool {
    !api_version.contains('/')
}

/// The core group has no name, and stands with its slash all the same.
fn unbindable(api_version: &str, kind: &str) -> ApiError {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiError::bad_request(format!("cannot bind token to object of type {group}/{version}, Kind={kind}"))
}

fn reference_to(meta: &ObjectMeta) -> ObjectRef {
    ObjectRef { name: meta.name.clone(), uid: meta.uid.clone() }
}

fn check_uid(reference: &BoundObjectReference, found: &ObjectMeta) -> Result<(), ApiError> {
    let Some(conflict) = uid_conflict(&reference.uid, &found.uid) else { return Ok(()) };
    let resource = GroupResource { group: "".into(), resource: reference.kind.clone().into() };
    Err(ApiError::conflict(&resource, &found.name, conflict))
}

/// The node of a scheduled pod; without uid when there is no such Node object.
async fn node_of(registry: &Registry, pod: &Pod) -> Result<Option<ObjectRef>, ApiError> {
    let name = pod.spec.node_name.as_str();
    if name.is_empty() {
        return Ok(None);
    }
    match read::<Node>(registry, "nodes", "", name).await {
        Ok(node) => Ok(Some(reference_to(&node.metadata))),
        Err(error) if error.is_not_found() => Ok(Some(ObjectRef { name: name.to_owned(), uid: String::new() })),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_objects_are_named_with_their_group() {
        for (version, expected) in [("v1", "/v1, Kind=X"), ("apps/v1", "apps/v1, Kind=X"), ("", "/, Kind=X")] {
            let error = unbindable(version, "X");
            assert_eq!(error.message, format!("cannot bind token to object of type {expected}"));
        }
    }
}
