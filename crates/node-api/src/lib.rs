//! gRPC interfaces of a node, with contract-tested fakes.
//!
//! Today that is the Container Runtime Interface ([`cri`]): the traits that a kubelet is written against, a client for a
//! real runtime's socket, a server adapter, and an in-memory runtime for tests and hollow nodes.
//!
//! The messages come from `proto/` at build time; nothing here knows API objects.

pub mod cri;
