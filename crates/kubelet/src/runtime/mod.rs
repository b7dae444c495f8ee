//! Sandboxes and containers of pods over the container runtime: what to do ([`plan`]), doing it ([`sync`], [`start`],
//! [`kill`]), and what is known of them ([`record`], [`cache`]).

pub(crate) mod back_off;
pub(crate) mod cache;
pub(crate) mod checkpoint;
pub(crate) mod container_config;
pub(crate) mod failure;
pub(crate) mod hooks;
pub(crate) mod image_name;
pub(crate) mod images;
pub(crate) mod inspect;
pub(crate) mod kill;
pub(crate) mod labels;
pub(crate) mod plan;
#[cfg(test)]
mod plan_tests;
pub(crate) mod record;
pub(crate) mod registry_auth;
pub(crate) mod resize;
pub(crate) mod sandbox;
pub(crate) mod security;
pub(crate) mod start;
pub(crate) mod sync;
pub(crate) mod termination;
pub(crate) mod text;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{ObjectReference, Pod};
use base::{SharedClock, SharedRng};
use client::object_reference;
use node_api::cri::{Images, Runtime};

use crate::border::{Level, NodeSide, PodSettings};
use crate::metrics::KubeletMetrics;
use back_off::KeyedBackOff;
use cache::RuntimeCache;
use failure::Failures;
use images::ImagePuller;
use resize::Actuated;

/// After this long without a new exit, a container's crash back-off is forgotten. As upstream, whatever the maximum.
const CRASH_EXPIRY: Duration = Duration::from_secs(600);

/// Drives the runtime for pods. Knows nothing of sources, workers or the API server.
pub(crate) struct PodRuntime {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) images: Arc<dyn Images>,
    pub(crate) side: NodeSide,
    pub(crate) settings: Arc<PodSettings>,
    pub(crate) clock: SharedClock,
    pub(crate) rng: SharedRng,
    pub(crate) cache: Arc<RuntimeCache>,
    /// Why containers did not start.
    pub(crate) failures: Failures,
    pub(crate) crashes: KeyedBackOff,
    pub(crate) puller: ImagePuller,
    /// What each container was given last, by id.
    pub(crate) actuated: Actuated,
    pub(crate) metrics: Arc<KubeletMetrics>,
}

impl PodRuntime {
    pub(crate) fn new(
        runtime: Arc<dyn Runtime>,
        images: Arc<dyn Images>,
        side: NodeSide,
        settings: Arc<PodSettings>,
        clock: SharedClock,
        rng: SharedRng,
        metrics: Arc<KubeletMetrics>,
    ) -> Self {
        let (images_, events) = (Arc::clone(&images), Arc::clone(&side.events));
        let puller = ImagePuller::new(images_, events, Arc::clone(&clock), &settings, Arc::clone(&metrics));
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
            failures: Failures::default(),
            crashes,
            puller,
            actuated,
            metrics,
        }
    }

    /// Where a pod's own files are.
    pub(crate) fn pod_dir(&self, uid: &str) -> PathBuf {
        self.settings.root_dir.join("pods").join(uid)
    }

    /// Forgets what was remembered of a pod whose worker is gone. What the runtime still has of it stays known.
    pub(crate) fn forget(&self, uid: &str) {
        self.failures.forget_pod(uid);
        self.puller.forget_pod(uid);
        self.cache.release(uid);
    }

    pub(crate) fn pod_event(&self, pod: &Pod, level: Level, reason: &str, message: &str) {
        self.side.events.event(object_reference(pod), level, reason, message);
    }

    /// A reference to one container of a pod, as events carry it.
    pub(crate) fn about(&self, pod: &Pod, field_path: String) -> ObjectReference {
        ObjectReference { field_path, ..object_reference(pod) }
    }
}
