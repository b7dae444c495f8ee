//! What stories are about: each workload declares something, changes it now and then, and knows whether the cluster has
//! come to what it declares. A story takes a few of them.

mod bare_sets;
mod budget;
mod copies;
mod cron_job;
mod daemon_set;
mod devices;
mod elastic;
mod jobs;
mod namespace;
mod owners;
mod quota;
mod services;
mod stateful_set;
mod stores;
mod web;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::object::{Kind, Object, from_value};
use api_machinery::value::Value;
use api_types::core_v1::Pod;
use async_trait::async_trait;
use base::{Rng, SharedRng};
use client::{Client, ClientError, Patch};
use serde_json::json;
use testing::{Cluster, OUT_OF_CPU};

use crate::observer::Observer;

pub(crate) use elastic::{ELASTIC, FEWEST, LARGEST};
pub(crate) use jobs::COUNTED;
pub(crate) use quota::{BOUNDED, MOST};
pub(crate) use web::Web;

/// Where what needs no namespace of its own is.
pub(crate) const NAMESPACE: &str = "default";

/// Something that is declared in a story.
#[async_trait]
pub(crate) trait Workload: Send {
    /// Takes what it needs of the cluster beside the API, and has more kinds observed.
    fn begin(&mut self, _cluster: &Cluster, _observer: &mut Observer) {}

    /// Declares it.
    async fn declare(&mut self, admin: &Client);

    /// Declares something else, in the `step`th step, and says what.
    async fn change(&mut self, admin: &Client, rng: &Rng, step: u64) -> String;

    /// Breaks something of its own until the end, if it has any, and says what.
    fn break_own(&mut self, _rng: &SharedRng) -> Option<String> {
        None
    }

    /// Whether it comes about also where a scheduler that was deposed binds late.
    fn bears_late_bindings(&self) -> bool {
        true
    }

    /// A node is about to be lost for so long that volumes are taken from it by force.
    fn lose(&mut self, _node: &str) {}

    /// Declares, at the end, something that the cluster has room for.
    async fn settle(&mut self, _admin: &Client) {}

    /// In what the cluster differs from what is declared; nothing when it has converged.
    async fn differences(&self, admin: &Client) -> Result<Vec<String>, ClientError>;

    /// What must hold in a cluster that has converged and has no faults, and does not.
    async fn try_out(&mut self, _admin: &Client) -> Vec<String> {
        Vec::new()
    }

