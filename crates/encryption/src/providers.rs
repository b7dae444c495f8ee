//! The providers of some resources in order: the first writes, all read.

use std::sync::Arc;

use api_types::apiserver_config_v1::{Key as KeyConfig, ProviderConfiguration};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use storage::{ReadValue, TransformError};

use crate::Surroundings;
use crate::ciphers::{AES_CBC, AES_GCM, Algorithm, Cipher, CipherError, SECRETBOX};
use crate::kms::{Kms, KmsError, NoPlugin};

/// What all encrypted values begin with.
const ENCRYPTED: &[u8] = b"k8s:enc:";
const NO_MATCH: &str = "no matching prefix found";
/// What is said of an encrypted value of a resource that no rule names.
const NOT_NAMED: &str = "identity transformer tried to read encrypted data";
/// How values as they are are called where prefixes are counted.
pub(crate) const IDENTITY: &str = "identity";
/// How values that nobody can read are called there.
pub(crate) const UNKNOWN: &str = "unknown";

/// One provider, which several resources may share.
pub(crate) enum Provider {
    Identity,
    Keys { algorithm: &'static Algorithm, keys: Vec<NamedKey> },
    Kms(Kms),
}

pub(crate) struct NamedKey {
    /// With a colon.
    name: String,
    cipher: Box<dyn Cipher>,
}

/// Why a provider cannot be made of its configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error(transparent)]
    Kms(#[from] NoPlugin),
    #[error("could not obtain secret: {0}")]
    Secret(#[from] base64::DecodeError),
    #[error(transparent)]
    Key(#[from] CipherError),
}

/// Providers in order.
pub(crate) struct Providers {
    all: Vec<Arc<Provider>>,
    /// What is said of a value that none of them is for.
    unmatched: &'static str,
}

/// How an attempt ended, for the count of them.
pub(crate) struct Attempt<'a, T> {
    pub(crate) prefix: &'a str,
    pub(crate) result: Result<T, Failure>,
}

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    /// gRPC's name of the kind of error.
    pub(crate) code: &'static str,
}

/// The kind of all errors but those of calls.
const NO_CODE: &str = "Unknown";

impl From<CipherError> for Failure {
    fn from(error: CipherError) -> Self {
        Self { message: error.to_string(), code: NO_CODE }
    }
}

impl From<KmsError> for Failure {
    fn from(error: KmsError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl From<Failure> for TransformError {
    fn from(failure: Failure) -> Self {
        Self(failure.message)
    }
}

impl Providers {
    /// Values as they are: for resources that no rule names.
    pub(crate) fn identity() -> Self {
        Self { all: vec![Arc::new(Provider::Identity)], unmatched: NOT_NAMED }
    }

    /// The first writes, all read.
    pub(crate) fn new(all: Vec<Arc<Provider>>) -> Self {
        Self { all, unmatched: NO_MATCH }
    }

    /// A value as it is to lie at `place`.
    pub(crate) async fn seal(&self, place: &[u8], plain: &Bytes) -> Attempt<'_, Bytes> {
        match self.all.first().map(|first| &**first) {
            None | Some(Provider::Identity) => Attempt { prefix: IDENTITY, result: Ok(plain.clone()) },
            Some(Provider::Keys { algorithm, keys }) => {
                let none = || Failure { message: algorithm.no_key.to_owned(), code: NO_CODE };
                let sealed = keys.first().ok_or_else(none).and_then(|key| {
                    let sealed = key.cipher.seal(place, plain)?;
                    Ok([algorithm.prefix.as_bytes(), key.name.as_bytes(), &sealed].concat().into())
                });
                Attempt { prefix: algorithm.prefix, result: sealed }
            }
            Some(Provider::Kms(Kms { prefix, plugin, .. })) => {
                let sealed = plugin.seal(place, plain).await;
                let sealed = sealed.map(|sealed| [prefix.as_bytes(), &sealed].concat().into());
                Attempt { prefix, result: sealed.map_err(Failure::from) }
            }
        }
    }

    /// What lies at `place`, as it was written. Each provider whose prefix it has is tried; stale is what another one
    /// than the first could read.
    pub(crate) async fn open(&self, place: &[u8], stored: &Bytes) -> Attempt<'_, ReadValue> {
        let (mut last, mut failures) = (UNKNOWN, Vec::new());
        for (index, provider) in self.all.iter().enumerate() {
            let Some(rest) = provider.own(stored) else { continue };
            last = provider.prefix();
            match provider.open(place, stored, rest).await {
                Ok(ReadValue { value, stale }) => {
                    let read = ReadValue { value, stale: stale || index > 0 };
                    return Attempt { prefix: last, result: Ok(read) };
                }
                Err(failure) => failures.push(failure),
            }
        }
        Attempt { prefix: last, result: Err(reduced(failures, self.unmatched)) }
    }
}

impl Provider {
    /// Of a configuration that was found valid.
    ///
    /// # Errors
    /// When the provider cannot be used.
    pub(crate) fn new(configuration: &ProviderConfiguration, around: &Surroundings) -> Result<Self, ProviderError> {
        let keys = |algorithm: &'static Algorithm, keys: &[KeyConfig]| {
            let keys = keys.iter().map(|key| named(algorithm, key)).collect::<Result<_, _>>()?;
            Ok(Self::Keys { algorithm, keys })
        };
        match configuration {
            ProviderConfiguration { aesgcm: Some(own), .. } => keys(&AES_GCM, &own.keys),
            ProviderConfiguration { aescbc: Some(own), .. } => keys(&AES_CBC, &own.keys),
            ProviderConfiguration { secretbox: Some(own), .. } => keys(&SECRETBOX, &own.keys),
            ProviderConfiguration { kms: Some(own), .. } => Ok(Self::Kms(Kms::new(own, around)?)),
            _ => Ok(Self::Identity),
        }
    }

