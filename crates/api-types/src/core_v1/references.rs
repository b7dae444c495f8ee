//! ObjectReference and what it is made of.

use api_machinery::api;

/// Refers to another object, possibly to a part of it.
#[api(atomic)]
pub struct ObjectReference {
    /// Kind of the object.
    #[field(1)]
    pub kind: String,
    /// Namespace of the object.
    #[field(2)]
    pub namespace: String,
    /// Name of the object.
    #[field(3)]
    pub name: String,
    /// UID of the object.
    #[field(4, go = "types.UID")]
    pub uid: String,
    /// API version of the object.
    #[field(5)]
    pub api_version: String,
    /// Exact resource version the reference was made for.
    #[field(6)]
    pub resource_version: String,
    /// Part of the object, for example spec.containers{name}.
    #[field(7)]
    pub field_path: String,
}

/// Refers to an object in the same namespace by name.
#[api(atomic)]
pub struct LocalObjectReference {
    /// Name of the object.
    #[field(1, default = "\"\"")]
    pub name: String,
}

/// Refers to a typed object in the same namespace.
#[api(atomic)]
pub struct TypedLocalObjectReference {
    /// API group of the object; unset means the core group.
    #[field(1, always)]
    pub api_group: Option<String>,
    /// Kind of the object.
    #[field(2, always, required)]
    pub kind: String,
    /// Name of the object.
    #[field(3, always, required)]
    pub name: String,
}

/// Refers to an object by group, kind, name and optional namespace.
#[api]
pub struct TypedObjectReference {
    /// API group of the object; empty or unset means the core group.
    #[field(1, always)]
    pub api_group: Option<String>,
    /// Kind of the referenced object.
    #[field(2, always, required)]
    pub kind: String,
    /// Name of the referenced object.
    #[field(3, always, required)]
    pub name: String,
    /// Namespace of the object; another namespace needs a ReferenceGrant there.
    #[field(4)]
    pub namespace: Option<String>,
}

/// Refers to a Secret by name and namespace.
#[api(atomic)]
pub struct SecretReference {
    /// Name of the Secret.
    #[field(1)]
    pub name: String,
    /// Namespace of the Secret.
    #[field(2)]
    pub namespace: String,
}
