//! Asking the runtime for one pod, in full.

use std::collections::HashMap;

use node_api::cri::v1;
use node_api::cri::{CriError, Runtime};

use super::labels;
use super::record::{ContainerRecord, RecordState, RuntimePod, SandboxRecord};
use super::sync::Made;
use super::termination;

/// Everything the runtime knows of a pod now. What vanishes in between is left out.
pub async fn inspect(runtime: &dyn Runtime, uid: &str, before: Option<&RuntimePod>) -> Result<RuntimePod, CriError> {
    let selector = HashMap::from([(labels::POD_UID.to_owned(), uid.to_owned())]);
    let filter = v1::PodSandboxFilter { label_selector: selector.clone(), ..Default::default() };
    let sandboxes = runtime.list_pod_sandboxes(Some(filter)).await?;
    let filter = v1::ContainerFilter { label_selector: selector, ..Default::default() };
    let containers = runtime.list_containers(Some(filter)).await?;
    inspect_listed(runtime, uid, &sandboxes, &containers, before).await
}

/// The same, where the lists are there already.
pub async fn inspect_listed(
    runtime: &dyn Runtime,
    uid: &str,
    sandboxes: &[v1::PodSandbox],
    containers: &[v1::Container],
    before: Option<&RuntimePod>,
) -> Result<RuntimePod, CriError> {
    let mut pod = RuntimePod { uid: uid.to_owned(), ..RuntimePod::default() };
    for sandbox in sandboxes {
        identify(&mut pod, &sandbox.labels);
        let answer = runtime.pod_sandbox_status(&sandbox.id, false).await;
        let Some(status) = found(answer)?.and_then(|answer| answer.status) else { continue };
        pod.sandboxes.push(SandboxRecord::from_status(&status));
    }
    for container in containers {
        identify(&mut pod, &container.labels);
        let answer = runtime.container_status(&container.id, false).await;
        let Some(status) = found(answer)?.and_then(|answer| answer.status) else { continue };
        pod.containers.push(read_message(status, &container.pod_sandbox_id, before).await);
    }
    Ok(pod.finish(before))
}

/// The same of a pod that has just been made. What has become of its sandbox since is seen at the next complete look.
pub async fn inspect_made(runtime: &dyn Runtime, uid: &str, made: &Made) -> Result<RuntimePod, CriError> {
    let mut containers = Vec::with_capacity(made.containers.len());
    for id in &made.containers {
        let answer = runtime.container_status(id, false).await;
        containers.extend(found(answer)?.and_then(|answer| answer.status));
    }
    Ok(of_event(uid, &made.sandbox, containers, None).await)
}

/// What an event tells of a sandbox and its containers, beside what is known of the pod's other sandboxes.
pub async fn of_event(
    uid: &str,
    sandbox: &v1::PodSandboxStatus,
    containers: Vec<v1::ContainerStatus>,
    before: Option<&RuntimePod>,
) -> RuntimePod {
    let mut pod = RuntimePod { uid: uid.to_owned(), ..RuntimePod::default() };
    identify(&mut pod, &sandbox.labels);
    pod.sandboxes.push(SandboxRecord::from_status(sandbox));
    for status in containers {
        pod.containers.push(read_message(status, &sandbox.id, before).await);
    }
    if let Some(before) = before {
        let others = before.sandboxes.iter().filter(|other| other.id != sandbox.id);
        pod.sandboxes.extend(others.cloned());
        let others = before.containers.iter().filter(|other| other.sandbox_id != sandbox.id);
        pod.containers.extend(others.cloned());
    }
    pod.finish(before)
}

fn found<T>(answer: Result<T, CriError>) -> Result<Option<T>, CriError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn identify(pod: &mut RuntimePod, labels: &HashMap<String, String>) {
    if pod.name.is_empty() {
        pod.name = labels.get(labels::POD_NAME).cloned().unwrap_or_default();
        pod.namespace = labels.get(labels::POD_NAMESPACE).cloned().unwrap_or_default();
    }
}

/// An exited container says its last words only once; they are kept from the record before where it was exited too.
async fn read_message(status: v1::ContainerStatus, sandbox_id: &str, before: Option<&RuntimePod>) -> ContainerRecord {
    let mut record = ContainerRecord::from_status(status, sandbox_id);
    if record.state != RecordState::Exited {
        return record;
    }
    let known = before.and_then(|before| before.containers.iter().find(|known| known.id == record.id));
    if let Some(known) = known.filter(|known| known.state == RecordState::Exited) {
        record.message.clone_from(&known.message);
        return record;
    }
    let last_words = termination::last_words(&record).await;
    record.message = match (record.message.is_empty(), last_words.is_empty()) {
        (_, true) => record.message,
        (true, false) => last_words,
        (false, false) => format!("{}: {last_words}", record.message),
    };
    record
}
