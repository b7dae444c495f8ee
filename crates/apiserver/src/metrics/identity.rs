//! What authentication and authorization count and time.

use std::sync::OnceLock;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Histogram, Histograms, Metrics, Stability};
use prometheus::Counter;

const SECONDS: &[f64] =
    &[0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
const FILTER_SECONDS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0];

const ATTEMPTS: Desc =
    Desc::new("authentication_attempts", "Authentications by result.", Stability::Alpha).labels(&["result"]).kept();
const AUTHENTICATION_TIME: Desc =
    Desc::new("authentication_duration_seconds", "Time that authentications take, by result.", Stability::Alpha)
        .labels(&["result"])
        .buckets(SECONDS)
        .kept();
const USERS: Desc =
    Desc::new("authenticated_user_requests", "Requests by user, as far as users are told apart.", Stability::Alpha)
        .labels(&["username"]);
const AUTHORIZATIONS: Desc =
    Desc::new("authorization_attempts_total", "Authorizations by result.", Stability::Alpha).labels(&["result"]).kept();
const AUTHORIZATION_TIME: Desc =
    Desc::new("authorization_duration_seconds", "Time that authorizations take, by result.", Stability::Alpha)
        .labels(&["result"])
        .buckets(SECONDS)
        .kept();
const DECISIONS: Desc =
    Desc::new("apiserver_authorization_decisions_total", "What each authorizer decided.", Stability::Alpha)
        .labels(&["decision", "name", "type"])
        .kept();
const FILTERS: Desc = Desc::new(
    "apiserver_request_filter_duration_seconds",
    "Time that requests spend in a filter before they go on.",
    Stability::Alpha,
)
.labels(&["filter"])
.buckets(FILTER_SECONDS)
.kept();

const CERTIFICATE_LIFE: Desc = Desc::new(
    "apiserver_client_certificate_expiration_seconds",
    "How long client certificates are still good for when they are used.",
    Stability::Alpha,
)
.buckets(LIFE_SECONDS)
.kept();
const LIFE_SECONDS: &[f64] = &[
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

/// The families.
pub(crate) struct IdentityMetrics {
    pub(crate) authentications: ByResult<3>,
    pub(crate) users: Counters,
    pub(crate) certificate_life: Histogram,
    pub(crate) authorizations: ByResult<4>,
    pub(crate) authentication_filter: Histogram,
    pub(crate) impersonation_filter: Histogram,
    pub(crate) authorization_filter: Histogram,
}

impl IdentityMetrics {
    pub(crate) fn new(registry: &Metrics) -> Self {
        let filters = registry.histograms(&FILTERS);
        Self {
            authentications: ByResult::new(
                ["success", "failure", "error"],
                registry.counters(&ATTEMPTS),
                registry.histograms(&AUTHENTICATION_TIME),
            ),
            users: registry.counters(&USERS),
            certificate_life: registry.histograms(&CERTIFICATE_LIFE).with(&[]),
            authorizations: ByResult::new(
                ["allowed", "denied", "no-opinion", "error"],
                registry.counters(&AUTHORIZATIONS),
                registry.histograms(&AUTHORIZATION_TIME),
            ),
            authentication_filter: filters.with(&["authentication"]),
            impersonation_filter: filters.with(&["constrainedimpersonation"]),
            authorization_filter: filters.with(&["authorization"]),
        }
    }
}

/// How often something was done and how long it took, by its result. Every request counts here, so the series are
/// found once.
pub(crate) struct ByResult<const N: usize> {
    results: [&'static str; N],
    found: [OnceLock<(Counter, Histogram)>; N],
    counters: Counters,
    times: Histograms,
}

impl<const N: usize> ByResult<N> {
    fn new(results: [&'static str; N], counters: Counters, times: Histograms) -> Self {
        Self { results, found: std::array::from_fn(|_| OnceLock::new()), counters, times }
    }

    /// Counts one; a result that is not of the list is not.
    pub(crate) fn record(&self, result: &str, took: Duration) {
        let Some(found) = self.results.iter().position(|own| *own == result).and_then(|at| self.found.get(at)) else {
            return;
        };
        let (count, time) = found.get_or_init(|| (self.counters.with(&[result]), self.times.with(&[result])));
        count.inc();
        time.observe(took.as_secs_f64());
    }
}

/// What authorizers decide, by authorizer.
pub(crate) fn decisions(registry: &Metrics) -> Counters {
    registry.counters(&DECISIONS)
}
