//! The plugins in the order in which they run. The order is upstream's: what sets a service account comes before what
//! checks its pods, quota comes last.

mod default_toleration_seconds;
mod namespace_lifecycle;
mod node_labels;
mod node_references;
mod node_restriction;
mod priority;
mod service_account;
mod taint_nodes_by_condition;
#[cfg(test)]
mod testing;

use crate::PluginEntry;

/// Every plugin, in order.
pub const ALL: &[PluginEntry] = &[
    namespace_lifecycle::ENTRY,
    service_account::ENTRY,
    node_restriction::ENTRY,
    taint_nodes_by_condition::ENTRY,
    priority::ENTRY,
    default_toleration_seconds::ENTRY,
];
