//! How one plugin is registered: it says what it is, the handler of its kind takes it, and it hears how that went.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use node_api::RpcError;
use node_api::registration::PluginClient;

use super::{PluginHandler, PluginInfo};
use crate::interfaces::SideError;

/// How long a plugin that has its socket may take to listen at it.
const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// Why a plugin is not registered.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error(
        "RegisterPlugin error -- dial failed at socket {socket}, err: failed to dial socket {socket}, err: {error}"
    )]
    Dial { socket: String, error: RpcError },
    #[error("RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket {socket}, err: {error}")]
    Info { socket: String, error: RpcError },
    #[error("RegisterPlugin error -- no handler registered for plugin type: {kind} at socket {socket}")]
    NoHandler { kind: String, socket: String },
    #[error("RegisterPlugin error -- plugin validation failed with err: {0}")]
    Invalid(SideError),
    #[error("RegisterPlugin error -- plugin registration failed with err: {0}")]
    Refused(SideError),
    /// It does not know that it is registered, so it is not.
    #[error("RegisterPlugin error -- failed to send registration status at socket {socket}, err: {error}")]
    Untold { socket: String, error: RpcError },
}

/// Registers the plugin at a socket; it is told of the outcome either way.
pub(super) async fn register(socket: &Path, handlers: &[Arc<dyn PluginHandler>]) -> Result<PluginInfo, HandshakeError> {
    let name = || socket.display().to_string();
    let dialled = PluginClient::dial(socket, DIAL_LIMIT).await;
    let client = dialled.map_err(|error| HandshakeError::Dial { socket: name(), error })?;
    let mut plugin = client.info().await.map_err(|error| HandshakeError::Info { socket: name(), error })?;
    if plugin.endpoint.is_empty() {
        plugin.endpoint = name();
    }
    let Some(handler) = handlers.iter().find(|handler| handler.kind() == plugin.r#type) else {
        return Err(tell(&client, HandshakeError::NoHandler { kind: plugin.r#type, socket: name() }).await);
    };
    let taken = match handler.validate(&plugin) {
        Err(error) => Err(HandshakeError::Invalid(error)),
        Ok(()) => handler.register(&plugin).await.map_err(HandshakeError::Refused),
    };
    if let Err(error) = taken {
        return Err(tell(&client, error).await);
    }
    if let Err(error) = client.notify(Ok(())).await {
        handler.unregister(&plugin).await;
        return Err(HandshakeError::Untold { socket: name(), error });
    }
    Ok(plugin)
}

async fn tell(client: &PluginClient, error: HandshakeError) -> HandshakeError {
    if let Err(untold) = client.notify(Err(error.to_string())).await {
        tracing::info!(%error, %untold, "A plugin could not be told why it is not registered");
    }
    error
}

/// Takes a plugin from its handler.
pub(super) async fn unregister(plugin: &PluginInfo, handlers: &[Arc<dyn PluginHandler>]) {
    if let Some(handler) = handlers.iter().find(|handler| handler.kind() == plugin.r#type) {
        handler.unregister(plugin).await;
    }
}
