//! cloud-controller-manager: what a cluster does with the cloud that its nodes live in.
//!
//! A cloud is a [`Provider`]; the one that comes along is read from a file and serves tests and development. The
//! controllers of nodes and of their life are here, and the contract that every provider is to pass. Deliberately not here yet: load balancers and routes.

mod addresses;
mod component;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod fake;
mod node;
mod node_lifecycle;
mod provider;
mod webhooks;

pub use component::{COMPONENT, run};
pub use fake::FakeProvider;
pub use provider::{CloudError, InstanceMetadata, Provider};

use controller::Descriptor;

/// Every controller.
pub const ALL: &[Descriptor] = &[node::DESCRIPTOR, node_lifecycle::DESCRIPTOR];
