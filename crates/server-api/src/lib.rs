//! gRPC interfaces of what stands beside an API server: the plugin that keeps its keys ([`kms`]), the signer of account
//! tokens ([`signer`]) and the proxy that connects it to the cluster's network ([`konnectivity`]).
//!
//! The messages come from `proto/` at build time. All are spoken to over unix sockets of the same host ([`grpc::UnixSocket`]).

pub mod kms;

pub use tonic;

/// Who signs account tokens in the server's place: `ExternalJWTSigner` (KEP-740).
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod signer {
    tonic::include_proto!("v1");
}

/// Who connects an API server to the cluster's network: `ProxyService`, whose package has no name.
pub mod konnectivity {
    tonic::include_proto!("_");
}
