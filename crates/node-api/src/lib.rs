//! gRPC interfaces of a node, with contract-tested fakes.
//!
//! The Container Runtime Interface ([`cri`]): the traits that a kubelet is written against, a client for a real runtime's
//! socket, a server adapter, and an in-memory runtime for tests and hollow nodes. Beside it what extends a kubelet: how
//! plugins register ([`registration`]), drivers of volumes ([`csi`]), of devices ([`device_plugin`]) and of dynamic
//! resources ([`dra`]), and what a kubelet tells of its pods ([`pods`]) and of their resources ([`pod_resources`]).
//!
//! The messages come from `proto/` at build time; nothing here knows API objects.

pub mod cri;
pub mod csi;
pub mod device_plugin;
pub mod dra;
pub mod pod_resources;
pub mod pods;
pub mod registration;
mod rpc;

pub use rpc::RpcError;
pub use tonic;
