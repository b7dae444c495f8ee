//! Puts finalizers on objects and takes them away.

use api_machinery::object::{Kind, Object};
use api_machinery::value::Value;
use client::{Client, ClientError, Patch};
use controller::{Cx, ReconcileError};

pub(crate) fn has(object: &dyn Object, finalizer: &str) -> bool {
    object.meta().finalizers.iter().any(|own| own == finalizer)
}

/// Sees to it that these finalizers are on an object, or are not. An object that is gone has none: what is done for it would be
/// nobody's to undo.
///
/// # Errors
/// When the object has changed since it was read, is gone and should have them, or the server refuses.
pub(crate) async fn set<T: Kind + Object>(
    cx: &Cx,
    object: &T,
    finalizers: &[&str],
    wanted: bool,
) -> Result<(), ReconcileError> {
    Ok(write(&cx.client, object, finalizers, wanted).await?)
}

async fn write<T: Kind + Object>(
    client: &Client,
    object: &T,
    finalizers: &[&str],
    wanted: bool,
) -> Result<(), ClientError> {
    let meta = object.meta();
    let mut now: Vec<String> =
        meta.finalizers.iter().filter(|own| wanted || !finalizers.contains(&own.as_str())).cloned().collect();
    if wanted {
        let missing = finalizers.iter().filter(|one| !has(object, one));
        now.extend(missing.map(ToString::to_string));
    }
    if now == meta.finalizers {
        return Ok(());
    }
    let mut body = Value::Object(Default::default());
    body["metadata"]["resourceVersion"] = meta.resource_version.clone().into();
    body["metadata"]["finalizers"] = now.into();
    match client.namespaced::<T>(&meta.namespace).patch(&meta.name, &Patch::Merge(body)).await {
        Err(error) if error.is_not_found() && !wanted => Ok(()),
        done => done.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::DeleteOptions;
    use api_types::snapshot_v1::VolumeSnapshot;
    use client::fake::FakeServer;

    use super::*;

    #[tokio::test]
    async fn what_is_gone_cannot_be_held_and_need_not_be_let_go() {
        let client = FakeServer::new().client();
        let api = client.namespaced::<VolumeSnapshot>("default");
        let mut snapshot = VolumeSnapshot::default();
        (snapshot.metadata.name, snapshot.metadata.namespace) = ("s".into(), "default".into());
        let there = api.create(&snapshot).await.unwrap();
        write(&client, &there, &["x"], true).await.unwrap();
        let held = api.get("s").await.unwrap();
        assert_eq!(held.metadata.finalizers, ["x"]);
        write(&client, &held, &["x"], false).await.unwrap();
        let free = api.get("s").await.unwrap();
        assert!(free.metadata.finalizers.is_empty());
        api.delete("s", &DeleteOptions::default()).await.unwrap();
        assert!(write(&client, &free, &["x"], true).await.unwrap_err().is_not_found());
        write(&client, &held, &["x"], false).await.unwrap();
    }
}
