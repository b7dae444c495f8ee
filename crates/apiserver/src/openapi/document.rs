//! A document of version 3.

use std::time::SystemTime;

use api_machinery::value::Value;
use bytes::Bytes;

use crate::digest::digest;

/// A document and its tag, without quotes.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) json: Bytes,
    pub(crate) hash: String,
    /// When it was made.
    pub(crate) made: SystemTime,
}

impl Document {
    pub(crate) fn new(value: &Value, made: SystemTime) -> Self {
        let json = value.to_string();
        Self { hash: digest(json.as_bytes()), json: json.into(), made }
    }
}
