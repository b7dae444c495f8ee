//! Work that begins once the server serves, and that readiness waits for.

use std::sync::Arc;

use async_trait::async_trait;
use component_base::health::{Endpoint, Health, Hook, Installed};

use crate::cx::ApiCx;

/// One piece of start-up work.
#[async_trait]
pub(crate) trait PostStartHook: Send + Sync + 'static {
    /// Its name in health checks (`poststarthook/<name>`).
    fn name(&self) -> &'static str;

    /// Does the work. What must go on for the life of the server is spawned as a task.
    ///
    /// # Errors
    /// What makes it pointless to go on: the server ends.
    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), String>;
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
                        tracing::error!(hook = hook.name(), error, "PostStartHook failed");
                        context.fail(format!("PostStartHook {:?} failed: {error}", hook.name()));
                    }
                }
            });
        }
    }
}
