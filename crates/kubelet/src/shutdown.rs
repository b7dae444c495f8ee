//! Graceful shutdown of the node, as the configuration wants it.

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use async_trait::async_trait;
use component_base::Gates;
use kubelet_node::shutdown::{EndPods, LogindError, Period, ShutdownManager, SystemLogind, periods};

use crate::config::{Plan, gates};
use crate::engine::{Eviction, PodEngine};

/// How soon a connection to the login manager that was lost is made anew.
const RECONNECT: Duration = Duration::from_secs(1);
const MESSAGE: &str = "Pod was terminated in response to imminent node shutdown.";

/// The pods of the engine, ended with the words of a shutdown.
pub(crate) struct Pods(pub(crate) PodEngine);

#[async_trait]
impl EndPods for Pods {
    fn active(&self) -> Vec<Arc<Pod>> {
        self.0.active_pods()
    }

    async fn end(&self, pod: &Pod, grace_seconds: i64) {
        let why = Eviction {
            reason: "Terminated".to_owned(),
            message: MESSAGE.to_owned(),
            grace: Some(grace_seconds),
            condition_message: Some(MESSAGE.to_owned()),
            annotations: Default::default(),
        };
        if let Err(error) = self.0.end(&pod.metadata.uid, why).await {
            tracing::info!(pod = %pod.metadata.name, %error, "Shutdown manager failed killing pod");
        }
    }
}

/// A setting that needs a gate which is off, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GateError {
    #[error(
        "invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate \
         GracefulNodeShutdown"
    )]
    Period,
    #[error(
        "invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate \
         GracefulNodeShutdownBasedOnPodPriority"
    )]
    ByPriority,
}

/// How long pods get when the machine goes down; none where nobody waits for that.
pub(crate) fn configured(plan: &Plan, set: &Gates) -> Result<Vec<Period>, GateError> {
    let config = &plan.config;
    let by_priority = &config.shutdown_grace_period_by_pod_priority;
    let (all, critical) = (config.shutdown_grace_period, config.shutdown_grace_period_critical_pods);
    let asked = !all.is_zero() || !critical.is_zero();
    if asked && !set.enabled(gates::GRACEFUL_SHUTDOWN) {
        return Err(GateError::Period);
    }
    if !set.enabled(gates::GRACEFUL_SHUTDOWN_BY_PRIORITY) && !by_priority.is_empty() {
        return Err(GateError::ByPriority);
    }
    let seconds = |period: api_machinery::time::GoDuration| period.nanos() / 1_000_000_000;
    Ok(periods(by_priority, seconds(all), seconds(critical)))
}

/// Waits for the machine to go down, for as long as the login manager can be reached.
pub(crate) async fn run(manager: ShutdownManager) {
    // A machine without a login manager does not get one later.
    if let Err(error) = watch(&manager).await {
        tracing::error!(%error, "Failed to start node shutdown manager");
        return;
    }
    loop {
        tokio::time::sleep(RECONNECT).await;
        tracing::info!("Restarting watch for node shutdown events");
        if let Err(error) = watch(&manager).await {
            tracing::error!(%error, "Unable to watch the node for shutdown events");
        }
    }
}

async fn watch(manager: &ShutdownManager) -> Result<(), LogindError> {
    let logind = SystemLogind::connect().await?;
    manager.watch(&logind).await
}
