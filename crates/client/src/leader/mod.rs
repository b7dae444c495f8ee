//! Leader election by a Lease: one of several instances does the work, and stops before another may begin.
//!
//! A candidate never compares clocks: it measures, on its own clock, for how long the record has not changed.

mod candidate;
mod lease_lock;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use base::CancellationToken;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::client::Client;
use crate::config::ConfigError;
use crate::error::ClientError;
use crate::events::{EventRecorder, EventType};
pub use candidate::Candidacy;
use lease_lock::{Attempt, LeaseLock};

/// Candidates wait the retry period and up to this many times it more.
const JITTER: f64 = 1.2;
/// The health check allows this much beyond the lease duration.
const HEALTH_GRACE: Duration = Duration::from_secs(20);

/// What an election is about.
#[derive(Debug, Clone)]
pub struct LeaderConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// What this instance is called; unique, see [`LeaderConfig::new`].
    pub identity: String,
    /// For how long a leader that is not heard of keeps its office.
    pub lease_duration: Duration,
    /// For how long a leader tries to renew before it steps down.
    pub renew_deadline: Duration,
    /// How often candidates and leader try.
    pub retry_period: Duration,
    /// Whether to give the lease back when stopped, so that another need not wait for its end. It is kept until the work
    /// has ended, and the work must end soon after its token is cancelled.
    pub release_on_stop: bool,
    /// For an election that somebody else decides: the versions that this instance stands for. It takes no lease that it
    /// was not given, and steps down when another is to follow.
    pub coordinated: Option<Candidacy>,
}

impl LeaderConfig {
    /// An election with upstream's times: 15 s, 10 s and 2 s. The identity becomes `{hostname}_{uuid}`.
    #[must_use]
    pub fn new(namespace: &str, name: &str, hostname: &str, rng: &base::Rng) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: format!("{hostname}_{}", rng.uuid()),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release_on_stop: false,
            coordinated: None,
        }
    }

    /// Checks the times against each other.
    ///
    /// # Errors
    /// What is wrong, in upstream's words.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let positive = [
            ("leaseDuration", self.lease_duration),
            ("renewDeadline", self.renew_deadline),
            ("retryPeriod", self.retry_period),
        ];
        let problem = if self.lease_duration <= self.renew_deadline {
            "leaseDuration must be greater than renewDeadline".to_owned()
        } else if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            "renewDeadline must be greater than retryPeriod*JitterFactor".to_owned()
        } else if let Some((name, _)) = positive.iter().find(|(_, value)| value.is_zero()) {
            format!("{name} must be greater than zero")
        } else if self.identity.is_empty() {
            "Lock identity is empty".to_owned()
        } else {
            return Ok(());
        };
        Err(ConfigError::Invalid(vec![problem]))
    }
}

/// How leading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaderEnd {
    /// It was asked to stop; exit with 0.
    Stopped,
    /// The lease was lost; exit with 1, as the work's tasks may still run.
    Lost,
    /// The work ended by itself.
    Finished,
}

/// One candidate. Clones share its state, for health checks and metrics.
#[derive(Clone)]
pub struct LeaderElector {
    client: Client,
    config: LeaderConfig,
    recorder: Option<EventRecorder>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    leading: bool,
    leader: String,
    /// When the lease was last taken or renewed by this instance.
    renewed: Option<Instant>,
}

impl LeaderElector {
    /// A candidate that asks through a connection of its own behaviour: no rate limit, short deadline.
    ///
    /// # Errors
    /// When the times contradict each other.
    pub fn new(client: &Client, config: LeaderConfig, recorder: Option<EventRecorder>) -> Result<Self, ConfigError> {
        config.validate()?;
        let timeout = (config.renew_deadline / 2).max(Duration::from_secs(1));
        let client = client.derive(|config| {
            config.with_user_agent_suffix("leader-election").with_timeout(timeout).with_rate(-1.0, 1)
        })?;
        Ok(Self { client, config, recorder, state: Arc::default() })
    }

