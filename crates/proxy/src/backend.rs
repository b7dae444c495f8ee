//! What stands between the engine and the kernel: which ports of Services are to be reachable and who answers there, in
//! types, and the trait of those who write that down as rules.
//!
//! A backend is one file with its [`Mode`], and a line in [`MODES`]. All of them pass one contract suite
//! (`backend_contract.rs`), which sends packets through what they wrote and through a model of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use client::ObjectKey;
use sys::exec::Exec;
use sys::net::Network;
use sys::packet_filter::FilterError;
use tokio::time::Instant;

use crate::Family;
use crate::endpoints::Selection;
use crate::nftables::Nftables;
use crate::service::ServedPort;

/// Every mode of proxying; the first is the one where the configuration names none.
pub const MODES: &[&dyn Mode] = &[&Nftables];

/// What rules are written for: the settings of the process and of the node, as far as packets depend on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleOptions {
    /// The family of the rules.
    pub family: Family,
    /// The packet mark for traffic that is to be masqueraded.
    pub mark: u32,
    /// Masquerade all traffic to cluster addresses.
    pub masquerade_all: bool,
    /// What tells that traffic comes from a pod of this node; nothing where nothing does.
    pub local_detector: Option<LocalDetector>,
    /// At which addresses of the node NodePorts answer.
    pub node_ports: NodePorts,
    /// This node's own address.
    pub node_ip: Option<IpAddr>,
    /// The networks of cluster addresses, where they are known.
    pub service_cidrs: Vec<String>,
}

/// What tells traffic of this node's pods from other traffic: upstream's `detectLocalMode`, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalDetector {
    /// Its source is in this network.
    Network(String),
    /// It comes in through this interface.
    Interface(String),
    /// It comes in through an interface whose name begins so.
    InterfacePrefix(String),
}

/// At which addresses of the node NodePorts answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodePorts {
    /// At all but loopback addresses.
    All,
    /// At these.
    Addresses(BTreeSet<IpAddr>),
}

/// A port of a Service, and who answers there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where it is to be reachable, and by whom.
    pub port: ServedPort,
    /// The endpoints that this node uses for it.
    pub endpoints: Selection,
}

/// The routes of some Services; none for one that is gone.
pub type Routes = BTreeMap<ObjectKey, Vec<Route>>;

/// Who keeps the rules of one family.
///
/// After an error nobody knows what the kernel holds: the next call is [`Backend::replace`].
#[async_trait]
pub trait Backend: Send {
    /// Brings the kernel to exactly these routes, whatever it holds. Clients keep their sticky endpoints, and traffic of
    /// Services that stay as they are is not disturbed.
    async fn replace(&mut self, options: &RuleOptions, routes: Routes, now: Instant) -> Result<(), BackendError>;

    /// The routes of these Services are others now, and those of all others as they were. Of the options, the networks of
    /// cluster addresses may have changed.
    async fn change(&mut self, options: &RuleOptions, routes: Routes, now: Instant) -> Result<(), BackendError>;

    /// Deletes what has been out of use for long enough. The rules are right whether or not this succeeds.
    async fn collect(&mut self, options: &RuleOptions, now: Instant) -> Result<(), BackendError>;

    /// Whether something out of use waits for [`Backend::collect`].
    fn has_stale(&self) -> bool;
}

/// The kernel, or a program that speaks to it, did not take the rules. All of them are worth another try.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BackendError(Box<dyn std::error::Error + Send + Sync>);

impl From<FilterError> for BackendError {
    fn from(error: FilterError) -> Self {
        Self(error.into())
    }
}

/// What modes work with of the machine.
pub struct Machine {
    /// Its programs.
    pub exec: Arc<dyn Exec>,
    /// Its addresses and tracked connections.
    pub network: Arc<dyn Network>,
    /// The kernel's release; nothing where it is not to be looked at.
    pub kernel: Option<String>,
}

/// A way of proxying, as the configuration names it.
#[async_trait]
pub trait Mode: Send + Sync {
    /// Its name as `mode` of `KubeProxyConfiguration`.
    fn name(&self) -> &'static str;

    /// Whether this machine can do what its rules need.
    async fn check(&self, machine: &Machine) -> Result<(), UnsupportedMachine>;

    /// A backend that knows nothing of the kernel yet.
    fn backend(&self, machine: &Machine) -> Box<dyn Backend>;

    /// Takes away everything of both families that it left behind, and tells what it could not.
    async fn cleanup(&self, machine: &Machine) -> Vec<BackendError>;
}

impl std::fmt::Debug for dyn Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// No two modes share a name.
impl PartialEq for dyn Mode {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// The mode of a name; the first where it is empty.
#[must_use]
pub fn mode(name: &str) -> Option<&'static dyn Mode> {
    MODES.iter().copied().find(|mode| name.is_empty() || mode.name() == name)
}

/// The machine lacks something that the proxy needs.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedMachine {
    /// The kernel's release is too old.
    #[error("kube-proxy in nftables mode requires kernel 5.13 or later")]
    Kernel,
    /// nft cannot be run.
    #[error("could not find nftables binary: {0}")]
    NoNft(String),
    /// nft is too old, or says something else than its version.
    #[error("nft version must be v1.0.1 or later (got {0})")]
    NftVersion(String),
    /// The kernel does not answer nft.
    #[error("could not use nftables: is nft installed, and may this process change the network?")]
    NoNftables,
    /// It has no addresses of the node's own family.
    #[error("no support for primary IP family {:?}", .0.api_name())]
    Family(Family),
}

#[cfg(test)]
#[path = "backend_contract.rs"]
pub(crate) mod contract;

#[cfg(test)]
#[path = "backend_model.rs"]
pub(crate) mod model;
