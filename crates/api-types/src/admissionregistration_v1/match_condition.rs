//! A condition under which a webhook or a policy is asked.

use api_machinery::api;

/// A condition that a request has to fulfil to be sent to a webhook or weighed by a policy.
#[api]
pub struct MatchCondition {
    /// Name of the condition, a qualified name that no other condition beside it has.
    #[field(1, always, required)]
    pub name: String,
    /// Expression that says whether it is fulfilled. It knows `object`, `oldObject`, `request` and `authorizer`.
    #[field(2, always, required)]
    pub expression: String,
}