    /// Whether this instance leads.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.state.lock().leading
    }

    /// Who leads, as far as this instance knows; empty for nobody.
    #[must_use]
    pub fn leader(&self) -> String {
        self.state.lock().leader.clone()
    }

    /// The health check `leaderElection`: fails when this instance believes to lead but has not renewed for long.
    ///
    /// # Errors
    /// The text to show.
    pub fn check(&self) -> Result<(), String> {
        let now = self.client.clock().monotonic();
        let state = self.state.lock();
        let limit = self.config.lease_duration + HEALTH_GRACE;
        match state.renewed {
            Some(at) if state.leading && now.saturating_duration_since(at) > limit => {
                Err(format!("failed election to renew leadership on lease {}", self.config.name))
            }
            _ => Ok(()),
        }
    }

    /// Waits for the lease, then runs `lead` while it holds. The token that `lead` gets is cancelled when the lease is
    /// lost or `stop` is; `lead` is dropped then, and what it spawned must watch the token. Where the lease is given back at
    /// a stop, `lead` ends by itself first.
    pub async fn run<F, Fut>(&self, stop: CancellationToken, lead: F) -> LeaderEnd
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()>,
    {
        let mut lock = LeaseLock::new(&self.client, &self.config);
        let mut candidacy = pin!(self.stand());
        tokio::select! {
            biased;
            () = stop.cancelled() => return LeaderEnd::Stopped,
            () = &mut candidacy => return LeaderEnd::Lost,
            () = self.acquire(&mut lock) => {}
        }
        let leading = stop.child_token();
        let mut work = pin!(lead(leading.clone()));
        let end = tokio::select! {
            biased;
            () = stop.cancelled() => LeaderEnd::Stopped,
            () = &mut candidacy => LeaderEnd::Lost,
            () = self.hold(&mut lock) => LeaderEnd::Lost,
            () = &mut work => LeaderEnd::Finished,
        };
        leading.cancel();
        let releases = self.config.release_on_stop
            && match end {
                LeaderEnd::Finished => true,
                LeaderEnd::Stopped => self.work_ends(&mut lock, work).await,
                LeaderEnd::Lost => false,
            };
        self.step_down(&mut lock, releases).await;
        end
    }

    /// Keeps the lease until the work that was told to has ended: who leads next must not meet it. False when another may
    /// lead already.
    async fn work_ends(&self, lock: &mut LeaseLock, work: impl Future<Output = ()>) -> bool {
        tokio::select! {
            biased;
            () = work => true,
            () = self.hold(lock) => false,
        }
    }

    /// Stands as a candidate where the election is somebody else's; never ends.
    async fn stand(&self) {
        match &self.config.coordinated {
            Some(candidacy) => candidate::stand(&self.client, &self.config, candidacy).await,
            None => std::future::pending().await,
        }
    }

    async fn acquire(&self, lock: &mut LeaseLock) {
        tracing::info!(lease = %self.config.name, namespace = %self.config.namespace, "Attempting to acquire leader lease");
        loop {
            if self.attempt(lock).await == Some(Attempt::Held) {
                tracing::info!(lease = %self.config.name, identity = %self.config.identity, "Successfully acquired lease");
                self.state.lock().leading = true;
                self.record(lock, "became leader");
                return;
            }
            tokio::time::sleep(self.config.retry_period.mul_f64(1.0 + JITTER * self.client.rng().unit())).await;
        }
    }

    /// Renews until that fails for as long as the renew deadline, another holds the lease, or the time is over for which
    /// the lease was written: after that another may hold it, however late the last answer came.
    async fn hold(&self, lock: &mut LeaseLock) {
        loop {
            tokio::time::sleep(self.config.retry_period).await;
            let deadline = self.client.clock().monotonic() + self.config.renew_deadline;
            match tokio::time::timeout_at(deadline.min(lock.held_until()), self.renew(lock)).await {
                Ok(Attempt::Held) => {}
                Ok(Attempt::HeldByOther) => {
                    tracing::error!(lease = %self.config.name, leader = lock.holder(), "Another holds the lease, leadership is lost");
                    return;
                }
                Err(_) => {
                    tracing::error!(lease = %self.config.name, "Failed to renew lease, leadership is lost");
                    return;
                }
            }
        }
    }

    /// Tries until there is an answer.
    async fn renew(&self, lock: &mut LeaseLock) -> Attempt {
        loop {
            if let Some(answer) = self.attempt(lock).await {
                return answer;
            }
            tokio::time::sleep(self.config.retry_period).await;
        }
    }

    /// One try to take or to renew the lease; nothing where it failed.
    async fn attempt(&self, lock: &mut LeaseLock) -> Option<Attempt> {
        let outcome = match self.config.coordinated {
            Some(_) => lock.try_renew_what_was_given().await,
            None => lock.try_acquire_or_renew().await,
        };
        let mut state = self.state.lock();
        if state.leader != lock.holder() {
            lock.holder().clone_into(&mut state.leader);
            tracing::info!(leader = %state.leader, lease = %self.config.name, "New leader observed");
        }
        if outcome.as_ref().is_ok_and(|attempt| *attempt == Attempt::Held) {
            state.renewed = Some(self.client.clock().monotonic());
        }
        outcome.inspect_err(|error| log_failure(error, &self.config.name)).ok()
    }

    async fn step_down(&self, lock: &mut LeaseLock, releases: bool) {
        self.state.lock().leading = false;
        self.record(lock, "stopped leading");
        if releases {
            let release = tokio::time::timeout(self.config.renew_deadline, lock.release());
            if let Ok(Err(error)) = release.await {
                tracing::error!(%error, lease = %self.config.name, "Failed to release lock");
            }
        }
    }

    fn record(&self, lock: &LeaseLock, what: &str) {
        if let Some(recorder) = &self.recorder {
            let message = format!("{} {what}", self.config.identity);
            recorder.event_for(lock.reference(), EventType::Normal, "LeaderElection", message);
        }
    }
}

fn log_failure(error: &ClientError, lease: &str) {
    if error.is_conflict() || error.is_already_exists() {
        tracing::debug!(%error, lease, "Another candidate was faster");
    } else {
        tracing::error!(%error, lease, "Error retrieving or updating the lease");
    }
}
