//! How many pods a budget may expect, by the controllers of its pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::gvk::{GroupVersion, GroupVersionKind};
use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_types::apps_v1::{Deployment, ReplicaSet, StatefulSet};
use api_types::autoscaling_v1::Scale;
use api_types::core_v1::{Pod, ReplicationController};
use api_types::policy_v1::PodDisruptionBudget;
use client::{ApiObject, Informer, ResourceInfo, RestMapper};
use controller::{Cx, ReconcileError, controller_of};

use super::plan::{Counted, share};

const APPS: [&str; 2] = ["apps", "extensions"];

/// The controllers that are known without asking, and how the others are found.
pub(super) struct Scales {
    pub(super) controllers: Informer<ReplicationController>,
    pub(super) sets: Informer<ReplicaSet>,
    pub(super) deployments: Informer<Deployment>,
    pub(super) stateful_sets: Informer<StatefulSet>,
    pub(super) mapper: RestMapper,
}

/// The cached object that a reference means.
fn cached<T: ApiObject>(informer: &Informer<T>, namespace: &str, owner: &OwnerReference) -> Option<Arc<T>> {
    informer.find(namespace, &owner.name).filter(|found| found.meta().uid == owner.uid)
}

impl Scales {
    /// How many pods there should be, and how many of them must be healthy.
    pub(super) async fn expected(
        &self,
        cx: &Cx,
        budget: &PodDisruptionBudget,
        pods: &[Arc<Pod>],
    ) -> Result<Counted, ReconcileError> {
        let spec = &budget.spec;
        let count = i32::try_from(pods.len()).unwrap_or(i32::MAX);
        match (&spec.max_unavailable, &spec.min_available) {
            (Some(most), _) => {
                let (expected, unmanaged) = self.total(cx, pods).await?;
                let desired = expected.saturating_sub(share(most, expected)?).max(0);
                Ok(Counted { expected, desired, unmanaged })
            }
            (None, Some(api_machinery::intstr::IntOrString::Int(least))) => {
                Ok(Counted { expected: count, desired: *least, unmanaged: false })
            }
            (None, Some(least)) => {
                let (expected, unmanaged) = self.total(cx, pods).await?;
                Ok(Counted { expected, desired: share(least, expected)?, unmanaged })
            }
            (None, None) => Ok(Counted::default()),
        }
    }

    /// The sum of what the controllers want, each counted once, and whether there are pods without one.
    async fn total(&self, cx: &Cx, pods: &[Arc<Pod>]) -> Result<(i32, bool), ReconcileError> {
        let (mut scales, mut unmanaged) = (BTreeMap::<String, i32>::new(), false);
        for pod in pods {
            let Some(owner) = controller_of(&pod.metadata) else {
                unmanaged = true;
                continue;
            };
            if scales.contains_key(&owner.uid) {
                continue;
            }
            let Some((uid, scale)) = self.scale(cx, &pod.metadata, owner).await? else {
                let name = &pod.metadata.name;
                return Err(ReconcileError::failed(format!("found no controllers for pod {name:?}")));
            };
            scales.insert(uid, scale);
        }
        Ok((scales.values().fold(0_i32, |sum, scale| sum.saturating_add(*scale)), unmanaged))
    }

    /// The uid of the topmost controller and how many pods it wants.
    async fn scale(
        &self,
        cx: &Cx,
        pod: &ObjectMeta,
        owner: &OwnerReference,
    ) -> Result<Option<(String, i32)>, ReconcileError> {
        let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        let namespace = &pod.namespace;
        let found = |replicas: Option<i32>| Some((owner.uid.clone(), replicas.unwrap_or(1)));
        let known = match (group, owner.kind.as_str()) {
            ("", "ReplicationController") => {
                cached(&self.controllers, namespace, owner).and_then(|own| found(own.spec.replicas))
            }
            ("apps" | "extensions", "ReplicaSet") => self.of_replica_set(namespace, owner),
            ("apps", "StatefulSet") => {
                cached(&self.stateful_sets, namespace, owner).and_then(|own| found(own.spec.replicas))
            }
            _ => None,
        };
        if known.is_some() {
            return Ok(known);
        }
        let kind = GroupVersionKind {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: owner.kind.clone().into(),
        };
        let info = self.resource(&kind).await?;
        let scale = cx.client.dynamic(&info, namespace).get_subresource::<Scale>(&owner.name, "scale").await;
        match scale {
            Ok(scale) => Ok((scale.metadata.uid == owner.uid).then(|| (owner.uid.clone(), scale.spec.replicas))),
            Err(error) if error.is_not_found() => {
                let discovered = self.mapper.discovered();
                let served = discovered.resources.iter().find(|served| served.info.resource == info.resource);
                if served.is_some_and(|served| served.subresources.iter().any(|name| name == "scale")) {
                    return Ok(None);
                }
                let (resource, group) = (&info.resource.resource, &info.resource.group);
                let dot = if group.is_empty() { "" } else { "." };
                let text = format!("{resource}{dot}{group} does not implement the scale subresource");
                Err(ReconcileError::failed(text))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The resource of a kind; one that is not known is asked for once more, as it may be new, or nobody has asked yet.
    async fn resource(&self, kind: &GroupVersionKind) -> Result<ResourceInfo, ReconcileError> {
        if let Some(known) = self.mapper.resource_of(kind) {
            return Ok(known);
        }
        self.mapper.refresh().await?;
        self.mapper.resource_of(kind).ok_or_else(|| {
            let version = GroupVersion { group: kind.group.clone(), version: kind.version.clone() };
            ReconcileError::failed(format!("no matches for kind {:?} in version \"{version}\"", kind.kind))
        })
    }

    /// A replica set counts as its deployment, where it has one.
    fn of_replica_set(&self, namespace: &str, owner: &OwnerReference) -> Option<(String, i32)> {
        let set = cached(&self.sets, namespace, owner)?;
        let deployment = controller_of(&set.metadata).filter(|above| {
            let group = above.api_version.split_once('/').map_or("", |(group, _)| group);
            above.kind == "Deployment" && APPS.contains(&group)
        });
        let Some(above) = deployment else { return Some((owner.uid.clone(), set.spec.replicas.unwrap_or(1))) };
        let deployment = cached(&self.deployments, namespace, above)?;
        Some((above.uid.clone(), deployment.spec.replicas.unwrap_or(1)))
    }
}
