//! What a `TracingConfiguration` states.

use api_machinery::field_path::{ErrorList, Path};

/// Where a collector listens that runs on the same machine.
pub const DEFAULT_ENDPOINT: &str = "localhost:4317";
pub(crate) const MILLION: u64 = 1_000_000;

/// Where traces go, and how many of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracingSettings {
    /// The collector, as gRPC names targets; that on the same machine where there is none.
    pub endpoint: Option<String>,
    /// Requests that are recorded, of a million; none where it does not say.
    pub sampling_rate_per_million: Option<i32>,
}

impl TracingSettings {
    /// The collector.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_deref().unwrap_or(DEFAULT_ENDPOINT)
    }

    /// What is wrong, in upstream's words. `path` is where the settings stand; nothing at the top of a file.
    #[must_use]
    pub fn problems(&self, path: Option<&Path>) -> ErrorList {
        let at = |name: &'static str| path.map_or_else(|| Path::new(name), |path| path.child(name));
        let mut errors = ErrorList::default();
        if let Some(rate) = self.sampling_rate_per_million {
            let at = at("samplingRatePerMillion");
            if rate < 0 {
                errors.push(at.invalid(rate, "sampling rate must be positive"));
            }
            if i64::from(rate) > 1_000_000 {
                let detail = "sampling rate per million must be less than or equal to one million";
                errors.push(at.invalid(rate, detail));
            }
        }
        if let Some(endpoint) = &self.endpoint {
            let target = if endpoint.contains("//") { endpoint.clone() } else { format!("dns://{endpoint}") };
            let scheme = target.split("://").next().unwrap_or_default();
            if !matches!(scheme, "dns" | "unix" | "unix-abstract") {
                let detail = format!(
                    "unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See \
                     https://github.com/grpc/grpc/blob/master/doc/naming.md"
                );
                errors.push(at("endpoint").invalid(target.as_str(), detail));
            }
        }
        errors
    }
}
