//! Why a value cannot be had, in upstream's words: they become the message of `CreateContainerConfigError`. The container
//! is tried again, since what it refers to may come or be mended.

use super::env_file::EnvFileError;
use crate::interfaces::SideError;
use crate::objects::ObjectError;

/// Why a variable, or a file of a volume, has no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvError {
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error("configmap {0:?} not found")]
    NoConfigMap(String),
    #[error("secret {0:?} not found")]
    NoSecret(String),
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey { key: String, kind: &'static str, namespace: String, name: String },
    #[error("cannot find the volume {0:?} referenced by FileKeyRef")]
    NoVolume(String),
    #[error("environment variable key {key:?} not found in file {path:?}")]
    NoFileKey { key: String, path: String },
    #[error("couldn't parse env file: {0}")]
    File(#[from] EnvFileError),
    #[error("unsupported fieldPath: {0}")]
    FieldPath(String),
    #[error("containerName is required")]
    Unnamed,
    #[error("container {0} not found")]
    NoContainer(String),
    #[error("unsupported container resource : {0}")]
    Resource(String),
}

impl From<EnvError> for SideError {
    fn from(error: EnvError) -> Self {
        Self::new(error.to_string())
    }
}
