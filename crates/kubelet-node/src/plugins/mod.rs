//! Plugins that register with the kubelet: whoever puts a socket below `plugins_registry` is asked what it is, and given to
//! the handler of its kind.
//!
//! [`find`] looks which sockets there are, [`plan`] says what follows, [`handshake`] is how one plugin is registered, and
//! [`watcher`] has it done. See <https://kep.k8s.io/595>.

mod find;
mod handshake;
mod plan;
mod watcher;

use async_trait::async_trait;
pub use node_api::registration::v1::PluginInfo;

pub use watcher::{PluginCounts, PluginWatcher};

use crate::interfaces::SideError;

/// Who takes the plugins of a kind.
#[async_trait]
pub trait PluginHandler: Send + Sync + 'static {
    /// The kind, as plugins state it.
    fn kind(&self) -> &'static str;

    /// Whether the plugin may be registered; the endpoint is where its own service listens.
    ///
    /// # Errors
    /// Why not, in upstream's words.
    fn validate(&self, plugin: &PluginInfo) -> Result<(), SideError>;

    /// Takes the plugin.
    ///
    /// # Errors
    /// Why it cannot be taken; nothing of it stays then.
    async fn register(&self, plugin: &PluginInfo) -> Result<(), SideError>;

    /// The plugin is gone, or another has taken its place at the socket.
    async fn unregister(&self, plugin: &PluginInfo);
}
