//! The plugins in the order in which they run. The order is upstream's: what sets a service account comes before what
//! checks its pods, quota comes last.

mod default_storage_class;
mod default_toleration_seconds;
mod limit_ranger;
mod namespace_lifecycle;
mod node_labels;
mod node_references;
mod node_restriction;
mod pod_security;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod signers;
mod storage_in_use;
mod taint_nodes_by_condition;
#[cfg(test)]
mod testing;

use crate::PluginEntry;

/// Every plugin, in order.
pub const ALL: &[PluginEntry] = &[
    namespace_lifecycle::ENTRY,
    limit_ranger::ENTRY,
    service_account::ENTRY,
    node_restriction::ENTRY,
    taint_nodes_by_condition::ENTRY,
    pod_security::ENTRY,
    priority::ENTRY,
    default_toleration_seconds::ENTRY,
    default_storage_class::ENTRY,
    storage_in_use::ENTRY,
    runtime_class::ENTRY,
    signers::APPROVAL,
    signers::SIGNING,
    resource_quota::ENTRY,
];
