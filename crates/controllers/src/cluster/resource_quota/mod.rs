//! Counts what is used of each resource quota. The API server books creations itself; this counts anew what was
//! deleted or changed, what a new quota finds, what was booked once it has settled, and everything every few minutes.

mod booked;
mod count;
mod devices;
mod monitors;
mod pod_level;
mod releases;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api_types::core_v1::{ResourceList, ResourceQuota, ResourceQuotaStatus};
use client::{Change, Informer, ObjectKey};
use component_base::shared_gates::POD_LEVEL_RESOURCES;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use crate::Settings;
use booked::{Booked, Recount};
use count::Counted;
use monitors::Monitors;
use pod_level::PodLevel;
use releases::Releases;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "resourcequota-controller",
    aliases: &["resourcequota"],
    gates: &[],
    identity: "resourcequota-controller",
    event_component: "resourcequota-controller",
    disabled_by_default: false,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, period) = (settings.resource_quota_syncs, settings.resource_quota_sync_period);
    let (primary, priority) = (build.queue("resourcequota_primary"), build.queue("resourcequota_priority"));
    let (usual, urgent) = (primary.clone(), priority.clone());
    let settling = build.queue("resourcequota_booked");
    let booked = Arc::new(Booked::new(build.clock(), &settling));
    let bookings = Arc::clone(&booked);
    let quotas = build
        .watch::<ResourceQuota>()
        .observe(move |change| {
            let changed = match change {
                Change::Updated { old, new } => old.spec.hard != new.spec.hard,
                Change::Added { .. } | Change::Deleted { .. } => true,
            };
            if changed {
                let queue = if is_uncounted(change.object()) { &urgent } else { &usual };
                queue.add(change.key());
            }
            bookings.notice(change);
        })
        .resync(period)
        .observe({
            let queue = primary.clone();
            move |change| {
                if change.is_resync() {
                    queue.add(change.key());
                }
            }
        })
        .informer();
    let whole = build.gates().enabled(POD_LEVEL_RESOURCES);
    let pod_level = if whole { PodLevel::Counts } else { PodLevel::Ignored };
    let counted = Arc::new(Counted::new(build, pod_level));
    let releases = Releases {
        clock: Arc::clone(build.clock()),
        extended: counted.devices.extended(),
        pod_level,
        quotas: quotas.clone(),
        booked: Arc::clone(&booked),
        queue: primary.clone(),
    };
    counted.follow(&releases);
    let monitors = Monitors::new(build, Arc::clone(&counted), releases);
    build.every("resource_quota_controller_resource_changes", monitors::PERIOD, Arc::new(monitors));
    let controller = Arc::new(Quotas { quotas, counted, booked });
    build.run(&settling, workers, Arc::new(Recount(Arc::clone(&controller))));
    build.run(&priority, workers, Arc::clone(&controller) as _);
    build.run(&primary, workers, controller);
    Ok(())
}

/// Whether the quota waits for its first numbers.
fn is_uncounted(quota: &ResourceQuota) -> bool {
    let status = &quota.status;
    quota.spec.hard != status.hard || status.hard.keys().any(|name| !status.used.contains_key(name))
}

struct Quotas {
    quotas: Informer<ResourceQuota>,
    counted: Arc<Counted>,
    booked: Arc<Booked>,
}

#[async_trait::async_trait]
impl Controller for Quotas {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(quota) = self.quotas.get(key) else { return Ok(Next::Done) };
        let since = self.booked.begin(key, &quota);
        let (mut usage, problem) = self.counted.usage(&quota, cx.clock.wall().into());
        since.raise(&quota, &mut usage);
        let written = self.write(cx, key, &quota, usage).await;
        self.booked.finish(key, since, written.is_ok());
        written?;
        problem.map_or(Ok(Next::Done), |problem| Err(ReconcileError::failed(problem)))
    }
}

impl Quotas {
    async fn write(
        &self,
        cx: &Cx,
        key: &ObjectKey,
        quota: &ResourceQuota,
        usage: ResourceList,
    ) -> Result<(), ReconcileError> {
        let Some(status) = plan(quota, usage) else { return Ok(()) };
        let mut next = quota.clone();
        next.status = status;
        let stored = cx.client.namespaced::<ResourceQuota>(&key.namespace).update_status(&next).await?;
        self.booked.note_own(key, &stored.metadata.resource_version);
        Ok(())
    }
}

/// The new status where it differs. What could not be counted stays as it was.
fn plan(quota: &ResourceQuota, usage: ResourceList) -> Option<ResourceQuotaStatus> {
    let hard = &quota.spec.hard;
    let mut used = quota.status.used.clone();
    used.extend(usage);
    used.retain(|name, _| hard.contains_key(name));
    let status = ResourceQuotaStatus { hard: hard.clone(), used };
    (status != quota.status).then_some(status)
}
