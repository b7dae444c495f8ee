//! EncryptionConfiguration: how values lie in the store.

use api_machinery::api;
use api_machinery::time::GoDuration;

/// Which resources are encrypted, and how.
#[api]
pub struct EncryptionConfiguration {
    /// Resources and their providers.
    #[field(0, always)]
    pub resources: Vec<ResourceConfiguration>,
}

/// Some resources and their providers.
#[api]
pub struct ResourceConfiguration {
    /// The resources, such as `secrets`, `widgets.example.com`, `*.apps`, `*.` (the core group) and `*.*`.
    #[field(0, always)]
    pub resources: Vec<String>,
    /// The first writes, all read.
    #[field(0, always)]
    pub providers: Vec<ProviderConfiguration>,
}

/// One provider.
#[api]
pub struct ProviderConfiguration {
    /// AES in GCM.
    #[field(0)]
    pub aesgcm: Option<AESConfiguration>,
    /// AES in CBC.
    #[field(0)]
    pub aescbc: Option<AESConfiguration>,
    /// XSalsa20 and Poly1305.
    #[field(0)]
    pub secretbox: Option<SecretboxConfiguration>,
    /// Values as they are.
    #[field(0)]
    pub identity: Option<IdentityConfiguration>,
    /// A service that keeps the keys.
    #[field(0)]
    pub kms: Option<KMSConfiguration>,
}

/// Keys for AES.
#[api]
pub struct AESConfiguration {
    /// The first writes, all read. 16, 24 or 32 bytes each.
    #[field(0, always)]
    pub keys: Vec<Key>,
}

/// Keys for secretbox.
#[api]
pub struct SecretboxConfiguration {
    /// The first writes, all read. 32 bytes each.
    #[field(0, always)]
    pub keys: Vec<Key>,
}

/// A key.
#[api]
pub struct Key {
    /// Its name, which is stored beside what it encrypts.
    #[field(0, always)]
    pub name: String,
    /// Its bytes, in base64.
    #[field(0, always, secret)]
    pub secret: String,
}

/// Values as they are.
#[api]
pub struct IdentityConfiguration {}

/// A service that keeps the keys.
#[api]
pub struct KMSConfiguration {
    /// v1 or v2.
    #[field(0, fill = "\"v1\"")]
    pub api_version: String,
    /// Its name, which is stored beside what it encrypts.
    #[field(0, always)]
    pub name: String,
    /// How many keys are remembered; v1 only.
    #[field(0, name = "cachesize")]
    pub cache_size: Option<i32>,
    /// Its socket, `unix:///path`.
    #[field(0, always)]
    pub endpoint: String,
    /// How long a call may take.
    #[field(0, fill = "\"3s\"")]
    pub timeout: Option<GoDuration>,
}
