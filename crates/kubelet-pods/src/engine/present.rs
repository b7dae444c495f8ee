//! What there is at this moment, for metrics.

use super::state::Stage;
use super::{Inner, PodEngine};
use crate::eviction::log_uses;
use crate::metrics::Present;
use crate::pod::is_static;
use crate::runtime::record::RecordState;

impl PodEngine {
    /// Sets the metrics that follow from the present state.
    pub fn show_metrics(&self) {
        self.inner.metrics.show(&self.inner.present());
        self.inner.side.volumes.show_metrics();
        if let Some(last) = self.inner.runtime.cache.last_relist() {
            let at = self.inner.clock.wall() - last.elapsed();
            let seconds = at.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            self.inner.metrics.pleg_last_seen.with(&[]).set(seconds);
        }
    }
}

impl PodEngine {
    /// Sets what the logs of running containers take up, which is looked up on the disk.
    pub async fn show_logs(&self) {
        let inner = &self.inner;
        let mut pods = Vec::new();
        for pod in inner.workers.active() {
            let Some(seen) = inner.runtime.cache.get(&pod.metadata.uid) else { continue };
            pods.push((pod, seen.running().map(|record| record.name.clone()).collect()));
        }
        let directory = inner.settings.pod_logs_dir.clone();
        let look = move || log_uses(&directory, &pods);
        if let Ok(uses) = tokio::task::spawn_blocking(look).await {
            inner.metrics.show_logs(&uses);
        }
    }
}

impl Inner {
    fn present(&self) -> Present {
        let mut present = Present::default();
        for seen in self.runtime.cache.all() {
            present.running_pods += usize::from(seen.has_ready_sandbox());
            for record in &seen.containers {
                *present.containers.entry(state_name(record.state)).or_default() += 1;
            }
        }
        let pods = self.store.all();
        for pod in &pods {
            count(&mut present.desired, is_static(pod));
            present.ephemeral += pod.spec.ephemeral_containers.len();
        }
        self.workers.active().iter().for_each(|pod| count(&mut present.active, is_static(pod)));
        present.mirrors = self.store.mirrors();
        for (uid, state) in self.workers.all() {
            let config = match (state.orphan, pods.iter().any(|pod| pod.metadata.uid == uid)) {
                (true, _) => "runtime_only",
                (false, true) => "desired",
                (false, false) => "orphan",
            };
            let lifecycle = match state.stage {
                Stage::Syncing => "sync",
                Stage::Terminating => "terminating",
                Stage::Terminated | Stage::Finished => "terminated",
            };
            let fixed = self.workers.pod(&uid).is_some_and(|pod| is_static(&pod));
            let key = (config, lifecycle, if fixed { "true" } else { "false" });
            *present.working.entry(key).or_default() += 1;
            let resize = self.allocations.state(&uid);
            if let Some(pending) = &resize.pending {
                *present.pending_resizes.entry(pending.outlook.name()).or_default() += 1;
            }
            present.resizes += usize::from(resize.in_progress);
        }
        present
    }
}

fn state_name(state: RecordState) -> &'static str {
    match state {
        RecordState::Created => "created",
        RecordState::Running => "running",
        RecordState::Exited => "exited",
        RecordState::Unknown => "unknown",
    }
}

fn count([of_api, fixed]: &mut [usize; 2], is_static: bool) {
    *(if is_static { fixed } else { of_api }) += 1;
}
