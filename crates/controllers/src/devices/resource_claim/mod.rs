//! Makes claims for pods, and for groups that share them (KEP-5729), from their templates, and lets go of claims that nobody uses
//! any more (KEP-4381).
//!
//! Deliberately not here: devices are allocated by the scheduler.

mod claims;
#[cfg(test)]
mod group_tests;
pub(super) mod groups;
mod holder;
mod making;
mod memory;
pub(super) mod naming;
mod pods;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::resource_v1::{ResourceClaim, ResourceClaimTemplate};
use api_types::scheduling_v1alpha2::PodGroup;
use client::{Change, Informer, ObjectKey};
use component_base::Feature;
use component_base::metrics::{Counters, Desc, Sample, Stability, Value};
use component_base::shared_gates::{ADMIN_ACCESS, DEVICES, GROUP_CLAIMS, PRIORITIZED_LIST};
use component_helpers::group_claims::Whose;
use component_helpers::resource_claims::is_for_extended_resources;
use controller::{
    Build, BuildError, CONTROLLER_UID, Controller, Cx, Descriptor, Next, Queue, ReconcileError, controller_uid,
};
use parking_lot::Mutex;

use self::making::{Allowed, wants_admin_access};
use self::memory::{Gone, Made};
use self::naming::{claims_of, has_claims, is_done};
use crate::Settings;

/// The gates that this controller asks.
pub(crate) const GATES: &[Feature] = &[DEVICES, ADMIN_ACCESS, GROUP_CLAIMS, PRIORITIZED_LIST];

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "resourceclaim-controller",
    aliases: &["resource-claim-controller"],
    gates: &[DEVICES],
    identity: "resource-claim-controller",
    event_component: "resource_claim",
    disabled_by_default: false,
    build,
};

const CREATES: Desc = Desc::new("resourceclaim_controller_creates_total", "Claims that were made.", Stability::Alpha)
    .labels(&["status", "admin_access"]);
const CLAIMS: Desc = Desc::new("resourceclaim_controller_resource_claims", "Claims that there are.", Stability::Alpha)
    .labels(&["allocated", "admin_access", "source"]);
/// The entry of the pod or the group that a claim was made for.
const CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// On claims that are allocated.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
const FIELD_MANAGER: &str = "ResourceClaimController";
/// Indexes of pods, and of groups, by the claims and the templates that they name, `{namespace}/{name}`.
const BY_CLAIM: &str = "pod-resource-claims";
const BY_TEMPLATE: &str = "pod-resource-claim-templates";
/// Index of claims by the uids of whom they are set aside for.
const BY_CONSUMER: &str = "resource-claim-consumers";
/// What keys in the one queue are of.
const OF_CLAIM: &str = "claim:";
const OF_POD: &str = "pod:";
const OF_GROUP: &str = "podgroup:";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let syncs = build.settings::<Settings>()?.resource_claim_syncs;
    let queue = build.queue("resource_claim");
    let claims = build
        .watch::<ResourceClaim>()
        .index(CONTROLLER_UID, |claim| controller_uid(&claim.metadata))
        .index(BY_CONSUMER, consumers)
        .informer();
    let templates = build.watch::<ResourceClaimTemplate>().informer();
    let pods = build.watch::<Pod>().index(BY_CLAIM, named_claims).index(BY_TEMPLATE, named_templates).informer();
    let whose = if build.gates().enabled(GROUP_CLAIMS) { Whose::OwnOrGroups } else { Whose::Own };
    let groups = (whose == Whose::OwnOrGroups).then(|| groups::watch(build));
    let counted = claims.clone();
    build.metrics().computed_gauges(&CLAIMS, Box::new(move || counts(&counted.list())));
    let allowed = Allowed {
        admin_access: build.gates().enabled(ADMIN_ACCESS),
        prioritized_list: build.gates().enabled(PRIORITIZED_LIST),
    };
    let controller = Arc::new(Claims {
        claims,
        templates,
        pods,
        groups,
        whose,
        allowed,
        made: Mutex::default(),
        gone: Mutex::default(),
        creates: build.metrics().counters(&CREATES),
    });
    follow(build, &controller, &queue);
    build.run(&queue, syncs, controller);
    Ok(())
}

/// Has what changes looked at.
fn follow(build: &mut Build<'_>, controller: &Arc<Claims>, queue: &Queue) {
    let told = Arc::clone(controller);
    drop(build.watch::<Pod>().enqueue_keys(queue, move |change| told.after_pod(change)));
    let (told, own) = (Arc::clone(controller), queue.clone());
    drop(build.watch::<ResourceClaim>().observe(move |change| told.after_claim(change, &own)));
    let (told, own) = (Arc::clone(controller), queue.clone());
    drop(build.watch::<ResourceClaimTemplate>().observe(move |change| {
        if !change.is_deleted() {
            told.enqueue_groups(BY_TEMPLATE, &change.key(), &own);
            told.enqueue_pods(BY_TEMPLATE, &change.key(), &own);
        }
    }));
    if controller.groups.is_some() {
        let (told, own) = (Arc::clone(controller), queue.clone());
        drop(build.watch::<PodGroup>().observe(move |change| told.after_group(change, &own)));
    }
}

