//! What a cloud must be able to do.

use std::collections::BTreeMap;

use api_types::core_v1::{Node, NodeAddress};

/// A cloud did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CloudError(pub String);

/// What a cloud knows of an instance. Empty texts mean that it does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InstanceMetadata {
    /// `{provider}://{id}`; never changes its form.
    pub provider_id: String,
    /// The type of machine.
    pub instance_type: String,
    /// The addresses.
    pub addresses: Vec<NodeAddress>,
    /// The zone.
    pub zone: String,
    /// The region.
    pub region: String,
    /// Further labels for the node.
    pub labels: BTreeMap<String, String>,
}

/// A cloud. Instances are looked up by the node's provider ID first, then by its name.
#[async_trait::async_trait]
pub trait Provider: Send + Sync + 'static {
    /// The cloud's name, as in `--cloud-provider`.
    fn name(&self) -> &str;

    /// Whether the node's instance is there; it stays so while the instance is stopped.
    ///
    /// # Errors
    /// When the cloud does not answer.
    async fn instance_exists(&self, node: &Node) -> Result<bool, CloudError>;

    /// Whether the node's instance is stopped.
    ///
    /// # Errors
    /// When the cloud does not answer.
    async fn instance_is_shut_down(&self, node: &Node) -> Result<bool, CloudError>;

    /// What is known of the node's instance; nothing as long as that is not known yet.
    ///
    /// # Errors
    /// When the cloud does not answer.
    async fn instance_metadata(&self, node: &Node) -> Result<Option<InstanceMetadata>, CloudError>;
}
