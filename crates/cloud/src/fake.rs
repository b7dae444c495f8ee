//! A cloud that is a file: its instances are whatever the file lists at the moment.
//!
//! ```yaml
//! instances:
//! - name: node-1
//!   providerID: fake://1
//!   instanceType: small
//!   zone: a
//!   region: here
//!   shutdown: false
//!   addresses:
//!   - {type: InternalIP, address: 10.0.0.1}
//! ```

use std::path::PathBuf;

use api_machinery::value::Value;
use api_types::core_v1::{Node, NodeAddress};
use component_base::config_file;

use crate::provider::{CloudError, InstanceMetadata, Provider};

/// The cloud in a file. The file is read for each question, so that tests can change the cloud by writing it.
#[derive(Debug, Clone)]
pub struct FakeProvider {
    path: PathBuf,
}

impl FakeProvider {
    /// The name of this cloud.
    pub const NAME: &str = "fake";

    /// A cloud in this file.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn find(&self, node: &Node) -> Result<Option<Value>, CloudError> {
        let document = config_file::load(&self.path).map_err(|error| CloudError(error.to_string()))?;
        let instances = document.get("instances").and_then(Value::as_array).cloned().unwrap_or_default();
        let (id, name) = (&node.spec.provider_id, &node.metadata.name);
        let by = |field: &str, wanted: &str| {
            instances.iter().find(|one| !wanted.is_empty() && text(one, field) == wanted).cloned()
        };
        Ok(if id.is_empty() { by("name", name) } else { by("providerID", id) })
    }
}

fn text(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[async_trait::async_trait]
impl Provider for FakeProvider {
    fn name(&self) -> &str {
        Self::NAME
    }

    async fn instance_exists(&self, node: &Node) -> Result<bool, CloudError> {
        Ok(self.find(node)?.is_some())
    }

    async fn instance_is_shut_down(&self, node: &Node) -> Result<bool, CloudError> {
        let found = self.find(node)?;
        Ok(found.and_then(|one| one.get("shutdown").and_then(Value::as_bool)).unwrap_or(false))
    }

    async fn instance_metadata(&self, node: &Node) -> Result<Option<InstanceMetadata>, CloudError> {
        let Some(found) = self.find(node)? else { return Ok(None) };
        let addresses = found.get("addresses").and_then(Value::as_array).cloned().unwrap_or_default();
        let address = |one: &Value| NodeAddress { type_: text(one, "type"), address: text(one, "address") };
        Ok(Some(InstanceMetadata {
            provider_id: text(&found, "providerID"),
            instance_type: text(&found, "instanceType"),
            addresses: addresses.iter().map(address).collect(),
            zone: text(&found, "zone"),
            region: text(&found, "region"),
            ..InstanceMetadata::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{self, Bench, Instance};

    struct File {
        provider: FakeProvider,
        file: tempfile::NamedTempFile,
    }

    impl Bench for File {
        fn provider(&self) -> &dyn Provider {
            &self.provider
        }

        fn set(&self, instances: &[Instance]) {
            let one = |one: &Instance| {
                format!(
                    "- {{name: {}, providerID: 'fake://{}', shutdown: {}, addresses: [{{type: InternalIP, address: {}}}]}}\n",
                    one.name, one.id, one.stopped, one.address
                )
            };
            let list: String = instances.iter().map(one).collect();
            std::fs::write(self.file.path(), format!("instances:\n{list}")).unwrap();
        }
    }

    #[tokio::test]
    async fn the_file_is_a_cloud() {
        let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        contract::check(&File { provider: FakeProvider::new(file.path()), file }).await;
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_an_error() {
        let provider = FakeProvider::new("/does/not/exist.yaml");
        assert!(provider.instance_exists(&Node::default()).await.is_err(), "no node is deleted for that");
    }
}
