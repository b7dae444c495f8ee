//! PriorityLevelConfiguration and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

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
#[api(union(discriminator = "type", limited = "Limited", exempt = "Exempt"))]
pub struct PriorityLevelConfigurationSpec {
    /// Limited, or Exempt for requests that are never held up.
    #[field(1, always, required, go = "v1.PriorityLevelEnablement")]
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
    /// Share of the server's seats, beside the shares of other levels; 30 by default.
    #[field(1, always, fill = "30")]
    pub nominal_concurrency_shares: Option<i32>,
    /// What becomes of requests that cannot run at once.
    #[field(2, always)]
    pub limit_response: LimitResponse,
    /// Percentage of the level's seats that others may borrow.
    #[field(3, fill = "0")]
    pub lendable_percent: Option<i32>,
    /// Percentage of its own seats that the level may borrow beyond them. Without it there is no such limit.
    #[field(4)]
    pub borrowing_limit_percent: Option<i32>,
}

/// What a level whose requests are never held up has of the server.
#[api]
pub struct ExemptPriorityLevelConfiguration {
    /// Share of the server's seats, beside the shares of other levels; 0 by default.
    #[field(1, fill = "0")]
    pub nominal_concurrency_shares: Option<i32>,
    /// Percentage of the level's seats that others may borrow.
    #[field(2, fill = "0")]
    pub lendable_percent: Option<i32>,
}

/// What becomes of requests that cannot run at once.
#[api(union(discriminator = "type", queuing = "Queuing"))]
pub struct LimitResponse {
    /// Queue, or Reject.
    #[field(1, always, required, go = "v1.LimitResponseType")]
    pub type_: String,
    /// The queues of type Queue.
    #[field(2)]
    pub queuing: Option<QueuingConfiguration>,
}

/// The queues of a level.
#[api]
pub struct QueuingConfiguration {
    /// Number of queues; 64 by default.
    #[field(1, always, fill = "64")]
    pub queues: i32,
    /// Number of queues that a flow chooses from; 8 by default.
    #[field(2, always, fill = "8")]
    pub hand_size: i32,
    /// Number of requests that may wait in a queue; 50 by default.
    #[field(3, always, fill = "50")]
    pub queue_length_limit: i32,
}

/// The observed state of a priority level.
#[api]
pub struct PriorityLevelConfigurationStatus {
    /// Latest observed conditions of the level.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<PriorityLevelConfigurationCondition>,
}

/// One aspect of a priority level's state.
#[api]
pub struct PriorityLevelConfigurationCondition {
    /// Aspect that the condition is about.
    #[field(1, go = "v1.PriorityLevelConfigurationConditionType")]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    #[field(2, go = "v1.ConditionStatus")]
    pub status: String,
    /// When the status last changed.
    #[field(3)]
    pub last_transition_time: Time,
    /// One word on why.
    #[field(4)]
    pub reason: String,
    /// Details for people.
    #[field(5)]
    pub message: String,
}
