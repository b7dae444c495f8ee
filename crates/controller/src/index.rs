//! Indexes that several controllers share.

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use client::{ApiObject, Informer};

use crate::claim::controller_of;

/// Objects by the uid of their controller; those without one by their namespace, see [`owned_and_orphans`].
pub const CONTROLLER_UID: &str = "controller-uid";
/// Pods by the node that runs them.
pub const NODE_NAME: &str = "node-name";

/// The values of [`CONTROLLER_UID`] for an object.
#[must_use]
pub fn controller_uid(meta: &ObjectMeta) -> Vec<String> {
    vec![controller_of(meta).map_or_else(|| orphans_of(&meta.namespace), |owner| owner.uid.clone())]
}

/// The value that objects of a namespace without a controller are found under. Should somebody write it into a reference
/// as a uid, then its object is looked at and found to be another's.
fn orphans_of(namespace: &str) -> String {
    format!("orphans/{namespace}")
}

/// What an owner may have a claim to, out of an informer with the index [`CONTROLLER_UID`]: what it controls, and what
/// nobody does in its namespace.
#[must_use]
pub fn owned_and_orphans<T: ApiObject>(objects: &Informer<T>, owner: &ObjectMeta) -> Vec<Arc<T>> {
    let mut all = objects.by_index(CONTROLLER_UID, &owner.uid);
    all.extend(objects.by_index(CONTROLLER_UID, &orphans_of(&owner.namespace)));
    all
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::OwnerReference;
    use api_machinery::object::Object;
    use api_types::core_v1::Pod;
    use client::fake::FakeServer;
    use client::{InformerOptions, Informers};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_owner_sees_its_own_and_the_orphans_of_its_namespace() {
        let server = FakeServer::new();
        let pods = Informers::new(&server.client(), InformerOptions::default()).of::<Pod>();
        pods.add_index(CONTROLLER_UID, |pod| controller_uid(&pod.metadata));
        let owner = |uid: &str| OwnerReference { uid: uid.into(), controller: Some(true), ..OwnerReference::default() };
        for (name, namespace, by) in
            [("mine", "ns", Some("u")), ("free", "ns", None), ("afar", "other", None), ("theirs", "ns", Some("v"))]
        {
            let mut pod = Pod::default();
            (pod.metadata.name, pod.metadata.namespace) = (name.into(), namespace.into());
            pod.metadata.owner_references.extend(by.map(owner));
            server.put("v1/pods", (&pod as &dyn Object).to_value());
        }
        pods.start();
        pods.wait_synced().await;
        let owner = ObjectMeta { uid: "u".into(), namespace: "ns".into(), ..ObjectMeta::default() };
        let found = owned_and_orphans(&pods, &owner);
        let names: Vec<_> = found.iter().map(|pod| pod.metadata.name.as_str()).collect();
        assert_eq!(names, ["mine", "free"]);
    }
}
