//! Condition.

use crate::time::Time;
use api_derive::api;

/// One observed aspect of an object's state.
#[api]
pub struct Condition {
    /// Name of the aspect, in camel case, with an optional domain prefix.
    #[field(1, always, required)]
    pub type_: String,
    /// Whether the condition holds: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Object generation the condition was derived from.
    #[field(3)]
    pub observed_generation: i64,
    /// Time at which the status last changed.
    #[field(4, always, required)]
    pub last_transition_time: Time,
    /// Camel case word for why the condition last changed.
    #[field(5, always, required)]
    pub reason: String,
    /// Text for people about the last change, which may be empty.
    #[field(6, always, required)]
    pub message: String,
}
