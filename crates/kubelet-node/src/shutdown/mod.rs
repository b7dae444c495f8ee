//! The machine goes down: pods are ended in order before it does, as far as it can be kept waiting.
//!
//! See <https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/>; KEP-2000, KEP-2712.

mod groups;
mod logind;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use api_types::core_v1::{ObjectReference, Pod};
use async_trait::async_trait;
use base::SharedClock;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::json;

use crate::interfaces::{Events, Level};
use groups::{Group, grace, groups};
pub use groups::{Period, periods};
pub use logind::{Lock, Logind, LogindError, SystemLogind};

const STATE_FILE: &str = "graceful_node_shutdown_state";
/// How often the login manager is looked at after it was asked to wait longer, and the first pause in between.
const DELAY_TRIES: u32 = 5;
const DELAY_PAUSE: Duration = Duration::from_millis(100);

/// Who ends pods.
#[async_trait]
pub trait EndPods: Send + Sync + 'static {
    /// Pods that have not ended.
    fn active(&self) -> Vec<Arc<Pod>>;

    /// Ends a pod, whose containers get so many seconds, and waits until nothing of it is left.
    async fn end(&self, pod: &Pod, grace_seconds: i64);
}

/// Who has to know that the machine goes down.
pub trait ShutdownView: Send + Sync + 'static {
    /// It does, or does not any more.
    fn set_shutting_down(&self, going: bool);
}

/// The times of a shutdown, in seconds since 1970; 0 while there is none.
pub type Count = Box<dyn Fn(f64, f64) + Send + Sync>;

/// Who waits for the machine to go down.
pub struct ShutdownManager {
    pub periods: Vec<Period>,
    pub root: PathBuf,
    pub node: ObjectReference,
    pub pods: Arc<dyn EndPods>,
    pub view: Arc<dyn ShutdownView>,
    pub events: Arc<dyn Events>,
    pub clock: SharedClock,
    pub count: Count,
}

impl ShutdownManager {
    /// How long the machine has to wait.
    fn total(&self) -> Duration {
        Duration::from_secs(self.periods.iter().map(|period| u64::try_from(period.seconds).unwrap_or_default()).sum())
    }

    /// Waits for the machine to go down, and ends its pods then. Ends when the connection does.
    ///
    /// # Errors
    /// The login manager cannot be made to wait.
    pub async fn watch(&self, logind: &dyn Logind) -> Result<(), LogindError> {
        self.ensure_delay(logind).await?;
        let mut shutdowns = logind.shutdowns().await?;
        let mut lock = Some(logind.inhibit().await?);
        while let Some(going) = shutdowns.next().await {
            let what = if going { "event" } else { "cancellation" };
            let text = format!("Shutdown manager detected shutdown {what}");
            tracing::info!(going, "The machine goes down, or does not any more");
            self.events.event(self.node.clone(), Level::Normal, "Shutdown", &text);
            self.view.set_shutting_down(going);
            match going {
                true => self.process(lock.take()).await,
                false => lock = Some(logind.inhibit().await?),
            }
        }
        Ok(())
    }

    async fn ensure_delay(&self, logind: &dyn Logind) -> Result<(), LogindError> {
        let (wanted, mut found) = (self.total(), logind.longest_delay().await?);
        if found >= wanted {
            return Ok(());
        }
        logind.override_delay(wanted).await?;
        let mut pause = DELAY_PAUSE;
        for _ in 0..DELAY_TRIES {
            found = logind.longest_delay().await?;
            if found >= wanted {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(LogindError::Delay { tries: DELAY_TRIES, wanted, found })
    }

    /// Ends all pods; the machine waits for as long as the lock is held.
    async fn process(&self, lock: Option<Lock>) {
        let started = self.clock.wall();
        self.note(started, None);
        for group in groups(&self.periods, self.pods.active()) {
            self.end(&group).await;
        }
        self.note(started, Some(self.clock.wall()));
        drop(lock);
    }

    async fn end(&self, group: &Group) {
        let limit = Duration::from_secs(u64::try_from(group.seconds).unwrap_or_default());
        let ended = join_all(group.pods.iter().map(|pod| self.pods.end(pod, grace(pod, group))));
        if tokio::time::timeout(limit, ended).await.is_err() {
            tracing::warn!(seconds = group.seconds, "Shutdown manager pod killing time out");
        }
    }

    fn note(&self, started: SystemTime, ended: Option<SystemTime>) {
        (self.count)(seconds(Some(started)), seconds(ended));
        let text = |time: Option<SystemTime>| time.map(|time| Time::from(time).to_string());
        let state = json!({"startTime": text(Some(started)), "endTime": text(ended)}).to_string();
        if let Err(error) = sys::fs::write_atomic(&self.root.join(STATE_FILE), state.as_bytes(), 0o644) {
            tracing::error!(%error, "Saving the times of the shutdown failed");
        }
    }
}

fn seconds(time: Option<SystemTime>) -> f64 {
    time.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok()).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
