//! Turns what sources deliver into what changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_types::core_v1::Pod;

use super::{CONFIG_HASH, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE, Delivery, PodEvent, Source, SourceSet};

/// A change to the configured pods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Remove(Vec<Arc<Pod>>),
    Add(Vec<Arc<Pod>>),
    Update(Vec<Arc<Pod>>),
    /// The pod shall go, gracefully.
    Delete(Vec<Arc<Pod>>),
    /// Only the status differs.
    Reconcile(Vec<Arc<Pod>>),
}

/// What a delivery changed, in the order in which it is applied.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub ops: Vec<Op>,
    /// Pods left out because another one of the set has their name.
    pub duplicates: Vec<(Source, Arc<Pod>)>,
}

/// The pods of one source by uid, as they were last.
type Known = BTreeMap<String, Arc<Pod>>;

/// The pods of all sources as they were last.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    known: BTreeMap<Source, Known>,
    seen: BTreeSet<Source>,
}

impl Merger {
    /// Sources that have delivered all of their pods at least once.
    pub(crate) fn seen(&self) -> impl Iterator<Item = Source> + '_ {
        self.seen.iter().copied()
    }

    /// Takes a delivery and says what it changed. The work is that of the pods in it.
    pub(crate) fn apply(&mut self, delivery: Delivery, now: Time) -> Changes {
        match delivery {
            Delivery::All(set) => self.apply_all(set, now),
            Delivery::Changes(events) => self.apply_events(events, now),
        }
    }

    fn apply_all(&mut self, set: SourceSet, now: Time) -> Changes {
        let first = !self.known.contains_key(&set.source);
        self.seen.extend(set.whole.then_some(set.source));
        let known = self.known.entry(set.source).or_default();
        let mut round = Round::new(set.source, now);
        let (mut names, mut uids, mut duplicates) = (HashSet::new(), HashSet::new(), Vec::new());
        for pod in set.pods {
            if !names.insert((pod.metadata.namespace.clone(), pod.metadata.name.clone())) {
                duplicates.push((set.source, pod));
                continue;
            }
            uids.insert(pod.metadata.uid.clone());
            round.put(known, pod);
        }
        let gone: Vec<String> = known.keys().filter(|uid| !uids.contains(*uid)).cloned().collect();
        gone.iter().for_each(|uid| round.remove(known, uid));
        Changes { ops: round.into_ops(first), duplicates }
    }

    fn apply_events(&mut self, events: Vec<PodEvent>, now: Time) -> Changes {
        let known = self.known.entry(Source::Api).or_default();
        let mut round = Round::new(Source::Api, now);
        for event in events {
            match event {
                PodEvent::Is(pod) => round.put(known, pod),
                PodEvent::Gone(uid) => round.remove(known, &uid),
            }
        }
        Changes { ops: round.into_ops(false), duplicates: Vec::new() }
    }
}

/// What one delivery changes.
struct Round {
    source: Source,
    now: Time,
    remove: Vec<Arc<Pod>>,
    add: Vec<Arc<Pod>>,
    update: Vec<Arc<Pod>>,
    delete: Vec<Arc<Pod>>,
    reconcile: Vec<Arc<Pod>>,
}

impl Round {
    fn new(source: Source, now: Time) -> Self {
        let (remove, add, update, delete, reconcile) = Default::default();
        Self { source, now, remove, add, update, delete, reconcile }
    }

    /// Takes a pod as it is now. Only one that differs is copied.
    fn put(&mut self, known: &mut Known, pod: Arc<Pod>) {
        let uid = pod.metadata.uid.clone();
        let Some(old) = known.get(&uid) else {
            let pod = Arc::new(self.sighted(Arc::unwrap_or_clone(pod)));
            known.insert(uid, Arc::clone(&pod));
            self.add.push(pod);
            return;
        };
        let Some(difference) = difference(old, &pod) else { return };
        let merged = Arc::new(merged(old, Arc::unwrap_or_clone(pod)));
        known.insert(uid, Arc::clone(&merged));
        match difference {
            Difference::Deletion => self.delete.push(merged),
            Difference::Content => self.update.push(merged),
            Difference::Status => self.reconcile.push(merged),
        }
    }

    fn remove(&mut self, known: &mut Known, uid: &str) {
        self.remove.extend(known.remove(uid));
    }

    /// Notes where a new pod comes from and when.
    fn sighted(&self, mut pod: Pod) -> Pod {
        let annotations = &mut pod.metadata.annotations;
        annotations.insert(CONFIG_SOURCE.to_owned(), self.source.name().to_owned());
        annotations.insert(CONFIG_SEEN.to_owned(), self.now.to_string());
        pod
    }

    /// `first` for the first of a source, which is told of even when it is empty.
    fn into_ops(self, first: bool) -> Vec<Op> {
        let full = |pods: &Vec<Arc<Pod>>| !pods.is_empty();
        let ops = [
            Some(self.remove).filter(full).map(Op::Remove),
            Some(self.add).filter(|pods| first || full(pods)).map(Op::Add),
            Some(self.update).filter(full).map(Op::Update),
            Some(self.delete).filter(full).map(Op::Delete),
            Some(self.reconcile).filter(full).map(Op::Reconcile),
        ];
        ops.into_iter().flatten().collect()
    }
}

enum Difference {
    Content,
    Deletion,
    Status,
}

fn is_local(key: &str) -> bool {
    matches!(key, CONFIG_SOURCE | CONFIG_MIRROR | CONFIG_SEEN)
}

fn difference(old: &Pod, new: &Pod) -> Option<Difference> {
    #[cfg(test)]
    tests::COMPARED.set(tests::COMPARED.get() + 1);
    let (old_meta, new_meta) = (&old.metadata, &new.metadata);
    let same = old.spec == new.spec
        && old_meta.labels == new_meta.labels
        && old_meta.deletion_timestamp == new_meta.deletion_timestamp
        && old_meta.deletion_grace_period_seconds == new_meta.deletion_grace_period_seconds
        && own_annotations(old).eq(own_annotations(new));
    if !same {
        let deleted = new_meta.deletion_timestamp.is_some();
        return Some(if deleted { Difference::Deletion } else { Difference::Content });
    }
    (old.status != new.status).then_some(Difference::Status)
}

/// All but those that this kubelet made, in order.
fn own_annotations(pod: &Pod) -> impl Iterator<Item = (&String, &String)> {
    pod.metadata.annotations.iter().filter(|(key, _)| !is_local(key))
}

/// The new content on the metadata of the first sighting.
fn merged(old: &Pod, new: Pod) -> Pod {
    let Pod { metadata: meta, spec, status } = new;
    let mut annotations = meta.annotations;
    for key in [CONFIG_SOURCE, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_HASH] {
        if let Some(value) = old.metadata.annotations.get(key) {
            annotations.insert(key.to_owned(), value.clone());
        }
    }
    let metadata = ObjectMeta {
        annotations,
        labels: meta.labels,
        deletion_timestamp: meta.deletion_timestamp,
        deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
        generation: meta.generation,
        resource_version: meta.resource_version,
        ..old.metadata.clone()
    };
    Pod { metadata, spec, status }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
