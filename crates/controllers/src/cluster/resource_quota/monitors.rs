//! Follows every namespaced resource that can be counted, those that come later included.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::ResourceQuota;
use client::{Informers, ObjectKey, RestMapper};
use component_helpers::quota::Evaluator;
use controller::{Build, Controller, Cx, Next, ReconcileError};
use parking_lot::Mutex;

use super::count::{Counted, Followed};
use super::releases::Releases;

/// How often it is looked what the server offers.
pub(super) const PERIOD: Duration = Duration::from_secs(30);

/// The watches.
pub(super) struct Monitors {
    mapper: RestMapper,
    informers: Informers,
    counted: Arc<Counted>,
    releases: Releases,
    running: Mutex<Followed>,
}

impl Monitors {
    pub(super) fn new(build: &Build<'_>, counted: Arc<Counted>, releases: Releases) -> Self {
        let (mapper, informers) = (build.mapper().clone(), build.metadata_informers().clone());
        Self { mapper, informers, counted, releases, running: Mutex::default() }
    }

    /// Quotas of a resource that was not known before, such as all of them at the start, do not wait for the next round.
    fn count_anew(&self, fresh: &[Evaluator]) {
        let concerned = |quota: &ResourceQuota| {
            quota.spec.hard.keys().any(|name| fresh.iter().any(|evaluator| evaluator.counts(name, None)))
        };
        for quota in self.releases.quotas.list().iter().filter(|quota| concerned(quota)) {
            self.releases.queue.add(ObjectKey::of(&quota.metadata));
        }
    }

    /// Whether the resource is counted by its number alone.
    fn is_plain(group: &str, resource: &str) -> bool {
        matches!(Evaluator::of(group, resource), Some(Evaluator::Count(_)))
    }
}

#[async_trait::async_trait]
impl Controller for Monitors {
    async fn reconcile(&self, _: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let discovered = self.mapper.refresh().await?;
        self.counted.devices.look(&discovered);
        let wanted = discovered.preferred().filter(|served| {
            let resource = &served.info.resource;
            served.info.namespaced
                && served.supports(&["create", "delete", "list", "watch"])
                && Self::is_plain(&resource.group, &resource.resource)
        });
        let wanted: BTreeMap<_, _> = wanted
            .map(|served| {
                let resource = &served.info.resource;
                ((resource.group.to_string(), resource.resource.to_string()), served.info.clone())
            })
            .collect();
        let mut fresh = Vec::new();
        let mut running = self.running.lock();
        // The watches themselves are shared with the garbage collector; the last of both ends one.
        running.retain(|resource, _| wanted.contains_key(resource));
        for (resource, info) in wanted {
            if running.contains_key(&resource) {
                continue;
            }
            let objects = Arc::new(self.informers.share_metadata(&info));
            if let Some(evaluator) = Evaluator::of(&resource.0, &resource.1) {
                objects.subscribe(self.releases.handler(evaluator.clone(), |_, _| false));
                fresh.push(evaluator);
            }
            running.insert(resource, objects);
        }
        self.counted.set_others(running.clone());
        self.informers.start();
        self.count_anew(&fresh);
        Ok(Next::Done)
    }
}
