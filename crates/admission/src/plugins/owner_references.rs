//! OwnerReferencesPermissionEnforcement: who says whom an object belongs to must be able to delete it, and who lets it hold
//! up its owner's deletion must be able to do that to the owner directly.

use api_machinery::gvk::GroupVersionKind;
use api_machinery::meta::OwnerReference;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use async_trait::async_trait;
use cel::kubernetes::authorizer::Decision;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry, ResourceAttributes};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "OwnerReferencesPermissionEnforcement",
    enabled_by_default: false,
    passes: Passes::Validating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(Enforcement),
};

/// The subresource that stands for holding up a deletion.
const FINALIZERS: &str = "finalizers";

struct Enforcement;

/// References whose owner this write begins to hold up.
fn newly_blocking<'a>(new: &'a [OwnerReference], old: &[OwnerReference]) -> Vec<&'a OwnerReference> {
    let blocks = |reference: &OwnerReference| reference.block_owner_deletion == Some(true);
    let did = |reference: &OwnerReference| old.iter().any(|former| former.uid == reference.uid && blocks(former));
    new.iter().filter(|reference| blocks(reference) && !did(reference)).collect()
}

/// The reason and the error of a refusal, as upstream prints them.
fn shown(verdict: &Decision) -> String {
    format!("{}, {}", verdict.reason, verdict.error.as_deref().unwrap_or("<nil>"))
}

async fn check_deletion(cx: &Context, attributes: &Attributes) -> Result<(), ApiError> {
    let access = ResourceAttributes {
        verb: "delete",
        group: &attributes.group,
        version: &attributes.version,
        resource: &attributes.resource,
        subresource: &attributes.subresource,
        namespace: &attributes.namespace,
        name: &attributes.name,
    };
    let verdict = cx.lookup.authorize(&attributes.user, &access).await;
    if verdict.allowed {
        return Ok(());
    }
    let why = shown(&verdict);
    Err(attributes.forbidden(format_args!("cannot set an ownerRef on a resource you can't delete: {why}")))
}

async fn check_blocking(cx: &Context, attributes: &Attributes, owner: &OwnerReference) -> Result<(), ApiError> {
    let (api_version, kind) = (&owner.api_version, &owner.kind);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: kind.clone().into(),
    };
    let Some(place) = cx.lookup.resource_of(&gvk) else {
        return Err(attributes.forbidden(format_args!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} \
             Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
        )));
    };
    let namespace = if place.namespaced { attributes.namespace.as_str() } else { "" };
    let (verb, resource, name) = ("update", place.resource.as_str(), owner.name.as_str());
    let access = ResourceAttributes { verb, group, version, resource, subresource: FINALIZERS, namespace, name };
    let verdict = cx.lookup.authorize(&attributes.user, &access).await;
    if verdict.allowed {
        return Ok(());
    }
    Err(attributes.forbidden(format_args!(
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {}",
        shown(&verdict)
    )))
}

