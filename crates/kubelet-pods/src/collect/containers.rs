//! Dead containers, old sandboxes, and the logs they left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use node_api::cri::Runtime;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::interfaces::PodSettings;
use crate::runtime::PodRuntime;
use crate::runtime::kill::{Grace, KillError, orphan};
use crate::runtime::record::{ContainerRecord, RecordState, RuntimePod};

/// Dead containers that may wait to be removed; more are left to the next collection.
const QUEUE: usize = 50;
/// Directory entries looked at in one pass.
const MAX_ENTRIES: usize = 100_000;

/// What becomes of a pod's leftovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The pod is there, or may be.
    Kept,
    /// Nobody will ask for its logs again.
    Gone,
}

/// Removes containers as they are found to be superfluous, beside the sync loop.
pub(crate) struct DeadContainers {
    sender: mpsc::Sender<ContainerRecord>,
    receiver: Mutex<Option<mpsc::Receiver<ContainerRecord>>>,
}

impl Default for DeadContainers {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }
}

impl DeadContainers {
    pub(crate) fn push(&self, record: &ContainerRecord) {
        // Full: the periodic collection gets it.
        let _ = self.sender.try_send(record.clone());
    }

    pub(crate) async fn run(&self, runtime: &dyn Runtime) {
        let Some(mut receiver) = self.receiver.lock().take() else { return };
        while let Some(record) = receiver.recv().await {
            match runtime.remove_container(&record.id).await {
                Ok(()) => remove_log_files(&record),
                Err(error) => tracing::debug!(container = %record.id, %error, "Removing a dead container failed"),
            }
        }
    }
}

/// The instances of a container that ended, newest first, but for so many that are kept. What may still run, for all the
/// runtime knows, is left to [`collect`], which stops it first.
pub(crate) fn outlived<'a>(
    instances: impl Iterator<Item = &'a ContainerRecord>,
    keep: usize,
) -> impl Iterator<Item = &'a ContainerRecord> {
    instances.filter(|record| record.state == RecordState::Exited).skip(keep)
}

/// One pass over everything the runtime has; tells what could not be removed.
pub(crate) async fn collect(
    runtime: &PodRuntime,
    pods: &[Arc<RuntimePod>],
    fate: &(dyn Fn(&str) -> Fate + Sync),
    now: SystemTime,
) -> Vec<String> {
    let mut errors = Vec::new();
    for record in superfluous(pods, fate, &runtime.settings, now) {
        if let Err(error) = stop_unknown(runtime, pods, record).await {
            tracing::warn!(container = %record.id, %error, "Stopping a container in unknown state failed");
            errors.push(error.to_string());
            continue;
        }
        if let Err(error) = runtime.runtime.remove_container(&record.id).await {
            tracing::warn!(container = %record.id, %error, "Removing a dead container failed");
            errors.push(error.to_string());
            continue;
        }
        remove_log_files(record);
    }
    for id in old_sandboxes(pods, fate) {
        let removed = match runtime.runtime.stop_pod_sandbox(&id).await {
            Ok(()) => runtime.runtime.remove_pod_sandbox(&id).await,
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(sandbox = %id, %error, "Removing a sandbox failed");
            errors.push(error.to_string());
        }
    }
    errors
}

/// Stops a container of which the runtime does not know whether it runs, with the grace period and the hook that its labels
/// tell: removed as it is, it would be killed without either.
async fn stop_unknown(
    runtime: &PodRuntime,
    pods: &[Arc<RuntimePod>],
    record: &ContainerRecord,
) -> Result<(), KillError> {
    let is_of = |pod: &&Arc<RuntimePod>| pod.containers.iter().any(|own| own.id == record.id);
    let Some(seen) = pods.iter().find(is_of).filter(|_| record.state == RecordState::Unknown) else { return Ok(()) };
    let message = "Container is in unknown state, try killing it before removal";
    runtime.kill_container(&Arc::new(orphan(seen)), record, message, Grace::OfPod).await
}

