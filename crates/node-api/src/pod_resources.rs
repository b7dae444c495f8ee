//! The pod resources API: which devices, processors and memory the containers of a node have.
//! See <https://kep.k8s.io/606>.

use base::CancellationToken;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;

use v1::pod_resources_lister_server::PodResourcesListerServer;

pub use v1::pod_resources_lister_server::PodResourcesLister;

/// Messages and stubs generated from `proto/podresources`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1 {
    tonic::include_proto!("v1");
}

/// Answers at a socket until `token` is cancelled.
///
/// # Errors
/// The server fails.
pub async fn serve(
    listener: UnixListener,
    lister: impl PodResourcesLister,
    token: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    tonic::transport::Server::builder()
        .add_service(PodResourcesListerServer::new(lister))
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), token.cancelled_owned())
        .await
}
