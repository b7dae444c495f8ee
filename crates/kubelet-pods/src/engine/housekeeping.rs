//! What was left behind: pods that lost their source or their worker, pods that only the runtime knows, directories,
//! groups and mirrors without a pod.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use component_helpers::pod_state::is_active;
use tokio::time::MissedTickBehavior;
use tracing_otlp::traced;

use super::Inner;
use super::state::{Input, Stage};
use crate::collect;
use crate::interfaces::Level;
use crate::pod::mirror;
use crate::runtime::image_name::ImageName;
use crate::runtime::kill::orphan;
use crate::runtime::text;

const COLLECT_PERIOD: Duration = Duration::from_secs(60);
const IMAGE_PERIOD: Duration = Duration::from_secs(300);

/// What becomes of pods that have ended and are still in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    /// Their last containers stay, so that their logs can be read.
    Kept,
    /// The disk is full: they go too.
    Emptied,
}

impl Inner {
    pub(super) async fn housekeep(self: &Arc<Self>) {
        let configured: BTreeSet<String> = self.store.all().iter().map(|pod| pod.metadata.uid.clone()).collect();
        self.forget_removed(&configured);
        let known: BTreeSet<String> = configured.union(&self.workers.uids()).cloned().collect();
        self.board.keep(&known);
        self.admission.keep(&known);
        self.runtime.actuated.keep(|uid| known.contains(uid));
        let live = self.workers.all().into_iter().filter(|(_, state)| state.could_run()).map(|(uid, _)| uid).collect();
        self.probes.keep(&live);
        if self.runtime.cache.last_relist().is_none() {
            return;
        }
        self.kill_unknown(&known);
        let in_runtime =
            self.runtime.cache.all().into_iter().filter(|seen| seen.is_alive()).map(|seen| seen.uid.clone());
        let keep: BTreeSet<String> = in_runtime.chain(known).collect();
        self.side.volumes.clean_orphans(&keep).await;
        self.side.cgroups.clean_orphans(&keep).await;
        self.side.setup.keep(&keep);
        self.delete_orphan_mirrors().await;
        self.start_missing();
        self.runtime.crashes.collect(self.clock.monotonic());
        self.mounting.collect(self.clock.monotonic());
        self.runtime.puller.forget_expired();
        *self.housekept.lock() = true;
    }

    /// Workers whose pods are gone from the configuration end; finished ones are forgotten.
    fn forget_removed(&self, configured: &BTreeSet<String>) {
        for (uid, state) in self.workers.all() {
            let there = configured.contains(&uid);
            if state.stage == Stage::Finished && (!there || state.restart_requested) {
                if there {
                    self.metrics.restarted.with(&["true"]).inc();
                }
                self.workers.remove(&uid);
                self.runtime.forget(&uid);
                self.board.forget(&uid);
            } else if !there && !state.orphan {
                self.workers.step(&uid, Input::Removed);
            }
        }
    }

    fn kill_unknown(self: &Arc<Self>, known: &BTreeSet<String>) {
        for seen in self.runtime.cache.all() {
            if known.contains(&seen.uid) || !seen.is_alive() {
                continue;
            }
            tracing::info!(uid = %seen.uid, name = %seen.name, namespace = %seen.namespace, "Killing a pod that only the runtime knows");
            self.metrics.orphaned.with(&[]).inc();
            let pod = Arc::new(orphan(&seen));
            if let Some(fresh) = self.workers.kill_orphan(&pod) {
                self.start_worker(&seen.uid, fresh.wake);
            }
        }
    }

    async fn delete_orphan_mirrors(&self) {
        let Some(client) = &self.client else { return };
        for mirror in self.store.orphan_mirrors() {
            let name = text::full_name(&mirror);
            let ending =
                self.workers.active().iter().any(|pod| crate::pod::is_static(pod) && text::full_name(pod) == name);
            if ending {
                continue;
            }
            if let Err(error) = mirror::delete(client, &mirror).await {
                tracing::warn!(pod = %mirror.metadata.name, %error, "Deleting an orphaned mirror pod failed");
            }
        }
    }

