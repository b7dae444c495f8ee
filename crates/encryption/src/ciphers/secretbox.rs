//! XSalsa20 and Poly1305, as NaCl's secretbox: 24 random bytes, a tag of 16 bytes, the ciphertext. The place is not
//! covered.

use crypto_secretbox::aead::Aead as _;
use crypto_secretbox::{KeyInit as _, Nonce, XSalsa20Poly1305};

use super::{Cipher, CipherError, WithKey, random};

const NONCE_BYTES: usize = 24;

struct Secretbox(XSalsa20Poly1305);

pub(super) fn with_key(key: &[u8]) -> WithKey {
    let cipher = XSalsa20Poly1305::new_from_slice(key).map_err(CipherError::SecretboxKey)?;
    Ok(Box::new(Secretbox(cipher)))
}

impl Cipher for Secretbox {
    fn seal(&self, _: &[u8], plain: &[u8]) -> Result<Vec<u8>, CipherError> {
        let nonce: [u8; NONCE_BYTES] = random()?;
        let sealed = self.0.encrypt(Nonce::from_slice(&nonce), plain);
        let sealed = sealed.map_err(|_| CipherError::TooLarge)?;
        Ok([&nonce[..], &sealed].concat())
    }

    fn open(&self, _: &[u8], stored: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (nonce, sealed) = stored.split_at_checked(NONCE_BYTES).ok_or(CipherError::TooShort)?;
        let opened = self.0.decrypt(Nonce::from_slice(nonce), sealed);
        opened.map_err(|_| CipherError::Unopened)
    }
}
