//! What stands for a text where it is not to be shown.

use std::fmt::Write as _;

use aws_lc_rs::digest;

/// `sha256:` and the digest in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
