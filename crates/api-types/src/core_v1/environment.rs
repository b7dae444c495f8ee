//! EnvVar and what it is made of.

use api_machinery::api;
use api_machinery::quantity::Quantity;

use super::LocalObjectReference;

/// An environment variable of a container.
#[api]
pub struct EnvVar {
    /// Variable name; may contain printable ASCII characters except "=".
    #[field(1, always, required)]
    pub name: String,
    /// Value; $(VAR_NAME) references expand and $$ escapes; default empty.
    #[field(2)]
    pub value: String,
    /// Source of the value; may not be combined with value.
    #[field(3)]
    pub value_from: Option<Box<EnvVarSource>>,
}

/// Source of a variable's value; exactly one member is set.
#[api]
pub struct EnvVarSource {
    /// Takes the value of a field of the pod.
    #[field(1)]
    pub field_ref: Option<ObjectFieldSelector>,
    /// Takes a resource limit or request of a container.
    #[field(2)]
    pub resource_field_ref: Option<ResourceFieldSelector>,
    /// Takes the value of a ConfigMap key.
    #[field(3)]
    pub config_map_key_ref: Option<ConfigMapKeySelector>,
    /// Takes the value of a Secret key.
    #[field(4)]
    pub secret_key_ref: Option<SecretKeySelector>,
    /// Takes the value of a key in a volume's env file.
    #[field(5)]
    pub file_key_ref: Option<FileKeySelector>,
}

/// Selects a field of the pod.
#[api(atomic)]
pub struct ObjectFieldSelector {
    /// API version that the path is written for; default v1.
    #[field(1, fill = "\"v1\"")]
    pub api_version: String,
    /// Path of the field, for example metadata.name.
    #[field(2, always, required)]
    pub field_path: String,
}

/// Selects a resource of a container as a number.
#[api(atomic)]
pub struct ResourceFieldSelector {
    /// Name of the container; required in volumes, optional for variables.
    #[field(1)]
    pub container_name: String,
    /// Resource to select, for example limits.cpu or requests.memory.
    #[field(2, always, required)]
    pub resource: String,
    /// Unit that the value is divided by; default 1.
    #[field(3)]
    pub divisor: Quantity,
}

/// Selects one key of a ConfigMap.
#[api(atomic)]
pub struct ConfigMapKeySelector {
    /// The ConfigMap to read, in the pod's namespace.
    #[field(1, inline)]
    pub local_object_reference: LocalObjectReference,
    /// Key to read.
    #[field(2, always, required)]
    pub key: String,
    /// Whether the ConfigMap or key may be missing; default false.
    #[field(3)]
    pub optional: Option<bool>,
}

/// Selects one key of a Secret.
#[api(atomic)]
pub struct SecretKeySelector {
    /// The Secret to read, in the pod's namespace.
    #[field(1, inline)]
    pub local_object_reference: LocalObjectReference,
    /// Key to read; it must be a valid secret key.
    #[field(2, always, required)]
    pub key: String,
    /// Whether the Secret or key may be missing; default false.
    #[field(3)]
    pub optional: Option<bool>,
}

/// Selects a key of an env file in a volume.
#[api(atomic)]
pub struct FileKeySelector {
    /// Name of the emptyDir volume that holds the file.
    #[field(1, always, required)]
    pub volume_name: String,
    /// File path inside the volume; it may not contain "..".
    #[field(2, always, required)]
    pub path: String,
    /// Key in the file whose value is used.
    #[field(3, always, required)]
    pub key: String,
    /// Whether the file or key may be missing; default false.
    #[field(4, default = "false", fill = "false")]
    pub optional: Option<bool>,
}

/// Turns all keys of a ConfigMap or Secret into variables.
#[api]
pub struct EnvFromSource {
    /// Text put before each variable name; printable ASCII except "=".
    #[field(1)]
    pub prefix: String,
    /// The ConfigMap to take the keys from.
    #[field(2)]
    pub config_map_ref: Option<ConfigMapEnvSource>,
    /// The Secret to take the keys from.
    #[field(3)]
    pub secret_ref: Option<SecretEnvSource>,
}

/// A ConfigMap whose keys become environment variables.
#[api]
pub struct ConfigMapEnvSource {
    /// The ConfigMap to read, in the pod's namespace.
    #[field(1, inline)]
    pub local_object_reference: LocalObjectReference,
    /// Whether the ConfigMap may be missing; default false.
    #[field(2)]
    pub optional: Option<bool>,
}

/// A Secret whose keys become environment variables.
#[api]
pub struct SecretEnvSource {
    /// The Secret to read, in the pod's namespace.
    #[field(1, inline)]
    pub local_object_reference: LocalObjectReference,
    /// Whether the Secret may be missing; default false.
    #[field(2)]
    pub optional: Option<bool>,
}
