//! Clears away token Secrets that nobody uses any more and that were made automatically, as releases before v1.24 did.
//!
//! One is first marked as invalid, so that the API server refuses its token; a whole period later it is deleted.
//! Secrets that users made stay. See KEP-2799.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, Preconditions};
use api_machinery::time::Time;
use api_machinery::value::ValueMap;
use api_types::core_v1::{ConfigMap, Pod, Secret, ServiceAccount};
use client::{Informer, ObjectKey, Patch};
use component_helpers::legacy_tokens::{
    INVALID_SINCE, LAST_USED, TRACKING_NAME, TRACKING_NAMESPACE, TRACKING_SINCE, date, day,
};
use component_helpers::pod_references::{Reference, each_reference};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::service_account_tokens::{account_name, is_for, token_secrets};
use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "legacy-serviceaccount-token-cleaner-controller",
    aliases: &["legacy-service-account-token-cleaner"],
    gates: &[],
    identity: "legacy-service-account-token-cleaner",
    event_component: "",
    disabled_by_default: false,
    build,
};

const PERIOD: Duration = Duration::from_secs(24 * 3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let period = build.settings::<Settings>()?.legacy_token_clean_up_period;
    let accounts = build.watch::<ServiceAccount>().informer();
    let secrets = build.watch_scoped::<Secret>(&token_secrets()).informer();
    let pods = build.watch::<Pod>().informer();
    build.every("legacy_service_account_token_cleaner", PERIOD, Arc::new(Cleaner { accounts, secrets, pods, period }));
    Ok(())
}

struct Cleaner {
    accounts: Informer<ServiceAccount>,
    secrets: Informer<Secret>,
    pods: Informer<Pod>,
    period: Duration,
}

/// What to do with a Secret.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Keep,
    Mark,
    Delete,
}

/// Decides from the Secret's own marks; whether anybody refers to it is asked only where it matters.
fn plan(secret: &Secret, limit: Time, is_candidate: impl FnOnce() -> bool) -> Plan {
    let meta = &secret.metadata;
    let limit_date = date(limit);
    let used = meta.labels.get(LAST_USED);
    let recent = used.is_some_and(|used| day(used).is_none() || *used >= limit_date);
    if meta.creation_timestamp >= limit || meta.deletion_timestamp.is_some() || recent || !is_candidate() {
        return Plan::Keep;
    }
    match meta.labels.get(INVALID_SINCE).filter(|since| day(since).is_some()) {
        None => Plan::Mark,
        Some(since) if *since >= limit_date => Plan::Keep,
        Some(_) => Plan::Delete,
    }
}

/// Whether a pod names the Secret: as the source of a variable, a volume, or to pull images with.
fn names(pod: &Pod, secret: &str) -> bool {
    let mut named = false;
    each_reference(&pod.spec, &mut |reference| named |= reference == Reference::Secret(secret));
    named
}

impl Cleaner {
    /// Whether a Secret was made automatically and no pod names it.
    fn is_candidate(&self, secret: &Secret) -> bool {
        let meta = &secret.metadata;
        let account = self.accounts.find(&meta.namespace, account_name(secret));
        let Some(account) = account.filter(|account| is_for(secret, account)) else { return false };
        let automatic = account.secrets.iter().any(|reference| reference.name == meta.name);
        let named = |pod: &Arc<Pod>| names(pod, &meta.name);
        automatic && !self.pods.in_namespace(&meta.namespace).iter().any(named)
    }
}

/// Whether use has been noted for long enough. The first day was not noted as a whole.
fn tracked_long_enough(map: &ConfigMap, now: Time, period: Duration) -> bool {
    map.data.get(TRACKING_SINCE).and_then(|since| day(since)).is_some_and(|since| since + DAY + period <= now)
}

/// A patch that marks a Secret as invalid from today on.
fn mark(secret: &Secret, today: &str) -> Patch {
    let mut labels = ValueMap::new();
    labels.insert(INVALID_SINCE.into(), today.into());
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), secret.metadata.uid.as_str().into());
    metadata.insert("labels".into(), labels.into());
    let mut body = ValueMap::new();
    body.insert("metadata".into(), metadata.into());
    Patch::Merge(body.into())
}

#[async_trait::async_trait]
impl Controller for Cleaner {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let now = Time::from(cx.clock.wall());
        let tracking = cx.client.namespaced::<ConfigMap>(TRACKING_NAMESPACE).get_opt(TRACKING_NAME).await?;
        if !tracking.is_some_and(|map| tracked_long_enough(&map, now, self.period)) {
            return Ok(Next::Done);
        }
        let period = i64::try_from(self.period.as_secs()).unwrap_or(i64::MAX);
        let limit = Time::from_unix_seconds(now.unix_seconds().unwrap_or(0).saturating_sub(period));
        for secret in self.secrets.list() {
            let secrets = cx.client.namespaced::<Secret>(&secret.metadata.namespace);
            let name = &secret.metadata.name;
            let outcome = match plan(&secret, limit, || self.is_candidate(&secret)) {
                Plan::Keep => Ok(()),
                Plan::Mark => secrets.patch(name, &mark(&secret, &date(now))).await.map(drop),
                Plan::Delete => {
                    let version = Some(secret.metadata.resource_version.clone());
                    let seen = Preconditions { resource_version: version, ..Preconditions::default() };
                    let options = DeleteOptions { preconditions: Some(seen), ..DeleteOptions::default() };
                    secrets.delete(name, &options).await.map(drop)
                }
            };
            match outcome {
                Err(error) if !error.is_conflict() && !error.is_not_found() => {
                    tracing::error!(%error, secret = name, "Clearing away an unused token Secret failed");
                }
                _ => {}
            }
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
#[path = "legacy_tokens_tests.rs"]
mod tests;
