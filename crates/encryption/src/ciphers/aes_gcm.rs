//! AES in Galois/Counter Mode: 12 random bytes, the ciphertext, and a tag of 16 bytes that covers the place, too.

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::{Cipher, CipherError, WithKey, random};

struct AesGcm(LessSafeKey);

pub(super) fn with_key(key: &[u8]) -> WithKey {
    let algorithm = match key.len() {
        16 => &AES_128_GCM,
        24 => &AES_192_GCM,
        _ => &AES_256_GCM,
    };
    let key = UnboundKey::new(algorithm, key).map_err(|_| CipherError::AesKey(key.len()))?;
    Ok(Box::new(AesGcm(LessSafeKey::new(key))))
}

impl Cipher for AesGcm {
    fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, CipherError> {
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut sealed = plain.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        let failed = |_| CipherError::TooLarge;
        self.0.seal_in_place_append_tag(unique, Aad::from(place), &mut sealed).map_err(failed)?;
        sealed.splice(0..0, nonce);
        Ok(sealed)
    }

    fn open(&self, place: &[u8], stored: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (nonce, sealed) = stored.split_at_checked(NONCE_LEN).ok_or(CipherError::TooShort)?;
        let failed = |_| CipherError::Unauthentic;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(failed)?;
        let mut opened = sealed.to_vec();
        let length = self.0.open_in_place(nonce, Aad::from(place), &mut opened).map_err(failed)?.len();
        opened.truncate(length);
        Ok(opened)
    }
}
