//! How stored bytes become objects. The registry implements it per resource.

use api_machinery::object::Object;

/// Decodes the values of one resource.
pub trait Codec: Send + Sync + 'static {
    /// Decodes the value of a key; the caller sets the resource version. Encryption at rest, where there is any, is
    /// undone in here: the key is what the ciphertext was bound to.
    ///
    /// # Errors
    /// When the value is not an object of the resource.
    fn decode(&self, key: &str, value: &[u8]) -> Result<Box<dyn Object>, CorruptObject>;
}

/// A stored value that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CorruptObject {
    /// The storage key.
    pub key: String,
    /// What is wrong with the value.
    pub message: String,
}
