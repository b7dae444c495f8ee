//! AES in Cipher Block Chaining: 16 random bytes and the ciphertext of the value, padded as PKCS#7 says. Nothing says
//! whether it was changed, nor where it was written: upstream keeps it for clusters that have it.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, AES_CBC_IV_LEN, Algorithm, DecryptionContext, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use super::{Cipher, CipherError, WithKey, random};

struct AesCbc {
    encrypting: PaddedBlockEncryptingKey,
    decrypting: PaddedBlockDecryptingKey,
}

pub(super) fn with_key(key: &[u8]) -> WithKey {
    let algorithm: &'static Algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        _ => &AES_256,
    };
    let unusable = |_| CipherError::AesKey(key.len());
    let unbound = || UnboundCipherKey::new(algorithm, key);
    let encrypting = unbound().and_then(PaddedBlockEncryptingKey::cbc_pkcs7).map_err(unusable)?;
    let decrypting = unbound().and_then(PaddedBlockDecryptingKey::cbc_pkcs7).map_err(unusable)?;
    Ok(Box::new(AesCbc { encrypting, decrypting }))
}

impl Cipher for AesCbc {
    fn seal(&self, _: &[u8], plain: &[u8]) -> Result<Vec<u8>, CipherError> {
        let start: [u8; AES_CBC_IV_LEN] = random()?;
        let mut sealed = plain.to_vec();
        let context = EncryptionContext::Iv128(FixedLength::from(start));
        let encrypted = self.encrypting.less_safe_encrypt(&mut sealed, context);
        encrypted.map_err(|_| CipherError::Unencryptable)?;
        sealed.splice(0..0, start);
        Ok(sealed)
    }

    fn open(&self, _: &[u8], stored: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (start, sealed) = stored.split_first_chunk::<AES_CBC_IV_LEN>().ok_or(CipherError::TooShort)?;
        if !sealed.len().is_multiple_of(AES_CBC_IV_LEN) {
            return Err(CipherError::NotBlocks);
        }
        if sealed.is_empty() {
            return Err(CipherError::Empty);
        }
        let mut opened = sealed.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(*start));
        let failed = |_| CipherError::Padding;
        let length = self.decrypting.decrypt(&mut opened, context).map_err(failed)?.len();
        opened.truncate(length);
        Ok(opened)
    }
}
