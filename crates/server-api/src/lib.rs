//! gRPC interfaces of what stands beside an API server: the plugin that keeps its keys ([`kms`]) and the proxy that
//! connects it to the cluster's network ([`konnectivity`]).
//!
//! The messages come from `proto/` at build time. Both are spoken to over unix sockets of the same host ([`UnixSocket`]).

pub mod kms;
mod socket;

pub use socket::{NoSocket, UnixSocket};
pub use tonic;

/// Who connects an API server to the cluster's network: `ProxyService`, whose package has no name.
pub mod konnectivity {
    tonic::include_proto!("_");
}
