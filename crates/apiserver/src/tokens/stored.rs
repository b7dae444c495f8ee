//! Objects as they are in the store now.

use api_machinery::gvk::GroupResource;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use registry::Registry;

use crate::own_request::server_request;

/// Reads an object of the core group from the store, as tokens must not outlive what was deleted just now.
pub(super) async fn read<T: Object + Clone>(
    registry: &Registry,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<T, ApiError> {
    let missing =
        || ApiError::not_found(&GroupResource { group: "".into(), resource: resource.to_owned().into() }, name);
    let found = registry.resource("", "v1", resource).ok_or_else(missing)?;
    let stored = found.get(&server_request(found.rule_context(), namespace), name, "").await?;
    stored.object().downcast_ref::<T>().cloned().ok_or_else(missing)
}
