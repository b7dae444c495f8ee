//! What a plugin said last, when it is asked again, and who waits for it. However many wait, the plugin runs once; it runs on
//! when they give up, so that the next ones find its answer.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use base::{SharedClock, TaskGroup};
use component_base::logging::Redacted;
use component_base::tls::ClientIdentity;
use parking_lot::Mutex;
use sys::exec::Exec;
use tokio::sync::watch;

use super::credential::{self, ExecCredentialStatus};
use super::metrics::{Expiry, PluginMetrics};
use super::plugin::ExecPlugin;
use super::run::{self, Helps};
use crate::transport::Pool;

/// What a plugin said. Two are the same only if they came from one run.
pub(crate) struct PluginCredentials {
    token: Redacted<String>,
    /// Chain and key.
    pair: Option<Redacted<(String, String)>>,
    expires: Option<SystemTime>,
}

impl PluginCredentials {
    /// The bearer token; empty for none.
    pub(crate) fn token(&self) -> &str {
        self.token.expose()
    }
}

impl From<ExecCredentialStatus> for PluginCredentials {
    fn from(status: ExecCredentialStatus) -> Self {
        let has_pair = !status.client_certificate_data.is_empty();
        let pair = Redacted::new((status.client_certificate_data, status.client_key_data));
        Self {
            token: Redacted::new(status.token),
            pair: has_pair.then_some(pair),
            expires: status.expiration_timestamp.map(SystemTime::from),
        }
    }
}

type Outcome = Result<Arc<PluginCredentials>, Arc<str>>;
/// Holds the outcome of a run when it has ended.
type Run = watch::Receiver<Option<Outcome>>;

/// A plugin in use.
pub(crate) struct Authenticator {
    plugin: ExecPlugin,
    exec: Arc<dyn Exec>,
    clock: SharedClock,
    metrics: Option<PluginMetrics>,
    /// The certificate that connections show.
    identity: Arc<ClientIdentity>,
    expiry: Arc<Expiry>,
    /// The connections that were made with it.
    pools: Mutex<Vec<Weak<Pool>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<PluginCredentials>>,
    running: Option<Run>,
    helps: Helps,
}

impl State {
    /// What may still be used.
    fn valid(&self, now: SystemTime) -> Option<Arc<PluginCredentials>> {
        let is_valid = |own: &&Arc<PluginCredentials>| own.expires.is_none_or(|end| now <= end);
        self.current.as_ref().filter(is_valid).cloned()
    }

    /// The run that is under way. One that was dropped before its end is none.
    fn running(&self) -> Option<Run> {
        self.running.as_ref().filter(|run| run.has_changed().is_ok()).cloned()
    }
}

impl Authenticator {
    pub(super) fn new(
        plugin: ExecPlugin,
        exec: Arc<dyn Exec>,
        clock: &SharedClock,
        metrics: Option<&PluginMetrics>,
    ) -> Arc<Self> {
        let expiry = Expiry::new(clock);
        if let Some(metrics) = metrics {
            metrics.follow(&expiry);
        }
        Arc::new(Self {
            plugin,
            exec,
            clock: Arc::clone(clock),
            metrics: metrics.cloned(),
            identity: ClientIdentity::none(),
            expiry,
            pools: Mutex::default(),
            state: Mutex::default(),
        })
    }

    pub(super) fn plugin(&self) -> &ExecPlugin {
        &self.plugin
    }

    /// The certificate that connections are to show; none until the plugin has given one.
    pub(crate) fn identity(&self) -> &Arc<ClientIdentity> {
        &self.identity
    }

    /// Has connections closed when the certificate changes.
    pub(crate) fn follow(&self, pool: &Arc<Pool>) {
        let mut pools = self.pools.lock();
        pools.retain(|one| one.strong_count() > 0);
        pools.push(Arc::downgrade(pool));
    }

