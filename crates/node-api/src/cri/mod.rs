//! The Container Runtime Interface, `runtime.v1`.
//!
//! Code against [`Runtime`] and [`Images`]. [`CriClient`] implements both over a runtime's unix socket, [`fake`] in
//! memory; one contract suite runs on both. [`serve`] puts any implementation behind a socket.
//! See <https://kubernetes.io/docs/concepts/architecture/cri/>.

mod client;
mod client_images;
#[cfg(test)]
mod contract;
mod error;
pub mod fake;
mod server;
mod sketch;
mod traced;
mod traits;

pub use client::{ClientOptions, CriClient, Observer};
pub use error::CriError;
pub use server::{ServeError, serve};
pub use sketch::Sketch;
pub use tonic::Code;
pub use traits::{EventStream, Images, Runtime};

/// Messages and stubs generated from `proto/cri/v1/runtime.proto`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1 {
    tonic::include_proto!("runtime.v1");

    impl std::fmt::Debug for AuthConfig {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.debug_struct("AuthConfig")
                .field("username", &self.username)
                .field("server_address", &self.server_address)
                .finish_non_exhaustive()
        }
    }
}

/// The version of the runtime API that a kubelet asks for and that a runtime must answer with.
pub const API_VERSION: &str = "0.1.0";
