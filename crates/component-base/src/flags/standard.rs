//! Flags that every component has.

use super::{Flag, FlagSet};

/// Help and version.
pub const GLOBAL: FlagSet = FlagSet {
    title: "global",
    flags: &[
        Flag::bool("help", "false").short('h').help("Show what the component does and its flags."),
        Flag::version().help("--version, --version=raw prints version information and quits"),
    ],
};

/// The log; read by `logging::LogOptions`.
pub const LOGS: FlagSet = FlagSet {
    title: "logs",
    flags: &[
        Flag::duration("log-flush-frequency", "5s").help("Longest time between two flushes of the log."),
        Flag::string("log-json-info-buffer-size", "0")
            .value_name("quantity")
            .help("[Alpha] Buffer for info messages in JSON with split streams. Needs LoggingAlphaOptions."),
        Flag::bool("log-json-split-stream", "false")
            .help("[Alpha] In JSON, write errors to stderr and the rest to stdout. Needs LoggingAlphaOptions."),
        Flag::string("log-text-info-buffer-size", "0")
            .value_name("quantity")
            .help("[Alpha] Buffer for info messages in text with split streams. Needs LoggingAlphaOptions."),
        Flag::bool("log-text-split-stream", "false")
            .help("[Alpha] In text, write errors to stderr and the rest to stdout. Needs LoggingAlphaOptions."),
        Flag::string("logging-format", "text").help("The log's format. Permitted formats: \"json\", \"text\"."),
        Flag::int32("v", "0").short('v').value_name("Level").help("number for the log level verbosity"),
        Flag::string("vmodule", "").value_name("pattern=N,...").help(
            "comma-separated list of pattern=N settings for file-filtered logging (only works for text log format)",
        ),
    ],
};

/// Which metrics are shown; read by `metrics::MetricsOptions`.
pub const METRICS: FlagSet = FlagSet {
    title: "metrics",
    flags: &[
        Flag::string_array("allow-metric-labels", "").value_name("stringToString").help(
            "Allowed values of metric labels: <metric>,<label>='<value>,<value>...'. Other values become \"unexpected\". \
             May be given several times.",
        ),
        Flag::string("allow-metric-labels-manifest", "")
            .help("File with allowed values of metric labels, in the form of --allow-metric-labels as a YAML map."),
        Flag::string_slice("disabled-metrics", "").help("Names of metrics that are not to be shown."),
        Flag::string("show-hidden-metrics-for-version", "").help(
            "The previous minor version (<major>.<minor>) whose hidden metrics are to be shown once more. No other \
             version is accepted.",
        ),
    ],
};

/// Feature gates; read by [`super::gates`]. `--help` adds the component's gates.
pub const FEATURE_GATES: Flag = Flag::map_bare_keys("feature-gates", "")
    .value_name("colonSeparatedMultimapStringString")
    .help("Comma-separated component:key=value pairs that turn features on and off. Without a component it is kube.");
