//! The pods API: the pods of a node as its kubelet knows them. See <https://kep.k8s.io/4188>.

use base::CancellationToken;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;

use v1alpha1::pods_server::PodsServer;

pub use v1alpha1::pods_server::Pods;

/// Messages and stubs generated from `proto/pods`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1alpha1 {
    tonic::include_proto!("pods/v1alpha1");
}

/// Answers at a socket until `token` is cancelled. Whoever streams has to end with it: what is open is waited for.
///
/// # Errors
/// The server fails.
pub async fn serve(
    listener: UnixListener,
    pods: impl Pods,
    token: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    tonic::transport::Server::builder()
        .add_service(PodsServer::new(pods))
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), token.cancelled_owned())
        .await
}
