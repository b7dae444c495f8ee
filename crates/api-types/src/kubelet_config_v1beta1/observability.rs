//! The log and traces.

use api_machinery::api;
use api_machinery::leaf::RawJson;

/// The log.
#[api]
pub struct LoggingConfiguration {
    /// text or json.
    #[field(0, fill = "\"text\"")]
    pub format: String,
    /// Longest time between two flushes: a duration, or nanoseconds.
    #[field(0, fill = "\"5s\"")]
    pub flush_frequency: RawJson,
    /// The log's verbosity.
    #[field(0)]
    pub verbosity: i64,
    /// Verbosity by file.
    #[field(0)]
    pub vmodule: Vec<VModuleItem>,
    /// Options by format.
    #[field(0)]
    pub options: FormatOptions,
}

/// The verbosity of some files.
#[api]
pub struct VModuleItem {
    /// The files.
    #[field(0)]
    pub file_pattern: String,
    /// The log's verbosity.
    #[field(0)]
    pub verbosity: i64,
}

/// Options of the log's formats.
#[api]
pub struct FormatOptions {
    /// Of the text format.
    #[field(0)]
    pub text: OutputRoutingOptions,
    /// Of the JSON format.
    #[field(0)]
    pub json: OutputRoutingOptions,
}

/// Where a format writes to.
#[api]
pub struct OutputRoutingOptions {
    /// Whether errors and the rest go to different streams.
    #[field(0)]
    pub split_stream: bool,
    /// Buffer of the rest.
    #[field(0, fill = "\"0\"")]
    pub info_buffer_size: String,
}