fn named_claims(pod: &Pod) -> Vec<String> {
    claims_of(pod).into_iter().map(|name| format!("{}/{name}", pod.metadata.namespace)).collect()
}

fn consumers(claim: &ResourceClaim) -> Vec<String> {
    claim.status.reserved_for.iter().map(|consumer| consumer.uid.clone()).collect()
}

fn named_templates(pod: &Pod) -> Vec<String> {
    let names = pod.spec.resource_claims.iter().filter_map(|entry| entry.resource_claim_template_name.as_ref());
    names.map(|name| format!("{}/{name}", pod.metadata.namespace)).collect()
}

/// How many claims there are of each sort.
fn counts(claims: &[Arc<ResourceClaim>]) -> Vec<Sample> {
    let mut counts = BTreeMap::<Vec<String>, f64>::new();
    for claim in claims {
        let annotations = &claim.metadata.annotations;
        let source = if annotations.contains_key(CLAIM_NAME) {
            "resource_claim_template"
        } else if is_for_extended_resources(claim) {
            "extended_resource"
        } else {
            ""
        };
        let (allocated, admin) = (claim.status.allocation.is_some(), wants_admin_access(&claim.spec));
        *counts.entry(vec![allocated.to_string(), admin.to_string(), source.to_owned()]).or_default() += 1.0;
    }
    counts.into_iter().map(|(labels, count)| (labels, Value::Gauge(count))).collect()
}

struct Claims {
    claims: Informer<ResourceClaim>,
    templates: Informer<ResourceClaimTemplate>,
    pods: Informer<Pod>,
    /// None where groups share no claims.
    groups: Option<Informer<PodGroup>>,
    whose: Whose,
    allowed: Allowed,
    made: Mutex<Made>,
    gone: Mutex<Gone>,
    creates: Counters,
}

fn keyed(what: &str, namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, format!("{what}{name}"))
}

impl Claims {
    /// What is looked at after a pod has changed: its claims, once it has done with them; else the pod, if it may need something.
    fn after_pod(&self, change: &Change<Pod>) -> Vec<ObjectKey> {
        let (pod, namespace) = (change.object(), &change.object().metadata.namespace);
        if !has_claims(pod) {
            return Vec::new();
        }
        if change.is_deleted() {
            self.gone.lock().note(&pod.metadata.uid);
        }
        if change.is_deleted() || is_done(pod) {
            let named = claims_of(pod).into_iter().map(str::to_owned);
            // What was heard of the pod last may be from before it was told its claims.
            let known = [CONTROLLER_UID, BY_CONSUMER].map(|index| self.claims.by_index(index, &pod.metadata.uid));
            let known = known.into_iter().flatten().map(|claim| claim.metadata.name.clone());
            let all: BTreeSet<String> = named.chain(known).collect();
            return all.iter().map(|name| keyed(OF_CLAIM, namespace, name)).collect();
        }
        let needs = self.may_need_work(pod);
        needs.then(|| keyed(OF_POD, namespace, &pod.metadata.name)).into_iter().collect()
    }

    fn after_claim(&self, change: &Change<ResourceClaim>, queue: &Queue) {
        let key = change.key();
        if change.is_deleted() {
            self.made.lock().forget(change.object());
        } else {
            queue.add(keyed(OF_CLAIM, &key.namespace, &key.name));
        }
        self.enqueue_groups(BY_CLAIM, &key, queue);
        self.enqueue_pods(BY_CLAIM, &key, queue);
    }

    fn enqueue_pods(&self, index: &str, key: &ObjectKey, queue: &Queue) {
        for pod in self.pods.by_index(index, &key.to_string()) {
            if !is_done(&pod) && self.may_need_work(&pod) {
                queue.add(keyed(OF_POD, &pod.metadata.namespace, &pod.metadata.name));
            }
        }
    }
}

#[async_trait::async_trait]
impl Controller for Claims {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        if let Some(name) = key.name.strip_prefix(OF_CLAIM) {
            if let Some(claim) = self.claims.find(&key.namespace, name) {
                self.sync_claim(cx, &claim).await?;
            }
        } else if let Some(name) = key.name.strip_prefix(OF_GROUP) {
            if let Some(group) = self.groups.as_ref().and_then(|groups| groups.find(&key.namespace, name)) {
                self.sync_group(cx, &group).await?;
            }
        } else if let Some(name) = key.name.strip_prefix(OF_POD)
            && let Some(pod) = self.pods.find(&key.namespace, name)
        {
            self.sync_pod(cx, &pod).await?;
        }
        Ok(Next::Done)
    }
}