/// Containers beyond what is kept, those of gone pods first.
fn superfluous<'a>(
    pods: &'a [Arc<RuntimePod>],
    fate: &(dyn Fn(&str) -> Fate + Sync),
    settings: &PodSettings,
    now: SystemTime,
) -> Vec<&'a ContainerRecord> {
    let old_enough = |record: &&ContainerRecord| {
        let created = SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(record.created_at).unwrap_or(0));
        !record.is_running() && now.duration_since(created).unwrap_or_default() >= settings.dead_container_min_age
    };
    let mut out = Vec::new();
    let mut groups: BTreeMap<(&str, &str), Vec<&ContainerRecord>> = BTreeMap::new();
    for pod in pods {
        for record in pod.containers.iter().filter(old_enough) {
            match fate(&pod.uid) {
                Fate::Gone => out.push(record),
                // Counted as a dead one, its successor would cost the one that died its place, and its log.
                Fate::Kept if !record.is_dead() => {}
                Fate::Kept => groups.entry((&pod.uid, &record.name)).or_default().push(record),
            }
        }
    }
    if let Ok(keep) = usize::try_from(settings.dead_per_container) {
        for group in groups.values_mut() {
            out.extend(group.drain(keep.min(group.len())..));
        }
    }
    let Ok(total) = usize::try_from(settings.dead_total) else { return out };
    let count: usize = groups.values().map(Vec::len).sum();
    if count > total && !groups.is_empty() {
        let share = (total / groups.len()).max(1);
        for group in groups.values_mut() {
            out.extend(group.drain(share.min(group.len())..));
        }
        let mut left: Vec<&ContainerRecord> = groups.into_values().flatten().collect();
        left.sort_by_key(|record| std::cmp::Reverse(record.created_at));
        out.extend(left.into_iter().skip(total));
    }
    out
}

/// Sandboxes that are not ready and empty: all of gone pods, all but the newest of others.
fn old_sandboxes(pods: &[Arc<RuntimePod>], fate: &(dyn Fn(&str) -> Fate + Sync)) -> Vec<String> {
    let mut out = Vec::new();
    for pod in pods {
        let keep = usize::from(fate(&pod.uid) == Fate::Kept);
        for sandbox in pod.sandboxes.iter().skip(keep) {
            let empty = !pod.containers.iter().any(|record| record.sandbox_id == sandbox.id);
            if !sandbox.ready && empty {
                out.push(sandbox.id.clone());
            }
        }
    }
    out
}

