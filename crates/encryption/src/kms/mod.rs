//! Providers whose keys a plug-in keeps, which is asked over gRPC: KMS v2, and v1, which is deprecated.
//! <https://kubernetes.io/docs/tasks/administer-cluster/kms-provider/>

mod calls;
mod envelope;
mod health;
mod v1;
mod v2;

use std::sync::Arc;
use std::time::Duration;

use api_types::apiserver_config_v1::KMSConfiguration;
use async_trait::async_trait;
use grpc::{NoSocket, UnixSocket, code_name};
use server_api::tonic::Code;

use crate::Surroundings;
use crate::ciphers::CipherError;
use calls::{CallError, Calls};
use envelope::ObjectError;
use v1::KmsV1;
use v2::KmsV2;

/// How long a call may take where the file says nothing.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a value cannot be encrypted, decrypted, or a plug-in be used, in upstream's words.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum KmsError {
    /// Nothing is known of the plug-in yet.
    #[error("got unexpected nil transformer")]
    NoState,
    #[error("encryptedDEKSource with keyID hash {hash:?} expired at {at} (current time is {now})")]
    Expired { hash: String, at: String, now: String },
    #[error("failed to decrypt DEK, error: {0}")]
    Decrypt(#[source] CallError),
    #[error("failed to encrypt DEK, error: {0}")]
    Encrypt(#[source] CallError),
    #[error("error while decrypting key: {:?}", .0.to_string())]
    DecryptV1(#[source] CallError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    Cipher(#[from] CipherError),
    #[error("{0}")]
    NotRotated(String),
}

impl KmsError {
    /// gRPC's name of the kind of error.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Decrypt(call) | Self::Encrypt(call) | Self::DecryptV1(call) | Self::Call(call) => call.code_name(),
            _ => code_name(Code::Unknown),
        }
    }
}

/// A value that was decrypted.
pub(crate) struct Opened {
    pub(crate) value: Vec<u8>,
    /// Whether it lies under another key than the plug-in encrypts with now.
    pub(crate) stale: bool,
}

/// A provider whose keys a plug-in keeps.
#[async_trait]
pub(crate) trait Plugin: Send + Sync + 'static {
    /// What is stored behind the prefix for a value at `place`.
    async fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, KmsError>;

    /// The value of what is stored behind the prefix at `place`.
    async fn open(&self, place: &[u8], stored: &[u8]) -> Result<Opened, KmsError>;

    /// Whether the plug-in is well. The answer is remembered for a while, so that it can be asked for at any time.
    async fn check(&self) -> Result<(), String>;

    /// What must be done for as long as the provider is used.
    async fn follow(self: Arc<Self>);
}

/// A provider with what is said of it in the file.
pub(crate) struct Kms {
    /// What stored values begin with.
    pub(crate) prefix: String,
    pub(crate) plugin: Arc<dyn Plugin>,
    /// How long checking it may take, of all its calls.
    pub(crate) check_limit: Duration,
    pub(crate) version: Version,
}

/// Which interface a plug-in has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Why a provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPlugin {
    #[error(
        "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set \
         --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
    )]
    Deprecated,
    #[error("could not configure KMS plugin {name:?}: {source}")]
    Socket { name: String, source: NoSocket },
}

impl Kms {
    /// Of a configuration that was found valid. Nothing is asked of the plug-in yet.
    ///
    /// # Errors
    /// When its version is switched off, or its endpoint is no socket.
    pub(crate) fn new(own: &KMSConfiguration, around: &Surroundings) -> Result<Self, NoPlugin> {
        let version = if own.api_version == "v2" { Version::V2 } else { Version::V1 };
        if version == Version::V1 && !around.kms_v1 {
            return Err(NoPlugin::Deprecated);
        }
        let socket = UnixSocket::from_url(&own.endpoint)
            .map_err(|source| NoPlugin::Socket { name: own.name.clone(), source })?;
        let limit = own.timeout.map_or(DEFAULT_TIMEOUT, |limit| limit.to_std());
        let calls = Calls::new(own.name.clone(), &socket, limit, around);
        let plugin: Arc<dyn Plugin> = match version {
            Version::V2 => Arc::new(KmsV2::new(calls, around)),
            Version::V1 => Arc::new(KmsV1::new(calls, own.cache_size, around)),
        };
        let prefix = match version {
            Version::V1 => format!("k8s:enc:kms:v1:{}:", own.name),
            Version::V2 => format!("k8s:enc:kms:v2:{}:", own.name),
        };
        Ok(Self { prefix, plugin, check_limit: limit.saturating_mul(2), version })
    }
}

#[cfg(test)]
mod tests;
