//! Follows every deletable resource of the server, those that come later included.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use api_machinery::meta::PartialObjectMetadata;
use client::{Change, ObjectKey, ResourceInfo, Share};
use component_base::metrics::{Counters, Desc, Metrics, Stability};
use controller::{Controller, Cx, Next, ReconcileError};
use parking_lot::Mutex;

use super::Shared;
use super::object::Identity;

/// How long the first lists may take before the collector starts with what it has.
const SYNC_LIMIT: Duration = Duration::from_secs(30);
/// Neither owners nor owned, and too many.
const IGNORED: &[(&str, &str)] = &[("", "events"), ("events.k8s.io", "events")];

const SYNC_ERRORS: Desc = Desc::new(
    "garbagecollector_controller_resources_sync_error_total",
    "Rounds in which the resources of the server could not be found out or listed.",
    Stability::Alpha,
);

/// The watches, by resource.
pub(super) struct Monitors {
    shared: Arc<Shared>,
    errors: Counters,
    running: Mutex<BTreeMap<String, Share<PartialObjectMetadata>>>,
}

impl Monitors {
    pub(super) fn new(shared: Arc<Shared>, metrics: &Metrics) -> Self {
        let errors = metrics.counters(&SYNC_ERRORS);
        errors.with(&[]).inc_by(0.0);
        Self { shared, errors, running: Mutex::default() }
    }

    /// Starts and stops watches so that there is one for each of these.
    fn follow(&self, wanted: BTreeMap<String, ResourceInfo>) {
        let mut running = self.running.lock();
        running.retain(|name, _| wanted.contains_key(name));
        for (name, info) in wanted {
            running.entry(name).or_insert_with(|| self.monitor(info));
        }
        self.shared.informers.start();
    }

    fn monitor(&self, of: ResourceInfo) -> Share<PartialObjectMetadata> {
        let objects = self.shared.informers.share_metadata(&of);
        let shared = Arc::clone(&self.shared);
        objects.subscribe(move |change: &Change<PartialObjectMetadata>| {
            let meta = &change.object().metadata;
            match change {
                Change::Updated { .. } if change.is_resync() => {}
                Change::Deleted { .. } => shared.change(|graph| graph.remove(&meta.uid)),
                _ => shared.change(|graph| graph.observe(Identity::of(&of, meta), meta)),
            }
        });
        objects
    }

    async fn wait_synced(&self) {
        let informers: Vec<_> = self.running.lock().values().map(|objects| objects.informer().clone()).collect();
        let all = async {
            for informer in &informers {
                informer.wait_synced().await;
            }
        };
        if tokio::time::timeout(SYNC_LIMIT, all).await.is_err() {
            self.errors.with(&[]).inc();
            tracing::warn!("Not all resources could be listed yet, the garbage collector starts without them");
        }
    }
}

#[async_trait::async_trait]
impl Controller for Monitors {
    async fn reconcile(&self, _: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let discovered = match self.shared.mapper.refresh().await {
            Ok(discovered) => discovered,
            Err(error) => {
                self.errors.with(&[]).inc();
                return Err(error.into());
            }
        };
        let deletable = discovered.preferred().filter(|served| served.supports(&["delete", "list", "watch"]));
        let watched = deletable.filter(|served| {
            let resource = &served.info.resource;
            !IGNORED.iter().any(|(group, name)| resource.group == *group && resource.resource == *name)
        });
        let key = |info: &ResourceInfo| format!("{}/{}", info.api_version(), info.resource.resource);
        let wanted: BTreeMap<_, _> = watched.map(|served| (key(&served.info), served.info.clone())).collect();
        if wanted.is_empty() {
            self.errors.with(&[]).inc();
            return Err(ReconcileError::failed("discovery found nothing that can be deleted"));
        }
        self.follow(wanted);
        if !self.shared.is_ready() {
            self.wait_synced().await;
            self.shared.ready.store(true, Ordering::Release);
        }
        Ok(Next::Done)
    }
}
