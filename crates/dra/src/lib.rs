//! Dynamic resource allocation with structured parameters (KEP-4381): which devices of a node's pools claims get.
//!
//! An [`Allocator`] is made once for a pod: of its claims, all slices, and what is allocated already. It is then asked node by
//! node; the first solution of a depth-first search over claims, requests and devices wins, and is written out as the claims will
//! have it once a node is chosen. Pure: nothing is written here.

mod allocated;
mod allocation;
mod allocator;
mod capacity;
mod constraints;
mod counters;
mod device_counts;
mod eligible;
mod features;
mod pools;
mod requests;
mod search;
pub mod selector;
mod solution;
mod taint_rules;
#[cfg(test)]
mod tests;
mod verdicts;

pub use allocated::{Allocated, DeviceUse};
pub use allocator::{AllocateError, Allocator, CandidateNode, Inventory};
pub use device_counts::DeviceCounts;
pub use features::{
    ADMIN_ACCESS, BINDING_CONDITIONS, CONSUMABLE_CAPACITY, DEVICE_STATUS, DEVICE_TAINTS, Features, LIST_ATTRIBUTES,
    PARTITIONABLE_DEVICES, PRIORITIZED_LIST,
};
pub use pools::Slices;
pub use selector::Selectors;
pub use solution::Solution;
pub use taint_rules::tainted;
