//! The flag of traces, and the file that it names: a TracingConfiguration.
//! Concept: <https://kubernetes.io/docs/concepts/cluster-administration/system-traces/>

use std::path::Path;

use api_types::apiserver_config_v1::{API_VERSIONS, TracingConfiguration, decode};
use component_base::config_file;
use component_base::flags::{Errors, Flag, FlagSet, Options};
use tracing_otlp::TracingSettings;

const FILE: &str = "tracing-config-file";
const KIND: &str = "TracingConfiguration";

pub(super) const FLAGS: FlagSet = FlagSet {
    title: "traces",
    flags: &[Flag::string(FILE, "").help("File with apiserver tracing configuration: a TracingConfiguration.")],
};

/// Where traces go; nowhere without the flag.
pub(super) fn read(options: &Options, errors: &mut Errors) -> Option<TracingSettings> {
    let file = options.string(FILE);
    if file.is_empty() {
        return None;
    }
    let settings = settings(Path::new(file)).unwrap_or_else(|problem| {
        errors.push(problem);
        TracingSettings::default()
    });
    for problem in settings.problems(None).iter() {
        errors.push(format!("failed to validate tracing configuration: {problem}"));
    }
    Some(settings)
}

fn settings(file: &Path) -> Result<TracingSettings, String> {
    let told = |problem: String| format!("unable to decode tracing configuration data of {file:?}: {problem}");
    let text = config_file::read(file)
        .map_err(|error| format!("unable to read tracing configuration from {file:?}: {error}"))?;
    let value = config_file::parse(&text).map_err(told)?;
    let mut stated = TracingConfiguration::default();
    decode(value, KIND, &API_VERSIONS, &mut stated).map_err(told)?;
    let TracingConfiguration { endpoint, sampling_rate_per_million } = stated;
    Ok(TracingSettings { endpoint, sampling_rate_per_million })
}

#[cfg(test)]
mod tests {
    use component_base::flags::parse;

    use super::*;

    fn read_text(text: &str) -> Result<Option<TracingSettings>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let options = parse(&[FLAGS], [format!("--{FILE}={}", file.path().display())]).unwrap();
        let mut errors = Errors::new();
        let settings = read(&options, &mut errors);
        errors.into_result().map(|()| settings).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_says_where_traces_go() {
        for version in ["v1", "v1beta1", "v1alpha1"] {
            let text =
                format!("apiVersion: apiserver.config.k8s.io/{version}\nkind: {KIND}\nsamplingRatePerMillion: 5\n");
            let settings = read_text(&text).unwrap().unwrap();
            assert_eq!((settings.endpoint(), settings.sampling_rate_per_million), ("localhost:4317", Some(5)));
        }
        let options = parse(&[FLAGS], []).unwrap();
        assert_eq!(read(&options, &mut Errors::new()), None);
    }

    #[test]
    fn mistakes_in_the_file_are_told() {
        let head = format!("apiVersion: apiserver.config.k8s.io/v1\nkind: {KIND}\n");
        for (text, expected) in [
            (String::new(), "Object 'Kind' is missing"),
            (head.replace("/v1", "/v2"), "no kind \"TracingConfiguration\" is registered for version"),
            (format!("{head}endpoints: x\n"), "unknown field \"endpoints\""),
            (format!("{head}samplingRatePerMillion: -1\n"), "Invalid value: -1: sampling rate must be positive"),
            (format!("{head}endpoint: http://x:1\n"), "unsupported scheme: http.  Options are none, dns, unix"),
            ("{".to_owned(), "unable to decode tracing configuration data"),
        ] {
            let error = read_text(&text).expect_err(&text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        let options = parse(&[FLAGS], [format!("--{FILE}=/nonexistent")]).unwrap();
        let mut errors = Errors::new();
        read(&options, &mut errors);
        assert!(errors.into_result().unwrap_err().to_string().contains("unable to read tracing configuration from"));
    }
}
