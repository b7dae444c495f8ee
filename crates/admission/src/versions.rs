//! The versions in which kinds are served, as webhooks and policies may ask for one, and what is done to objects in them.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use async_trait::async_trait;
use schema::Structural;

use crate::Attributes;

/// A resource in one version, and the kind of its objects, or of those of a subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The API group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name.
    pub resource: String,
    /// The kind.
    pub kind: GroupVersionKind,
}

impl Served {
    /// Group, version and plural name.
    #[must_use]
    pub fn place(&self) -> [&str; 3] {
        [&self.group, &self.version, &self.resource]
    }

    /// As a request names its resource and kind.
    pub(crate) fn requested(attributes: &Attributes) -> Self {
        let [group, version, resource] = attributes.place().map(str::to_owned);
        Self { group, version, resource, kind: attributes.kind.clone() }
    }
}

/// The schema of a custom kind, however it is held.
pub type CustomSchema = Arc<dyn Deref<Target = Structural> + Send + Sync>;

/// What the API server knows of versions.
#[async_trait]
pub trait Versions: Send + Sync {
    /// Where else the objects of a resource are served, or those of a subresource of it: not as it is named itself.
    fn equivalents(&self, place: [&str; 3], subresource: &str) -> Vec<Served>;
    /// An object of the resource at `from` as another version has it. What is of that kind already is copied.
    async fn convert(&self, object: &dyn Object, from: [&str; 3], to: &Served) -> Result<Box<dyn Object>, ApiError>;
    /// What JSON says of an object of the kind that `like` is of: unknown fields dropped, custom ones pruned, defaults set.
    fn read(&self, like: &dyn Object, value: &Value) -> Result<Box<dyn Object>, ApiError>;
    /// The schema of a custom kind; the fields of others are in their tables.
    fn custom_schema(&self, place: [&str; 3]) -> Option<CustomSchema>;
    /// Sets the defaults of an object that a plugin changed.
    fn set_defaults(&self, object: &mut dyn Object);
}

/// Every kind is served in one version only, and has the defaults that its table states; for tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneVersion;

#[async_trait]
impl Versions for OneVersion {
    fn equivalents(&self, _: [&str; 3], _: &str) -> Vec<Served> {
        Vec::new()
    }
    async fn convert(&self, object: &dyn Object, _: [&str; 3], _: &Served) -> Result<Box<dyn Object>, ApiError> {
        Ok(object.clone_object())
    }
    fn read(&self, like: &dyn Object, value: &Value) -> Result<Box<dyn Object>, ApiError> {
        read_as(like, value)
    }
    fn custom_schema(&self, _: [&str; 3]) -> Option<CustomSchema> {
        None
    }
    fn set_defaults(&self, object: &mut dyn Object) {
        api_machinery::defaults::fill(object.as_reflect_mut());
    }
}

/// Reads JSON as what `like` is, whatever is known of its kind beyond its table.
///
/// # Errors
/// 500 where it does not fit.
pub fn read_as(like: &dyn Object, value: &Value) -> Result<Box<dyn Object>, ApiError> {
    let mut object = like.clone_object();
    for index in 0..object.struct_type().fields.len() {
        object.as_reflect_mut().field_mut(index).reset();
    }
    api_machinery::value::from_value(value, object.as_reflect_mut()).map_err(ApiError::internal)?;
    api_machinery::defaults::fill(object.as_reflect_mut());
    Ok(object)
}

/// Makes an object the same as another of its type.
///
/// # Errors
/// 500 where it is of another.
pub(crate) fn assign(to: &mut dyn Object, from: &dyn Object) -> Result<(), ApiError> {
    if !std::ptr::eq(to.struct_type(), from.struct_type()) {
        return Err(ApiError::internal("admission turned an object into one of another type"));
    }
    for index in 0..from.struct_type().fields.len() {
        to.as_reflect_mut().field_mut(index).assign(from.field(index) as &dyn Any);
    }
    Ok(())
}
