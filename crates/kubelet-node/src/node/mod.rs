//! The node: what the machine is, its object in the API, its lease.

mod addresses;
mod conditions;
mod declared;
mod facts;
mod image_list;
mod lease;
mod patch;
mod registration;
mod reporter;
mod settings;
mod start;
mod state;
mod status;

pub use addresses::AddressSource;
pub use declared::DeclaredFeatures;
pub use facts::{Facts, FileSystem, filesystem};
pub use lease::LeaseKeeper;
pub use reporter::{Memory, Reporter};
pub use settings::NodeSettings;
pub use start::{Start, StartObserver, StartPhase};
pub use state::{NodeState, RuntimeHealth};

use api_types::core_v1::ObjectReference;

/// The node in events about it; its uid is its name, as upstream has it.
pub fn reference(name: &str) -> ObjectReference {
    ObjectReference { kind: "Node".into(), name: name.into(), uid: name.into(), ..ObjectReference::default() }
}

/// A node that a test makes up.
#[cfg(any(test, feature = "fake"))]
#[derive(Default)]
pub struct FixedNode {
    pub node: Option<std::sync::Arc<api_types::core_v1::Node>>,
}

#[cfg(any(test, feature = "fake"))]
#[async_trait::async_trait]
impl crate::interfaces::NodeView for FixedNode {
    fn node(&self) -> Option<std::sync::Arc<api_types::core_v1::Node>> {
        self.node.clone()
    }

    async fn fresh_node(&self) -> Option<std::sync::Arc<api_types::core_v1::Node>> {
        self.node.clone()
    }

    fn host_ips(&self) -> Vec<std::net::IpAddr> {
        Vec::new()
    }

    fn pressures(&self) -> Vec<String> {
        Vec::new()
    }

    fn shutting_down(&self) -> bool {
        false
    }
}
