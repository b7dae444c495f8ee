//! PriorityLevelConfiguration whose shares were assured ones.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::flowcontrol_v1::{ExemptPriorityLevelConfiguration, LimitResponse, PriorityLevelConfigurationStatus};

/// How many requests of a priority level run at a time, and what becomes of others.
#[api(kind = "PriorityLevelConfiguration", resource = "prioritylevelconfigurations")]
pub struct PriorityLevelConfiguration {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired limits.
    #[field(2)]
    pub spec: PriorityLevelConfigurationSpec,
    /// Last observed state of the level.
    #[field(3)]
    pub status: PriorityLevelConfigurationStatus,
}

/// The limits of a priority level.
#[api]
pub struct PriorityLevelConfigurationSpec {
    /// Limited, or Exempt for requests that are never held up.
    #[field(1, always)]
    pub type_: String,
    /// Limits of a level of type Limited.
    #[field(2)]
    pub limited: Option<LimitedPriorityLevelConfiguration>,
    /// What a level of type Exempt has of the server.
    #[field(3)]
    pub exempt: Option<ExemptPriorityLevelConfiguration>,
}

/// The limits of a level whose requests can be held up.
#[api]
pub struct LimitedPriorityLevelConfiguration {
    /// Share of the server's seats, beside the shares of other levels.
    #[field(1, always)]
    pub assured_concurrency_shares: i32,
    /// What becomes of requests that cannot run at once.
    #[field(2, always)]
    pub limit_response: LimitResponse,
    /// Percentage of the level's seats that others may borrow.
    #[field(3)]
    pub lendable_percent: Option<i32>,
    /// Percentage of its own seats that the level may borrow beyond them.
    #[field(4)]
    pub borrowing_limit_percent: Option<i32>,
}