/// The live log and its rotated siblings.
fn remove_log_files(record: &ContainerRecord) {
    let path = std::path::Path::new(&record.log_path);
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let file = entry.file_name();
        let Some(file) = file.to_str() else { continue };
        if file == name || file.starts_with(&format!("{name}.")) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Log directories of pods that are gone, and links that lead nowhere.
pub(crate) fn collect_logs(settings: &PodSettings, fate: &(dyn Fn(&str) -> Fate + Sync), pods: &[Arc<RuntimePod>]) {
    let in_runtime = |uid: &str| pods.iter().any(|pod| pod.uid == uid && !pod.is_empty());
    for entry in std::fs::read_dir(&settings.pod_logs_dir).into_iter().flatten().take(MAX_ENTRIES).flatten() {
        let name = entry.file_name();
        let Some(uid) = name.to_str().and_then(|name| name.rsplit('_').next()) else { continue };
        if fate(uid) == Fate::Gone
            && !in_runtime(uid)
            && let Err(error) = sys::fs::remove_tree(&entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "Removing the logs of a gone pod failed");
        }
    }
    for entry in std::fs::read_dir(&settings.container_logs_dir).into_iter().flatten().take(MAX_ENTRIES).flatten() {
        let dangling = entry.path().is_symlink() && !entry.path().exists();
        if dangling && is_ours(&entry.path(), settings) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a link leads into this kubelet's pod logs.
fn is_ours(link: &std::path::Path, settings: &PodSettings) -> bool {
    std::fs::read_link(link).is_ok_and(|target| target.starts_with(&settings.pod_logs_dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::record::SandboxRecord;

    fn record(id: &str, name: &str, created_at: i64) -> ContainerRecord {
        let dead = ContainerRecord::example(id, name, RecordState::Exited);
        ContainerRecord { created_at, sandbox_id: "s1".into(), ..dead }
    }

    fn pod(uid: &str, containers: Vec<ContainerRecord>) -> Arc<RuntimePod> {
        let sandboxes =
            [("s2", true), ("s1", false), ("s0", false)].map(|(id, ready)| SandboxRecord::example(id, ready)).into();
        Arc::new(RuntimePod { uid: uid.into(), sandboxes, containers, ..RuntimePod::default() })
    }

    #[test]
    fn the_newest_dead_ones_stay() {
        let created = |id: &str, at| ContainerRecord { state: RecordState::Created, ..record(id, "c", at) };
        let pods = [
            pod("a", vec![created("4", 4), record("3", "c", 3), record("2", "c", 2), record("1", "d", 1)]),
            pod("b", vec![created("9", 9)]),
        ];
        let fate = |uid: &str| if uid == "b" { Fate::Gone } else { Fate::Kept };
        let ids = |settings: &PodSettings| {
            superfluous(&pods, &fate, settings, SystemTime::now_for_test())
                .iter()
                .map(|it| it.id.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&PodSettings::default()), ["9", "2"]);
        assert_eq!(
            ids(&PodSettings { dead_per_container: -1, dead_total: 1, ..PodSettings::default() }),
            ["9", "2", "1"]
        );
        let young = PodSettings { dead_container_min_age: Duration::from_secs(u64::MAX / 4), ..PodSettings::default() };
        assert!(ids(&young).is_empty());
    }

    #[test]
    fn what_is_about_to_run_outlives_nobody() {
        let state = |id: &str, state: RecordState| ContainerRecord { state, ..record(id, "c", 0) };
        let (created, running) = (state("4", RecordState::Created), state("4", RecordState::Running));
        let unknown = state("4", RecordState::Unknown);
        let (dead, older) = (state("3", RecordState::Exited), state("2", RecordState::Exited));
        for (instances, keep, expected) in [
            (vec![&created, &dead], 1, vec![]),
            (vec![&created, &dead, &older], 1, vec!["2"]),
            (vec![&running, &dead, &older], 1, vec!["2"]),
            (vec![&running, &dead, &older], 0, vec!["3", "2"]),
            (vec![&unknown, &dead, &older], 0, vec!["3", "2"]),
        ] {
            let ids: Vec<&str> = outlived(instances.into_iter(), keep).map(|record| record.id.as_str()).collect();
            assert_eq!(ids, expected);
        }
    }

    #[test]
    fn sandboxes_with_containers_or_the_newest_stay() {
        let pods = [pod("a", vec![record("1", "c", 1)])];
        assert_eq!(old_sandboxes(&pods, &|_| Fate::Kept), ["s0"]);
        let empty = [pod("a", Vec::new())];
        assert_eq!(old_sandboxes(&empty, &|_| Fate::Gone), ["s1", "s0"]);
    }

    #[tokio::test]
    async fn what_may_still_run_is_stopped_before_it_is_removed() {
        use node_api::cri::CriError;
        use node_api::cri::fake::FakeRuntime;

        let state = |id: &str, state| ContainerRecord { state, ..record(id, "c", 1) };
        let containers = vec![state("u", RecordState::Unknown), state("e", RecordState::Exited)];
        let pods = [pod("a", containers)];
        let fake = FakeRuntime::new(base::SystemClock::shared(), &base::TaskGroup::new("runtime"));
        let runtime = crate::engine::test_node::runtime_with(&fake);
        let refused = || CriError::rpc("stop_container", node_api::cri::Code::Unknown, "busy");
        for (fails, expected, errors) in [
            (false, ["stop_container u", "remove_container u", "remove_container e"].as_slice(), 0),
            (true, &["stop_container u", "remove_container e"], 1),
        ] {
            if fails {
                fake.fail_next("stop_container", refused());
            }
            let told = collect(&runtime, &pods, &|_| Fate::Gone, SystemTime::now_for_test()).await;
            let calls = fake.take_calls().into_iter().filter(|call| call.operation.ends_with("_container"));
            let calls: Vec<String> = calls.map(|call| format!("{} {}", call.operation, call.subject)).collect();
            assert_eq!(
                (calls.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), told.len()),
                (expected, errors)
            );
        }
    }

    trait Later {
        fn now_for_test() -> SystemTime;
    }

    impl Later for SystemTime {
        fn now_for_test() -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
        }
    }
}
