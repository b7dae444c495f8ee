//! The configuration file: reading it strictly, filling in defaults, checking it, and building profiles from it.

mod defaults;
mod profiles;
#[cfg(test)]
mod tests;
mod validate;

use api_machinery::field_path::ErrorList;
use api_machinery::json;
use api_machinery::value::Value;
use api_types::scheduler_config_v1::{API_VERSION, KubeSchedulerConfiguration};
use component_base::Gates;

pub use defaults::add_gated;
pub(crate) use profiles::BATCHING;
pub use profiles::{ProfileError, build_profiles};

use crate::plugin_args::{ArgsError, take_type};

/// The kind of the file.
pub(crate) const KIND: &str = "KubeSchedulerConfiguration";

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is something else.
    #[error("couldn't decode as KubeSchedulerConfiguration, got {0}: ")]
    OtherKind(String),
    /// It is not well formed.
    #[error("{0}")]
    Decode(String),
    /// It has unknown or repeated fields.
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
    /// The arguments of a plugin cannot be read.
    #[error("decoding .profiles[{profile}].pluginConfig[{place}]: {reason}")]
    Args {
        /// The profile's place.
        profile: usize,
        /// The arguments' place.
        place: usize,
        /// Why.
        reason: ArgsError,
    },
    /// It does not make sense.
    #[error("{0}")]
    Invalid(ErrorList),
}

/// Reads a configuration and fills in what it leaves out. It is checked by [`validate`], once flags have had their say.
///
/// # Errors
/// When it is not well formed, or has fields that nobody knows.
pub fn decode(value: &Value) -> Result<KubeSchedulerConfiguration, ConfigError> {
    let mut value = value.clone();
    let (api_version, kind) = take_type(&mut value);
    if kind != KIND || api_version != API_VERSION {
        return Err(ConfigError::OtherKind(format!("{api_version}, Kind={kind}")));
    }
    let mut configuration = KubeSchedulerConfiguration::default();
    let decoded = json::decode(value.to_string().as_bytes(), &mut configuration)
        .map_err(|error| ConfigError::Decode(error.to_string()))?;
    if !decoded.problems.is_empty() {
        return Err(ConfigError::Strict(decoded.problems));
    }
    defaults::fill(&mut configuration)?;
    Ok(configuration)
}

/// The configuration without a file.
#[must_use]
pub fn default_configuration() -> KubeSchedulerConfiguration {
    let mut configuration = KubeSchedulerConfiguration::default();
    let filled = defaults::fill(&mut configuration);
    debug_assert!(filled.is_ok(), "{filled:?}");
    configuration
}

/// Checks a configuration whose defaults are filled in, by the features that are on.
///
/// # Errors
/// With everything that is wrong.
pub fn validate(configuration: &KubeSchedulerConfiguration, gates: &Gates) -> Result<(), ConfigError> {
    validate::check(configuration, gates).into_result().map_err(ConfigError::Invalid)
}

/// The configuration as a file.
#[must_use]
pub fn encode(configuration: &KubeSchedulerConfiguration) -> String {
    json::encode_typed(KIND, API_VERSION, configuration)
}
