//! Plugins of the kind `CSIPlugin`: drivers of volumes.

use std::sync::Arc;

use async_trait::async_trait;

use super::driver_version::{Version, highest};
use super::{CsiNodes, Drivers, PREFIX};
use crate::interfaces::SideError;
use crate::plugins::{PluginHandler, PluginInfo};

/// Takes the drivers of volumes.
pub struct CsiHandler {
    pub drivers: Arc<Drivers>,
    /// None without an API server.
    pub nodes: Option<Arc<CsiNodes>>,
}

impl CsiHandler {
    /// The version that is spoken with a driver; `caller` is the step, as upstream names it.
    fn version(&self, caller: &str, plugin: &PluginInfo) -> Result<Version, SideError> {
        let (name, versions) = (&plugin.name, &plugin.supported_versions);
        let refuse = |why: String| Err(SideError(format!("{PREFIX}{caller} for CSI driver {name:?} failed. {why}")));
        if versions.is_empty() {
            return refuse("Plugin returned an empty list for supported versions".to_owned());
        }
        let version = match highest(versions) {
            Ok(version) => version,
            Err(error) => {
                let quoted: Vec<String> = versions.iter().map(|version| format!("{version:?}")).collect();
                let quoted = quoted.join(" ");
                return refuse(format!("None of the versions specified [{quoted}] are supported. err={error}"));
            }
        };
        if let Some(present) = self.drivers.version(name).filter(|present| !present.is_below(&version)) {
            return refuse(format!(
                "Another driver with the same name is already registered with a higher supported version: {:?}",
                present.to_string()
            ));
        }
        Ok(version)
    }

    async fn tell_api(&self, plugin: &PluginInfo, version: Version) -> Result<(), SideError> {
        let client = self.drivers.put(&plugin.name, &plugin.endpoint, version);
        let info = client.info().await.map_err(|error| SideError(error.to_string()))?;
        let Some(nodes) = &self.nodes else { return Ok(()) };
        nodes.install(&plugin.name, &info).await.map_err(|error| SideError::new(error.to_string()))
    }
}

#[async_trait]
impl PluginHandler for CsiHandler {
    fn kind(&self) -> &'static str {
        "CSIPlugin"
    }

    fn validate(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        self.version("ValidatePlugin", plugin).map(drop)
    }

    async fn register(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        let version = self.version("RegisterPlugin", plugin)?;
        let told = self.tell_api(plugin, version).await;
        if told.is_err() {
            self.unregister(plugin).await;
        }
        told
    }

    async fn unregister(&self, plugin: &PluginInfo) {
        // A newer driver of the same name may have taken its place.
        if !self.drivers.remove(&plugin.name, &plugin.endpoint) {
            return;
        }
        let Some(nodes) = &self.nodes else { return };
        if let Err(error) = nodes.uninstall(&plugin.name).await {
            tracing::error!(driver = plugin.name, %error, "Taking a CSI driver from the CSINode failed");
        }
    }
}

#[cfg(test)]
#[path = "handler_tests.rs"]
mod tests;
