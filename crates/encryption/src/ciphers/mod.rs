//! One key and what it does with a value. Each cipher is a file, and a line in [`Algorithm`].

mod aes_cbc;
mod aes_gcm;
mod extended_nonce;
mod secretbox;

/// Why a cipher cannot do its work, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CipherError {
    /// A key has a length that the cipher does not take.
    #[error("crypto/aes: invalid key size {0}")]
    AesKey(usize),
    #[error("{0}")]
    SecretboxKey(crypto_secretbox::cipher::InvalidLength),
    #[error("invalid seed length {0} used for key generation")]
    Seed(usize),
    #[error("the system gives no random numbers")]
    NoRandomness,
    #[error("the value cannot be encrypted")]
    Unencryptable,
    #[error("the value is too large to be encrypted")]
    TooLarge,
    /// A stored value does not hold what the cipher puts before it.
    #[error("the stored data was shorter than the required size")]
    TooShort,
    #[error("the stored data is not a multiple of the block size")]
    NotBlocks,
    #[error("the stored data is empty")]
    Empty,
    #[error("invalid padding on input")]
    Padding,
    #[error("cipher: message authentication failed")]
    Unauthentic,
    /// What golang.org/x/crypto says of a box that does not open.
    #[error("output array was not large enough for encryption")]
    Unopened,
}

pub(crate) use extended_nonce::{SEED_BYTES, with_seed};

/// One key.
pub(crate) trait Cipher: Send + Sync {
    /// Encrypts a value; `place` is where it will lie.
    fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, CipherError>;

    /// Decrypts what lies at `place`.
    fn open(&self, place: &[u8], stored: &[u8]) -> Result<Vec<u8>, CipherError>;
}

/// A cipher with its key.
pub(crate) type WithKey = Result<Box<dyn Cipher>, CipherError>;

/// A kind of cipher.
pub(crate) struct Algorithm {
    /// What stored values begin with.
    pub(crate) prefix: &'static str,
    /// What is said when no key of the provider has the name that a value states.
    pub(crate) no_key: &'static str,
    /// The lengths that a key may have, in bytes.
    pub(crate) key_lengths: &'static [usize],
    /// Makes a cipher of a key of one of these lengths.
    pub(crate) with_key: fn(&[u8]) -> WithKey,
}

const AES_KEYS: &[usize] = &[16, 24, 32];
const NO_AES_KEY: &str = "no matching key was found for the provided AES transformer";

pub(crate) static AES_GCM: Algorithm =
    Algorithm { prefix: "k8s:enc:aesgcm:v1:", no_key: NO_AES_KEY, key_lengths: AES_KEYS, with_key: aes_gcm::with_key };
pub(crate) static AES_CBC: Algorithm =
    Algorithm { prefix: "k8s:enc:aescbc:v1:", no_key: NO_AES_KEY, key_lengths: AES_KEYS, with_key: aes_cbc::with_key };
pub(crate) static SECRETBOX: Algorithm = Algorithm {
    prefix: "k8s:enc:secretbox:v1:",
    no_key: "no matching key was found for the provided Secretbox transformer",
    key_lengths: &[32],
    with_key: secretbox::with_key,
};

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], CipherError> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| CipherError::NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
