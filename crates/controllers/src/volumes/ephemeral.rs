//! Makes the claims of pods' ephemeral volumes. Deleting them is the garbage collector's work: the pod owns them.

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{PersistentVolumeClaim, Pod, Volume};
use client::{Change, Informer, ObjectKey};
use component_base::metrics::{Counters, Desc, Stability};
use component_helpers::owners::controller_reference;
use component_helpers::volumes::of_pods;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::notice::Notice;
use super::{PODS_BY_CLAIM, keys_of_claims};
use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "ephemeral-volume-controller",
    aliases: &["ephemeral-volume"],
    gates: &[],
    identity: "ephemeral-volume-controller",
    event_component: "ephemeral_volume",
    disabled_by_default: false,
    build,
};

const TRIES: Desc =
    Desc::new("ephemeral_volume_controller_create_total", "Claims that were to be made.", Stability::Alpha);
const FAILURES: Desc =
    Desc::new("ephemeral_volume_controller_create_failures_total", "Claims that could not be made.", Stability::Alpha);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let workers = build.settings::<Settings>()?.ephemeral_volume_syncs;
    let queue = build.queue("ephemeral_volume");
    let added = |change: &Change<Pod>| {
        let is_new = matches!(change, Change::Added { .. });
        (is_new && wants_claims(change.object())).then(|| change.key())
    };
    let pods = build.watch::<Pod>().index(PODS_BY_CLAIM, keys_of_claims).enqueue_keys(&queue, added).informer();
    let users = pods.clone();
    let lost = move |change: &Change<PersistentVolumeClaim>| {
        let pods =
            if change.is_deleted() { users.by_index(PODS_BY_CLAIM, &change.key().to_string()) } else { Vec::new() };
        pods.into_iter().filter(|pod| wants_claims(pod)).map(|pod| ObjectKey::of(&pod.metadata)).collect::<Vec<_>>()
    };
    let claims = build.watch::<PersistentVolumeClaim>().enqueue_keys(&queue, lost).informer();
    let (tries, failures) = (build.metrics().counters(&TRIES), build.metrics().counters(&FAILURES));
    build.run(&queue, workers, Arc::new(Ephemeral { pods, claims, tries, failures }));
    Ok(())
}

fn wants_claims(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod.spec.volumes.iter().any(|volume| volume.volume_source.ephemeral.is_some())
}

/// The claim of an ephemeral volume, as its template has it; nothing where the volume is of another kind.
fn claim_of(pod: &Pod, volume: &Volume) -> Option<PersistentVolumeClaim> {
    let template = volume.volume_source.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
    let metadata = ObjectMeta {
        name: of_pods::ephemeral_claim_name(pod, volume),
        namespace: pod.metadata.namespace.clone(),
        labels: template.metadata.labels.clone(),
        annotations: template.metadata.annotations.clone(),
        owner_references: vec![controller_reference(pod)],
        ..ObjectMeta::default()
    };
    Some(PersistentVolumeClaim { metadata, spec: template.spec.clone(), ..PersistentVolumeClaim::default() })
}

struct Ephemeral {
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
    tries: Counters,
    failures: Counters,
}

impl Ephemeral {
    async fn ensure(&self, cx: &Cx, pod: &Pod, claim: &PersistentVolumeClaim) -> Result<(), ReconcileError> {
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        if let Some(present) = self.claims.find(namespace, name) {
            return of_pods::check_owner(pod, &present).map_err(|error| ReconcileError::failed(error.to_string()));
        }
        self.tries.with(&[]).inc();
        match cx.client.namespaced::<PersistentVolumeClaim>(namespace).create(claim).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.failures.with(&[]).inc();
                Err(ReconcileError::failed(format!("create PVC {name}: {error}")))
            }
        }
    }
}

#[async_trait::async_trait]
impl Controller for Ephemeral {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(pod) = self.pods.get(key).filter(|pod| wants_claims(pod)) else { return Ok(Next::Done) };
        for volume in &pod.spec.volumes {
            let Some(claim) = claim_of(&pod, volume) else { continue };
            if let Err(error) = self.ensure(cx, &pod, &claim).await {
                let message = format!("ephemeral volume {}: {error}", volume.name);
                Notice::warning("FailedBinding", message).tell(cx, &*pod);
                return Err(error);
            }
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::value::from_value;

    use super::*;
    use crate::workloads::fixtures::{Running, dying, meta, pod, run_until_idle};

    const CLAIMS_AT: &str = "v1/persistentvolumeclaims";

    fn user() -> Pod {
        let mut pod = pod("p", "Pending", None);
        let volumes = r#"{"volumes": [{"name": "plain", "emptyDir": {}}, {"name": "scratch", "ephemeral":
            {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": {"storageClassName": "fast"}}}}]}"#;
        from_value(&api_machinery::json::parse_value(volumes).unwrap(), &mut pod.spec).unwrap();
        pod
    }

    #[test]
    fn a_claim_follows_its_template() {
        let pod = user();
        assert_eq!(claim_of(&pod, &pod.spec.volumes[0]), None);
        let claim = claim_of(&pod, &pod.spec.volumes[1]).unwrap();
        assert_eq!((claim.metadata.name.as_str(), claim.metadata.namespace.as_str()), ("p-scratch", "ns"));
        assert_eq!((claim.metadata.labels["a"].as_str(), claim.metadata.annotations["c"].as_str()), ("b", "d"));
        assert_eq!(claim.spec.storage_class_name.as_deref(), Some("fast"));
        let owner = &claim.metadata.owner_references[0];
        assert_eq!(
            (owner.uid.as_str(), owner.controller, owner.block_owner_deletion),
            ("p-uid", Some(true), Some(true))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn claims_are_made_and_made_again() {
        let run = Running::start(&[DESCRIPTOR]);
        let mut gone = dying(user());
        gone.metadata.name = "gone".into();
        run.put("v1/pods", &gone);
        run.put("v1/pods", &user());
        run_until_idle().await;
        let names = || {
            let claims = run.server.objects(CLAIMS_AT);
            claims.iter().map(|claim| claim["metadata"]["name"].to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["\"p-scratch\""]);
        run.assert_shows("ephemeral_volume_controller_create_total 1");
        run.server.remove(CLAIMS_AT, "ns", "p-scratch");
        run_until_idle().await;
        assert_eq!(names(), ["\"p-scratch\""]);
        run.assert_steady().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_of_somebody_else_is_left_alone() {
        let run = Running::start(&[DESCRIPTOR]);
        run.put(CLAIMS_AT, &PersistentVolumeClaim { metadata: meta("p-scratch"), ..Default::default() });
        run_until_idle().await;
        run.put("v1/pods", &user());
        run_until_idle().await;
        let event = run.server.objects("v1/events").remove(0);
        assert_eq!(event["reason"], "FailedBinding");
        let message = "ephemeral volume scratch: PVC ns/p-scratch was not created for pod ns/p (pod is not owner)";
        assert_eq!(event["message"], message);
        assert_eq!(run.requests("POST", "persistentvolumeclaims"), 0);
    }
}