    /// The credentials: those that are known, or else what the plugin says, which then runs in `tasks`.
    ///
    /// # Errors
    /// When it fails, or says nothing of use.
    pub(crate) async fn credentials(self: &Arc<Self>, tasks: &TaskGroup) -> Outcome {
        let run = {
            let mut state = self.state.lock();
            match (state.running(), state.valid(self.clock.wall())) {
                (Some(run), _) => run,
                (None, Some(known)) => return Ok(known),
                (None, None) => self.start(&mut state, tasks),
            }
        };
        // What a server has refused to somebody may still be good for others, if there is nothing better.
        outcome(run).await.or_else(|error| self.state.lock().valid(self.clock.wall()).ok_or(error))
    }

    /// A server refused credentials: if they are still those in use, the plugin is asked for others. They stay in use if it
    /// has none.
    pub(crate) async fn refused(self: &Arc<Self>, used: &Arc<PluginCredentials>, tasks: &TaskGroup) {
        let run = {
            let mut state = self.state.lock();
            match state.running() {
                Some(run) => run,
                None if state.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, used)) => {
                    self.start(&mut state, tasks)
                }
                None => return,
            }
        };
        if let Err(error) = outcome(run).await {
            tracing::error!(%error, "Refreshing credentials failed");
        }
    }

    fn start(self: &Arc<Self>, state: &mut State, tasks: &TaskGroup) -> Run {
        let (ended, run) = watch::channel(None);
        state.running = Some(run.clone());
        let own = Arc::clone(self);
        tasks.spawn_cancellable("credential-plugin", async move {
            let outcome = own.ask().await;
            own.state.lock().running = None;
            // Everybody may have given up.
            let _ = ended.send(Some(outcome));
        });
        run
    }

    /// Runs the plugin, and puts what it says in the place of what it said before.
    async fn ask(&self) -> Outcome {
        if self.plugin.needs_terminal {
            return Err("exec plugin cannot support interactive mode: standard input is not a terminal".into());
        }
        let written = run::run(&self.plugin, &*self.exec, self.metrics.as_ref()).await.map_err(|error| {
            let now = self.clock.monotonic();
            error.text(&self.plugin.install_hint, &mut self.state.lock().helps, now)
        })?;
        let said = credential::read(&written, self.plugin.version)?;
        Ok(self.adopt(said.into())?)
    }

    /// Puts new credentials in the place of former ones. Connections show the certificate, or none, that they were made with.
    fn adopt(&self, said: PluginCredentials) -> Result<Arc<PluginCredentials>, String> {
        let former = self.state.lock().current.clone();
        let has_changed = former.as_ref().and_then(|former| former.pair.as_ref()) != said.pair.as_ref();
        let age = self.identity.validity().and_then(|(start, _)| self.clock.wall().duration_since(start).ok());
        match said.pair.as_ref().map(Redacted::expose) {
            Some((chain, key)) if has_changed => {
                let set = self.identity.set(chain.as_bytes(), key.as_bytes());
                set.map_err(|error| format!("failed parsing client key/certificate: {error}"))?;
            }
            None if has_changed => self.identity.clear(),
            _ => {}
        }
        self.expiry.set(self.identity.validity().map(|(_, end)| end));
        let said = Arc::new(said);
        self.state.lock().current = Some(Arc::clone(&said));
        if has_changed {
            self.close_connections();
            if let (Some(metrics), Some(age)) = (&self.metrics, age) {
                metrics.rotated(age);
            }
        }
        Ok(said)
    }

    fn close_connections(&self) {
        tracing::debug!(command = %self.plugin.command, "A credential plugin's certificate changed, closing connections");
        let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
        pools.iter().for_each(|pool| pool.reset());
    }
}

/// Waits for the end of a run.
async fn outcome(mut run: Run) -> Outcome {
    let ended = run.wait_for(Option::is_some).await;
    ended.ok().and_then(|outcome| outcome.clone()).unwrap_or_else(|| Err("exec: the plugin was stopped".into()))
}
