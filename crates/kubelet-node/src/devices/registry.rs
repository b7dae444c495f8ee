//! Where plugins of devices register: at a socket of the kubelet's, or as all other plugins.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use base::CancellationToken;
use component_helpers::resource_names::is_extended;
use node_api::device_plugin::v1beta1::RegisterRequest;
use node_api::device_plugin::{self, Registrar, VERSION};
use tokio::net::UnixListener;

use super::Devices;
use crate::interfaces::SideError;
use crate::plugins::{PluginHandler, PluginInfo};

const SOCKET: &str = "kubelet.sock";
/// Tells plugins that they may register as all others do.
const DEPRECATION: &str = "DEPRECATION";

/// Takes registrations at the kubelet's own socket.
struct OwnSocket(Arc<Devices>);

#[async_trait]
impl Registrar for OwnSocket {
    async fn register(&self, request: RegisterRequest) -> Result<(), String> {
        let RegisterRequest { version, endpoint, resource_name, .. } = request;
        if version != VERSION {
            return Err(format!(
                "requested API version {version:?} is not supported by kubelet. Supported version is [\"{VERSION}\"]"
            ));
        }
        if !is_extended(&resource_name) {
            return Err(format!("the ResourceName {resource_name:?} is invalid"));
        }
        // The name of a socket in the directory, and nothing that leads out of it.
        let Some(name) = Path::new(&endpoint).file_name().filter(|name| **name == *endpoint) else {
            return Err(format!("failed to dial device plugin: the endpoint {endpoint:?} is invalid"));
        };
        let socket = self.0.directory().join(name);
        self.0.add_plugin(&resource_name, &socket).await.map_err(|error| error.to_string())
    }
}

/// Takes registrations at the kubelet's own socket until the token is cancelled. Sockets of plugins that registered with an
/// earlier kubelet are removed, by which they see that they have to do so again.
///
/// # Errors
/// The socket cannot be made, or the server fails.
pub async fn serve(devices: Arc<Devices>, token: CancellationToken) -> io::Result<()> {
    let directory = devices.directory().to_owned();
    let listener = prepare(&directory)?;
    device_plugin::serve(listener, OwnSocket(devices), token).await.map_err(io::Error::other)
}

fn prepare(directory: &Path) -> io::Result<UnixListener> {
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o750))?;
    for entry in std::fs::read_dir(directory)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_socket()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    let told = std::fs::write(
        directory.join(DEPRECATION),
        "This directory is deprecated: device plugins may register in plugins_registry.\n",
    );
    if let Err(error) = told {
        tracing::warn!(%error, "Writing a note for device plugins failed");
    }
    UnixListener::bind(directory.join(SOCKET))
}

/// Plugins of the kind `DevicePlugin`.
pub struct DeviceHandler(pub Arc<Devices>);

#[async_trait]
impl PluginHandler for DeviceHandler {
    fn kind(&self) -> &'static str {
        "DevicePlugin"
    }

    fn validate(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        if !plugin.supported_versions.iter().any(|version| version == VERSION) {
            let versions = plugin.supported_versions.join(" ");
            let text = format!("manager version, {VERSION}, is not among plugin supported versions [{versions}]");
            return Err(SideError(text));
        }
        if !is_extended(&plugin.name) {
            let text = format!("invalid name of device plugin socket: the ResourceName {:?} is invalid", plugin.name);
            return Err(SideError(text));
        }
        Ok(())
    }

    async fn register(&self, plugin: &PluginInfo) -> Result<(), SideError> {
        let socket = PathBuf::from(&plugin.endpoint);
        self.0.add_plugin(&plugin.name, &socket).await.map_err(|error| SideError(error.to_string()))
    }

    async fn unregister(&self, plugin: &PluginInfo) {
        self.0.remove_plugin(&plugin.name);
    }
}
