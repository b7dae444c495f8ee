//! Puts finalizers on objects and takes them away.

use api_machinery::object::{Kind, Object};
use api_machinery::value::Value;
use client::Patch;
use controller::{Cx, ReconcileError};

pub(crate) fn has(object: &dyn Object, finalizer: &str) -> bool {
    object.meta().finalizers.iter().any(|own| own == finalizer)
}

/// Sees to it that these finalizers are on an object, or are not. An object that is gone has none.
///
/// # Errors
/// When the object has changed since it was read, or the server refuses.
pub(crate) async fn set<T: Kind + Object>(
    cx: &Cx,
    object: &T,
    finalizers: &[&str],
    wanted: bool,
) -> Result<(), ReconcileError> {
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
    match cx.client.namespaced::<T>(&meta.namespace).patch(&meta.name, &Patch::Merge(body)).await {
        Err(error) if error.is_not_found() => Ok(()),
        done => Ok(done.map(drop)?),
    }
}
