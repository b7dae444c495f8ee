//! The main loop: reacts to sources, to what changes in the runtime, to probes and to the passing of time.

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use client::object_reference;
use component_helpers::pod_state::is_terminal;
use tokio::time::{Instant, MissedTickBehavior};

use super::state::Input;
use super::{Channels, Inner};
use crate::collect;
use crate::interfaces::Level;
use crate::pleg::PodChange;
use crate::pod::merge::{Merger, Op};
use crate::pod::{Delivery, Source, is_mirror};
use crate::probe::{News, ProbeKind, ProbeResult};
use crate::runtime::text;

const TICK: Duration = Duration::from_secs(1);
const HOUSEKEEPING: Duration = Duration::from_secs(2);
const BACK_OFF_FIRST: Duration = Duration::from_millis(100);
const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// The loop counts as stuck after twice the sync frequency, but never earlier than this.
const STUCK_AFTER: Duration = Duration::from_secs(300);

/// The sync loop hangs; the kubelet says so until it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sync Loop took longer than expected")]
pub struct LoopStuck;

impl Inner {
    pub(super) async fn sync_loop(self: Arc<Self>, mut channels: Channels) {
        let mut merger = Merger::default();
        let mut ticks = tokio::time::interval(TICK);
        let mut chores = tokio::time::interval(HOUSEKEEPING);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        chores.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut back_off = BACK_OFF_FIRST;
        loop {
            *self.loop_seen.lock() = Instant::now();
            let errors = self.runtime_errors();
            if !errors.is_empty() {
                tracing::info!(?errors, "Skipping pod synchronization");
                tokio::time::sleep(back_off).await;
                back_off = (back_off * 2).min(BACK_OFF_MAX);
                continue;
            }
            back_off = BACK_OFF_FIRST;
            tokio::select! {
                Some(delivery) = channels.deliveries.recv() => self.take(&mut merger, delivery).await,
                Some(change) = channels.changes.recv() => self.pod_changed(&change),
                Some(news) = channels.news.recv() => self.probe_news(&news),
                _ = ticks.tick() => self.check_deadlines(),
                _ = chores.tick() => {
                    if self.sources_ready() {
                        self.housekeep().await;
                    }
                }
            }
        }
    }

    /// `/healthz` check `syncloop`.
    pub(super) fn loop_health(&self) -> Result<(), LoopStuck> {
        let limit = STUCK_AFTER.max(self.settings.sync_frequency * 2);
        if self.loop_seen.lock().elapsed() > limit {
            return Err(LoopStuck);
        }
        Ok(())
    }

    async fn take(self: &Arc<Self>, merger: &mut Merger, mut delivery: Delivery) {
        delivery.ignore(&self.settings.ignored);
        if let Delivery::All(set) = &mut delivery
            && set.source == Source::File
        {
            let strangers: Vec<_> =
                self.runtime.cache.all().into_iter().filter(|seen| self.workers.state(&seen.uid).is_none()).collect();
            self.adopted.lock().apply(set, &strangers);
        }
        let changes = merger.apply(delivery, self.now());
        for (source, pod) in &changes.duplicates {
            let (name, of) = (&pod.metadata.name, text::pod(pod));
            let message = format!(
                "Error validating pod {of} from {} due to duplicate pod name {name:?}, ignoring",
                source.name()
            );
            self.side.events.event(object_reference(&**pod), Level::Warning, "FailedValidation", &message);
        }
        for op in changes.ops {
            match op {
                Op::Remove(pods) => pods.iter().for_each(|pod| self.removed(pod)),
                Op::Add(pods) => self.added(pods).await,
                Op::Update(pods) | Op::Delete(pods) => pods.iter().for_each(|pod| self.updated(pod)),
                Op::Reconcile(pods) => pods.iter().for_each(|pod| self.reconciled(pod)),
            }
        }
        self.delivered.lock().extend(merger.seen());
    }

