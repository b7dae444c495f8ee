//! Priority and fairness: seats for requests by the objects FlowSchema and PriorityLevelConfiguration. What is decided is
//! decided by the crate `flow-control`; here is what it needs to know, and who waits.

mod bootstrap;
mod conditions;
mod consumer;
mod control;
mod dump;
mod levels;
mod metrics;
mod seat;
mod watches;
mod width;

pub(crate) use bootstrap::Producer;
pub(crate) use consumer::{Consumer, Filter};
pub(crate) use control::FlowControl;
pub(crate) use dump::install;
