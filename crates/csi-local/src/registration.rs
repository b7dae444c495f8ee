//! Tells a kubelet of the driver: it finds a socket in the directory that it watches, and asks there.
//! See <https://kep.k8s.io/595>.

use std::io;
use std::path::Path;

use base::CancellationToken;
use node_api::registration::v1::registration_server::{Registration, RegistrationServer};
use node_api::registration::v1::{InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse};
use tonic::{Request, Response, Status};

use crate::driver::listen;

/// What a kubelet knows drivers of volumes as.
const KIND: &str = "CSIPlugin";
/// What a kubelet looks for is the first number.
const VERSION: &str = "1.0.0";

/// Who answers a kubelet that asks what the driver is.
pub(crate) struct Registrar {
    /// The driver's name.
    pub(crate) name: String,
    /// The path of the driver's socket as the kubelet sees it.
    pub(crate) endpoint: String,
}

impl Registrar {
    /// Serves at a socket in the kubelet's directory until the token is cancelled, and takes the socket away then, so that
    /// the kubelet forgets the driver.
    ///
    /// # Errors
    /// The socket cannot be made, or the server fails.
    pub(crate) async fn serve(self, socket: &Path, token: CancellationToken) -> io::Result<()> {
        let incoming = listen(socket)?;
        let served = tonic::transport::Server::builder()
            .add_service(RegistrationServer::new(self))
            .serve_with_incoming_shutdown(incoming, token.cancelled_owned())
            .await;
        let _ = std::fs::remove_file(socket);
        served.map_err(io::Error::other)
    }
}

#[tonic::async_trait]
impl Registration for Registrar {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        Ok(Response::new(PluginInfo {
            r#type: KIND.to_owned(),
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            supported_versions: vec![VERSION.to_owned()],
        }))
    }

    async fn notify_registration_status(
        &self,
        request: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let status = request.into_inner();
        if status.plugin_registered {
            tracing::info!(driver = %self.name, "the kubelet knows the driver");
        } else {
            // It asks again by itself.
            tracing::error!(driver = %self.name, error = %status.error, "the kubelet refused the driver");
        }
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::TaskGroup;
    use node_api::registration::PluginClient;

    use super::*;

    #[tokio::test]
    async fn a_kubelet_learns_what_it_asks_and_forgets_with_the_socket() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("driver-reg.sock");
        std::fs::write(&socket, "left over").unwrap();
        let tasks = TaskGroup::new("registration");
        let registrar = Registrar { name: "csi-local.test".into(), endpoint: "/kubelet/csi.sock".into() };
        let (at, token) = (socket.clone(), tasks.token());
        tasks.spawn("registrar", async move { registrar.serve(&at, token).await.unwrap() });
        let kubelet = PluginClient::dial(&socket, Duration::from_secs(10)).await.unwrap();
        let info = kubelet.info().await.unwrap();
        assert_eq!((info.r#type.as_str(), info.name.as_str()), ("CSIPlugin", "csi-local.test"));
        assert_eq!(
            (info.endpoint.as_str(), info.supported_versions.as_slice()),
            ("/kubelet/csi.sock", &["1.0.0".to_owned()][..])
        );
        kubelet.notify(Ok(())).await.unwrap();
        kubelet.notify(Err("no".into())).await.unwrap();
        tasks.shutdown(Duration::from_secs(10)).await;
        assert!(!socket.exists());
    }
}
