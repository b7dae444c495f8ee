//! Usage out of the caches: pods, services and claims as they are, of everything else the number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::meta::PartialObjectMetadata;
use api_machinery::time::Time;
use api_types::core_v1::{PersistentVolumeClaim, Pod, ResourceList, ResourceQuota, Service};
use client::{ApiObject, Informer, Share};
use component_helpers::quota::{Circumstances, Evaluator, whole};
use component_helpers::{pod_requests, pod_state};
use controller::Build;
use parking_lot::Mutex;

use super::devices::Devices;
use super::pod_level::PodLevel;
use super::releases::Releases;

/// What is counted.
pub(super) struct Counted {
    pods: Informer<Pod>,
    services: Informer<Service>,
    claims: Informer<PersistentVolumeClaim>,
    pub(super) devices: Devices,
    pod_level: PodLevel,
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
    pub(super) fn new(build: &mut Build<'_>, pod_level: PodLevel) -> Self {
        let pods = build.watch::<Pod>().informer();
        Self {
            devices: Devices::new(build, &pods),
            pod_level,
            pods,
            services: build.watch::<Service>().informer(),
            claims: build.watch::<PersistentVolumeClaim>().informer(),
            others: Mutex::default(),
        }
    }

    /// Has quotas counted anew when less is used of them, or otherwise than the API server saw.
    pub(super) fn follow(&self, releases: &Releases) {
        self.pods.subscribe(releases.handler(Evaluator::Pods, |old: &Pod, new: &Pod| {
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
        self.services.subscribe(releases.handler(Evaluator::Services, retyped));
        let changed = |old: &PersistentVolumeClaim, new: &PersistentVolumeClaim| {
            old.status.allocated_resources != new.status.allocated_resources || classes(old) != classes(new)
        };
        self.claims.subscribe(releases.handler(Evaluator::Claims, changed));
        // What a claim asks for cannot be changed.
        self.devices.claims.subscribe(releases.handler(Evaluator::DeviceClaims, |_, _| false));
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
        let extended = self.devices.extended();
        let mut tally = Tally::new(quota, self.pod_level, Circumstances { now, devices: extended.as_deref() });
        tally.count(&Evaluator::Pods, "pods", &self.pods, self.pods.has_synced());
        tally.count(&Evaluator::Services, "services", &self.services, self.services.has_synced());
        tally.count(&Evaluator::Claims, "persistentvolumeclaims", &self.claims, self.claims.has_synced());
        if !self.devices.are_absent() {
            let (claims, synced) = (&self.devices.claims, self.devices.have_synced());
            tally.count(&Evaluator::DeviceClaims, "resourceclaims", claims, synced);
        }
        let others = self.others.lock().clone();
        for ((_, name), other) in others {
            let informer = other.objects.informer();
            tally.count(&other.evaluator, &name, informer, informer.has_synced());
        }
        tally.result()
    }
}

/// What is used of the names of a quota, of one resource after the other.
struct Tally<'a> {
    quota: &'a ResourceQuota,
    pod_level: PodLevel,
    at: Circumstances<'a>,
    used: ResourceList,
    /// Names of which not everything could be counted.
    unknown: BTreeSet<&'a str>,
    problems: Vec<String>,
}

impl<'a> Tally<'a> {
    fn new(quota: &'a ResourceQuota, pod_level: PodLevel, at: Circumstances<'a>) -> Self {
        Self { quota, pod_level, at, used: ResourceList::new(), unknown: BTreeSet::new(), problems: Vec::new() }
    }

    /// Adds what the objects of a resource use, as long as all of them are known. Several resources may use the same name.
    fn count<T: ApiObject>(&mut self, evaluator: &Evaluator, resource: &str, objects: &Informer<T>, synced: bool) {
        let spec = &self.quota.spec;
        let concerned = spec.hard.keys().map(String::as_str).filter(|own| evaluator.counts(own, self.at.devices));
        let concerned: Vec<&str> = concerned.collect();
        if concerned.is_empty() {
            return;
        }
        if !synced {
            self.unknown.extend(concerned);
            self.problems.push(format!("{resource} not yet synced"));
            return;
        }
        for name in concerned {
            self.used.entry(name.to_owned()).or_insert_with(|| whole(0));
        }
        for object in objects.in_namespace(&self.quota.metadata.namespace) {
            if let Some(usage) = self.pod_level.usage(evaluator, spec, &*object, self.at) {
                pod_requests::add(&mut self.used, &usage);
            }
        }
    }

    fn result(mut self) -> (ResourceList, Option<String>) {
        let hard = &self.quota.spec.hard;
        self.used.retain(|name, _| hard.contains_key(name) && !self.unknown.contains(name.as_str()));
        (self.used, (!self.problems.is_empty()).then(|| self.problems.join(", ")))
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
