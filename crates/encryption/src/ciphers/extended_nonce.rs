//! AES-GCM whose key is derived anew for each value (HKDF-Expand with SHA-256, RFC 5869) of one seed and 32 random bytes,
//! which go before what AES-GCM gives. Nonces of 44 bytes, in effect: they do not repeat however much is written.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};

use super::{Cipher, CipherError, WithKey, aes_gcm, random};

/// The length of a seed, in bytes.
pub(crate) const SEED_BYTES: usize = 32;
const INFO_BYTES: usize = 32;
const KEY_BYTES: usize = 32;

struct ExtendedNonce(Prk);

/// The length of a key, for the derivation.
struct KeyLength;

impl KeyType for KeyLength {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

/// Of a seed of at least [`SEED_BYTES`].
pub(crate) fn with_seed(seed: &[u8]) -> WithKey {
    if seed.len() < SEED_BYTES {
        return Err(CipherError::Seed(seed.len()));
    }
    Ok(Box::new(ExtendedNonce(Prk::new_less_safe(HKDF_SHA256, seed))))
}

impl ExtendedNonce {
    fn of_value(&self, info: &[u8]) -> WithKey {
        let mut key = [0; KEY_BYTES];
        let derived = self.0.expand(&[info], KeyLength).and_then(|material| material.fill(&mut key));
        derived.map_err(|_| CipherError::Seed(0))?;
        aes_gcm::with_key(&key)
    }
}

impl Cipher for ExtendedNonce {
    fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, CipherError> {
        let info: [u8; INFO_BYTES] = random()?;
        let sealed = self.of_value(&info)?.seal(place, plain)?;
        Ok([&info[..], &sealed].concat())
    }

    fn open(&self, place: &[u8], stored: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (info, sealed) = stored.split_at_checked(INFO_BYTES).ok_or(CipherError::TooShort)?;
        self.of_value(info)?.open(place, sealed)
    }
}
