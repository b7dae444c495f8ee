//! TracingConfiguration: where traces go, and how many of them.

use api_machinery::api;

/// Where traces go.
#[api]
pub struct TracingConfiguration {
    /// The collector, as gRPC names targets; `localhost:4317` where there is none.
    #[field(0)]
    pub endpoint: Option<String>,
    /// Requests that are recorded, of a million; none where it does not say.
    #[field(0)]
    pub sampling_rate_per_million: Option<i32>,
}
