//! Registration of plugins: a kubelet asks at a plugin's socket what it is, and tells how that went.
//! See <https://kep.k8s.io/595>.

use std::path::Path;
use std::time::Duration;

use grpc::UnixSocket;
use tonic::transport::Channel;

use crate::rpc::{RpcError, within};
use v1::registration_client::RegistrationClient;
use v1::{InfoRequest, PluginInfo, RegistrationStatus};

/// Messages and stubs generated from `proto/pluginregistration`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1 {
    tonic::include_proto!("pluginregistration");
}

/// Between two looks whether anybody listens.
const REDIAL: Duration = Duration::from_millis(100);
const INFO_LIMIT: Duration = Duration::from_secs(1);
const NOTIFY_LIMIT: Duration = Duration::from_secs(5);

/// A plugin at its registration socket.
pub struct PluginClient(RegistrationClient<Channel>);

impl PluginClient {
    /// Waits until somebody listens at the socket.
    ///
    /// # Errors
    /// When nobody did within `limit`.
    pub async fn dial(socket: &Path, limit: Duration) -> Result<Self, RpcError> {
        let address = UnixSocket::at(socket);
        let dialled = async {
            while address.connect().await.is_err() {
                tokio::time::sleep(REDIAL).await;
            }
        };
        if tokio::time::timeout(limit, dialled).await.is_err() {
            return Err(RpcError::new(tonic::Code::DeadlineExceeded, "context deadline exceeded"));
        }
        Ok(Self(RegistrationClient::new(address.channel())))
    }

    /// What the plugin is.
    ///
    /// # Errors
    /// When it does not say so within a second.
    pub async fn info(&self) -> Result<PluginInfo, RpcError> {
        within(INFO_LIMIT, self.0.clone().get_info(InfoRequest {})).await
    }

    /// Tells the plugin that it is registered, or why it is not.
    ///
    /// # Errors
    /// When it does not hear within five seconds.
    pub async fn notify(&self, outcome: Result<(), String>) -> Result<(), RpcError> {
        let (plugin_registered, error) = (outcome.is_ok(), outcome.err().unwrap_or_default());
        let status = RegistrationStatus { plugin_registered, error };
        within(NOTIFY_LIMIT, self.0.clone().notify_registration_status(status)).await.map(drop)
    }
}
