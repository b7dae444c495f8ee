//! Conversion between versions of a definition with the strategy `None`: only the version's name differs.

use api_machinery::object::{Object, Unstructured};
use api_machinery::status::ApiError;
use async_trait::async_trait;
use registry::Conversion;

/// Between these two values of `apiVersion`.
pub(super) struct VersionRename {
    pub(super) served: String,
    pub(super) stored: String,
}

fn renamed(object: &dyn Object, api_version: &str) -> Box<dyn Object> {
    let mut object = object.clone_object();
    if let Some(custom) = object.downcast_mut::<Unstructured>() {
        custom.type_meta.api_version = api_version.to_owned();
    }
    object
}

#[async_trait]
impl Conversion for VersionRename {
    async fn to_served(&self, stored: &dyn Object) -> Result<Box<dyn Object>, ApiError> {
        Ok(renamed(stored, &self.served))
    }

    async fn to_stored(&self, served: &dyn Object) -> Result<Box<dyn Object>, ApiError> {
        Ok(renamed(served, &self.stored))
    }
}