    /// What it has seen on the way that must not be.
    fn violations(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How each is made.
const ALL: [fn() -> Box<dyn Workload>; 14] = [
    || Box::new(web::Web::default()),
    || Box::new(stateful_set::Database),
    || Box::new(jobs::Indexed),
    || Box::new(jobs::Counted::default()),
    || Box::new(daemon_set::Agent::default()),
    || Box::new(cron_job::EveryMinute),
    || Box::new(bare_sets::BareReplicaSet::default()),
    || Box::new(bare_sets::Controller),
    || Box::new(quota::Bounded),
    || Box::new(budget::Guarded),
    || Box::new(owners::Owners::default()),
    || Box::new(namespace::Tenant::default()),
    || Box::new(devices::Renderers),
    || Box::new(elastic::Elastic::default()),
];
/// How many of them a story has beside the services, which are small: as many as the nodes have room for, whichever.
const AT_ONCE: usize = 4;

/// Whether a seed's story has volumes, instead of the last one drawn: two in seven do, so that it goes with all of what
/// else follows from the seed.
fn has_volumes(seed: u64) -> bool {
    matches!(seed % 7, 3 | 6)
}

/// Whether it has snapshots and copies of volumes, in place of the last one drawn as well; never both.
fn has_copies(seed: u64) -> bool {
    matches!(seed % 7, 1 | 4)
}

/// The workloads of a seed's story.
pub(crate) fn draw(seed: u64, rng: &Rng) -> Vec<Box<dyn Workload>> {
    let mut left = ALL.to_vec();
    let mut drawn: Vec<Box<dyn Workload>> = vec![Box::new(services::Services::default())];
    while drawn.len() <= AT_ONCE {
        let at = usize::try_from(rng.below(u64::try_from(left.len()).unwrap_or(1))).unwrap_or(0);
        drawn.push(left.swap_remove(at)());
    }
    if has_volumes(seed) {
        drawn.pop();
        drawn.push(Box::new(stores::Stores::default()));
    }
    if has_copies(seed) {
        drawn.pop();
        drawn.push(Box::new(copies::Copies::default()));
    }
    drawn
}

/// Creates an object, which must be taken.
pub(crate) async fn create<T: Kind + Object>(admin: &Client, namespace: &str, object: &Value) -> T {
    let object = from_value::<T>(object).expect("an object");
    let api = if T::TYPE.namespaced { admin.namespaced::<T>(namespace) } else { admin.all::<T>() };
    api.create(&object).await.unwrap_or_else(|error| panic!("{} {}: {error}", T::TYPE.kind, object.meta().name))
}

/// Changes an object, which must be taken.
pub(crate) async fn change<T: Kind + Object>(admin: &Client, namespace: &str, name: &str, patch: Value) {
    let api = admin.namespaced::<T>(namespace);
    let changed = api.patch(name, &Patch::Merge(patch)).await;
    changed.map(drop).unwrap_or_else(|error| panic!("{} {name}: {error}", T::TYPE.kind));
}

/// Deletes an object, and says whether it was there.
pub(crate) async fn delete<T: Kind + Object>(admin: &Client, namespace: &str, name: &str, policy: &str) -> bool {
    let options = DeleteOptions { propagation_policy: Some(policy.to_owned()), ..DeleteOptions::default() };
    let api = if T::TYPE.namespaced { admin.namespaced::<T>(namespace) } else { admin.all::<T>() };
    match api.delete(name, &options).await {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => panic!("deleting {} {name}: {error}", T::TYPE.kind),
    }
}

/// A template of pods that are labelled as of this app.
pub(crate) fn template(app: &str, restart: &str, image: &str, cpu: &str) -> Value {
    let containers = json!([{"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}]);
    json!({"metadata": {"labels": {"app": app}}, "spec": {"restartPolicy": restart, "containers": containers}})
}

/// The pods of an app, but for those that a node has refused: others come in their place, and most of them stay to be seen.
async fn pods_of(admin: &Client, namespace: &str, app: &str) -> Result<Vec<Pod>, ClientError> {
    let of_app = ListOptions { label_selector: format!("app={app}"), ..ListOptions::default() };
    let mut pods = admin.namespaced::<Pod>(namespace).list_all(&of_app).await?.items;
    pods.retain(|pod| !is_refused(pod));
    Ok(pods)
}

/// Whether there are exactly `replicas` pods of the app, which all run; in what that differs.
async fn all_run(admin: &Client, namespace: &str, app: &str, replicas: i32) -> Result<Vec<String>, ClientError> {
    let pods = pods_of(admin, namespace, app).await?;
    let mut found: Vec<String> = pods.iter().filter(|pod| !is_ready(pod) || is_ending(pod)).map(does_not_run).collect();
    if i32::try_from(pods.len()) != Ok(replicas) {
        found.push(format!("there are {} pods of {app}, not {replicas}", pods.len()));
    }
    Ok(found)
}

fn does_not_run(pod: &Pod) -> String {
    format!("pod {} does not run: {} on {:?}", pod.metadata.name, pod.status.phase, pod.spec.node_name)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether a node had no room for a pod that was bound to it.
pub(crate) fn is_refused(pod: &Pod) -> bool {
    pod.status.phase == "Failed" && pod.status.reason == OUT_OF_CPU
}

fn is_ending(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// One of several, at random.
pub(crate) fn pick<'a, T>(from: &'a [T], rng: &Rng) -> Option<&'a T> {
    let count = u64::try_from(from.len()).unwrap_or(u64::MAX);
    from.get(usize::try_from(rng.below(count.max(1))).unwrap_or(0))
}
