//! The versions of kinds for admission, out of the registry.

use std::sync::{Arc, Weak};

use admission::{CustomSchema, Served};
use api_machinery::gvk::GroupVersionKind;
use api_machinery::json;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use async_trait::async_trait;
use kinds::info::ResourceInfo;
use registry::{Registry, Resource};

use crate::custom_kinds::CustomKinds;
use crate::negotiate::MediaType;
use crate::request::decode_object;

/// What the registry knows of versions.
pub(crate) struct RegistryVersions {
    registry: Weak<Registry>,
    custom: Arc<CustomKinds>,
}

impl RegistryVersions {
    pub(crate) fn new(registry: &Arc<Registry>, custom: &Arc<CustomKinds>) -> Self {
        Self { registry: Arc::downgrade(registry), custom: Arc::clone(custom) }
    }

    fn resources(&self) -> Vec<Arc<Resource>> {
        self.registry.upgrade().map(|registry| registry.resources()).unwrap_or_default()
    }

    fn resource(&self, [group, version, resource]: [&str; 3]) -> Option<Arc<Resource>> {
        self.registry.upgrade()?.resource(group, version, resource)
    }

    /// The resource whose own kind an object is of. Reviews, scales and the like have none.
    fn of_object(&self, object: &dyn Object) -> Option<Arc<Resource>> {
        let (api_version, kind) = (object.api_version(), object.kind());
        self.resources().into_iter().find(|own| own.info().kind == kind && own.info().api_version() == api_version)
    }
}

/// The kind that a resource, or a subresource of it, is written as; nothing where there is no such subresource.
fn kind_of(info: &ResourceInfo<'_>, subresource: &str) -> Option<GroupVersionKind> {
    let named = |group: &str, version: &str, kind: &str| GroupVersionKind {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: kind.to_owned().into(),
    };
    if subresource.is_empty() {
        return Some(named(info.group, info.version, info.kind));
    }
    let part = info.subresources.iter().find(|part| part.name == subresource)?;
    let foreign = !part.version.is_empty();
    Some(if foreign { named(part.group, part.version, part.kind) } else { named(info.group, info.version, part.kind) })
}

#[async_trait]
impl admission::Versions for RegistryVersions {
    fn equivalents(&self, place: [&str; 3], subresource: &str) -> Vec<Served> {
        let Some(storage) = self.resource(place).and_then(|own| own.info().storage.map(|own| own.prefix.to_owned()))
        else {
            return Vec::new();
        };
        let resources = self.resources();
        let others = resources
            .iter()
            .map(|own| own.info())
            .filter(|info| info.place() != place && info.storage.is_some_and(|own| own.prefix == storage));
        let served = |info: &ResourceInfo<'_>| {
            let kind = kind_of(info, subresource)?;
            let [group, version, resource] = info.place().map(str::to_owned);
            Some(Served { group, version, resource, kind })
        };
        others.filter_map(served).collect()
    }

    async fn convert(&self, object: &dyn Object, from: [&str; 3], to: &Served) -> Result<Box<dyn Object>, ApiError> {
        if object.gvk() == to.kind {
            return Ok(object.clone_object());
        }
        let unknown = || {
            let [group, version, resource] = to.place();
            ApiError::internal(format_args!(
                "unable to convert to {group}/{version}, Resource={resource}: unknown kind"
            ))
        };
        let (Some(from), Some(target)) = (self.resource(from), self.resource(to.place())) else {
            return Err(unknown());
        };
        from.convert(object, &target).await
    }

    fn read(&self, like: &dyn Object, value: &Value) -> Result<Box<dyn Object>, ApiError> {
        let Some(resource) = self.of_object(like) else { return admission::read_as(like, value) };
        let [group, version, name] = resource.info().place();
        let custom = self.custom.get(group, version, name);
        let text = json::encode_value(value);
        let decoded = decode_object(resource.rules(), custom.as_deref(), MediaType::Json, text.as_bytes());
        decoded.map(|decoded| decoded.object).map_err(|error| ApiError::internal(error.message))
    }

    fn custom_schema(&self, [group, version, resource]: [&str; 3]) -> Option<CustomSchema> {
        Some(Arc::clone(&self.custom.get(group, version, resource)?.schema) as CustomSchema)
    }

    fn set_defaults(&self, object: &mut dyn Object) {
        match self.of_object(object) {
            Some(resource) => resource.rules().set_defaults(object),
            None => api_machinery::defaults::fill(object.as_reflect_mut()),
        }
    }
}
