//! Nodes: their addresses, their health and what becomes of the pods of dead ones.

mod node_taints;

pub(crate) mod health;
pub(crate) mod ipam;
pub(crate) mod taint_eviction;
pub(crate) mod ttl;
