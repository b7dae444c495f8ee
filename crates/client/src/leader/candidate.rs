//! A candidate of a coordinated election: it says which versions it is of, and that it is there whenever it is asked. Who
//! leads is decided elsewhere (KEP-4355).

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ListOptions, ObjectMeta};
use api_machinery::time::MicroTime;
use api_types::coordination_v1::constants::coordinated_lease_strategy::OLDEST_EMULATION_VERSION;
use api_types::coordination_v1beta1::{LeaseCandidate, LeaseCandidateSpec};
use tokio::sync::Notify;

use super::LeaderConfig;
use crate::client::Client;
use crate::error::ClientError;
use crate::informer::{self, InformerOptions, Informers, Scope};
use crate::object_key::ObjectKey;

/// How soon an answer that failed is repeated.
const RETRY: Duration = Duration::from_secs(1);
/// How often a candidate is heard of that nobody asks, as upstream: one that is not for half an hour counts as gone.
const RENEWAL: Duration = Duration::from_secs(5 * 60);

/// Which versions a candidate is of, as `major.minor.patch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidacy {
    /// That of its binary.
    pub binary_version: String,
    /// That which it acts as.
    pub emulation_version: String,
}

/// Keeps the LeaseCandidate of an instance, and answers when it is asked; never ends.
pub(super) async fn stand(client: &Client, config: &LeaderConfig, candidacy: &Candidacy) {
    until_served(client, config).await;
    let scope = Scope::object(&config.namespace, &config.identity);
    let informers = Informers::new(client, InformerOptions::default());
    let informer = informers.scoped::<LeaseCandidate>(&scope);
    let changed = Arc::new(Notify::new());
    let tell = Arc::clone(&changed);
    informer.subscribe(move |_| tell.notify_one());
    informer.start();
    informer.wait_synced().await;
    let key = ObjectKey::new(&config.namespace, &config.identity);
    let mut is_due = false;
    loop {
        let outcome = match informer.get(&key) {
            None => create(client, config, candidacy).await,
            Some(own) if is_due || is_asked(&own.spec) => answer(client, config, &own).await,
            Some(_) => Ok(()),
        };
        match outcome {
            Ok(()) => is_due = tokio::time::timeout(RENEWAL, changed.notified()).await.is_err(),
            Err(error) => {
                tracing::warn!(%error, candidate = %config.identity, "Keeping the lease candidate failed");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Waits until the API server has candidates at all. Where it has not, nobody decides the election and nobody leads; that is
/// told once, as the answer stays the same until somebody does something.
async fn until_served(client: &Client, config: &LeaderConfig) {
    let candidates = client.namespaced::<LeaseCandidate>(&config.namespace);
    let options = ListOptions { limit: 1, ..ListOptions::default() };
    let (mut backoff, mut is_told) = (informer::backoff(), false);
    while let Err(error) = candidates.list(&options).await {
        if !error.is_not_found() {
            tracing::warn!(%error, candidate = %config.identity, "Asking for lease candidates failed");
        } else if !is_told {
            is_told = true;
            tracing::warn!(
                lease = %config.name,
                "The API server does not serve LeaseCandidates, and nobody leads without them: have it serve \
                 coordination.k8s.io/v1beta1 with its gate CoordinatedLeaderElection, or switch that gate off here"
            );
        }
        tokio::time::sleep(backoff.step(client.rng())).await;
    }
}

/// Whether somebody asked after it was last heard of.
fn is_asked(spec: &LeaseCandidateSpec) -> bool {
    spec.ping_time.is_some_and(|asked| spec.renew_time.is_none_or(|renewed| renewed < asked))
}

async fn create(client: &Client, config: &LeaderConfig, candidacy: &Candidacy) -> Result<(), ClientError> {
    let candidate = LeaseCandidate {
        metadata: ObjectMeta {
            name: config.identity.clone(),
            namespace: config.namespace.clone(),
            ..ObjectMeta::default()
        },
        spec: LeaseCandidateSpec {
            lease_name: config.name.clone(),
            renew_time: Some(MicroTime::from(client.clock().wall())),
            binary_version: candidacy.binary_version.clone(),
            emulation_version: candidacy.emulation_version.clone(),
            strategy: OLDEST_EMULATION_VERSION.to_owned(),
            ..LeaseCandidateSpec::default()
        },
    };
    match client.namespaced::<LeaseCandidate>(&config.namespace).create(&candidate).await {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}

async fn answer(client: &Client, config: &LeaderConfig, own: &LeaseCandidate) -> Result<(), ClientError> {
    let mut renewed = own.clone();
    // Never before the question, whatever the clocks say of it: that would be no answer.
    let now = MicroTime::from(client.clock().wall());
    renewed.spec.renew_time = Some(own.spec.ping_time.map_or(now, |asked| asked.max(now)));
    match client.namespaced::<LeaseCandidate>(&config.namespace).update(&renewed).await {
        // A newer state is on its way.
        Err(error) if !error.is_conflict() && !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "candidate_tests.rs"]
mod tests;
