//! The end of a definition: its objects go first.

use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use kinds::info::ResourceInfo;
use registry::{Hooks, Resource};

use crate::cx::{ApiCx, server_request};

/// Deletes all objects of a kind and says how many are still there.
///
/// # Errors
/// When they cannot be listed or deleted.
pub(super) async fn delete_objects(cx: &ApiCx, info: &ResourceInfo) -> Result<usize, ApiError> {
    let Some(resource) = cx.registry().resource(info.group, info.version, info.resource) else { return Ok(0) };
    for item in all(cx, &resource).await? {
        let meta = item.meta();
        let request = server_request(cx.clock(), &meta.namespace);
        match resource.delete(&request, &meta.name, &DeleteOptions::default(), &Hooks::none()).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(all(cx, &resource).await?.len())
}

async fn all(cx: &ApiCx, resource: &Arc<Resource>) -> Result<Vec<Box<dyn Object>>, ApiError> {
    let list = resource.list(&server_request(cx.clock(), ""), &ListOptions::default()).await?;
    Ok(list.items.iter().map(|item| item.object().clone_object()).collect())
}
