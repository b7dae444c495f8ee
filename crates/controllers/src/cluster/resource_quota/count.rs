//! Usage out of the caches: pods, services and claims as they are, of everything else the number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::Object;
use api_machinery::time::Time;
use api_types::core_v1::{PersistentVolumeClaim, Pod, ResourceList, ResourceQuota, Service};
use client::{ApiObject, Change, Informer, Share};
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

/// Shares in the objects of resources, by group and name.
pub(super) type Followed = BTreeMap<(String, String), Arc<Share<PartialObjectMetadata>>>;

#[derive(Clone)]
struct Other {
    evaluator: Evaluator,
    objects: Arc<Share<PartialObjectMetadata>>,
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
        self.pods.subscribe(on_release(Evaluator::Pods, quotas, queue, |old: &Pod, new: &Pod| {
            let deadline = |pod: &Pod| pod.spec.active_deadline_seconds.is_some();
            let resources = |pod: &Pod| -> Vec<_> {
                let all = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
                all.map(|status| status.resources.clone()).collect()
            };
            pod_state::is_terminal(old) != pod_state::is_terminal(new)
                || deadline(old) != deadline(new)
                || resources(old) != resources(new)
        }));
        let retyped = |old: &Service, new: &Service| old.spec.type_ != new.spec.type_;
        self.services.subscribe(on_release(Evaluator::Services, quotas, queue, retyped));
        let changed = |old: &PersistentVolumeClaim, new: &PersistentVolumeClaim| {
            old.status.allocated_resources != new.status.allocated_resources || classes(old) != classes(new)
        };
        self.claims.subscribe(on_release(Evaluator::Claims, quotas, queue, changed));
    }

    /// The resources of which only the number counts, replaced.
    pub(super) fn set_others(&self, others: Followed) {
        let other = |(resource, objects): ((String, String), Arc<Share<PartialObjectMetadata>>)| {
            let evaluator = Evaluator::of(&resource.0, &resource.1)?;
            Some((resource, Other { evaluator, objects }))
        };
        *self.others.lock() = others.into_iter().filter_map(other).collect();
    }

    /// What is used of the names of a quota, and what could not be counted.
    pub(super) fn usage(&self, quota: &ResourceQuota, now: Time) -> (ResourceList, Option<String>) {
        let mut used = ResourceList::new();
        let mut problems = Vec::new();
        let mut count =
            |evaluator: &Evaluator, name: &str, synced: bool, objects: &dyn Fn() -> Vec<Arc<dyn Object>>| {
                if !quota.spec.hard.keys().any(|own| evaluator.counts(own)) {
                    return;
                }
                if !synced {
                    problems.push(format!("{name} not yet synced"));
                    return;
                }
                let zero = quota.spec.hard.keys().filter(|own| evaluator.counts(own));
                used.extend(zero.map(|own| (own.clone(), component_helpers::quota::whole(0))));
                for object in objects().iter().filter(|object| evaluator.chooses(&quota.spec, &***object)) {
                    component_helpers::pod_requests::add(&mut used, &evaluator.usage(&**object, now));
                }
            };
        let namespace = &quota.metadata.namespace;
        let (pods, services, claims) = (&self.pods, &self.services, &self.claims);
        count(&Evaluator::Pods, "pods", pods.has_synced(), &|| objects(pods, namespace));
        count(&Evaluator::Services, "services", services.has_synced(), &|| objects(services, namespace));
        count(&Evaluator::Claims, "persistentvolumeclaims", claims.has_synced(), &|| objects(claims, namespace));
        let others = self.others.lock().clone();
        for ((_, name), other) in others {
            let informer = other.objects.informer();
            count(&other.evaluator, &name, informer.has_synced(), &|| objects(informer, namespace));
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

/// A handler that enqueues the quotas that count a resource when an object of it goes, or changes in a way that matters.
pub(super) fn on_release<T: ApiObject>(
    evaluator: Evaluator,
    quotas: &Informer<ResourceQuota>,
    queue: &Queue,
    matters: impl Fn(&T, &T) -> bool + Send + 'static,
) -> impl FnMut(&Change<T>) + Send + 'static {
    let (quotas, queue) = (quotas.clone(), queue.clone());
    move |change| {
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
    }
}