    /// Configured pods without a worker: lost updates, and static pods that came back.
    fn start_missing(self: &Arc<Self>) {
        for pod in self.store.all() {
            let uid = &pod.metadata.uid;
            if is_active(&pod) && self.workers.state(uid).is_none() && !self.is_refused(uid) {
                self.dispatch(&pod, Input::Created);
            } else if !is_active(&pod) && pod.metadata.deletion_timestamp.is_some() && self.workers.state(uid).is_none()
            {
                self.dispatch(&pod, Input::Updated);
            }
        }
    }

    pub(super) async fn collect_containers(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(COLLECT_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let collecting = self.collect_containers_once(Finished::Kept);
            let errors = traced(self.tracer.as_ref(), "Containers/GarbageCollect", |_| (), collecting).await;
            if !errors.is_empty() {
                self.node_event("ContainerGCFailed", &errors.join(", "));
            }
        }
    }

    /// A warning about the node.
    fn node_event(&self, reason: &str, message: &str) {
        let Some(node) = self.side.node.node() else { return };
        self.side.events.event(client::object_reference(&*node), Level::Warning, reason, message);
    }

    /// One collection of dead containers, sandboxes and logs; tells what could not be removed.
    pub(super) async fn collect_containers_once(&self, finished: Finished) -> Vec<String> {
        let (ready, pods) = (self.sources_ready(), self.runtime.cache.all());
        let housekept = *self.housekept.lock();
        let fate = |uid: &str| match self.workers.state(uid) {
            Some(state) if state.content_may_go() => collect::containers::Fate::Gone,
            Some(state) if finished == Finished::Emptied && state.stage == Stage::Finished => {
                collect::containers::Fate::Gone
            }
            Some(_) => collect::containers::Fate::Kept,
            None if ready && housekept && self.store.get(uid).is_none() => collect::containers::Fate::Gone,
            None => collect::containers::Fate::Kept,
        };
        let errors = collect::containers::collect(&self.runtime, &pods, &fate, self.clock.wall()).await;
        if ready {
            collect::containers::collect_logs(&self.settings, &fate, &pods);
        }
        errors
    }

    pub(super) async fn collect_images(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(IMAGE_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failed = false;
        loop {
            ticks.tick().await;
            let (mounted, now) = (self.mounted_images(), self.clock.wall());
            let mut images = self.images.lock().await;
            let collecting = images.collect(&self.runtime, &mounted, now);
            let Err(error) = traced(self.tracer.as_ref(), "Images/GarbageCollect", |_| (), collecting).await else {
                failed = false;
                continue;
            };
            let repeated = std::mem::replace(&mut failed, true).then_some("ImageGCFailed");
            if repeated.is_some() {
                tracing::error!(%error, "Image garbage collection failed multiple times in a row");
            } else {
                // At the start the runtime need not be there yet.
                tracing::warn!(%error, "Image garbage collection failed once");
            }
            for reason in error.event().into_iter().chain(repeated) {
                self.node_event(reason, &error.to_string());
            }
        }
    }

    /// The images that pods mount as volumes, by their full names.
    pub(super) fn mounted_images(&self) -> BTreeSet<String> {
        let pods = self.store.all();
        let volumes = pods.iter().flat_map(|pod| &pod.spec.volumes);
        let images = volumes.filter_map(|volume| volume.volume_source.image.as_ref());
        images.filter_map(|image| ImageName::parse(&image.reference).ok()).map(|name| name.listed()).collect()
    }

    pub(super) async fn rotate_logs(self: Arc<Self>) {
        let Some(limit) = self.settings.log_max_bytes else { return };
        let mut ticks = tokio::time::interval(self.settings.log_monitor_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            for seen in self.runtime.cache.all() {
                for record in seen.running() {
                    let rotated = collect::logs::rotate(
                        &*self.runtime.runtime,
                        record,
                        limit,
                        self.settings.log_max_files,
                        self.clock.wall(),
                    );
                    if let Err(error) = rotated.await {
                        tracing::warn!(container = %record.id, %error, "Rotating a log failed");
                    }
                }
            }
        }
    }
}