    async fn added(self: &Arc<Self>, mut pods: Vec<Arc<Pod>>) {
        pods.sort_by_key(|pod| pod.metadata.creation_timestamp);
        for pod in pods {
            self.store.put(&pod);
            if is_mirror(&pod) {
                self.wake_static(&pod);
                continue;
            }
            let ending = is_terminal(&pod) || pod.metadata.deletion_timestamp.is_some();
            let known = self.workers.state(&pod.metadata.uid).is_some();
            if !ending
                && !known
                && let Err(refusal) = self.admit(&pod).await
            {
                self.refuse(&pod, refusal);
                continue;
            }
            if !known {
                let count = u32::try_from(pod.spec.containers.len()).unwrap_or(u32::MAX);
                self.metrics.containers_per_pod.with(&[]).observe(f64::from(count));
            }
            self.dispatch(&pod, Input::Created);
        }
    }

    /// Hands an input to the pod's worker, which is made if need be.
    pub(super) fn dispatch(self: &Arc<Self>, pod: &Arc<Pod>, input: Input) {
        let uid = &pod.metadata.uid;
        let quiet = !self.runtime.cache.get(uid).is_some_and(|seen| seen.is_alive());
        if let Some(fresh) = self.workers.input(pod, input, quiet) {
            self.start_worker(uid, fresh.wake);
        }
    }

    fn updated(self: &Arc<Self>, pod: &Arc<Pod>) {
        let before = self.store.get(&pod.metadata.uid);
        self.store.put(pod);
        if is_mirror(pod) {
            return self.wake_static(pod);
        }
        if let Some(before) = before {
            self.note_request(&before, pod);
        }
        let ending = is_terminal(pod) || pod.metadata.deletion_timestamp.is_some();
        if ending || !self.is_refused(&pod.metadata.uid) {
            self.dispatch(pod, Input::Updated);
        }
    }

    fn reconciled(self: &Arc<Self>, pod: &Arc<Pod>) {
        self.store.put(pod);
        self.board.poke();
        if is_mirror(pod) {
            return self.wake_static(pod);
        }
        self.workers.renew(pod);
        self.board.renew(pod);
        let unknown = self.workers.state(&pod.metadata.uid).is_none();
        if (is_terminal(pod) && unknown) || (!pod.spec.readiness_gates.is_empty() && !unknown) {
            self.dispatch(pod, Input::Updated);
        }
    }

    fn removed(self: &Arc<Self>, pod: &Arc<Pod>) {
        self.store.remove(pod);
        if is_mirror(pod) {
            return self.wake_static(pod);
        }
        self.refused.lock().remove(&pod.metadata.uid);
        if self.sources_ready() {
            self.workers.step(&pod.metadata.uid, Input::Removed);
        }
    }

    /// The worker of a static pod looks after its mirror.
    fn wake_static(&self, mirror: &Pod) {
        if let Some(pod) = self.store.by_full_name(&text::full_name(mirror)) {
            self.workers.wake(&pod.metadata.uid);
        }
    }

    fn pod_changed(&self, change: &PodChange) {
        self.workers.wake(&change.uid);
        let Some(seen) = self.runtime.cache.get(&change.uid) else { return };
        let all = self.workers.state(&change.uid).is_some_and(|state| state.content_may_go());
        for name in &change.died {
            let keep =
                if all { 0 } else { usize::try_from(self.settings.dead_per_container).unwrap_or(usize::MAX).max(1) };
            collect::containers::outlived(seen.records(name), keep).for_each(|record| self.dead.push(record));
        }
    }

    fn probe_news(&self, news: &News) {
        if news.kind == ProbeKind::Liveness && news.result != ProbeResult::Failure {
            return;
        }
        tracing::info!(uid = %news.uid, probe = news.kind.name(), container = %news.container_id, result = ?news.result, "Probe result");
        self.workers.wake(&news.uid);
    }

    /// Pods that were active for longer than they may.
    fn check_deadlines(&self) {
        for pod in self.workers.active().into_iter().filter(|pod| pod.spec.active_deadline_seconds.is_some()) {
            let Some(status) = self.board.get(&pod.metadata.uid) else { continue };
            if crate::pod::status::is_terminal(&status.phase) {
                continue;
            }
            if let Some(forced) = self.deadline(&pod, &status) {
                self.runtime.pod_event(&pod, Level::Normal, &forced.reason, &forced.message);
                self.workers.wake(&pod.metadata.uid);
            }
        }
    }
}
