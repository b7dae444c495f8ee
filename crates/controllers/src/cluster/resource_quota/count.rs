//! Usage out of the caches: pods, services and claims as they are, of everything else the number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::Object;
use api_machinery::time::Time;
use api_types::core_v1::{PersistentVolumeClaim, Pod, ResourceList, ResourceQuota, Service};
use client::{ApiObject, Change, Informer};
use component_helpers::pod_state;
use component_helpers::quota::Evaluator;
use controller::{Build, Queue};
use parking_lot::Mutex;

/// What is counted.
pub(super) struct Counted {
    pods: Informer<Pod>,
    services: Informer<Service>,
    claims: Informer<PersistentVolumeClaim>,
    /// The resources of which only the number counts, by group and name.
    others: Mutex<BTreeMap<(String, String), Other>>,
}

#[derive(Clone)]
struct Other {
    evaluator: Evaluator,
    objects: Informer<PartialObjectMetadata>,
}

impl Counted {
    pub(super) fn new(build: &mut Build<'_>) -> Self {
        Self {
            pods: build.watch::<Pod>().informer(),
            services: build.watch::<Service>().informer(),
            claims: build.watch::<PersistentVolumeClaim>().informer(),
            others: Mutex::default(),
        }
    }

    /// Has quotas counted anew when less is used of them, or otherwise than the API server saw.
    pub(super) fn follow(&self, quotas: &Informer<ResourceQuota>, queue: &Queue) {
        on_release(&self.pods, Evaluator::Pods, quotas, queue, |old, new| {
            let deadline = |pod: &Pod| pod.spec.active_deadline_seconds.is_some();
            let resources = |pod: &Pod| -> Vec<_> {
                let all = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
                all.map(|status| status.resources.clone()).collect()
            };
            pod_state::is_terminal(old) != pod_state::is_terminal(new)
                || deadline(old) != deadline(new)
                || resources(old) != resources(new)
        });
        on_release(&self.services, Evaluator::Services, quotas, queue, |old, new| old.spec.type_ != new.spec.type_);
        on_release(&self.claims, Evaluator::Claims, quotas, queue, |old, new| {
            old.status.allocated_resources != new.status.allocated_resources || classes(old) != classes(new)
        });
    }

    /// The resources of which only the number counts, replaced.
    pub(super) fn set_others(&self, others: BTreeMap<(String, String), Informer<PartialObjectMetadata>>) {
        let other = |(resource, objects): ((String, String), Informer<PartialObjectMetadata>)| {
            let evaluator = Evaluator::of(&resource.0, &resource.1)?;
            Some((resource, Other { evaluator, objects }))
        };
        *self.others.lock() = others.into_iter().filter_map(other).collect();
    }

    /// What is used of the names of a quota, and what could not be counted.
    pub(super) fn usage(&self, quota: &ResourceQuota, now: Time) -> (ResourceList, Option<String>) {
        let mut used = ResourceList::new();
        let mut problems = Vec::new();
        let mut count = |evaluator: &Evaluator, name: &str, synced: bool, objects: Vec<Arc<dyn Object>>| {
            if !quota.spec.hard.keys().any(|own| evaluator.counts(own)) {
                return;
            }
            if !synced {
                problems.push(format!("{name} not yet synced"));
                return;
            }
            let zero = quota.spec.hard.keys().filter(|own| evaluator.counts(own));
            used.extend(zero.map(|own| (own.clone(), component_helpers::quota::whole(0))));
            for object in objects.iter().filter(|object| evaluator.chooses(&quota.spec, &***object)) {
                component_helpers::pod_requests::add(&mut used, &evaluator.usage(&**object, now));
            }
        };
        let namespace = &quota.metadata.namespace;
        count(&Evaluator::Pods, "pods", self.pods.has_synced(), objects(&self.pods, namespace));
        count(&Evaluator::Services, "services", self.services.has_synced(), objects(&self.services, namespace));
        count(&Evaluator::Claims, "persistentvolumeclaims", self.claims.has_synced(), objects(&self.claims, namespace));
        let others = self.others.lock().clone();
        for ((_, name), other) in others {
            count(&other.evaluator, &name, other.objects.has_synced(), objects(&other.objects, namespace));
        }
        used.retain(|name, _| quota.spec.hard.contains_key(name));
        (used, (!problems.is_empty()).then(|| problems.join(", ")))
    }
}

/// The attribute classes that a claim names, wherever it does; scopes choose by them.
fn classes(claim: &PersistentVolumeClaim) -> BTreeSet<&str> {
    let status = &claim.status;
    let target = status.modify_volume_status.as_ref().map(|own| own.target_volume_attributes_class_name.as_str());
    let wanted = claim.spec.volume_attributes_class_name.as_deref();
    let current = status.current_volume_attributes_class_name.as_deref();
    [wanted, current, target].into_iter().flatten().filter(|name| !name.is_empty()).collect()
}

fn objects<T: ApiObject>(informer: &Informer<T>, namespace: &str) -> Vec<Arc<dyn Object>> {
    informer.in_namespace(namespace).into_iter().map(|object| object as Arc<dyn Object>).collect()
}

/// Enqueues the quotas that count a resource when an object of it goes, or changes in a way that matters.
pub(super) fn on_release<T: ApiObject>(
    objects: &Informer<T>,
    evaluator: Evaluator,
    quotas: &Informer<ResourceQuota>,
    queue: &Queue,
    matters: impl Fn(&T, &T) -> bool + Send + Sync + 'static,
) {
    let (quotas, queue) = (quotas.clone(), queue.clone());
    objects.subscribe(move |change| {
        let concerned = match change {
            Change::Added { .. } => false,
            Change::Updated { old, new } => !change.is_resync() && matters(old, new),
            Change::Deleted { .. } => true,
        };
        if !concerned {
            return;
        }
        for quota in quotas.in_namespace(&change.key().namespace) {
            if quota.status.hard.keys().any(|name| evaluator.counts(name)) {
                queue.add(client::ObjectKey::of(&quota.metadata));
            }
        }
    });
}
