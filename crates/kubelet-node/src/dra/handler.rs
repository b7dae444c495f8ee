//! Plugins of the kind `DRAPlugin`: drivers of dynamic resources.

use std::sync::Arc;

use async_trait::async_trait;
use node_api::dra::DraVersion;

use super::DraDrivers;
use crate::interfaces::SideError;
use crate::plugins::{PluginHandler, PluginInfo};

/// Takes the drivers of dynamic resources.
pub struct DraHandler(pub Arc<DraDrivers>);

/// The version that is spoken with a driver: the first that it states of those that are known here.
fn version(plugin: &PluginInfo) -> Result<DraVersion, String> {
    let stated = &plugin.supported_versions;
    if stated.is_empty() {
        return Err("empty list of supported gRPC services (aka supported versions)".to_owned());
    }
    let known = |name: &String| DraVersion::ALL.into_iter().find(|version| version.service() == name);
    stated.iter().find_map(known).ok_or_else(|| {
        let known = DraVersion::ALL.map(DraVersion::service).join(" ");
        let stated = stated.join(" ");
        format!("none of services supported by the plugin ([{stated}]) are supported by the kubelet ([{known}])")
    })
}

#[async_trait]
impl PluginHandler for DraHandler {
    fn kind(&self) -> &'static str {
        "DRAPlugin"
    }

    fn validate(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        version(plugin)
            .map(drop)
            .map_err(|error| SideError(format!("invalid versions of plugin {}: {error}", plugin.name)))
    }

    async fn register(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        let failed = |error: String| SideError(format!("version check of plugin {} failed: {error}", plugin.name));
        let version = version(plugin).map_err(failed)?;
        self.0.add(&plugin.name, &plugin.endpoint, version).map_err(|error| SideError::of(&error))
    }

    async fn unregister(&self, plugin: &PluginInfo) {
        self.0.remove(&plugin.name, &plugin.endpoint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_version_that_both_know_is_spoken() {
        let of = |versions: &[&str]| {
            let supported_versions = versions.iter().map(|version| (*version).to_owned()).collect();
            version(&PluginInfo { supported_versions, ..PluginInfo::default() })
        };
        assert_eq!(of(&["v1.DRAPlugin", "v1beta1.DRAPlugin"]), Ok(DraVersion::V1));
        assert_eq!(of(&["v9.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAPlugin"]), Ok(DraVersion::V1beta1));
        assert_eq!(of(&[]).unwrap_err(), "empty list of supported gRPC services (aka supported versions)");
        assert_eq!(
            of(&["1.0.0", "v1"]).unwrap_err(),
            "none of services supported by the plugin ([1.0.0 v1]) are supported by the kubelet ([v1.DRAPlugin v1beta1.DRAPlugin])"
        );
    }
}
