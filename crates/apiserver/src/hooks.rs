//! Work that begins once the server serves, and that readiness waits for.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use client::ClientError;
use component_base::health::{Endpoint, Health, Hook, Installed};

use crate::cx::ApiCx;

/// Why start-up work failed for good. What may pass is tried again before.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    /// A file that says what the host is.
    #[error("{path}: {source}")]
    Host {
        /// The file.
        path: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// Services are given addresses of another family than the server is reached by.
    #[error("service IP family \"{network}/{length}\" must match public address family \"{address}\"")]
    Family {
        /// The first range of Services.
        network: IpAddr,
        /// The length of its prefix.
        length: u8,
        /// Where the server is reached.
        address: IpAddr,
    },
    /// What it was told makes no sense.
    #[error("{what}: {why}")]
    Configuration {
        /// What could not begin.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// It still failed when time was up.
    #[error("{what}: {source}")]
    Failing {
        /// What could not be done.
        what: &'static str,
        /// Why the last try failed.
        source: TryError,
    },
    /// It did not come to an end in time.
    #[error("{0}")]
    Late(&'static str),
    /// The server ends before it has begun.
    #[error("the server ends")]
    Ending,
}

/// Why a try failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TryError {
    /// It took too long.
    #[error("timed out")]
    TimedOut,
    /// The server refused it.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// One piece of start-up work.
#[async_trait]
pub(crate) trait PostStartHook: Send + Sync + 'static {
    /// Its name in health checks (`poststarthook/<name>`).
    fn name(&self) -> &'static str;

    /// Does the work. What must go on for the life of the server is spawned as a task.
    ///
    /// # Errors
    /// What makes it pointless to go on: the server ends.
    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError>;
}

/// Work that upstream's server does after the start, and this one needs not: what it would wait for is there from the start, or
/// another hook waits for it. Who asks for its check finds it.
pub(crate) struct Ready(pub(crate) &'static str);

#[async_trait]
impl PostStartHook for Ready {
    fn name(&self) -> &'static str {
        self.0
    }

    async fn run(&self, _: &Arc<ApiCx>) -> Result<(), HookError> {
        Ok(())
    }
}

/// The hooks of a server with their health checks.
pub(crate) struct Hooks(Vec<(Arc<dyn PostStartHook>, Hook)>);

impl Hooks {
    /// Adds the checks, which fail until the hooks are done.
    pub(crate) fn new(hooks: Vec<Arc<dyn PostStartHook>>, health: &Health) -> Result<Self, Installed> {
        let mut with_checks = Vec::new();
        for hook in hooks {
            let state = Hook::default();
            health.add(Endpoint::ALL, &state.check(hook.name()))?;
            with_checks.push((hook, state));
        }
        Ok(Self(with_checks))
    }

    /// Runs all hooks side by side as tasks; the first failure is logged and asks the process to end.
    pub(crate) fn start(self, cx: &Arc<ApiCx>) {
        for (hook, state) in self.0 {
            let context = Arc::clone(cx);
            cx.tasks().spawn_cancellable(hook.name(), async move {
                match hook.run(&context).await {
                    Ok(()) => state.done(),
                    Err(error) => {
                        tracing::error!(hook = hook.name(), %error, "PostStartHook failed");
                        context.fail(format!("PostStartHook {:?} failed: {error}", hook.name()));
                    }
                }
            });
        }
    }
}
