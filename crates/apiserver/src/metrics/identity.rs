//! What authentication and authorization count and time.

use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};
use prometheus::Histogram;

const SECONDS: &[f64] =
    &[0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];
const FILTER_SECONDS: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0];

const ATTEMPTS: Desc =
    Desc::new("authentication_attempts", "Authentications by result.", Stability::Alpha).labels(&["result"]);
const AUTHENTICATION_TIME: Desc =
    Desc::new("authentication_duration_seconds", "Time that authentications take, by result.", Stability::Alpha)
        .labels(&["result"])
        .buckets(SECONDS);
const USERS: Desc =
    Desc::new("authenticated_user_requests", "Requests by user, as far as users are told apart.", Stability::Alpha)
        .labels(&["username"]);
const AUTHORIZATIONS: Desc =
    Desc::new("authorization_attempts_total", "Authorizations by result.", Stability::Alpha).labels(&["result"]);
const AUTHORIZATION_TIME: Desc =
    Desc::new("authorization_duration_seconds", "Time that authorizations take, by result.", Stability::Alpha)
        .labels(&["result"])
        .buckets(SECONDS);
const DECISIONS: Desc =
    Desc::new("apiserver_authorization_decisions_total", "What each authorizer decided.", Stability::Alpha)
        .labels(&["decision", "name", "type"]);
const FILTERS: Desc = Desc::new(
    "apiserver_request_filter_duration_seconds",
    "Time that requests spend in a filter before they go on.",
    Stability::Alpha,
)
.labels(&["filter"])
.buckets(FILTER_SECONDS);

/// The families.
pub(crate) struct IdentityMetrics {
    pub(crate) attempts: Counters,
    pub(crate) authentication_time: Histograms,
    pub(crate) users: Counters,
    pub(crate) authorizations: Counters,
    pub(crate) authorization_time: Histograms,
    pub(crate) authentication_filter: Histogram,
    pub(crate) impersonation_filter: Histogram,
    pub(crate) authorization_filter: Histogram,
}

impl IdentityMetrics {
    pub(crate) fn new(registry: &Metrics) -> Self {
        let filters = registry.histograms(&FILTERS);
        Self {
            attempts: registry.counters(&ATTEMPTS),
            authentication_time: registry.histograms(&AUTHENTICATION_TIME),
            users: registry.counters(&USERS),
            authorizations: registry.counters(&AUTHORIZATIONS),
            authorization_time: registry.histograms(&AUTHORIZATION_TIME),
            authentication_filter: filters.with(&["authentication"]),
            impersonation_filter: filters.with(&["constrainedimpersonation"]),
            authorization_filter: filters.with(&["authorization"]),
        }
    }
}

/// What authorizers decide, by authorizer.
pub(crate) fn decisions(registry: &Metrics) -> Counters {
    registry.counters(&DECISIONS)
}
