//! The binder's metrics, with upstream's names, labels and buckets.

use std::collections::BTreeMap;

use api_types::core_v1::constants::{persistent_volume_claim_phase, persistent_volume_mode, persistent_volume_phase};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use base::SharedClock;
use client::{Informer, ObjectKey};
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};
use component_helpers::volumes::classes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::volumes::{plugins, tally};

const OPERATION: &[&str] = &["plugin_name", "operation_name"];
const CLASS: &[&str] = &["storage_class"];
const CLAIM: &[&str] = &["namespace", "storage_class", "volume_attributes_class"];

const fn count(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Alpha)
}

const TOTAL_VOLUMES: Desc =
    count("pv_collector_total_pv_count", "Volumes, by plugin and mode.").labels(&["plugin_name", "volume_mode"]);
const BOUND_VOLUMES: Desc = count("pv_collector_bound_pv_count", "Volumes that are bound.").labels(CLASS);
const UNBOUND_VOLUMES: Desc = count("pv_collector_unbound_pv_count", "Volumes that are not bound.").labels(CLASS);
const BOUND_CLAIMS: Desc = count("pv_collector_bound_pvc_count", "Claims that are bound.").labels(CLAIM);
const UNBOUND_CLAIMS: Desc = count("pv_collector_unbound_pvc_count", "Claims that are not bound.").labels(CLAIM);
const CLASSES_GIVEN: Desc = count("retroactive_storageclass_total", "Claims that were to get the default class later.");
const CLASSES_REFUSED: Desc =
    count("retroactive_storageclass_errors_total", "Claims that could not be given the default class later.");
const ERRORS: Desc =
    count("volume_operation_errors_total", "Failures to have volumes made or deleted.").labels(OPERATION);
const SECONDS: Desc = count("volume_operation_total_seconds", "How long it took until a volume was bound, or gone.")
    .labels(OPERATION)
    .buckets(&[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0]);

/// What the binder counts, and since when it waits for provisioners. Bounded by the claims and volumes that exist.
pub(super) struct BinderMetrics {
    clock: SharedClock,
    running: Mutex<BTreeMap<ObjectKey, Running>>,
    errors: Counters,
    seconds: Histograms,
    classes_given: Counters,
    classes_refused: Counters,
}

struct Running {
    plugin: String,
    operation: &'static str,
    since: Instant,
}

impl BinderMetrics {
    pub(super) fn new(metrics: &Metrics, clock: &SharedClock) -> Self {
        Self {
            clock: clock.clone(),
            running: Mutex::default(),
            errors: metrics.counters(&ERRORS),
            seconds: metrics.histograms(&SECONDS),
            classes_given: metrics.counters(&CLASSES_GIVEN),
            classes_refused: metrics.counters(&CLASSES_REFUSED),
        }
    }

    /// A driver is to make or delete the volume; a former start stands.
    pub(super) fn began(&self, key: &ObjectKey, plugin: &str, operation: &'static str) {
        let since = self.clock.monotonic();
        let start = || Running { plugin: plugin.to_owned(), operation, since };
        self.running.lock().entry(key.clone()).or_insert_with(start);
    }

    /// What was begun came to its end, or failed for now.
    pub(super) fn ended(&self, key: &ObjectKey, is_good: bool) {
        if is_good {
            self.succeeded(key);
        } else if let Some(running) = self.running.lock().get(key) {
            self.errors.with(&[&running.plugin, running.operation]).inc();
        }
    }

    /// What was begun came to its end.
    pub(super) fn succeeded(&self, key: &ObjectKey) {
        let Some(running) = self.running.lock().remove(key) else { return };
        let took = self.clock.monotonic().saturating_duration_since(running.since);
        self.seconds.with(&[&running.plugin, running.operation]).observe(took.as_secs_f64());
    }

    /// Nobody waits for it any more.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.running.lock().remove(key);
    }

    /// A claim was to get the default class.
    pub(super) fn class_given(&self, is_good: bool) {
        self.classes_given.with(&[]).inc();
        if !is_good {
            self.classes_refused.with(&[]).inc();
        }
    }
}

/// Shows how many volumes and claims there are, counted when somebody asks.
pub(super) fn collect(
    metrics: &Metrics,
    volumes: &Informer<PersistentVolume>,
    claims: &Informer<PersistentVolumeClaim>,
) {
    let all = volumes.clone();
    metrics.computed_gauges(&TOTAL_VOLUMES, Box::new(move || tally(all.list().iter().map(|volume| kind_of(volume)))));
    for (desc, is_bound) in [(&BOUND_VOLUMES, true), (&UNBOUND_VOLUMES, false)] {
        let all = volumes.clone();
        let count = move || {
            let all = all.list();
            let chosen = all.iter().filter(|one| (one.status.phase == persistent_volume_phase::BOUND) == is_bound);
            tally(chosen.map(|volume| vec![classes::class_of_volume(volume).to_owned()]))
        };
        metrics.computed_gauges(desc, Box::new(count));
    }
    for (desc, is_bound) in [(&BOUND_CLAIMS, true), (&UNBOUND_CLAIMS, false)] {
        let all = claims.clone();
        let count = move || {
            let all = all.list();
            let chosen =
                all.iter().filter(|one| (one.status.phase == persistent_volume_claim_phase::BOUND) == is_bound);
            tally(chosen.map(|claim| labels_of(claim)))
        };
        metrics.computed_gauges(desc, Box::new(count));
    }
}

fn kind_of(volume: &PersistentVolume) -> Vec<String> {
    let mode = volume.spec.volume_mode.as_deref().unwrap_or(persistent_volume_mode::FILESYSTEM);
    vec![plugins::shown(&volume.spec.persistent_volume_source), mode.to_owned()]
}

fn labels_of(claim: &PersistentVolumeClaim) -> Vec<String> {
    let attributes = claim.spec.volume_attributes_class_name.clone().unwrap_or_default();
    vec![claim.metadata.namespace.clone(), classes::class_of_claim(claim).to_owned(), attributes]
}