#[async_trait]
impl Plugin for Enforcement {
    fn handles(&self, attributes: &Attributes) -> bool {
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        written && !attributes.is_sub("", "pods", "status")
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let owners = |object: Option<&dyn Object>| {
            object.map(|object| object.meta().owner_references.clone()).unwrap_or_default()
        };
        let (new, old) = (owners(object), owners(old));
        if new == old {
            return Ok(());
        }
        // Who creates an object may say whose it is: deleting it is not more than not creating it.
        if attributes.operation == Operation::Update {
            check_deletion(cx, attributes).await?;
        }
        let blocking = newly_blocking(&new, &old);
        if blocking.is_empty() {
            return Ok(());
        }
        let every = ResourceAttributes {
            verb: "update",
            group: "*",
            version: "*",
            resource: "*",
            subresource: FINALIZERS,
            namespace: "",
            name: "*",
        };
        if cx.lookup.is_allowed(&attributes.user, &every).await {
            return Ok(());
        }
        for owner in blocking {
            check_blocking(cx, attributes, owner).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Pod;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    const NO_FINALIZERS: &str = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set \
                                 finalizers on: not you, <nil>";

    fn owned(owners: &[(&str, &str, &str, bool)]) -> Pod {
        let mut pod = Pod::default();
        let reference = |(api_version, kind, name, blocks): &(&str, &str, &str, bool)| OwnerReference {
            api_version: (*api_version).into(),
            kind: (*kind).into(),
            name: (*name).into(),
            uid: (*name).into(),
            block_owner_deletion: Some(*blocks),
            ..OwnerReference::default()
        };
        pod.metadata.owner_references = owners.iter().map(reference).collect();
        pod
    }

    fn at(operation: Operation) -> Attributes {
        Attributes { operation, namespace: "n".into(), ..create("", "pods") }
    }

    #[tokio::test]
    async fn owners_need_rights() {
        let set = |blocks: bool| owned(&[("apps/v1", "ReplicaSet", "set", blocks)]);
        let node = owned(&[("v1", "Node", "node", true)]);
        let strange = owned(&[("x.io/v1", "Odd", "odd", true)]);
        let (create, update) = (Operation::Create, Operation::Update);
        for (operation, new, old, allowed, expected) in [
            (create, owned(&[]), None, vec![], None),
            (create, set(false), None, vec![], None),
            (create, set(true), None, vec![], Some(NO_FINALIZERS)),
            (create, set(true), None, vec![("update", "set")], None),
            (create, strange.clone(), None, vec![("update", "*")], None),
            (
                create,
                strange,
                None,
                vec![("update", "odd")],
                Some(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion x.io/v1 \
                     Kind Odd: no matches for kind \"Odd\" in version \"x.io/v1\"",
                ),
            ),
            (update, set(true), Some(set(true)), vec![], None),
            (
                update,
                owned(&[]),
                Some(set(true)),
                vec![],
                Some("cannot set an ownerRef on a resource you can't delete: not you, <nil>"),
            ),
            (update, set(true), Some(set(false)), vec![("delete", "x")], Some(NO_FINALIZERS)),
            (update, set(false), Some(set(true)), vec![("delete", "x")], None),
            (update, node, Some(set(true)), vec![("delete", "x"), ("update", "set")], Some(NO_FINALIZERS)),
        ] {
            let fixture = Fixture { allowed: allowed.clone(), ..Fixture::default() };
            let attributes = at(operation);
            let outcome = match &old {
                Some(old) => fixture.validate_update(&ENTRY, &attributes, &new, old).await,
                None => fixture.validate(&ENTRY, &attributes, &new).await,
            };
            let expected = expected.map(|text| format!("pods \"x\" is forbidden: {text}"));
            assert_eq!(outcome.err().map(|error| error.message), expected, "{operation:?} {allowed:?}");
        }
    }

    #[tokio::test]
    async fn the_questions_name_all() {
        let new = owned(&[("apps/v1", "ReplicaSet", "set", true), ("v1", "Node", "node", true)]);
        let allowed = vec![("delete", "x"), ("update", "set"), ("update", "node")];
        let fixture = Fixture { allowed, ..Fixture::default() };
        fixture.validate_update(&ENTRY, &at(Operation::Update), &new, &Pod::default()).await.unwrap();
        assert_eq!(
            *fixture.wishes.lock(),
            [
                "delete /v1/pods/ n/x",
                "update */*/*/finalizers /*",
                "update apps/v1/replicasets/finalizers n/set",
                "update /v1/nodes/finalizers /node",
            ]
        );
    }

    #[test]
    fn a_pods_status_is_nobodys_business() {
        let status = Attributes { subresource: "status".into(), ..at(Operation::Update) };
        assert!(!Enforcement.handles(&status) && Enforcement.handles(&at(Operation::Update)));
    }
}
