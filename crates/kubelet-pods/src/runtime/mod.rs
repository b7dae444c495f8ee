//! Sandboxes and containers of pods over the container runtime: what to do ([`plan`]), doing it ([`sync`], [`start`],
//! [`kill`]), and what is known of them ([`record`], [`cache`]).

pub mod back_off;
pub mod cache;
pub mod checkpoint;
pub mod container_config;
pub mod docker_config;
pub mod failure;
pub mod figures;
pub mod hooks;
pub mod image_name;
pub mod images;
pub mod inspect;
pub mod kill;
pub mod labels;
pub mod plan;
#[cfg(test)]
mod plan_tests;
mod pull_record_files;
pub mod pull_records;
pub mod record;
pub mod registry_auth;
pub mod resize;
pub mod sandbox;
pub mod security;
pub mod start;
pub mod starts;
pub mod stop_signal;
pub mod sync;
mod sync_error;
pub mod termination;
pub mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{ObjectReference, Pod};
use base::{SharedClock, SharedRng};
use client::object_reference;
use node_api::cri::{Images, Runtime};

use crate::interfaces::{Level, NodeSide, PodSettings};
use crate::metrics::KubeletMetrics;
use back_off::KeyedBackOff;
use cache::RuntimeCache;
use failure::Failures;
use images::ImagePuller;
use resize::Actuated;
use starts::Starts;

/// After this long without a new exit, a container's crash back-off is forgotten. As upstream, whatever the maximum.
const CRASH_EXPIRY: Duration = Duration::from_secs(600);

/// Drives the runtime for pods. Knows nothing of sources, workers or the API server.
pub struct PodRuntime {
    pub runtime: Arc<dyn Runtime>,
    pub images: Arc<dyn Images>,
    pub side: NodeSide,
    pub settings: Arc<PodSettings>,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub cache: Arc<RuntimeCache>,
    /// Whose turn it is to start.
    pub starts: Starts,
    /// Why containers did not start.
    pub failures: Failures,
    pub crashes: KeyedBackOff,
    pub puller: ImagePuller,
    /// What each container was given last, by id.
    pub actuated: Actuated,
    pub metrics: Arc<KubeletMetrics>,
}

impl PodRuntime {
    pub fn new(
        (runtime, images): (Arc<dyn Runtime>, Arc<dyn Images>),
        side: NodeSide,
        settings: Arc<PodSettings>,
        clock: SharedClock,
        rng: SharedRng,
        metrics: Arc<KubeletMetrics>,
        starts: Starts,
    ) -> Self {
        let asked = (Arc::clone(&images), side.credentials.clone());
        let events = Arc::clone(&side.events);
        let puller = ImagePuller::new(asked, events, Arc::clone(&clock), &settings, Arc::clone(&metrics));
        let crashes = KeyedBackOff::new(settings.crash_loop_initial, settings.crash_loop_max, CRASH_EXPIRY);
        let actuated = Actuated::new(&settings.root_dir);
        Self {
            runtime,
            images,
            side,
            settings,
            clock,
            rng,
            cache: Arc::default(),
            starts,
            failures: Failures::default(),
            crashes,
            puller,
            actuated,
            metrics,
        }
    }

    /// Where a pod's own files are.
    pub fn pod_dir(&self, uid: &str) -> PathBuf {
        self.settings.root_dir.join("pods").join(uid)
    }

    /// Forgets what was remembered of a pod whose worker is gone. What the runtime still has of it stays known.
    pub fn forget(&self, uid: &str) {
        self.failures.forget_pod(uid);
        self.puller.forget_pod(uid);
        self.cache.release(uid);
    }

    pub fn pod_event(&self, pod: &Pod, level: Level, reason: &str, message: &str) {
        self.side.events.event(object_reference(pod), level, reason, message);
    }

    /// A reference to one container of a pod, as events carry it.
    pub fn about(&self, pod: &Pod, field_path: String) -> ObjectReference {
        ObjectReference { field_path, ..object_reference(pod) }
    }
}