    /// What values of the provider are called where they are counted.
    fn prefix(&self) -> &str {
        match self {
            Self::Identity => IDENTITY,
            Self::Keys { algorithm, .. } => algorithm.prefix,
            Self::Kms(kms) => &kms.prefix,
        }
    }

    /// A value without the provider's prefix, where it has that.
    fn own<'v>(&self, stored: &'v Bytes) -> Option<&'v [u8]> {
        match self {
            Self::Identity => (!stored.starts_with(ENCRYPTED)).then_some(stored),
            _ => stored.strip_prefix(self.prefix().as_bytes()),
        }
    }

    /// A value of the provider; `rest` is what follows the prefix.
    async fn open(&self, place: &[u8], stored: &Bytes, rest: &[u8]) -> Result<ReadValue, Failure> {
        match self {
            Self::Identity => Ok(ReadValue { value: stored.clone(), stale: false }),
            Self::Keys { algorithm, keys } => open_with(algorithm, keys, place, rest),
            Self::Kms(kms) => {
                let opened = kms.plugin.open(place, rest).await?;
                Ok(ReadValue { value: opened.value.into(), stale: opened.stale })
            }
        }
    }
}

/// Tries each key of the name that a value states; stale is what another key than the first could read.
fn open_with(algorithm: &Algorithm, keys: &[NamedKey], place: &[u8], stored: &[u8]) -> Result<ReadValue, Failure> {
    let mut failures = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let Some(sealed) = stored.strip_prefix(key.name.as_bytes()) else { continue };
        match key.cipher.open(place, sealed) {
            Ok(value) => return Ok(ReadValue { value: value.into(), stale: index > 0 }),
            Err(error) => failures.push(error.into()),
        }
    }
    Err(reduced(failures, algorithm.no_key))
}

/// Several failures as one, whose text is upstream's.
fn reduced(mut failures: Vec<Failure>, none: &str) -> Failure {
    match (failures.pop(), failures.is_empty()) {
        (None, _) => Failure { message: none.to_owned(), code: NO_CODE },
        (Some(only), true) => only,
        (Some(last), false) => {
            let all: Vec<String> = failures.into_iter().chain([last]).map(|failure| failure.message).collect();
            Failure { message: format!("[{}]", all.join(", ")), code: NO_CODE }
        }
    }
}

fn named(algorithm: &Algorithm, key: &KeyConfig) -> Result<NamedKey, ProviderError> {
    let secret = STANDARD.decode(&key.secret)?;
    Ok(NamedKey { name: format!("{}:", key.name), cipher: (algorithm.with_key)(&secret)? })
}
