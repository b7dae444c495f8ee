//! Pods of nodes that are not ready are not ready either, whatever the silent kubelet said last.

use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::Pod;
use client::{EventType, ObjectKey};
use component_helpers::conditions;
use controller::{Controller, Cx, Next, ReconcileError};

use super::Shared;

/// The pod with its readiness taken away; nothing where it has none.
pub(super) fn not_ready(pod: &Pod, now: Time) -> Option<Pod> {
    let ready = conditions::find(&pod.status.conditions, "Ready").filter(|ready| ready.status != "False")?;
    let mut lost = ready.clone();
    "False".clone_into(&mut lost.status);
    let mut pod = pod.clone();
    conditions::set(&mut pod.status.conditions, lost, now);
    Some(pod)
}

/// Takes the readiness of pods away and tells of it.
pub(super) async fn mark(cx: &Cx, pods: &[Arc<Pod>]) -> Result<(), ReconcileError> {
    let mut errors = Vec::new();
    for pod in pods {
        let Some(changed) = not_ready(pod, Time::from(cx.clock.wall())) else { continue };
        match cx.client.all::<Pod>().update_status(&changed).await {
            Err(error) if error.is_not_found() => continue,
            Err(error) => errors.push(error.into()),
            Ok(_) => {}
        }
        cx.events.event(&**pod, EventType::Warning, "NodeNotReady", "Node is not ready");
    }
    ReconcileError::join(errors)
}

/// Works on pods that were bound to a node that may be silent already.
pub(super) struct NewPods(pub(super) Arc<Shared>);

#[async_trait::async_trait]
impl Controller for NewPods {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(pod) = self.0.pods.get(key) else { return Ok(Next::Done) };
        let status = {
            let state = self.0.state.lock();
            let record = state.records.get(&pod.spec.node_name);
            record.and_then(|record| record.ready.as_ref()).map(|ready| ready.status.clone())
        };
        let Some(status) = status else { return Ok(Next::Done) };
        if self.0.nodes.find("", &pod.spec.node_name).is_none() {
            return Ok(Next::Again);
        }
        if status != "True" {
            mark(cx, &[pod]).await?;
        }
        Ok(Next::Done)
    }
}
