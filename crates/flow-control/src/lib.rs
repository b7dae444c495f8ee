//! Priority and fairness (KEP-1040): which requests run, which wait, and which are refused.
//!
//! A request is classified by the flow schemas into a priority level and a flow ([`Table`]). Each level has seats
//! ([`Limits`]) and queues ([`FairQueues`]) between which flows are shuffled, and which are served fairly; what a level
//! does not need, others borrow ([`Controller::adjust`]). All of it is pure: the time is an argument, and whoever
//! waits is told by [`Caller`].

mod borrowing;
mod caller;
mod classify;
mod controller;
mod demand;
mod drops;
mod estimate;
mod level;
mod limits;
mod objects;
mod queue;
mod queues;
mod ratio;
mod seat_seconds;
mod shuffle;
mod utilization;

use std::time::Duration;

pub use caller::{Caller, Reason};
pub use classify::{Asked, AskedResource, Flow, Schema, Table};
pub use controller::{Adjustment, Configured, Controller};
pub use drops::Drops;
pub use estimate::{ListSize, Source, list_seats, list_seats_by_count, write_work};
pub use level::{Level, LevelState};
pub use limits::Limits;
pub use objects::{
    is_mandatory_level, is_mandatory_schema, mandatory_levels, mandatory_schemas, suggested_levels, suggested_schemas,
};
pub use queue::{QueueRow, RequestRow, Work};
pub use queues::{Arrival, Counts, FairQueues, Kind, Passed, Queuing, Refused, Ticket, VirtualTimes};
pub use ratio::{Ratio, RatioCounts};
pub use seat_seconds::SeatSeconds;
pub use shuffle::{Dealer, flow_hash};
pub use utilization::Utilization;

/// A time, since a moment that the caller chose once.
pub type Moment = Duration;

/// Whether a schema or a level is that of what matches nothing else.
fn is_catch_all(name: &str) -> bool {
    name == api_types::flowcontrol_v1::constants::CATCH_ALL
}
