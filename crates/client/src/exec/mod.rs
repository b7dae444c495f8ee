//! Credential plugins: programs that a kubeconfig names, which write down a token or a client certificate (KEP-541,
//! `client.authentication.k8s.io`). What one said is used by all clients of a process until it expires or a server refuses it.
//!
//! Components have no terminal: a plugin that must talk to somebody is an error, and none is given a standard input. Which
//! plugins may run at all is a preference of kubectl's users, and not asked here.

mod authenticator;
mod credential;
mod metrics;
mod plugin;
mod run;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::{Arc, Weak};

use base::SharedClock;
use parking_lot::Mutex;
use sys::exec::Exec;

pub(crate) use authenticator::{Authenticator, PluginCredentials};
pub(crate) use metrics::PluginMetrics;
pub use plugin::ExecPlugin;
pub(crate) use plugin::problems;

/// Prefix of the `OpenAPI` names of this package.
const PACKAGE: &str = "io.k8s.client-go.pkg.apis.clientauthentication.v1";

/// The plugins that clients of a process use now. Those with the same settings share one, as upstream.
#[derive(Default)]
pub(crate) struct Plugins(Mutex<Vec<Weak<Authenticator>>>);

impl Plugins {
    /// The one with these settings; a new one where nobody uses it yet.
    pub(crate) fn of(
        &self,
        plugin: &ExecPlugin,
        exec: &Arc<dyn Exec>,
        clock: &SharedClock,
        metrics: Option<&PluginMetrics>,
    ) -> Arc<Authenticator> {
        let mut known = self.0.lock();
        // What nobody uses any more goes, so that there are never more than clients.
        known.retain(|one| one.strong_count() > 0);
        if let Some(own) = known.iter().filter_map(Weak::upgrade).find(|one| one.plugin() == plugin) {
            return own;
        }
        let own = Authenticator::new(plugin.clone(), Arc::clone(exec), clock, metrics);
        known.push(Arc::downgrade(&own));
        own
    }
}
