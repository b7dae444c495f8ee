//! What a client must know of a kind to reach it: its names, its scope, and how its objects are read.

use std::sync::Arc;

use api_machinery::gvk::{GroupVersionKind, GroupVersionResource};
use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::{Kind, Object, Unstructured};

/// The names and the scope of one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceInfo {
    /// The resource with its group and version.
    pub resource: GroupVersionResource,
    /// The kind of its objects.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl ResourceInfo {
    /// What a built-in kind says of itself.
    #[must_use]
    pub fn of<T: Kind>() -> Self {
        let kind = T::TYPE;
        let resource = GroupVersionResource::new(kind.group, kind.watched, kind.resource);
        Self { resource, kind: kind.kind.to_owned(), namespaced: kind.namespaced }
    }

    /// The group, version and kind.
    #[must_use]
    pub fn gvk(&self) -> GroupVersionKind {
        self.resource.group_version().with_kind(self.kind.clone())
    }

    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.resource.group_version().to_string()
    }

    /// The path up to the resource: `/api/v1` or `/apis/{group}/{version}`.
    #[must_use]
    pub(crate) fn version_path(&self) -> String {
        let GroupVersionResource { group, version, .. } = &self.resource;
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
    }
}

/// An object that a client can read and write: every built-in kind, [`Unstructured`] and [`PartialObjectMetadata`].
pub trait ApiObject: Object + Clone + Default {}

impl<T: Object + Clone + Default> ApiObject for T {}

/// In which form objects of a resource are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As their own type.
    Typed,
    /// Reduced to their metadata.
    Metadata,
    /// As free-form values.
    Unstructured,
}

/// How the objects of a resource are asked for and read.
#[derive(Debug, Clone)]
pub(crate) struct Codec {
    pub(crate) info: Arc<ResourceInfo>,
    pub(crate) form: Form,
    pub(crate) empty: fn() -> Box<dyn Object>,
}

fn empty_object<T: ApiObject>() -> Box<dyn Object> {
    Box::new(T::default())
}

impl Codec {
    pub(crate) fn typed<T: Kind + Object>() -> Self {
        Self { info: Arc::new(ResourceInfo::of::<T>()), form: Form::Typed, empty: empty_object::<T> }
    }

    pub(crate) fn unstructured(info: &ResourceInfo) -> Self {
        Self { info: Arc::new(info.clone()), form: Form::Unstructured, empty: empty_object::<Unstructured> }
    }

    pub(crate) fn metadata(info: &ResourceInfo) -> Self {
        Self { info: Arc::new(info.clone()), form: Form::Metadata, empty: empty_object::<PartialObjectMetadata> }
    }
}

/// Takes an object as its own type; nothing when it is of another one.
pub(crate) fn downcast<T: ApiObject>(object: Box<dyn Object>) -> Option<T> {
    let any: Box<dyn std::any::Any> = object;
    any.downcast::<T>().ok().map(|object| *object)
}
