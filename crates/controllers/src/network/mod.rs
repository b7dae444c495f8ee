//! Services: which addresses they have, and which stand behind them.

mod backends;
mod pod_events;
mod trigger_time;

pub(crate) mod endpoint_slice;
pub(crate) mod endpoint_slice_mirroring;
pub(crate) mod endpoints;
pub(crate) mod service_cidr;
