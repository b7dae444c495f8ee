//! The file: read, decoded strictly, and checked.

use std::path::Path;

use api_types::apiserver_config_v1::{self, API_VERSION, EncryptionConfiguration};
use component_base::config_file;

use crate::validate::validate;
use component_base::metrics::hash_label;

const KIND: &str = "EncryptionConfiguration";
const OLD_KIND: &str = "EncryptionConfig";
const OLD_VERSION: &str = "v1";

/// Why a file cannot be used; the text names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// A file as it was read.
pub(crate) struct Document {
    pub(crate) text: String,
    /// `sha256:` and the digest in hexadecimal digits.
    pub(crate) hash: String,
}

/// Reads a file without looking at what it says.
///
/// # Errors
/// When it cannot be read, is too large or is not text.
pub(crate) fn read(path: &Path) -> Result<Document, ConfigError> {
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        ConfigError(format!("error {what} encryption provider configuration file {path:?}: {why}"))
    };
    let size = std::fs::metadata(path).map_err(|error| failed("opening", &error))?.len();
    if size > config_file::MAX_BYTES {
        return Err(failed("reading", &format_args!("it is larger than {} bytes", config_file::MAX_BYTES)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed("reading", &error))?;
    let hash = hash_label(text.as_bytes());
    Ok(Document { text, hash })
}

/// The configuration that a text states.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn parse(path: &Path, text: &str, reloads: bool) -> Result<EncryptionConfiguration, ConfigError> {
    if text.is_empty() {
        return Err(ConfigError(format!("encryption provider configuration file {path:?} is empty")));
    }
    let configuration = decode(text)
        .map_err(|why| ConfigError(format!("error decoding encryption provider configuration file {path:?}: {why}")))?;
    validate(&configuration, reloads).into_result().map_err(|errors| ConfigError(errors.to_string()))?;
    Ok(configuration)
}

fn decode(text: &str) -> Result<EncryptionConfiguration, String> {
    let value = config_file::parse(text).map_err(|error| error.to_string())?;
    // There is an old spelling.
    let (kind, versions): (_, &[&str]) = match value.get("kind").and_then(|own| own.as_str()) {
        Some(OLD_KIND) => (OLD_KIND, &[OLD_VERSION]),
        _ => (KIND, &[API_VERSION]),
    };
    let mut configuration = EncryptionConfiguration::default();
    apiserver_config_v1::decode(value, kind, versions, &mut configuration)?;
    Ok(configuration)
}
