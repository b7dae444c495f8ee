//! How stored bytes become objects. The registry implements it per resource.

use api_machinery::object::Object;

/// Decodes the values of one resource, as they were written.
pub trait Codec: Send + Sync + 'static {
    /// Decodes a value; the caller sets the resource version.
    ///
    /// # Errors
    /// Says why the value is not an object of the resource.
    fn decode(&self, value: &[u8]) -> Result<Box<dyn Object>, String>;

    /// An object without content, of the type of those that are decoded.
    fn empty(&self) -> Box<dyn Object>;
}

/// A stored value that is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CorruptObject {
    /// The storage key.
    pub key: String,
    /// What is wrong with the value.
    pub message: String,
    /// Where reading it ended.
    pub stage: CorruptStage,
}

/// Where the reading of a stored value ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorruptStage {
    /// It cannot be brought into the form that was written, such as for want of a key.
    Transformed,
    /// It is not an object of its resource.
    Decoded,
}
