//! A whole control plane in one process, for tests: the real API server over any store, the real controllers and
//! scheduler, one or two of each, and hollow nodes, joined by function calls that faults can be put in front of.
//!
//! On a current-thread runtime with paused time, everything that happens follows from the seed.

mod acknowledged;
mod api_server;
mod balancer;
#[cfg(test)]
mod claims_tests;
mod clock;
mod cluster;
mod collection;
mod node;
mod node_admission;
mod node_growth;
mod node_volumes;
mod parts;
mod store;
mod trace;

pub use apiserver::config::ServerConfig;
pub use clock::ClockFault;
pub use cluster::{Cluster, NODES, Shape};
pub use collection::Collection;
pub use node::{CORES_PER_NODE, Container};
pub use node_admission::{OUT_OF_CPU, millicores};
pub use node_volumes::{DriverError, NodeDriver, UsedVolume};
pub use parts::Part;
pub use store::{EtcdWorld, RealEtcd, Store};
pub use trace::{Exchange, Trace};
