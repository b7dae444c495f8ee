//! The providers of some resources in order: the first writes, all read.

use api_types::apiserver_config_v1::{Key as KeyConfig, ProviderConfiguration};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use storage::{ReadValue, TransformError};

use crate::ciphers::{AES_CBC, AES_GCM, Algorithm, Cipher, CipherError, SECRETBOX};

/// What all encrypted values begin with.
const ENCRYPTED: &[u8] = b"k8s:enc:";
const NO_MATCH: &str = "no matching prefix found";
/// What is said of an encrypted value of a resource that no rule names.
const NOT_NAMED: &str = "identity transformer tried to read encrypted data";
/// How values as they are are called where prefixes are counted.
pub(crate) const IDENTITY: &str = "identity";
/// How values that nobody can read are called there.
pub(crate) const UNKNOWN: &str = "unknown";

/// One provider.
enum Provider {
    Identity,
    Keys { algorithm: &'static Algorithm, keys: Vec<NamedKey> },
}

struct NamedKey {
    /// With a colon.
    name: String,
    cipher: Box<dyn Cipher>,
}

/// Why a provider cannot be made of its configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error("the KMS provider {0:?} cannot be used: this server has no KMS providers")]
    Kms(String),
    #[error("could not obtain secret: {0}")]
    Secret(#[from] base64::DecodeError),
    #[error(transparent)]
    Key(#[from] CipherError),
}

/// A list of providers.
pub(crate) struct Providers {
    all: Vec<Provider>,
    /// What is said of a value that none of them is for.
    unmatched: &'static str,
}

/// How an attempt ended, for the count of them.
pub(crate) struct Attempt<T> {
    pub(crate) prefix: &'static str,
    pub(crate) result: Result<T, TransformError>,
}

impl Providers {
    /// Values as they are: for resources that no rule names.
    pub(crate) fn identity() -> Self {
        Self { all: vec![Provider::Identity], unmatched: NOT_NAMED }
    }

    /// Of a configuration that was found valid.
    ///
    /// # Errors
    /// When a provider is not one that this server has.
    pub(crate) fn new(configurations: &[ProviderConfiguration]) -> Result<Self, ProviderError> {
        let all = configurations.iter().map(provider).collect::<Result<_, _>>()?;
        Ok(Self { all, unmatched: NO_MATCH })
    }

    /// A value as it is to lie at `place`.
    pub(crate) fn seal(&self, place: &[u8], plain: &Bytes) -> Attempt<Bytes> {
        match self.all.first() {
            None | Some(Provider::Identity) => Attempt { prefix: IDENTITY, result: Ok(plain.clone()) },
            Some(Provider::Keys { algorithm, keys }) => {
                let key = keys.first().ok_or_else(|| TransformError(algorithm.no_key.to_owned()));
                let sealed = key.and_then(|key| {
                    let sealed = key.cipher.seal(place, plain).map_err(|error| TransformError(error.to_string()))?;
                    Ok([algorithm.prefix.as_bytes(), key.name.as_bytes(), &sealed].concat().into())
                });
                Attempt { prefix: algorithm.prefix, result: sealed }
            }
        }
    }

    /// What lies at `place`, as it was written. Each provider whose prefix it has is tried; stale is what another one
    /// than the first could read.
    pub(crate) fn open(&self, place: &[u8], stored: &Bytes) -> Attempt<ReadValue> {
        let (mut last, mut errors) = (UNKNOWN, Vec::new());
        for (index, provider) in self.all.iter().enumerate() {
            match provider {
                Provider::Identity if stored.starts_with(ENCRYPTED) => {}
                Provider::Identity => {
                    let read = ReadValue { value: stored.clone(), stale: index > 0 };
                    return Attempt { prefix: IDENTITY, result: Ok(read) };
                }
                Provider::Keys { algorithm, keys } => {
                    let Some(rest) = stored.strip_prefix(algorithm.prefix.as_bytes()) else { continue };
                    last = algorithm.prefix;
                    match open_with(algorithm, keys, place, rest) {
                        Ok((value, stale)) => {
                            let read = ReadValue { value: value.into(), stale: stale || index > 0 };
                            return Attempt { prefix: last, result: Ok(read) };
                        }
                        Err(error) => errors.push(error),
                    }
                }
            }
        }
        Attempt { prefix: last, result: Err(reduced(&errors, self.unmatched)) }
    }
}

/// Tries each key of the name that a value states; gives whether it was another one than the first.
fn open_with(
    algorithm: &Algorithm,
    keys: &[NamedKey],
    place: &[u8],
    stored: &[u8],
) -> Result<(Vec<u8>, bool), TransformError> {
    let mut errors = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let Some(sealed) = stored.strip_prefix(key.name.as_bytes()) else { continue };
        match key.cipher.open(place, sealed) {
            Ok(value) => return Ok((value, index > 0)),
            Err(error) => errors.push(error),
        }
    }
    Err(reduced(&errors, algorithm.no_key))
}

/// Several errors as one, whose text is upstream's.
fn reduced<E: ToString>(errors: &[E], none: &str) -> TransformError {
    TransformError(match errors {
        [] => none.to_owned(),
        [only] => only.to_string(),
        _ => format!("[{}]", errors.iter().map(E::to_string).collect::<Vec<_>>().join(", ")),
    })
}

fn provider(configuration: &ProviderConfiguration) -> Result<Provider, ProviderError> {
    let keys = |algorithm: &'static Algorithm, keys: &[KeyConfig]| {
        let keys = keys.iter().map(|key| named(algorithm, key)).collect::<Result<_, _>>()?;
        Ok(Provider::Keys { algorithm, keys })
    };
    match configuration {
        ProviderConfiguration { aesgcm: Some(own), .. } => keys(&AES_GCM, &own.keys),
        ProviderConfiguration { aescbc: Some(own), .. } => keys(&AES_CBC, &own.keys),
        ProviderConfiguration { secretbox: Some(own), .. } => keys(&SECRETBOX, &own.keys),
        ProviderConfiguration { kms: Some(own), .. } => Err(ProviderError::Kms(own.name.clone())),
        _ => Ok(Provider::Identity),
    }
}

fn named(algorithm: &Algorithm, key: &KeyConfig) -> Result<NamedKey, ProviderError> {
    let secret = STANDARD.decode(&key.secret)?;
    Ok(NamedKey { name: format!("{}:", key.name), cipher: (algorithm.with_key)(&secret)? })
}
