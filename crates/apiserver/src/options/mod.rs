//! The flags of kube-apiserver, and the configuration that they make.

mod admission_config;
mod aggregation;
mod audit;
mod authentication;
mod authorization;
mod complete;
mod durations;
mod flags;
#[cfg(test)]
mod hostile_tests;
mod networking;
mod oidc;
mod runtime_config;
mod storage;
#[cfg(test)]
mod tests;
mod tracing;

use std::time::Duration;

use component_base::flags::Options;
use component_base::lifecycle::Lifecycle;
use component_base::serving::BoxError;
use component_base::{Component, no_config_file};

pub use complete::complete;

use crate::gates;
use crate::server::Server;

/// The component.
pub const COMPONENT: Component = Component {
    name: "kube-apiserver",
    about: "The Kubernetes API server validates and configures data for the api objects which include pods, services, \
            replicationcontrollers, and others. The API Server services REST operations and provides the frontend to \
            the cluster's shared state through which all other components interact.",
    flags: flags::ALL,
    gates: gates::KNOWN,
    prepare: no_config_file,
    drain: Duration::from_secs(10),
};

/// Runs the component: reads the flags, and serves until it is asked to end.
///
/// # Errors
/// When the flags make no sense together, or the server cannot start.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let config = complete(&options, lifecycle.gates())?;
    let server = Server::build(config, lifecycle).await?;
    Ok(server.run().await?)
}
